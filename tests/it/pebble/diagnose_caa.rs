//! The fault lab where CAA records are what is wrong: records on a real name server, our own CA, which heeds them, and whoever
//! orders there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use kubectl_acme::ca::{Caa, Config, RecordAccount};
use kubectl_acme::dns::lookup::DirectResolver;
use kubectl_acme::fetch::Fetcher;
use serde_json::{Value, json};

use crate::support::bed::PATIENCE;
use crate::support::ca::TestCa;
use crate::support::dns::relay::Spoilt;
use crate::support::dns::{DnsServer, Setup, Software, Updates, Zone};
use crate::support::lab;
use crate::support::terminal::{Said, Terminal, certificate, issuer};

/// What records have to call the CA.
const IDENTITY: &str = "ca.example";

/// A CA that looks at CAA records by that resolver, and somebody who orders there.
struct CaaLab {
    ca: TestCa,
    terminal: Terminal,
    zone: DnsServer,
    /// Another zone, whose server may fail.
    other: DnsServer,
    _resolver: DnsServer,
}

impl CaaLab {
    async fn start(records: &[&str]) -> Self {
        let zone = Zone::new("example.com.").updates(Updates::Unsigned);
        let zone = records.iter().fold(zone, |zone, record| zone.with(record));
        let zone = DnsServer::start(Software::Bind, &Setup::new(vec![zone]));
        let other = Zone::new("example.net.").with("www A 127.0.0.1");
        let other = DnsServer::start(Software::Knot, &Setup::new(vec![other]));
        let resolver = DnsServer::recursive(&[&zone, &other]);
        let address = resolver.address();
        let identities = vec![IDENTITY.to_owned()];
        let caa = Some(Caa { identities, account: RecordAccount::Own });
        let config = Config { caa, ..Config::default() };
        let eyes = |fetcher: Fetcher| Fetcher {
            resolver: Arc::new(DirectResolver::new(address)),
            ..fetcher
        };
        let ca = TestCa::start(config, eyes).await;
        let mut terminal = Terminal::elsewhere();
        terminal.http_port = ca.http01.port();
        terminal.set("KUBECTL_ACME_DNS", address);
        Self { ca, terminal, zone, other, _resolver: resolver }
    }

    /// Orders one Certificate for each name, which is called after it.
    fn order(&self, names: &BTreeMap<&str, &str>) -> Said {
        let server = self.zone.address().to_string();
        let by_update = json!({
            "dns01": {"rfc2136": {"nameserver": server}},
            "selector": {"dnsNames": ["*.wild.example.com"]},
        });
        let solvers = json!({"solvers": [{"http01": {"ingress": {}}}, by_update]});
        let (url, root) = (self.ca.server.directory_url(), self.ca.server.tls_root_pem());
        let mut documents = vec![issuer(&url, root, solvers)];
        documents
            .extend(names.iter().map(|(name, domain)| certificate(name, &[domain], json!({}))));
        self.terminal.manifests(&documents);
        self.terminal.drive(&["order", "-f", "manifests.yaml"])
    }

    /// Nothing is wrong with a Certificate, which was issued.
    #[track_caller]
    fn is_issued(&self, name: &str) {
        let (said, report) = self.diagnose(name);
        let causes: Vec<&Value> =
            report["findings"].as_array().unwrap().iter().map(|f| &f["cause"]).collect();
        assert_eq!((said.code, causes), (Some(0), vec![&json!("ORD-01")]), "{report:#}");
    }

    fn diagnose(&self, name: &str) -> (Said, Value) {
        let listen = format!("--http01-listen=127.0.0.1:{}", self.terminal.http_port);
        let resolve = format!("--http01-resolve=*=127.0.0.1:{}", self.terminal.http_port);
        let said = self.terminal.run(&["diagnose", name, "-o", "json", &listen, &resolve]);
        let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        (said, report)
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn caa_02_to_caa_07_records_keep_the_ca_out_each_in_its_own_way() {
    let own = |more: &str| format!("CAA 0 issue \"{IDENTITY}{more}\"");
    let records = [
        "critical CAA 128 future \"x\"".to_owned(),
        format!("critical {}", own("")),
        format!("malformed CAA 0 issue \"https://{IDENTITY}/\""),
        format!("account {}", own("; accounturi=https://ca.example/acct/other")),
        format!("method {}", own("; validationmethods=dns-01")),
        format!("wild {}", own("")),
        "wild CAA 0 issuewild \";\"".to_owned(),
        format!("good {}", own("; validationmethods=http-01")),
    ];
    let lab = CaaLab::start(&records.each_ref().map(String::as_str)).await;
    let causes = [
        ("critical", "CAA-02"),
        ("malformed", "CAA-04"),
        ("account", "CAA-05"),
        ("method", "CAA-06"),
        ("wild", "CAA-07"),
    ];
    let domains: Vec<(&str, String)> = causes
        .iter()
        .map(|(name, _)| *name)
        .chain(["good"])
        .map(|name| match name {
            "wild" => (name, "*.wild.example.com".to_owned()),
            name => (name, format!("{name}.example.com")),
        })
        .collect();
    let said = lab.order(&domains.iter().map(|(name, domain)| (*name, domain.as_str())).collect());
    assert_ne!(said.code, Some(0), "{said:?}");
    for (name, cause) in causes {
        let (said, report) = lab.diagnose(name);
        let first = lab::names_first(&report, cause);
        assert_eq!((said.code, &first["grade"]), (Some(10), &json!("certain")), "{report:#}");
        assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report:#}");
        let owner = format!("{name}.example.com");
        let message = first["message"].as_str().unwrap();
        assert!(message.contains(&owner), "{message}");
    }
    lab.is_issued("good");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn caa_03_records_cannot_be_looked_up() {
    let lab = CaaLab::start(&[]).await;
    lab.other.spoil(Some(Spoilt::Coded(RecordType::CAA, ResponseCode::ServFail)));
    let said = lab.order(&[("lost", "www.example.net")].into());
    assert_ne!(said.code, Some(0), "{said:?}");
    let (said, report) = lab.diagnose("lost");
    let first = lab::names_first(&report, "CAA-03");
    assert!(first["message"].as_str().unwrap().contains("SERVFAIL"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");

    lab.other.spoil(None);
    let deadline = Instant::now() + PATIENCE;
    // Resolvers keep a failure for a moment.
    while lab.order(&[("lost", "www.example.net")].into()).code != Some(0) {
        assert!(Instant::now() < deadline, "{:?}", lab.diagnose("lost").0);
        thread::sleep(Duration::from_millis(300));
    }
    lab.is_issued("lost");
}
