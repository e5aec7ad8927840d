//! Thread that reads, so that no task waits for the disk.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::fault::{self, refused, unusable};
use super::rows::Rows;
use super::worker::Worker;
use crate::model::{Key, Kind, ObjectName, Record};
use crate::store::error::StoreError;
use crate::store::rules::Transaction as _;
use crate::store::{Listed, Scope, folder};

type Question = Box<dyn FnOnce(&Connection) + Send>;

/// Handle of the reading thread, which ends with the last clone of the handle.
#[derive(Clone)]
pub(super) struct Reader {
    file: Arc<Path>,
    questions: Arc<Worker<Question>>,
}

impl Reader {
    /// Starts the thread.
    pub(super) fn start(connection: Connection, file: Arc<Path>) -> Result<Self, StoreError> {
        let questions = Worker::start("store-reader", move |questions| {
            for question in questions {
                let question: Question = question;
                question(&connection);
            }
        });
        let questions = questions.map_err(|error| folder::unusable(&file, &error))?;
        Ok(Self { file, questions: Arc::new(questions) })
    }

    /// Runs one query on one state of the database, and returns the result.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Rows<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let file = Arc::clone(&self.file);
        let ask = move |connection: &Connection| {
            let look = || {
                let transaction = connection.unchecked_transaction();
                let transaction = transaction.map_err(|error| unusable(&file, &error))?;
                question(&Rows::new(&transaction, &file))
            };
            // The caller may have gone away meanwhile.
            let _heard = answer.send(look()).is_ok();
        };
        self.questions.send(Box::new(ask));
        answered.await.unwrap_or_else(|_| Err(refused(&self.file, "its reader has stopped")))
    }

    /// Reads the objects of a scope, and the revision of that state. The caller parses the objects: the thread is free
    /// for others, and an allocator that serves each thread apart need not grow for this thread.
    pub(super) async fn list(
        &self,
        kind: Kind,
        scope: &Scope,
    ) -> Result<(i64, Vec<Record>), StoreError> {
        let scope = scope.clone();
        let read = self.ask(move |rows| Ok((rows.revision()?, rows.list(kind, &scope)?)));
        let (revision, rows) = read.await?;
        let record = |(name, body): (_, String)| {
            let key = Key::new(kind, name);
            match serde_json::from_str(&body) {
                Ok(object) => Ok(Record { key, object }),
                Err(_) => Err(self.damaged(&key.to_string())),
            }
        };
        Ok((revision, rows.into_iter().map(record).collect::<Result<_, _>>()?))
    }

    /// Reads all objects of a kind; objects of a known revision by name alone.
    pub(super) async fn list_unknown(
        &self,
        kind: Kind,
        known: &HashMap<ObjectName, String>,
    ) -> Result<Vec<Listed>, StoreError> {
        let revisions = self.ask(move |rows| rows.revisions(kind)).await?;
        let mut listed = Vec::with_capacity(revisions.len());
        let mut unknown = Vec::new();
        for (name, revision) in revisions {
            if known.get(&name) == Some(&revision) {
                listed.push(Listed::Known(name));
            } else {
                unknown.push(Key::new(kind, name));
            }
        }
        let read = self.ask(move |rows| {
            let read = unknown.into_iter().filter_map(|key| rows.read(&key).transpose());
            read.collect::<Result<Vec<_>, _>>()
        });
        // An object that has gone meanwhile is reported as a change.
        listed.extend(read.await?.into_iter().map(Listed::Record));
        listed.sort_by(|one, other| one.name().cmp(other.name()));
        Ok(listed)
    }

    /// Runs a query that passes its result on by itself.
    pub(super) fn post(&self, question: impl FnOnce(&Rows<'_>) + Send + 'static) {
        let file = Arc::clone(&self.file);
        let ask = move |connection: &Connection| question(&Rows::new(connection, &file));
        self.questions.send(Box::new(ask));
    }

    /// Makes the error for a part of the database that cannot be read.
    pub(super) fn damaged(&self, what: &str) -> StoreError {
        fault::damaged(&self.file, what)
    }
}
