//! Subject of a command, for everything that is done at its end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::on_issued::OnIssued;
use super::purpose::Purpose;
use super::report::Places;
use crate::context::flags::output::TimelineChoice;
use crate::model::{Key, Record};
use crate::print::event_log::EventLog;
use crate::store::Store;

/// Subject of a command: its objects, and the places for its results.
#[derive(Debug)]
pub struct Results<'a> {
    /// The store.
    pub store: &'a Arc<dyn Store>,
    /// Folder for certificates and keys, if any.
    pub out: Option<&'a Path>,
    /// Whether Secrets are written as manifests, too.
    pub out_secret: bool,
    /// Command that is run for each certificate that was written.
    pub on_issued: Option<&'a OnIssued>,
    /// File that also gets the records that a person has to make.
    pub zone_file: Option<&'a Path>,
    /// Purpose of the command.
    pub purpose: Purpose,
    /// Start of the command, and its deadline.
    pub times: (Timestamp, Timestamp),
    /// Whether timelines are shown.
    pub timeline: TimelineChoice,
    /// The objects.
    pub records: &'a [Record],
    /// Places where the manifests of the objects begin.
    pub places: &'a Places,
    /// Objects that were followed, and whether each was due.
    pub followed: &'a BTreeMap<Key, bool>,
    /// Event log that gets the report, too.
    pub events: &'a EventLog,
}
