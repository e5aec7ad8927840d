//! What `challenge check` saw: as lines and tables for people, as a report for programs.

use serde_json::{Value, json};
use url::Url;

use crate::dns::server::PORT;
use crate::model::observation::{Hop, NameServer, Observation, Said, Seen};
use crate::model::{Answer, Challenge, Time};
use crate::print::table::{Colour, Headers, NONE, Table};
use crate::reconcile::challenge::Readiness;
use crate::reconcile::{published, visible};

/// One look at a challenge, and what to make of it.
#[derive(Debug)]
pub(super) struct Sight<'a> {
    pub(super) challenge: &'a Challenge,
    pub(super) answer: &'a Answer,
    pub(super) observations: &'a [Observation],
    pub(super) verdict: &'a Readiness,
}

impl Sight<'_> {
    fn verdict(&self) -> String {
        match self.verdict {
            Readiness::Ready => "visible, the CA would accept it".to_owned(),
            Readiness::NotYet { reason } => format!("not visible: {reason}"),
        }
    }

    /// For people.
    pub(super) fn text(&self, colour: Colour, with_commands: bool) -> String {
        let mut lines = vec![
            ("Challenge", self.challenge.metadata.name.clone()),
            ("Domain", self.challenge.spec.dns_name.clone()),
            ("Expected", self.answer.key_authorization.clone()),
        ];
        for observation in self.observations {
            let at = Time::new(observation.at);
            lines.push(("Seen from", format!("{} at {at}", observation.vantage)));
            lines.push(("Saw", saw(&observation.seen)));
            let difference = visible::disagreement(self.answer, observation);
            lines.extend(difference.map(|text| ("Beware", text.to_owned())));
            if with_commands {
                lines.extend(commands(observation).into_iter().map(|line| ("Command", line)));
            }
        }
        lines.push(("Verdict", self.verdict()));
        let lines = lines.iter().map(|(label, text)| format!("{:13}{text}\n", format!("{label}:")));
        let tables = self.observations.iter().filter_map(table);
        let tables = tables.map(|table| table.render(Headers::Shown, colour));
        lines.chain(tables.map(|table| format!("\n{table}"))).collect()
    }

    /// For programs.
    pub(super) fn report(&self) -> Value {
        let looks = self.observations.iter().map(|observation| {
            let mut look = serde_json::to_value(observation).unwrap_or_default();
            look["command"] = commands(observation).join("; ").into();
            look["disagreement"] = visible::disagreement(self.answer, observation).into();
            look
        });
        json!({
            "apiVersion": "kubectl-acme/v1alpha1",
            "kind": "ChallengeCheck",
            "challenge": {
                "namespace": self.challenge.metadata.namespace,
                "name": self.challenge.metadata.name,
            },
            "domain": self.challenge.spec.dns_name,
            "expected": self.answer.key_authorization,
            "visible": *self.verdict == Readiness::Ready,
            "verdict": self.verdict(),
            "observations": looks.collect::<Vec<_>>(),
        })
    }
}

fn table(observation: &Observation) -> Option<Table> {
    match &observation.seen {
        Seen::Records { servers, .. } => Some(name_servers(servers)),
        _ if is_dns(observation) => None,
        _ => Some(hops(&observation.hops)),
    }
}

fn name_servers(servers: &[NameServer]) -> Table {
    let mut table = Table::new(["NAMESERVER", "ADDRESS", "SAYS"]);
    for server in servers {
        let says = match &server.said {
            Said::Texts(texts) => {
                texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" ")
            }
            Said::NoName => "NXDOMAIN".to_owned(),
            Said::Code(code) => code.clone(),
            said => published::words(said),
        };
        let address = server.address.map(|address| address.to_string());
        table.row([server.name.clone(), address.unwrap_or_else(|| NONE.to_owned()), says]);
    }
    table
}

fn hops(hops: &[Hop]) -> Table {
    let mut table = Table::new(["HOP", "URL", "ADDRESS", "STATUS"]);
    for (number, hop) in hops.iter().enumerate() {
        table.row([
            (number + 1).to_string(),
            hop.url.clone(),
            hop.address.map_or_else(|| NONE.to_owned(), |address| address.to_string()),
            hop.status.map_or_else(|| NONE.to_owned(), |status| status.to_string()),
        ]);
    }
    table
}

fn saw(seen: &Seen) -> String {
    match seen {
        Seen::Nothing { why } => why.clone(),
        Seen::NoLook { why } => format!("no look was possible: {why}"),
        Seen::Redirect { to, why } => format!("a redirect to {to}: {why}"),
        Seen::Reply { status, body, truncated } => {
            let more = if *truncated { ", and more" } else { "" };
            format!("status {status}, {} bytes{more}: {body:?}", body.len())
        }
        Seen::Records { name, zone, servers } => {
            let who = match (zone.as_str(), servers.len()) {
                ("", 1) => "1 resolver says".to_owned(),
                ("", count) => format!("{count} resolvers say"),
                (zone, 1) => format!("1 server of zone {zone} says"),
                (zone, count) => format!("{count} servers of zone {zone} say"),
            };
            format!("what {who} of {name}")
        }
    }
}

fn is_dns(observation: &Observation) -> bool {
    observation.url.starts_with("dns:")
}

/// The lines that look the same way.
fn commands(observation: &Observation) -> Vec<String> {
    match &observation.seen {
        Seen::Records { name, zone, servers } => {
            servers.iter().filter_map(|server| dig(name, zone, server)).collect()
        }
        _ if is_dns(observation) => Vec::new(),
        _ => vec![curl(observation)],
    }
}

/// Servers of a zone are asked for what they have themselves.
fn dig(name: &str, zone: &str, server: &NameServer) -> Option<String> {
    let recursion = if zone.is_empty() { "" } else { "+norecurse " };
    let at = match server.address {
        Some(address) if address.port() == PORT => format!("@{}", address.ip()),
        Some(address) => format!("@{} -p {}", address.ip(), address.port()),
        None => {
            let url = Url::parse(&server.name).ok()?;
            format!("+https={} @{}", url.path(), url.host_str()?)
        }
    };
    Some(format!("dig {recursion}{at} {name} TXT"))
}

/// The curl line that looks the same way: no proxy, the same address, as many redirects.
fn curl(observation: &Observation) -> String {
    let url = Url::parse(&observation.url).ok();
    let address = observation.hops.first().and_then(|hop| hop.address);
    let detour = match (url.as_ref().and_then(Url::host_str), address) {
        (Some(host), Some(address)) => format!(" --connect-to {host}:80:{address}"),
        _ => String::new(),
    };
    format!("curl -i --location --max-redirs 10 --noproxy '*'{detour} '{}'", observation.url)
}
