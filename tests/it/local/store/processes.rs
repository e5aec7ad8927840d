//! What the local store promises to several processes: each runs this test binary again, in a role.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kubectl_acme::model::Kind;
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Scope, Store as _};

use super::{Shared, count, count_up, counter, key, lease, next, object, open, order};
use crate::support::bed::copy_program;

/// What a process of ours does; its name is the last part of its test's name.
pub(super) const ROLE: &str = "kubectl_acme_test_role";
pub(super) const FOLDER: &str = "kubectl_acme_test_folder";
/// Lines that a role says begin so; the rest is the test harness's.
const SAYS: &str = "says: ";

/// Runs a role in a process of its own.
pub(super) fn role(role: &str, folder: &Path) -> Command {
    command(&std::env::current_exe().unwrap(), role, folder)
}

/// Runs a role in a process to which file modes mean something: not as root.
pub(super) fn role_of_nobody(role: &str, folder: &Path) -> Command {
    const NOBODY: u32 = 65_534;
    let binary = std::env::current_exe().unwrap();
    if fs::metadata(folder).unwrap().uid() != 0 {
        return command(&binary, role, folder);
    }
    // Where the binary lies, nobody may have no access.
    let copy = folder.parent().unwrap().join("it");
    copy_program(binary, &copy);
    let inside = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in inside.chain([folder.to_owned(), folder.parent().unwrap().to_owned()]) {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut command = command(&copy, role, folder);
    std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
    command.current_dir("/");
    command
}

fn command(binary: &Path, role: &str, folder: &Path) -> Command {
    let mut command = Command::new(binary);
    command.args([
        "--exact",
        "local::store::processes::a_process_with_a_role",
        "--ignored",
        "--nocapture",
    ]);
    command.env(ROLE, role).env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a process said; it must have ended well.
pub(super) fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().filter_map(|line| line.strip_prefix(SAYS)).map(str::to_owned).collect()
}

pub(super) fn say(text: impl std::fmt::Display) {
    let mut out = io::stdout();
    writeln!(out, "\n{SAYS}{text}").and_then(|()| out.flush()).unwrap();
}

#[tokio::test]
#[ignore = "other tests start it as a process of its own"]
async fn a_process_with_a_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let store = || -> Shared { Arc::new(open(&folder).unwrap()) };
    match role.as_str() {
        "answer pings" => answer_pings(store()).await,
        "count" => count_up(store(), 25).await,
        "count for ever" => count_up(store(), usize::MAX).await,
        "create" => {
            let unnamed = object(
                Kind::Order,
                "",
                serde_json::json!({ "metadata": { "generateName": "o-" } }),
            );
            store().create(unnamed).await.unwrap();
        }
        "fill" => super::faults::fill(store()).await,
        "read" => super::faults::read(&folder).await,
        "hold the lease" => lease::hold(&folder).await,
        unknown => panic!("there is no role {unknown}"),
    }
}

async fn answer_pings(store: Shared) {
    let mut watch = store.watch(Kind::Order, Scope::all());
    next(&mut watch).await;
    store.create(order("ready")).await.unwrap();
    loop {
        if let Some(number) = next(&mut watch).await.strip_prefix("applied ping-") {
            store.create(order(&format!("pong-{number}"))).await.unwrap();
        }
    }
}

/// Ends the process with the test, as a `kill -9` would.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn processes_tell_each_other_of_their_writes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let mut watch = store.watch(Kind::Order, Scope::all());
    assert_eq!(next(&mut watch).await, "all: ");
    let _other = Killed(role("answer pings", folder.path()).spawn().unwrap());
    assert_eq!(next(&mut watch).await, "applied ready");
    let mut rounds = Vec::new();
    for number in 0..20 {
        let start = Instant::now();
        store.create(order(&format!("ping-{number}"))).await.unwrap();
        assert_eq!(next(&mut watch).await, format!("applied ping-{number}"));
        assert_eq!(next(&mut watch).await, format!("applied pong-{number}"));
        rounds.push(start.elapsed());
    }
    // Whoever only looks each second needs that for there and back, every time; a busy machine is slow now and then.
    rounds.sort();
    assert!(rounds[4] < Duration::from_millis(500), "{rounds:?}");
}

#[tokio::test]
async fn four_processes_add_to_one_counter_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.create(counter()).await.unwrap();
    let children = [(); 4].map(|()| role("count", folder.path()).spawn().unwrap());
    for child in children {
        said(&child.wait_with_output().unwrap());
    }
    let counter = store.get(&key(Kind::Order, "counter")).await.unwrap().unwrap();
    assert_eq!(count(&counter), 100);
}

#[tokio::test]
async fn many_processes_may_be_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let children = [(); 8].map(|()| role("create", folder.path()).spawn().unwrap());
    for child in children {
        said(&child.wait_with_output().unwrap());
    }
    let store = LocalStore::open(folder.path(), Access::ReadOnly).unwrap();
    assert_eq!(store.list(Kind::Order, &Scope::all()).await.unwrap().len(), 8);
}

#[tokio::test]
async fn a_killed_writer_leaves_what_others_have_seen() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    store.create(counter()).await.unwrap();
    let counter = key(Kind::Order, "counter");
    let mut seen = 0;
    for round in 1..=5 {
        let writer = Killed(role("count for ever", folder.path()).spawn().unwrap());
        while seen < 10 * round {
            tokio::time::sleep(Duration::from_millis(1)).await;
            seen = count(&store.get(&counter).await.unwrap().unwrap());
        }
        drop(writer);
        let fresh = open(folder.path()).unwrap();
        let left = count(&fresh.get(&counter).await.unwrap().unwrap());
        assert!(left >= seen, "{left} of {seen}");
    }
}
