//! One run of the program against a CA that behaves in some way: both are processes of their own, with a folder to themselves.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use kubectl_acme::model::{Blob, Kind};

use super::row::{Names, Row};
use crate::support::bed::free_port;
use crate::support::outcome;
use crate::support::program;

/// How long a process may take to begin or end on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Before what the CA says at its end.
const ASKED: &str = "ended; requests: ";

/// What was seen of a row.
#[derive(Debug)]
pub(super) struct Seen {
    /// Exit code; none when a signal ended it.
    pub(super) code: Option<i32>,
    /// What it said.
    pub(super) talk: String,
    /// How long it took.
    pub(super) took: Duration,
    /// What the CA was asked, in the words of its statistics.
    pub(super) asked: BTreeMap<String, u64>,
    /// Files below `out`, by their path there.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Orders and Challenges that are stored.
    pub(super) stored: Vec<Value>,
    /// Names of the Secrets that are stored.
    pub(super) secrets: Vec<String>,
}

/// Runs a row to its end; `timeout` is what its runs are given.
pub(super) fn run(row: &Row, timeout: Duration) -> Seen {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let resolve = match row.lead {
        Names::Listener => ("KUBECTL_ACME_HTTP01_RESOLVE", format!("*=127.0.0.1:{port}")),
        Names::Web(web) => ("KUBECTL_ACME_HTTP01_RESOLVE", format!("*=127.0.0.1:{}", web.start())),
        Names::Dns(dns) => ("KUBECTL_ACME_DNS", format!("127.0.0.1:{}", dns.start())),
    };
    let bench = Bench { folder, listen: format!("127.0.0.1:{port}"), resolve };
    let ca = Ca::start(&bench, row);
    fs::write(bench.path("site.yaml"), manifest(row, &ca)).unwrap();
    let timeout = format!("{}ms", timeout.as_millis());
    let mut command = bench.program(&["order", "-f", "site.yaml", "--timeout", &timeout]);
    command.envs(row.limits.map(|ca| ("KUBECTL_ACME_LIMITS", ca)));
    let began = Instant::now();
    let ended = command.output().unwrap();
    let took = began.elapsed();
    let asked = ca.end();
    let stored = |kind| outcome::stored(&bench.path("state"), kind);
    Seen {
        code: ended.status.code(),
        talk: String::from_utf8_lossy(&ended.stderr).into_owned(),
        took,
        asked,
        files: outcome::files(&bench.path("out")),
        stored: [stored(Kind::Order), stored(Kind::Challenge)].concat(),
        secrets: stored(Kind::Secret).iter().map(name).collect(),
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// A folder, and where answers are given.
struct Bench {
    folder: TempDir,
    listen: String,
    /// How the program finds names.
    resolve: (&'static str, String),
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, in this folder and with nothing of the environment.
    fn program(&self, words: &[&str]) -> Command {
        let mut command = program::command();
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.envs([
            ("KUBECTL_ACME_LOCAL", "state"),
            ("KUBECTL_ACME_OUT", "out"),
            ("KUBECTL_ACME_HTTP01_LISTEN", &self.listen),
            (self.resolve.0, &self.resolve.1),
        ]);
        command
    }
}

/// A CA at work; ends with the row.
struct Ca {
    process: Child,
    talk: PathBuf,
    directory: String,
    root: String,
}

impl Ca {
    fn start(bench: &Bench, row: &Row) -> Self {
        let talk = bench.path("ca.talk");
        let mut command = bench.program(&["ca", "--listen", "127.0.0.1:0", "--root", "root.pem"]);
        command.env("KUBECTL_ACME_HTTP01_RESOLVE", format!("*={}", bench.listen));
        command.args(row.behave.iter().flat_map(|name| ["--behave", name]));
        command.stdout(Stdio::null()).stderr(File::create(&talk).unwrap());
        let process = command.spawn().unwrap();
        let mut ca = Self { process, talk, directory: String::new(), root: String::new() };
        ca.wait_for("everything is kept in memory");
        let said = ca.said();
        let directory = said.lines().find_map(|line| line.split_once("directory: "));
        directory.unwrap().1.clone_into(&mut ca.directory);
        ca.root = fs::read_to_string(bench.path("root.pem")).unwrap();
        ca
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.talk).unwrap()
    }

    fn wait_for(&mut self, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.said().contains(words) {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "the CA: {}", self.said());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it; what it was asked.
    fn end(mut self) -> BTreeMap<String, u64> {
        let process = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", "INT", &process]).status();
        assert!(sent.unwrap().success());
        self.wait_for(ASKED);
        let said = self.said();
        let (_, asked) = said.split_once(ASKED).unwrap();
        let pairs = asked.split(['{', '}', ',']).filter_map(|part| part.split_once(": "));
        let pairs = pairs.filter_map(|(what, count)| {
            Some((what.trim().trim_matches('"').to_owned(), count.parse().ok()?))
        });
        pairs.collect()
    }
}

impl Drop for Ca {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// One Issuer, one Certificate `web`, in JSON, which is YAML.
fn manifest(row: &Row, ca: &Ca) -> String {
    let mut issuer = json!({
        "server": ca.directory,
        "caBundle": Blob(ca.root.clone().into_bytes()),
        "privateKeySecretRef": {"name": "acme-account"},
        "solvers": [{"http01": {"ingress": {}}}],
    });
    for (field, value) in &row.issuer {
        issuer[*field] = (*value).into();
    }
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": {"name": "acme"},
        "spec": {"acme": issuer},
    });
    let certificate = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": "web"},
        "spec": {
            "secretName": "web-tls",
            "dnsNames": row.names,
            "privateKey": {"algorithm": "ECDSA"},
            "issuerRef": {"name": "acme"},
        },
    });
    format!("{issuer}\n---\n{certificate}\n")
}
