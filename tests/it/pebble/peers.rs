//! Other people's clients against our own CA, the command `ca`: they share no code with it, nor with each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::bed::{PATIENCE, Server, free_port};
use crate::support::http;
use crate::support::name_server::NameServer;
use crate::support::program;
use crate::support::terminal::{Pair, Said, Terminal, certificate, issuer};

/// The command `ca`, with every name led to one port of loopback.
struct Ca {
    _server: Server,
    folder: TempDir,
    port: u16,
    http_port: u16,
}

impl Ca {
    /// Starts it; so many of a hundred good nonces are refused.
    fn start(refused: u8) -> Self {
        Self::start_with(&[format!("--refuse-nonces={refused}")])
    }

    /// Starts it with these flags.
    fn start_with(flags: &[String]) -> Self {
        let folder = tempfile::Builder::new().prefix("ca-").tempdir().unwrap();
        let (port, http_port) = (free_port(), free_port());
        let root = folder.path().join("root.pem");
        let mut command = program::command();
        command
            .arg("ca")
            .args(flags)
            .arg("--root")
            .arg(&root)
            .arg(format!("--listen=127.0.0.1:{port}"))
            .arg(format!("--http01-resolve=*=127.0.0.1:{http_port}"));
        let mut server = Server::start(&command, &folder.path().join("ca.log"));
        let deadline = Instant::now() + PATIENCE;
        // The file may be there before all of it is.
        while fs::read_to_string(&root).map_or(true, |root| !root.ends_with("-----\n"))
            || http::get_tls(port, "/directory", &fs::read_to_string(&root).unwrap()).is_err()
        {
            let log = || fs::read_to_string(folder.path().join("ca.log")).unwrap_or_default();
            assert!(server.is_running() && Instant::now() < deadline, "no CA: {}", log());
            sleep(Duration::from_millis(20));
        }
        Self { _server: server, folder, port, http_port }
    }

    fn directory(&self) -> String {
        format!("https://localhost:{}/directory", self.port)
    }

    /// lego, about to ask for two names.
    fn lego(&self) -> Command {
        let mut command = Command::new("lego");
        command
            .args(["--accept-tos", "--email", "me@mail.acme-tests.dev", "--server"])
            .arg(self.directory())
            .args(["--path", "lego", "--domains", "example.com", "--domains", "www.example.com"])
            .args(["--http", "--http.port", &format!("127.0.0.1:{}", self.http_port)])
            .env("LEGO_CA_CERTIFICATES", self.root());
        command
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Runs a client in the CA's folder; openssl then accepts what it has obtained.
fn check(ca: &Ca, client: &mut Command, pair: &Pair) {
    let said = Said::from(client.current_dir(ca.path()).output().unwrap());
    assert_eq!(said.code, Some(0), "{said:?}");
    pair.check(&fs::read_to_string(ca.root()).unwrap());
    let names = pair.leaf(&["-ext", "subjectAltName"]);
    assert!(names.contains("DNS:www.example.com") && names.contains("DNS:example.com"), "{names}");
}

#[test]
#[ignore = "needs certbot: run by just pebble"]
fn certbot_gets_a_certificate_from_our_ca_and_revokes_it() {
    // certbot tries once more after a refused nonce, and dies of the second.
    let ca = Ca::start(0);
    let certbot = || {
        let mut command = Command::new("certbot");
        command
            .args(["--config-dir", "config", "--work-dir", "work", "--logs-dir", "logs"])
            .args(["--non-interactive", "--server", &ca.directory()])
            .env("REQUESTS_CA_BUNDLE", ca.root());
        command
    };
    let live = ca.path().join("config/live/example.com");
    let pair = Pair { certificate: live.join("fullchain.pem"), key: live.join("privkey.pem") };
    let mut order = certbot();
    order
        .args(["certonly", "--standalone", "--agree-tos", "--email", "me@mail.acme-tests.dev"])
        .args(["--key-type", "ecdsa", "-d", "example.com", "-d", "www.example.com"])
        .args(["--http-01-port", &ca.http_port.to_string()]);
    check(&ca, &mut order, &pair);
    let mut renew = certbot();
    renew.args(["renew", "--force-renewal", "--no-random-sleep-on-renew"]);
    check(&ca, &mut renew, &pair);
    let mut revoke = certbot();
    revoke.args(["revoke", "--cert-name", "example.com", "--no-delete-after-revoke"]);
    check(&ca, &mut revoke, &pair);
}

#[test]
#[ignore = "needs lego: run by just pebble"]
fn lego_gets_a_certificate_from_our_ca() {
    let ca = Ca::start(20);
    let folder = ca.path().join("lego/certificates");
    let pair =
        Pair { certificate: folder.join("example.com.crt"), key: folder.join("example.com.key") };
    check(&ca, ca.lego().arg("run"), &pair);
    check(&ca, ca.lego().args(["renew", "--days=400", "--no-random-sleep"]), &pair);
}

#[test]
#[ignore = "needs lego: run by just pebble"]
fn lego_is_refused_a_name_whose_caa_records_mean_another_ca() {
    let folder = tempfile::tempdir().unwrap();
    let names = NameServer::start(folder.path().join("dns.log"));
    let deadline = Instant::now() + PATIENCE;
    while names.look().is_err() {
        assert!(Instant::now() < deadline, "no name server: {}", names.log());
        sleep(Duration::from_millis(20));
    }
    let flags = ["--caa-identity=ca.example".to_owned(), format!("--dns={}", names.address())];
    let ca = Ca::start_with(&flags);
    names.add_caa("example.com", "issue", "other.example");
    let run = || Said::from(ca.lego().arg("run").current_dir(ca.path()).output().unwrap());
    let said = run();
    let refusal = "urn:ietf:params:acme:error:caa :: While processing CAA for example.com: CAA record for example.com prevents \
                   issuance";
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains(refusal), "{said:?}");
    names.clear("example.com");
    names.add_caa("example.com", "issue", "ca.example");
    let said = run();
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_refused_order_leaves_nothing_up_however_patient_the_ca_wants_us_to_be() {
    let ca = Ca::start_with(&["--retry-after=3600".to_owned()]);
    let terminal = Terminal::elsewhere();
    let trust = fs::read_to_string(ca.root()).unwrap();
    let path = terminal.manifests(&[
        issuer(&ca.directory(), &trust, json!({})),
        certificate("web", &["www.example.com"], json!({})),
    ]);
    let said = terminal.drive(&["order", "-f", path.to_str().unwrap()]);
    assert_eq!(said.code, Some(4), "{said:?}");
    let challenges = terminal.objects("challenges");
    let status = &challenges[0]["status"];
    assert_eq!(status["state"], "invalid", "{status}");
    assert_eq!(status["presented"], json!(false), "{status}");
    assert!(status["reason"].as_str().unwrap().contains("connection"), "{status}");
    let certificates = terminal.objects("certificates");
    assert_eq!(certificates[0]["status"]["nextPrivateKeySecretName"], Value::Null, "{said:?}");
}
