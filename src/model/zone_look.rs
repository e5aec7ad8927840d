//! What was seen of a zone, and what came of single questions to name servers: plain data, no verdict.

use std::net::SocketAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::extended_error::ExtendedError;

/// What came of one question to one name server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DnsOutcome {
    /// An answer, whatever its code.
    Reply(DnsReply),
    /// More than fits a packet, and nothing over TCP; why.
    TooLarge(String),
    /// Nothing, and why.
    Nothing(String),
    /// This machine has no way to that address.
    NoRoute,
}

/// An answer of a name server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsReply {
    /// Code, such as `NOERROR`.
    pub code: String,
    /// Why it is no better, where the server says that (RFC 8914).
    pub why: Option<ExtendedError>,
    /// Absolute names where aliases lead, one after another.
    pub aliases: Vec<String>,
    /// Records of the type at their end, as text, sorted.
    pub records: Vec<String>,
    /// Seconds that the records may be kept.
    pub ttl: Option<u32>,
    /// Seconds for which it may be kept that there are none (RFC 2308 §5), where the server says that.
    pub absent_for: Option<u32>,
    /// Whether the server has validated them (AD).
    pub is_validated: bool,
}

/// A zone, by its own servers and those of its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneLook {
    /// Absolute name.
    pub name: String,
    /// The zone above it that resolvers know by SOA records; the same where nothing is between, and where only resolvers were asked.
    /// `None` if they fail.
    pub by_resolvers: Option<String>,
    /// Why resolvers do not find it, where that is so: whom the zone above names is all that is known then.
    #[serde(default)]
    pub unfound: Option<String>,
    /// The zone that delegates it, where that is known.
    pub parent: Option<String>,
    /// Name servers by the parent's word, sorted; nothing where that was not to be had.
    pub at_parent: Option<Vec<String>>,
    /// Tags of the keys that the parent has a DS record of.
    pub ds_tags: Vec<u16>,
    /// The zone's servers, each at each address; none where only resolvers were asked.
    pub servers: Vec<ZoneServer>,
}

/// A server of a zone at one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ZoneServer {
    /// Absolute name.
    pub name: String,
    /// Where it was asked; nothing where it has no address.
    pub address: Option<SocketAddr>,
    /// What it says of the zone's SOA record.
    pub soa: DnsOutcome,
    /// Serial number in it.
    pub serial: Option<u32>,
    /// The end of its signature, where it has one.
    pub signed_until: Option<Timestamp>,
    /// Name servers by its word, sorted.
    pub name_servers: Vec<String>,
    /// Tags of the zone's keys, where the parent has a DS record.
    pub key_tags: Vec<u16>,
    /// Why it cannot be asked over TCP, where it answers otherwise.
    #[serde(default)]
    pub tcp_fault: Option<String>,
    /// What it cannot stand of the way in which CAs ask, where it answers otherwise.
    #[serde(default)]
    pub asking_fault: Option<AskingFault>,
}

/// What a server cannot stand of the way in which CAs ask: with EDNS, and with letters in mixed case. What else is asked for is the
/// same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AskingFault {
    /// It answers without EDNS (RFC 6891) only; what came with it.
    Edns(String),
    /// It answers in other letters than it was asked in, or not at all; the name as it was asked for, and what came.
    Letters {
        /// Absolute name.
        name: String,
        /// What came.
        came: String,
    },
}

impl ZoneServer {
    /// Whether it has the zone.
    pub fn serves(&self) -> bool {
        self.serial.is_some()
    }
}

impl DnsOutcome {
    /// The answer, where there is one.
    pub fn reply(&self) -> Option<&DnsReply> {
        match self {
            Self::Reply(reply) => Some(reply),
            Self::TooLarge(_) | Self::Nothing(_) | Self::NoRoute => None,
        }
    }

    /// The answer that says whether the name exists.
    pub fn answer(&self) -> Option<&DnsReply> {
        self.reply().filter(|reply| reply.is_an_answer())
    }
}

impl DnsReply {
    /// Whether the name exists, or does not; everything else tells of the server.
    pub fn is_an_answer(&self) -> bool {
        self.code == "NOERROR" || self.is_no_name()
    }

    /// Whether there is no such name.
    pub fn is_no_name(&self) -> bool {
        self.code == "NXDOMAIN"
    }
}
