//! Line of a stream of changes, for programs; `docs/reports.md` lists the line's fields.

use jiff::Timestamp;
use serde::Serialize;

use super::common::Time;
use super::key::Key;
use super::order_report::VERSION;

/// Line of a stream of changes: a step of an object, or a message about no object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeLine {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `Change`, or `Message` for a line about no object.
    pub kind: &'static str,
    /// Time of the change.
    pub time: Time,
    /// Object that changed, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ChangedObject>,
    /// State in one word or a few.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Cause of the state, or of the wait.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// State and reason, or the message, in one line.
    pub text: String,
}

impl ChangeLine {
    /// Builds the line of an object's step.
    pub fn step(now: Timestamp, object: ChangedObject, state: &str, reason: &str) -> Self {
        let gap = if state.is_empty() || reason.is_empty() { "" } else { ": " };
        Self {
            api_version: VERSION,
            kind: "Change",
            time: now.into(),
            object: Some(object),
            state: state.to_owned(),
            reason: reason.to_owned(),
            text: format!("{state}{gap}{reason}"),
        }
    }

    /// Builds the line of a message.
    pub fn message(now: Timestamp, text: &str) -> Self {
        let (state, reason) = (String::new(), String::new());
        let (api_version, kind, time, object) = (VERSION, "Message", now.into(), None);
        Self { api_version, kind, time, object, state, reason, text: text.to_owned() }
    }
}

/// The object of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedObject {
    /// Kind.
    pub kind: &'static str,
    /// Namespace; empty for an object without one.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Domain of a Challenge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

impl ChangedObject {
    /// Builds an object from its key, and from the domain of a Challenge.
    pub fn new(key: &Key, domain: Option<&str>) -> Self {
        Self {
            kind: key.kind.as_str(),
            namespace: key.name.namespace.clone(),
            name: key.name.name.clone(),
            domain: domain.map(str::to_owned),
        }
    }
}
