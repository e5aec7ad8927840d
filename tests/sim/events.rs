//! What happens in a run, as its timeline shows it and the invariants see it.

use std::fmt::Write as _;

use kubectl_acme::model::{Key, Record};
use serde_json::Value;

use super::plan::{Deed, Fault};

/// A request of a CA.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) life: u32,
    pub(crate) place: usize,
    pub(crate) identity: Option<String>,
    /// No other request has it.
    pub(crate) number: u64,
    /// The word of the RFC.
    pub(crate) what: &'static str,
    pub(crate) path: String,
    pub(crate) is_read: bool,
    pub(crate) header: Value,
    pub(crate) payload: Value,
}

/// What happens.
#[derive(Debug)]
pub(crate) enum Event {
    /// Something reaches the CA.
    Asks(Asked),
    /// The CA has acted on it.
    Acted {
        asked: Asked,
        status: u16,
        location: Option<String>,
    },
    /// What the process hears: a status and the seconds of a Retry-After, or nothing.
    Hears {
        asked: Asked,
        status: Option<u16>,
        retry_after: Option<u64>,
    },
    /// Something was written, or was not.
    Wrote {
        place: usize,
        identity: Option<String>,
        deed: String,
        key: Key,
        before: Option<Record>,
        after: Option<Record>,
    },
    NotWritten {
        place: usize,
        deed: String,
        key: String,
        why: String,
    },
    /// An object, or all of a kind, is read from the store.
    Reads {
        key: Key,
    },
    Presents {
        uid: String,
        key: Key,
        at: String,
        text: String,
    },
    CleansUp {
        at: String,
    },
    Sees {
        uid: String,
        at: String,
        is_there: bool,
    },
    /// A fault that passed a point.
    Strikes {
        fault: Fault,
    },
    Starts {
        life: u32,
        place: usize,
    },
    Drives {
        place: usize,
    },
    Lost {
        place: usize,
    },
    Killed {
        place: usize,
        life: u32,
    },
    /// Somebody does something about a Certificate or what it has.
    Person {
        deed: Deed,
        certificate: String,
    },
    /// Somebody writes another name into the Lease.
    Usurps,
    Note {
        what: String,
    },
}

impl Event {
    /// A line of the timeline; nothing of what another line tells.
    pub(crate) fn line(&self) -> Option<String> {
        Some(match self {
            Self::Asks(_) | Self::Reads { .. } => return None,
            Self::Acted { asked, status, .. } => {
                format!("p{}   {} {} -> {status}", asked.place, asked.what, asked.path)
            }
            Self::Hears { asked, status, retry_after } => match (status, retry_after) {
                (None, _) => {
                    format!("p{}   {} {}: no answer heard", asked.place, asked.what, asked.path)
                }
                (Some(status), Some(seconds)) => {
                    format!("p{}   {} hears {status}, not for {seconds} s", asked.place, asked.what)
                }
                (Some(_), None) => return None,
            },
            Self::Wrote { place, deed, key, after, .. } => {
                if key.kind == kubectl_acme::model::Kind::Event {
                    let after = after.as_ref();
                    let text = |at: &str| after.map_or("", |after| after.text(at)).to_owned();
                    return Some(format!(
                        "p{place}     event {}: {}",
                        text("/reason"),
                        text("/message")
                    ));
                }
                format!("p{place} {deed} {key}{}", after.as_ref().map(summary).unwrap_or_default())
            }
            Self::NotWritten { place, deed, key, why } => format!("p{place} {deed} {key}: {why}"),
            Self::Presents { at, text, .. } => format!("    answer {text} up at {at}"),
            Self::CleansUp { at, .. } => format!("    answer down at {at}"),
            Self::Sees { at, is_there, .. } => {
                format!("    looked at {at}: {}", if *is_there { "there" } else { "not there" })
            }
            Self::Strikes { fault } => format!("** {fault:?}"),
            Self::Starts { place, life } => format!("p{place} starts (life {life})"),
            Self::Drives { place, .. } => format!("p{place} drives"),
            Self::Lost { place, .. } => format!("p{place} has lost the Lease"),
            Self::Killed { place, .. } => format!("p{place} is killed"),
            Self::Person { deed, certificate } => format!("somebody {deed:?} {certificate}"),
            Self::Usurps => "somebody writes another name into the Lease".to_owned(),
            Self::Note { what } => what.clone(),
        })
    }
}

/// What of an object is worth a line.
fn summary(record: &Record) -> String {
    let status = &record.object["status"];
    let text = |field: &str| match &status[field] {
        Value::String(text) => format!(" {field}={text:?}"),
        Value::Bool(true) => format!(" {field}"),
        _ => String::new(),
    };
    let mut line: String = ["state", "url", "reason", "processing", "presented"].map(text).concat();
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let part = |field: &str| condition[field].as_str().unwrap_or("").to_owned();
        write!(line, " {}={}({})", part("type"), part("status"), part("reason")).unwrap();
    }
    if !record.metadata().finalizers.is_empty() {
        line += " finalizer";
    }
    if record.metadata().is_deleted() {
        line += " deleting";
    }
    let memory = record.metadata().annotations;
    let names = memory.keys().filter_map(|name| name.strip_prefix("kubectl-acme/"));
    names.fold(line, |line, name| line + " #" + name)
}
