//! `get -w`: every change of listed objects, one row or document each, until interrupted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::Value;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::input::selector::{FieldSelector, LabelSelector};
use crate::model::{Key, Kind, Record};
use crate::print::columns::{self, ColumnStyle, Namespaces, Width};
use crate::print::format::Format;
use crate::print::table::Headers;
use crate::print::{Group, Printer, Shape};
use crate::store::{Change, Scope, Store};

/// Most earlier rows with whose widths a new row is aligned.
const ALIGNED_ROWS_MAX: usize = 200;

/// Objects to follow, and the form of their rows.
#[derive(Debug)]
pub struct Following {
    /// Kind.
    pub kind: Kind,
    /// Scope of the objects.
    pub scope: Scope,
    /// Names of the objects; empty for all objects.
    pub names: Vec<String>,
    /// Labels that the objects must have.
    pub labels: LabelSelector,
    /// Fields that the objects must have.
    pub fields: FieldSelector,
    /// Whether rows begin with the namespace.
    pub namespaces: Namespaces,
    /// Whether the headings have yet to be shown.
    pub headers: Headers,
}

impl Following {
    /// Shows every change until interrupted, or until the reader is gone; `listed` has been shown already.
    ///
    /// # Errors
    /// Fails if the output cannot be written, or when interrupted.
    pub async fn run(
        &self,
        store: &Arc<dyn Store>,
        listed: Vec<Record>,
        mut printer: Printer,
        context: &Context,
    ) -> Result<(), Failure> {
        let mut rows: VecDeque<Value> = listed.iter().map(|r| r.object.clone()).collect();
        let mut headers = self.headers;
        let mut shown: BTreeMap<Key, String> = listed.iter().map(revision).collect();
        let mut changes = store.watch(self.kind, self.scope.clone());
        while !printer.is_closed() {
            let change = tokio::select! {
                change = changes.next() => change,
                kind = context.interrupted().wait() => return Err(Failure::silent(kind)),
            };
            let Some(change) = change else { break };
            let news = match change? {
                Change::Applied(record) => self.update(&mut shown, record).into_iter().collect(),
                Change::Deleted(record) => {
                    shown.remove(&record.key).map(|_| record).into_iter().collect()
                }
                Change::Resynced(records) => self.resync(&mut shown, records),
            };
            for record in news {
                rows.push_back(record.object.clone());
                while rows.len() > ALIGNED_ROWS_MAX {
                    rows.pop_front();
                }
                self.print(&mut printer, &rows, headers, context)?;
                headers = Headers::Hidden;
            }
        }
        Ok(())
    }

    /// Returns the object if it is new, has changed, or no longer fits.
    fn update(&self, shown: &mut BTreeMap<Key, String>, record: Record) -> Option<Record> {
        let name = &record.key.name.name;
        let is_named = self.names.is_empty() || self.names.contains(name);
        if !is_named || !self.labels.fits(&record) || !self.fields.fits(&record) {
            return shown.remove(&record.key).map(|_| record);
        }
        let (key, now) = revision(&record);
        let before = shown.insert(key, now.clone());
        (before.as_ref() != Some(&now)).then_some(record)
    }

    fn resync(&self, shown: &mut BTreeMap<Key, String>, records: Vec<Record>) -> Vec<Record> {
        shown.retain(|key, _| records.iter().any(|record| record.key == *key));
        records.into_iter().filter_map(|record| self.update(shown, record)).collect()
    }

    /// Prints the last row, as wide as the rows before.
    fn print(
        &self,
        printer: &mut Printer,
        rows: &VecDeque<Value>,
        headers: Headers,
        context: &Context,
    ) -> Result<(), Failure> {
        let now = context.now();
        let width = match printer.format() {
            Format::Table => Width::Narrow,
            Format::Wide => Width::Wide,
            _ => {
                let group = Group { kind: self.kind, objects: rows.back().into_iter().collect() };
                return Ok(printer.resources(&[group], Shape::One, self.namespaces, now)?);
            }
        };
        let labels = Some(printer.labels());
        let look =
            ColumnStyle { width, namespaces: self.namespaces, labels, ..ColumnStyle::default() };
        let table = columns::table(self.kind, rows, &look, now);
        let row = table.lines().last().unwrap_or_default();
        let text = if headers == Headers::Shown { table } else { format!("{row}\n") };
        Ok(printer.text(&text)?)
    }
}

fn revision(record: &Record) -> (Key, String) {
    (record.key.clone(), format!("{}/{}", record.uid(), record.resource_version()))
}
