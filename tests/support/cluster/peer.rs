//! cert-manager's own controllers, beside ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::bed::{Server, program};
use super::{Site, eventually};

/// cert-manager's controllers as a process; they end when it goes.
///
/// They take cert-manager's own flags, and `--host-name` and `--leave-out`; see `peer controllers -h`. Their
/// self-checks go to the stand-in, whatever the name. They keep their own rate (20 requests a second) only before an API
/// server that starts with `--enable-priority-and-fairness=false`.
pub struct Peer {
    server: Server,
    log: PathBuf,
}

impl Peer {
    pub(super) fn start(site: &Site, flags: &[&str]) -> Self {
        Self::start_through(site, site.http_port, flags)
    }

    /// Sends their self-checks through another HTTP proxy on loopback.
    pub(super) fn start_through(site: &Site, http_port: u16, flags: &[&str]) -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let log = site.log(&format!("cert-manager-{number}"));
        let mut command = Command::new(program("peer"));
        command
            .args(["controllers", "--enable-gateway-api", "--kubeconfig"])
            .arg(site.identities.admin())
            .args(flags)
            .env("HTTP_PROXY", format!("http://127.0.0.1:{http_port}"))
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .env_remove("http_proxy");
        Self { server: Server::start(&command, &log), log }
    }

    /// Waits until they work: they may have to wait for the Lease first.
    pub fn wait_until_at_work(&self) {
        wait_until_at_work("cert-manager", &self.log);
    }

    /// Lets them end as a Deployment would: they give the Lease back.
    pub fn stop(mut self) {
        self.server.signal("TERM");
        eventually("the end of cert-manager", || (!self.server.is_running()).then_some(()));
    }

    /// Ends them as a power cut would; the Lease stays theirs until it expires.
    pub fn kill(self) {
        drop(self);
    }

    /// Freezes them where they stand, as a machine without memory would.
    pub fn freeze(&mut self) {
        self.server.signal("STOP");
    }

    /// Lets them go on.
    pub fn thaw(&mut self) {
        self.server.signal("CONT");
    }

    /// Says whether they run.
    pub fn is_running(&mut self) -> bool {
        self.server.is_running()
    }

    /// What they logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Waits for the word that either command of our Go program writes when it has begun.
pub(super) fn wait_until_at_work(who: &str, log: &Path) {
    eventually(who, || fs::read_to_string(log).ok()?.contains("at work").then_some(()));
}
