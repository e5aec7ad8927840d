//! Beside cert-manager on a real cluster: its controllers and ours do the same to the same manifests, live and as recorded.

mod asked;
mod authorities;
mod ca_errors;
mod differences;
mod fixture;
mod in_turn;
mod live;
mod names;
mod replay;
mod scenarios;
mod secrets;
mod sheets;

use std::fmt::Write as _;
use std::io::Write as _;

use crate::support::bed::Server;
use crate::support::cluster::{Arena, Cluster, eventually};
use crate::support::difference::{Difference, Verdict};
use crate::support::program;

/// Every difference that these tests list, of recordings played again and of both at once.
pub(crate) fn listed() -> impl Iterator<Item = &'static Difference> {
    let plays = scenarios::PLAYS.iter().chain([&scenarios::DENIED, &scenarios::KILLED]);
    let played = plays.flat_map(|play| play.differences.iter().copied().flatten());
    played.chain(live::DIFFERENCES).chain(secrets::DIFFERENCES).chain(asked::DIFFERENCES)
}

/// A cluster with the namespace of cert-manager.
fn arena() -> Arena {
    let arena = Arena::enter();
    arena.kubectl().try_run(&["create", "namespace", "cert-manager"]).ok();
    arena
}

/// What our controllers say, in a folder of theirs.
const LOG: &str = "run.log";

/// `kubectl-acme run` on a cluster; it ends when it goes.
struct Ours {
    server: Server,
    folder: tempfile::TempDir,
}

impl Ours {
    /// Starts it and waits until it drives; `hosts` says at which port of loopback each name is looked at.
    fn start(cluster: &Cluster, hosts: &[(String, u16)]) -> Self {
        Self::start_with(cluster, hosts, &[])
    }

    /// The same with further flags.
    fn start_with(cluster: &Cluster, hosts: &[(String, u16)], flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join(LOG);
        let mut command = program::command();
        command.arg("run").arg("--kubeconfig").arg(cluster.kubeconfig()).env_remove("KUBECONFIG");
        command.args(flags);
        for (host, port) in hosts {
            command.arg(format!("--http01-resolve={host}=127.0.0.1:{port}"));
        }
        let server = Server::start(&command, &log);
        let mut ours = Self { server, folder };
        eventually("our controllers", || {
            assert!(ours.server.is_running(), "{}", ours.said());
            ours.said().contains("Ctrl-C ends this command").then_some(())
        });
        ours
    }

    /// What it said so far.
    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default()
    }

    /// Ends it as a power cut would; the Lease stays its own until it expires.
    fn kill(self) {
        drop(self);
    }

    /// Interrupts it, as a person would; the Lease is given back.
    fn stop(mut self) {
        self.server.signal("INT");
        eventually("the end of our controllers", || (!self.server.is_running()).then_some(()));
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "shown beside the failed assertion")]
            {
                eprintln!("our controllers said\n{}", self.said());
            }
        }
    }
}

/// Prints what comparisons came to, and fails when something differs that is not listed.
fn report(what: &str, verdicts: &[(&str, Verdict)]) {
    let mut table = format!(
        "\n{:<30}{:>16}{:>8}{:>20}{:>8}{:>20}\n",
        what.to_uppercase(),
        "OBJECTS, EVENTS",
        "EQUAL",
        "DIFFER ON PURPOSE",
        "FACTS",
        "DIFFER ON PURPOSE"
    );
    let mut surprises = String::new();
    for (name, verdict) in verdicts {
        let Verdict { compared, equal, facts, on_purpose, .. } = verdict;
        let differing = compared - equal;
        let row = format!("{name:<30}{compared:>16}{equal:>8}{differing:>20}");
        writeln!(table, "{row}{facts:>8}{on_purpose:>20}").unwrap();
        for surprise in &verdict.surprises {
            writeln!(surprises, "{name}: {surprise}").unwrap();
        }
    }
    // Not by print!, which a passing test keeps to itself.
    std::io::stderr().write_all(table.as_bytes()).unwrap();
    assert!(surprises.is_empty(), "not what cert-manager does:\n{surprises}");
}
