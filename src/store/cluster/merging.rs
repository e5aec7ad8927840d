//! Several watches merged into one, so that a view of some namespaces keeps the promises of a watch of all.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use crate::model::{Key, Record};
use crate::store::Change;
use crate::store::error::StoreError;

/// Changes of one watch.
pub(super) type Changes = BoxStream<'static, Result<Change, StoreError>>;

/// Makes one watch of several. It begins when all of them have begun; when one begins anew, all objects are sent.
pub(super) fn merged(parts: Vec<Changes>) -> Changes {
    let mut held = Held { parts: vec![None; parts.len()] };
    let numbered = parts.into_iter().enumerate();
    let numbered = numbered.map(|(part, changes)| changes.map(move |change| (part, change)));
    let all = stream::select_all(numbered.map(futures_util::StreamExt::boxed));
    let told = all.filter_map(move |(part, change)| {
        let told = match change {
            Ok(change) => held.take(part, change).map(Ok),
            Err(error) => Some(Err(error)),
        };
        async move { told }
    });
    told.boxed()
}

/// Objects of each part so far; `None` for a part that has not begun.
struct Held {
    parts: Vec<Option<BTreeMap<Key, Record>>>,
}

impl Held {
    /// Takes in a change of a part, and returns the change to send now.
    fn take(&mut self, part: usize, change: Change) -> Option<Change> {
        match change {
            Change::Resynced(records) => {
                let records = records.into_iter().map(|record| (record.key.clone(), record));
                self.parts[part] = Some(records.collect());
                let all = self.parts.iter().cloned().collect::<Option<Vec<_>>>()?;
                let mut records: Vec<_> = all.into_iter().flat_map(BTreeMap::into_values).collect();
                records.sort_by(|one, other| one.key.cmp(&other.key));
                return Some(Change::Resynced(records));
            }
            Change::Applied(ref record) => {
                let held = self.parts[part].get_or_insert_default();
                held.insert(record.key.clone(), record.clone());
            }
            Change::Deleted(ref record) => {
                self.parts[part].get_or_insert_default().remove(&record.key);
            }
        }
        self.parts.iter().all(Option::is_some).then_some(change)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(name: &str) -> Record {
        let (namespace, name) = name.split_once('/').unwrap();
        let metadata = json!({ "namespace": namespace, "name": name });
        let order = json!({ "apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "metadata": metadata });
        Record::new(order).unwrap()
    }

    fn names(records: &[Record]) -> String {
        records.iter().map(|record| record.key.name.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// Checks the changes that two parts send together: each step is a part and its change.
    fn check(steps: Vec<(usize, Change)>, expected: &[&str]) {
        let mut held = Held { parts: vec![None; 2] };
        let told = steps.into_iter().filter_map(|(part, change)| held.take(part, change));
        let told = told.map(|change| match change {
            Change::Resynced(records) => format!("all: {}", names(&records)),
            Change::Applied(record) => format!("applied {}", record.key.name),
            Change::Deleted(record) => format!("deleted {}", record.key.name),
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn it_begins_when_all_have_begun() {
        check(
            vec![
                (1, Change::Resynced(vec![record("b/x")])),
                (1, Change::Applied(record("b/y"))),
                (0, Change::Resynced(vec![record("a/x")])),
                (0, Change::Applied(record("a/y"))),
            ],
            &["all: a/x b/x b/y", "applied a/y"],
        );
    }

    #[test]
    fn a_part_that_begins_anew_does_not_hide_the_others() {
        check(
            vec![
                (0, Change::Resynced(vec![record("a/x"), record("a/y")])),
                (1, Change::Resynced(vec![record("b/x")])),
                (1, Change::Deleted(record("b/x"))),
                (1, Change::Applied(record("b/z"))),
                (0, Change::Resynced(vec![record("a/y")])),
            ],
            &["all: a/x a/y b/x", "deleted b/x", "applied b/z", "all: a/y b/z"],
        );
    }
}
