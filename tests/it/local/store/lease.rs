//! Who drives, locally.

use std::path::Path;
use std::process;
use std::time::Duration;

use jiff::Timestamp;
use kubectl_acme::store::lease::{LocalLease, Role};

use super::processes::role;

/// A role: takes the lease and keeps it until the process is ended.
pub(super) async fn hold(folder: &Path) {
    let _guard = LocalLease::new(folder).acquire(Role::Once).await.unwrap();
    std::future::pending::<()>().await;
}

#[test]
fn only_one_drives_and_its_name_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let lease = LocalLease::new(folder.path().join("state"));
    assert_eq!(lease.holder().unwrap(), None);
    let now: Timestamp = "2026-11-21T04:30:25.5Z".parse().unwrap();
    let guard = lease.try_acquire(now, Role::Once).unwrap().unwrap();
    assert!(lease.try_acquire(now, Role::Once).unwrap().is_none());
    let holder = lease.holder().unwrap().unwrap();
    assert_eq!(holder.process, Some(process::id()));
    assert_eq!(holder.since.unwrap().to_string(), "2026-11-21T04:30:25Z");
    drop(guard);
    assert_eq!(lease.holder().unwrap(), None);
    assert!(lease.try_acquire(now, Role::Once).unwrap().is_some());
}

#[tokio::test]
async fn whoever_waits_drives_next() {
    let folder = tempfile::tempdir().unwrap();
    let lease = LocalLease::new(folder.path());
    let guard = lease.acquire(Role::Once).await.unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(20), lease.acquire(Role::Once)).await;
    assert!(given_up.is_err(), "waiting can be given up");
    let waiting = tokio::spawn(async move { lease.acquire(Role::Once).await.map(drop) });
    drop(guard);
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_killed_holder_drives_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let lease = LocalLease::new(folder.path());
    let mut child = role("hold the lease", folder.path()).spawn().unwrap();
    let holder = loop {
        match lease.holder().unwrap() {
            Some(holder) if holder.process.is_some() => break holder,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    assert_eq!(holder.process, Some(child.id()));
    assert!(lease.try_acquire(Timestamp::now(), Role::Once).unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(lease.holder().unwrap(), None);
    assert!(lease.try_acquire(Timestamp::now(), Role::Once).unwrap().is_some());
}
