//! What the solver `exec` runs.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::SecretKeySelector;
use crate::model::field::{FieldPath, Remark};
use crate::model::validation::secret_key_faults;

/// How long a hook may take when nothing is said, in seconds.
const USUAL: u64 = 60;
/// The longest that may be asked for, in seconds.
const LONGEST: u64 = 600;

/// A program that publishes and takes away, in the words of a container.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hook {
    /// The program and its first arguments.
    pub command: Vec<String>,
    /// More arguments, before those that tell what to do.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables beside those that the process has.
    #[serde(default)]
    pub env: Vec<Variable>,
    /// How long it may take, in seconds.
    #[serde(default = "usual")]
    pub timeout_seconds: u64,
}

/// A variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, where everybody may know it.
    #[serde(default)]
    pub value: Option<String>,
    /// Where its value is, where not.
    #[serde(default)]
    pub value_from: Option<ValueSource>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValueSource {
    /// A key of a Secret.
    pub secret_key_ref: SecretKeySelector,
}

fn usual() -> u64 {
    USUAL
}

impl Hook {
    /// Reads the `config` of a solver.
    pub(super) fn read(config: Option<&Value>, at: &FieldPath) -> Result<Self, Vec<Remark>> {
        let config = match config {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(config) => config.clone(),
        };
        let hook: Self = serde_json::from_value(config)
            .map_err(|error| vec![Remark::new(at.clone(), error.to_string())])?;
        let faults = hook.faults(at);
        if faults.is_empty() { Ok(hook) } else { Err(faults) }
    }

    /// Keys of Secrets that it needs.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &SecretKeySelector> {
        self.env
            .iter()
            .filter_map(|variable| variable.value_from.as_ref())
            .map(|s| &s.secret_key_ref)
    }

    fn faults(&self, at: &FieldPath) -> Vec<Remark> {
        let mut faults = Vec::new();
        if self.command.first().is_none_or(String::is_empty) {
            faults.push(Remark::new(at.key("command"), "must begin with a program"));
        }
        if !(1..=LONGEST).contains(&self.timeout_seconds) {
            let message = format!("must be from 1 to {LONGEST}");
            faults.push(Remark::new(at.key("timeoutSeconds"), message));
        }
        for (index, variable) in self.env.iter().enumerate() {
            faults.extend(variable.faults(&at.key("env").index(index)));
        }
        faults
    }
}

impl Variable {
    fn faults(&self, at: &FieldPath) -> Vec<Remark> {
        let Self { name, value, value_from } = self;
        let mut faults = Vec::new();
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!("{name:?} is not the name of a variable");
            faults.push(Remark::new(at.key("name"), message));
        }
        if value.is_some() == value_from.is_some() {
            faults.push(Remark::new(at.clone(), "one of value, valueFrom is required"));
        }
        if let Some(ValueSource { secret_key_ref }) = value_from {
            faults.extend(secret_key_faults(&at.below("valueFrom.secretKeyRef"), secret_key_ref));
        }
        faults
    }
}
