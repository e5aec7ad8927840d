//! `certificate show`: certificates of a store, of files and of TLS servers that were really issued and really listen.

use std::fs;
use std::path::Path;

use axum::Router;
use kubectl_acme::acme::inspection::{InspectedChain, Material};
use kubectl_acme::ca::Config;
use kubectl_acme::model::certificate_report::{
    CertificateReport, CertificateSource, ChainEnd, ReportedCertificate, ReportedResource,
    ReportedRevocation, ReportedServer, ReportedWindow, RevocationState, RootsOrigin, SourceKind,
    WindowState,
};
use kubectl_acme::model::{Key, Kind, ObjectName};
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Part, Store as _};
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use serde_json::{Value, json};

use crate::support::ca::TestCa;
use crate::support::program;
use crate::support::reports;
use crate::support::terminal::{Said, Terminal, certificate, issuer};
use crate::support::tls_server::TlsServer;

/// The one certificate of a report.
fn only(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&report["kind"], said.stderr.as_str()), (&json!("CertificateReport"), ""));
    assert_eq!(report["certificates"].as_array().unwrap().len(), 1);
    let rows = reports::rows("CertificateReport");
    let known = reports::fields(&report).into_iter().all(|(path, kind)| {
        rows.get(&path).is_some_and(|row| kind.is_empty() || row.0 == kind || row.0 == "time")
    });
    assert!(known, "docs/reports.md: {:?}", reports::fields(&report));
    report["certificates"][0].clone()
}

fn show(terminal: &Terminal, words: &[&str]) -> Value {
    only(&terminal.run(&[&["certificate", "show"], words, &["-o", "json"]].concat()))
}

/// The line of a label in a sheet.
fn line(sheet: &str, label: &str) -> String {
    let label = format!("{label}:");
    let line = sheet.lines().find_map(|line| line.strip_prefix(&label));
    line.unwrap_or_else(|| panic!("no {label}\n{sheet}")).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issued_certificate_is_compared_with_its_key_and_with_what_was_asked_for() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let mut terminal = Terminal::elsewhere();
    terminal.http_port = ca.http01.port();
    let (url, root) = (ca.server.directory_url(), ca.server.tls_root_pem());
    terminal.order(&[
        issuer(&url, root, json!({})),
        certificate("web", &["www.example.com", "example.com"], json!({})),
    ]);
    let seen = show(&terminal, &["web"]);
    assert_eq!(
        seen["source"],
        json!({"kind": "Certificate", "namespace": "default", "name": "web"})
    );
    assert_eq!(seen["names"]["dns"], json!(["example.com", "www.example.com"]));
    assert_eq!(seen["key"], json!({"algorithm": "ECDSA", "size": 256}));
    assert_eq!((&seen["keyMatches"], &seen["testCA"]), (&json!(true), &json!("kubectl-acme ca")));
    let signed = seen["chain"].as_array().unwrap().iter().map(|link| &link["signedByNext"]);
    assert_eq!(signed.collect::<Vec<_>>(), [&json!(true), &Value::Null]);
    assert_eq!(seen["root"], "notIncluded");
    let resource = &seen["resource"];
    assert_eq!((&resource["secretName"], &resource["revision"]), (&json!("web-tls"), &json!(1)));
    let asked = ["namesAsAsked", "keyAsAsked", "issuerAsAsked"].map(|part| &resource[part]);
    assert_eq!((asked, &resource["due"]), ([&json!(true); 3], &Value::Null));
    // The same pair as a Secret and as files.
    for words in [&["secret/web-tls"][..], &["out/web-tls"]] {
        let same = show(&terminal, words);
        assert_eq!(same["fingerprints"], seen["fingerprints"], "{words:?}");
        assert_eq!(same["keyMatches"], true, "{words:?}");
    }
    let lone = show(&terminal, &["out/web-tls/tls.crt"]);
    assert_eq!(lone["keyMatches"], Value::Null);
    let with = show(&terminal, &["out/web-tls/tls.crt", "--key", "out/web-tls/tls.key"]);
    assert_eq!(with["keyMatches"], true);
    let serial = terminal.pair("web-tls").leaf(&["-serial"]).to_lowercase();
    assert_eq!(serial.trim(), format!("serial={}", seen["serialNumber"].as_str().unwrap()));
    let digest = terminal.pair("web-tls").leaf(&["-fingerprint", "-sha256"]).to_lowercase();
    let digest = digest.trim().replace(':', "");
    assert!(digest.ends_with(seen["fingerprints"]["sha256"].as_str().unwrap()), "{digest}");

    // Somebody changes what is asked for, and nobody drives.
    let store = LocalStore::open(&terminal.path("state"), Access::ReadWrite).unwrap();
    let key = Key::new(Kind::Certificate, ObjectName::new("default", "web"));
    let mut record = store.get(&key).await.unwrap().unwrap();
    record.object["spec"]["dnsNames"] = json!(["www.example.com"]);
    record.object["spec"]["privateKey"] = json!({"algorithm": "RSA"});
    record.object["spec"]["issuerRef"] = json!({"name": "other"});
    store.replace(record, Part::Whole).await.unwrap();
    drop(store);
    let said = terminal.run(&["certificate", "show", "web"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let another = "NO: another names, another key, another issuer";
    assert_eq!(line(&said.stdout, "As Asked For"), another);
    assert!(line(&said.stdout, "Due").starts_with("now: "), "{said:?}");
    assert_eq!(line(&said.stdout, "Key Matches"), "yes");
    assert!(!said.stdout.contains("PRIVATE KEY"), "{said:?}");
}

/// Runs the program on no store at all, with its words and a file or two in its folder.
fn look(folder: &Path, words: &[&str]) -> Said {
    let mut program = program::command();
    program.current_dir(folder).args(["certificate", "show"]).args(words);
    program.output().unwrap().into()
}

#[test]
fn a_server_shows_its_certificate_and_clients_judge_it() {
    let server = TlsServer::start(Router::new());
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("root.pem"), &server.ca).unwrap();
    let place = format!("localhost:{}", server.port);
    let words = |more: &[&str]| -> Vec<String> {
        [&[place.as_str()], more].concat().iter().map(|word| (*word).to_owned()).collect()
    };
    let report = |more: &[&str]| {
        let words = words(&[more, &["-o", "json"]].concat());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        only(&look(folder.path(), &words))
    };
    let seen = report(&["--ca-bundle", "root.pem"]);
    assert_eq!(seen["source"], json!({"kind": "Server", "name": place}));
    assert_eq!(seen["names"]["dns"], json!(["localhost"]));
    assert_eq!(
        (&seen["keyMatches"], &seen["chain"][0]["selfSigned"]),
        (&json!(true), &json!(false))
    );
    let of_server = json!({
        "address": format!("127.0.0.1:{}", server.port), "serverName": "localhost",
        "protocol": "TLS 1.3", "roots": "file", "verified": true, "fitsName": true,
    });
    assert_eq!(seen["server"], of_server);
    let other = report(&["--ca-bundle", "root.pem", "--servername", "www.example.com"]);
    let fault = json!("it is for another name");
    assert_eq!(
        (&other["server"]["fitsName"], &other["server"]["verifyFault"]),
        (&json!(false), &fault)
    );
    // Whatever roots this machine has, this is none of theirs.
    let stranger = report(&[]);
    let judged = ["roots", "verified", "fitsName"].map(|field| &stranger["server"][field]);
    assert_eq!(judged, [&json!("platform"), &json!(false), &json!(true)]);
    let mut program = program::command();
    program.env("SSL_CERT_FILE", folder.path().join("root.pem"));
    program.args(["certificate", "show", &place]);
    let said = Said::from(program.output().unwrap());
    assert_eq!(line(&said.stdout, "Verified"), "yes, by this machine's roots", "{said:?}");
}

#[test]
fn a_server_that_is_not_there_is_told_and_the_others_are_shown() {
    let server = TlsServer::start(Router::new());
    let there = format!("127.0.0.1:{}", server.port);
    let folder = tempfile::tempdir().unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap().to_string();
    let said = look(folder.path(), &["127.0.0.1:1", &silent, &there, "--timeout=300ms"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(line(&said.stdout, "Server"), there);
    assert_eq!(line(&said.stdout, "Server Name"), "127.0.0.1");
    let refused =
        "error: cannot show the certificate of 127.0.0.1:1: connection refused by 127.0.0.1:1\n";
    assert!(said.stderr.contains(refused), "{said:?}");
    assert!(said.stderr.contains("it showed no certificate within 0.3 s"), "{said:?}");
}

#[test]
fn a_hostile_certificate_neither_ends_nor_steers_anything() {
    let rude = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\nKey Matches:\tyes";
    let names: Vec<String> =
        (0..10_000).map(|n| format!("n{n}.{}.example", "x".repeat(60))).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, rude);
    params.distinguished_name.push(DnType::OrganizationName, "o".repeat(300_000));
    params.subject_alt_names.push(SanType::DnsName(rude.try_into().unwrap()));
    let own = KeyPair::generate().unwrap();
    let made = params.self_signed(&own).unwrap();
    assert!(made.der().len() > 1_000_000);
    let folder = tempfile::tempdir().unwrap();
    let other = KeyPair::generate().unwrap().serialize_pem();
    fs::write(folder.path().join("rude.pem"), made.pem() + &other).unwrap();
    fs::write(folder.path().join("rude.der"), made.der()).unwrap();
    for file in ["rude.pem", "rude.der"] {
        let said = look(folder.path(), &[file]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
        let steers = |c: char| c.is_control() && c != '\n';
        assert!(
            !said.stdout.contains(steers) && said.stdout.len() < 30_000,
            "{}",
            said.stdout.len()
        );
        let matches = said.stdout.matches("\nKey Matches:").count();
        assert_eq!(matches, usize::from(file == "rude.pem"), "{}", said.stdout);
    }
    let seen = only(&look(folder.path(), &["rude.pem", "-o", "json"]));
    assert_eq!(seen["names"]["dns"].as_array().unwrap().len(), 10_001);
    assert_eq!((&seen["keyMatches"], &seen["commonName"]), (&json!(false), &json!(rude)));
}

/// A report with every field, and one without those that may be absent.
fn reports() -> [Value; 2] {
    let pem = include_bytes!("../../fixtures/certificates/www.example.com.pem");
    let found = Material::find(pem).unwrap();
    let now = "2026-11-24T12:00:00Z".parse().unwrap();
    let read = InspectedChain::read(&found.certificates, now).unwrap();
    let mut whole = ReportedCertificate {
        source: CertificateSource {
            kind: SourceKind::Certificate,
            namespace: Some("default".to_owned()),
            name: "web".to_owned(),
        },
        content: read.content,
        key_matches: Some(false),
        key_fault: Some("why".to_owned()),
        chain: read.links,
        root: ChainEnd::NotIncluded,
        resource: Some(ReportedResource {
            secret_name: "web-tls".to_owned(),
            revision: Some(1),
            renewal_time: Some(now.into()),
            due: Some("why".to_owned()),
            names_as_asked: true,
            key_as_asked: Some(true),
            issuer_as_asked: true,
        }),
        server: Some(ReportedServer {
            address: "192.0.2.1:443".to_owned(),
            server_name: "www.example.com".to_owned(),
            protocol: Some("TLS 1.3".to_owned()),
            handshake_fault: Some("why".to_owned()),
            roots: RootsOrigin::Platform,
            verified: false,
            verify_fault: Some("why".to_owned()),
            distrust: None,
            fits_name: true,
        }),
        revocation: Some(ReportedRevocation {
            state: RevocationState::Revoked,
            url: Some("http://ca.example/1.crl".to_owned()),
            at: Some(now.into()),
            reason: Some("keyCompromise"),
            next_update: Some(now.into()),
            why: Some("why".to_owned()),
        }),
        renewal_window: Some(ReportedWindow {
            state: WindowState::Past,
            start: Some(now.into()),
            end: Some(now.into()),
            explanation: Some("https://ca.example/why".to_owned()),
            why: Some("why".to_owned()),
        }),
    };
    whole.content.test_authority = Some("Pebble");
    whole.content.faults = vec!["why".to_owned()];
    let mut bare = whole.clone();
    bare.source.namespace = None;
    bare.content.test_authority = None;
    bare.content.faults.clear();
    bare.content.key.size = None;
    (bare.key_matches, bare.key_fault, bare.resource, bare.server) = (None, None, None, None);
    (bare.revocation, bare.renewal_window) = (None, None);
    bare.chain.iter_mut().for_each(|link| link.signed_by_next = None);
    [whole, bare].map(|certificate| json!(CertificateReport::new(vec![certificate])))
}

#[test]
fn the_page_of_reports_tells_every_field_and_its_type() {
    reports::is_told("CertificateReport", &reports());
}
