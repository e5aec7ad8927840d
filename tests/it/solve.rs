//! `solve` as a Pod runs it: cert-manager's flags, one answer, and a quiet end.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{bed, http};

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// A token may begin with a dash.
const FLAGS: [&str; 3] = ["--domain=www.example.com", "--token=-token", "--key=-token.thumbprint"];

/// Starts `solve` on a port.
fn start(port: u16) -> Child {
    Command::new(env!("CARGO_BIN_EXE_kubectl-acme"))
        .args(["solve", &format!("--listen-port={port}")])
        .args(FLAGS)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end and returns the exit code, and what was said.
fn end(mut child: Child) -> (Option<i32>, String) {
    let deadline = Instant::now() + LIMIT;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "solve does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

#[test]
fn it_answers_one_name_until_it_is_told_to_end() {
    let port = bed::free_port();
    let child = start(port);
    let deadline = Instant::now() + LIMIT;
    while http::get(port, "probe", "/healthz").is_err() {
        assert!(Instant::now() < deadline, "solve does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let path = "/.well-known/acme-challenge/-token";
    assert_eq!(http::get(port, "www.example.com", path).unwrap(), "-token.thumbprint");
    let refused = http::get(port, "mail.example.com", path).unwrap_err().to_string();
    assert_eq!(refused, "404: 404 page not found");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let (code, said) = end(child);
    assert_eq!(code, Some(0));
    assert_eq!(said, format!("answering for www.example.com on port {port}\n"));
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
