//! Resources on one machine: one SQLite file in a state folder, used by several processes at once.

use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Once};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::debug;

use self::fault::refused;
use self::feed::Feed;
use self::reader::Reader;
use self::rows::Rows;
use self::wakeup::WriteListener;
use self::writer::{Durability, Writer};
use super::error::StoreError;
use super::folder::unusable;
use super::rules::Transaction as _;
use super::watch::changes;
use super::{Change, Listed, Part, Scope, Store, rules, written};
use crate::model::{Key, Kind, ObjectName, Record};

mod fault;
mod feed;
mod reader;
mod rows;
mod schema;
mod wakeup;
mod worker;
mod writer;

/// Number of SIGXFSZ on Linux, macOS and the BSDs.
#[cfg(unix)]
const SIGXFSZ: i32 = 25;
/// The database in the state folder.
const FILE: &str = "state.db";

/// Access to the state that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading only: works in a read-only folder, too.
    ReadOnly,
    /// Reading and writing.
    ReadWrite,
}

/// Store in a state folder. Every write is on the disk when it is answered, except for Events, which a power failure
/// may take back; a process may be killed at any moment.
pub struct LocalStore {
    file: Arc<Path>,
    /// Listener for writes of other processes, from the first watch on. Dropped first, since it asks the reader.
    ear: Mutex<Option<WriteListener>>,
    reader: Reader,
    feed: Feed,
    writer: Option<Writer>,
    revisions: watch::Sender<i64>,
}

impl LocalStore {
    /// Opens the state in a folder. Folder and file are made when missing, for their owner only; a file of an
    /// older version is migrated. Blocks for some milliseconds.
    ///
    /// # Errors
    /// Fails with [`StoreError::Exposed`] when folder or file are not this user's alone, and with [`StoreError::Unusable`] when
    /// the file was emptied or written by another program, is newer than this program, or cannot be reached.
    pub fn open(folder: &Path, access: Access) -> Result<Self, StoreError> {
        survive_the_file_size_limit();
        let file: Arc<Path> = folder.join(FILE).into();
        let revisions = watch::Sender::new(0);
        let writer = match access {
            Access::ReadOnly => None,
            Access::ReadWrite => {
                let connection = schema::open(&file)?;
                Some(Writer::start(connection, Arc::clone(&file), revisions.clone())?)
            }
        };
        let connection = match access {
            Access::ReadOnly => schema::open_to_read(&file)?,
            Access::ReadWrite => schema::open_beside_writer(&file)?,
        };
        let reader = Reader::start(connection, Arc::clone(&file))?;
        let feed = Feed::new(reader.clone(), revisions.subscribe());
        Ok(Self { file, ear: Mutex::new(None), reader, feed, writer, revisions })
    }

    /// Returns whether a folder holds any state; the check makes none.
    ///
    /// # Errors
    /// Fails with [`StoreError::Unusable`] if the folder cannot be read: it is no folder, or closed to this user.
    pub fn exists(folder: &Path) -> Result<bool, StoreError> {
        folder.join(FILE).try_exists().map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => refused(folder, "this user may not look into it"),
            _ => unusable(folder, &error),
        })
    }

    async fn write<T: Send + 'static>(
        &self,
        kind: Kind,
        deed: impl FnOnce(&mut Rows<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let care = if kind == Kind::Event { Durability::Soon } else { Durability::Durable };
        match &self.writer {
            Some(writer) => writer.write(care, deed).await,
            None => Err(refused(&self.file, "it was opened for reading only")),
        }
    }

    fn listen(&self) {
        let mut ear = self.ear.lock();
        if ear.is_none() {
            let started =
                WriteListener::start(&self.file, self.reader.clone(), self.revisions.clone());
            *ear = started.inspect_err(|error| debug!(%error, "cannot hear other processes")).ok();
        }
    }
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalStore({})", self.file.display())
    }
}

#[async_trait]
impl Store for LocalStore {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let key = key.clone();
        self.reader.ask(move |rows| rows.read(&key)).await
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        self.reader.list(kind, scope).await.map(|(_, records)| records)
    }

    async fn list_unknown(
        &self,
        kind: Kind,
        scope: &Scope,
        known: &HashMap<ObjectName, String>,
    ) -> Result<Vec<Listed>, StoreError> {
        if *scope != Scope::all() {
            let records = self.list(kind, scope).await?;
            return Ok(records.into_iter().map(Listed::Record).collect());
        }
        self.reader.list_unknown(kind, known).await
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        let kind = record.key.kind;
        let create = |rows: &mut Rows<'_>| rules::create(rows, record, Timestamp::now());
        written::log_write("created", "", self.write(kind, create).await)
    }

    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        let kind = record.key.kind;
        let (word, before) = (written::word(part), record.resource_version().to_owned());
        let replace =
            move |rows: &mut Rows<'_>| rules::replace(rows, record, part, Timestamp::now());
        written::log_write(word, &before, self.write(kind, replace).await)
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        let kind = record.key.kind;
        let apply = |rows: &mut Rows<'_>| rules::apply(rows, record, Timestamp::now());
        written::log_write("applied", "", self.write(kind, apply).await)
    }

    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let wanted = key.clone();
        let delete = move |rows: &mut Rows<'_>| rules::delete(rows, &wanted, Timestamp::now());
        written::deleted(key, self.write(key.kind, delete).await)
    }

    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError> {
        let (wanted, uid, now) = (key.clone(), uid.to_owned(), Timestamp::now());
        let delete = move |rows: &mut Rows<'_>| rules::delete_exactly(rows, &wanted, &uid, now);
        written::deleted(key, self.write(key.kind, delete).await)
    }

    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        self.listen();
        changes(self.feed.clone(), self.revisions.subscribe(), kind, scope)
    }
}

/// Makes a write beyond the file-size limit (`ulimit -f`) fail, so that the user gets the error: SIGXFSZ would end the
/// process.
fn survive_the_file_size_limit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(unix)]
        if let Err(error) = std::thread::spawn(take_the_signal).join().unwrap_or(Ok(())) {
            tracing::debug!(%error, "a file-size limit will end this process");
        }
    });
}

/// Sets a handler, which stays for the life of the process, runtime or not. The runtime is our own because a store may
/// be opened without any.
#[cfg(unix)]
fn take_the_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}
