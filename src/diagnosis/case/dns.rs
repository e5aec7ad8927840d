//! Observations of a name in DNS: its zone, and the reply of each vantage. A vantage with another view than the CA's is
//! found by comparison with the zone's own servers, which the CA asks.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::reserved;
use crate::model::zone_look::{DnsOutcome, DnsReply, ZoneState};

/// A name in DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsCase {
    /// Absolute name of the record that proves control of the name, for the types that use a record.
    pub record: Option<String>,
    /// Zone of the name, if it was found.
    pub zone: Option<ZoneState>,
    /// Name at or above the domain for which resolvers know name servers, but no SOA record.
    pub without_soa: Option<WithoutSoa>,
    /// Single questions with their replies.
    pub replies: Vec<VantageReply>,
    /// Replies of the zone's servers a moment later, one after another, if the record was there.
    pub later: Vec<VantageReply>,
    /// Reply of one of the zone's servers for a record at a name that does not exist.
    pub nobody: Option<VantageReply>,
    /// Server of dynamic updates; `None` if it is one of the zone's servers, or was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_update_server: Option<UpdateServerCase>,
    /// Records that the name has by a wildcard alone; a record is to be made below the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_wildcard: Option<WildcardCase>,
}

/// Server to which a solver sends dynamic updates (RFC 2136), and which is not among the zone's public name servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateServerCase {
    /// Address of the server.
    pub address: SocketAddr,
    /// Reply to the question for the record.
    pub record: VantageReply,
    /// Serial number of the zone on the server; `None` if the server does not have the zone.
    pub serial: Option<u32>,
    /// Absolute names of the zone's servers, by the server's copy of the zone.
    pub name_servers: Vec<String>,
}

/// Name that has its records by a wildcard alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WildcardCase {
    /// Records of a name beside the host that does not exist.
    pub records: Vec<String>,
    /// Whether the name has no records now, because a name below it exists.
    pub is_hidden: bool,
}

/// Zone whose SOA record a resolver withholds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WithoutSoa {
    /// Absolute name that has NS records.
    pub name: String,
    /// NS records.
    pub servers: Vec<String>,
    /// Result of the search for SOA records.
    pub why: String,
    /// Resolver that was asked.
    pub resolver: String,
}

/// Reply to one question from one vantage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VantageReply {
    /// Absolute name asked for.
    pub name: String,
    /// Type asked for.
    pub kind: String,
    /// Server that was asked.
    pub from: DnsVantage,
    /// Whether the resolver was asked not to validate (CD).
    pub is_unvalidated: bool,
    /// Time of the question.
    pub at: Timestamp,
    /// The reply, or why there is none.
    pub heard: DnsOutcome,
}

/// Server that was asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DnsVantage {
    /// A server of the zone.
    Authority {
        /// Absolute name.
        name: String,
        /// Address of the server.
        address: SocketAddr,
    },
    /// A resolver of this machine, or one that this program's flags name in its place.
    Resolver(String),
    /// A resolver elsewhere that the user named to compare with.
    Other(String),
}

/// Question with different answers at different servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement<'a> {
    /// Absolute name.
    pub name: &'a str,
    /// Type.
    pub kind: &'a str,
    /// Replies of all servers that were asked, in order.
    pub rows: Vec<DisagreementRow<'a>>,
}

/// Reply of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisagreementRow<'a> {
    /// The server.
    pub from: &'a DnsVantage,
    /// Reply, in words.
    pub came: String,
    /// Whether the reply is the wrong one; `None` if unknown.
    pub is_wrong: Option<bool>,
}

impl VantageReply {
    /// Reports whether a public server of the zone replied; servers inside may have an inner copy of the zone.
    pub fn is_by_public_server(&self) -> bool {
        match &self.from {
            DnsVantage::Authority { address, .. } => reserved::block(address.ip()).is_none(),
            DnsVantage::Resolver(_) | DnsVantage::Other(_) => false,
        }
    }
}

impl DnsVantage {
    /// Returns the word for the vantage.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Authority { .. } => "authority",
            Self::Resolver(_) => "resolver",
            Self::Other(_) => "other resolver",
        }
    }

    /// Returns the server's name for people.
    pub fn server(&self) -> String {
        match self {
            Self::Authority { name, address } => {
                format!("{} ({address})", name.trim_end_matches('.'))
            }
            Self::Resolver(server) | Self::Other(server) => server.clone(),
        }
    }
}

/// Describes a reply, in words.
pub fn words(heard: &DnsOutcome) -> String {
    match heard {
        DnsOutcome::Reply(reply) if !reply.records.is_empty() => reply.records.join(", "),
        DnsOutcome::Reply(reply) if reply.code == "NOERROR" => "no such record".to_owned(),
        DnsOutcome::Reply(DnsReply { code, why: Some(why), .. }) => format!("{code} ({why})"),
        DnsOutcome::Reply(reply) => reply.code.clone(),
        DnsOutcome::TooLarge(why) | DnsOutcome::Nothing(why) => why.clone(),
        DnsOutcome::NoRoute => "cannot be reached from here".to_owned(),
    }
}

impl DnsCase {
    /// Returns the replies of all servers to a question, with validation if the server validates.
    pub fn asked(&self, name: &str, kind: &str) -> impl Iterator<Item = &VantageReply> {
        self.replies.iter().filter(move |reply| {
            !reply.is_unvalidated && reply.kind == kind && reply.name.eq_ignore_ascii_case(name)
        })
    }

    /// Reports whether resolvers withhold addresses of a name: the zone's servers give the addresses, resolvers fail for
    /// them, but answer for the name's SOA record.
    pub fn are_addresses_withheld(&self, name: &str) -> bool {
        let by_resolvers = |kind: &'static str| {
            self.asked(name, kind).filter(|it| matches!(it.from, DnsVantage::Resolver(_)))
        };
        let by_authorities = ["A", "AAAA"].iter().flat_map(|kind| self.asked(name, kind));
        let mut by_authorities =
            by_authorities.filter(|it| matches!(it.from, DnsVantage::Authority { .. }));
        let has_answer = |reply: &VantageReply| reply.heard.answer().is_some();
        by_authorities.any(|it| it.heard.answer().is_some_and(|it| !it.records.is_empty()))
            && by_resolvers("SOA").any(has_answer)
            && !by_resolvers("A").any(has_answer)
    }

    /// Reports whether resolvers were asked for addresses of a name, and none has answered anything.
    pub fn is_of_silent_resolvers(&self, name: &str) -> bool {
        let asked = |reply: &&VantageReply| !matches!(reply.from, DnsVantage::Authority { .. });
        let mut replies = self.asked(name, "A").filter(asked).peekable();
        replies.peek().is_some() && replies.all(|reply| reply.heard.reply().is_none())
    }

    /// Returns the questions to which servers give different answers.
    pub fn disagreements(&self) -> Vec<Disagreement<'_>> {
        let mut questions: BTreeMap<(&str, &str), Vec<&VantageReply>> = BTreeMap::new();
        for reply in self.replies.iter().filter(|reply| !reply.is_unvalidated) {
            questions.entry((&reply.name, &reply.kind)).or_default().push(reply);
        }
        let differ = questions.into_iter().filter(|(_, replies)| {
            let mut contents = replies.iter().filter_map(|reply| content(&reply.heard));
            contents.next().is_some_and(|first| contents.any(|other| other != first))
        });
        differ
            .map(|((name, kind), mut replies)| {
                replies.sort_by_key(|reply| &reply.from);
                let right = records_for_ca(&replies);
                let rows = replies.into_iter().map(|reply| DisagreementRow {
                    from: &reply.from,
                    came: words(&reply.heard),
                    is_wrong: right.zip(content(&reply.heard)).map(|(right, own)| right != own),
                });
                Disagreement { name, kind, rows: rows.collect() }
            })
            .collect()
    }
}

/// Returns the records that have to be the same at all servers; `None` if the server gives no answer.
fn content(heard: &DnsOutcome) -> Option<&[String]> {
    let reply = heard.reply().filter(|reply| reply.is_an_answer() || reply.code == "SERVFAIL")?;
    Some(if reply.is_an_answer() { &reply.records[..] } else { &[] })
}

/// Returns the records that the CA gets: by the resolvers elsewhere if these agree, else by the zone's servers.
fn records_for_ca<'a>(replies: &[&'a VantageReply]) -> Option<&'a [String]> {
    let agreed = |of: fn(&DnsVantage) -> bool| {
        let mut all = replies.iter().filter(|reply| of(&reply.from));
        let first = all.find_map(|reply| content(&reply.heard))?;
        all.all(|reply| content(&reply.heard).is_none_or(|other| other == first)).then_some(first)
    };
    // An inner resolver may have led to inner servers: a resolver elsewhere knows better.
    agreed(|from| matches!(from, DnsVantage::Other(_)))
        .or_else(|| agreed(|from| matches!(from, DnsVantage::Authority { .. })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(from: DnsVantage, code: &str, records: &[&str]) -> VantageReply {
        let records = records.iter().map(|record| (*record).to_owned()).collect();
        VantageReply {
            name: "www.example.com.".to_owned(),
            kind: "A".to_owned(),
            from,
            is_unvalidated: false,
            at: Timestamp::UNIX_EPOCH,
            heard: DnsOutcome::Reply(DnsReply {
                code: code.to_owned(),
                records,
                ..DnsReply::default()
            }),
        }
    }

    fn authority(last: u8) -> DnsVantage {
        let address = SocketAddr::from(([192, 0, 2, last], 53));
        DnsVantage::Authority { name: format!("ns{last}.example.com."), address }
    }

    fn inner() -> DnsVantage {
        DnsVantage::Resolver("10.0.0.53:53".to_owned())
    }

    fn outer() -> DnsVantage {
        DnsVantage::Other("https://dns.example/dns-query".to_owned())
    }

    /// Returns which rows are wrong, in their order; empty if all servers agree.
    fn wrong(replies: Vec<VantageReply>) -> Vec<Option<bool>> {
        let case = DnsCase { replies, ..DnsCase::default() };
        let found = case.disagreements();
        found.iter().flat_map(|of| of.rows.iter().map(|row| row.is_wrong)).collect()
    }

    #[test]
    fn who_differs_from_the_zones_servers_is_wrong() {
        let right = || reply(authority(1), "NOERROR", &["192.0.2.80"]);
        let other = || reply(inner(), "NOERROR", &["10.0.0.80"]);
        assert_eq!(wrong(vec![other(), right()]), [Some(false), Some(true)]);
        assert_eq!(wrong(vec![reply(inner(), "NOERROR", &["192.0.2.80"]), right()]), []);
        let gone = reply(inner(), "NXDOMAIN", &[]);
        assert_eq!(wrong(vec![gone, right()]), [Some(false), Some(true)]);
    }

    #[test]
    fn who_stands_outside_knows_better_than_servers_inside() {
        let inside =
            || vec![reply(authority(1), "NOERROR", &["10.0.0.80"]), reply(inner(), "NOERROR", &[])];
        let mut all = inside();
        all.push(reply(outer(), "NOERROR", &["192.0.2.80"]));
        assert_eq!(wrong(all), [Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn where_servers_of_the_zone_differ_nobody_is_right() {
        let one = reply(authority(1), "NOERROR", &["192.0.2.80"]);
        let two = reply(authority(2), "NXDOMAIN", &[]);
        assert_eq!(wrong(vec![one, two]), [None, None]);
    }

    #[test]
    fn who_says_nothing_does_not_differ() {
        let mut silent = reply(inner(), "", &[]);
        silent.heard = DnsOutcome::Nothing("does not answer".to_owned());
        assert_eq!(wrong(vec![silent, reply(authority(1), "NOERROR", &["192.0.2.80"])]), []);
    }
}
