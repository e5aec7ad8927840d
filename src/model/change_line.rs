//! A line of a stream of changes, for programs; `docs/reports.md` lists its fields for those who read it.

use jiff::Timestamp;
use serde::Serialize;

use super::common::Time;
use super::key::Key;
use super::order_report::VERSION;

/// A step of an object, or what is said beside it: a line of a stream of changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeLine {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `Change`, or `Message` for what is of no object.
    pub kind: &'static str,
    /// When.
    pub time: Time,
    /// Of what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ChangedObject>,
    /// State in one word or a few.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// What is waited for, or why it is so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// All of it in one line.
    pub text: String,
}

impl ChangeLine {
    /// The line of an object's step.
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

    /// The line of what is said.
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
    /// Namespace; empty for what has none.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The name it is about, of a Challenge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

impl ChangedObject {
    /// An object, and the name it is about.
    pub fn new(key: &Key, domain: Option<&str>) -> Self {
        Self {
            kind: key.kind.as_str(),
            namespace: key.name.namespace.clone(),
            name: key.name.name.clone(),
            domain: domain.map(str::to_owned),
        }
    }
}
