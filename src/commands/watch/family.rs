//! Objects below a root object: found by their owners, and remembered after deletion.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::{Key, Kind, ObjectName, Record};
use crate::store::Store;
use crate::store::error::StoreError;

/// Maximum length of a chain of owners: Challenge, Order, CertificateRequest, Certificate.
const GENERATIONS: usize = 4;

/// An object and everything below it.
#[derive(Debug)]
pub(super) struct ObjectTree {
    root: Key,
    members: BTreeSet<String>,
}

impl ObjectTree {
    /// Starts with the root object.
    pub(super) fn of(root: Key) -> Self {
        Self { root, members: BTreeSet::new() }
    }

    /// Root object.
    pub(super) fn root(&self) -> &Key {
        &self.root
    }

    /// Returns whether an object, or the object of an event, is the root or below the root.
    pub(super) async fn holds(
        &mut self,
        store: &Arc<dyn Store>,
        record: &Record,
    ) -> Result<bool, StoreError> {
        let mut next = match record.key.kind {
            Kind::Event => match involved(record) {
                Some((key, uid)) if key == self.root || self.members.contains(&uid) => {
                    return Ok(true);
                }
                Some((key, _)) => store.get(&key).await?,
                None => None,
            },
            _ => Some(record.clone()),
        };
        let mut line = Vec::new();
        for _ in 0..GENERATIONS {
            let Some(record) = next else { return Ok(false) };
            line.push(record.uid().to_owned());
            if record.key == self.root || self.members.contains(record.uid()) {
                self.members.extend(line);
                return Ok(true);
            }
            next = match owner(&record) {
                Some(key) => store.get(&key).await?,
                None => None,
            };
        }
        Ok(false)
    }
}

/// Key and UID of the object of an event.
pub(super) fn involved(event: &Record) -> Option<(Key, String)> {
    let kind = event.text("/involvedObject/kind");
    let kind = Kind::ALL.into_iter().find(|known| known.as_str() == kind)?;
    let namespace = event.text("/involvedObject/namespace");
    let name = ObjectName::new(namespace, event.text("/involvedObject/name"));
    Some((Key::new(kind, name), event.text("/involvedObject/uid").to_owned()))
}

fn owner(record: &Record) -> Option<Key> {
    let metadata = record.metadata();
    let owner = metadata.controller()?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == owner.kind)?;
    Some(Key::new(kind, ObjectName::new(&metadata.namespace, &owner.name)))
}
