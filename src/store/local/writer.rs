//! Thread that writes. Writes that are requested while the thread waits for the disk are done together, with one flush,
//! and no caller is answered before its write is safe.

use std::iter;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{oneshot, watch};

use super::fault::{explain, refused};
use super::rows::Rows;
use super::wakeup::WriteNotifier;
use super::worker::Worker;
use crate::store::error::StoreError;
use crate::store::folder;

/// Most writes that are flushed together.
const MAX_BATCH: usize = 64;

/// Durability of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// The write is answered when the disk has it: keys, and orders that cost something at the CA.
    Durable,
    /// The write survives the process at once, and a power failure a little later: Events.
    Soon,
}

/// Handle of the writing thread, which ends with the handle.
pub(super) struct Writer {
    file: Arc<Path>,
    requests: Worker<QueuedWrite>,
}

impl Writer {
    /// Starts the thread; each new revision is sent to `revisions` once it can be read.
    pub(super) fn start(
        connection: Connection,
        file: Arc<Path>,
        revisions: watch::Sender<i64>,
    ) -> Result<Self, StoreError> {
        let bell = WriteNotifier::open(&file)?;
        let desk = Desk { connection, file: Arc::clone(&file), revisions, bell };
        let requests = Worker::start("store-writer", |asked| desk.serve(&asked));
        let requests = requests.map_err(|error| folder::unusable(&file, &error))?;
        Ok(Self { file, requests })
    }

    /// Does one write, wholly or not at all, and even if the future is dropped.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        care: Durability,
        deed: impl FnOnce(&mut Rows<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let request = Box::new(Write { progress: WriteProgress::Asked(deed), answer });
        self.requests.send((care, request));
        answered.await.unwrap_or_else(|_| Err(refused(&self.file, "its writer has stopped")))
    }
}

type QueuedWrite = (Durability, Box<dyn Request>);

/// One write, whatever its result type.
trait Request: Send {
    /// Does the write within the batch's transaction; an error, as text, means that nothing of the write may be kept.
    fn perform(&mut self, rows: &mut Rows<'_>) -> Result<(), String>;
    /// Answers the caller, once it is known whether the batch is safe.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Write<D, T> {
    progress: WriteProgress<D, T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

enum WriteProgress<D, T> {
    Asked(D),
    Done(Result<T, StoreError>),
    /// Only while the write runs.
    Begun,
}

impl<D, T> Request for Write<D, T>
where
    D: FnOnce(&mut Rows<'_>) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn perform(&mut self, rows: &mut Rows<'_>) -> Result<(), String> {
        let WriteProgress::Asked(deed) = mem::replace(&mut self.progress, WriteProgress::Begun)
        else {
            return Ok(());
        };
        let done = deed(rows);
        let kept = match &done {
            Ok(_) => Ok(()),
            Err(StoreError::Unusable { why, .. }) => Err(why.clone()),
            Err(error) => Err(error.to_string()),
        };
        self.progress = WriteProgress::Done(done);
        kept
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (self.progress, committed) {
            (WriteProgress::Done(Err(own)), _) => Err(own),
            (_, Err(error)) => Err(error),
            (WriteProgress::Done(done), Ok(())) => done,
            // A batch that was kept was done; without an answer the caller gets an error.
            (WriteProgress::Asked(_) | WriteProgress::Begun, Ok(())) => return,
        };
        // The caller may have gone away meanwhile.
        let _heard = self.answer.send(answer).is_ok();
    }
}

/// State of the writing thread.
struct Desk {
    connection: Connection,
    file: Arc<Path>,
    revisions: watch::Sender<i64>,
    bell: WriteNotifier,
}

impl Desk {
    fn serve(mut self, asked: &Receiver<QueuedWrite>) {
        while let Ok(first) = asked.recv() {
            let more = asked.try_iter().take(MAX_BATCH - 1);
            let (cares, mut batch): (Vec<_>, Vec<_>) = iter::once(first).chain(more).unzip();
            let care = if cares.contains(&Durability::Durable) {
                Durability::Durable
            } else {
                Durability::Soon
            };
            let committed = self.commit(care, &mut batch);
            for request in batch {
                let outcome = committed.as_ref().map(|_| ());
                request.answer(outcome.map_err(|why| refused(&self.file, why)));
            }
            if let Ok(revision) = committed {
                self.notify(revision);
            }
        }
    }

    /// Does the writes of a batch in one transaction; returns the revision after it, or why nothing was kept, as text.
    fn commit(&mut self, care: Durability, batch: &mut [Box<dyn Request>]) -> Result<i64, String> {
        let level = match care {
            Durability::Durable => "FULL",
            Durability::Soon => "NORMAL",
        };
        let level = self.connection.pragma_update(None, "synchronous", level);
        level.map_err(|error| explain(&error))?;
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(|error| explain(&error))?;
        let run = |text| transaction.execute_batch(text).map_err(|error| explain(&error));
        let mut rows = Rows::new(&transaction, &self.file);
        for request in batch {
            run("SAVEPOINT request")?;
            if let Err(why) = request.perform(&mut rows) {
                // When the disk fails SQLite may roll back everything at once.
                if transaction.is_autocommit() {
                    return Err(why);
                }
                run("ROLLBACK TO request")?;
            }
            run("RELEASE request")?;
        }
        let revision = rows.revision().map_err(|error| error.to_string())?;
        transaction.commit().map_err(|error| explain(&error))?;
        Ok(revision)
    }

    fn notify(&self, revision: i64) {
        let is_new = |told: &mut i64| mem::replace(told, revision.max(*told)) < revision;
        if self.revisions.send_if_modified(is_new) {
            self.bell.ring();
        }
    }
}
