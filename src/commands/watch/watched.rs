//! Watched objects in their present state, and their view on a screen.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::family::{ObjectTree, involved};
use super::news::{self, News};
use crate::known::FindingLog;
use crate::model::{Key, Kind, Record, Time};
use crate::print::columns::{self, ColumnStyle, Namespaces, Naming};
use crate::print::screen::Frame;
use crate::store::error::StoreError;
use crate::store::{Change, Store};

/// Maximum number of lines of news that are kept for the screen.
const MAX_RECENT: usize = 100;

/// Watched objects, with the recent news.
#[derive(Debug)]
pub(super) struct WatchedObjects {
    store: Arc<dyn Store>,
    family: Option<ObjectTree>,
    namespaces: bool,
    objects: BTreeMap<Key, Record>,
    recent: VecDeque<News>,
    /// Kinds whose existing objects have been listed once.
    begun: Vec<Kind>,
    /// Known causes of faulty objects.
    known: FindingLog,
}

impl WatchedObjects {
    /// Starts without objects.
    pub(super) fn new(store: Arc<dyn Store>, family: Option<ObjectTree>, namespaces: bool) -> Self {
        let (objects, recent, begun) = (BTreeMap::new(), VecDeque::new(), Vec::new());
        Self { store, family, namespaces, objects, recent, begun, known: FindingLog::default() }
    }

    /// Takes in a change and returns the news.
    ///
    /// # Errors
    /// Fails when the store fails.
    pub(super) async fn take(
        &mut self,
        kind: Kind,
        change: Change,
        now: Timestamp,
    ) -> Result<Vec<News>, StoreError> {
        let mut told = Vec::new();
        match change {
            Change::Applied(record) => self.apply(record, (false, now), &mut told).await?,
            Change::Deleted(record) => self.remove(&record.key, now, &mut told),
            Change::Resynced(records) => self.resync(kind, records, now, &mut told).await?,
        }
        told.sort_by_key(|news| news.at);
        self.recent.extend(told.iter().cloned());
        // News from the first list of one kind may be older than news of another kind.
        self.recent.make_contiguous().sort_by_key(|news| news.at);
        while self.recent.len() > MAX_RECENT {
            self.recent.pop_front();
        }
        Ok(told)
    }

    /// Takes in an object. Facts of a listed object, whose change was not observed, get their time from the object.
    async fn apply(
        &mut self,
        record: Record,
        (is_found, now): (bool, Timestamp),
        told: &mut Vec<News>,
    ) -> Result<(), StoreError> {
        if let Some(family) = &mut self.family
            && !family.holds(&self.store, &record).await?
        {
            return Ok(());
        }
        let before = self.objects.get(&record.key);
        if record.key.kind == Kind::Event {
            let text = news::of_event(before, &record);
            let subject = involved(&record).map(|(key, _)| key);
            told.extend(subject.zip(text).map(|(subject, text)| self.news(subject, text, now)));
        } else {
            let facts = news::of_object(before.map(|b| &b.object), &record.object);
            let subject = &record.key;
            let is_old = facts.is_empty() || (is_found && news::is_settled(&record.object));
            told.extend(facts.into_iter().map(|fact| {
                let at = if is_found { fact.since.unwrap_or(now) } else { now };
                self.news(subject.clone(), fact.text, at)
            }));
            if !is_old && let Some((of, line)) = self.known.line(&self.store, &record, now).await {
                told.push(self.news(of, line, now));
            }
        }
        self.objects.insert(record.key.clone(), record);
        Ok(())
    }

    fn remove(&mut self, key: &Key, now: Timestamp, told: &mut Vec<News>) {
        if self.objects.remove(key).is_some() && key.kind != Kind::Event {
            told.push(self.news(key.clone(), "deleted".to_owned(), now));
        }
    }

    /// Takes in the list of a kind. In the first list, settled objects and existing events are no news.
    async fn resync(
        &mut self,
        kind: Kind,
        records: Vec<Record>,
        now: Timestamp,
        told: &mut Vec<News>,
    ) -> Result<(), StoreError> {
        let is_first = !self.begun.contains(&kind);
        if is_first {
            self.begun.push(kind);
        }
        let known = self.objects.keys().filter(|key| key.kind == kind);
        let gone: Vec<Key> =
            known.filter(|key| records.iter().all(|r| r.key != **key)).cloned().collect();
        for key in gone {
            self.remove(&key, now, told);
        }
        for record in records {
            let is_old = kind == Kind::Event || news::is_settled(&record.object);
            let mut heard = Vec::new();
            self.apply(record, (is_first, now), &mut heard).await?;
            if !(is_first && is_old) {
                told.extend(heard);
            }
        }
        Ok(())
    }

    /// Watched root object if it is known not to exist: not yet, not any more, or misspelt.
    pub(super) fn missing(&self) -> Option<&Key> {
        let root = self.family.as_ref()?.root();
        let is_missing = self.begun.contains(&root.kind) && !self.objects.contains_key(root);
        is_missing.then_some(root)
    }

    fn news(&self, subject: Key, text: String, at: Timestamp) -> News {
        News { at, subject, namespaces: self.namespaces, text }
    }

    /// Draws the unsettled objects: a table per kind, and the latest news below.
    pub(super) fn frame(&self, frame: &mut Frame, now: Timestamp) {
        let namespaces = if self.namespaces { Namespaces::Shown } else { Namespaces::Hidden };
        for kind in Kind::SIX {
            let objects = self.to_draw(kind);
            if objects.is_empty() {
                continue;
            }
            let look = ColumnStyle {
                naming: Naming::ByKind,
                namespaces,
                colour: frame.colour,
                terminal: Some(frame.columns()),
                ..ColumnStyle::default()
            };
            frame.block(&columns::table(kind, objects, &look, now));
        }
        if frame.is_empty() {
            match self.missing() {
                Some(root) => frame.block(&format!("There is no {root}; waiting for it.\n")),
                None => frame.block("Nothing runs.\n"),
            }
        }
        frame.tail(self.recent.iter().map(News::line));
        frame.footer(format!("{}  Ctrl-C ends", Time::new(now)));
    }

    /// Objects to draw: all Certificates, and unsettled objects of other kinds.
    fn to_draw(&self, kind: Kind) -> Vec<&Value> {
        let of_kind = self.objects.iter().filter(|(key, _)| key.kind == kind);
        let objects = of_kind.map(|(_, record)| &record.object);
        let mut shown: Vec<&Value> =
            objects.filter(|o| kind == Kind::Certificate || !news::is_settled(o)).collect();
        if kind == Kind::Challenge {
            shown.sort_by_key(|challenge| {
                challenge.pointer("/spec/dnsName").and_then(Value::as_str)
            });
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ObjectName;
    use crate::store::Scope;
    use crate::store::memory::MemoryStore;

    #[tokio::test]
    async fn an_object_that_is_not_there_is_named_as_soon_as_its_kind_has_been_listed() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let root = Key::new(Kind::Certificate, ObjectName::new("default", "web"));
        let mut scene =
            WatchedObjects::new(Arc::clone(&store), Some(ObjectTree::of(root.clone())), false);
        assert_eq!(scene.missing(), None);
        let (orders, none) = (Kind::Order, Vec::new());
        scene.take(orders, Change::Resynced(none.clone()), Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(scene.missing(), None);
        let listed = store.list(Kind::Certificate, &Scope::all()).await.unwrap();
        let certificates = Change::Resynced(listed);
        scene.take(root.kind, certificates, Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(scene.missing(), Some(&root));

        let certificate = json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"secretName": "web-tls", "issuerRef": {"name": "acme"}},
        });
        let made = store.create(Record::new(certificate).unwrap()).await.unwrap();
        scene.take(root.kind, Change::Applied(made), Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(scene.missing(), None);
    }
}
