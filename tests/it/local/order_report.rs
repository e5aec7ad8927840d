//! The report of commands that issue, the lines of their steps, and errors as documents: as programs read them.

use std::fs;
use std::process::Stdio;
use std::sync::Arc;

use kubectl_acme::ca::behaviour::RequestedBehaviour;
use kubectl_acme::ca::{self, Config};
use kubectl_acme::model::change_line::{ChangeLine, ChangedObject};
use kubectl_acme::model::order_report::{
    CertificateResult, ErrorDocument, ErrorReport, InputFault, InputPlace, IssuerResult, LastOrder,
    NameResult, NamedIssuer, NamedObject, OrderReport, RecordToMake, ReportedProblem,
    ResultOutcome, WrittenFiles,
};
use kubectl_acme::model::{DnsName, Key, Kind, ObjectName};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::bed::free_port;
use crate::support::ca::TestCa;
use crate::support::cluster::eventually;
use crate::support::reports;
use crate::support::terminal::{Said, Terminal, certificate, issuer, site};

const ORDER: [&str; 5] = ["order", "-f", "manifests.yaml", "-o", "json"];

/// What was printed, with the fields that the page tells.
fn report(said: &Said) -> Value {
    let report: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!(report["kind"], "OrderReport", "{said:?}");
    is_known("OrderReport", &report);
    assert_eq!(report["exitCode"].as_i64(), said.code.map(i64::from), "{said:?}");
    report
}

fn is_known(name: &str, document: &Value) {
    let rows = reports::rows(name);
    for (path, kind) in reports::fields(document) {
        let row = rows.get(&path).unwrap_or_else(|| panic!("{name}: {path} is not told"));
        assert!(kind.is_empty() || row.0 == kind || row.0 == "time", "{name}: {path}: {kind}");
    }
}

/// The lines of steps, the last of which is the report.
fn steps(terminal: &Terminal, printed: &Value) -> Vec<Value> {
    let text = fs::read_to_string(terminal.path("events")).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.pop().as_ref(), Some(printed));
    for line in &lines {
        is_known("Change", line);
    }
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_issued_is_told_with_its_files_and_again_as_up_to_date() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = site(&ca, &["web.example.com"]);
    let said = terminal.drive(&[&ORDER[..], &["--events=events", "--out-secret"]].concat());
    let issued = report(&said);
    let of = &issued["certificates"][0];
    // The second document of its file.
    let source = json!({"file": "manifests.yaml", "line": 3, "column": 1});
    assert_eq!(of["source"], source, "{said:?}");
    let names = json!([{"name": "web.example.com", "state": "valid"}]);
    assert_eq!((&of["changed"], &of["outcome"]), (&json!(true), &json!("issued")), "{said:?}");
    assert_eq!(of["names"], names);
    let files = json!({
        "certificate": "out/web-tls/tls.crt", "key": "out/web-tls/tls.key", "manifest": "out/web-tls/secret.yaml",
    });
    assert_eq!(of["files"], files);
    assert_eq!((&of["revision"], &of["exitCode"]), (&json!(1), &json!(0)));
    assert!(of["durationSeconds"].as_f64().unwrap() > 0.0 && of["notAfter"].is_string(), "{of}");
    assert!(of["order"]["url"].as_str().unwrap().starts_with("https://"), "{of}");
    let steps = steps(&terminal, &issued);
    for (kind, state) in [("Order", "valid"), ("Challenge", "valid"), ("Certificate", "issued")] {
        let is_it = |step: &Value| step["object"]["kind"] == kind && step["state"] == state;
        assert!(steps.iter().any(is_it), "{kind} {state}: {steps:?}");
    }
    let challenge = steps.iter().find(|step| step["object"]["kind"] == "Challenge").unwrap();
    assert_eq!(challenge["object"]["domain"], "web.example.com");

    let again = report(&terminal.drive(&[&ORDER[..], &["--out-secret"]].concat()));
    let again = &again["certificates"][0];
    assert_eq!((&again["changed"], &again["outcome"]), (&json!(false), &json!("upToDate")));
    assert_eq!((&again["files"], &again["names"]), (&of["files"], &names));
    let renewed = report(&terminal.drive(&["certificate", "renew", "web", "-o", "json"]));
    let renewed = &renewed["certificates"][0];
    assert_eq!((&renewed["changed"], &renewed["revision"]), (&json!(true), &json!(2)));
    let said = terminal.drive(&["order", "-f", "manifests.yaml", "-o", "name"]);
    assert_eq!(said.stdout, "certificate.cert-manager.io/web\n", "resources stay resources");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_each_has_its_own_end() {
    let blocked = vec![DnsName::parse("bad.example.com").unwrap()];
    let ca = TestCa::start(Config { blocked, ..Config::default() }, |fetcher| fetcher).await;
    let terminal = site(&ca, &["good.example.com", "bad.example.com"]);
    let said = terminal.drive(&[&ORDER[..], &["--events=events"]].concat());
    let printed = report(&said);
    let of = |name: &str| {
        let all = printed["certificates"].as_array().unwrap();
        all.iter().find(|certificate| certificate["name"] == name).unwrap().clone()
    };
    assert_eq!((&of("good")["outcome"], &of("good")["error"]), (&json!("issued"), &Value::Null));
    let bad = of("bad");
    assert_eq!((&bad["outcome"], &bad["changed"]), (&json!("failed"), &json!(false)), "{said:?}");
    assert_eq!((&bad["exitCode"], &bad["error"]["type"]), (&json!(2), &json!("usage")));
    let kind = "urn:ietf:params:acme:error:rejectedIdentifier";
    assert_eq!(bad["error"]["problem"]["type"], kind, "{bad}");
    assert_eq!(said.code, Some(2));
    let steps = steps(&terminal, &printed);
    let is_it = |step: &&Value| step["state"] == "not issued" && step["object"]["name"] == "bad";
    let refused = steps.iter().find(is_it).unwrap_or_else(|| panic!("{steps:?}"));
    assert!(refused["reason"].as_str().unwrap().contains("bad.example.com"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_the_ca_is_told_with_the_moment_after_which_it_may_be_tried() {
    let limited = [RequestedBehaviour::parse("new-order-429=3600").unwrap()];
    let mut ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let eyes = Arc::new(ca.fetcher());
    ca.server = ca::serve_as(Config::default(), &limited, eyes).await.unwrap();
    let terminal = site(&ca, &["web.example.com"]);
    let said = terminal.drive(&ORDER);
    let printed = report(&said);
    let of = &printed["certificates"][0];
    assert_eq!((&of["outcome"], &of["exitCode"]), (&json!("waiting"), &json!(5)), "{said:?}");
    assert_eq!(of["error"]["type"], "rateLimited");
    assert_eq!(of["error"]["problem"]["status"], 429, "{of}");
    assert!(of["error"]["retryAfter"].as_str().unwrap().ends_with('Z'), "{of}");
    assert_eq!(of["names"][0]["state"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_a_person_has_to_make_are_in_the_same_report() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = site(&ca, &["web.example.com"]);
    let solvers = json!([{"dns01": {"rfc2136": {"nameserver": "127.0.0.1:1"}}}]);
    let (url, root) = (ca.server.directory_url(), ca.server.tls_root_pem());
    let issuer = issuer(&url, root, json!({"solvers": solvers}));
    terminal.manifests(&[issuer, certificate("web", &["web.example.com"], json!({}))]);
    let said = terminal.drive(&[&ORDER[..], &["--dns01-manual", "--dns=127.0.0.1:1"]].concat());
    assert_eq!(said.code, Some(13), "{said:?}");
    let printed = report(&said);
    assert_eq!(printed["certificates"][0]["outcome"], "waitsForPerson", "{said:?}");
    let record = &printed["records"][0];
    assert_eq!(
        (&record["name"], &record["type"], &record["certificate"]["name"]),
        (&json!("_acme-challenge.web.example.com."), &json!("TXT"), &json!("web"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_told_of_what_was_under_way() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = site(&ca, &["web.example.com"]);
    let mut command = terminal.command(&ORDER);
    // Nobody answers there.
    command.args(["--events=events", "--http01-resolve=*=127.0.0.1:1"]);
    command.arg(format!("--http01-listen=127.0.0.1:{}", terminal.http_port));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let events = terminal.path("events");
    eventually("a Challenge", || {
        let text = fs::read_to_string(&events).ok()?;
        text.contains("\"domain\":\"web.example.com\"").then_some(())
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said = Said::from(child.wait_with_output().unwrap());
    let printed = report(&said);
    let of = &printed["certificates"][0];
    assert_eq!((&of["outcome"], &of["exitCode"]), (&json!("interrupted"), &json!(130)), "{said:?}");
    assert_eq!(of["error"]["type"], "interrupted");
    assert_eq!(of["names"][0]["type"], "http-01", "{of}");
    assert!(of["error"]["hints"][0].as_str().unwrap().contains("order -f manifests.yaml"), "{of}");
    steps(&terminal, &printed);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_before_anything_began_is_told_in_the_same_report() {
    let terminal = Terminal::elsewhere();
    terminal.manifests(&[certificate("web", &["web.example.com"], json!({}))]);
    let said = terminal.drive(&ORDER);
    let printed = report(&said);
    assert_eq!(said.code, Some(2), "{said:?}");
    let of = &printed["certificates"][0];
    assert_eq!((&of["outcome"], &of["error"]["type"]), (&json!("failed"), &json!("usage")));
    assert_eq!(printed["error"], of["error"], "{printed}");
}

#[test]
fn a_command_that_fails_before_there_is_anything_to_report_prints_its_error() {
    let terminal = Terminal::elsewhere();
    let wrong = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: a}\nspec:\n  secretName: a\n  dnsName: [a.test]\n";
    terminal.write("manifests.yaml", wrong);
    let (said, error) = failed(&terminal, &ORDER);
    assert_eq!((said.code, &error["type"]), (Some(2), &json!("usage")));
    let unknown = &error["errors"][1];
    assert_eq!((&unknown["file"], &unknown["line"]), (&json!("manifests.yaml"), &json!(6)));
    assert_eq!(unknown["object"], "Certificate a");
    assert_eq!(error["errors"].as_array().unwrap().len(), said.stderr.matches("error: ").count());
    let (said, error) = failed(&terminal, &["order", "-o", "json"]);
    let told = format!("error: {}\n", error["message"].as_str().unwrap());
    assert!(said.stderr.starts_with(&told), "{said:?}");
    failed(&terminal, &["order", "-f", "absent.yaml", "-o", "json"]);
    failed(&terminal, &["certificate", "renew", "absent", "-o", "json"]);
}

#[test]
fn what_is_not_there_is_told_as_a_document_that_names_it() {
    let terminal = Terminal::elsewhere();
    let (said, one) = failed(&terminal, &["get", "certificate", "absent", "-o", "json"]);
    let object = json!({"kind": "Certificate", "namespace": "default", "name": "absent"});
    assert_eq!((said.code, &one["object"]), (Some(1), &object), "{one}");
    let (_, two) = failed(&terminal, &["get", "certificate/a", "order/b", "-o", "json"]);
    assert_eq!(two["errors"].as_array().map(Vec::len), Some(2), "{two}");
    assert_eq!(
        (&two["object"], &two["errors"][1]["object"]),
        (&Value::Null, &json!("Order default/b"))
    );
    let (_, described) = failed(&terminal, &["challenge", "check", "absent", "-o", "json"]);
    assert_eq!(described["object"]["kind"], "Challenge");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_reports_tells_every_field_of_a_look_at_a_challenge() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let mut terminal = site(&ca, &["web.example.com"]);
    terminal.http_port = free_port();
    let nowhere = format!("--http01-resolve=*=127.0.0.1:{}", free_port());
    let listen = format!("--http01-listen=127.0.0.1:{}", terminal.http_port);
    let order = ["order", "-f", "manifests.yaml", "--timeout=2s", &nowhere, &listen];
    assert_eq!(terminal.run(&order).code, Some(124));
    let said = terminal.run(&["challenge", "check", "web", "-o", "json", &nowhere]);
    let look: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!((&look["kind"], &look["visible"]), (&json!("ChallengeCheck"), &json!(false)));
    let rows = reports::rows("ChallengeCheck");
    let fields = reports::fields(&look);
    for (path, _) in &fields {
        let mut ways =
            std::iter::successors(Some(path.as_str()), |way| Some(way.rsplit_once('.')?.0));
        let is_told = ways.any(|way| {
            rows.get(way).is_some_and(|(kind, _)| way == path || kind.contains("object"))
        });
        assert!(is_told, "{path} is not told");
    }
    let is_there = |row: &str| fields.iter().any(|(path, _)| path.starts_with(row));
    for (row, (_, may_be_absent)) in &rows {
        assert!(*may_be_absent || is_there(row), "{row} is not there: {look}");
    }
}

#[test]
fn a_command_line_that_cannot_be_read_is_told_as_a_document() {
    let mut terminal = Terminal::elsewhere();
    let (said, error) = failed(&terminal, &["get", "certs", "--no-header", "-o", "json"]);
    assert_eq!((said.code, &error["type"]), (Some(2), &json!("usage")));
    assert_eq!(error["message"], "unexpected argument '--no-header' found");
    assert!(error["hints"][0].as_str().unwrap().contains("--no-headers"), "{error}");
    failed(&terminal, &["order", "--local", "--context=a", "-f", "x", "-ojson"]);
    let people = terminal.run(&["get", "certs", "--no-header"]);
    assert_eq!((people.code, people.stdout.as_str()), (Some(2), ""));
    terminal.set("KUBECTL_ACME_OUTPUT", "json");
    failed(&terminal, &["get", "certs", "--no-header"]);
    let help = terminal.run(&["get", "--help"]);
    assert!(help.code == Some(0) && !help.stdout.contains("apiVersion: "), "{help:?}");
}

/// Runs a command that prints its error as a document.
fn failed(terminal: &Terminal, words: &[&str]) -> (Said, Value) {
    let said = terminal.run(words);
    let error: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    assert_eq!(error["kind"], "Error", "{said:?}");
    assert_eq!(error["exitCode"].as_i64(), said.code.map(i64::from), "{said:?}");
    is_known("Error", &error);
    (said, error)
}

fn problem() -> ReportedProblem {
    ReportedProblem { kind: "urn:x".into(), detail: "no".into(), status: 403 }
}

fn error(is_whole: bool) -> ErrorReport {
    ErrorReport {
        kind: "usage",
        exit_code: 2,
        message: "no".into(),
        hints: vec!["do".into()],
        problem: is_whole.then(problem),
        retry_after: is_whole
            .then(|| "2026-11-24T12:00:00Z".parse::<jiff::Timestamp>().unwrap().into()),
    }
}

fn place() -> InputPlace {
    InputPlace { file: "a.yaml".into(), line: 1, column: 2 }
}

/// A report with every field, and one without those that may be absent.
fn order_reports() -> [Value; 2] {
    let text = || "x".to_owned();
    let object = || NamedObject { namespace: text(), name: text() };
    let now = || Some("2026-11-24T12:00:00Z".parse::<jiff::Timestamp>().unwrap().into());
    let name = |is_whole: bool| NameResult {
        name: text(),
        kind: is_whole.then_some("http-01"),
        state: "valid",
        reason: is_whole.then(text),
        problem: is_whole.then(problem),
    };
    let certificate = |is_whole: bool| CertificateResult {
        kind: "Certificate",
        namespace: text(),
        name: text(),
        secret_name: if is_whole { text() } else { String::new() },
        issuer: NamedIssuer { kind: text(), name: text() },
        source: is_whole.then(place),
        changed: true,
        outcome: ResultOutcome::Issued,
        exit_code: 0,
        names: vec![name(is_whole)],
        left_out: if is_whole { vec![text()] } else { Vec::new() },
        not_after: now().filter(|_| is_whole),
        renewal_time: now().filter(|_| is_whole),
        revision: is_whole.then_some(1),
        duration_seconds: is_whole.then_some(1.5),
        files: is_whole.then(|| WrittenFiles {
            certificate: text(),
            key: Some(text()),
            manifest: Some(text()),
        }),
        order: is_whole.then(|| LastOrder { name: text(), url: text() }),
        error: is_whole.then(|| error(true)),
    };
    let mut whole = OrderReport::new(0, false);
    whole.certificates = vec![certificate(true)];
    whole.issuers = vec![IssuerResult {
        kind: "Issuer",
        namespace: text(),
        name: text(),
        source: Some(place()),
        outcome: ResultOutcome::Ready,
        exit_code: 0,
        error: Some(error(true)),
    }];
    whole.records = vec![RecordToMake {
        name: text(),
        kind: "TXT",
        ttl: 60,
        value: text(),
        certificate: object(),
        challenge: object(),
        reason: text(),
    }];
    whole.error = Some(error(true));
    let mut bare = OrderReport::new(0, false);
    bare.certificates = vec![certificate(false)];
    [whole, bare].map(|report| json!(report))
}

#[test]
fn the_page_of_reports_tells_every_field_of_an_order() {
    reports::is_told("OrderReport", &order_reports());
}

#[test]
fn the_page_of_reports_tells_every_field_of_a_step() {
    let key = Key::new(Kind::Challenge, ObjectName::new("web", "c"));
    let now = jiff::Timestamp::UNIX_EPOCH;
    let step = ChangeLine::step(now, ChangedObject::new(&key, Some("a")), "pending", "why");
    let said = ChangeLine::message(now, "x");
    reports::is_told("Change", &[json!(step), json!(said)]);
}

#[test]
fn the_page_of_reports_tells_every_field_of_an_error() {
    let fault = InputFault {
        message: "no".into(),
        hints: vec!["do".into()],
        object: "Certificate a".into(),
        place: Some(place()),
    };
    let key = Key::new(Kind::Certificate, ObjectName::new("web", "a"));
    let whole = ErrorDocument::new(error(true), Some(&key), vec![fault]);
    let bare = ErrorDocument::new(error(false), None, Vec::new());
    reports::is_told("Error", &[json!(whole), json!(bare)]);
}
