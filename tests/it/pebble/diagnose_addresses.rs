//! The fault lab where a name has several addresses, or a record goes to another name server than the zone's: a zone on a real
//! name server, a resolver before it, Pebble as CA.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use kubectl_acme::ca::Config;
use kubectl_acme::model::Identifier;
use serde_json::{Value, json};

use crate::support::ca::TestCa;
use crate::support::dns::{DnsServer, Setup, Software, Updates, Zone};
use crate::support::fault::Fault;
use crate::support::full_port::FullPort;
use crate::support::lab;
use crate::support::name_server::NameServer;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::proxy::Proxy;
use crate::support::terminal::{Terminal, certificate, issuer};
use crate::support::traffic::Endpoint;

const ZONE: &str = "example.com.";
const NAME: &str = "www.example.com";

/// A zone with these records, whoever asks for it, and a CA that is told of no answer.
struct Site {
    server: DnsServer,
    _resolver: DnsServer,
    pebble: Pebble,
    proxy: Proxy,
    terminal: Terminal,
}

impl Site {
    fn new(records: &[&str]) -> Self {
        let zone = Zone::new(ZONE).updates(Updates::Unsigned);
        let zone = records.iter().fold(zone, |zone, record| zone.with(record));
        let server = DnsServer::start(Software::Bind, &Setup::new(vec![zone]));
        let resolver = DnsServer::recursive(&[&server]);
        let pebble = Pebble::start(&PebbleOptions {
            dns_server: Some(resolver.address().to_string()),
            ..PebbleOptions::calm()
        });
        let proxy = pebble.proxy();
        proxy.inject(Fault::drop_request().at(Endpoint::Challenge));
        let mut terminal = Terminal::elsewhere();
        terminal.set("KUBECTL_ACME_DNS", resolver.address());
        Self { server, _resolver: resolver, pebble, proxy, terminal }
    }

    fn issuer(&self, more: Value) -> Value {
        issuer(&self.proxy.directory(), self.pebble.tls_ca_pem(), more)
    }

    /// Orders, and looks with these flags once the time is up.
    fn names_first(&self, documents: &[Value], cause: &str, flags: &[&str]) -> Value {
        self.terminal.manifests(documents);
        let order = ["order", "-f", "manifests.yaml", "--timeout=12s"];
        let said = self.terminal.run(&[&order[..], flags].concat());
        assert_ne!(said.code, Some(0), "{said:?}");
        let said = self.terminal.run(&[&["diagnose", "web", "-o", "json"], flags].concat());
        let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        let first = lab::names_first(&report, cause).clone();
        assert_eq!(said.code, Some(10), "{report:#}");
        first
    }
}

/// A web server at port 80 of an address that does not have the answer.
fn other_server(address: &str) {
    let listener = TcpListener::bind(address).unwrap_or_else(|why| {
        panic!("cannot listen at {address}: {why}; be root, or sysctl net.ipv4.ip_unprivileged_port_start=53")
    });
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            // Whoever asks may be gone.
            let _read = stream.read(&mut [0; 2048]);
            let reply = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _written = stream.write_all(reply.as_bytes());
        }
    });
}

#[test]
#[ignore = "needs name servers and port 80: run by just pebble"]
fn http_06_another_server_stands_at_the_ipv6_address() {
    let site = Site::new(&["www A 127.86.80.6", "www AAAA ::1"]);
    other_server("[::1]:80");
    let documents = [site.issuer(json!({})), certificate("web", &[NAME], json!({}))];
    let first = site.names_first(&documents, "HTTP-06", &["--http01-listen=127.86.80.6:80"]);
    assert_eq!(first["grade"], "certain", "{first:#}");
    assert!(first["message"].as_str().unwrap().contains("::1"), "{first:#}");
}

#[test]
#[ignore = "needs name servers and port 80: run by just pebble"]
fn http_07_one_of_two_addresses_does_not_have_the_answer() {
    let site = Site::new(&["www A 127.86.80.7", "www A 127.86.80.8"]);
    other_server("127.86.80.8:80");
    let documents = [site.issuer(json!({})), certificate("web", &[NAME], json!({}))];
    let first = site.names_first(&documents, "HTTP-07", &["--http01-listen=127.86.80.7:80"]);
    assert!(first["message"].as_str().unwrap().contains("127.86.80.8"), "{first:#}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn cfg_06_the_solver_with_the_longer_zone_publishes_where_nobody_asks() {
    let mut site = Site::new(&[]);
    let zone = Zone::new(ZONE).updates(Updates::Unsigned);
    let unasked = DnsServer::start(Software::Bind, &Setup::new(vec![zone]));
    let solver = |server: &DnsServer, zone: &str| {
        json!({
            "selector": {"dnsZones": [zone]},
            "dns01": {"rfc2136": {"nameserver": server.address().to_string()}},
        })
    };
    let solvers = json!([solver(&site.server, "example.com"), solver(&unasked, NAME)]);
    let documents =
        [site.issuer(json!({"solvers": solvers})), certificate("web", &[NAME], json!({}))];
    site.terminal.manifests(&documents);
    let order = ["order", "-f", "manifests.yaml", "--timeout=8s"];
    let said = site.terminal.run(&order);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert_eq!(unasked.texts("_acme-challenge.www.example.com.").len(), 1, "it is published");
    // A record that was published just now may be on its way.
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(10);
    site.terminal.set("KUBECTL_ACME_NOW", format!("{later:.0}"));
    let said = site.terminal.run(&["diagnose", "web", "-o", "json"]);
    let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    let first = lab::names_first(&report, "CFG-06");
    assert_eq!(said.code, Some(10), "{report:#}");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("solvers[1]") && message.contains("its zone is longer"), "{message}");
    assert!(first["explains"].as_array().unwrap().contains(&json!("D01-01")), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs challtestsrv: run by just pebble"]
async fn env_07_the_ca_has_an_ipv6_address_that_is_silent() {
    let names = vec![Identifier::parse("ca.example.com").unwrap()];
    let ca = TestCa::start(Config { names, ..Config::default() }, |fetcher| fetcher).await;
    let port = ca.server.address().port();
    assert_eq!(ca.server.address().ip(), Ipv4Addr::LOCALHOST);
    let silent = FullPort::open(&format!("[::1]:{port}"));
    let mut terminal = Terminal::elsewhere();
    let dns = NameServer::start(terminal.path("dns.log"));
    let deadline = std::time::Instant::now() + crate::support::bed::PATIENCE;
    while dns.look().is_err() {
        assert!(std::time::Instant::now() < deadline, "{}", dns.log());
        thread::sleep(std::time::Duration::from_millis(50));
    }
    dns.add_aaaa("ca.example.com", &["::1"]);
    terminal.set("KUBECTL_ACME_DNS", dns.address());
    let issuer = issuer(&ca.server.directory_url(), ca.server.tls_root_pem(), json!({}));
    terminal.manifests(&[issuer]);
    let said = terminal.run(&["diagnose", "-f", "manifests.yaml", "-o", "json"]);
    let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    let first = lab::names_first(&report, "ENV-07");
    assert_eq!(said.code, Some(0), "{report:#}");
    assert!(first["evidence"].to_string().contains(&silent.port.to_string()), "{first:#}");
}
