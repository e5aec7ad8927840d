//! The fault lab where port 443 of a name counts, which is a loopback address of its own here, and what a CA says of renewals.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use axum::Router;
use serde_json::{Value, json};

use crate::support::lab;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Said, Terminal, certificate, issuer};
use crate::support::tls_server::TlsServer;

const NAME: &str = "www.example.com";
/// The alert `handshake_failure` (RFC 8446 §6.2).
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// Two ports of one address: the first sends everything to HTTPS, the second is 443.
struct Site {
    port: u16,
    address: Ipv4Addr,
    _tls: TlsServer,
}

impl Site {
    /// On 443 stands a server whose certificate nobody trusts, or one that ends each handshake.
    fn start(address: Ipv4Addr, has_certificate: bool) -> Self {
        let tls = TlsServer::start(Router::new());
        let (plain, secure) = (listen(address, 0), listen(address, 443));
        let port = plain.local_addr().unwrap().port();
        let behind = tls.port;
        serve(plain, |mut stream| {
            let mut request = [0; 2048];
            let read = stream.read(&mut request).unwrap_or_default();
            let text = String::from_utf8_lossy(&request[..read]).into_owned();
            let path = text.split(' ').nth(1).unwrap_or("/");
            let answer = format!(
                "HTTP/1.1 301 Moved\r\nLocation: https://{NAME}{path}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).ok();
        });
        serve(secure, move |mut stream| {
            if !has_certificate {
                let _hello = stream.read(&mut [0; 2048]);
                stream.write_all(&ALERT).ok();
                return;
            }
            let mut server = TcpStream::connect(("127.0.0.1", behind)).unwrap();
            let (mut from, mut to) = (stream.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || io::copy(&mut from, &mut to).ok());
            io::copy(&mut server, &mut stream).ok();
        });
        Self { port, address, _tls: tls }
    }

    /// What `diagnose` says of the name that leads there.
    fn diagnose(&self, terminal: &Terminal, what: &str) -> (Said, Value) {
        let resolve = format!("--http01-resolve=*={}:{}", self.address, self.port);
        let said = terminal.run(&["diagnose", what, "-o", "json", &resolve]);
        let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        (said, report)
    }
}

fn listen(address: Ipv4Addr, port: u16) -> TcpListener {
    TcpListener::bind((address, port)).unwrap_or_else(|why| {
        panic!("cannot listen at {address}:{port}: {why}; be root, or sysctl net.ipv4.ip_unprivileged_port_start=53")
    })
}

fn serve(listener: TcpListener, each: impl Fn(TcpStream) + Send + Sync + Clone + 'static) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { break };
            let each = each.clone();
            thread::spawn(move || each(stream));
        }
    });
}

/// The guide's item "tls: handshake failure": everything is sent to HTTPS, where there is no certificate yet.
#[test]
#[ignore = "needs port 443: run by just pebble"]
fn guide_tls_handshake_failure() {
    let site = Site::start(Ipv4Addr::new(127, 86, 53, 1), false);
    let (said, report) = site.diagnose(&Terminal::elsewhere(), NAME);
    let first = lab::names_first(&report, "HTTP-14");
    assert_eq!(said.code, Some(10), "{report:#}");
    let fix = first["fix"].to_string();
    assert!(fix.contains("443") || fix.contains("temporary"), "{first:#}");
}

#[test]
#[ignore = "needs port 443: run by just pebble"]
fn a_redirect_to_https_with_a_certificate_that_nobody_trusts_is_well() {
    let site = Site::start(Ipv4Addr::new(127, 86, 53, 2), true);
    let (said, report) = site.diagnose(&Terminal::elsewhere(), NAME);
    lab::names_none(&report, "a redirect to HTTPS with a self-signed certificate");
    assert_eq!(said.code, Some(0), "{report:#}");
}

/// A certificate of Pebble's.
fn issued(more: Value, spec: Value) -> (Pebble, Terminal) {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let terminal = Terminal::at(&pebble);
    let said = terminal.order(&[
        issuer(&pebble.directory(), pebble.tls_ca_pem(), more),
        certificate("web", &[NAME], spec),
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    (pebble, terminal)
}

fn diagnose(terminal: &Terminal) -> (Said, Value) {
    let said = terminal.run(&["diagnose", "certificate/web", "-o", "json"]);
    let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    (said, report)
}

/// The guide's "Let's Encrypt will be revoking a number of certificates" (HYG-05).
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn guide_the_ca_wants_certificates_replaced_that_it_issued_wrongly() {
    let (pebble, terminal) = issued(json!({}), json!({}));
    let (_, before) = diagnose(&terminal);
    assert_eq!(before["findings"][0]["cause"], "ORD-01", "{before:#}");
    let chain = std::fs::read_to_string(terminal.pair("web-tls").certificate).unwrap();
    let window = json!({"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"});
    pebble.say_of_renewal(&chain, &json!({"suggestedWindow": window}));
    let (said, report) = diagnose(&terminal);
    lab::names_first(&report, "HYG-05");
    assert_eq!(said.code, Some(10), "{report:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn hyg_06_a_margin_of_thirty_days_for_a_life_of_six() {
    let (_pebble, terminal) =
        issued(json!({"profile": "shortlived"}), json!({"renewBefore": "720h"}));
    let (said, report) = diagnose(&terminal);
    lab::names_first(&report, "HYG-06");
    assert_eq!(said.code, Some(0), "{report:#}");
}
