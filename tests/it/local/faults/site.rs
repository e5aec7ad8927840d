//! One machine that wants a certificate: a folder, a CA that may be made to misbehave, and the program itself.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kubectl_acme::ca::{self, Config, Look, Server};
use kubectl_acme::dns::lookup::SystemResolver;
use kubectl_acme::fetch::outcome::Fetched;
use kubectl_acme::fetch::{Fetcher, Overrides};
use kubectl_acme::model::{Blob, Identifier, Kind};
use rcgen::KeyPair;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use url::Url;

use crate::support::bed::{PATIENCE, copy_program, free_port};
use crate::support::certificates::LocalCertificates;
use crate::support::outcome;
use crate::support::program;
use crate::support::proxy::Proxy;

/// Where clients find the CA: another loopback address than its own, so that every URL leads through the proxy.
const FRONT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// A machine with its CA. The files of a run stand beside each other in one folder, which is where the program runs:
/// `site.yaml`, the state in `state`, results in `out`.
pub(super) struct Site {
    folder: TempDir,
    /// The CA behind the proxy.
    pub(super) ca: Server,
    /// What stands before the CA, counts and injects faults.
    pub(super) proxy: Proxy,
    /// Where the program answers HTTP-01.
    pub(super) port: u16,
    front: LocalCertificates,
    eyes: watch::Sender<bool>,
    runtime: Option<Runtime>,
}

/// How a run ended, in the user's eyes.
#[derive(Debug)]
pub(super) struct Said {
    /// Exit code; none when a signal ended it.
    pub(super) code: Option<i32>,
    /// What stood on stdout.
    pub(super) result: String,
    /// What stood on stderr, without what differs from run to run.
    pub(super) talk: String,
}

/// What the CA sees with; it waits while it is blind.
#[derive(Clone, Debug)]
struct Eyes {
    fetcher: Fetcher,
    open: watch::Receiver<bool>,
}

#[async_trait]
impl Look for Eyes {
    async fn get(&self, url: &Url) -> Fetched {
        self.open.clone().wait_for(|open| *open).await.ok();
        self.fetcher.get(url).await
    }
}

impl Site {
    /// A machine where everything is as it should be.
    pub(super) fn new() -> Self {
        Self::with(&Config::default())
    }

    /// A machine with a CA of other habits.
    pub(super) fn with(config: &Config) -> Self {
        let port = free_port();
        Self::seen_at(config, port)
    }

    /// A machine whose names lead the CA to that port of 127.0.0.1.
    pub(super) fn seen_at(config: &Config, seen: u16) -> Self {
        Self::seen_but(config, seen, &[])
    }

    /// The same, save for some names, which lead the CA to other ports.
    pub(super) fn seen_but(config: &Config, seen: u16, others: &[(&str, u16)]) -> Self {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (eyes, open) = watch::channel(true);
        let target = |port| (IpAddr::V4(Ipv4Addr::LOCALHOST), Some(port));
        let others = others.iter().map(|(name, port)| ((*name).to_owned(), target(*port)));
        let hosts = others.chain([("*".to_owned(), target(seen))]).collect();
        let overrides = Overrides { hosts, ..Overrides::default() };
        let look = Eyes {
            fetcher: Fetcher { resolver: Arc::new(SystemResolver::new()), overrides },
            open,
        };
        let names = [FRONT.to_string(), "localhost".to_owned()];
        let names = names.iter().map(|name| Identifier::parse(name).unwrap()).collect();
        let (listener, ca) = (0..20)
            .find_map(|_| {
                let port = free_port();
                let listener = TcpListener::bind((FRONT, port)).ok()?;
                let listen = (Ipv4Addr::LOCALHOST, port).into();
                let look = Arc::new(look.clone());
                let config = Config { listen, names: Vec::clone(&names), ..config.clone() };
                Some((listener, runtime.block_on(ca::serve(config, look)).ok()?))
            })
            .expect("a port that is free at two loopback addresses");
        let front = LocalCertificates::for_names(&[&FRONT.to_string()]);
        let behind = ca.address().port();
        let proxy =
            Proxy::between(listener, &front, &ca.directory_url(), behind, ca.tls_root_pem());
        let folder = tempfile::tempdir().unwrap();
        let port = if seen == 0 { free_port() } else { seen };
        let site = Self { folder, ca, proxy, port, front, eyes, runtime: Some(runtime) };
        site.give(&site.manifest());
        site
    }

    /// Blinds the CA: its validations wait until it sees again.
    pub(super) fn blind(&self) {
        self.eyes.send_replace(false);
    }

    /// Lets the CA see again.
    pub(super) fn see(&self) {
        self.eyes.send_replace(true);
    }

    /// Root that a client of the proxy must trust, as `caBundle` wants it.
    pub(super) fn bundle(&self) -> String {
        json!(Blob(self.front.ca.clone().into_bytes())).as_str().unwrap().to_owned()
    }

    /// One Issuer, one Certificate.
    pub(super) fn manifest(&self) -> String {
        let (directory, bundle) = (self.ca.directory_url(), self.bundle());
        format!(
            "\
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  name: acme
spec:
  acme:
    server: {directory}
    caBundle: {bundle}
    privateKeySecretRef:
      name: acme-account
    solvers:
    - http01:
        ingress: {{}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: web
spec:
  secretName: web-tls
  dnsNames: [www.example.com]
  privateKey: {{algorithm: ECDSA}}
  issuerRef:
    name: acme
"
        )
    }

    /// Writes the manifest.
    pub(super) fn give(&self, manifest: &str) {
        fs::write(self.path("site.yaml"), manifest).unwrap();
    }

    /// Changes the manifest; what is changed must be there.
    pub(super) fn change(&self, from: &str, to: &str) {
        let before = fs::read_to_string(self.path("site.yaml")).unwrap();
        assert!(before.contains(from), "{from:?} is not in\n{before}");
        self.give(&before.replace(from, to));
    }

    /// Takes the port where challenges are answered. A process that another test starts has what we had open until it is its
    /// program: that port may be free a moment later only.
    pub(super) fn taken_port(&self) -> TcpListener {
        let mut taken = None;
        let mut take =
            || TcpListener::bind(("127.0.0.1", self.port)).map(|it| taken = Some(it)).is_ok();
        wait_until(&mut take, "the port of the answers");
        taken.unwrap()
    }

    /// A path in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with these words; what a word does not say stands in its environment.
    pub(super) fn program(&self, words: &str) -> Command {
        let mut command = program::command();
        command.args(words.split_whitespace());
        self.settle(&mut command);
        command
    }

    /// The program's main job.
    pub(super) fn order(&self, more: &str) -> Command {
        self.program(&format!("order -f site.yaml {more}"))
    }

    /// The same, by a user to whom file modes and low ports mean something: not root.
    pub(super) fn order_of_nobody(&self, more: &str) -> Command {
        const NOBODY: u32 = 65_534;
        let command = self.order(more);
        if fs::metadata(self.folder.path()).unwrap().uid() != 0 {
            return command;
        }
        // Where the program lies, nobody may have no access.
        let copy = self.path("kubectl-acme");
        copy_program(command.get_program(), &copy);
        let inside = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        for path in inside.chain([self.folder.path().to_owned()]) {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut theirs = Command::new(copy);
        theirs.args(command.get_args()).uid(NOBODY);
        self.settle(&mut theirs);
        theirs
    }

    /// The main job ends well, with certificate and key on disk.
    #[track_caller]
    pub(super) fn issues(&self) {
        self.run(self.order("")).check(0, "");
        self.has_pair();
    }

    /// Certificate and key are on disk, and nothing else; both are of one pair.
    #[track_caller]
    pub(super) fn has_pair(&self) {
        self.has_pairs(&["web-tls"]);
    }

    /// The same for several Secrets, in the order of their names.
    #[track_caller]
    pub(super) fn has_pairs(&self, secrets: &[&str]) {
        let files = |secret: &&str| [format!("{secret}/tls.crt"), format!("{secret}/tls.key")];
        assert_eq!(self.results(), secrets.iter().flat_map(files).collect::<Vec<_>>());
        for secret in secrets {
            self.is_pair(secret);
        }
    }

    #[track_caller]
    fn is_pair(&self, secret: &str) {
        let read =
            |name: &str| fs::read_to_string(self.path("out").join(secret).join(name)).unwrap();
        let key = KeyPair::from_pem(&read("tls.key")).unwrap();
        let leaf = pem::parse_many(read("tls.crt")).unwrap().swap_remove(0).into_contents();
        let public = key.public_key_raw();
        assert!(leaf.windows(public.len()).any(|part| part == public), "the pair is none");
    }

    /// Gives a command this machine's folder and environment, and nothing else.
    pub(super) fn settle(&self, command: &mut Command) {
        let here = format!("127.0.0.1:{}", self.port);
        command.env_clear().current_dir(self.folder.path()).stdin(Stdio::null());
        command.envs([
            ("KUBECTL_ACME_LOCAL", "state"),
            ("KUBECTL_ACME_OUT", "out"),
            ("KUBECTL_ACME_TIMEOUT", "50s"),
            ("KUBECTL_ACME_HTTP01_LISTEN", &here),
            ("KUBECTL_ACME_HTTP01_RESOLVE", &format!("*={here}")),
        ]);
    }

    /// Puts a pipe somewhere in the folder.
    pub(super) fn plant_pipe(&self, name: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").args(["-m", "600"]).arg(path).status().unwrap().success());
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(super) fn run(&self, mut command: Command) -> Said {
        let ended = command.output().unwrap();
        Said {
            code: ended.status.code(),
            result: String::from_utf8(ended.stdout).unwrap(),
            talk: self.plain(&String::from_utf8(ended.stderr).unwrap()),
        }
    }

    /// Starts a command and leaves it running; its talk goes to a file of the folder.
    pub(super) fn start(&self, name: &str, mut command: Command) -> Running<'_> {
        let talk = self.path(&format!("{name}.talk"));
        command.stdout(Stdio::null()).stderr(File::create(&talk).unwrap());
        Running { site: self, child: command.spawn().unwrap(), talk }
    }

    /// How many orders the CA was asked for.
    pub(super) fn orders(&self) -> u64 {
        self.ca.statistics().of("newOrder")
    }

    /// Every file below `out`, by its path there.
    pub(super) fn results(&self) -> Vec<String> {
        outcome::files(&self.path("out")).into_keys().collect()
    }

    /// Names of the objects of a kind that are stored.
    pub(super) fn stored(&self, kind: Kind) -> Vec<String> {
        let name = |object: Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        outcome::stored(&self.path("state"), kind).into_iter().map(name).collect()
    }

    /// Takes everything that differs from run to run out of a text.
    fn plain(&self, text: &str) -> String {
        let text = text
            .replace(&self.ca.directory_url(), "[directory]")
            .replace(&format!("{FRONT}:{}", self.ca.address().port()), "[ca]")
            .replace(&format!("127.0.0.1:{}", self.port), "[listener]")
            .replace(program::PATH, "kubectl-acme")
            .replace(&self.folder.path().display().to_string(), "[folder]");
        let digits: Of = |c| c.is_ascii_digit() || c == '-';
        let token: Of = |c| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let differing: [(&str, &str, Of); 7] = [
            ("web-1", "-[hash]", digits),
            ("process ", "[id]", digits),
            ("127.0.0.1:", "[port]", digits),
            ("server on port ", "[port]", digits),
            ("'sport = :", "[port]", digits),
            ("/acme-challenge/", "[token]", token),
            ("/certificate/", "[id]", token),
        ];
        let plain = differing
            .iter()
            .fold(text, |text, (after, word, of)| word_after(&text, after, word, *of));
        moments(&plain)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // A plain drop would wait for connections that a fault keeps open.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A command at work; ends with the test.
pub(super) struct Running<'a> {
    site: &'a Site,
    child: Child,
    talk: PathBuf,
}

impl Running<'_> {
    /// Waits until it has said this.
    #[track_caller]
    pub(super) fn says(&self, words: &str) {
        wait_until(|| fs::read_to_string(&self.talk).unwrap().contains(words), words);
    }

    /// Sends a signal, as `kill` names it.
    pub(super) fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &process]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it ends by itself when it is interrupted.
    #[track_caller]
    pub(super) fn hears_signals(&self) {
        const SIGINT: u32 = 2;
        let status = format!("/proc/{}/status", self.child.id());
        let is_caught = || {
            let status = fs::read_to_string(&status).unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (SIGINT - 1)) != 0
        };
        wait_until(is_caught, "a handler of signals");
    }

    /// Waits for its end.
    #[track_caller]
    pub(super) fn end(mut self) -> Said {
        let mut code = None;
        wait_until(
            || {
                let ended = self.child.try_wait().unwrap();
                code = ended.and_then(|status| status.code());
                ended.is_some()
            },
            "the end of the program",
        );
        let talk = fs::read_to_string(&self.talk).unwrap();
        Said { code, result: String::new(), talk: self.site.plain(&talk) }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Said {
    /// What is wrong and what helps: the lines of errors and hints.
    pub(super) fn complaint(&self) -> String {
        let tells = |line: &&str| line.starts_with("error:") || line.starts_with("hint:");
        self.talk.lines().filter(tells).flat_map(|line| [line, "\n"]).collect()
    }

    /// It must have ended with this code, with these complaints and no others.
    #[track_caller]
    pub(super) fn check(&self, code: i32, complaint: &str) {
        assert_eq!(self.complaint(), complaint, "\n{}\n{}", self.talk, self.result);
        assert_eq!(self.code, Some(code), "\n{}\n{}", self.talk, self.result);
    }
}

/// Waits until something is so.
#[track_caller]
pub(super) fn wait_until(mut so: impl FnMut() -> bool, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "waited in vain for: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Which characters belong to what differs.
type Of = fn(char) -> bool;

/// Puts a word in place of what follows `after` and consists of such characters.
fn word_after(text: &str, after: &str, word: &str, of: Of) -> String {
    let mut parts = text.split(after);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(of);
        plain.push_str(after);
        if rest.len() < part.len() {
            plain.push_str(word);
        }
        plain.push_str(rest);
    }
    plain
}

/// Puts a word in place of every moment in RFC 3339.
fn moments(text: &str) -> String {
    let is_moment = |word: &str| {
        word.len() >= 20 && word.ends_with('Z') && word.parse::<jiff::Timestamp>().is_ok()
    };
    let plain = |line: &str| {
        let words: Vec<String> = line
            .split(' ')
            .map(|word| {
                let bare = word.trim_end_matches([',', ':', ';', '.']);
                if is_moment(bare) { word.replace(bare, "[moment]") } else { word.to_owned() }
            })
            .collect();
        words.join(" ")
    };
    text.lines().map(|line| plain(line) + "\n").collect()
}
