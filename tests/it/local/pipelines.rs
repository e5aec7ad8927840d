//! `--report`: what the systems are told in which pipelines run.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use kubectl_acme::ca::Config;
use kubectl_acme::model::DnsName;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::ca::TestCa;
use crate::support::cluster::eventually;
use crate::support::terminal::{Said, Terminal, certificate, issuer, site};

const ORDER: [&str; 3] = ["order", "-f", "manifests.yaml"];
const FILES: [&str; 3] =
    ["--report=junit=report.xml", "--report=sarif=report.sarif", "--report=markdown=report.md"];
/// A field that is not known on line 6, and an address on line 7 that would stop all commands of a workflow.
const WRONG: &str = "apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: a}
spec:
  secretName: a
  dnsName: [a.test]
  ipAddresses: [\"x\\n::stop-commands::y ##[stop-commands]y\"]
  issuerRef: {name: acme}
";

/// A CA that does not issue for `bad.example.com`.
async fn ca() -> TestCa {
    let blocked = vec![DnsName::parse("bad.example.com").unwrap()];
    TestCa::start(Config { blocked, ..Config::default() }, |fetcher| fetcher).await
}

/// An element with its attributes.
type Element = (String, BTreeMap<String, String>);

fn element(tag: &BytesStart<'_>) -> Element {
    let attributes = tag.attributes().map(|attribute| {
        let attribute = attribute.unwrap();
        let value = quick_xml::escape::unescape(&attribute.value).unwrap().into_owned();
        (attribute.key.as_ref().to_owned(), value)
    });
    (tag.name().as_ref().to_owned(), attributes.collect())
}

/// The elements of a report in JUnit's form, suites first.
fn junit(terminal: &Terminal) -> Vec<Element> {
    let xml = fs::read_to_string(terminal.path("report.xml")).unwrap();
    let mut reader = Reader::from_str(&xml);
    let mut elements = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) | Event::Empty(tag) => elements.push(element(&tag)),
            Event::Eof => break,
            _ => {}
        }
    }
    let of = |name: &str| elements.iter().filter(|(it, _)| it == name).count().to_string();
    assert_eq!((&*elements[0].0, &*elements[1].0), ("testsuites", "testsuite"), "{xml}");
    for (_, suite) in &elements[..2] {
        assert_eq!((&suite["name"], &suite["errors"]), (&"kubectl-acme".into(), &"0".into()));
        assert_eq!((&suite["tests"], &suite["failures"]), (&of("testcase"), &of("failure")));
    }
    elements.split_off(2)
}

/// The one run of a report in SARIF, with what the specification requires.
fn sarif(text: &str) -> Value {
    let log: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"));
    assert_eq!(log["version"], "2.1.0");
    let run = log["runs"][0].clone();
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["version"], env!("CARGO_PKG_VERSION"));
    assert!(run["invocations"][0]["executionSuccessful"].is_boolean(), "{run}");
    for result in run["results"].as_array().unwrap() {
        assert!(result["message"]["text"].is_string(), "{result}");
        let is_known = |rule: &Value| rule["id"] == result["ruleId"];
        assert!(driver["rules"].as_array().unwrap().iter().any(is_known), "{result}");
    }
    run
}

/// The file and line at which a result stands.
fn stands_at(result: &Value) -> (&str, u64) {
    let place = &result["locations"][0]["physicalLocation"];
    let uri = place["artifactLocation"]["uri"].as_str().unwrap();
    (uri, place["region"]["startLine"].as_u64().unwrap())
}

/// What a runner would take for commands: lines of both streams that begin with two colons, and the old form anywhere.
fn commands(said: &Said) -> Vec<&str> {
    let lines = said.stderr.lines().chain(said.stdout.lines());
    lines.filter(|it| it.trim_start().starts_with("::") || it.contains("##[")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_was_issued_is_told_in_every_form() {
    let ca = ca().await;
    let mut terminal = site(&ca, &["web.example.com"]);
    terminal.set("GITHUB_STEP_SUMMARY", "summary.md");
    terminal.write("summary.md", "before\n");
    let said = terminal.drive(&[&ORDER[..], &FILES, &["--report", "github"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.starts_with("NAME"), "{said:?}");
    let expected = "::notice file=manifests.yaml,line=3,title=Certificate default/web%3A issued::web.example.com; valid until ";
    assert!(matches!(commands(&said)[..], [it] if it.starts_with(expected)), "{said:?}");
    let cases = junit(&terminal);
    let [(_, case)] = &cases[..] else { panic!("{cases:?}") };
    for (name, value) in
        [("classname", "default"), ("name", "web"), ("file", "manifests.yaml"), ("line", "3")]
    {
        assert_eq!(case[name], value);
    }
    assert!(case["time"].parse::<f64>().unwrap() > 0.0, "{case:?}");
    let run = sarif(&fs::read_to_string(terminal.path("report.sarif")).unwrap());
    assert_eq!((&run["results"], &run["invocations"][0]["exitCode"]), (&json!([]), &json!(0)));
    let page = fs::read_to_string(terminal.path("report.md")).unwrap();
    assert!(page.contains("\n| default/web | issued | web.example.com | "), "{page}");
    let summary = fs::read_to_string(terminal.path("summary.md")).unwrap();
    assert_eq!(summary, format!("before\n{page}\n"));

    let again = terminal.drive(&[&ORDER[..], &FILES].concat());
    assert_eq!((again.code, commands(&again)), (Some(0), Vec::new()), "{again:?}");
    assert_eq!(junit(&terminal).len(), 1, "what is up to date has passed");
    let renewed = terminal.drive(&["certificate", "renew", "web", "--report=junit=report.xml"]);
    assert_eq!(renewed.code, Some(0), "{renewed:?}");
    assert_eq!(junit(&terminal)[0].1.get("file"), None, "no manifest was given");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_was_refused_stands_at_its_line() {
    let ca = ca().await;
    let mut terminal = site(&ca, &["good.example.com", "bad.example.com"]);
    terminal.set("GITHUB_ACTIONS", "true");
    terminal.set("GITHUB_STEP_SUMMARY", "summary.md");
    let said = terminal.drive(&ORDER);
    assert_eq!(said.code, Some(2), "{said:?}");
    let found = commands(&said);
    let [error, notice] = found[..] else { panic!("{said:?}") };
    let expected =
        "::error file=manifests.yaml,line=5,col=1,title=Certificate default/bad%3A usage::";
    assert!(error.starts_with(expected) && error.contains("bad.example.com"), "{said:?}");
    assert!(notice.contains("title=Certificate default/good%3A issued::"), "{said:?}");
    let summary = fs::read_to_string(terminal.path("summary.md")).unwrap();
    assert!(summary.starts_with("## kubectl-acme: 1 of 2 certificates are there\n"), "{summary}");
    assert!(summary.contains("\n### Certificate `default/bad`: failed\n"), "{summary}");

    let said = terminal.drive(&[&ORDER[..], &FILES].concat());
    assert_eq!((said.code, commands(&said)), (Some(2), Vec::new()), "{said:?}");
    let elements = junit(&terminal);
    let names: Vec<&str> = elements.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["testcase", "testcase", "failure"]);
    assert_eq!((&*elements[1].1["line"], &*elements[2].1["type"]), ("5", "usage"));
    let run = sarif(&fs::read_to_string(terminal.path("report.sarif")).unwrap());
    let result = &run["results"][0];
    assert_eq!(stands_at(result), ("manifests.yaml", 5));
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("usage"), &json!("error")));

    let silent = terminal.drive(&[&ORDER[..], &["--report=none"]].concat());
    assert_eq!((silent.code, commands(&silent)), (Some(2), Vec::new()), "{silent:?}");
}

#[test]
fn a_fault_of_a_manifest_stands_at_its_line_in_the_repository() {
    let mut terminal = Terminal::elsewhere();
    terminal.set("GITHUB_ACTIONS", "true");
    terminal.set("GITHUB_WORKSPACE", terminal.path("").parent().unwrap().display());
    terminal.write("deploy/web.yaml", WRONG);
    let said = terminal.run(&["order", "-f", "deploy"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let folder = terminal.path("").canonicalize().unwrap();
    let path = format!("{}/deploy/web.yaml", folder.file_name().unwrap().display());
    let at = |line: u8, column: u8| {
        format!("::error file={path},line={line},col={column},title=Certificate a%3A usage::")
    };
    let found = commands(&said);
    for place in [at(6, 3), at(7, 17)] {
        assert!(found.iter().any(|it| it.starts_with(&place)), "{place}: {said:?}");
    }
    let ours = format!("::error file={path},line=");
    assert!(found.iter().all(|it| it.starts_with(&ours)), "{said:?}");
    let known = found.iter().find(|it| it.starts_with(&at(6, 3))).unwrap();
    assert!(known.contains("unknown field, did you mean dnsNames?"), "{said:?}");

    let said = terminal.run(&[&["order", "-f", "deploy"][..], &FILES].concat());
    assert_eq!((said.code, commands(&said)), (Some(2), Vec::new()), "{said:?}");
    let elements = junit(&terminal);
    let at_line = |line: &str| {
        let is_it = |(name, it): &&Element| name == "testcase" && it["line"] == line;
        elements.iter().find(is_it).unwrap().1.clone()
    };
    assert_eq!((&*at_line("6")["file"], &*at_line("6")["classname"]), (&*path, "manifest"));
    let run = sarif(&fs::read_to_string(terminal.path("report.sarif")).unwrap());
    let all = run["results"].as_array().unwrap();
    assert!(all.iter().any(|result| stands_at(result) == (&path, 6)), "{run}");
    let page = fs::read_to_string(terminal.path("report.md")).unwrap();
    assert!(page.contains(&format!("`{path}:6`")), "{page}");
    // A manifest of a pipe stands in no file.
    let mut command = terminal.command(&["order", "-f", "-"]);
    command.stdin(fs::File::open(terminal.path("deploy/web.yaml")).unwrap());
    let said = Said::from(command.output().unwrap());
    let expected = "::error title=Certificate a%3A usage::stdin:6:3: ";
    assert!(commands(&said).iter().any(|it| it.starts_with(expected)), "{said:?}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_starts() {
    let terminal = Terminal::elsewhere();
    terminal.manifests(&[certificate("web", &["web.example.com"], json!({}))]);
    for (report, why) in [
        ("junit=none/report.xml", "cannot write none/report.xml: nothing can be made there"),
        ("github=manifests.yaml/x", "cannot write manifests.yaml/x: it is not a folder"),
        ("junit,sarif", "two reports would both be written to standard output"),
    ] {
        let said = terminal.run(&[&ORDER[..], &["--report", report]].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.starts_with(&format!("error: {why}\n")), "{said:?}");
        assert!(!terminal.path("state").exists(), "{said:?}");
    }
}

#[test]
fn a_report_on_stdout_stands_alone_there_whatever_comes_of_the_command() {
    let terminal = Terminal::elsewhere();
    let certificate = |name, more| certificate(name, &["web.example.com"], more);
    // What stops both is about the second.
    terminal.manifests(&[
        issuer("https://ca.example/dir", "", json!({})),
        certificate("web", json!({})),
        certificate("other", json!({"issuerRef": {"name": "absent"}})),
    ]);
    let said = terminal.run(&[&ORDER[..], &["--report", "sarif"]].concat());
    let run = sarif(&said.stdout);
    assert_eq!(run["results"].as_array().map(Vec::len), Some(1), "{said:?}");
    assert_eq!(stands_at(&run["results"][0]), ("manifests.yaml", 5), "{said:?}");
    assert_eq!(run["invocations"][0]["exitCode"].as_i64(), said.code.map(i64::from));
    let said = terminal.run(&["order", "retry", "absent", "--report", "sarif"]);
    let run = sarif(&said.stdout);
    assert_eq!(run["results"], json!([]), "{said:?}");
    let told = &run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"];
    assert!(told.as_str().unwrap().contains("absent"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_told_as_well() {
    let ca = ca().await;
    let terminal = site(&ca, &["web.example.com"]);
    let mut command = terminal.command(&[&ORDER[..], &FILES, &["--events=events"]].concat());
    // Nobody answers there.
    command.arg("--http01-resolve=*=127.0.0.1:1");
    command.arg(format!("--http01-listen=127.0.0.1:{}", terminal.http_port));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let events = terminal.path("events");
    eventually("a Challenge", || {
        let text = fs::read_to_string(&events).ok()?;
        text.contains("\"domain\":\"web.example.com\"").then_some(())
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert_eq!(junit(&terminal)[1].1["type"], "interrupted", "{said:?}");
    let run = sarif(&fs::read_to_string(terminal.path("report.sarif")).unwrap());
    assert_eq!(run["results"][0]["level"], "note", "{said:?}");
}

#[test]
fn no_credential_is_told_to_the_system() {
    const HMAC: &str = "c2VjcmV0LXRoYXQtaXMtdG9sZC10by1ub2JvZHk";
    let mut terminal = Terminal::elsewhere();
    terminal.set("GITHUB_ACTIONS", "true");
    terminal.set("GITHUB_STEP_SUMMARY", "summary.md");
    terminal.set("KUBECTL_ACME_EAB_HMAC", HMAC);
    let order = ["order", "--domain=web.example.com", "--eab-kid=k", "--rehearse=loopback"];
    let said = terminal.run(&[&order[..], &FILES, &["--report=github", "-vv"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let written = ["report.xml", "report.sarif", "report.md", "summary.md"];
    let written = written.map(|name| fs::read_to_string(terminal.path(name)).unwrap());
    assert!(written.iter().all(|text| text.contains("kubectl-acme")), "{written:?}");
    let all = format!("{}{}{}", said.stdout, said.stderr, written.concat());
    assert!(!all.contains(HMAC) && !all.contains("add-mask"), "{all}");
}
