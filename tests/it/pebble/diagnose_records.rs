//! The fault lab where the record of a challenge is what is wrong: changed on its way, taken away, in a zone that nobody asks, or of
//! another name.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use kubectl_acme::ca::{Config, Look};
use kubectl_acme::dns::LookupError;
use kubectl_acme::fetch::Fetcher;
use kubectl_acme::fetch::outcome::Fetched;
use serde_json::{Value, json};
use url::Url;

use crate::pebble::diagnose_dns::Lab;
use crate::pebble::diagnose_zone::{NAME, RECORD, ZONE, asking, diagnosed, look, server};
use crate::support::bed::PATIENCE;
use crate::support::ca::TestCa;
use crate::support::dns::recursor::WITHHOLDS_SOA;
use crate::support::dns::{DnsServer, Setup, Software, Updates, Zone, loopback};
use crate::support::lab;
use crate::support::terminal::{Terminal, certificate, issuer};

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn d01_05_a_resolver_hides_the_zone_that_the_name_is_in() {
    let parent = server(ZONE, &[]);
    let child = "dev.example.com.";
    let below = DnsServer::start(Software::Bind, &Setup::new(vec![Zone::new(child)]));
    let line = below.delegation(child);
    drop(parent);
    let parent = server(ZONE, &[&line]);
    let inner = DnsServer::recursive(&[&parent, &below]);
    let resolver = DnsServer::validating(&inner, &[]);
    let flag = resolver.folder().join(WITHHOLDS_SOA);
    std::fs::write(&flag, child).unwrap();
    let name = "*.dev.example.com";
    let (said, report) = diagnosed(&resolver, name);
    let first = lab::names_first(&report, "D01-05");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("zone example.com instead of dev.example.com"), "{message}");
    assert_eq!(said.code, Some(0), "this program asks the zone's own servers: {report:#}");
    std::fs::remove_file(flag).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while diagnosed(&resolver, name).1["findings"] != json!([]) {
        assert!(Instant::now() < deadline, "it is well: {:?}", diagnosed(&resolver, name).0);
        thread::sleep(Duration::from_millis(200));
    }
    lab::names_none(&diagnosed(&resolver, name).1, "a zone below a zone");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_07_the_challenge_is_a_zone_of_its_own() {
    let child = "_acme-challenge.example.com.";
    let zone = Zone::new(child).updates(Updates::Unsigned);
    let own = DnsServer::start(Software::Knot, &Setup::new(vec![zone]));
    let line = own.delegation(child);
    let mut lab = Lab::new(&[&line]);
    let value = lab.wanted();
    // Whoever writes into the zone above writes in vain.
    lab.server.publish(ZONE, RECORD, &value);
    let (said, report) = look(&lab.terminal, &["web"]);
    let first = lab::names_first(&report, "D01-07");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("ns._acme-challenge.example.com"), "{message}");
    assert_eq!(said.code, Some(10), "{report:#}");
    own.publish(child, RECORD, &value);
    lab::names_none(&look(&lab.terminal, &["web"]).1, "a zone for challenges alone");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_09_an_alias_is_not_followed_or_leads_in_a_circle() {
    let other = Zone::new("example.org.").updates(Updates::Unsigned);
    let other = DnsServer::start(Software::Knot, &Setup::new(vec![other]));
    let target = "web.example.org.";
    let mut lab = Lab::beside(&[&format!("_acme-challenge CNAME {target}")], &[&other]);
    let value = lab.wanted_at(target);
    let (said, report) = look(&lab.terminal, &["web"]);
    let first = lab::names_first(&report, "D01-09");
    assert!(first["message"].as_str().unwrap().contains("web.example.org"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
    other.publish("example.org.", target, &value);
    lab::names_none(&look(&lab.terminal, &["web"]).1, "a record where the alias leads");
    other.withdraw("example.org.", target);
    other.lead("example.org.", target, RECORD);
    let (said, report) = look(&lab.terminal, &["web"]);
    lab::names_first(&report, "D01-09");
    assert_eq!(said.code, Some(10), "{report:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_12_the_value_was_changed_on_its_way() {
    let mut lab = Lab::new(&[]);
    let value = lab.wanted();
    let changed = [
        format!("\"{value}\""),
        value.to_ascii_lowercase(),
        value[..40].to_owned(),
        format!("{value}="),
        format!("{} {}", &value[..20], &value[20..]),
    ];
    for text in changed {
        lab.server.replace(ZONE, RECORD, &text);
        let (said, report) = look(&lab.terminal, &["web"]);
        let first = lab::names_first(&report, "D01-12");
        assert_eq!((said.code, &first["grade"]), (Some(10), &json!("certain")), "{report:#}");
    }
    lab.server.replace(ZONE, RECORD, &value);
    lab::names_none(&look(&lab.terminal, &["web"]).1, "the value as it has to be");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_13_one_value_is_kept_for_a_name_and_its_wildcard() {
    let mut lab = Lab::new(&[]);
    lab.asks_for(&["example.com", NAME]);
    let records = lab.ordered();
    lab.waits();
    let values: Vec<&str> =
        records.iter().map(|record| record["value"].as_str().unwrap()).collect();
    assert_eq!(values.len(), 2, "{records:#?}");
    for value in &values {
        lab.server.replace(ZONE, RECORD, value);
    }
    let (mut said, mut report) = look(&lab.terminal, &["web"]);
    if report["findings"] == json!([]) {
        // Only one of the two has its turn; that of the other one was the first.
        lab.server.replace(ZONE, RECORD, values[0]);
        (said, report) = look(&lab.terminal, &["web"]);
    }
    lab::names_first(&report, "D01-13");
    assert_eq!(said.code, Some(10), "{report:#}");
    for value in &values {
        lab.server.publish(ZONE, RECORD, value);
    }
    lab::names_none(&look(&lab.terminal, &["web"]).1, "two values at one name");
}

/// Looks at records for as long as anybody waits.
#[derive(Debug)]
struct SlowEyes(Fetcher);

#[async_trait]
impl Look for SlowEyes {
    async fn get(&self, url: &Url) -> Fetched {
        self.0.get(url).await
    }

    async fn texts(&self, _name: &str) -> Result<Vec<String>, LookupError> {
        std::future::pending().await
    }
}

/// A CA that never says what came of its look at an answer, and somebody who makes records by hand.
struct Slow {
    server: DnsServer,
    terminal: Terminal,
    _resolver: DnsServer,
    _ca: TestCa,
}

impl Slow {
    async fn start() -> Self {
        let server = server(ZONE, &[]);
        let resolver = DnsServer::recursive(&[&server]);
        let address = resolver.address();
        let ca = TestCa::start(Config::default(), SlowEyes).await;
        let mut terminal = Terminal::elsewhere();
        terminal.set("KUBECTL_ACME_DNS", address);
        let solvers = json!({"solvers": [{"dns01": {"rfc2136": {"nameserver": "192.0.2.53"}}}]});
        terminal.manifests(&[
            issuer(&ca.server.directory_url(), ca.server.tls_root_pem(), solvers),
            certificate("web", &["example.com"], json!({})),
        ]);
        Self { server, terminal, _resolver: resolver, _ca: ca }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn d01_14_something_takes_the_record_away() {
    let site = Slow::start().await;
    let words = ["order", "-f", "manifests.yaml", "--dns01-manual", "-o", "json"];
    let said = site.terminal.run(&words);
    assert_eq!(said.code, Some(13), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    let value = report["records"][0]["value"].as_str().unwrap();
    site.server.publish(ZONE, RECORD, value);
    let said = site.terminal.run(&[&words[..], &["--timeout=10s"]].concat());
    assert_eq!(said.code, Some(124), "{said:?}");
    lab::names_none(&look(&site.terminal, &["web"]).1, "a record at which the CA looks");
    site.server.withdraw(ZONE, RECORD);
    let (said, report) = look(&site.terminal, &["web"]);
    let first = lab::names_first(&report, "D01-14");
    assert_eq!((said.code, &first["grade"]), (Some(10), &json!("certain")), "{report:#}");
    assert!(first["evidence"].to_string().contains("NXDOMAIN"), "{first:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_14_a_record_comes_and_goes() {
    let mut lab = Lab::new(&[]);
    let value = lab.wanted();
    let deadline = Instant::now() + PATIENCE;
    let report = thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (server, value) = (&lab.server, &value);
        scope.spawn(move || {
            let pause = Duration::from_millis(700);
            while stopped.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                server.publish(ZONE, RECORD, value);
                thread::sleep(pause);
                server.withdraw(ZONE, RECORD);
            }
        });
        loop {
            let (_, report) = look(&lab.terminal, &["web"]);
            if report["findings"][0]["cause"] == "D01-14" || Instant::now() > deadline {
                stop.send(()).unwrap();
                return report;
            }
        }
    });
    let first = lab::names_first(&report, "D01-14");
    assert!(first["evidence"].to_string().contains(&value), "{first:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn per_02_the_record_that_stays_is_at_the_name_of_dns_01() {
    let mut lab = Lab::new(&[]);
    lab.asks_for_a_record_that_stays();
    let records = lab.ordered();
    lab.waits();
    let (at, value) = (&records[0]["name"], records[0]["value"].as_str().unwrap());
    assert_eq!(at, "_validation-persist.example.com.", "{records:#?}");
    lab.server.publish(ZONE, RECORD, value);
    let (said, report) = look(&lab.terminal, &["web"]);
    let first = lab::names_first(&report, "PER-02");
    assert!(first["evidence"].to_string().contains("_validation-persist"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
    lab.server.publish(ZONE, at.as_str().unwrap(), value);
    lab::names_none(&look(&lab.terminal, &["web"]).1, "a record that stays");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn per_01_the_ca_does_not_offer_the_type() {
    let own = server(ZONE, &[]);
    let resolver = DnsServer::recursive(&[&own]);
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let (url, root) = (ca.server.directory_url(), ca.server.tls_root_pem());
    let mut issuer = issuer(&url, root, json!({"solvers": []}));
    issuer["metadata"]["annotations"] = json!({"kubectl-acme/challenge-type": "dns-persist-01"});
    let terminal = asking(resolver.address());
    terminal.manifests(&[issuer, certificate("web", &["example.com"], json!({}))]);
    let words = ["order", "-f", "manifests.yaml", "--dns01-manual", "--timeout=10s"];
    let said = terminal.run(&words);
    assert_ne!(said.code, Some(0), "{said:?}");
    let (said, report) = look(&terminal, &["web"]);
    let first = lab::names_first(&report, "PER-01");
    assert!(first["message"].as_str().unwrap().contains("dns-01"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
}

/// Passes connections to port 443 of a loopback address on.
fn passes_to(address: Ipv4Addr, port: u16) {
    let listener = TcpListener::bind((address, 443)).unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let there = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            for (mut from, mut to) in
                [(client.try_clone(), there.try_clone()), (Ok(there), Ok(client))]
                    .map(|(from, to)| (from.unwrap(), to.unwrap()))
            {
                thread::spawn(move || io::copy(&mut from, &mut to));
            }
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs port 443: run by just pebble"]
async fn env_04_a_wildcard_of_the_search_domain_answers_for_the_ca() {
    // A resolver that completes names by itself, as CoreDNS' autopath does, says what the wildcard of the search domain says.
    let IpAddr::V4(ingress) = loopback() else { unreachable!() };
    let inner = Zone::new("letsencrypt.org.").with(&format!("* A {ingress}"));
    let inner = DnsServer::start(Software::Bind, &Setup::new(vec![inner]));
    let resolver = DnsServer::recursive(&[&inner]);
    let own = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let url = own.server.directory_url();
    let port: SocketAddr = url.split('/').nth(2).unwrap().parse().unwrap();
    passes_to(ingress, port.port());
    let terminal = asking(resolver.address());
    let server = "https://acme-v02.api.letsencrypt.org/directory";
    // Of the name itself nothing is wrong.
    let solver = json!({"dns01": {"rfc2136": {"nameserver": inner.address().to_string()}}});
    terminal.manifests(&[
        issuer(server, "", json!({"solvers": [solver]})),
        certificate("web", &["*.web.letsencrypt.org"], json!({})),
    ]);
    let (said, report) = look(&terminal, &["-f", "manifests.yaml"]);
    let first = lab::names_first(&report, "ENV-04");
    let message = first["message"].as_str().unwrap();
    assert!(
        message.contains("acme-v02.api.letsencrypt.org") && message.contains(&ingress.to_string()),
        "{message}"
    );
    assert_eq!(said.code, Some(10), "{report:#}");
}
