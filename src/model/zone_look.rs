//! Observations of a zone, in DNS and at its provider, and outcomes of single questions to name servers: plain data, no
//! verdict.

use std::net::SocketAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::extended_error::ExtendedError;

/// Outcome of one question to one name server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DnsOutcome {
    /// An answer, whatever its code.
    Reply(DnsReply),
    /// More than fits a packet, and no answer over TCP; holds the reason.
    TooLarge(String),
    /// No answer; holds the reason.
    Nothing(String),
    /// This machine has no route to the address.
    NoRoute,
}

/// An answer of a name server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsReply {
    /// Code, such as `NOERROR`.
    pub code: String,
    /// Reason why the answer is no better, if the server gives one (RFC 8914).
    pub why: Option<ExtendedError>,
    /// Absolute names to which aliases lead, one after another.
    pub aliases: Vec<String>,
    /// Records of the type at the end of the aliases, as text, sorted.
    pub records: Vec<String>,
    /// Seconds for which the records may be cached.
    pub ttl: Option<u32>,
    /// Seconds for which the absence of records may be cached (RFC 2308 §5), if the server gives them.
    pub absent_for: Option<u32>,
    /// Whether the server has validated the records (AD).
    pub is_validated: bool,
}

/// Zone, as described by its own servers and those of its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneState {
    /// Absolute name.
    pub name: String,
    /// Zone above the name that resolvers find by SOA records; equal to `name` if no other zone is between, and if only
    /// resolvers were asked. `None` if resolvers fail.
    pub by_resolvers: Option<String>,
    /// Error of resolvers that do not find the zone: only the servers that the zone above names are known then.
    #[serde(default)]
    pub unfound: Option<String>,
    /// Zone that delegates this zone, if known.
    pub parent: Option<String>,
    /// Name servers by the parent's records, sorted; `None` if these could not be read.
    pub at_parent: Option<Vec<String>>,
    /// Tags of the keys for which the parent has a DS record.
    pub ds_tags: Vec<u16>,
    /// Servers of the zone, each at each address; empty if only resolvers were asked.
    pub servers: Vec<ZoneServer>,
}

/// A server of a zone at one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneServer {
    /// Absolute name.
    pub name: String,
    /// Address that was asked; `None` if the server has no address.
    pub address: Option<SocketAddr>,
    /// Outcome of the question for the zone's SOA record.
    pub soa: DnsOutcome,
    /// Serial number in the SOA record.
    pub serial: Option<u32>,
    /// End of the SOA record's signature, if there is one.
    pub signed_until: Option<Timestamp>,
    /// Name servers by this server's records, sorted.
    pub name_servers: Vec<String>,
    /// Tags of the zone's keys, if the parent has a DS record.
    pub key_tags: Vec<u16>,
    /// Reason why the server cannot be asked over TCP, if it answers otherwise.
    #[serde(default)]
    pub tcp_fault: Option<String>,
    /// Fault of the server with questions as CAs ask them, if it answers other questions.
    #[serde(default)]
    pub asking_fault: Option<QuestionFault>,
}

/// Faults of servers with questions as CAs ask them: with EDNS, and with letters in mixed case. The question is
/// otherwise unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QuestionFault {
    /// The server answers only without EDNS (RFC 6891); holds the outcome with EDNS.
    Edns(String),
    /// The server answers in other letters than the question had, or not at all.
    Letters {
        /// Absolute name, as it was asked for.
        name: String,
        /// Outcome of the question.
        came: String,
    },
}

impl ZoneServer {
    /// Reports whether the server has the zone.
    pub fn serves(&self) -> bool {
        self.serial.is_some()
    }
}

impl DnsOutcome {
    /// Returns the answer, if there is one.
    pub fn reply(&self) -> Option<&DnsReply> {
        match self {
            Self::Reply(reply) => Some(reply),
            Self::TooLarge(_) | Self::Nothing(_) | Self::NoRoute => None,
        }
    }

    /// Returns the answer, if it says whether the name exists.
    pub fn answer(&self) -> Option<&DnsReply> {
        self.reply().filter(|reply| reply.is_an_answer())
    }
}

impl DnsReply {
    /// Reports whether the answer says that the name exists, or that it does not; other answers are about the server.
    pub fn is_an_answer(&self) -> bool {
        self.code == "NOERROR" || self.is_no_name()
    }

    /// Reports whether the name does not exist.
    pub fn is_no_name(&self) -> bool {
        self.code == "NXDOMAIN"
    }
}

/// One of the zones of a name at a DNS provider, as the provider lists it: there may be several, of which the delegation leads to one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderZone {
    /// Identifier of the zone at the provider.
    pub id: String,
    /// Absolute name.
    pub name: String,
    /// Whether only networks that are assigned to the zone see its records.
    pub is_private: bool,
    /// Name servers of the zone, absolute names in lower case, sorted; empty if the provider does not name them.
    pub name_servers: Vec<String>,
    /// Whether the solver writes into this zone.
    pub is_written: bool,
}

impl ProviderZone {
    /// Sets the name servers in a form that can be compared with DNS answers.
    #[must_use]
    pub fn with_servers<'a>(self, servers: impl IntoIterator<Item = &'a str>) -> Self {
        let absolute = |name: &str| format!("{}.", name.trim_end_matches('.').to_ascii_lowercase());
        let mut name_servers: Vec<String> = servers.into_iter().map(absolute).collect();
        name_servers.sort();
        Self { name_servers, ..self }
    }
}
