//! The CA's server and the way to it, the CA's own word, and certificates that are there and not what is served, preferred or lasting.

use std::net::UdpSocket;

use axum::Router;
use jiff::{SignedDuration, Timestamp};
use kubectl_acme::ca::Config;
use serde_json::{Value, json};

use super::{Lab, NAME, reply, server};
use crate::support::lab;
use crate::support::terminal::certificate;
use crate::support::tls_server::TlsServer;

/// What is named first at an Issuer whose CA answers so.
async fn names_first(cause: &str, answer: &'static str, path: &str, code: i32) -> Value {
    let lab = Lab::new().await;
    let url = format!("http://127.0.0.1:{}{path}", server(Some(answer)));
    let said = lab.order(&[
        lab.issuer(json!({"server": url, "caBundle": null})),
        certificate("web", &[NAME], json!({})),
    ]);
    assert_ne!(said.code, Some(0), "{said:?}");
    lab.names_first(&["issuer/acme"], cause, code)
}

#[tokio::test(flavor = "multi_thread")]
async fn env_01_the_clocks_are_apart() {
    for behaviour in ["clock-ahead", "clock-behind"] {
        let lab = Lab::with(Config::default(), &[behaviour]).await;
        lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
        let first = lab.names_first(&["issuer/acme"], "ENV-01", 10);
        assert!(first["evidence"].as_array().unwrap().len() > 1, "{first:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn env_06_the_ca_calls_itself_otherwise() {
    let directory = json!({
        "newNonce": "https://inner.example/nonce", "newAccount": "https://inner.example/account",
        "newOrder": "https://inner.example/order", "revokeCert": "https://inner.example/revoke",
        "keyChange": "https://inner.example/key",
    });
    let answer = reply("200 OK", "Content-Type: application/json\r\n", &directory.to_string());
    let first = names_first("ENV-06", answer, "/dir", 10).await;
    assert!(first["message"].as_str().unwrap().contains("inner.example"), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn env_08_a_page_answers_in_place_of_the_ca() {
    let html = "Content-Type: text/html\r\n";
    let page = reply("200 OK", html, "<!DOCTYPE html><title>Welcome, log in</title>");
    names_first("ENV-08", page, "/directory", 10).await;
    let portal = reply("302 Found", "Location: http://login.example/\r\n", "");
    names_first("ENV-08", portal, "/directory", 10).await;
    let required = reply("511 Network Authentication Required", html, "<p>log in</p>");
    names_first("ENV-08", required, "/directory", 10).await;
    names_first("CFG-03", page, "/", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lim_08_the_ca_is_down() {
    let page = "<html>502 Bad Gateway</html>";
    names_first("LIM-08", reply("502 Bad Gateway", "Content-Type: text/html\r\n", page), "/dir", 0)
        .await;
    let busy = reply("503 Service Unavailable", "Retry-After: 30\r\n", "");
    names_first("LIM-07", busy, "/dir", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ord_07_the_ca_has_ended_the_authorization() {
    let lab = Lab::with(Config::default(), &["authorization-deactivated=1000"]).await;
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let first = lab.names_first(&["web"], "ORD-07", 10);
    assert!(first["message"].as_str().unwrap().contains("deactivated"), "{first:#}");
}

/// A certificate that was issued, and where its name leads now.
async fn issued(issuer: Value, spec: Value) -> Lab {
    let lab = Lab::new().await;
    lab.issue(&[lab.issuer(issuer), certificate("web", &[NAME], spec)]);
    lab
}

#[tokio::test(flavor = "multi_thread")]
async fn ord_12_another_certificate_is_served() {
    let lab = issued(json!({}), json!({})).await;
    let other = TlsServer::start(Router::new());
    let resolve = format!("--tls-alpn-resolve=*=127.0.0.1:{}", other.port);
    let first = lab.names_first(&["certificate/web", &resolve], "ORD-12", 0);
    assert_eq!(first["grade"], "certain", "it is for another name: {first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ord_13_the_preferred_chain_is_absent() {
    let lab = issued(json!({"preferredChain": "A root of old"}), json!({})).await;
    let first = lab.names_first(&["certificate/web"], "ORD-13", 0);
    assert!(first["message"].as_str().unwrap().contains("A root of old"), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hyg_06_the_renewal_comes_too_late_or_never_begins() {
    let lab = issued(json!({}), json!({"renewBefore": "5m"})).await;
    lab.names_first(&["certificate/web"], "HYG-06", 0);

    let mut lab = issued(json!({}), json!({})).await;
    lab.target = lab.terminal.http_port;
    let (said, report) = lab.diagnose(&[]);
    lab::names_none(&report, "a certificate whose renewal is far");
    assert_eq!(said.code, Some(0), "{report:#}");
    // Nobody has run a command for long: the Certificate still says that it is Ready.
    let later = Timestamp::now() + SignedDuration::from_hours(24 * 75);
    lab.terminal.set("KUBECTL_ACME_NOW", format!("{later:.0}"));
    // Of a window that is over, that would be told first.
    let window = (later, later + SignedDuration::from_hours(24));
    lab.ca.server.move_windows(window, "");
    let first = lab.names_first(&[], "HYG-06", 0);
    assert!(first["message"].as_str().unwrap().contains("no controller has begun it"), "{first:#}");
}

/// Who issues by acme-dns whose server is this.
async fn by_acme_dns(port: u16) -> Lab {
    let lab = Lab::new().await;
    let account = json!({NAME: {
        "fulldomain": "x.auth.example", "subdomain": "x", "username": "u", "password": "p",
    }});
    let solver = json!({"dns01": {"acmeDNS": {
        "host": format!("http://127.0.0.1:{port}"),
        "accountSecretRef": {"name": "acme-dns", "key": "accounts.json"},
    }}});
    let said = lab.order(&[
        crate::support::terminal::secret("acme-dns", "accounts.json", &account.to_string()),
        lab.issuer(json!({"solvers": [solver]})),
        certificate("web", &[NAME], json!({})),
    ]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let challenges = lab.terminal.objects("challenges");
    assert_eq!(challenges.len(), 1, "{said:?}");
    lab
}

#[tokio::test(flavor = "multi_thread")]
async fn prv_14_the_api_of_the_provider_is_not_reached() {
    let lab = by_acme_dns(crate::support::bed::free_port()).await;
    lab.names_first(&["web"], "PRV-14", 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn prv_12_the_api_of_the_provider_is_busy() {
    let busy = reply("429 Too Many Requests", "Retry-After: 120\r\n", "");
    let lab = by_acme_dns(server(Some(busy))).await;
    lab.names_first(&["web"], "PRV-12", 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_silent_keeps_nobody_from_being_named() {
    let mut terminal = crate::support::terminal::Terminal::elsewhere();
    let name_server = UdpSocket::bind("127.0.0.1:0").unwrap();
    terminal.set("KUBECTL_ACME_DNS", name_server.local_addr().unwrap());
    let url = format!("https://127.0.0.1:{}/directory", server(None));
    let issuer = crate::support::terminal::issuer(&url, "", json!({"caBundle": null}));
    terminal.manifests(&[issuer, certificate("web", &[NAME], json!({}))]);
    let listen = format!("--http01-listen=127.0.0.1:{}", terminal.http_port);
    let said = terminal.run(&["diagnose", "-f", "manifests.yaml", "-o", "json", &listen]);
    let report: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    lab::names_first(&report, "ENV-03");
    let found = report["findings"].as_array().unwrap();
    let of_name = found.iter().find(|finding| finding["subject"] == NAME);
    let asked = of_name.map(|finding| finding["evidence"][0]["asked"].clone());
    assert_eq!(asked, Some(json!(format!("A and AAAA of {NAME}"))), "{report:#}");
}
