//! `ca` as developers of clients start it: its flags, what it prints for programs, and what tests ask of it beside ACME.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::http;
use crate::support::terminal::{Said, Terminal, certificate, issuer};

/// The program as a CA; it ends with the test.
struct Ca {
    process: Child,
    report: Value,
}

impl Ca {
    /// Starts it with these flags, in the folder of a terminal, and waits for the line that says where it is.
    fn start(terminal: &Terminal, flags: &[&str]) -> Self {
        let mut command = terminal.command(&["ca", "--listen=127.0.0.1:0", "--root=root.pem"]);
        command.args(["--management=127.0.0.1:0", "-o=json"]).args(flags);
        let resolve = format!("--http01-resolve=*=127.0.0.1:{}", terminal.http_port);
        command.arg(resolve).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let report = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{flags:?}: {line:?}"));
        Self { process, report }
    }

    fn text(&self, member: &str) -> &str {
        self.report[member].as_str().unwrap()
    }

    fn issuer(&self, terminal: &Terminal, more: Value) -> Value {
        let root = std::fs::read_to_string(terminal.path(self.text("root"))).unwrap();
        issuer(self.text("directory"), &root, more)
    }

    /// The port at which tests ask.
    fn management(&self) -> u16 {
        self.text("management").rsplit(':').next().unwrap().parse().unwrap()
    }
}

impl Drop for Ca {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn order(terminal: &Terminal, ca: &Ca, names: &[&str], more: Value) -> Said {
    let issuer = ca.issuer(terminal, json!({}));
    terminal.try_order(&[issuer, certificate("web", names, more)])
}

/// Lines of `openssl x509` about the certificate that was issued.
fn leaf(terminal: &Terminal, flags: &[&str]) -> String {
    terminal.pair("web-tls").leaf(flags)
}

#[test]
fn our_own_client_stands_a_strict_server_whatever_its_seed() {
    for seed in ["1", "2", "3"] {
        let terminal = Terminal::elsewhere();
        let seed = format!("--seed={seed}");
        let ca = Ca::start(&terminal, &["--strict", &seed, "--retry-after=1"]);
        assert_eq!(seed, format!("--seed={}", ca.report["seed"]));
        let said = order(&terminal, &ca, &["a.bed.test", "b.bed.test", "c.bed.test"], json!({}));
        assert_eq!(said.code, Some(0), "{said:?}");
        let names = leaf(&terminal, &["-noout", "-ext", "subjectAltName"]);
        assert!(names.contains("DNS:a.bed.test, DNS:b.bed.test, DNS:c.bed.test"), "{names}");
    }
}

#[test]
fn one_line_says_where_a_server_is_that_answers_by_then() {
    let terminal = Terminal::elsewhere();
    let ca = Ca::start(&terminal, &["--name=ca.acme.test"]);
    assert_eq!(ca.report["kind"], "TestCA");
    assert_eq!(ca.report["pid"], ca.process.id());
    assert!(ca.text("directory").starts_with("https://ca.acme.test:"), "{:?}", ca.report);
    let root = http::get(ca.management(), "localhost", "/roots/0").unwrap();
    let file = std::fs::read_to_string(terminal.path("root.pem")).unwrap();
    assert!(root.contains(&file.replace("\r\n", "\n")), "{root}");
    assert!(http::get(ca.management(), "localhost", "/health").unwrap().contains("ok"));
    let port: u16 = ca.text("directory").split([':', '/']).nth(4).unwrap().parse().unwrap();
    // Not by the name that is printed, and URLs are those of the host that was asked.
    let directory = http::get_tls(port, "/directory", &file).unwrap();
    assert!(directory.contains(&format!("https://localhost:{port}/acme/")), "{directory}");
}

#[test]
fn external_accounts_are_asked_for_and_known_by_the_key_in_a_file() {
    let terminal = Terminal::elsewhere();
    terminal.write("kid-1.key", "c2VjcmV0LWhtYWM=\n");
    let ca = Ca::start(&terminal, &["--eab=kid-1=kid-1.key"]);
    let said = order(&terminal, &ca, &["a.bed.test"], json!({}));
    assert_eq!(said.code, Some(7), "{said:?}");
    let root = terminal.path("root.pem");
    let words = [
        "order",
        "--domain=a.bed.test",
        &format!("--server={}", ca.text("directory")),
        &format!("--ca-bundle={}", root.display()),
        "--eab-kid=kid-1",
        "--eab-hmac-file=kid-1.key",
        "--local=other",
    ];
    let said = terminal.drive(&words);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn names_are_blocked_with_all_below_them() {
    let terminal = Terminal::elsewhere();
    let ca = Ca::start(&terminal, &["--block=blocked.test"]);
    let said = order(&terminal, &ca, &["a.blocked.test"], json!({}));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("forbidden by policy"), "{said:?}");
}

#[test]
fn profiles_and_lifetimes_are_as_flags_say() {
    let days_left = |terminal: &Terminal, days: i64| {
        let end = leaf(terminal, &["-noout", "-enddate", "-dateopt", "iso_8601"]);
        let (_, end) = end.trim().split_once('=').unwrap();
        let end: jiff::Timestamp = end.replace(' ', "T").parse().unwrap();
        let hours = end.duration_since(jiff::Timestamp::now()).as_hours();
        assert!((days * 24 - 1..=days * 24).contains(&hours), "{end}, not {days} days from now");
    };
    for (flags, issuer, days) in [
        (&["--lifetime=240h"][..], json!({}), 10),
        (&["--profile=short=120h", "--profile=long=480h"], json!({}), 5),
        (&["--profile=short=120h", "--profile=long=480h"], json!({"profile": "long"}), 20),
        (&["--profile=short=120h", "--lifetime=96h"], json!({}), 4),
    ] {
        let terminal = Terminal::elsewhere();
        let ca = Ca::start(&terminal, flags);
        let issuer = ca.issuer(&terminal, issuer);
        let said = terminal.try_order(&[issuer, certificate("web", &["a.bed.test"], json!({}))]);
        assert_eq!(said.code, Some(0), "{flags:?}: {said:?}");
        days_left(&terminal, days);
    }
}

#[test]
fn nobody_is_looked_at_when_every_name_is_valid_and_records_come_from_flags_otherwise() {
    let terminal = Terminal::elsewhere();
    let ca = Ca::start(&terminal, &["--always-valid", "--validation-delay=100ms"]);
    let said = order(&terminal, &ca, &["a.bed.test"], json!({}));
    assert_eq!(said.code, Some(0), "{said:?}");
    drop(ca);
    // What the flag forbids is seen before what is served.
    let terminal = Terminal::elsewhere();
    let record = "--record=a.bed.test CAA 0 issue \"other.example\"";
    let ca = Ca::start(&terminal, &[record, "--caa-identity=ca.example"]);
    let said = order(&terminal, &ca, &["a.bed.test"], json!({}));
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.stderr.contains("CAA record for a.bed.test prevents issuance"), "{said:?}");
}

#[test]
fn a_test_revokes_a_certificate_and_reads_its_status() {
    let terminal = Terminal::elsewhere();
    let ca = Ca::start(&terminal, &["--finalize-delay=100ms", "--reuse=never"]);
    let said = order(&terminal, &ca, &["a.bed.test"], json!({}));
    assert_eq!(said.code, Some(0), "{said:?}");
    let serial = leaf(&terminal, &["-noout", "-serial"]);
    let serial = serial.trim().split_once('=').unwrap().1.to_owned();
    let path = format!("/cert-status-by-serial/{serial}");
    let status = || http::get(ca.management(), "localhost", &path).unwrap();
    assert!(status().contains("\"Valid\""), "{}", status());
    let wish = json!({"serial": serial, "reason": 1});
    http::post(ca.management(), "/revoke-by-serial", &wish).unwrap();
    assert!(status().contains("\"Revoked\""), "{}", status());
}

#[test]
fn what_listens_beyond_loopback_is_told_so_and_stays_without_management() {
    let said = Terminal::elsewhere().run(&["ca", "--management=0.0.0.0:0"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("so it may listen on loopback only"), "{said:?}");
}
