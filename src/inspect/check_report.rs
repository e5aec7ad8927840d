//! Report of `challenge check`: lines and tables for people, JSON for programs.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::authority::AuthorityState;
use crate::hints::reproduce::{ProbeMeans, commands, is_dns};
use crate::model::observation::{
    CheckResult, Hop, NameServer, NameServerAnswer, Observation, PresentedCertificate,
};
use crate::model::{Answer, Challenge, ChallengeType, Time};
use crate::print::colour::Colour;
use crate::print::table::{Headers, NONE, Table};
use crate::reconcile::challenge::Readiness;
use crate::reconcile::{dns01_visible, http01_visible, shown};

/// One probe of a challenge, with its judgment.
#[derive(Debug)]
pub(crate) struct CheckReport<'a> {
    pub(crate) challenge: &'a Challenge,
    pub(crate) answer: &'a Answer,
    pub(crate) observations: &'a [Observation],
    pub(crate) verdict: &'a Readiness,
    pub(crate) means: &'a ProbeMeans,
    pub(crate) held: &'a AuthorityState,
}

impl CheckReport<'_> {
    fn verdict(&self) -> String {
        if self.held.is_valid() {
            return "valid at the CA, the answer is not needed any more".to_owned();
        }
        if let Some(held) = self.held.ended() {
            return format!("ended, {} at the CA", held.status);
        }
        match self.verdict {
            Readiness::Ready => "visible, the CA would accept the answer".to_owned(),
            Readiness::NotYet { reason, .. } => format!("not visible: {reason}"),
        }
    }

    /// Formats the report for people.
    pub(crate) fn text(&self, colour: Colour, with_commands: bool) -> String {
        let mut lines = vec![
            ("Challenge", self.challenge.metadata.name.clone()),
            ("Domain", self.challenge.spec.dns_name.clone()),
            ("Expected", self.expected()),
        ];
        for observation in self.observations {
            let at = Time::new(observation.at);
            lines.push(("Seen from", format!("{} at {at}", observation.vantage)));
            lines.push(("Saw", describe_seen(&observation.seen)));
            let difference = http01_visible::disagreement(self.answer, observation);
            lines.extend(difference.map(|text| ("Beware", text.to_owned())));
            for Linted { text, faults, corrected, ends } in
                lint_records(self.challenge, observation)
            {
                lines.push(("Record", format!("{text:?}")));
                lines.extend(ends.map(|at| ("Beware", format!("the record ends at {at:.0}"))));
                if !faults.is_empty() {
                    lines.extend(
                        faults.into_iter().map(|fault| ("Fault", format!("the record {fault}"))),
                    );
                    lines.push(("Corrected", format!("{corrected:?}")));
                }
            }
            if with_commands {
                lines.extend(
                    commands(observation, self.means).into_iter().map(|line| ("Command", line)),
                );
            }
        }
        lines.push(("At the CA", self.held_by_ca()));
        // For a challenge that has ended, the command's error says it.
        let said = self.held.challenge(&self.challenge.spec.url);
        let said = said.filter(|_| self.held.ended().is_none());
        let problem = said.and_then(|challenge| challenge.error.as_ref());
        lines.extend(problem.map(|problem| ("Problem", problem.to_string())));
        lines.push(("Verdict", self.verdict()));
        let lines = lines.iter().map(|(label, text)| format!("{:13}{text}\n", format!("{label}:")));
        let tables = self.observations.iter().filter_map(table);
        let tables = tables.map(|table| table.render(Headers::Shown, colour));
        lines.chain(tables.map(|table| format!("\n{table}"))).collect()
    }

    /// Content that the CA must see: a text, a record, or the digest in a certificate.
    fn expected(&self) -> String {
        match self.challenge.spec.kind {
            ChallengeType::TlsAlpn01 => shown::digest_of(self.answer),
            ChallengeType::Dns01
            | ChallengeType::DnsAccount01
            | ChallengeType::DnsPersist01
            | ChallengeType::Http01 => self.answer.key_authorization.clone(),
        }
    }

    /// Describes the authorization at the CA, or why it is not known.
    fn held_by_ca(&self) -> String {
        let held = match self.held {
            AuthorityState::Unknown(why) => return format!("not known: {why}"),
            AuthorityState::Authorization(held) => held,
        };
        let said = self.held.challenge(&self.challenge.spec.url);
        let challenge = match said {
            Some(said) if said.status != held.status => {
                format!(", its {} challenge {}", said.kind, said.status)
            }
            Some(_) => String::new(),
            None => ", without this challenge".to_owned(),
        };
        let until = held.expires.map(|at| format!(", until {}", Time::new(at)));
        format!("authorization {}{challenge}{}", held.status, until.unwrap_or_default())
    }

    /// Authorization at the CA for programs: only the reason if it could not be read.
    fn authorization(&self) -> Value {
        let held = match self.held {
            AuthorityState::Unknown(why) => return json!({"unknown": why}),
            AuthorityState::Authorization(held) => held,
        };
        let said = self.held.challenge(&self.challenge.spec.url);
        json!({
            "status": held.status,
            "expires": held.expires.map(|at| Time::new(at).to_string()),
            "challenge": said.map(|said| json!({"status": said.status, "error": said.error})),
        })
    }

    /// Builds the report for programs.
    pub(crate) fn report(&self) -> Value {
        let looks = self.observations.iter().map(|observation| {
            let mut look = serde_json::to_value(observation).unwrap_or_default();
            look["command"] = commands(observation, self.means).join("; ").into();
            look["disagreement"] = http01_visible::disagreement(self.answer, observation).into();
            if self.challenge.spec.persist.is_some() {
                let records = lint_records(self.challenge, observation).into_iter();
                look["records"] = records.map(|record| record.report()).collect();
            }
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
            "expected": self.expected(),
            "authorization": self.authorization(),
            "visible": *self.verdict == Readiness::Ready,
            "verdict": self.verdict(),
            "observations": looks.collect::<Vec<_>>(),
        })
    }
}

/// Record of dns-persist-01 as it was found, and the faults for which the CA would not accept it.
struct Linted<'a> {
    text: &'a str,
    faults: Vec<String>,
    corrected: String,
    /// Time at which the record's permission ends, if that is soon.
    ends: Option<Timestamp>,
}

impl Linted<'_> {
    fn report(&self) -> Value {
        let Self { text, faults, corrected, ends } = self;
        let ends = ends.map(|at| Time::new(at).to_string());
        json!({"text": text, "faults": faults, "corrected": corrected, "endsSoon": ends})
    }
}

/// Checks every distinct text at the record's name; empty if the challenge is not dns-persist-01.
fn lint_records<'a>(challenge: &Challenge, observation: &'a Observation) -> Vec<Linted<'a>> {
    let Some(demand) = dns01_visible::demand(challenge, observation.at) else { return Vec::new() };
    let CheckResult::Records { servers, .. } = &observation.seen else { return Vec::new() };
    let texts: BTreeSet<&str> = servers
        .iter()
        .filter_map(|server| match &server.said {
            NameServerAnswer::Texts(texts) => Some(texts.iter().map(String::as_str)),
            _ => None,
        })
        .flatten()
        .collect();
    let lint = |text| Linted {
        text,
        faults: demand.faults(text),
        corrected: demand.corrected(text),
        ends: demand.ends_soon(text),
    };
    texts.into_iter().map(lint).collect()
}

fn table(observation: &Observation) -> Option<Table> {
    match &observation.seen {
        CheckResult::Records { servers, .. } => Some(name_servers(servers)),
        _ if is_dns(observation) => None,
        _ => Some(hops(&observation.hops)),
    }
}

fn name_servers(servers: &[NameServer]) -> Table {
    let mut table = Table::new(["NAMESERVER", "ADDRESS", "SAYS"]);
    for server in servers {
        let says = match &server.said {
            NameServerAnswer::Texts(texts) => {
                texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" ")
            }
            NameServerAnswer::NoName => "NXDOMAIN".to_owned(),
            NameServerAnswer::Code(code) => code.clone(),
            said => dns01_visible::words(said),
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

fn describe_seen(seen: &CheckResult) -> String {
    match seen {
        CheckResult::Nothing { why, .. } => why.clone(),
        CheckResult::NoLook { why, .. } => format!("no probe was possible: {why}"),
        CheckResult::Redirect { to, why } => format!("a redirect to {to}: {why}"),
        CheckResult::Handshake { protocol, certificate } => handshake(protocol, certificate),
        CheckResult::Reply { status, body, truncated, .. } => {
            let more = if *truncated { ", and more" } else { "" };
            format!("status {status}, {} bytes{more}: {body:?}", body.len())
        }
        CheckResult::Records { name, zone, servers } => {
            let who = match (zone.as_str(), servers.len()) {
                ("", 1) => "1 resolver".to_owned(),
                ("", count) => format!("{count} resolvers"),
                (zone, 1) => format!("1 server of zone {zone}"),
                (zone, count) => format!("{count} servers of zone {zone}"),
            };
            format!("answers for {name} from {who}")
        }
    }
}

fn handshake(protocol: &str, certificate: &PresentedCertificate) -> String {
    let protocol =
        if protocol.is_empty() { "no protocol".to_owned() } else { format!("{protocol:?}") };
    let signed = if certificate.self_signed { "self-signed" } else { "signed by another key" };
    let names = match &certificate.names[..] {
        [] => "no name".to_owned(),
        names => names.join(", "),
    };
    let identifiers = certificate.acme_identifiers.iter().map(|identifier| {
        let critical = if identifier.critical { "critical" } else { "not critical" };
        format!(", acmeIdentifier ({critical}) {}", identifier.digest)
    });
    let identifiers: String = identifiers.collect();
    format!(
        "{protocol} agreed on, and a certificate of {} ({signed}) for {names}{identifiers}",
        certificate.subject
    )
}
