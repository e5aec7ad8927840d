//! What the local store does when its folder or file is not as it should be.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Timestamp;
use kubectl_acme::model::Kind;
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::lease::{LocalLease, Role};
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Part, Scope, Store as _};
use rusqlite::Connection;
use serde_json::json;

use super::processes::{role, role_of_nobody, said, say};
use super::{Shared, key, names, next, object, open, order, with};

/// The file of schema 1, which knew no journal, with one Order in it.
const SCHEMA_1: &str = r#"
    CREATE TABLE counter(id INTEGER PRIMARY KEY CHECK(id = 1), revision INTEGER NOT NULL);
    INSERT INTO counter VALUES(1, 41);
    CREATE TABLE object(id INTEGER PRIMARY KEY, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        uid TEXT NOT NULL UNIQUE, involved TEXT, body TEXT NOT NULL, UNIQUE(kind, namespace, name));
    CREATE INDEX object_involved ON object(involved) WHERE involved IS NOT NULL;
    CREATE TABLE owner(object INTEGER NOT NULL REFERENCES object(id) ON DELETE CASCADE, uid TEXT NOT NULL,
        manages INTEGER NOT NULL, PRIMARY KEY(uid, object)) WITHOUT ROWID;
    CREATE INDEX owner_object ON owner(object);
    INSERT INTO object VALUES(1, 'Order', 'web', 'old', 'e73c26f9-19ee-4bb3-9451-3076d296c912', NULL,
        '{"apiVersion":"acme.cert-manager.io/v1","kind":"Order","metadata":{"name":"old","namespace":"web",
          "uid":"e73c26f9-19ee-4bb3-9451-3076d296c912","resourceVersion":"41","generation":1},"spec":{}}');
    PRAGMA application_id = 0x61636d65;
    PRAGMA user_version = 1;
"#;

fn why(refused: Result<LocalStore, StoreError>, folder: &Path) -> String {
    match refused {
        Err(StoreError::Unusable { place, why }) => {
            assert!(Path::new(&place).starts_with(folder), "{place}");
            why
        }
        other => panic!("{other:?}"),
    }
}

fn check_refused(prepare: impl FnOnce(&Path), expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    prepare(&file);
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let before = fs::read(&file).ok();
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let refused = why(LocalStore::open(folder.path(), access), folder.path());
        assert_eq!(refused, expected, "{access:?}");
    }
    assert_eq!(fs::read(&file).ok(), before, "the file is left as it was");
}

#[test]
fn a_newer_file_is_refused() {
    check_refused(
        |file| {
            let newer = Connection::open(file).unwrap();
            newer.execute_batch(SCHEMA_1).unwrap();
            newer.execute_batch("PRAGMA user_version = 7").unwrap();
        },
        "a newer kubectl-acme wrote it (schema 7; this one knows 5); use that one",
    );
}

#[test]
fn a_file_of_another_program_is_refused() {
    let not_ours = "it is not a file that kubectl-acme wrote";
    check_refused(|file| fs::write(file, "not a database\n".repeat(1000)).unwrap(), not_ours);
    let other_database = |file: &Path| {
        let theirs = Connection::open(file).unwrap();
        theirs.execute_batch("CREATE TABLE bookmarks(url TEXT)").unwrap();
    };
    check_refused(other_database, not_ours);
}

#[test]
fn a_damaged_file_is_refused() {
    let damage = |file: &Path| {
        drop(open(file.parent().unwrap()).unwrap());
        let mut bytes = fs::read(file).unwrap();
        bytes[100..4000].fill(0x5a);
        fs::write(file, bytes).unwrap();
    };
    check_refused(damage, "it is damaged; move it away, or put a copy in its place");
}

#[test]
fn an_emptied_file_is_not_taken_for_a_new_one() {
    let empty = |file: &Path| {
        drop(open(file.parent().unwrap()).unwrap());
        fs::write(file, "").unwrap();
    };
    check_refused(
        empty,
        "it is empty, and what was in it is lost; put a copy in its place, or remove it to begin anew",
    );
}

#[test]
fn what_a_killed_process_had_begun_makes_way() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("state.db.new"), "half of a datab").unwrap();
    drop(open(folder.path()).unwrap());
    assert!(!folder.path().join("state.db.new").exists());
    assert!(fs::metadata(folder.path().join("state.db")).unwrap().len() > 0);
}

/// Opens a state folder after something has been done to it, and has it looked who drives; both are refused so, and what was not
/// ours is as it was.
#[track_caller]
fn check_exposed(spoil: impl Fn(&Path), place: &str, expected: &str) {
    let above = tempfile::tempdir().unwrap();
    let (folder, victim) = (above.path().join("state"), above.path().join("victim"));
    drop(open(&folder).unwrap());
    drop(LocalLease::new(&folder).try_acquire(Timestamp::now(), Role::Once).unwrap().unwrap());
    fs::write(&victim, "theirs").unwrap();
    fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
    spoil(&folder);
    let lease = || LocalLease::new(&folder).try_acquire(Timestamp::now(), Role::Once);
    let opened = |access| LocalStore::open(&folder, access).err();
    let refused = if place == "driver.lock" {
        vec![lease().err(), LocalLease::new(&folder).holder().err()]
    } else {
        vec![opened(Access::ReadWrite), opened(Access::ReadOnly)]
    };
    for refused in refused {
        let told = refused.map(|error| error.to_string()).unwrap_or_default();
        let place = folder.join(place);
        let place = place.display().to_string();
        let place = place.trim_end_matches('/');
        assert_eq!(told, format!("cannot use the state in {place}: {expected}"));
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
}

/// Puts a link to somebody's file in the place of a file.
fn lead_astray(file: &Path) {
    fs::remove_file(file).unwrap();
    symlink("../victim", file).unwrap();
}

/// Puts a pipe in the place of a file.
fn block(file: &Path) {
    fs::remove_file(file).ok();
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(file).status().unwrap().success());
}

#[test]
fn no_link_and_no_pipe_is_followed_in_a_state_folder() {
    for file in ["driver.lock", "state.db"] {
        check_exposed(|folder| lead_astray(&folder.join(file)), file, "it is a link");
        check_exposed(|folder| block(&folder.join(file)), file, "it is not a regular file");
    }
    for file in ["state.db-wal", "state.db-shm", "state.db-journal"] {
        check_exposed(|folder| block(&folder.join(file)), file, "it is not a regular file");
    }
    let link = |folder: &Path| {
        fs::rename(folder, folder.with_file_name("elsewhere")).unwrap();
        symlink("elsewhere", folder).unwrap();
    };
    check_exposed(link, "", "it is a link");
}

#[test]
fn state_that_others_may_use_is_not_used() {
    let open_to = |path: PathBuf, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let told = "it is open to other users (mode 644)";
    for file in ["driver.lock", "state.db"] {
        check_exposed(|folder| open_to(folder.join(file), 0o644), file, told);
    }
    let told = "other users may write to it (mode 777)";
    check_exposed(|folder| open_to(folder.to_owned(), 0o777), "", told);
}

#[test]
fn a_state_folder_into_which_others_may_look_is_used() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    drop(open(folder.path()).unwrap());
    for entry in fs::read_dir(folder.path()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn state_of_somebody_else_is_not_used() {
    const NOBODY: u32 = 65_534;
    let probe = tempfile::tempdir().unwrap();
    if chown(probe.path(), Some(NOBODY), None).is_err() {
        // Only root can give files away; links and pipes are tried by everybody.
        return;
    }
    let told = "it belongs to user 65534, and this is user 0";
    for (place, file) in [("", ""), ("state.db", "state.db"), ("driver.lock", "driver.lock")] {
        let give = |folder: &Path| chown(folder.join(file), Some(NOBODY), None).unwrap();
        check_exposed(give, place, told);
    }
}

#[test]
fn what_is_no_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    fs::write(&file, "").unwrap();
    assert_eq!(why(open(&file), folder.path()), "it is not a folder");
    assert_eq!(why(open(&file.join("below")), folder.path()), "it is not a folder");
}

#[tokio::test]
async fn an_older_file_is_migrated() {
    for access in [Access::ReadWrite, Access::ReadOnly] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.db");
        Connection::open(&file).unwrap().execute_batch(SCHEMA_1).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let store = LocalStore::open(folder.path(), access).unwrap();
        let old = store.get(&key(Kind::Order, "old")).await.unwrap().unwrap();
        assert_eq!(old.resource_version(), "41");
        let mut watch = store.watch(Kind::Order, Scope::all());
        assert_eq!(next(&mut watch).await, "all: old");
        let writer = open(folder.path()).unwrap();
        let changed = with(&old, json!({ "status": { "state": "valid" } }));
        let changed = writer.replace(changed, Part::Status).await.unwrap();
        assert_eq!(changed.resource_version(), "42");
        assert_eq!(next(&mut watch).await, "applied old valid");
    }
}

#[test]
fn a_file_in_place_of_the_state_folder_is_not_an_empty_store() {
    let above = tempfile::tempdir().unwrap();
    let file = above.path().join("state");
    fs::write(&file, "").unwrap();
    for folder in [file.clone(), file.join("deeper")] {
        let error = LocalStore::exists(&folder).unwrap_err();
        assert!(error.to_string().ends_with("it is not a folder"), "{error}");
    }
    assert!(!LocalStore::exists(&above.path().join("nowhere")).unwrap());
}

#[tokio::test]
async fn files_are_their_owners_only() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("deep/state");
    assert!(!LocalStore::exists(&folder).unwrap());
    let store = open(&folder).unwrap();
    store.create(order("a")).await.unwrap();
    assert!(LocalStore::exists(&folder).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().any(|file| file.ends_with("state.db-wal")), "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn a_reader_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let reader = LocalStore::open(folder.path(), Access::ReadOnly).unwrap();
    let mut watch = reader.watch(Kind::Order, Scope::all());
    assert_eq!(next(&mut watch).await, "all: ", "state that is not there yet is empty");
    let refused = reader.create(order("a")).await.unwrap_err().to_string();
    assert!(refused.ends_with("state.db: it was opened for reading only"), "{refused}");
    open(folder.path()).unwrap().create(order("a")).await.unwrap();
    assert_eq!(next(&mut watch).await, "applied a");
}

/// A role: says what it reads, and why it cannot write.
pub(super) async fn read(folder: &Path) {
    match LocalStore::open(folder, Access::ReadOnly) {
        Ok(reader) => {
            let orders = reader.list(Kind::Order, &Scope::all()).await.unwrap();
            say(orders.iter().map(|o| o.key.name.name.clone()).collect::<Vec<_>>().join(" "));
        }
        Err(error) => say(error),
    }
    match open(folder) {
        Ok(writer) => say(writer.create(order("new")).await.unwrap_err()),
        Err(error) => say(error),
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_can_be_read() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("state");
    let store = open(&folder).unwrap();
    store.create(order("a")).await.unwrap();
    let orders = store.list(Kind::Order, &Scope::all()).await.unwrap();
    assert_eq!(orders.len(), 1);
    drop(store);
    assert!(!folder.join("state.db-wal").exists(), "whoever leaves last tidies up");
    let mut reader = role_of_nobody("read", &folder);
    for entry in fs::read_dir(&folder).unwrap() {
        fs::set_permissions(entry.unwrap().path(), Permissions::from_mode(0o400)).unwrap();
    }
    fs::set_permissions(&folder, Permissions::from_mode(0o500)).unwrap();
    let said = said(&reader.output().unwrap());
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    let place = folder.join("open.lock");
    let refused =
        format!("cannot use the state in {}: this user may not write there", place.display());
    assert_eq!(said, ["a", &refused]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_read_says_so() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("state");
    drop(open(&folder).unwrap());
    let mut reader = role_of_nobody("read", &folder);
    fs::set_permissions(folder.join("state.db"), Permissions::from_mode(0o000)).unwrap();
    let said = said(&reader.output().unwrap());
    let place = folder.join("state.db");
    let begin = format!("cannot use the state in {}: ", place.display());
    assert!(said.len() == 2 && said.iter().all(|line| line.starts_with(&begin)), "{said:?}");
}

/// A role: writes until the disk is full, and says what it could keep and why no more.
pub(super) async fn fill(store: Shared) {
    let big = json!({ "spec": { "filler": "x".repeat(10_000) } });
    let mut kept = 0;
    let error = loop {
        match store.create(object(Kind::Order, &format!("o-{kept}"), big.clone())).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    say(kept);
    say(error);
    say(names(&store, Kind::Order, Scope::all()).await.len());
}

#[tokio::test]
async fn a_full_disk_is_told_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    let filler = role("fill", folder.path());
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 400; exec \"$@\"", "sh"]).arg(filler.get_program());
    limited.args(filler.get_args());
    limited.envs(filler.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said = said(&limited.output().unwrap());
    let [kept, error, read] = &said[..] else { panic!("{said:?}") };
    assert!(error.contains("the file-size limit of this process is reached"), "{error}");
    assert_eq!(kept, read, "the process that hit the limit still reads what was kept");
    let store: Shared = std::sync::Arc::new(open(folder.path()).unwrap());
    let names = names(&store, Kind::Order, Scope::all()).await;
    assert_eq!((names.len().to_string(), names.is_empty()), (kept.clone(), false));
    store.create(order("there-is-room-again")).await.unwrap();
}
