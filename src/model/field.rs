//! Position of a field in an object, and remarks about a field.

use std::fmt;

use super::common::SecretKeySelector;
use super::seal::Seal;

/// One step down from an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Into a field.
    Key(String),
    /// Into an item of a list, counted from 0.
    Index(usize),
}

/// Path from the top of an object to a field, written `spec.acme.solvers[1].http01`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

impl FieldPath {
    /// Reads a path of plain fields, such as `spec.secretName`.
    pub fn of(dotted: &str) -> Self {
        dotted.split('.').fold(Self::default(), |path, key| path.key(key))
    }

    /// Returns the path to a field below; dots in `key` belong to the field's name.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.then(Step::Key(key.into()))
    }

    /// Returns the path to a field some levels below.
    #[must_use]
    pub fn below(&self, dotted: &str) -> Self {
        dotted.split('.').fold(self.clone(), |path, key| path.key(key))
    }

    /// Returns the path to an item of the list, counted from 0.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    /// Returns the steps from the top.
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

/// Half of a field that a remark is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    /// The name: the field should not be there, or have another name.
    Name,
    /// The value.
    Value,
}

/// Sentence about one field: an error or a warning, depending on the list that holds the remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The field; empty for the object as a whole.
    pub path: FieldPath,
    /// Half of the field that the remark is about.
    pub matter: Matter,
    /// Fault of the field.
    pub message: String,
    /// Text to write instead, if known.
    pub hint: Option<String>,
    /// Program that has encrypted the object, if the remark is about encryption.
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

    /// Adds a hint on what to write instead.
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

/// Returns the faults of a reference to one key of a Secret.
pub fn secret_key_faults(path: &FieldPath, selector: &SecretKeySelector) -> Vec<Remark> {
    let mut faults = Vec::new();
    if selector.name.is_empty() {
        faults.push(Remark::new(path.key("name"), "secret name is required"));
    }
    if selector.key.is_empty() {
        faults.push(Remark::new(path.key("key"), "secret key is required"));
    }
    faults
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
