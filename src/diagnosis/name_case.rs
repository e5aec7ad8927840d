//! What was observed of a name that is to be proven: addresses, web servers, records, CAA.

use std::net::{IpAddr, SocketAddr};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::dns_case::DnsCase;
use super::web_case::{WebLook, WebrootCase};
use crate::model::arrival::Arrival;
use crate::model::caa::CaaRecordSet;
use crate::model::cause::Sighting;
use crate::model::names::shown_domain;
use crate::model::observation::Observation;
use crate::model::provider_zone::ProviderZone;
use crate::model::{Challenge, ChallengeType, Key};

/// How long a record may be on its way from a provider to its name servers.
const ON_ITS_WAY: SignedDuration = SignedDuration::from_mins(1);

/// A name that is to be proven, looked at as a CA would.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NameCase {
    /// Name without `*.`, or an IP address.
    pub name: String,
    /// Whether a wildcard is asked for.
    pub wildcard: bool,
    /// The issuer that is to prove it, where there is one.
    pub issuer: Option<Key>,
    /// How it is to be proven, where a solver fits or somebody said so.
    pub kind: Option<ChallengeType>,
    /// Why no solver fits, one line for each, where none does.
    pub unfit: Vec<String>,
    /// Its Challenge, while the answer is up and has to be seen.
    pub pending: Option<Challenge>,
    /// Whether DNS was asked for its addresses, and no flag says where it is.
    pub is_looked_for_in_dns: bool,
    /// The addresses that were found.
    pub addresses: LookUp<Vec<IpAddr>>,
    /// Those among them that no CA can reach, each with the block that it is in.
    pub reserved: Vec<(IpAddr, String)>,
    /// One look for each address.
    pub looks: Vec<AddressLook>,
    /// What was seen of the answer, and what a CA would make of it.
    pub answer: Option<AnswerLook>,
    /// CAA records, from the name upwards, up to the first that has any.
    pub caa: Vec<CaaLevel>,
    /// Whether the records of DNS-01 were found under a doubled name, `_acme-challenge.NAME.NAME`.
    pub doubled: Option<String>,
    /// The folder from which a web server is to show the answer, where it is written as a file.
    #[serde(default)]
    pub webroot: Option<WebrootCase>,
    /// What DNS says of it, by whom.
    #[serde(default)]
    pub dns: Option<DnsCase>,
    /// Looks at addresses that the CA is told, and this machine is not.
    #[serde(default)]
    pub outer: Vec<AddressLook>,
    /// A look from inside the cluster, where somebody asked for it.
    #[serde(default)]
    pub inside: Option<InsideLook>,
    /// The zones of its zone's name at the provider, where its record is missing and the provider could be asked.
    #[serde(default)]
    pub provider_zones: Vec<ProviderZone>,
}

/// What came of a question to name servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LookUp<T> {
    /// Nobody has asked.
    NotAsked,
    /// This.
    Found(T),
    /// There is no such name.
    NoName(String),
    /// The name is there, without such a record.
    NoRecord(String),
    /// The name is an alias of one that is not there.
    Dangling {
        /// Where the alias leads.
        target: String,
    },
    /// Aliases lead in a circle.
    Circle(String),
    /// A server answered with an error, such as `SERVFAIL`, and the purpose where it says one (RFC 8914).
    Code(String),
    /// Nobody answered.
    Silence(String),
    /// Something else.
    Other(String),
}

/// One look at an address of a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressLook {
    /// The address, with the port that was connected to.
    pub address: SocketAddr,
    /// What was seen.
    pub observation: Observation,
    /// What was looked for.
    pub expected: String,
    /// Whether it had to be there: it is up, or was put up to see.
    pub is_expected: bool,
    /// Whether it was.
    pub is_answer: bool,
    /// What was wrong with what was seen in its place, where that is of a known sort.
    pub sighting: Option<Sighting>,
    /// Where cert-manager's self-check and the CA would see it differently.
    pub disagreement: Option<String>,
    /// What the address says to other paths, where it did not show the answer.
    #[serde(default)]
    pub web: Option<WebLook>,
    /// What came to our own listener while it was looked, where this process listens.
    #[serde(default)]
    pub arrivals: Vec<Arrival>,
}

/// A look from a Pod inside the cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InsideLook {
    /// What was seen.
    pub observation: Observation,
    /// Whether the answer was seen.
    pub is_answer: bool,
    /// What was wrong with what was seen in its place, where that is of a known sort.
    pub sighting: Option<Sighting>,
}

/// A look at the answer of a Challenge.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerLook {
    /// What has to be seen.
    pub expected: String,
    /// What was seen.
    pub observations: Vec<Observation>,
    /// Why a CA would not take it; nothing where it would.
    pub reason: Option<String>,
    /// The same as data, where it is of a known sort.
    pub sighting: Option<Sighting>,
}

/// CAA records at one name (RFC 8659).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaaLevel {
    /// Name.
    pub name: String,
    /// Records there; none is an answer, too.
    pub records: LookUp<CaaRecordSet>,
    /// When it was asked.
    pub at: Timestamp,
}

impl NameCase {
    /// Tells whether the answer was looked for and every look saw the answer as a CA would take it.
    pub fn is_answer_seen(&self) -> bool {
        match &self.answer {
            Some(answer) => answer.reason.is_none(),
            None => !self.looks.is_empty() && self.looks.iter().all(|look| look.is_answer),
        }
    }

    /// A name as it is ordered, a wildcard as such, at which nobody has looked.
    pub fn of(shown: &str, kind: Option<ChallengeType>) -> Self {
        let (bare, wildcard) = match shown.strip_prefix("*.") {
            Some(bare) => (bare, true),
            None => (shown, false),
        };
        Self {
            name: bare.trim_end_matches('.').to_ascii_lowercase(),
            wildcard,
            issuer: None,
            kind,
            unfit: Vec::new(),
            pending: None,
            is_looked_for_in_dns: false,
            addresses: LookUp::NotAsked,
            reserved: Vec::new(),
            looks: Vec::new(),
            answer: None,
            caa: Vec::new(),
            doubled: None,
            webroot: None,
            dns: None,
            outer: Vec::new(),
            inside: None,
            provider_zones: Vec::new(),
        }
    }

    /// Tells whether somebody asks about the name alone, with no object behind it.
    pub fn is_bare(&self) -> bool {
        self.issuer.is_none()
    }

    /// Tells whether this machine's resolvers withhold its addresses, which the zone's servers give.
    pub fn is_withheld(&self) -> bool {
        let domain = format!("{}.", self.name);
        self.dns.as_ref().is_some_and(|dns| dns.are_addresses_withheld(&domain))
    }

    /// Tells whether its answer was put up so lately that it may be on its way.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let since = self.pending.as_ref().and_then(|challenge| challenge.status.presented_at);
        since.is_some_and(|at| now.duration_since(at.timestamp()) < ON_ITS_WAY)
    }

    /// The name as it is ordered, a wildcard as such.
    pub fn shown(&self) -> String {
        shown_domain(&self.name, self.wildcard)
    }
}
