//! What a command was about, for all that is done at its end.

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

/// What a command was about.
#[derive(Debug)]
pub struct Results<'a> {
    /// The store.
    pub store: &'a Arc<dyn Store>,
    /// Where pairs are written, if anywhere.
    pub out: Option<&'a Path>,
    /// Whether Secrets are written as manifests, too.
    pub out_secret: bool,
    /// What is run for each certificate that was written.
    pub on_issued: Option<&'a OnIssued>,
    /// Where records that a person has to make are written, too.
    pub zone_file: Option<&'a Path>,
    /// What it worked for.
    pub purpose: Purpose,
    /// When this command began, and when its time is up.
    pub times: (Timestamp, Timestamp),
    /// Whether timelines are shown.
    pub timeline: TimelineChoice,
    /// The objects.
    pub records: &'a [Record],
    /// Where their manifests begin.
    pub places: &'a Places,
    /// Those that were followed, and whether they were due.
    pub followed: &'a BTreeMap<Key, bool>,
    /// Where the report is written, too.
    pub events: &'a EventLog,
}
