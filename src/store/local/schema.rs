//! The database file: opening it for one of several processes, and bringing it to the schema of this version.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::fault::{EMPTIED, NOT_OURS, is_busy, refused, unusable};
use crate::store::error::StoreError;
use crate::store::folder;

/// Marks the file as ours: "acme" in ASCII.
const APPLICATION: i64 = 0x6163_6d65;
/// Longest wait of a statement for other processes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Prepared statements that a connection keeps: all of ours.
const STATEMENTS: usize = 32;
/// Most memory for pages of a database, for each connection, in KiB.
const PAGES_KIB: i64 = 6 << 10;
/// File that is locked while the database is made or migrated. Two processes that switch a new file to WAL at once
/// would fail with SQLITE_BUSY, however long they wait.
const OPEN_LOCK: &str = "open.lock";

/// Ends of the names of the database and of SQLite's files beside it.
const COMPANIONS: [&str; 4] = ["", "-wal", "-shm", "-journal"];
/// Name under which a new database is made.
const DRAFT: &str = "state.db.new";

/// Additions of each version of the schema; `user_version` is the number of steps that a file has. Never edit a step
/// that was released: add a new step.
const STEPS: [&str; 5] = [
    // 1: the objects.
    "CREATE TABLE counter(id INTEGER PRIMARY KEY CHECK(id = 1), revision INTEGER NOT NULL);
     INSERT INTO counter VALUES(1, 0);
     CREATE TABLE object(
         id INTEGER PRIMARY KEY,
         kind TEXT NOT NULL,
         namespace TEXT NOT NULL,
         name TEXT NOT NULL,
         uid TEXT NOT NULL UNIQUE,
         involved TEXT,
         body TEXT NOT NULL,
         UNIQUE(kind, namespace, name));
     CREATE INDEX object_involved ON object(involved) WHERE involved IS NOT NULL;
     CREATE TABLE owner(
         object INTEGER NOT NULL REFERENCES object(id) ON DELETE CASCADE,
         uid TEXT NOT NULL,
         manages INTEGER NOT NULL,
         PRIMARY KEY(uid, object)) WITHOUT ROWID;
     CREATE INDEX owner_object ON owner(object);",
    // 2: the journal that watchers read.
    "CREATE TABLE change(
         revision INTEGER PRIMARY KEY,
         kind TEXT NOT NULL,
         gone INTEGER NOT NULL,
         body TEXT NOT NULL);
     CREATE INDEX change_kind ON change(kind, revision);",
    // 3: objects without their bulk, for tables of thousands.
    "CREATE TABLE brief(
         object INTEGER PRIMARY KEY REFERENCES object(id) ON DELETE CASCADE,
         body TEXT NOT NULL);",
    // 4: time of the last occurrence of an Event.
    "ALTER TABLE object ADD COLUMN told TEXT;
     UPDATE object SET told = coalesce(
         json_extract(body, '$.lastTimestamp'), json_extract(body, '$.metadata.creationTimestamp'))
         WHERE kind = 'Event' AND json_valid(body);
     CREATE INDEX object_told ON object(told) WHERE told IS NOT NULL;",
    // 5: revision of an object, beside its contents.
    "ALTER TABLE object ADD COLUMN revision TEXT;
     UPDATE object SET revision = json_extract(body, '$.metadata.resourceVersion') WHERE json_valid(body);
     CREATE INDEX object_revision ON object(kind, namespace, name, revision);",
];

/// Schema of this version.
const STEPS_NOW: usize = STEPS.len();
/// File systems that several machines share, by the names the kernel gives them.
const NETWORKS: [&str; 9] =
    ["9p", "afs", "ceph", "cifs", "fuse.sshfs", "nfs", "nfs4", "smb3", "virtiofs"];

/// Opens the file for reading and writing; makes or migrates it first if that is due.
pub(super) fn open(file: &Path) -> Result<Connection, StoreError> {
    let folder = folder::of(file);
    folder::make(folder)?;
    let lock = file.with_file_name(OPEN_LOCK);
    let lock_file = folder::open_file(&lock)?;
    lock_file.lock().map_err(|error| folder::unusable(&lock, &error))?;
    make(file)?;
    expect_sound(file)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(file, flags);
    let mut connection = opened.map_err(|error| unusable(file, &error))?;
    match read_version(&connection) {
        Ok(Version::Ours(steps)) if steps <= STEPS_NOW => {}
        Ok(version) => return Err(refused(file, version.why_not())),
        Err(error) => return Err(unusable(file, &error)),
    }
    let prepared = prepare(&mut connection, is_on_network(folder));
    prepared.map_err(|error| unusable(file, &error))?;
    Ok(connection)
}

/// Makes the file under another name first, and renames it once it has contents: an empty file counts as one that has
/// lost its contents.
fn make(file: &Path) -> Result<(), StoreError> {
    if fs::symlink_metadata(file).is_ok() {
        return Ok(());
    }
    let draft = file.with_file_name(DRAFT);
    // Draft of a process that was killed.
    fs::remove_file(&draft).ok();
    // Made by us, so that it is private from its first byte; SQLite gives its other files the same mode.
    drop::<File>(folder::open_file(&draft)?);
    let begin = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&draft, flags)?;
        // A draft that fails half-way is thrown away.
        connection.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
        migrate(&mut connection)
    };
    let made = begin().map_err(|error| unusable(file, &error));
    let made = made
        .and_then(|()| fs::rename(&draft, file).map_err(|error| folder::unusable(file, &error)));
    if made.is_err() {
        fs::remove_file(&draft).ok();
    }
    made
}

/// Fails unless the file and SQLite's files beside it are private, and the file is not empty.
fn expect_sound(file: &Path) -> Result<(), StoreError> {
    folder::expect_private(folder::of(file))?;
    for companion in COMPANIONS {
        let mut name = file.as_os_str().to_owned();
        name.push(companion);
        folder::expect_private_file(Path::new(&name))?;
    }
    match fs::metadata(file) {
        Ok(found) if found.len() == 0 => Err(refused(file, EMPTIED)),
        Ok(_) => Ok(()),
        Err(error) => Err(folder::unusable(file, &error)),
    }
}

/// Opens the file for reading only. A missing file is made, an older one migrated, if this user may do so.
pub(super) fn open_to_read(file: &Path) -> Result<Connection, StoreError> {
    if !file.exists() {
        drop::<Connection>(open(file)?);
    }
    expect_sound(file)?;
    match connect_to_read(file) {
        Ok((connection, Version::Ours(STEPS_NOW))) => Ok(connection),
        Ok((_, Version::Ours(steps))) if steps < STEPS_NOW => reopen_to_read(file),
        Ok((_, version)) => Err(refused(file, version.why_not())),
        Err(error) if is_busy(&error) => reopen_to_read(file),
        Err(error) => Err(unusable(file, &error)),
    }
}

/// Opens a file once more that this process has open for writing, for its readers. The connection may write, so that
/// whichever of the two is closed last can remove the write-ahead log; but it is set to queries only.
pub(super) fn open_beside_writer(file: &Path) -> Result<Connection, StoreError> {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        keep_in_memory(&connection)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    };
    open().map_err(|error| unusable(file, &error))
}

/// Version that a file states.
enum Version {
    /// A file of ours with so many of our steps; a new file has none.
    Ours(usize),
    /// A database of another program.
    Foreign,
}

impl Version {
    fn why_not(&self) -> String {
        match self {
            Self::Foreign => NOT_OURS.into(),
            Self::Ours(steps) => format!(
                "a newer kubectl-acme wrote it (schema {steps}; this one knows {STEPS_NOW}); use that one"
            ),
        }
    }
}

fn read_version(connection: &Connection) -> rusqlite::Result<Version> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let tables = "SELECT count(*) FROM sqlite_schema";
    let is_new = connection.query_row(tables, [], |row| row.get::<_, i64>(0))? == 0;
    Ok(match (number("application_id")?, usize::try_from(number("user_version")?)) {
        (APPLICATION, Ok(steps)) => Version::Ours(steps),
        (0, Ok(0)) if is_new => Version::Ours(0),
        _ => Version::Foreign,
    })
}

/// Keeps statements and pages in memory; by default SQLite keeps 2 MB of pages, and reads a store of thousands of
/// objects from its file again and again.
fn keep_in_memory(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "cache_size", -PAGES_KIB)
}

fn prepare(connection: &mut Connection, on_network: bool) -> rusqlite::Result<()> {
    keep_in_memory(connection)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // WAL needs memory shared between the processes, which a network file system cannot give.
    let journal = if on_network { "TRUNCATE" } else { "WAL" };
    let got = connection
        .pragma_update_and_check(None, "journal_mode", journal, |row| row.get::<_, String>(0))?;
    if !got.eq_ignore_ascii_case(journal) {
        connection.pragma_update_and_check(None, "journal_mode", "TRUNCATE", |_| Ok(()))?;
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    migrate(connection)
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let Version::Ours(done @ ..STEPS_NOW) = read_version(connection)? else { return Ok(()) };
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in &STEPS[done..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", STEPS_NOW.to_string())?;
    transaction.commit()
}

fn connect_to_read(file: &Path) -> rusqlite::Result<(Connection, Version)> {
    let connect = |name: &str, more| {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        let connection = Connection::open_with_flags(name, flags)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let version = read_version(&connection)?;
        Ok((connection, version))
    };
    let name = file.to_string_lossy();
    let opened = connect(&name, OpenFlags::empty());
    let wal = file.with_extension("db-wal");
    let is_closed = wal.metadata().map_or(true, |wal| wal.len() == 0);
    if opened.is_ok() || !is_closed {
        return opened;
    }
    // In a read-only folder SQLite cannot set up WAL's shared memory. No process writes there, so the file may be read
    // as it lies.
    let escaped = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let immutable = connect(&format!("file:{escaped}?immutable=1"), OpenFlags::SQLITE_OPEN_URI);
    immutable.or(opened)
}

fn reopen_to_read(file: &Path) -> Result<Connection, StoreError> {
    drop::<Connection>(open(file)?);
    match connect_to_read(file) {
        Ok((connection, _)) => Ok(connection),
        Err(error) => Err(unusable(file, &error)),
    }
}

/// Returns whether a folder lies on a network file system; `false` if the kernel does not say.
fn is_on_network(folder: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    fs::canonicalize(folder)
        .is_ok_and(|folder| file_system(&mounts, &folder).is_some_and(is_network))
}

fn is_network(file_system: &str) -> bool {
    NETWORKS.contains(&file_system)
}

/// The type of the file system that holds a path: the last of the longest mount points above it.
fn file_system<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let fields = |line: &'a str| {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.replace("\\040", " ");
        Some((PathBuf::from(point), after.split(' ').next()?))
    };
    let above = mounts.lines().filter_map(fields).filter(|(point, _)| path.starts_with(point));
    above.max_by_key(|(point, _)| point.components().count()).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:30 / /home rw - nfs4 server:/home rw
41 40 0:31 / /home/local\\040disk rw - ext4 /dev/vdb rw
42 22 0:32 / /home2 rw - tmpfs tmpfs rw
";

    #[test]
    fn the_nearest_mount_point_decides() {
        for (path, expected) in [
            ("/var/lib/acme", "ext4"),
            ("/home/ann/state", "nfs4"),
            ("/home/local disk/state", "ext4"),
            ("/home2/state", "tmpfs"),
        ] {
            assert_eq!(file_system(MOUNTS, Path::new(path)), Some(expected), "{path}");
        }
    }
}
