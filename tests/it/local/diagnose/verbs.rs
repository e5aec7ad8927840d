//! What people type beside `diagnose KIND/NAME`, and what they get: manifests before they are applied, reports for pipelines,
//! command lines, trees, waits, and the line with which other commands lead to a cause.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use kubectl_acme::ca::Config;
use serde_json::{Value, json};

use super::{Lab, NAME};
use crate::support::bed::{PATIENCE, free_port};
use crate::support::reports;
use crate::support::terminal::{Said, certificate};

/// A Certificate that is stuck since nobody listens where its name leads.
pub(super) async fn stuck() -> (Lab, u16) {
    let mut lab = Lab::new().await;
    let port = free_port();
    lab.stuck_at(port);
    (lab, port)
}

impl Lab {
    fn manifests(&self, name: &str) {
        let documents = [self.issuer(json!({})), certificate(name, &[NAME], json!({}))];
        self.terminal.manifests(&documents);
    }

    /// A command that looks as this lab does.
    pub(super) fn looks(&self, words: &[&str]) -> Said {
        let (resolve, listen) = (self.resolve(), self.listen());
        self.terminal.run(&[words, &[&resolve, &listen]].concat())
    }
}

pub(super) fn json_of(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_judged_before_anything_exists_and_nothing_is_written() {
    let mut lab = Lab::new().await;
    lab.manifests("web");
    let (said, report) = lab.diagnose(&["-f", "manifests.yaml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(report["findings"], json!([]), "{report:#}");
    assert!(!lab.terminal.path("state").exists(), "a look has made a state");
    assert!(!said.stderr.contains("no controller is running"), "{said:?}");
    lab.target = free_port();
    let first = lab.names_first(&["-f", "manifests.yaml"], "HTTP-05", 10);
    assert_eq!(first["subject"], NAME);
    // Laid over what is there: the issuer of the manifests is not needed any more.
    lab.target = lab.terminal.http_port;
    let documents = [lab.issuer(json!({})), certificate("web", &[NAME], json!({}))];
    assert_eq!(lab.order(&documents).code, Some(0));
    lab.terminal.manifests(&[certificate("other", &["other.example"], json!({}))]);
    let (said, report) = lab.diagnose(&["-f", "manifests.yaml"]);
    assert_eq!(said.code, Some(0), "{report:#}");
    assert_eq!(lab.terminal.objects("certificates").len(), 1, "nothing is written");
    lab.terminal.manifests(&[certificate(
        "other",
        &["other.example"],
        json!({"issuerRef": {"name": "amce"}}),
    )]);
    lab.names_first(&["-f", "manifests.yaml"], "CFG-01", 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_what_nobody_works_on() {
    let (lab, _) = stuck().await;
    let begun = Instant::now();
    let said = lab.terminal.run(&["wait", "cert/web", "--for=issued", "--timeout=10m"]);
    assert_eq!(said.code, Some(13), "{said:?}");
    assert!(said.stderr.contains("to be issued: no controller is running"), "{said:?}");
    assert!(begun.elapsed() < Duration::from_mins(5), "{:?}", begun.elapsed());
    // Time that is up before counts as ever, and who makes objects is anybody.
    for words in [
        ["cert/web", "--for=issued", "--timeout=1s"],
        ["cert/other", "--for=create", "--timeout=7s"],
    ] {
        let said = lab.terminal.run(&[&["wait"][..], &words].concat());
        assert_eq!(said.code, Some(124), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_manifests_are_told_as_everywhere() {
    let lab = Lab::new().await;
    lab.terminal.write(
        "bad.yaml",
        "kind: Certificate\napiVersion: cert-manager.io/v1\nspec: {dnsName: x}\n",
    );
    let said = lab.terminal.run(&["diagnose", "-f", "bad.yaml"]);
    let ordered = lab.terminal.run(&["order", "-f", "bad.yaml"]);
    assert_eq!((said.code, ordered.code), (Some(2), Some(2)), "{said:?}");
    assert_eq!(said.stderr, ordered.stderr);
    let said = lab.terminal.run(&["diagnose", "-f", "absent.yaml"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    lab.terminal.write("none.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n");
    let said = lab.terminal.run(&["diagnose", "-f", "none.yaml"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let said = lab.terminal.run(&["diagnose", "web", "-f", "none.yaml"]);
    assert_eq!(said.code, Some(2), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_are_reports_for_pipelines_by_both_spellings() {
    let (lab, _) = stuck().await;
    let look = |more: &[&str]| lab.looks(&[&["diagnose", "-f", "manifests.yaml"], more].concat());
    let sarif = look(&["-o", "sarif"]);
    assert_eq!(sarif.code, Some(10), "{sarif:?}");
    let run = &json_of(&sarif)["runs"][0];
    let result = &run["results"][0];
    assert_eq!(
        (&result["ruleId"], &result["level"]),
        (&json!("HTTP-05"), &json!("error")),
        "{run:#}"
    );
    let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(place, "manifests.yaml", "{run:#}");
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "HTTP-05");
    assert_eq!(run["invocations"][0]["exitCode"], 10);
    let junit = look(&["-o", "junit"]);
    assert!(junit.stdout.contains("<failure type=\"HTTP-05\""), "{junit:?}");
    let github = look(&["-o", "github"]);
    assert!(github.stdout.starts_with("::error file=manifests.yaml,"), "{github:?}");
    let markdown = look(&["-o", "markdown"]);
    assert!(markdown.stdout.starts_with("## kubectl-acme: 1 cause\n"), "{markdown:?}");
    let both = look(&["--report", "junit=report.xml"]);
    assert!(both.stdout.starts_with("HTTP-05"), "{both:?}");
    assert!(lab.terminal.path("report.xml").exists());
    let two = look(&["-o", "sarif", "--report", "junit"]);
    assert_eq!(two.code, Some(2), "{two:?}");
    let none = lab.looks(&["diagnose", "issuer/acme", "-o", "junit"]);
    assert_eq!(none.code, Some(0), "{none:?}");
    assert!(none.stdout.contains("tests=\"1\" failures=\"0\""), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn command_lines_show_the_same_as_each_observation() {
    let (lab, port) = stuck().await;
    let (_, report) = lab.diagnose(&["web", "--show-commands"]);
    let evidence = &report["findings"][0]["evidence"][0];
    let line = evidence["commands"][0].as_str().unwrap_or_else(|| panic!("{report:#}"));
    assert!(line.starts_with("curl ") && line.contains(&port.to_string()), "{line}");
    let shown: Said = std::process::Command::new("sh").args(["-c", line]).output().unwrap().into();
    assert_eq!(shown.code, Some(7), "curl could not connect, either: {shown:?}");
    let people = lab.looks(&["diagnose", "web", "--show-commands"]);
    assert!(people.stdout.contains(&format!("         {line}\n")), "{people:?}");
    let (_, plain) = lab.diagnose(&["web"]);
    assert_eq!(plain["findings"][0]["evidence"][0].get("commands"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_looked_again_until_nothing_is_wrong() {
    let (lab, _) = stuck().await;
    // It listens while it looks, and the order must have its own port.
    let (resolve, elsewhere) =
        (lab.resolve(), format!("--http01-listen=127.0.0.1:{}", free_port()));
    let mut looking = lab.terminal.command(&["diagnose", "web", "--watch", &resolve, &elsewhere]);
    let looking = looking.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Somebody has the name lead to where it is answered.
    let here = format!("--http01-resolve=*=127.0.0.1:{}", lab.terminal.http_port);
    let order = ["order", "-f", "manifests.yaml", "--timeout=60s", &here, &lab.listen()];
    let issued = lab.terminal.run(&order);
    assert_eq!(issued.code, Some(0), "{issued:?}");
    let looked: Said = looking.wait_with_output().unwrap().into();
    assert_eq!(looked.code, Some(0), "{looked:?}");
    // What was found is said to be gone, and the Certificate to be there.
    assert!(looked.stderr.contains(" is gone: "), "{looked:?}");
    assert!(looked.stderr.contains("/web ready"), "{looked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_has_each_object_with_what_it_waits_for() {
    let (lab, _) = stuck().await;
    let said = lab.terminal.run(&["tree"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(lines[0].starts_with("NAME") && lines[0].ends_with("AGE"), "{said:?}");
    assert!(lines[1].starts_with("Certificate/web ") && lines[1].contains("issuing"), "{said:?}");
    assert!(lines[2].starts_with("└─CertificateRequest/web-1 "), "{said:?}");
    assert!(lines[3].starts_with("  └─Order/web-1-"), "{said:?}");
    assert!(lines[4].starts_with("    └─Challenge/web-1-"), "{said:?}");
    assert!(lines[4].contains(NAME) && lines[4].contains("connection refused"), "{said:?}");
    let report = json_of(&lab.terminal.run(&["tree", "certificate/web", "-o", "json"]));
    let told: BTreeSet<String> = reports::rows("ObjectTree").into_keys().collect();
    let fields = reports::fields(&report).into_iter().map(|(path, _)| path);
    assert_eq!(fields.collect::<BTreeSet<_>>(), told);
    let objects = report["objects"].as_array().unwrap();
    assert_eq!(objects[3]["owner"]["kind"], "Order", "{report:#}");
    assert!(objects[3]["waitsFor"].as_str().unwrap().contains("connection refused"));
    let order = lab.terminal.run(&["tree", "order/web"]);
    assert!(order.stdout.lines().nth(1).unwrap().starts_with("Order/web-1-"), "{order:?}");
    let none = lab.terminal.run(&["tree", "certificate/absent"]);
    assert_eq!(none.code, Some(1), "{none:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_when_it_is_so_when_time_is_up_and_when_it_cannot_come() {
    let mut lab = Lab::new().await;
    lab.manifests("web");
    let absent = lab.terminal.run(&["wait", "certificate/web", "--for=issued"]);
    assert_eq!(absent.code, Some(1), "{absent:?}");
    let waiting = ["wait", "certificate/web", "--for=create", "--timeout=60s"];
    let mut made = lab.terminal.command(&waiting).stdout(Stdio::piped()).spawn().unwrap();
    lab.stuck_at(free_port());
    assert_eq!(made.wait().unwrap().code(), Some(0));
    let late =
        lab.terminal.run(&["wait", "certificate/web", "--for=condition=Ready", "--timeout=0"]);
    assert_eq!(late.code, Some(124), "{late:?}");
    assert!(
        late.stderr.contains("waiting for Certificate default/web to have condition Ready"),
        "{late:?}"
    );
    assert!(late.stderr.contains("why: kubectl-acme diagnose certificate/web"), "{late:?}");
    let mut waiting = lab.terminal.command(&[
        "wait",
        "cert",
        "--all",
        "--for=condition=ready=true",
        "--timeout=60s",
    ]);
    let waiting = waiting.stdout(Stdio::piped()).spawn().unwrap();
    lab.target = lab.terminal.http_port;
    assert_eq!(lab.looks(&["order", "-f", "manifests.yaml"]).code, Some(0));
    let waited: Said = waiting.wait_with_output().unwrap().into();
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(waited.stdout, "certificate.cert-manager.io/web condition met\n");
    let field = "--for=jsonpath={.status.revision}=1";
    assert_eq!(lab.terminal.run(&["wait", "cert/web", field]).code, Some(0));
    assert_eq!(lab.terminal.run(&["wait", "order/web", "--for=condition=Ready"]).code, Some(2));
    assert_eq!(lab.terminal.run(&["wait", "cert/absent", "--for=delete"]).code, Some(0));
    assert_eq!(lab.terminal.run(&["wait", "cert", "--for=delete"]).code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_what_has_failed_ends_at_once_with_the_finding() {
    let lab = Lab::with(Config::default(), &["rejected-identifier"]).await;
    let documents = [lab.issuer(json!({})), certificate("web", &[NAME], json!({}))];
    let ordered = lab.order(&documents);
    assert_ne!(ordered.code, Some(0), "{ordered:?}");
    let said = lab.terminal.run(&["wait", "certificate/web", "--for=issued", "--timeout=10m"]);
    assert_eq!(said.code, ordered.code, "{said:?}");
    assert!(said.stderr.contains("was not issued"), "{said:?}");
    let cause = |said: &Said| {
        let told = said.stderr.lines().find(|line| line.contains("; more: kubectl-acme diagnose"));
        let told = told.unwrap_or_else(|| panic!("{said:?}"));
        // The command behind it has the flags of whoever says it.
        told.split_once("diagnose certificate/web").unwrap().0.to_owned()
    };
    // One fault has one sentence, whoever tells it.
    let line = cause(&ordered);
    assert_eq!(line, cause(&said));
    assert_eq!(line, cause(&lab.terminal.run(&["describe", "certificate/web"])));
    let (_, report) = lab.diagnose(&["web"]);
    let first = &report["findings"][0];
    let told = format!(
        "{}: {}; more",
        first["cause"].as_str().unwrap(),
        first["message"].as_str().unwrap()
    );
    assert!(line.starts_with(&told), "{line}: {report:#}");
    for word in ["order/web", "request/web"] {
        let word = word.replace("request", "certificaterequest");
        let said = lab.terminal.run(&["wait", &word, "--for=issued", "--timeout=10m"]);
        assert!(!matches!(said.code, Some(0 | 124)), "{said:?}");
    }
}

/// Lines of a command as they come, until the test ends it.
fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let output = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            // Nobody may be reading any more.
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_reads_the_finding_when_it_happens_and_reads_it_once() {
    let lab = Lab::with(Config::default(), &["rejected-identifier"]).await;
    // The store is there, and the Certificate is not.
    let issuer = lab.order(&[lab.issuer(json!({}))]);
    assert_eq!(issuer.code, Some(0), "{issuer:?}");
    let mut watching = lab.terminal.command(&["watch", "certificate/web"]);
    let watching = watching.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut watching = Ended(watching);
    let lines = lines(&mut watching.0);
    let ordered = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_ne!(ordered.code, Some(0), "{ordered:?}");
    let (_, report) = lab.diagnose(&["web"]);
    let first = &report["findings"][0];
    let (cause, message) = (&first["cause"], &first["message"]);
    let told = format!("{}: {}; more: ", cause.as_str().unwrap(), message.as_str().unwrap());
    let mut heard = Vec::new();
    while !heard.iter().any(|line: &String| line.contains(&told)) {
        let line = lines.recv_timeout(PATIENCE);
        heard.push(line.unwrap_or_else(|_| panic!("{told:?} is not told: {heard:#?}")));
    }
    let told_line = heard.last().unwrap();
    assert!(
        told_line.contains(" certificate/web ") || told_line.contains("Certificate"),
        "{told_line}"
    );
    let again = lab.terminal.run(&["order", "retry", "web", &lab.listen(), &lab.resolve()]);
    assert_ne!(again.code, Some(0), "{again:?}");
    drop(watching);
    heard.extend(lines.iter());
    assert_eq!(heard.iter().filter(|line| line.contains(&told)).count(), 1, "{heard:#?}");
}

/// A command that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_do_not_look_lead_to_the_one_that_does() {
    let (lab, port) = stuck().await;
    let said = lab.looks(&["order", "-f", "manifests.yaml", "--timeout=8s"]);
    let why = format!(
        "why: kubectl-acme diagnose certificate/web {} '{}'\n",
        lab.listen(),
        lab.resolve()
    );
    assert!(said.stderr.ends_with(&why), "{said:?}");
    for word in ["certificate/web", "challenge/web", "order/web"] {
        let said = lab.terminal.run(&["describe", word]);
        assert_eq!(said.stderr, "why: kubectl-acme diagnose certificate/web\n", "{said:?}");
    }
    // One that has looked says it in the same words.
    let sentence = format!("HTTP-05: 127.0.0.1 refuses connections at port {port} for {NAME}");
    let check = lab.terminal.run(&["challenge", "check", NAME, &lab.resolve()]);
    assert!(check.stderr.contains(&sentence), "{check:?}");
    let issuer = lab.terminal.run(&["describe", "issuer/acme"]);
    assert_eq!(issuer.stderr, "", "{issuer:?}");
}
