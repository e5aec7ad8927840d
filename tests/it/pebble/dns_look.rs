//! Looking at DNS-01 on real servers: what is wrong is told with the server and its answer, and heals once it is repaired.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::proto::rr::RecordType;
use kubectl_acme::dns::FindZone as _;
use kubectl_acme::dns::lookup::DirectResolver;
use kubectl_acme::dns::server::Server;
use kubectl_acme::dns::zone::{Trust, Zones};
use kubectl_acme::model::Record;
use kubectl_acme::model::{Answer, Challenge};
use kubectl_acme::probes::Probe as _;
use kubectl_acme::probes::dns::DnsProbe;
use kubectl_acme::reconcile::challenge::Readiness;
use kubectl_acme::reconcile::dns01_visible;
use kubectl_acme::store::Store as _;
use kubectl_acme::store::local::{Access, LocalStore};
use serde_json::{Value, json};

pub(super) use crate::support::bed::PATIENCE;
use crate::support::dns::relay::Transport;
use crate::support::dns::{DnsServer, Setup, Software, Updates, Zone, loopback};
use crate::support::program;
use crate::support::terminal::Said;

pub(super) const ZONE: &str = "example.com.";
pub(super) const RECORD: &str = "_acme-challenge.www.example.com.";
pub(super) const TEXT: &str = "gfj9Xq_Rg85nM-YoYCZiGAHqxmbPNkbCvBc5tSn4xYA";
/// Servers of `example.com.`, named `ns1` and so on, and a resolver that finds them.
pub(super) struct Bed {
    pub(super) names: Vec<(String, IpAddr)>,
    pub(super) servers: Vec<DnsServer>,
    pub(super) resolver: DnsServer,
}

impl Bed {
    /// One server for each program; `change` makes the zone of each from its number, `root` adds to what the resolver knows.
    pub(super) fn start(
        software: &[Software],
        root: &str,
        change: impl Fn(usize, Zone) -> Vec<Zone>,
    ) -> Self {
        let names: Vec<_> =
            (1..=software.len()).map(|n| (format!("ns{n}.{ZONE}"), loopback())).collect();
        let zone = Zone::new(ZONE).served_by(&names).updates(Updates::Unsigned);
        let start = |(number, software): (usize, &Software)| {
            let mut setup = Setup::new(change(number + 1, zone.clone()));
            setup.addresses = vec![names[number].1];
            DnsServer::start(*software, &setup)
        };
        let servers = software.iter().enumerate().map(start).collect();
        let root = Zone::new(".").with(&zone.delegation()).with(root);
        Self { servers, resolver: DnsServer::recursive_from(&root), names }
    }

    fn zones(&self, trust: Trust) -> Zones {
        let resolver = self.resolver.address();
        Zones::new(vec![Server::Plain(resolver)], trust, Arc::new(DirectResolver::new(resolver)))
    }

    /// What a Challenge waits for; empty when it is ready.
    pub(super) async fn reason(&self, trust: Trust, strategy: &str) -> String {
        let challenge: Challenge = serde_json::from_value(challenge(strategy)).unwrap();
        let answer = Answer::of(&challenge).unwrap();
        let probe = DnsProbe { zones: self.zones(trust) };
        match dns01_visible::judge(&challenge, &answer, &probe.probe(&challenge, &answer).await) {
            Readiness::Ready => String::new(),
            Readiness::NotYet { reason, .. } => reason,
        }
    }

    /// What it waits for, after cert-manager's words; `{1}` stands for the address of the first server.
    async fn check(&self, expected: &str) {
        let reason = self.reason(Trust::Authoritative, "").await;
        let fact = reason.strip_prefix("DNS record for \"www.example.com\" not yet propagated: ");
        assert_eq!(fact.unwrap_or(&reason), self.filled(expected));
    }

    fn filled(&self, text: &str) -> String {
        let numbers = self.names.iter().enumerate();
        numbers.fold(text.to_owned(), |text, (number, (_, address))| {
            text.replace(&format!("{{{}}}", number + 1), &address.to_string())
        })
    }

    /// Looks until the answer is seen.
    async fn heals(&self, trust: Trust, strategy: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let reason = self.reason(trust, strategy).await;
            if reason.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{reason}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Whether the resolver was asked for the record, whatever type.
    fn resolver_knows_of_the_record(&self) -> bool {
        self.resolver.asked().iter().any(|asked| asked.name.starts_with("_acme-challenge"))
    }
}

fn challenge(strategy: &str) -> Value {
    json!({
        "apiVersion": "acme.cert-manager.io/v1",
        "kind": "Challenge",
        "metadata": {"name": "web-1-1-1", "namespace": "default"},
        "spec": {
            "url": "https://ca.example/chall/1",
            "authorizationURL": "https://ca.example/authz/1",
            "dnsName": "www.example.com",
            "type": "DNS-01",
            "token": "token",
            "key": TEXT,
            "solver": {"dns01": {"cnameStrategy": strategy}},
            "issuerRef": {"name": "acme"},
        },
    })
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_lagging_secondary_is_named_until_it_has_caught_up() {
    let all = [Software::Bind, Software::Knot, Software::Bind];
    let bed = Bed::start(&all, "", |_, zone| vec![zone]);
    bed.check(
        "0 of 3 nameservers answer: ns1.example.com. ({1}) says NXDOMAIN; \
         ns2.example.com. ({2}) says NXDOMAIN; ns3.example.com. ({3}) says NXDOMAIN",
    )
    .await;
    bed.servers[0].publish(ZONE, RECORD, TEXT);
    bed.servers[2].publish(ZONE, RECORD, TEXT);
    bed.check("2 of 3 nameservers answer: ns2.example.com. ({2}) says NXDOMAIN").await;
    bed.servers[1].publish(ZONE, RECORD, "the text of another order");
    bed.check(
        "2 of 3 nameservers answer: ns2.example.com. ({2}) has \"the text of another order\"",
    )
    .await;
    bed.servers[1].publish(ZONE, RECORD, TEXT);
    bed.check("").await;
    assert!(!bed.resolver_knows_of_the_record());
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_delegated_zone_is_asked_of_its_own_servers() {
    let below = |names: &[(String, IpAddr)]| {
        Zone::new("www.example.com.").served_by(names).updates(Updates::Unsigned)
    };
    let names = [("ns.www.example.com.".to_owned(), loopback())];
    let mut setup = Setup::new(vec![below(&names)]);
    setup.addresses = vec![names[0].1];
    let child = DnsServer::start(Software::Knot, &setup);
    let cut = below(&names).delegation();
    let bed = Bed::start(&[Software::Bind], "", |_, zone| vec![zone.with(&cut)]);
    let expected = "0 of 1 nameservers answer: ns.www.example.com. ({1}) says NXDOMAIN";
    bed.check(&expected.replace("{1}", &names[0].1.to_string())).await;
    let zones = bed.zones(Trust::Authoritative);
    assert_eq!(zones.zone_of(RECORD).await.unwrap(), "www.example.com.");
    child.publish("www.example.com.", RECORD, TEXT);
    bed.check("").await;
    assert!(!bed.resolver_knows_of_the_record());
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_server_that_refuses_is_named_and_taken_up_again() {
    let all = [Software::Bind, Software::Bind];
    let mut bed = Bed::start(&all, "", |number, zone| {
        let zone = zone.with(&format!("{RECORD} TXT \"{TEXT}\""));
        if number == 1 { vec![zone] } else { Vec::new() }
    });
    bed.check(
        "NS ns2.example.com. returned REFUSED for _acme-challenge.www.example.com.: \
         1 of 2 nameservers answer: ns2.example.com. ({2}) says REFUSED",
    )
    .await;
    let file = bed.servers[0].folder().join(format!("{ZONE}zone")).display().to_string();
    let configuration = bed.servers[1].folder().join("named.conf");
    let text = std::fs::read_to_string(&configuration).unwrap();
    let zone = format!("zone \"{ZONE}\" {{ type primary; file \"{file}\"; }};\n");
    std::fs::write(&configuration, text + &zone).unwrap();
    bed.servers[1].signal("HUP");
    bed.heals(Trust::Authoritative, "").await;
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_server_that_never_answers_is_named_until_it_does() {
    let all = [Software::Knot, Software::Bind];
    let bed = Bed::start(&all, "", |_, zone| vec![zone.with(&format!("{RECORD} TXT \"{TEXT}\""))]);
    // Found while all is well, so that the resolver is not what is slow.
    bed.check("").await;
    bed.servers[1].be_silent(true);
    bed.check("1 of 2 nameservers answer: ns2.example.com. ({2}) does not answer").await;
    bed.servers[1].be_silent(false);
    bed.check("").await;
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_server_is_asked_over_ipv6_too() {
    let six = IpAddr::from(Ipv6Addr::LOCALHOST);
    let names = [(format!("ns1.{ZONE}"), loopback()), (format!("ns2.{ZONE}"), six)];
    let zone = Zone::new(ZONE).served_by(&names).updates(Updates::Unsigned);
    let mut setup = Setup::new(vec![zone.clone()]);
    setup.addresses = names.iter().map(|(_, address)| *address).collect();
    // Both names are this server's; by the second it has an IPv6 address only.
    let servers = vec![DnsServer::start(Software::Bind, &setup)];
    let resolver = DnsServer::recursive_from(&Zone::new(".").with(&zone.delegation()));
    let bed = Bed { names: names.to_vec(), servers, resolver };
    bed.check(
        "0 of 2 nameservers answer: ns1.example.com. ({1}) says NXDOMAIN; \
         ns2.example.com. (::1) says NXDOMAIN",
    )
    .await;
    bed.servers[0].publish(ZONE, RECORD, TEXT);
    bed.check("").await;
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn an_answer_too_large_for_udp_comes_over_tcp() {
    let filler = |zone: Zone| {
        let lines = (0..30).map(|n| format!("{RECORD} TXT \"{n} {}\"", "x".repeat(200)));
        zone.with(&lines.collect::<Vec<_>>().join("\n"))
    };
    let all = [Software::Bind, Software::Knot];
    let bed = Bed::start(&all, "", |_, zone| vec![filler(zone)]);
    bed.check(
        "0 of 2 nameservers answer: ns1.example.com. ({1}) has 30 texts; \
         ns2.example.com. ({2}) has 30 texts",
    )
    .await;
    for server in &bed.servers {
        let asked = server.asked();
        let texts = asked.iter().filter(|asked| asked.kind == RecordType::TXT);
        let ways: Vec<_> = texts.map(|asked| asked.transport).collect();
        assert_eq!(ways, [Transport::Udp, Transport::Tcp]);
        server.publish(ZONE, RECORD, TEXT);
    }
    bed.check("").await;
}

/// `example.com.` leads the record by `alias` to `example.org.`, which another server serves.
fn with_alias(alias: &str) -> Bed {
    let names = [("ns.example.org.".to_owned(), loopback())];
    let other = Zone::new("example.org.").served_by(&names).updates(Updates::Unsigned);
    let root = other.delegation();
    let mut setup = Setup::new(vec![other]);
    setup.addresses = vec![names[0].1];
    let other = DnsServer::start(Software::Knot, &setup);
    let mut bed = Bed::start(&[Software::Bind], &root, |_, zone| vec![zone.with(alias)]);
    bed.names.extend(names);
    bed.servers.push(other);
    bed
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn an_alias_leads_to_the_servers_of_another_zone() {
    let bed = with_alias(&format!("{RECORD} CNAME www.example.org."));
    let fact =
        "0 of 1 nameservers answer for www.example.org.: ns.example.org. ({2}) says NXDOMAIN";
    bed.check(&format!(
        "{fact}; _acme-challenge.www.example.com. is an alias, and the solver's cnameStrategy is not Follow"
    ))
    .await;
    let reason = bed.reason(Trust::Authoritative, "Follow").await;
    assert!(reason.ends_with(&bed.filled(fact)), "{reason}");
    let zones = bed.zones(Trust::Authoritative);
    assert_eq!(zones.canonical(RECORD).await.unwrap(), "www.example.org.");
    assert_eq!(zones.zone_of("www.example.org.").await.unwrap(), "example.org.");
    bed.servers[1].publish("example.org.", "www.example.org.", TEXT);
    bed.check("").await;
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_wildcard_alias_gives_way_to_the_record() {
    let bed = with_alias("* CNAME www.example.org.");
    bed.check(
        "0 of 1 nameservers answer for www.example.org.: ns.example.org. ({2}) says NXDOMAIN; \
         _acme-challenge.www.example.com. is an alias, and the solver's cnameStrategy is not Follow",
    )
    .await;
    bed.servers[0].publish(ZONE, RECORD, TEXT);
    bed.check("").await;
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_resolver_that_was_asked_too_early_is_named_until_it_has_forgotten() {
    let bed = Bed::start(&[Software::Bind], "", |_, zone| vec![zone]);
    let resolver: SocketAddr = bed.resolver.address();
    let early = format!(
        "DNS record for \"www.example.com\" not yet propagated: 0 of 1 nameservers answer: {resolver} says NXDOMAIN"
    );
    assert_eq!(bed.reason(Trust::RecursiveOnly, "").await, early);
    bed.servers[0].publish(ZONE, RECORD, TEXT);
    bed.check("").await;
    bed.heals(Trust::RecursiveOnly, "").await;
}

/// Runs `challenge check` beside a bed; its output, `{1}` and `{2}` standing for the servers' addresses.
async fn checked(bed: &Bed, flags: &[&str]) -> (Option<i32>, String, String) {
    let said = check_challenge(bed, flags).await;
    let text = |text: &str| {
        let mut text = text.to_owned();
        for (number, (_, address)) in bed.names.iter().enumerate() {
            text = text.replace(&address.to_string(), &format!("{{{}}}", number + 1));
        }
        // Addresses have different lengths, and so has the column.
        text.lines().map(|line| columns(line) + "\n").collect::<String>()
    };
    (said.code, text(&said.stdout), text(&said.stderr))
}

async fn check_challenge(bed: &Bed, flags: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::open(folder.path(), Access::ReadWrite).unwrap();
    store.create(Record::new(challenge("")).unwrap()).await.unwrap();
    program::command()
        .args(["challenge", "check", "web-1-1-1", "--dns"])
        .arg(bed.resolver.address().to_string())
        .args(flags)
        .env("KUBECTL_ACME_LOCAL", folder.path())
        .env("KUBECTL_ACME_NOW", "2026-11-21T04:54:20Z")
        .output()
        .unwrap()
        .into()
}

fn columns(line: &str) -> String {
    if line.contains(":  ") {
        return line.to_owned();
    }
    line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" | ")
}

#[tokio::test]
#[ignore = "needs name servers: run by just pebble"]
async fn a_check_shows_what_every_server_says() {
    let all = [Software::Bind, Software::Knot];
    let bed = Bed::start(&all, "", |_, zone| vec![zone]);
    bed.servers[0].publish(ZONE, RECORD, TEXT);
    let (code, shown, said) = checked(&bed, &["--show-commands"]).await;
    insta::assert_snapshot!(shown + &said, @r#"
    Challenge:   web-1-1-1
    Domain:      www.example.com
    Expected:    gfj9Xq_Rg85nM-YoYCZiGAHqxmbPNkbCvBc5tSn4xYA
    Seen from:   this machine at 2026-11-21T04:54:20Z
    Saw:         answers for _acme-challenge.www.example.com. from 2 servers of zone example.com.
    Command:     dig +norecurse @{1} _acme-challenge.www.example.com. TXT
    Command:     dig +norecurse @{2} _acme-challenge.www.example.com. TXT
    At the CA:   not known: error reading issuer: Issuer "acme" not found
    Verdict:     not visible: DNS record for "www.example.com" not yet propagated: 1 of 2 nameservers answer: ns2.example.com. ({2}) says NXDOMAIN

    NAMESERVER | ADDRESS | SAYS
    ns1.example.com. | {1}:53 | "gfj9Xq_Rg85nM-YoYCZiGAHqxmbPNkbCvBc5tSn4xYA"
    ns2.example.com. | {2}:53 | NXDOMAIN
    error: the CA would not see the answer of challenge web-1-1-1: DNS record for "www.example.com" not yet propagated: 1 of 2 nameservers answer: ns2.example.com. ({2}) says NXDOMAIN
    hint: correct the dns01 solver: cannot publish the record: no dns provider config specified for challenge
    hint: D01-02: 1 of 2 name servers have the record _acme-challenge.www.example.com that www.example.com needs
    hint: no answer is presented yet: order -f … or run presents it
    "#);
    assert_eq!(code, Some(9));
    let said = check_challenge(&bed, &["--show-commands"]).await;
    let reproduced = said.reproduced();
    let [(_, first), (_, second)] = &reproduced[..] else { panic!("{said:?}") };
    assert!(first.stdout.contains("status: NOERROR") && first.stdout.contains(TEXT), "{first:?}");
    assert!(second.stdout.contains("status: NXDOMAIN"), "{second:?}");

    bed.servers[1].publish(ZONE, RECORD, TEXT);
    let (code, shown, said) =
        checked(&bed, &["-o", "jsonpath={.visible} {.observations[0].url}"]).await;
    assert_eq!(
        (code, shown.as_str(), said.as_str()),
        (Some(0), "true dns:_acme-challenge.www.example.com?type=TXT\n", "")
    );
    let resolver = bed.resolver.address().to_string();
    let only = ["--dns01-recursive-nameservers", &resolver, "--dns01-recursive-nameservers-only"];
    let (code, shown, _) = checked(&bed, &only).await;
    let saw = "Saw:         answers for _acme-challenge.www.example.com. from 1 resolver";
    assert!(code == Some(0) && shown.contains(saw), "{shown}");
}
