//! How processes that share a state folder hear of each other's writes: whoever wrote rings a bell, a file whose time
//! is moved, and the kernel tells the others.
//!
//! The database's own files do not serve: the last thing that is written to them, before the disk has flushed it,
//! comes a little earlier than the moment at which others can read it.

use std::fs::File;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use notify::{EventKind, RecursiveMode, Watcher as _};
use tokio::sync::watch;
use tracing::debug;

use super::reader::Reader;
use crate::store::error::StoreError;
use crate::store::folder;

/// The file whose time is moved.
const FILE: &str = "state.bell";
/// The bell may go unheard: its ringer died after the write, or the kernel tells nothing (a network file system, too many
/// watchers). Then the revision itself is looked at, so often.
const REVISION_CHECK_PERIOD: Duration = Duration::from_secs(1);

/// What a writer rings.
pub(super) struct Wakeup(File);

impl Wakeup {
    /// Opens the bell of the folder in which the database is.
    pub(super) fn open(database: &Path) -> Result<Self, StoreError> {
        folder::open_file(&database.with_file_name(FILE)).map(Self)
    }

    /// Tells the other processes that there is something new.
    pub(super) fn ring(&self) {
        if let Err(error) = self.0.set_modified(SystemTime::now()) {
            debug!(%error, "cannot ring the bell; others will look by themselves");
        }
    }
}

/// A thread that listens to the bell and looks up the revision; it ends when this is dropped.
pub(super) struct Ear {
    heard: Sender<WakeupState>,
    thread: Option<JoinHandle<()>>,
}

enum WakeupState {
    Wakeup,
    Stop,
}

impl Ear {
    /// Starts listening; `revisions` is told of each new revision.
    pub(super) fn start(
        database: &Path,
        reader: Reader,
        revisions: watch::Sender<i64>,
    ) -> Result<Self, StoreError> {
        let (heard, hearing) = mpsc::channel();
        let bells = heard.clone();
        let on_event = move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| is_bell(&event)) {
                // After the thread's end nobody needs to hear.
                let _heard = bells.send(WakeupState::Wakeup).is_ok();
            }
        };
        let kernel = notify::recommended_watcher(on_event).and_then(|mut kernel| {
            kernel.watch(folder::of(database), RecursiveMode::NonRecursive)?;
            Ok(kernel)
        });
        let kernel = kernel.inspect_err(|error| debug!(%error, "cannot hear the bell")).ok();
        let listen = move || {
            let _listening_until_the_end = kernel;
            loop {
                look(&reader, revisions.clone());
                match hearing.recv_timeout(REVISION_CHECK_PERIOD) {
                    Ok(WakeupState::Wakeup) | Err(RecvTimeoutError::Timeout) => {}
                    Ok(WakeupState::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = thread::Builder::new().name("store-listener".into()).spawn(listen);
        let thread = thread.map_err(|error| folder::unusable(database, &error))?;
        Ok(Self { heard, thread: Some(thread) })
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let told = self.heard.send(WakeupState::Stop).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| told) {
            let _ended_well = thread.join().is_ok();
        }
    }
}

fn is_bell(event: &notify::Event) -> bool {
    let rung = matches!(event.kind, EventKind::Modify(_) | EventKind::Create(_));
    rung && event.paths.iter().any(|path| path.ends_with(FILE))
}

fn look(reader: &Reader, revisions: watch::Sender<i64>) {
    reader.post(move |rows| {
        let seen = match rows.revision() {
            Ok(seen) => seen,
            Err(error) => return debug!(%error, "cannot look for changes"),
        };
        revisions.send_if_modified(|told| std::mem::replace(told, seen.max(*told)) < seen);
    });
}
