//! `order --allow-subset-of-names`: names that lead nowhere are left out, and tried again when it is time.

use kubectl_acme::ca::Config;
use serde_json::{Value, json};

use crate::support::bed::free_port;
use crate::support::ca::TestCa;
use crate::support::terminal::{Said, Terminal, certificate, issuer};

const GOOD: &str = "www.example.com";
/// Where these lead nobody answers: of the first only the CA knows it.
const REFUSED: &str = "refused.example.com";
const SILENT: &str = "silent.example.com";

/// A CA to which one name leads elsewhere.
async fn ca() -> TestCa {
    TestCa::start(Config::default(), |mut fetcher| {
        let nowhere = ("127.0.0.1".parse().unwrap(), Some(free_port()));
        fetcher.overrides.hosts.insert(REFUSED.to_owned(), nowhere);
        fetcher
    })
    .await
}

/// A person at a terminal who orders one certificate for these names.
fn person(ca: &TestCa, names: &[&str]) -> Terminal {
    let mut terminal = Terminal::elsewhere();
    terminal.http_port = ca.http01.port();
    manifests(ca, &terminal, names, json!({"commonName": names[0]}));
    terminal
}

fn manifests(ca: &TestCa, terminal: &Terminal, names: &[&str], spec: Value) {
    let issuer = issuer(&ca.server.directory_url(), ca.server.tls_root_pem(), json!({}));
    terminal.manifests(&[issuer, certificate("web", names, spec)]);
}

fn order(terminal: &Terminal, flags: &[&str]) -> Said {
    order_within(terminal, "60s", flags)
}

fn order_within(terminal: &Terminal, timeout: &str, flags: &[&str]) -> Said {
    let silent = format!("--http01-resolve={SILENT}=127.0.0.1:{}", free_port());
    let rest = format!("--http01-resolve=*=127.0.0.1:{}", terminal.http_port);
    let listen = format!("--http01-listen=127.0.0.1:{}", terminal.http_port);
    let words = ["order", "-f", "manifests.yaml", "--out=out", &silent, &rest, &listen];
    terminal.run(&[&words[..], &["--timeout", timeout], flags].concat())
}

fn names(terminal: &Terminal) -> String {
    terminal.pair("web-tls").leaf(&["-ext", "subjectAltName"])
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_the_ca_refuses_are_left_out_until_the_renewal() {
    let ca = ca().await;
    let terminal = person(&ca, &[REFUSED, GOOD]);
    let said = order(&terminal, &[]);
    assert_eq!(said.code, Some(4), "{said:?}");
    let allowed = ["--allow-subset-of-names"];
    let orders = || ca.server.statistics().of("newOrder");
    let before = orders();
    let said = order(&terminal, &allowed);
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = format!("retrying without {REFUSED}");
    assert!(said.stderr.contains("warning: ") && said.stderr.contains(&told), "{said:?}");
    assert_eq!(orders() - before, 2, "one with all names, one without");
    assert!(names(&terminal).contains(GOOD) && !names(&terminal).contains(REFUSED));
    let stored = terminal.objects("certificates").pop().unwrap();
    assert_eq!(stored["spec"]["dnsNames"], json!([GOOD]));
    assert_eq!(stored["spec"]["commonName"], json!(null));

    // The same command has nothing to do, as often as it is run.
    let before = orders();
    let said = order(&terminal, &allowed);
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = format!(
        "left out until its renewal at {}",
        stored["status"]["renewalTime"].as_str().unwrap()
    );
    assert!(said.stderr.contains(&told) && said.stderr.contains("nothing is due"), "{said:?}");
    assert_eq!(orders(), before);
    // Nor has it when the Secret alone is put right.
    let formats = json!([{"type": "CombinedPEM"}]);
    let more = json!({"commonName": REFUSED, "additionalOutputFormats": formats});
    manifests(&ca, &terminal, &[REFUSED, GOOD], more);
    for _ in 0..2 {
        let said = order(&terminal, &allowed);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stderr.contains(&told), "{said:?}");
    }
    assert!(terminal.path("out/web-tls/tls-combined.pem").exists());
    assert_eq!(orders(), before);
    // Without the flag all names are asked for, and so they are when the manifest asks for others.
    assert_eq!(order(&terminal, &[]).code, Some(4));
    manifests(&ca, &terminal, &[GOOD, "new.example.com", REFUSED], json!({}));
    assert_eq!(order(&terminal, &allowed).code, Some(0));
    assert!(names(&terminal).contains("new.example.com") && !names(&terminal).contains(REFUSED));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_whose_answer_cannot_be_seen_are_left_out_when_time_is_up() {
    let ca = ca().await;
    let terminal = person(&ca, &[GOOD, SILENT]);
    let said = order_within(&terminal, "5s", &["--allow-subset-of-names", "-o", "json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains(&format!("retrying without {SILENT}")), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    let one = &report["certificates"][0];
    assert_eq!((&one["outcome"], &one["leftOut"]), (&json!("issued"), &json!([SILENT])));
    assert!(names(&terminal).contains(GOOD) && !names(&terminal).contains(SILENT));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_which_every_name_fails_is_not_issued() {
    let ca = ca().await;
    let terminal = person(&ca, &[REFUSED]);
    let said = order(&terminal, &["--allow-subset-of-names"]);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert_eq!(ca.server.statistics().of("newOrder"), 1);
    let said = order(&terminal, &["--allow-subset-of-names", "--rehearse-first"]);
    assert_eq!(said.code, Some(2), "{said:?}");
}
