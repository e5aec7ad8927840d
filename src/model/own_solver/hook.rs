//! Settings of the solver `exec`: the program that it runs.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::SecretKeySelector;
use crate::model::field::{FieldPath, Remark, secret_key_faults};

/// Default time limit of a hook, in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 60;
/// Longest time limit that may be set, in seconds.
const MAX_TIMEOUT_SECONDS: u64 = 600;

/// Program that publishes and removes records, in the fields of a container.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hook {
    /// The program and its first arguments.
    pub command: Vec<String>,
    /// More arguments, before the arguments that name the action.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables in addition to those of the process.
    #[serde(default)]
    pub env: Vec<Variable>,
    /// Time limit of the program, in seconds.
    #[serde(default = "usual")]
    pub timeout_seconds: u64,
}

/// A variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variable {
    /// Name of the variable.
    pub name: String,
    /// Value, if everybody may know the value.
    #[serde(default)]
    pub value: Option<String>,
    /// Source of the value otherwise.
    #[serde(default)]
    pub value_from: Option<ValueSource>,
}

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValueSource {
    /// A key of a Secret.
    pub secret_key_ref: SecretKeySelector,
}

fn usual() -> u64 {
    DEFAULT_TIMEOUT_SECONDS
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

    /// Returns the keys of Secrets that the hook needs.
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
        if !(1..=MAX_TIMEOUT_SECONDS).contains(&self.timeout_seconds) {
            let message = format!("must be from 1 to {MAX_TIMEOUT_SECONDS}");
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
