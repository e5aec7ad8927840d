//! Where a field stands in an object, and a sentence about it.

use std::fmt;

use super::seal::Seal;

/// One step down from an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Into a field.
    Key(String),
    /// Into an item of a list, counted from 0.
    Index(usize),
}

/// The way from the top of an object to a field, written `spec.acme.solvers[1].http01`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    /// Reads a path of plain fields, such as `spec.secretName`.
    pub fn of(dotted: &str) -> Self {
        dotted.split('.').fold(Self::default(), |path, key| path.key(key))
    }

    /// The path to a field below; dots in `key` belong to its name.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.then(Step::Key(key.into()))
    }

    /// The path to a field some levels below.
    #[must_use]
    pub fn below(&self, dotted: &str) -> Self {
        dotted.split('.').fold(self.clone(), |path, key| path.key(key))
    }

    /// The path to an item of the list, counted from 0.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    /// The steps from the top.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if position == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Which half of a field is the matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    /// Its name: it should not be there, or be called otherwise.
    Name,
    /// Its value.
    Value,
}

/// A sentence about one field: an error or a warning, as the list says in which it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The field; empty for the object as a whole.
    pub path: FieldPath,
    /// Whether its name or its value is the matter.
    pub matter: Matter,
    /// What is wrong.
    pub message: String,
    /// What to write instead, where that can be said.
    pub hint: Option<String>,
    /// Who has encrypted the object, where that is the matter.
    pub seal: Option<Seal>,
}

impl Remark {
    /// Makes a remark without a hint.
    pub fn new(path: FieldPath, message: impl Into<String>) -> Self {
        Self { path, matter: Matter::Value, message: message.into(), hint: None, seal: None }
    }

    /// Makes a remark about the name of a field.
    pub fn on_name(path: FieldPath, message: impl Into<String>) -> Self {
        Self { matter: Matter::Name, ..Self::new(path, message) }
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.steps().is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_people_write_it() {
        let path = FieldPath::of("spec.acme.solvers").index(1).below("http01.ingress");
        assert_eq!(path.to_string(), "spec.acme.solvers[1].http01.ingress");
        assert_eq!(
            Remark::new(path, "is empty").to_string().split_once(": ").map(|p| p.1),
            Some("is empty")
        );
    }
}
