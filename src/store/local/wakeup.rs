//! Notices of writes between processes that share a state folder: the writer moves the time of a file, the bell, and
//! the kernel notifies the other processes.
//!
//! The database's own files do not serve: the last write to them, before the disk has flushed it, comes a little
//! earlier than the moment at which others can read it.

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

/// File whose time is moved.
const FILE: &str = "state.bell";
/// Interval between two reads of the revision itself, as a notice may be missed: the writer died after the write, or
/// the kernel sends none (a network file system, too many watchers).
const REVISION_CHECK_PERIOD: Duration = Duration::from_secs(1);

/// Sender of notices.
pub(super) struct WriteNotifier(File);

impl WriteNotifier {
    /// Opens the bell in the folder of the database.
    pub(super) fn open(database: &Path) -> Result<Self, StoreError> {
        folder::open_file(&database.with_file_name(FILE)).map(Self)
    }

    /// Notifies the other processes of a write.
    pub(super) fn ring(&self) {
        if let Err(error) = self.0.set_modified(SystemTime::now()) {
            debug!(%error, "cannot ring the bell; others will look by themselves");
        }
    }
}

/// Thread that waits for notices and reads the revision; the thread ends when this value is dropped.
pub(super) struct WriteListener {
    heard: Sender<WakeupState>,
    thread: Option<JoinHandle<()>>,
}

enum WakeupState {
    Write,
    Stop,
}

impl WriteListener {
    /// Starts the thread; each new revision is sent to `revisions`.
    pub(super) fn start(
        database: &Path,
        reader: Reader,
        revisions: watch::Sender<i64>,
    ) -> Result<Self, StoreError> {
        let (heard, hearing) = mpsc::channel();
        let bells = heard.clone();
        let on_event = move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| is_bell(&event)) {
                // After the thread's end no notice is needed.
                let _heard = bells.send(WakeupState::Write).is_ok();
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
                read_revision(&reader, revisions.clone());
                match hearing.recv_timeout(REVISION_CHECK_PERIOD) {
                    Ok(WakeupState::Write) | Err(RecvTimeoutError::Timeout) => {}
                    Ok(WakeupState::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = thread::Builder::new().name("store-listener".into()).spawn(listen);
        let thread = thread.map_err(|error| folder::unusable(database, &error))?;
        Ok(Self { heard, thread: Some(thread) })
    }
}

impl Drop for WriteListener {
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

fn read_revision(reader: &Reader, revisions: watch::Sender<i64>) {
    reader.post(move |rows| {
        let seen = match rows.revision() {
            Ok(seen) => seen,
            Err(error) => return debug!(%error, "cannot look for changes"),
        };
        revisions.send_if_modified(|told| std::mem::replace(told, seen.max(*told)) < seen);
    });
}
