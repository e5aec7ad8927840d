//! `certificate check`: which certificates have to be replaced now, found on our own CA, in a local store, files and servers; and
//! their replacement.

use std::fs;
use std::time::Duration;

use axum::Router;
use jiff::Timestamp;
use kubectl_acme::ca::Config;
use kubectl_acme::model::certificate_check::{
    CertificateCheck, CheckVerdict, CheckedCertificate, CheckedPart, CheckedRenewal,
    CheckedRenewalOutcome, ReplacementCause, ReplacementReason, UnknownPart,
};
use kubectl_acme::model::certificate_report::{
    CertificateSource, ReportedRevocation, ReportedWindow, RevocationState, SourceKind, WindowState,
};
use kubectl_acme::model::{Key, Kind, ObjectName, Time};
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Part, Store as _};
use serde_json::{Value, json};

use crate::support::bed::Server;
use crate::support::ca::TestCa;
use crate::support::reports;
use crate::support::terminal::{Said, Terminal, openssl, site};
use crate::support::tls_server::TlsServer;

/// The report of a command that has ended with that code.
fn report(said: &Said, code: i32) -> Value {
    assert_eq!(said.code, Some(code), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!(report["exitCode"], code, "{report}");
    let rows = reports::rows("CertificateCheck");
    let known = reports::fields(&report).into_iter().all(|(path, kind)| {
        // Of a list without any entry there is its name alone.
        let is_list = rows.keys().any(|row| row.starts_with(&format!("{path}[]")));
        (kind.is_empty() && is_list)
            || rows.get(&path).is_some_and(|it| kind.is_empty() || it.0 == kind || it.0 == "time")
    });
    assert!(known, "docs/reports.md: {:?}", reports::fields(&report));
    report
}

fn check(terminal: &Terminal, words: &[&str], code: i32) -> Value {
    let words = [&["certificate", "check", "-o", "json"], words].concat();
    report(&terminal.run(&words), code)
}

/// The same with `--renew`, which drives.
fn renew(terminal: &Terminal, words: &[&str], code: i32) -> Value {
    let words = [&["certificate", "check", "--renew", "-o", "json"], words].concat();
    report(&terminal.drive(&words), code)
}

/// Names with their first reasons, or their verdicts where there is none.
fn findings(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let certificates = report["certificates"].as_array().unwrap().iter();
    let mut all: Vec<_> = certificates
        .map(|one| {
            let found = one["reasons"].get(0).map_or(&one["verdict"], |first| &first["reason"]);
            (text(&one["source"]["name"]), text(found))
        })
        .collect();
    all.sort();
    all
}

/// What came of replacing each, by name.
fn outcomes(report: &Value) -> Vec<(String, String)> {
    let certificates = report["certificates"].as_array().unwrap().iter();
    let mut all: Vec<_> = certificates
        .filter_map(|one| {
            let outcome = one["renewal"]["outcome"].as_str()?.to_owned();
            Some((one["source"]["name"].as_str().unwrap().to_owned(), outcome))
        })
        .collect();
    all.sort();
    all
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect()
}

/// Certificates for these names, issued.
fn issued(ca: &TestCa, names: &[&str]) -> Terminal {
    let terminal = site(ca, names);
    let said = terminal.drive(&["order", "-f", "manifests.yaml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    terminal
}

fn serial(terminal: &Terminal, secret: &str) -> String {
    let said = terminal.pair(secret).leaf(&["-serial"]);
    said.trim().trim_start_matches("serial=").to_lowercase()
}

async fn change(terminal: &Terminal, name: &str, change: impl FnOnce(&mut Value)) {
    let store = LocalStore::open(&terminal.path("state"), Access::ReadWrite).unwrap();
    let key = Key::new(Kind::Certificate, ObjectName::new("default", name));
    let mut record = store.get(&key).await.unwrap().unwrap();
    change(&mut record.object["spec"]);
    store.replace(record, Part::Whole).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_certificate_is_found_by_the_list_of_its_ca_and_replaced() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = issued(&ca, &["www.example.com", "mail.example.com"]);
    let good = check(&terminal, &[], 0);
    assert_eq!(findings(&good), pairs(&[("mail", "keep"), ("www", "keep")]));
    let revocation = &good["certificates"][0]["revocation"];
    assert_eq!(revocation["state"], "good", "{good}");
    assert_eq!(good["certificates"][0]["renewalWindow"]["state"], "ahead", "{good}");
    // A table shows what has to be done, and there is nothing.
    let said = terminal.run(&["certificate", "check"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""), "{said:?}");
    let none = "2 certificates checked: none has to be replaced as far as is known\n";
    assert_eq!(said.stderr, none);

    let revoked = serial(&terminal, "www-tls");
    assert!(ca.server.revoke(&revoked, 1));
    let found = check(&terminal, &[], 10);
    assert_eq!(findings(&found), pairs(&[("mail", "keep"), ("www", "Revoked")]));
    let first = &found["certificates"][0];
    assert_eq!((&first["serialNumber"], &first["verdict"]), (&json!(revoked), &json!("replace")));
    assert_eq!(first["revocation"]["reason"], "keyCompromise");
    // The CA wants it back by its window, too.
    assert_eq!(first["reasons"][1]["reason"], "RenewalWindow", "{first}");
    let shown = terminal.run(&["certificate", "show", "www"]);
    assert!(shown.stdout.contains("Revoked:         YES, 2"), "{shown:?}");
    assert!(shown.stdout.contains("(OVER: to be renewed now)"), "{shown:?}");

    let said = terminal.run(&["certificate", "check"]);
    assert_eq!(said.code, Some(10), "{said:?}");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{said:?}");
    assert!(
        lines[1].starts_with("www    Revoked   ") && lines[1].chars().count() <= 80,
        "{said:?}"
    );
    assert!(
        said.stderr
            .contains("1 has to be replaced now\nhint: replace the Certificates of the store: ")
    );
    let csv = terminal.run(&["certificate", "check", "-o", "csv"]).stdout;
    assert!(csv.contains(&format!("Certificate,default,www,{revoked},www.example.com,")), "{csv}");
    let lines = terminal.run(&["certificate", "check", "-o", "jsonl"]).stdout;
    let kinds = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(kinds.clone().all(|line| line["kind"] == "CheckedCertificate"), "{lines}");
    assert_eq!(kinds.count(), 2);

    let mail = serial(&terminal, "mail-tls");
    let replaced = renew(&terminal, &[], 0);
    assert_eq!(outcomes(&replaced), pairs(&[("www", "replaced")]));
    assert_ne!(serial(&terminal, "www-tls"), revoked);
    assert_eq!(serial(&terminal, "mail-tls"), mail);
    check(&terminal, &[], 0);
    assert_eq!(ca.server.statistics().of("newOrder"), 3);
    // The same for people, who see the table first and then what is issued.
    assert!(ca.server.revoke(&mail, 4));
    let said = terminal.drive(&["certificate", "check", "mail", "--renew"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.starts_with("NAME   REASON    WHEN"), "{said:?}");
    assert!(said.stdout.contains("READY"), "{said:?}");
    assert_ne!(serial(&terminal, "mail-tls"), mail);
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_windows_are_followed_some_in_an_hour_and_never_twice() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let names = ["a.example.com", "b.example.com", "c.example.com"];
    let terminal = issued(&ca, &names);
    let hours =
        |hours: i64| Timestamp::now().checked_add(jiff::SignedDuration::from_hours(hours)).unwrap();
    // What was issued a moment ago would be renewed in vain: its CA has not noticed yet.
    ca.server.move_windows((hours(-2), hours(-1)), "https://ca.test/drill");
    let fresh = renew(&terminal, &[], 10);
    assert_eq!(outcomes(&fresh), pairs(&[("a", "heldBack"), ("b", "heldBack"), ("c", "heldBack")]));
    assert_eq!(ca.server.statistics().of("newOrder"), 3);
    // A day later.
    let aged = |terminal: &Terminal| {
        let database = rusqlite::Connection::open(terminal.path("state").join("state.db")).unwrap();
        let day_before =
            (Timestamp::now() - Duration::from_hours(24)).strftime("%Y-%m-%dT%H:%M:%SZ");
        let changed = database.execute(
            "UPDATE object SET body = json_set(body, '$.metadata.creationTimestamp', ?1) WHERE kind = 'CertificateRequest'",
            [day_before.to_string()],
        );
        assert!(changed.unwrap() > 0);
    };
    aged(&terminal);
    let found = check(&terminal, &[], 10);
    assert_eq!(found["certificates"][0]["reasons"][0]["reason"], "RenewalWindow", "{found}");
    let detail = "its CA says why: https://ca.test/drill";
    assert_eq!(found["certificates"][0]["reasons"][0]["detail"], detail);

    let most = renew(&terminal, &["--max-per-hour", "2"], 10);
    let expected = [("a", "replaced"), ("b", "replaced"), ("c", "heldBack")];
    assert_eq!(outcomes(&most), pairs(&expected));
    assert_eq!(ca.server.statistics().of("newOrder"), 5);
    // The bound holds for whoever asks again.
    for _ in 0..2 {
        let again = renew(&terminal, &["--max-per-hour", "2"], 10);
        assert_eq!(outcomes(&again), pairs(&[("c", "heldBack")]));
    }
    assert_eq!(ca.server.statistics().of("newOrder"), 5);
    let rest = renew(&terminal, &["--max-per-hour", "3"], 0);
    assert_eq!(outcomes(&rest), pairs(&[("c", "replaced")]));
    assert_eq!(ca.server.statistics().of("newOrder"), 6);
    check(&terminal, &[], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_longer_as_asked_for_is_found_and_what_cannot_be_found_out_is_told() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = issued(&ca, &["www.example.com", "key.example.com", "good.example.com"]);
    change(&terminal, "www", |spec| spec["dnsNames"] = json!(["other.example.com"])).await;
    change(&terminal, "key", |spec| spec["privateKey"] = json!({"algorithm": "RSA"})).await;
    let found = check(&terminal, &[], 10);
    let expected = [("good", "keep"), ("key", "KeyDiffers"), ("www", "NamesDiffer")];
    assert_eq!(findings(&found), pairs(&expected));
    let one = check(&terminal, &["good"], 0);
    assert_eq!(findings(&one), pairs(&[("good", "keep")]));
    // A Secret and the same chain in a file.
    check(&terminal, &["secret/good-tls", "out/good-tls"], 0);

    // By a list of numbers that the CA has announced.
    let number = serial(&terminal, "good-tls");
    terminal
        .write("serials.txt", &format!("# of an incident\n0x{}\nAB:CD\n", number.to_uppercase()));
    let listed = check(&terminal, &["--serials", "serials.txt"], 10);
    assert_eq!(findings(&listed), pairs(&[("good", "Listed")]));

    let TestCa { server, .. } = ca;
    server.stop().await;
    let unknown = check(&terminal, &["good", "out/good-tls"], 11);
    assert_eq!(findings(&unknown), pairs(&[("good", "unknown"), ("out/good-tls", "unknown")]));
    let parts: Vec<&Value> = unknown["certificates"][0]["unknown"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unknown| &unknown["part"])
        .collect();
    assert_eq!(parts, ["revocation", "renewalWindow"], "{unknown}");
    let said = terminal.run(&["certificate", "check", "good"]);
    assert!(said.stdout.contains("(not known)   in "), "{said:?}");
    assert!(said.stderr.ends_with("far as is known; not everything is known of 1\n"), "{said:?}");
    let shown = terminal.run(&["certificate", "show", "good"]);
    assert!(shown.stdout.contains("Revoked:         not known: http://127.0.0.1:"), "{shown:?}");
    let offline = terminal.run(&["certificate", "show", "good", "--offline"]);
    assert!(!offline.stdout.contains("Revoked:"), "{offline:?}");
}

#[test]
fn hosts_are_looked_at_without_any_store_and_weak_keys_in_files_are_told() {
    let server = TlsServer::start(Router::new());
    let terminal = Terminal::elsewhere();
    let place = format!("localhost:{}", server.port);
    let closed = format!("127.0.0.1:{}", crate::support::bed::free_port());
    terminal.write("hosts.txt", &format!("{place}\n\n{closed} # nobody\n"));
    let stateless = |words: &[&str]| -> Said {
        let mut command = terminal.command(&[&["certificate", "check"], words].concat());
        command.env_remove("KUBECTL_ACME_LOCAL").output().unwrap().into()
    };
    terminal.write("root.pem", &server.ca);
    let hosts = ["--hosts", "hosts.txt", "--ca-bundle", "root.pem", "-o", "json"];
    let seen = report(&stateless(&hosts), 11);
    let mut expected = pairs(&[(&place, "keep"), (&closed, "unknown")]);
    expected.sort();
    assert_eq!(findings(&seen), expected);

    let (key, weak) = (terminal.path("weak.key"), terminal.path("weak.pem"));
    let arguments =
        ["req", "-x509", "-newkey", "rsa:1024", "-nodes", "-days", "30", "-subj", "/CN=a"];
    let files = ["-keyout", key.to_str().unwrap(), "-out", weak.to_str().unwrap()];
    openssl(&[&arguments[..], &files].concat());
    let seen = report(&stateless(&["weak.pem", "-o", "json"]), 10);
    assert_eq!(findings(&seen), pairs(&[("weak.pem", "WeakKey")]));
}

/// A TLS server that shows a certificate, and what stands in `above.pem` where that is to be shown, too; until it goes.
fn shows(terminal: &Terminal, name: &str, with_above: bool) -> (Server, String) {
    let port = crate::support::bed::free_port();
    let mut command = std::process::Command::new("openssl");
    command.args(["s_server", "-www", "-accept", &port.to_string()]);
    command.arg("-cert").arg(terminal.path(&format!("{name}.pem")));
    command.arg("-key").arg(terminal.path(&format!("{name}.key")));
    if with_above {
        command.arg("-cert_chain").arg(terminal.path("above.pem"));
    }
    let server = Server::start(&command, &terminal.path(&format!("{port}.log")));
    crate::support::cluster::eventually("a TLS server", || {
        std::net::TcpStream::connect(("localhost", port)).ok()
    });
    (server, format!("localhost:{port}"))
}

/// Makes a key and a certificate for `localhost` that another one has signed.
fn sign(terminal: &Terminal, name: &str, signer: Option<&str>, more: &[&str]) {
    let [key, pem] = ["key", "pem"].map(|end| terminal.path(&format!("{name}.{end}")));
    let subject = format!("/CN={name}");
    let mut words =
        vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    words.extend(["-nodes", "-subj", &subject, "-keyout", key.to_str().unwrap()]);
    words.extend(["-out", pem.to_str().unwrap()]);
    let by = signer.map(|by| ["pem", "key"].map(|end| terminal.path(&format!("{by}.{end}"))));
    if let Some([pem, key]) = &by {
        words.extend(["-CA", pem.to_str().unwrap(), "-CAkey", key.to_str().unwrap()]);
    }
    openssl(&[&words[..], more].concat());
}

#[test]
fn what_clients_refuse_of_a_server_is_a_verdict() {
    let terminal = Terminal::elsewhere();
    let host = ["-addext", "subjectAltName=DNS:localhost", "-days", "90"];
    let leaf = [&host[..], &["-addext", "basicConstraints=critical,CA:FALSE"]].concat();
    sign(&terminal, "root", None, &["-days", "900"]);
    let above = ["-days", "400", "-addext", "basicConstraints=critical,CA:TRUE"];
    sign(&terminal, "above", Some("root"), &above);
    sign(&terminal, "alone", Some("above"), &leaf);
    let other = ["subjectAltName=DNS:other.example", "basicConstraints=critical,CA:FALSE"];
    let other = ["-days", "90", "-addext", other[0], "-addext", other[1]];
    sign(&terminal, "other", Some("root"), &other);
    sign(&terminal, "own", None, &host);
    sign(&terminal, "private", Some("root"), &leaf);
    sign(
        &terminal,
        "astray",
        None,
        &["-addext", "subjectAltName=DNS:other.example", "-days", "90"],
    );
    let cases = [
        ("alone", Some("root"), "ChainIncomplete", 10),
        ("alone, with what is above", Some("root"), "keep", 0),
        ("private", Some("root"), "keep", 0),
        ("private", None, "NotTrusted", 10),
        ("other", Some("root"), "NamesDiffer", 10),
        ("own", Some("root"), "NotTrusted", 10),
        ("own", Some("own"), "keep", 0),
        ("own", None, "NotTrusted", 10),
        ("astray", Some("astray"), "NamesDiffer", 10),
    ];
    for (chain, roots, expected, code) in cases {
        let name = chain.split(',').next().unwrap_or(chain);
        let (_server, place) = shows(&terminal, name, name != chain);
        let mut words = vec![place.clone()];
        words.extend(roots.map(|roots| format!("--ca-bundle={roots}.pem")));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let seen = check(&terminal, &words, code);
        assert_eq!(findings(&seen), pairs(&[(&place, expected)]), "{chain} {roots:?} {seen:#}");
        let reasons = seen["certificates"][0]["reasons"].as_array().unwrap();
        assert!(reasons.len() <= 1, "{chain} {roots:?}: one reason is told once: {seen:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_and_changes_nothing() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = issued(&ca, &["www.example.com"]);
    terminal.write("bad.txt", "not a number\n");
    terminal.write("hosts.txt", "a b\n");
    fs::create_dir(terminal.path("empty")).unwrap();
    for (words, code, expected) in [
        (&["nosuch"][..], 1, "certificates.cert-manager.io \"nosuch\" not found"),
        (&["www", "-A"], 2, "names cannot be combined with -A or a selector"),
        (
            &["--serials", "bad.txt"],
            2,
            "cannot use bad.txt: \"not a number\" is not a serial number",
        ),
        (&["--hosts", "hosts.txt"], 2, "cannot use hosts.txt: \"a b\" is not a host"),
        (&["--hosts", "absent.txt"], 2, "cannot read absent.txt: "),
        (&["--max-per-hour", "many"], 2, "invalid value 'many'"),
        (&["-o", "csvv"], 2, "unknown output format \"csvv\""),
        (&["order/a"], 2, "no Order holds a certificate"),
    ] {
        let said = terminal.run(&[&["certificate", "check"], words].concat());
        assert_eq!(said.code, Some(code), "{words:?} {said:?}");
        assert!(said.stderr.contains(expected), "{words:?} {said:?}");
        assert_eq!(said.stdout, "", "{words:?}");
    }
    assert_eq!(ca.server.statistics().of("newOrder"), 1);
}

/// A report with every field, and one with those fields only that are always there.
fn whole_and_bare() -> [Value; 2] {
    let at = Some(Time::new(Timestamp::UNIX_EPOCH));
    let text = || Some("why".to_owned());
    let whole = CheckedCertificate {
        source: CertificateSource {
            kind: SourceKind::Certificate,
            namespace: Some("web".to_owned()),
            name: "web".to_owned(),
        },
        verdict: CheckVerdict::Replace,
        reasons: vec![ReplacementReason {
            reason: ReplacementCause::Revoked,
            at,
            detail: "why".to_owned(),
        }],
        unknown: vec![UnknownPart { part: CheckedPart::Caa, why: "why".to_owned() }],
        names: vec!["www.example.com".to_owned()],
        serial_number: text(),
        issuer: text(),
        not_after: at,
        revocation: Some(ReportedRevocation {
            state: RevocationState::Revoked,
            url: text(),
            at,
            reason: Some("keyCompromise"),
            next_update: at,
            why: text(),
        }),
        renewal_window: Some(ReportedWindow {
            state: WindowState::Open,
            start: at,
            end: at,
            explanation: text(),
            why: text(),
        }),
        renewal: Some(CheckedRenewal { outcome: CheckedRenewalOutcome::Replaced, why: text() }),
    };
    let mut bare = whole.clone();
    bare.source.namespace = None;
    bare.reasons[0].at = None;
    (bare.serial_number, bare.issuer, bare.not_after) = (None, None, None);
    (bare.revocation, bare.renewal_window, bare.renewal) = (None, None, None);
    [whole, bare].map(|certificate| json!(CertificateCheck::new(10, vec![certificate])))
}

#[test]
fn the_page_of_reports_tells_every_field_and_its_type() {
    reports::is_told("CertificateCheck", &whole_and_bare());
}
