//! The fault lab, as far as it needs nothing but loopback: each test makes a cause happen on real parts and asserts that this
//! cause is named first, with its evidence; what is well has none.

mod authority;
mod found;
mod manifests;
mod orders;
mod refusals;
mod status;
mod tls;
mod validation;
mod verbs;
mod web;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use kubectl_acme::ca::behaviour::RequestedBehaviour;
use kubectl_acme::ca::{self, Config};
use kubectl_acme::fetch::{Fetcher, Overrides};
use serde_json::{Value, json};

use crate::support::ca::TestCa;
use crate::support::lab;
use crate::support::reports;
use crate::support::terminal::{Said, Terminal, certificate, issuer};

pub(super) const NAME: &str = "www.example.com";

/// A CA, a state folder, and the port to which every name leads.
pub(super) struct Lab {
    pub(super) ca: TestCa,
    pub(super) terminal: Terminal,
    /// Where somebody who looks is led.
    pub(super) target: u16,
}

impl Lab {
    pub(super) async fn new() -> Self {
        Self::with(Config::default(), &[]).await
    }

    /// A CA of other habits.
    pub(super) async fn with(config: Config, behaviours: &[&str]) -> Self {
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

    /// A CA that is led elsewhere than a self-check: to that port.
    pub(super) async fn seeing(port: u16, behaviours: &[&str]) -> Self {
        let mut lab = Self::new().await;
        let hosts = [("*".to_owned(), (Ipv4Addr::LOCALHOST.into(), Some(port)))].into();
        let overrides = Overrides { hosts, ..Overrides::default() };
        let eyes = Arc::new(Fetcher { overrides, ..lab.ca.fetcher() });
        let behaviours: Vec<_> =
            behaviours.iter().map(|text| RequestedBehaviour::parse(text).unwrap()).collect();
        lab.ca.server = ca::serve_as(Config::default(), &behaviours, eyes).await.unwrap();
        lab
    }

    /// An Issuer of the CA, with more in it.
    pub(super) fn issuer(&self, more: Value) -> Value {
        issuer(&self.ca.server.directory_url(), self.ca.server.tls_root_pem(), more)
    }

    /// Orders, and leaves it where it is after a moment.
    pub(super) fn order(&self, documents: &[Value]) -> Said {
        self.order_within("8s", documents)
    }

    /// Orders what has to be issued.
    pub(super) fn issue(&self, documents: &[Value]) {
        let said = self.order_within("1m", documents);
        assert_eq!(said.code, Some(0), "{said:?}");
    }

    fn order_within(&self, timeout: &str, documents: &[Value]) -> Said {
        self.terminal.manifests(documents);
        let order = ["order", "-f", "manifests.yaml", "--timeout", timeout];
        self.terminal.run(&[&order[..], &[&self.listen(), &self.resolve()]].concat())
    }

    pub(super) fn listen(&self) -> String {
        format!("--http01-listen=127.0.0.1:{}", self.terminal.http_port)
    }

    pub(super) fn resolve(&self) -> String {
        format!("--http01-resolve=*=127.0.0.1:{}", self.target)
    }

    /// Orders for one name at a CA that leads to that port.
    pub(super) fn stuck_at(&mut self, port: u16) {
        self.target = port;
        let said = self.order(&[self.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
        assert_eq!(said.code, Some(124), "{said:?}");
        let challenges = self.terminal.objects("challenges");
        assert_eq!(challenges[0]["status"]["presented"], true, "{challenges:#?}");
    }

    /// What `diagnose` finds.
    pub(super) fn diagnose(&self, words: &[&str]) -> (Said, Value) {
        let (resolve, listen) = (self.resolve(), self.listen());
        let mut all = [&["diagnose"], words, &["-o", "json", &resolve]].concat();
        // For a domain alone nobody answers, unless the words name a place.
        if !words.contains(&NAME) {
            all.push(&listen);
        }
        let said = self.terminal.run(&all);
        let report: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        assert_eq!(report["kind"], "Diagnosis", "{report:#}");
        assert_eq!(report["exitCode"].as_i64(), said.code.map(i64::from), "{said:?}");
        assert_eq!(reports::misfit(&reports::schema(), &report, "Diagnosis"), None);
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
    pub(super) fn names_first(&self, words: &[&str], cause: &str, code: i32) -> Value {
        let (said, report) = self.diagnose(words);
        let first = lab::names_first(&report, cause);
        assert_eq!(said.code, Some(code), "{report:#}");
        let (resolve, listen) = (self.resolve(), self.listen());
        let people = self.terminal.run(&[&["diagnose"], words, &[&resolve, &listen]].concat());
        assert_eq!(people.code, Some(code), "{people:?}");
        assert!(people.stdout.starts_with(cause), "{people:?}");
        // Lines to copy are not folded.
        let words = people.stdout.lines().filter(|line| !line.starts_with("       "));
        assert!(words.clone().all(|line| line.chars().count() <= 80), "{people:?}");
        first.clone()
    }
}

/// A web server that answers every request with these bytes, until the test ends; nothing means that it never answers.
pub(super) fn server(answer: Option<&'static str>) -> u16 {
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

pub(super) fn reply(status: &str, more: &str, body: &str) -> &'static str {
    let length = body.len();
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n{body}"
    );
    Box::leak(reply.into_boxed_str())
}
