//! The harness itself: what the tests stand on holds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::support::bed::{PATIENCE, Server};
use crate::support::fault::Fault;
use crate::support::http;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::proxy::Proxy;
use crate::support::traffic::Endpoint;

/// Reads the directory through a proxy, as a client would: what came back, or nothing for a lost connection.
fn check(pebble: &Pebble, proxy: &Proxy) -> Option<String> {
    let port = port_of(&proxy.directory());
    match http::get_tls(port, "/dir", pebble.tls_ca_pem()) {
        Ok(body) => Some(body),
        // An answer other than 200 comes as an error with its status.
        Err(error) => {
            error.to_string().split(':').next().filter(|w| w.len() == 3).map(str::to_owned)
        }
    }
}

fn port_of(url: &str) -> u16 {
    url.split([':', '/']).nth(4).and_then(|port| port.parse().ok()).unwrap()
}

#[test]
fn a_server_ends_with_the_test_that_started_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$; exec sleep 1000"]);
    let mut server = Server::start(&command, &log);
    let process = format!("/proc/{}", lines(&log, 1)[0]);
    assert!(server.is_running() && fs::exists(&process).unwrap());
    drop(server);
    assert!(!fs::exists(&process).unwrap());
}

#[test]
fn a_server_that_ends_by_itself_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&Command::new("true"), &folder.path().join("log"));
    let deadline = Instant::now() + PATIENCE;
    while server.is_running() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!server.is_running());
}

/// Waits until a server has written so many lines; returns them.
fn lines(log: &Path, count: usize) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(log).unwrap();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(Instant::now() < deadline, "only this: {text}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_a_server_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = Command::new("bash");
    command.args(["-c", "sleep 1000 & echo $!; wait"]);
    let server = Server::start(&command, &log);
    let state = PathBuf::from(format!("/proc/{}/stat", lines(&log, 1)[0]));
    assert!(state.exists());
    drop(server);
    // Whoever adopted it may take a while to bury it.
    let lives = || fs::read_to_string(&state).is_ok_and(|text| !text.contains(") Z "));
    let deadline = Instant::now() + PATIENCE;
    while lives() {
        assert!(Instant::now() < deadline, "it still runs");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_server_gets_the_signals_sent_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = Command::new("bash");
    let script = "trap 'echo hangup' HUP; trap 'echo end; exit' TERM; echo ready; while :; do sleep 0.1; done";
    command.args(["-c", script]);
    let mut server = Server::start(&command, &log);
    lines(&log, 1);
    server.signal("HUP");
    assert_eq!(lines(&log, 2)[1], "hangup");
    server.signal("TERM");
    assert_eq!(lines(&log, 3)[2], "end");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn two_pebbles_run_side_by_side() {
    let (first, second) =
        (Pebble::start(&PebbleOptions::default()), Pebble::start(&PebbleOptions::default()));
    assert_ne!(first.directory(), second.directory());
    assert_ne!(first.root_pem(), second.root_pem());
    assert_eq!((first.accounts(), first.orders()), (0, 0));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn every_alternate_chain_has_its_root() {
    let pebble = Pebble::start(&PebbleOptions { alternate_roots: 2, ..PebbleOptions::calm() });
    let roots = [pebble.root(0), pebble.root(1), pebble.root(2)];
    assert!(roots.iter().all(|root| root.starts_with("-----BEGIN CERTIFICATE-----")));
    assert!(roots[0] != roots[1] && roots[1] != roots[2]);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_client_that_began_at_the_proxy_stays_there() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let proxy = pebble.proxy();
    let directory = check(&pebble, &proxy).unwrap();
    let host = format!("https://localhost:{}/", port_of(&proxy.directory()));
    assert_eq!(directory.matches(&host).count(), directory.matches("https://localhost").count());
    assert_eq!(proxy.counts().to_string(), "1 Directory, 1 in all, 0 nonces refused");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn faults_meet_the_requests_they_are_for_and_no_others() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let proxy = pebble.proxy();
    proxy.inject(Fault::status(500).at(Endpoint::NewOrder));
    proxy.inject(Fault::problem(429, "rateLimited", "slow down").after(1).times(2));
    proxy.inject(Fault::drop_request().times(1));
    let directory = check(&pebble, &proxy);
    // The first passes the 429 by and meets the rule behind it.
    assert_eq!(directory, None);
    assert_eq!(check(&pebble, &proxy).as_deref(), Some("429"));
    assert_eq!(check(&pebble, &proxy).as_deref(), Some("429"));
    assert!(check(&pebble, &proxy).is_some_and(|body| body.contains("newNonce")));
    let statuses: Vec<_> = proxy.exchanges().iter().map(|e| (e.status, e.faulty)).collect();
    assert_eq!(statuses, [(None, true), (Some(429), true), (Some(429), true), (Some(200), false)]);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_dropped_answer_comes_after_the_deed() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let proxy = pebble.proxy();
    proxy.inject(Fault::drop_answer().at(Endpoint::Directory).times(1));
    let before = pebble.log().matches("GET /dir").count();
    assert_eq!(check(&pebble, &proxy), None);
    assert_eq!(pebble.log().matches("GET /dir").count(), before + 1);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn certbot_gets_a_certificate_through_the_proxy() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let proxy = pebble.proxy();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, pebble.tls_ca_pem()).unwrap();
    let certbot = Command::new("certbot")
        .args(["certonly", "--standalone", "--non-interactive", "--agree-tos"])
        .args(["--register-unsafely-without-email", "--key-type", "ecdsa"])
        .args(["--server", &proxy.directory(), "-d", "www.example.com"])
        .args(["--http-01-port", &pebble.http_port().to_string()])
        .args(["--config-dir", "config", "--work-dir", "work", "--logs-dir", "logs"])
        .current_dir(folder.path())
        .env("REQUESTS_CA_BUNDLE", &ca)
        .output()
        .unwrap();
    assert!(certbot.status.success(), "{}", String::from_utf8_lossy(&certbot.stderr));
    assert_eq!((pebble.accounts(), pebble.orders()), (1, 1));
    let counts = proxy.counts();
    let once = [Endpoint::NewAccount, Endpoint::NewOrder, Endpoint::Finalize];
    assert!(once.iter().all(|endpoint| counts.at(*endpoint) == 1), "{counts}");
}
