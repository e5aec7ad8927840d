//! Observations of probes, as plain data: no verdict, no cause.

use std::fmt;
use std::net::SocketAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::cause::Symptom;

/// One check of a challenge's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Place from which the check was made.
    pub vantage: Vantage,
    /// Time of the check.
    pub at: Timestamp,
    /// The URL asked first; for DNS-01 the record, as in `dns:_acme-challenge.example.com?type=TXT` (RFC 4501).
    pub url: String,
    /// Every URL asked, the first included, each with the address that answered or was tried last: redirects, or aliases.
    pub hops: Vec<Hop>,
    /// Result of the check.
    pub seen: CheckResult,
}

/// Place from which a check is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Vantage {
    /// The machine this program runs on.
    ThisMachine,
    /// A Pod inside the cluster.
    Pod {
        /// Name of the Pod; empty if the Pod could not be made.
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

/// One URL that was asked on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// URL.
    pub url: String,
    /// Address that answered or was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// HTTP status, if the server answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckResult {
    /// There was no answer; the text is stable.
    Nothing {
        /// Cause, such as `connection refused by 192.0.2.1:80`.
        why: String,
        /// Cause as data, if the cause is of a known sort.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        symptom: Option<Symptom>,
    },
    /// No check was made, for a reason that has nothing to do with the answer.
    NoLook {
        /// Reason why no check was made.
        why: String,
        /// Reason as data, if the reason is of a known sort.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        symptom: Option<Symptom>,
    },
    /// A redirect that no CA follows; the texts are stable.
    Redirect {
        /// Target of the redirect.
        to: String,
        /// Reason why the redirect is not followed.
        why: String,
    },
    /// An answer.
    Reply {
        /// HTTP status.
        status: u16,
        /// Beginning of the body, as much as a CA reads; bytes that are no UTF-8 are replaced.
        body: String,
        /// Whether the body is longer.
        truncated: bool,
        /// Whether a listener of this program says that it does not have the answer.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_declined: bool,
    },
    /// A TLS handshake that was completed.
    Handshake {
        /// Protocol agreed on (ALPN); empty for none.
        protocol: String,
        /// Certificate that was presented.
        certificate: PresentedCertificate,
    },
    /// Answers of name servers about a TXT record.
    Records {
        /// Absolute name of the record, after aliases were followed.
        name: String,
        /// Absolute name of the record's zone; empty if resolvers were asked in place of the zone's own servers.
        zone: String,
        /// Every server that was asked, by name, then address.
        servers: Vec<NameServer>,
    },
}

/// Parts of a certificate that count for TLS-ALPN-01 (RFC 8737 §3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PresentedCertificate {
    /// Subject, as one line.
    pub subject: String,
    /// Whether the certificate's own key has signed the certificate.
    pub self_signed: bool,
    /// Alternative names; names that are neither DNS names nor addresses are given in words.
    pub names: Vec<String>,
    /// Every extension `acmeIdentifier`.
    pub acme_identifiers: Vec<AcmeIdentifier>,
}

/// Extension `acmeIdentifier`, 1.3.6.1.5.5.7.1.31.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcmeIdentifier {
    /// Whether the extension is critical.
    pub critical: bool,
    /// Digest in the extension, in hexadecimal digits; the whole extension if it holds no digest.
    pub digest: String,
}

/// Answer of one name server about a TXT record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameServer {
    /// Absolute name; of a resolver, the name by which this program was given the resolver.
    pub name: String,
    /// Address that was asked; `None` for a resolver behind a URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddr>,
    /// Answer of the server.
    pub said: NameServerAnswer,
    /// Seconds for which the texts may be cached, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u32>,
}

/// Answer of a name server about a TXT record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NameServerAnswer {
    /// The texts at the name, each joined from its strings, sorted.
    Texts(Vec<String>),
    /// The name exists and has no text.
    NoText,
    /// There is no such name (NXDOMAIN).
    NoName,
    /// The name is an alias of the given name (CNAME).
    Alias(String),
    /// Servers of the given zone are to be asked.
    Referral(String),
    /// Another code, such as `SERVFAIL`.
    Code(String),
    /// The server did not answer; the text is stable.
    Nothing(String),
    /// The server's answer cannot be read; the text is stable.
    Unreadable(String),
    /// This machine has no route to the address, such as a machine without IPv6.
    NoRoute,
}

/// Answer of a server to one GET, whatever it is, as far as it shows who answers at the URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlainAnswer {
    /// HTTP status.
    pub status: u16,
    /// The server's clock.
    pub date: Option<Timestamp>,
    /// Time by this machine's clock when the answer came, whatever moment the verdict uses.
    pub came: Timestamp,
    /// Type of the body; empty if the answer names none.
    pub content_type: String,
    /// Target of the redirect; empty if there is none.
    pub location: String,
    /// Time at which the server wants the next request, in its own words; empty if it names none.
    pub retry_after: String,
    /// The beginning of the body.
    pub start: String,
    /// URLs in the body, each with its name, if the body is a JSON object.
    pub members: Vec<(String, String)>,
}
