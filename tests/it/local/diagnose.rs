//! The fault lab, as far as it needs nothing but loopback: each test makes a cause happen on real parts and asserts that this
//! cause is named first, with its evidence; what is well has none.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use kubectl_acme::ca::behaviour::RequestedBehaviour;
use kubectl_acme::ca::{self, Config};
use kubectl_acme::model::DnsName;
use serde_json::{Value, json};

use crate::support::bed::free_port;
use crate::support::ca::TestCa;
use crate::support::reports;
use crate::support::terminal::{Said, Terminal, certificate, issuer, secret};

const NAME: &str = "www.example.com";

/// A CA, a state folder, and the port to which every name leads.
struct Lab {
    ca: TestCa,
    terminal: Terminal,
    /// Where somebody who looks is led.
    target: u16,
}

impl Lab {
    async fn new() -> Self {
        Self::with(Config::default(), &[]).await
    }

    /// A CA of other habits.
    async fn with(config: Config, behaviours: &[&str]) -> Self {
        let mut ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
        let eyes = Arc::new(ca.fetcher());
        let behaviours: Vec<_> =
            behaviours.iter().map(|text| RequestedBehaviour::parse(text).unwrap()).collect();
        ca.server = ca::serve_as(config, &behaviours, eyes).await.unwrap();
        let mut terminal = Terminal::elsewhere();
        terminal.http_port = ca.http01.port();
        let target = terminal.http_port;
        Self { ca, terminal, target }
    }

    /// An Issuer of the CA, with more in it.
    fn issuer(&self, more: Value) -> Value {
        issuer(&self.ca.server.directory_url(), self.ca.server.tls_root_pem(), more)
    }

    /// Orders, and leaves it where it is after a moment.
    fn order(&self, documents: &[Value]) -> Said {
        self.terminal.manifests(documents);
        let order = ["order", "-f", "manifests.yaml", "--timeout=4s"];
        self.terminal.run(&[&order[..], &[&self.listen(), &self.resolve()]].concat())
    }

    fn listen(&self) -> String {
        format!("--http01-listen=127.0.0.1:{}", self.terminal.http_port)
    }

    fn resolve(&self) -> String {
        format!("--http01-resolve=*=127.0.0.1:{}", self.target)
    }

    /// Orders for one name at a CA that leads to that port.
    fn stuck_at(&mut self, port: u16) {
        self.target = port;
        let said = self.order(&[self.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
        assert_eq!(said.code, Some(124), "{said:?}");
        let challenges = self.terminal.objects("challenges");
        assert_eq!(challenges[0]["status"]["presented"], true, "{challenges:#?}");
    }

    /// What `diagnose` finds.
    fn diagnose(&self, words: &[&str]) -> (Said, Value) {
        let (resolve, listen) = (self.resolve(), self.listen());
        let all = [&["diagnose"], words, &["-o", "json", &resolve, &listen]].concat();
        let said = self.terminal.run(&all);
        let report: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        assert_eq!(report["kind"], "Diagnosis", "{report:#}");
        assert_eq!(report["exitCode"].as_i64(), said.code.map(i64::from), "{said:?}");
        let rows = reports::rows("Diagnosis");
        for (path, _) in reports::fields(&report) {
            let way = |row: &String| path == *row || path.starts_with(&format!("{row}."));
            // A list without any entry is told by what would stand in it.
            let is_empty = |row: &String| row.starts_with(&format!("{path}[]"));
            assert!(rows.keys().any(|row| way(row) || is_empty(row)), "{path} is not told");
        }
        (said, report)
    }

    /// The cause that is named first, with evidence, and how it ends.
    #[track_caller]
    fn names_first(&self, words: &[&str], cause: &str, code: i32) -> Value {
        let (said, report) = self.diagnose(words);
        let first = &report["findings"][0];
        assert_eq!(first["cause"], cause, "{report:#}");
        assert_eq!(said.code, Some(code), "{report:#}");
        let evidence = first["evidence"].as_array().unwrap();
        assert!(!evidence.is_empty() && evidence.iter().all(|one| one["came"] != ""), "{first:#}");
        let (resolve, listen) = (self.resolve(), self.listen());
        let people = self.terminal.run(&[&["diagnose"], words, &[&resolve, &listen]].concat());
        assert_eq!(people.code, Some(code), "{people:?}");
        assert!(people.stdout.starts_with(cause), "{people:?}");
        // Lines to copy are not folded.
        let words = people.stdout.lines().filter(|line| !line.starts_with("         "));
        assert!(words.clone().all(|line| line.chars().count() <= 80), "{people:?}");
        first.clone()
    }
}

/// A web server that answers every request with these bytes, until the test ends; nothing means that it never answers.
fn server(answer: Option<&'static str>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut kept: Vec<TcpStream> = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            match answer {
                None => kept.push(stream),
                Some(answer) => {
                    let mut request = [0; 2048];
                    // Whoever asks may be gone.
                    let _read = stream.read(&mut request);
                    let _written = stream.write_all(answer.as_bytes());
                }
            }
        }
    });
    port
}

fn reply(status: &str, more: &str, body: &str) -> &'static str {
    let length = body.len();
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n{body}"
    );
    Box::leak(reply.into_boxed_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_issued_has_no_fault() {
    let lab = Lab::new().await;
    let documents = [lab.issuer(json!({})), certificate("web", &[NAME], json!({}))];
    assert_eq!(lab.order(&documents).code, Some(0));
    let (said, report) = lab.diagnose(&["certificate/web"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let causes: Vec<&Value> =
        report["findings"].as_array().unwrap().iter().map(|finding| &finding["cause"]).collect();
    assert_eq!(causes, [&json!("ORD-01")], "{report:#}");
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
    assert_eq!((said.code, &report["findings"]), (Some(0), &json!([])), "{report:#}");
    assert!(said.stderr.contains("nobody drives"), "{said:?}");
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
    assert!(said.stderr.contains("objects were not looked at"), "{said:?}");
    let well = server(Some(reply("404 Not Found", "", "no such token")));
    let resolve = format!("--http01-resolve=*=127.0.0.1:{well}");
    let said = bare.run(&["diagnose", NAME, &resolve]);
    assert_eq!(said.code, Some(0), "a server that does not know the token is well: {said:?}");
    let never = bare.run(&["diagnose", "printer.local", &resolve]);
    assert!(never.stdout.starts_with("CFG-12"), "{never:?}");
    drop(lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told_as_everywhere() {
    let lab = Lab::new().await;
    let said = lab.terminal.run(&["diagnose", "certificate/absent"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("\"absent\" not found"), "{said:?}");
    let kind = lab.terminal.run(&["diagnose", "secret/web"]);
    assert_eq!(kind.code, Some(2), "{kind:?}");
}
