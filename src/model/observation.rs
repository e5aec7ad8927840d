//! What a probe saw, as plain data: no verdict, no cause.

use std::fmt;
use std::net::SocketAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::cause::Symptom;

/// One look at a challenge's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Where the look came from.
    pub vantage: Vantage,
    /// When.
    pub at: Timestamp,
    /// The URL asked first; for DNS-01 the record, as in `dns:_acme-challenge.example.com?type=TXT` (RFC 4501).
    pub url: String,
    /// Every URL asked, that one included, each with the address that answered or was tried last: redirects, or aliases.
    pub hops: Vec<Hop>,
    /// What came of it.
    pub seen: Seen,
}

/// Where a look comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Vantage {
    /// The machine this program runs on.
    ThisMachine,
    /// A Pod inside the cluster.
    Pod {
        /// Its name; empty when it could not be made.
        name: String,
    },
}

impl fmt::Display for Vantage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisMachine => f.write_str("this machine"),
            Self::Pod { name } if name.is_empty() => f.write_str("inside the cluster"),
            Self::Pod { name } => write!(f, "inside the cluster (Pod {name})"),
        }
    }
}

/// One URL asked on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// URL.
    pub url: String,
    /// Address that answered or was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// HTTP status, if it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// What came of a look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Seen {
    /// Nobody answered; the text is stable.
    Nothing {
        /// Why, such as `connection refused by 192.0.2.1:80`.
        why: String,
        /// The same as data, if it is of a known sort.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        symptom: Option<Symptom>,
    },
    /// There was no look, for a reason that has nothing to do with the answer.
    NoLook {
        /// Why.
        why: String,
        /// The same as data, if it is of a known sort.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        symptom: Option<Symptom>,
    },
    /// A redirect that no CA follows; the texts are stable.
    Redirect {
        /// Where it leads.
        to: String,
        /// Why it is not followed.
        why: String,
    },
    /// An answer.
    Reply {
        /// HTTP status.
        status: u16,
        /// As much of the body as a CA reads; bytes that are no UTF-8 are replaced.
        body: String,
        /// Whether there was more.
        truncated: bool,
        /// Whether a listener of this program says that it does not have the answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_declined: bool,
    },
    /// A TLS handshake that came to its end.
    Handshake {
        /// Protocol agreed on (ALPN); empty for none.
        protocol: String,
        /// What was shown.
        certificate: Shown,
    },
    /// What name servers say of a TXT record.
    Records {
        /// Absolute name of the record, where aliases lead.
        name: String,
        /// Absolute name of its zone; empty when resolvers were asked in place of the zone's own servers.
        zone: String,
        /// Everybody who was asked, by name, then address.
        servers: Vec<NameServer>,
    },
}

/// What of a certificate counts for TLS-ALPN-01 (RFC 8737 §3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// Subject, as one line.
    pub subject: String,
    /// Whether its own key has signed it.
    pub self_signed: bool,
    /// Alternative names; those that are neither DNS names nor addresses in words.
    pub names: Vec<String>,
    /// Every extension `acmeIdentifier`.
    pub acme_identifiers: Vec<AcmeIdentifier>,
}

/// The extension 1.3.6.1.5.5.7.1.31.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcmeIdentifier {
    /// Whether it is critical.
    pub critical: bool,
    /// The digest in it, in hexadecimal digits; the whole extension where it holds none.
    pub digest: String,
}

/// What one name server says of a TXT record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameServer {
    /// Absolute name; of a resolver, how it was named to us.
    pub name: String,
    /// Address asked; none for a resolver behind a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// What it says.
    pub said: Said,
    /// Seconds that whoever asks may keep its texts, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
}

/// What a name server says of a TXT record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Said {
    /// The texts at the name, each joined from its strings, sorted.
    Texts(Vec<String>),
    /// The name is there and has no text.
    NoText,
    /// There is no such name (NXDOMAIN).
    NoName,
    /// The name is an alias of this one (CNAME).
    Alias(String),
    /// Servers of this zone are to be asked.
    Referral(String),
    /// Another code, such as `SERVFAIL`.
    Code(String),
    /// It did not answer; the text is stable.
    Nothing(String),
    /// Its answer cannot be read; the text is stable.
    Unreadable(String),
    /// This machine has no way to that address, such as one without IPv6.
    NoRoute,
}
