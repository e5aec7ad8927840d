//! TLS-ALPN-01 where somebody else stands on port 443, or nobody.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use kubectl_acme::dns::lookup::SystemResolver;
use kubectl_acme::fetch::{Fetcher, Overrides};
use kubectl_acme::model::{Answer, Challenge};
use kubectl_acme::probes::Probe as _;
use kubectl_acme::probes::tls_alpn::TlsAlpnProbe;
use kubectl_acme::reconcile::challenge::Readiness;
use kubectl_acme::reconcile::shown;
use kubectl_acme::solvers::Solver as _;
use kubectl_acme::solvers::tls_alpn01::TlsAlpn01;
use serde_json::{Value, json};

use super::{Lab, NAME};
use crate::support::bed::{PATIENCE, free_port};
use crate::support::lab;
use crate::support::terminal::{certificate, issuer};
use crate::support::tls_server::TlsServer;

/// The alert `unrecognized_name` (RFC 6066 §3), as `ssl_reject_handshake` of nginx sends it.
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Manifests of an Issuer that asks for TLS-ALPN-01.
fn manifests(lab: &Lab) -> [Value; 2] {
    let (url, root) = (lab.ca.server.directory_url(), lab.ca.server.tls_root_pem());
    let mut issuer = issuer(&url, root, json!({"solvers": []}));
    issuer["metadata"]["annotations"] = json!({"kubectl-acme/challenge-type": "tls-alpn-01"});
    [issuer, certificate("web", &[NAME], json!({}))]
}

fn resolve(port: u16) -> String {
    format!("--tls-alpn-resolve=*=127.0.0.1:{port}")
}

/// What is named first where handshakes are led to that port.
async fn names_first(cause: &str, port: u16) -> Value {
    let lab = Lab::new().await;
    lab.terminal.manifests(&manifests(&lab));
    let (listen, resolve) = (format!("--tls-alpn-listen=127.0.0.1:{}", free_port()), resolve(port));
    let order = ["order", "-f", "manifests.yaml", "--timeout=8s", &listen, &resolve];
    let said = lab.terminal.run(&order);
    assert_eq!(said.code, Some(124), "{said:?}");
    let said = lab.terminal.run(&["diagnose", "web", "-o", "json", &resolve]);
    let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    let first = lab::names_first(&report, cause).clone();
    assert_eq!(said.code, Some(10), "{report:#}");
    assert_eq!(first["subject"], NAME, "{report:#}");
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_01_a_web_server_ends_tls_itself() {
    let server = TlsServer::start(Router::new());
    let first = names_first("TLS-01", server.port).await;
    assert_eq!(first["grade"], "certain", "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_03_nobody_listens_or_every_handshake_is_refused() {
    let closed = free_port();
    let first = names_first("TLS-03", closed).await;
    assert!(first["evidence"].to_string().contains(&closed.to_string()), "{first:#}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            // Whoever greets may be gone.
            let _hello = stream.read(&mut [0; 2048]);
            let _told = stream.write_all(&ALERT);
        }
    });
    names_first("TLS-03", port).await;
}

/// Somebody else's order for the same name, which answers there and is never looked at.
fn answers_another_order(lab: &Lab, port: u16) -> Child {
    lab.terminal.manifests(&manifests(lab));
    let (listen, nowhere) = (format!("--tls-alpn-listen=127.0.0.1:{port}"), resolve(free_port()));
    let order = ["order", "-f", "manifests.yaml", "--timeout=170s", &listen, &nowhere];
    let mut command = lab.terminal.command(&order);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let is_up =
        || lab.terminal.objects("challenges").iter().any(|c| c["status"]["presented"] == true);
    while !is_up() {
        assert!(Instant::now() < deadline, "nothing is presented");
        thread::sleep(Duration::from_millis(100));
    }
    child
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_02_the_certificate_is_that_of_another_order() {
    let (other, port) = (Lab::new().await, free_port());
    let mut child = answers_another_order(&other, port);
    let first = names_first("TLS-02", port).await;
    assert_eq!(first["grade"], "certain", "{first:#}");
    assert!(first["evidence"].to_string().contains("another challenge"), "{first:#}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Forwards connections to a port, with these bytes ahead of each.
fn forward_behind(header: &'static [u8], port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(client), Ok(mut server)) = (stream, TcpStream::connect(("127.0.0.1", port)))
            else {
                break;
            };
            server.write_all(header).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            // Either side may be gone.
            thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
            let mut back = client;
            thread::spawn(move || drop(std::io::copy(&mut server, &mut back)));
        }
    });
    own
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_may_say_whose_connection_it_passes_on() {
    let binary =
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x50\x01\xbb";
    for header in [&b""[..], b"PROXY TCP4 192.0.2.1 192.0.2.2 80 443\r\n", binary] {
        let solver = TlsAlpn01::new(vec!["127.0.0.1:0".parse().unwrap()]);
        let challenge: Challenge = serde_json::from_value(json!({
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {
                "dnsName": NAME, "type": "TLS-ALPN-01", "token": "token", "key": "token.thumbprint", "url": "",
                "authorizationURL": "", "issuerRef": {"name": "ca"}, "solver": {},
            },
        }))
        .unwrap();
        let answer = Answer::of(&challenge).unwrap();
        solver.present(&challenge, &answer).await.unwrap();
        let port = solver.open().await.unwrap().addresses()[0].port();
        let through = forward_behind(header, port);
        let handshakes = [("*".to_owned(), ("127.0.0.1".parse().unwrap(), Some(through)))].into();
        let overrides = Overrides { handshakes, ..Overrides::default() };
        let fetcher = Fetcher { resolver: Arc::new(SystemResolver::new()), overrides };
        let looks = TlsAlpnProbe { fetcher }.probe(&challenge, &answer).await;
        assert_eq!(shown::judge(&answer, &looks), Readiness::Ready, "{header:?}: {looks:?}");
    }
}
