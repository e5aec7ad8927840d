//! Causes that need nothing but loopback, and set-ups that are well.

use std::fs;
use std::net::TcpListener;

use kubectl_acme::ca::Config;
use kubectl_acme::model::DnsName;
use serde_json::{Value, json};

use super::{Lab, NAME, reply, server};
use crate::support::bed::free_port;
use crate::support::lab;
use crate::support::terminal::{Terminal, certificate, secret};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_issued_has_no_fault() {
    let lab = Lab::new().await;
    let documents = [lab.issuer(json!({})), certificate("web", &[NAME], json!({}))];
    lab.issue(&documents);
    let (said, report) = lab.diagnose(&["certificate/web"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    lab::names_first(&report, "ORD-01");
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1), "{report:#}");
    let all = lab.terminal.run(&["diagnose"]);
    assert_eq!((all.code, all.stdout.as_str()), (Some(0), ""), "{all:?}");
    assert!(all.stderr.contains("every Certificate is ready"), "{all:?}");
    let before = lab.ca.server.statistics();
    let issuer = lab.diagnose(&["issuer/acme"]).0;
    assert_eq!(issuer.code, Some(0), "{issuer:?}");
    let asked = |of: &str| (before.of(of), lab.ca.server.statistics().of(of));
    for deed in ["newOrder", "newAccount", "challenge"] {
        let (before, after) = asked(deed);
        assert_eq!(before, after, "diagnose has spent a {deed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_05_nobody_listens() {
    let mut lab = Lab::new().await;
    let port = free_port();
    lab.stuck_at(port);
    let first = lab.names_first(&["web"], "HTTP-05", 10);
    assert_eq!(first["subject"], NAME);
    assert_eq!(first["grade"], "likely", "from one place only");
    assert!(first["message"].as_str().unwrap().contains(&port.to_string()), "{first:#}");
    // A word of any object of the chain leads there, and so does the domain.
    for words in [&["order/web"][..], &[NAME], &["challenge/web"], &[]] {
        lab.names_first(words, "HTTP-05", 10);
    }
    assert_eq!(lab.ca.server.statistics().of("challenge"), 0, "nothing was accepted");
}

/// Whoever answers in place of our own listener is named by what it says.
async fn check_server(cause: &str, answer: Option<&'static str>) {
    let mut lab = Lab::new().await;
    lab.stuck_at(server(answer));
    lab.names_first(&["web"], cause, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn http_16_it_is_forbidden() {
    check_server("HTTP-16", Some(reply("403 Forbidden", "", "no"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_16_a_password_is_asked_for() {
    check_server("HTTP-16", Some(reply("401 Unauthorized", "", "who?"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_32_the_server_fails() {
    check_server("HTTP-32", Some(reply("502 Bad Gateway", "", "away"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_22_the_page_of_a_shop_is_there() {
    check_server("HTTP-22", Some(reply("200 OK", "", "<!DOCTYPE html><title>shop</title>"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_15_a_redirect_leads_to_another_port() {
    check_server(
        "HTTP-15",
        Some(reply("302 Found", "Location: http://www.example.com:8443/\r\n", "")),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_20_another_protocol_is_spoken() {
    check_server("HTTP-20", Some("SSH-2.0-OpenSSH_9.2p1\r\n")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_20_the_page_says_that_the_port_is_for_tls() {
    for page in [
        "<center>The plain HTTP request was sent to HTTPS port</center>",
        "Client sent an HTTP request to an HTTPS server.\n",
    ] {
        check_server("HTTP-20", Some(reply("400 Bad Request", "", page))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_31_the_server_is_silent() {
    check_server("HTTP-31", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_03_another_server_does_not_have_the_answer() {
    let mut lab = Lab::new().await;
    lab.stuck_at(server(Some(reply("404 Not Found", "", "not here"))));
    let first = lab.names_first(&["web"], "HTTP-03", 10);
    assert_eq!(first["grade"], "likely", "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_leads_here_is_well_though_nobody_issues_now() {
    let mut lab = Lab::new().await;
    lab.stuck_at(free_port());
    lab.target = lab.terminal.http_port;
    let (said, report) = lab.diagnose(&["web"]);
    lab::names_none(&report, "nobody issues now, and the way leads here");
    assert_eq!(said.code, Some(0), "{report:#}");
    assert!(said.stderr.contains("no controller is running"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn http_34_the_port_is_taken() {
    let mut lab = Lab::new().await;
    lab.stuck_at(free_port());
    let _taken = TcpListener::bind(("127.0.0.1", lab.terminal.http_port)).unwrap();
    lab.names_first(&["web"], "HTTP-34", 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_01_the_issuer_is_gone() {
    let mut lab = Lab::new().await;
    lab.stuck_at(free_port());
    let deleted = lab.terminal.run(&["delete", "issuer", "acme"]);
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    lab.names_first(&["web"], "CFG-01", 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_the_ca_is_named_at_its_issuer() {
    let lab = Lab::new().await;
    let nowhere = format!("https://127.0.0.1:{}/directory", free_port());
    let wrong = lab.ca.server.directory_url().replace("/directory", "/nothing");
    for (cause, more) in [
        ("ENV-03", json!({"server": nowhere})),
        ("CFG-03", json!({"server": wrong})),
        ("ENV-02", json!({"caBundle": null})),
    ] {
        let lab = Lab::new().await;
        let more = if cause == "CFG-03" {
            json!({"server": lab.ca.server.directory_url().replace("/directory", "/nothing")})
        } else {
            more
        };
        let said = lab.order(&[lab.issuer(more), certificate("web", &[NAME], json!({}))]);
        assert_ne!(said.code, Some(0), "{said:?}");
        lab.names_first(&["web"], cause, 10);
        lab.names_first(&["issuer/acme"], cause, 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_ca_refuses_is_named_by_its_word() {
    let blocked = vec![DnsName::parse(NAME).unwrap()];
    for (cause, config, behaviours) in [
        ("CFG-13", Config { blocked, ..Config::default() }, &[][..]),
        ("ACC-07", Config::default(), &["external-account-required"][..]),
    ] {
        let lab = Lab::with(config, behaviours).await;
        let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
        assert_ne!(said.code, Some(0), "{said:?}");
        lab.names_first(&["web"], cause, 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_15_the_ca_does_not_offer_the_type() {
    let lab = Lab::with(Config::default(), &["http-01-not-offered"]).await;
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_ne!(said.code, Some(0), "{said:?}");
    lab.names_first(&["web"], "CFG-15", 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn ord_09_the_ca_is_still_issuing() {
    let lab = Lab::with(Config::default(), &["order-processing"]).await;
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_eq!(said.code, Some(124), "{said:?}");
    let first = lab.names_first(&["web"], "ORD-09", 0);
    assert_eq!(first["grade"], "possible", "it may come by itself: {first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_09_the_ca_does_not_have_the_profile() {
    let lab = Lab::new().await;
    let issuer = lab.issuer(json!({"profile": "tlsclient"}));
    let said = lab.order(&[issuer, certificate("web", &[NAME], json!({}))]);
    assert_eq!(said.code, Some(2), "{said:?}");
    lab.names_first(&["web"], "CFG-09", 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn acc_06_the_account_key_is_none() {
    let lab = Lab::new().await;
    let key = secret("acme-account", "tls.key", "no key");
    let said = lab.order(&[key, lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_ne!(said.code, Some(0), "{said:?}");
    lab.names_first(&["web"], "ACC-06", 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_observed_can_be_sent_and_judged_elsewhere() {
    let mut lab = Lab::new().await;
    lab.stuck_at(free_port());
    let (_, here) = lab.diagnose(&["web", "--bundle=bundle.json"]);
    let bundle = fs::read_to_string(lab.terminal.path("bundle.json")).unwrap();
    let challenge = &lab.terminal.objects("challenges")[0]["spec"];
    for proof in ["token", "key"] {
        assert!(!bundle.contains(challenge[proof].as_str().unwrap()), "{proof} is in {bundle}");
    }
    assert!(!bundle.contains("PRIVATE KEY"), "{bundle}");
    let elsewhere = Terminal::elsewhere();
    let path = lab.terminal.path("bundle.json");
    let from = format!("--from={}", path.display());
    let said = elsewhere.run(&["diagnose", &from, "-o", "json"]);
    let there: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    let causes = |report: &Value| -> Vec<Value> {
        report["findings"].as_array().unwrap().iter().map(|f| f["cause"].clone()).collect()
    };
    assert_eq!((causes(&there), said.code), (causes(&here), Some(10)));
    let none = elsewhere.run(&["diagnose", "--from=absent.json"]);
    assert_eq!(none.code, Some(2), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_needs_no_objects_and_no_store() {
    let lab = Lab::new().await;
    let mut bare = Terminal::elsewhere();
    bare.set("KUBECTL_ACME_LOCAL", "0");
    let port = free_port();
    let resolve = format!("--http01-resolve=*=127.0.0.1:{port}");
    let said = bare.run(&["diagnose", NAME, &resolve]);
    assert_eq!(said.code, Some(10), "{said:?}");
    assert!(said.stdout.starts_with("HTTP-05  error, likely\n"), "{said:?}");
    assert!(said.stderr.contains("objects were not checked"), "{said:?}");
    let well = server(Some(reply("404 Not Found", "", "no such token")));
    let resolve = format!("--http01-resolve=*=127.0.0.1:{well}");
    let said = bare.run(&["diagnose", NAME, &resolve]);
    assert_eq!(said.code, Some(0), "a server that does not know the token is well: {said:?}");
    let never = bare.run(&["diagnose", "printer.local", &resolve, "-o", "json"]);
    let report = serde_json::from_str(&never.stdout).unwrap_or_else(|_| panic!("{never:?}"));
    lab::names_first(&report, "CFG-12");
    drop(lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told_as_everywhere() {
    let lab = Lab::new().await;
    let said = lab.terminal.run(&["diagnose", "certificate/absent"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("\"absent\" not found"), "{said:?}");
    let kind = lab.terminal.run(&["diagnose", "secret/web"]);
    assert_eq!(kind.code, Some(1), "{kind:?}");
    assert!(kind.stderr.contains("Secret \"web\" not found"), "{kind:?}");
    let event = lab.terminal.run(&["diagnose", "event/web"]);
    assert_eq!(event.code, Some(2), "{event:?}");
}
