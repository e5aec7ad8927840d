//! Observations of a name that is to be proven: addresses, web servers, records, CAA.

use std::net::{IpAddr, SocketAddr};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::dns::DnsCase;
use super::web::{WebProbe, WebrootCase};
use crate::model::arrival::Arrival;
use crate::model::caa::CaaRecordSet;
use crate::model::cause::CheckFinding;
use crate::model::names::shown_domain;
use crate::model::observation::Observation;
use crate::model::zone_look::ProviderZone;
use crate::model::{Challenge, ChallengeType, Key};

/// Maximum time that a record takes from a provider to its name servers.
const RECORD_DELAY_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Name that is to be proven, with observations as a CA would make them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NameCase {
    /// Name without `*.`, or an IP address.
    pub name: String,
    /// Whether a wildcard is asked for.
    pub wildcard: bool,
    /// Issuer for which the name is to be proven, if any.
    pub issuer: Option<Key>,
    /// Challenge type, if a solver fits or the user has chosen the type.
    pub kind: Option<ChallengeType>,
    /// Reasons why no solver fits, one line for each, if none fits.
    pub unfit: Vec<String>,
    /// Challenge of the name, while the answer is up and has to be seen.
    pub pending: Option<Challenge>,
    /// Whether DNS was asked for the addresses, and no flag gives an address.
    pub is_looked_for_in_dns: bool,
    /// Addresses that were found.
    pub addresses: LookUp<Vec<IpAddr>>,
    /// Found addresses that no CA can reach, each with its reserved block.
    pub reserved: Vec<(IpAddr, String)>,
    /// Probe results, one for each address.
    pub looks: Vec<AddressProbe>,
    /// Observations of the answer, and what a CA would make of them.
    pub answer: Option<AnswerProbe>,
    /// CAA records, from the name upwards, up to the first name that has any.
    pub caa: Vec<CaaLevel>,
    /// Doubled name, `_acme-challenge.NAME.NAME`, if the records of DNS-01 were found under it.
    pub doubled: Option<String>,
    /// Folder from which a web server has to show the answer, if the answer is written as a file.
    #[serde(default)]
    pub webroot: Option<WebrootCase>,
    /// Replies of DNS about the name, by vantage.
    #[serde(default)]
    pub dns: Option<DnsCase>,
    /// Probe results at addresses that the CA gets, and that this machine does not get.
    #[serde(default)]
    pub outer: Vec<AddressProbe>,
    /// Probe result from inside the cluster, if the user asked for it.
    #[serde(default)]
    pub inside: Option<InsideProbe>,
    /// The provider's zones with the name of the record's zone, if the record is missing and the provider could be asked.
    #[serde(default)]
    pub provider_zones: Vec<ProviderZone>,
}

/// Result of a question to name servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LookUp<T> {
    /// No question was asked.
    NotAsked,
    /// Records that were found.
    Found(T),
    /// There is no such name.
    NoName(String),
    /// The name exists, without such a record.
    NoRecord(String),
    /// The name is an alias of a name that does not exist.
    Dangling {
        /// Target of the alias.
        target: String,
    },
    /// Aliases lead in a circle.
    Circle(String),
    /// Error code of a server, such as `SERVFAIL`, with the purpose if the server gives one (RFC 8914).
    Code(String),
    /// No server answered.
    Silence(String),
    /// Another result.
    Other(String),
}

/// Probe of one address of a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressProbe {
    /// The address, with the port that was connected to.
    pub address: SocketAddr,
    /// Observation at the address.
    pub observation: Observation,
    /// Expected answer.
    pub expected: String,
    /// Whether the answer had to be there: it is up, or was put up for the probe.
    pub is_expected: bool,
    /// Whether the answer was there.
    pub is_answer: bool,
    /// Fault of what was seen in place of the answer, if the fault is of a known sort.
    pub sighting: Option<CheckFinding>,
    /// Difference between the views of cert-manager's self-check and of the CA, if any.
    pub disagreement: Option<String>,
    /// Answers of the address to other paths, if the address did not show the expected answer.
    #[serde(default)]
    pub web: Option<WebProbe>,
    /// Requests that arrived at our own listener during the probe, if this process listens.
    #[serde(default)]
    pub arrivals: Vec<Arrival>,
}

/// Probe from a Pod inside the cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InsideProbe {
    /// Observation of the probe.
    pub observation: Observation,
    /// Whether the answer was seen.
    pub is_answer: bool,
    /// Fault of what was seen in place of the answer, if the fault is of a known sort.
    pub sighting: Option<CheckFinding>,
}

/// Probe of the answer of a Challenge.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerProbe {
    /// Expected value.
    pub expected: String,
    /// Observations of the probe.
    pub observations: Vec<Observation>,
    /// Reason why a CA would not accept the answer; `None` if the CA would.
    pub reason: Option<String>,
    /// Fault that the reason describes, if the fault is of a known sort.
    pub sighting: Option<CheckFinding>,
}

/// CAA records at one name (RFC 8659).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaaLevel {
    /// Name.
    pub name: String,
    /// Records at the name; their absence is an answer, too.
    pub records: LookUp<CaaRecordSet>,
    /// Time of the question.
    pub at: Timestamp,
}

impl NameCase {
    /// Reports whether the answer was probed, and every probe saw the answer as a CA would accept it.
    pub fn is_answer_seen(&self) -> bool {
        match &self.answer {
            Some(answer) => answer.reason.is_none(),
            None => !self.looks.is_empty() && self.looks.iter().all(|look| look.is_answer),
        }
    }

    /// Builds the case of a name without observations; `shown` is the name as ordered, a wildcard with its `*.`.
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

    /// Reports whether the user asked about the name alone, with no object behind the name.
    pub fn is_bare(&self) -> bool {
        self.issuer.is_none()
    }

    /// Reports whether this machine's resolvers withhold the name's addresses, which the zone's servers give.
    pub fn is_withheld(&self) -> bool {
        let domain = format!("{}.", self.name);
        self.dns.as_ref().is_some_and(|dns| dns.are_addresses_withheld(&domain))
    }

    /// Reports whether the answer was put up so recently that it may still be on its way.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let since = self.pending.as_ref().and_then(|challenge| challenge.status.presented_at);
        since.is_some_and(|at| now.duration_since(at.timestamp()) < RECORD_DELAY_MAX)
    }

    /// Returns the name as ordered, a wildcard with its `*.`.
    pub fn shown(&self) -> String {
        shown_domain(&self.name, self.wildcard)
    }
}
