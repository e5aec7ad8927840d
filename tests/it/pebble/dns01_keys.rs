//! Each algorithm of TSIG over each protocol, with each server: certificates of a real CA, all by one run.

use std::collections::BTreeMap;

use hickory_resolver::proto::op::OpCode;
use serde_json::{Value, json};

use crate::pebble::dns01::THEIRS;
use crate::support::dns::relay::Transport;
use crate::support::dns::{DnsServer, Key, Setup, Software, Updates, Zone};
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Terminal, certificate, issuer};

/// An algorithm and a protocol, with a zone that only the key of that algorithm may change.
struct Case {
    algorithm: &'static str,
    transport: Transport,
}

impl Case {
    fn all() -> Vec<Self> {
        let with = |algorithm| {
            [Transport::Udp, Transport::Tcp].map(|transport| Self { algorithm, transport })
        };
        Key::ALGORITHMS.into_iter().flat_map(with).collect()
    }

    /// What its Certificate is called, such as `hmac-md5-udp`.
    fn name(&self) -> String {
        format!("{}-{:?}", self.algorithm, self.transport).to_lowercase()
    }

    /// Its zone without the final dot.
    fn domain(&self) -> String {
        format!("{}.example", self.name())
    }

    fn zone(&self) -> Zone {
        let key = format!("{}.", self.algorithm);
        Zone::new(&format!("{}.", self.domain()))
            .updates(Updates::SignedBy(key))
            .with(&format!("_acme-challenge TXT \"{THEIRS}\""))
    }

    /// The solver for its zone; MD5 and UDP are what holds where nothing else is said.
    fn solver(&self, server: &DnsServer) -> Value {
        let mut fields = json!({
            "nameserver": server.address().to_string(),
            "tsigKeyName": self.algorithm,
            "tsigSecretSecretRef": {"name": "tsig", "key": self.algorithm},
        });
        if self.algorithm != "hmac-md5" {
            fields["tsigAlgorithm"] = self.algorithm.replace('-', "").to_uppercase().into();
        }
        if self.transport == Transport::Tcp {
            fields["protocol"] = "TCP".into();
        }
        json!({"dns01": {"rfc2136": fields}, "selector": {"dnsZones": [self.domain()]}})
    }
}

/// A server with a zone for each case, a resolver, a CA that asks it, and a person before a terminal.
pub(crate) struct Site {
    cases: Vec<Case>,
    pub(crate) server: DnsServer,
    pub(crate) resolver: DnsServer,
    pub(crate) pebble: Pebble,
    pub(crate) terminal: Terminal,
}

impl Site {
    pub(crate) fn new(software: Software) -> Self {
        let cases = Case::all();
        let zones = cases.iter().map(Case::zone).collect();
        let server = DnsServer::start(software, &Setup::new(zones));
        let resolver = DnsServer::recursive(&[&server]);
        let dns_server = Some(resolver.address().to_string());
        let pebble = Pebble::start(&PebbleOptions { dns_server, ..PebbleOptions::calm() });
        let mut terminal = Terminal::at(&pebble);
        terminal.set("KUBECTL_ACME_DNS", resolver.address());
        Self { cases, server, resolver, pebble, terminal }
    }

    /// A Certificate for each case, with its apex and the wildcard.
    pub(crate) fn manifests(&self) -> Vec<Value> {
        let keys = Key::all().into_iter();
        let secrets: BTreeMap<_, _> = keys.map(|key| (key.algorithm, key.secret)).collect();
        let solvers: Vec<Value> = self.cases.iter().map(|case| case.solver(&self.server)).collect();
        let solvers = json!({"solvers": solvers});
        let mut manifests = vec![
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tsig"}, "stringData": secrets}),
            issuer(&self.pebble.directory(), self.pebble.tls_ca_pem(), solvers),
        ];
        manifests.extend(self.cases.iter().map(|case| {
            let domain = case.domain();
            certificate(&case.name(), &[&domain, &format!("*.{domain}")], json!({}))
        }));
        manifests
    }

    /// Fails unless every update came as its solver says, and another party's text alone is left at each name.
    pub(crate) fn check_updates(&self) {
        let asked = self.server.asked();
        for case in &self.cases {
            let domain = case.domain();
            assert_eq!(self.server.texts(&format!("_acme-challenge.{domain}.")), [THEIRS]);
            let zone = format!("{domain}.");
            let updates = asked.iter().filter(|a| a.code == OpCode::Update && a.name == zone);
            let ways: Vec<Transport> = updates.map(|asked| asked.transport).collect();
            assert!(ways.len() >= 4, "two records, there and away: {domain} {ways:?}");
            assert!(ways.iter().all(|way| *way == case.transport), "{domain} {ways:?}");
        }
    }
}

/// One run orders all.
fn check(software: Software) {
    let site = Site::new(software);
    let said = site.terminal.try_order(&site.manifests());
    assert_eq!(said.code, Some(0), "{said:?}\n{}\n{}", site.pebble.log(), site.server.log());
    site.check_updates();
    for case in &site.cases {
        let pair = site.terminal.pair(&format!("{}-tls", case.name()));
        pair.check(&site.pebble.root_pem());
        let names = pair.leaf(&["-ext", "subjectAltName"]);
        for name in [format!("DNS:{}", case.domain()), format!("DNS:*.{}", case.domain())] {
            assert!(names.contains(&name), "{names}");
        }
    }
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn bind_is_updated_with_each_algorithm_over_each_protocol() {
    check(Software::Bind);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn knot_is_updated_with_each_algorithm_over_each_protocol() {
    check(Software::Knot);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn powerdns_is_updated_with_each_algorithm_over_each_protocol() {
    check(Software::PowerDns);
}
