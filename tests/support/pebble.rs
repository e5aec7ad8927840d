//! Pebble, a real ACME CA for tests, and the DNS server it asks.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::bed::{PATIENCE, Server, free_port, program};
use super::certificates::LocalCertificates;
use super::http;
use super::name_server::NameServer;
use super::proxy::Proxy;

/// How Pebble behaves; the default is as hard as a test can stand without waiting.
#[derive(Clone, Debug)]
pub struct PebbleOptions {
    /// Per cent of good nonces that are refused.
    pub nonce_reject: u8,
    /// Whether validation waits up to `va_sleep` seconds, at random; 0 never waits.
    pub va_sleep: u8,
    /// Per cent of valid authorizations that a new order takes over.
    pub authz_reuse: u8,
    /// Where the CA connects instead of port 80; a free port by default.
    pub http_port: Option<u16>,
    /// Whether the coming, stricter behaviour is switched on.
    pub strict: bool,
    /// How many chains there are beside the first.
    pub alternate_roots: u8,
    /// How many intermediates a chain has.
    pub chain_length: u8,
    /// Key id and base64url MAC key of every external account; with any, newAccount needs one.
    pub external_accounts: Vec<(String, String)>,
    /// Seconds in the `Retry-After` of a pending authorization; 0 leaves the header out.
    pub retry_after_authz: u32,
    /// Seconds in the `Retry-After` of a processing order; 0 leaves the header out.
    pub retry_after_order: u32,
    /// Profiles and the seconds that their certificates are valid.
    pub profiles: Vec<(String, u64)>,
    /// Names for which newOrder answers `rejectedIdentifier`.
    pub blocked: Vec<String>,
    /// What its directory says that it looks for in CAA records; it looks for none.
    pub caa_identities: Vec<String>,
    /// `HOST:PORT` of the DNS server that the CA asks; by default the one that comes with it.
    pub dns_server: Option<String>,
}

impl Default for PebbleOptions {
    fn default() -> Self {
        Self {
            nonce_reject: 20,
            va_sleep: 0,
            authz_reuse: 0,
            http_port: None,
            strict: true,
            alternate_roots: 0,
            chain_length: 1,
            external_accounts: Vec::new(),
            retry_after_authz: 0,
            retry_after_order: 0,
            profiles: vec![("default".to_owned(), 7_776_000), ("shortlived".to_owned(), 518_400)],
            blocked: vec!["blocked-domain.example".to_owned()],
            caa_identities: Vec::new(),
            dns_server: None,
        }
    }
}

impl PebbleOptions {
    /// Nothing refused, nothing reused: every request is there because the client made it.
    pub fn calm() -> Self {
        Self { nonce_reject: 0, ..Self::default() }
    }

    /// The same, and every certificate is valid for 90 days: of several profiles Pebble takes any, and of a short life we and
    /// cert-manager leave another part.
    pub fn long_lived() -> Self {
        let profiles = vec![("default".to_owned(), 7_776_000)];
        Self { profiles, ..Self::calm() }
    }
}

/// A running Pebble with its own DNS server; both end when it goes.
///
/// When the test fails, the folder with the logs stays, and its path is printed.
pub struct Pebble {
    ca: Server,
    dns: NameServer,
    folder: Option<TempDir>,
    certificates: LocalCertificates,
    directory_port: u16,
    management_port: u16,
    http_port: u16,
    tls_port: u16,
}

impl Pebble {
    /// Starts both servers on free ports and returns when they answer.
    pub fn start(options: &PebbleOptions) -> Self {
        let mut log = String::new();
        // A port that was free a moment ago may be taken: then another round.
        for _ in 0..5 {
            match Self::try_start(options) {
                Ok(pebble) => return pebble,
                Err(reason) => log = reason,
            }
        }
        panic!("cannot start Pebble: {log}");
    }

    fn try_start(options: &PebbleOptions) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("pebble-").tempdir().unwrap();
        let certificates = LocalCertificates::generate();
        fs::write(folder.path().join("localhost.pem"), &certificates.certificate).unwrap();
        fs::write(folder.path().join("localhost.key"), &certificates.key).unwrap();

        let dns = NameServer::start(folder.path().join("dns.log"));
        let http_port = options.http_port.unwrap_or_else(free_port);
        let (directory_port, management_port, tls_port) = (free_port(), free_port(), free_port());
        let config = folder.path().join("pebble.json");
        let listeners = json!({
            "listenAddress": format!("127.0.0.1:{directory_port}"),
            "managementListenAddress": format!("127.0.0.1:{management_port}"),
            "certificate": folder.path().join("localhost.pem"),
            "privateKey": folder.path().join("localhost.key"),
            "httpPort": http_port,
            "tlsPort": tls_port,
        });
        fs::write(&config, options.config(listeners).to_string()).unwrap();

        let mut command = Command::new(program("pebble"));
        command.arg("-config").arg(&config).arg("-dnsserver");
        command.arg(options.dns_server.clone().unwrap_or_else(|| dns.address()));
        command.args(options.strict.then_some("-strict")).envs(options.environment());
        let ca = Server::start(&command, &folder.path().join("pebble.log"));
        let mut pebble = Self {
            ca,
            dns,
            folder: Some(folder),
            certificates,
            directory_port,
            management_port,
            http_port,
            tls_port,
        };
        pebble.wait_until_ready().map(|()| pebble)
    }

    /// Returns the logs when a server ended by itself.
    fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while self.ca.is_running() && self.dns.is_running() {
            match self.look() {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => panic!("Pebble is not ready: {error}"),
                Err(_) => sleep(Duration::from_millis(20)),
            }
        }
        Err(format!("{}\n{}", self.dns.log(), self.log()))
    }

    /// Looks once whether all three answer.
    fn look(&self) -> std::io::Result<()> {
        http::get_tls(self.directory_port, "/dir", self.tls_ca_pem())?;
        http::get_tls(self.management_port, "/roots/0", self.tls_ca_pem())?;
        self.dns.look()
    }

    /// URL of the directory.
    pub fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.directory_port)
    }

    /// Port of the directory.
    pub fn directory_port(&self) -> u16 {
        self.directory_port
    }

    /// What a client must trust to speak with the directory.
    pub fn tls_ca_pem(&self) -> &str {
        &self.certificates.ca
    }

    /// The root of what it issues.
    pub fn root_pem(&self) -> String {
        self.root(0)
    }

    /// The root of its chain number `chain`, the first one being 0.
    pub fn root(&self, chain: u8) -> String {
        self.management(&format!("/roots/{chain}"))
    }

    /// Where it connects instead of port 80, on 127.0.0.1 unless the DNS server says otherwise.
    pub fn http_port(&self) -> u16 {
        self.http_port
    }

    /// Where it connects instead of port 443.
    pub fn tls_port(&self) -> u16 {
        self.tls_port
    }

    /// The DNS server it asks.
    pub fn dns(&self) -> &NameServer {
        &self.dns
    }

    /// Starts a proxy before it that the same clients trust.
    pub fn proxy(&self) -> Proxy {
        Proxy::start(self.directory_port, "/dir", &self.certificates)
    }

    /// How many accounts were made.
    pub fn accounts(&self) -> usize {
        self.last_count("accounts in memory")
    }

    /// How many orders were made.
    pub fn orders(&self) -> usize {
        self.last_count("orders in the db")
    }

    /// How many certificates were issued.
    pub fn issued(&self) -> usize {
        self.log().matches("Issued certificate serial ").count()
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder().join("pebble.log")).unwrap_or_default()
    }

    /// Folder with configuration and logs.
    pub fn folder(&self) -> PathBuf {
        self.folder.as_ref().map(|folder| folder.path().to_owned()).unwrap_or_default()
    }

    /// Asks the management interface.
    /// Has it say of a certificate what it says of renewals (RFC 9773).
    pub fn say_of_renewal(&self, certificate_pem: &str, answer: &Value) {
        let said = json!({"Certificate": certificate_pem, "ARIResponse": answer.to_string()});
        http::post_tls(self.management_port, "/set-renewal-info/", &said, self.tls_ca_pem())
            .unwrap_or_else(|error| panic!("cannot set renewal information of Pebble: {error}"));
    }

    fn management(&self, path: &str) -> String {
        http::get_tls(self.management_port, path, self.tls_ca_pem())
            .unwrap_or_else(|error| panic!("cannot read {path} of Pebble: {error}"))
    }

    /// Reads N from the last line `There are now N <what>` of the log.
    fn last_count(&self, what: &str) -> usize {
        let log = self.log();
        let line = log.lines().rev().find(|line| line.ends_with(what));
        line.and_then(|line| line.split(' ').rev().nth(what.split(' ').count())?.parse().ok())
            .unwrap_or(0)
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let kept = self.folder.take().map(TempDir::keep).unwrap_or_default();
        #[expect(clippy::print_stderr, reason = "shown beside the failed assertion")]
        {
            eprintln!("Pebble's logs are in {}", kept.display());
        }
    }
}

impl PebbleOptions {
    fn config(&self, mut config: Value) -> Value {
        config["keyAlgorithm"] = json!("ecdsa");
        config["caaIdentities"] = json!(self.caa_identities);
        config["domainBlocklist"] = json!(self.blocked);
        config["retryAfter"] =
            json!({"authz": self.retry_after_authz, "order": self.retry_after_order});
        for (name, seconds) in &self.profiles {
            config["profiles"][name] = json!({"description": name, "validityPeriod": seconds});
        }
        if !self.external_accounts.is_empty() {
            config["externalAccountBindingRequired"] = json!(true);
        }
        for (key_id, key) in &self.external_accounts {
            config["externalAccountMACKeys"][key_id] = json!(key);
        }
        json!({"pebble": config})
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("PEBBLE_WFE_NONCEREJECT", self.nonce_reject.to_string()),
            ("PEBBLE_AUTHZREUSE", self.authz_reuse.to_string()),
            ("PEBBLE_VA_NOSLEEP", u8::from(self.va_sleep == 0).to_string()),
            ("PEBBLE_VA_SLEEPTIME", self.va_sleep.to_string()),
            ("PEBBLE_ALTERNATE_ROOTS", self.alternate_roots.to_string()),
            ("PEBBLE_CHAIN_LENGTH", self.chain_length.to_string()),
        ]
    }
}
