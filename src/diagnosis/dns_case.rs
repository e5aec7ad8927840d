//! What was observed of a name in DNS: its zone, and what each vantage says. Whoever sees it otherwise than the CA does is told
//! apart by whom the CA asks: the zone's own servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::reserved;
use crate::model::zone_look::{DnsOutcome, DnsReply, ZoneLook};

/// A name in DNS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsCase {
    /// Absolute name of the record that proves it, where one does.
    pub record: Option<String>,
    /// Its zone, where that was found.
    pub zone: Option<ZoneLook>,
    /// A name at or above it of which resolvers know servers, and no SOA record.
    pub without_soa: Option<WithoutSoa>,
    /// Single questions, and what came.
    pub replies: Vec<VantageReply>,
    /// What servers of the zone say of the record a moment later, one after another, where it was there.
    pub later: Vec<VantageReply>,
    /// What a server of the zone says of a record at a name that nobody has made.
    pub nobody: Option<VantageReply>,
    /// The server of dynamic updates; `None` if that is one of the zone's servers, or was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_update_server: Option<UpdateServerCase>,
    /// What a wildcard alone gives to the name, for which a record is to be made below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_wildcard: Option<WildcardCase>,
}

/// The server to which a solver sends its dynamic updates (RFC 2136), and that is none of those that the world asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateServerCase {
    /// Where it was asked.
    pub address: SocketAddr,
    /// Its reply to the question for the record.
    pub record: VantageReply,
    /// The serial number of the zone there; `None` if it does not have the zone.
    pub serial: Option<u32>,
    /// Absolute names of the zone's servers by its copy.
    pub name_servers: Vec<String>,
}

/// A name that has its records by a wildcard alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WildcardCase {
    /// What a name beside it has that nobody has made.
    pub records: Vec<String>,
    /// Whether the name has nothing now, since something stands below it.
    pub is_hidden: bool,
}

/// A zone that a resolver withholds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WithoutSoa {
    /// Absolute name that has NS records.
    pub name: String,
    /// These.
    pub servers: Vec<String>,
    /// What came of the walk for SOA records.
    pub why: String,
    /// Resolver that was asked.
    pub resolver: String,
}

/// What came of one question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VantageReply {
    /// Absolute name asked for.
    pub name: String,
    /// Type asked for.
    pub kind: String,
    /// Who was asked.
    pub from: DnsVantage,
    /// Whether the resolver was asked not to validate (CD).
    pub is_unvalidated: bool,
    /// When.
    pub at: Timestamp,
    /// What came.
    pub heard: DnsOutcome,
}

/// Who was asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DnsVantage {
    /// A server of the zone.
    Authority {
        /// Absolute name.
        name: String,
        /// Where it was asked.
        address: SocketAddr,
    },
    /// A resolver of this machine, or that its flags name in its place.
    Resolver(String),
    /// A resolver elsewhere that somebody named to compare with.
    Other(String),
}

/// A question that is not answered alike everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement<'a> {
    /// Absolute name.
    pub name: &'a str,
    /// Type.
    pub kind: &'a str,
    /// Everybody who was asked, in order.
    pub rows: Vec<DisagreementRow<'a>>,
}

/// What one of them says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisagreementRow<'a> {
    /// Who.
    pub from: &'a DnsVantage,
    /// What it says, in words.
    pub came: String,
    /// Whether it is the side that is wrong; nothing where that cannot be told.
    pub is_wrong: Option<bool>,
}

impl VantageReply {
    /// Tells whether a server of the zone said so that anybody can reach: others may have an inner copy of it.
    pub fn is_by_public_server(&self) -> bool {
        match &self.from {
            DnsVantage::Authority { address, .. } => reserved::block(address.ip()).is_none(),
            DnsVantage::Resolver(_) | DnsVantage::Other(_) => false,
        }
    }
}

impl DnsVantage {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Authority { .. } => "authority",
            Self::Resolver(_) => "resolver",
            Self::Other(_) => "other resolver",
        }
    }

    /// The server, as people name it.
    pub fn server(&self) -> String {
        match self {
            Self::Authority { name, address } => {
                format!("{} ({address})", name.trim_end_matches('.'))
            }
            Self::Resolver(server) | Self::Other(server) => server.clone(),
        }
    }
}

/// What was heard, in words.
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
    /// What came of a question to everybody, with validation where they do that.
    pub fn asked(&self, name: &str, kind: &str) -> impl Iterator<Item = &VantageReply> {
        self.replies.iter().filter(move |reply| {
            !reply.is_unvalidated && reply.kind == kind && reply.name.eq_ignore_ascii_case(name)
        })
    }

    /// Tells whether resolvers fail for the addresses of a name that the zone's servers give, and answer for its SOA record: they
    /// withhold these addresses.
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

    /// Whether resolvers were asked for addresses of a name, and none of them has answered anything.
    pub fn is_of_silent_resolvers(&self, name: &str) -> bool {
        let asked = |reply: &&VantageReply| !matches!(reply.from, DnsVantage::Authority { .. });
        let mut replies = self.asked(name, "A").filter(asked).peekable();
        replies.peek().is_some() && replies.all(|reply| reply.heard.reply().is_none())
    }

    /// Questions that are not answered alike by all who answer.
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
                let right = right(&replies);
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

/// What of an answer has to be the same everywhere; nothing of a server that gives none.
fn content(heard: &DnsOutcome) -> Option<&[String]> {
    let reply = heard.reply().filter(|reply| reply.is_an_answer() || reply.code == "SERVFAIL")?;
    Some(if reply.is_an_answer() { &reply.records[..] } else { &[] })
}

/// What the CA is told: by the zone's servers where these agree, else by the resolvers elsewhere.
fn right<'a>(replies: &[&'a VantageReply]) -> Option<&'a [String]> {
    let agreed = |of: fn(&DnsVantage) -> bool| {
        let mut all = replies.iter().filter(|reply| of(&reply.from));
        let first = all.find_map(|reply| content(&reply.heard))?;
        all.all(|reply| content(&reply.heard).is_none_or(|other| other == first)).then_some(first)
    };
    // Servers that an inner resolver has led to may be inner ones: whoever stands outside knows better.
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

    /// What is wrong, in the order of the rows; nothing where all agree.
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
