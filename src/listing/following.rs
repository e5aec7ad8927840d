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

/// Rows whose widths a new row is aligned with.
const REMEMBERED: usize = 200;

/// What is followed.
#[derive(Debug)]
pub struct Following {
    /// Kind.
    pub kind: Kind,
    /// Which of its objects.
    pub scope: Scope,
    /// Only these; all when empty.
    pub names: Vec<String>,
    /// Only those with these labels.
    pub labels: LabelSelector,
    /// Only those with these fields.
    pub fields: FieldSelector,
    /// Whether rows begin with the namespace.
    pub namespaces: Namespaces,
    /// Whether the headings have yet to be shown.
    pub headers: Headers,
}

impl Following {
    /// Shows every change until interrupted, or until nobody reads any more; `listed` has been shown already.
    ///
    /// # Errors
    /// Fails when the output cannot be written, or by being interrupted.
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
                Change::Applied(record) => self.news(&mut shown, record).into_iter().collect(),
                Change::Deleted(record) => {
                    shown.remove(&record.key).map(|_| record).into_iter().collect()
                }
                Change::Resynced(records) => self.resynced(&mut shown, records),
            };
            for record in news {
                rows.push_back(record.object.clone());
                while rows.len() > REMEMBERED {
                    rows.pop_front();
                }
                self.print(&mut printer, &rows, headers, context)?;
                headers = Headers::Hidden;
            }
        }
        Ok(())
    }

    /// The object, if it is new, changed, or does not fit any more.
    fn news(&self, shown: &mut BTreeMap<Key, String>, record: Record) -> Option<Record> {
        let name = &record.key.name.name;
        let is_named = self.names.is_empty() || self.names.contains(name);
        if !is_named || !self.labels.fits(&record) || !self.fields.fits(&record) {
            return shown.remove(&record.key).map(|_| record);
        }
        let (key, now) = revision(&record);
        let before = shown.insert(key, now.clone());
        (before.as_ref() != Some(&now)).then_some(record)
    }

    fn resynced(&self, shown: &mut BTreeMap<Key, String>, records: Vec<Record>) -> Vec<Record> {
        shown.retain(|key, _| records.iter().any(|record| record.key == *key));
        records.into_iter().filter_map(|record| self.news(shown, record)).collect()
    }

    /// Prints the last row, as wide as those before.
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
