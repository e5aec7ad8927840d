//! `solve` as a Pod runs it: cert-manager's flags, one answer, and a quiet end.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kubectl_acme::model::Record;
use kubectl_acme::store::Store as _;
use kubectl_acme::store::local::{Access, LocalStore};
use serde_json::json;

use crate::support::bed::PATIENCE;
use crate::support::program;
use crate::support::terminal::{Said, Terminal};
use crate::support::{bed, http};

/// A token may begin with a dash.
const FLAGS: [&str; 3] = ["--domain=www.example.com", "--token=-token", "--key=-token.thumbprint"];

/// Starts `solve` on a port.
fn start(port: u16) -> Child {
    program::command()
        .args(["solve", &format!("--listen-port={port}")])
        .args(FLAGS)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end and returns the exit code, and what was said.
fn end(mut child: Child) -> (Option<i32>, String) {
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "solve does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

/// Tells it to end.
fn stop(child: Child) -> (Option<i32>, String) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    end(child)
}

#[test]
fn it_answers_one_name_until_it_is_told_to_end() {
    let port = bed::free_port();
    let child = start(port);
    let deadline = Instant::now() + PATIENCE;
    while http::get(port, "probe", "/healthz").is_err() {
        assert!(Instant::now() < deadline, "solve does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let path = "/.well-known/acme-challenge/-token";
    assert_eq!(http::get(port, "www.example.com", path).unwrap(), "-token.thumbprint");
    let refused = http::get(port, "mail.example.com", path).unwrap_err().to_string();
    assert_eq!(refused, "404: 404 page not found");
    let (code, said) = stop(child);
    assert_eq!(code, Some(0));
    assert_eq!(said, format!("answering for www.example.com on port {port}\n"));
}

#[tokio::test]
#[ignore = "needs curl: run by just pebble"]
async fn curl_sees_what_a_check_sees() {
    let terminal = Terminal::elsewhere();
    let store = LocalStore::open(&terminal.path("state"), Access::ReadWrite).unwrap();
    let challenge = json!({
        "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge",
        "metadata": {"name": "web-1", "namespace": "default"},
        "spec": {
            "url": "https://ca.example/chall/1", "authorizationURL": "https://ca.example/authz/1",
            "dnsName": "www.example.com", "type": "HTTP-01", "token": "-token", "key": "-token.thumbprint",
            "solver": {"http01": {"ingress": {}}}, "issuerRef": {"name": "ca"},
        },
    });
    store.create(Record::new(challenge).unwrap()).await.unwrap();
    let resolve = format!("--http01-resolve=*=127.0.0.1:{}", terminal.http_port);
    let check = || terminal.run(&["challenge", "check", "web-1", "--show-commands", &resolve]);
    let curl = |said: &Said| {
        let reproduced = said.reproduced();
        let [(line, ended)] = &reproduced[..] else { panic!("{said:?}") };
        assert!(line.starts_with("curl "), "{line}");
        (ended.code, ended.stdout.clone())
    };

    let nobody = check();
    assert!(nobody.stdout.contains("connection refused"), "{nobody:?}");
    assert_eq!(curl(&nobody), (Some(7), String::new()), "curl could not connect");

    let child = start(terminal.http_port);
    let deadline = Instant::now() + PATIENCE;
    let mut seen = check();
    while seen.code != Some(0) {
        assert!(Instant::now() < deadline, "{seen:?}");
        seen = check();
    }
    let (code, shown) = curl(&seen);
    assert_eq!(code, Some(0));
    assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
    assert!(shown.ends_with("\r\n\r\n-token.thumbprint"), "{shown}");
    stop(child);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let port = bed::free_port();
    let _taken = std::net::TcpListener::bind(("0.0.0.0", port)).unwrap();
    let _taken_too = std::net::TcpListener::bind(("::", port));
    let (code, said) = end(start(port));
    assert_eq!(code, Some(9));
    assert!(said.starts_with(&format!("error: cannot serve on port {port}: ")), "{said}");
    assert!(said.contains("hint: choose another port with --listen-port"), "{said}");
}
