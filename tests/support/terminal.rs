//! A person at a terminal: our program with a state folder of its own, and openssl to judge what it made.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::bed::free_port;
use super::ca::TestCa;
use super::pebble::Pebble;
use super::program;

/// What a command said, and how it ended.
pub struct Said {
    /// Exit code; none after a signal.
    pub code: Option<i32>,
    /// The product.
    pub stdout: String,
    /// The conversation.
    pub stderr: String,
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Why comes first: of long outputs, only the beginning may be kept.
        write!(f, "exit {:?}\n{}\n{}", self.code, self.stderr, self.stdout)
    }
}

impl Said {
    /// The lines after `Command:`, each with what a shell makes of it.
    pub fn reproduced(&self) -> Vec<(&str, Self)> {
        let run = |line| Command::new("sh").args(["-c", line]).output().unwrap().into();
        self.commands().map(|line| (line, run(line))).collect()
    }

    /// The lines after `Command:`.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.stdout.lines().filter_map(|line| line.strip_prefix("Command:")).map(str::trim)
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

/// A folder with state and results; commands run with nothing of our environment.
pub struct Terminal {
    folder: TempDir,
    /// Where our listener answers, and where self-checks are led.
    pub http_port: u16,
    environment: Vec<(String, String)>,
}

impl Terminal {
    /// Sits down where a CA looks.
    pub fn at(pebble: &Pebble) -> Self {
        Self::on_port(pebble.http_port())
    }

    /// Sits down where no CA looks.
    pub fn elsewhere() -> Self {
        Self::on_port(free_port())
    }

    fn on_port(http_port: u16) -> Self {
        let folder = tempfile::Builder::new().prefix("terminal-").tempdir().unwrap();
        Self { folder, http_port, environment: Vec::new() }
    }

    /// Sets a variable for every command that follows.
    pub fn set(&mut self, name: &str, value: impl fmt::Display) {
        self.environment.push((name.to_owned(), value.to_string()));
    }

    /// A path in this folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file in this folder and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes manifests, as one file of JSON documents.
    pub fn manifests(&self, documents: &[Value]) -> PathBuf {
        let documents: Vec<String> = documents.iter().map(Value::to_string).collect();
        self.write("manifests.yaml", &documents.join("\n---\n"))
    }

    /// Runs a command as it is.
    pub fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    /// A command as it is, to be started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program::command();
        command
            .env("KUBECTL_ACME_LOCAL", self.path("state"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .args(arguments)
            .current_dir(self.folder.path());
        command
    }

    /// Runs a command that drives, with our listener and our folder for results.
    pub fn drive(&self, arguments: &[&str]) -> Said {
        let listen = format!("--http01-listen=127.0.0.1:{}", self.http_port);
        let resolve = format!("--http01-resolve=*=127.0.0.1:{}", self.http_port);
        let mut all = arguments.to_vec();
        all.extend(["--out=out", "--timeout=60s", &listen, &resolve]);
        self.run(&all)
    }

    /// Orders what these manifests say, and returns when it is there.
    pub fn order(&self, documents: &[Value]) -> Said {
        let said = self.try_order(documents);
        assert_eq!(said.code, Some(0), "{said:?}");
        said
    }

    /// Orders what these manifests say.
    pub fn try_order(&self, documents: &[Value]) -> Said {
        let path = self.manifests(documents);
        self.drive(&["order", "-f", path.to_str().unwrap()])
    }

    /// Objects of a kind that are in the store, as a command prints them.
    pub fn objects(&self, kind: &str) -> Vec<Value> {
        let said = self.run(&["get", kind, "-A", "-o", "json"]);
        let list: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        list["items"].as_array().unwrap_or_else(|| panic!("{said:?}")).clone()
    }

    /// The pair written for a Secret.
    pub fn pair(&self, secret: &str) -> Pair {
        let folder = self.path("out").join(secret);
        Pair { certificate: folder.join("tls.crt"), key: folder.join("tls.key") }
    }
}

/// A certificate with its chain, and its key, in two files.
pub struct Pair {
    /// `tls.crt`.
    pub certificate: PathBuf,
    /// `tls.key`.
    pub key: PathBuf,
}

impl Pair {
    /// Lets openssl judge: the chain leads to the root and the key belongs to the leaf.
    pub fn check(&self, root_pem: &str) {
        let (certificate, key) = (text(&self.certificate), text(&self.key));
        let root = self.certificate.with_file_name("root.pem");
        fs::write(&root, root_pem).unwrap();
        let verified = openssl(&[
            "verify",
            "-x509_strict",
            "-purpose",
            "sslserver",
            "-CAfile",
            &text(&root),
            "-untrusted",
            &certificate,
            &certificate,
        ]);
        assert!(verified.trim_end().ends_with(": OK"), "{verified}");
        let of_key = openssl(&["pkey", "-in", &key, "-pubout"]);
        assert_eq!(openssl(&["x509", "-in", &certificate, "-noout", "-pubkey"]), of_key);
    }

    /// What openssl prints of the leaf for these flags.
    pub fn leaf(&self, flags: &[&str]) -> String {
        let certificate = text(&self.certificate);
        openssl(&[&["x509", "-noout", "-in", &certificate], flags].concat())
    }

    /// How openssl ends when it looks at the leaf with these flags.
    pub fn try_leaf(&self, flags: &[&str]) -> Option<i32> {
        let mut command = Command::new("openssl");
        command.args(["x509", "-noout", "-in"]).arg(&self.certificate).args(flags);
        command.output().unwrap().status.code()
    }

    /// What openssl says of the key, its first line.
    pub fn key_line(&self) -> String {
        let described = openssl(&["pkey", "-in", &text(&self.key), "-noout", "-text"]);
        described.lines().next().unwrap_or_default().to_owned()
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Runs openssl and returns what it printed; a failure fails the test.
pub fn openssl(arguments: &[&str]) -> String {
    let said = Said::from(Command::new("openssl").args(arguments).output().unwrap());
    assert_eq!(said.code, Some(0), "openssl {arguments:?}: {said:?}");
    said.stdout
}

/// An Issuer `acme` for a CA; `more` is merged into `spec.acme`.
pub fn issuer(directory: &str, tls_ca_pem: &str, more: Value) -> Value {
    let mut issuer = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": {"name": "acme"},
        "spec": {"acme": {
            "server": directory,
            "caBundle": kubectl_acme::model::Blob(tls_ca_pem.as_bytes().to_vec()),
            "privateKeySecretRef": {"name": "acme-account"},
            "solvers": [{"http01": {"ingress": {}}}],
        }},
    });
    merge(&mut issuer["spec"]["acme"], more);
    issuer
}

/// A Certificate with the Secret `NAME-tls` from the Issuer `acme`; `more` is merged into `spec`.
pub fn certificate(name: &str, dns_names: &[&str], more: Value) -> Value {
    let mut certificate = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": name},
        "spec": {
            "secretName": format!("{name}-tls"),
            "dnsNames": dns_names,
            "privateKey": {"algorithm": "ECDSA"},
            "issuerRef": {"name": "acme"},
        },
    });
    merge(&mut certificate["spec"], more);
    certificate
}

/// A Secret with one entry.
pub fn secret(name: &str, entry: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {entry: value},
    })
}

fn merge(into: &mut Value, more: Value) {
    let (Value::Object(into), Value::Object(more)) = (into, more) else { return };
    into.extend(more);
}

/// A terminal whose Certificates, each of one name, are to be issued by that CA.
pub fn site(ca: &TestCa, names: &[&str]) -> Terminal {
    let mut terminal = Terminal::elsewhere();
    terminal.http_port = ca.http01.port();
    let (url, root) = (ca.server.directory_url(), ca.server.tls_root_pem());
    let mut documents = vec![issuer(&url, root, json!({}))];
    documents.extend(names.iter().map(|name| {
        let first = name.split('.').next().unwrap();
        certificate(first, &[name], json!({}))
    }));
    terminal.manifests(&documents);
    terminal
}
