//! The real program on a state folder of its own, beside a CA in the test's process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use kubectl_acme::ca::{Config, Look};
use kubectl_acme::fetch::Fetcher;
use kubectl_acme::fetch::outcome::Fetched;
use kubectl_acme::model::{Kind, Record};
use kubectl_acme::store::lease::{LocalLease, Role};
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Part, Scope, Store as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use url::Url;

use crate::support::bed::PATIENCE;
use crate::support::ca::{TestCa, is_pair};
use crate::support::program;

/// How long the CA takes to look: long enough to be met by a kill.
const LOOK: Duration = Duration::from_millis(100);

/// A CA, a state folder, and manifests.
pub(super) struct Bench {
    pub(super) ca: TestCa,
    pub(super) gate: Arc<Gate>,
    folder: TempDir,
}

impl Bench {
    /// Starts the CA and writes the Issuer and these Certificates.
    pub(super) async fn start(config: Config, certificates: &[Value]) -> Self {
        let gate = Arc::new(Gate::default());
        let eyes = Arc::clone(&gate);
        let ca = TestCa::start(config, |fetcher| Gated { fetcher, gate: eyes }).await;
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("manifests")).unwrap();
        let bench = Self { ca, gate, folder };
        for object in [&bench.ca.issuer()].into_iter().chain(certificates) {
            bench.write(object);
        }
        bench
    }

    /// Writes a manifest, named for its object.
    pub(super) fn write(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = self.folder.path().join("manifests").join(format!("{name}.json"));
        fs::write(path, object.to_string()).unwrap();
    }

    /// `order -f MANIFESTS`
    pub(super) fn order(&self) -> Command {
        let mut command = self.program(&["order", "-f"]);
        command.arg(self.folder.path().join("manifests"));
        self.with_flags(&mut command);
        command
    }

    /// `order resume NAME`
    pub(super) fn resume(&self, name: &str) -> Command {
        let mut command = self.program(&["order", "resume", name]);
        self.with_flags(&mut command);
        command
    }

    fn program(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program::PATH);
        command.args(words);
        self.tied(command)
    }

    /// Nothing of our environment, and no longer than the test.
    fn tied(&self, mut command: Command) -> Command {
        command.env_clear().current_dir(self.folder.path()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn with_flags(&self, command: &mut Command) {
        let http01 = self.ca.http01;
        command
            .arg(format!("--local={}", self.state().display()))
            .args(["--out", "out", "--timeout", "100s"])
            .arg(format!("--http01-listen={http01}"))
            .arg(format!("--http01-resolve=*={http01}"));
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// A printed command line, as a person pastes it.
    pub(super) fn pasted(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("exec {line}"));
        self.tied(command)
    }

    /// All objects of a kind in the state folder.
    pub(super) async fn objects(&self, kind: Kind) -> Vec<Record> {
        if !LocalStore::exists(&self.state()).unwrap() {
            return Vec::new();
        }
        let store = LocalStore::open(&self.state(), Access::ReadOnly).unwrap();
        store.list(kind, &Scope::all()).await.unwrap()
    }

    /// Puts the state where it is right after the certificate is in its Secret: the temporary one is still there.
    pub(super) async fn leave_next_key(&self) {
        let store = LocalStore::open(&self.state(), Access::ReadWrite).unwrap();
        let mut certificate = self.objects(Kind::Certificate).await.remove(0);
        certificate.object["status"]["nextPrivateKeySecretName"] = "web-next".into();
        let owner = json!({
            "apiVersion": certificate.text("/apiVersion"), "kind": "Certificate", "name": "web",
            "uid": certificate.uid(), "controller": true, "blockOwnerDeletion": true,
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": "web-next", "namespace": "default", "ownerReferences": [owner],
                "labels": {"cert-manager.io/next-private-key": "true"},
            },
        });
        store.create(Record::new(secret).unwrap()).await.unwrap();
        store.replace(certificate, Part::Status).await.unwrap();
    }

    /// Waits until an Order with a URL is in the state folder; returns its name.
    pub(super) async fn order_name(&self) -> String {
        loop {
            let orders = self.objects(Kind::Order).await;
            if let Some(order) = orders.iter().find(|order| !order.text("/status/url").is_empty()) {
                return order.key.name.name.clone();
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the answer to the first Challenge is up.
    pub(super) async fn answer_stands(&self) {
        let challenge = self.objects(Kind::Challenge).await.remove(0);
        let (host, token) = (challenge.text("/spec/dnsName"), challenge.text("/spec/token"));
        let url = format!("http://{host}/.well-known/acme-challenge/{token}");
        let url = Url::parse(&url).unwrap();
        while !self.ca.fetcher().get(&url).await.result.is_ok_and(|reply| reply.status == 200) {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Orders at the CA that are neither settled nor known to the state folder.
    pub(super) async fn abandoned(&self) -> BTreeSet<String> {
        self.silence().await;
        let orders = self.objects(Kind::Order).await;
        let known: BTreeSet<&str> = orders.iter().map(|order| order.text("/status/url")).collect();
        let mut unknown = self.ca.server.orders();
        unknown.retain(|url, state| {
            !known.contains(url.as_str()) && !["valid", "invalid"].contains(state)
        });
        unknown.into_keys().collect()
    }

    /// Waits until the CA has heard of everything that a killed process had sent: it has taken up others after that, who had to
    /// wait as long as a busy machine makes them, and nothing came meanwhile.
    async fn silence(&self) {
        let ca = Url::parse(&self.ca.server.directory_url()).unwrap();
        let ca = (ca.host_str().unwrap().to_owned(), ca.port().unwrap());
        let mut quiet = 0;
        let mut heard = self.ca.server.statistics();
        while quiet < 3 {
            sleep(Duration::from_millis(30)).await;
            // Whoever speaks no protocol is heard, refused and not counted.
            let mut stranger = TcpStream::connect(ca.clone()).await.unwrap();
            stranger.write_all(b"?\r\n\r\n").await.unwrap();
            stranger.read_to_end(&mut Vec::new()).await.ok();
            let now = self.ca.server.statistics();
            quiet = if std::mem::replace(&mut heard, now) == heard { quiet + 1 } else { 0 };
        }
    }

    /// What a process that was killed may leave: a free lock, a sound database, no half of a pair.
    pub(super) fn check_remains(&self) {
        let state = self.state();
        if LocalStore::exists(&state).unwrap() {
            let database = rusqlite::Connection::open(state.join("state.db")).unwrap();
            let sound: String =
                database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
            assert_eq!(sound, "ok");
            let lease = LocalLease::new(&state);
            assert!(lease.try_acquire(Timestamp::now(), Role::Once).unwrap().is_some());
        }
        for pair in pairs(&self.folder.path().join("out")) {
            if let Ok(certificate) = fs::read(pair.join("tls.crt")) {
                assert!(is_pair(&certificate, &fs::read(pair.join("tls.key")).unwrap()));
            }
        }
    }

    /// Every Certificate is issued and on disk, there is one account, and nothing is left of the way there.
    pub(super) async fn check_end(&self, output: &Output) {
        assert_eq!(output.status.code(), Some(0), "{}", talk(output));
        self.check_remains();
        assert_eq!(self.ca.server.accounts(), 1);
        let certificates = self.objects(Kind::Certificate).await;
        let mut files = BTreeMap::new();
        for pair in pairs(&self.folder.path().join("out")) {
            let names = fs::read_dir(&pair).unwrap().map(|entry| entry.unwrap().file_name());
            files.insert(pair.file_name().unwrap().to_owned(), names.collect::<BTreeSet<_>>());
        }
        let both = BTreeSet::from(["tls.crt".into(), "tls.key".into()]);
        let expected =
            certificates.iter().map(|c| (c.text("/spec/secretName").into(), both.clone()));
        assert_eq!(files, expected.collect());
        let challenges = self.objects(Kind::Challenge).await;
        assert!(challenges.is_empty(), "{challenges:?}");
        let secrets = self.objects(Kind::Secret).await.len();
        assert_eq!(secrets, 1 + certificates.len(), "the account key, and the pairs");
    }
}

/// Folders of pairs; none before the first is written.
fn pairs(out: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(out) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Waits for the end of a process.
pub(super) async fn finished(child: Child) -> Output {
    timeout(PATIENCE, child.wait_with_output()).await.expect("the program ends").unwrap()
}

/// What a process said to people.
pub(super) fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Sends a signal by its name.
pub(super) async fn signal(child: &Child, name: &str) {
    let Some(process) = child.id() else { return };
    let sent = Command::new("kill").args(["-s", name, &process.to_string()]).status().await;
    assert!(sent.unwrap().success());
}

/// Where validations of the CA wait until they may look.
#[derive(Debug)]
pub(super) struct Gate {
    waiting: Semaphore,
    open: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { waiting: Semaphore::new(0), open: Semaphore::new(Semaphore::MAX_PERMITS / 2) }
    }
}

impl Gate {
    /// Lets nobody look any more.
    pub(super) fn close(&self) {
        self.open.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Lets everybody look.
    pub(super) fn open(&self) {
        self.open.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    /// Waits until the CA wants to look.
    pub(super) async fn wait(&self) {
        timeout(PATIENCE, self.waiting.acquire()).await.expect("the CA looks").unwrap().forget();
    }
}

/// Eyes that look through a gate.
#[derive(Debug)]
struct Gated {
    fetcher: Fetcher,
    gate: Arc<Gate>,
}

#[async_trait]
impl Look for Gated {
    async fn get(&self, url: &Url) -> Fetched {
        self.gate.waiting.add_permits(1);
        let _through = self.gate.open.acquire().await;
        sleep(LOOK).await;
        self.fetcher.get(url).await
    }
}
