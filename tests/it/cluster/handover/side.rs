//! Who works on a cluster: cert-manager, our controllers, or our one-shot command.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::PAUSE;
use crate::support::bed::{PATIENCE, Server};
use crate::support::cluster::{Cluster, Peer};
use crate::support::program;

/// cert-manager with a Lease that runs out as soon as ours, and with workers enough: each one that is stopped holds one.
const CERT_MANAGER: [&str; 8] = [
    "--leader-election-lease-duration=15s",
    "--leader-election-renew-deadline=10s",
    "--leader-election-retry-period=2s",
    "--concurrent-workers=100",
    "--max-concurrent-challenges=200",
    "--dns01-check-retry-period=2s",
    "--kube-api-qps=1000",
    "--kube-api-burst=1000",
];

/// Sorts of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// cert-manager's own controllers.
    CertManager,
    /// `run`
    Run,
    /// `order -f` of every manifest at once.
    Order,
}

/// A process at work; it is killed when it goes.
pub(crate) enum Worker {
    Theirs(Peer),
    Ours(Ours),
}

/// A process of ours.
pub(crate) struct Ours {
    server: Server,
    folder: TempDir,
}

impl Side {
    /// Starts one that reaches the API server by this kubeconfig; `order -f` gets the manifests.
    pub(crate) fn start(self, cluster: &Cluster, kubeconfig: &Path, manifests: &[Value]) -> Worker {
        let words = match self {
            Self::CertManager => {
                let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
                let flags = [&CERT_MANAGER[..], &[kubeconfig.as_str()]].concat();
                return Worker::Theirs(cluster.peer(&flags));
            }
            Self::Run => vec!["run"],
            Self::Order => vec!["order", "-f", "manifests.json", "--timeout=3m"],
        };
        Worker::Ours(Ours::start(cluster, kubeconfig, &words, manifests))
    }
}

/// Our program with these words, on a cluster.
pub(crate) fn program(cluster: &Cluster, kubeconfig: &Path, words: &[&str]) -> Command {
    let mut command = program::command();
    command
        .args(words)
        .args(["--request-timeout=0", "--max-concurrent-challenges=200"])
        .arg(format!("--http01-resolve=*=127.0.0.1:{}", cluster.http_port()))
        .arg("--kubeconfig")
        .arg(kubeconfig);
    command
}

impl Ours {
    /// Starts it; `manifests.json` are the manifests.
    pub(crate) fn start(
        cluster: &Cluster,
        kubeconfig: &Path,
        words: &[&str],
        manifests: &[Value],
    ) -> Self {
        let folder = tempfile::Builder::new().prefix("ours-").tempdir().unwrap();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
        let path = folder.path().join("manifests.json");
        fs::write(&path, list.to_string()).unwrap();
        let given = path.display().to_string();
        let words: Vec<&str> = words
            .iter()
            .map(|word| if *word == "manifests.json" { &*given } else { *word })
            .collect();
        let command = program(cluster, kubeconfig, &words);
        let server = Server::start(&command, &folder.path().join("log"));
        Self { server, folder }
    }

    /// What it said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Its exit code, once it has ended.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.server.code()
    }

    /// Waits for its end; returns its exit code.
    pub(crate) fn ended(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(code) = self.code() {
                return code;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.log());
            sleep(PAUSE);
        }
    }

    /// Ends it as a Deployment would: it gives the Lease back.
    pub(crate) fn end_in_good_order(mut self) {
        self.server.signal("TERM");
        assert_eq!(self.ended(), 143, "{}", self.log());
    }
}

impl Worker {
    /// What it logged.
    pub(crate) fn log(&self) -> String {
        match self {
            Self::Theirs(peer) => peer.log(),
            Self::Ours(ours) => ours.log(),
        }
    }
}
