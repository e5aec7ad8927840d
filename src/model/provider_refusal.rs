//! What a DNS provider refuses, as a machine knows it: which call, what came, and what is at fault. The words for people stand
//! in the error; this is kept beside them, for whoever judges.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Key;
use super::solver::Dns01Solver;

/// Where the refusal of a Certificate's provider is kept that came before there was an order.
const REFUSED_BEFORE: &str = "kubectl-acme/provider-refusal";
/// Most things that are told of what there is in place of what was looked for.
const MOST_KNOWN: usize = 10;

/// What a provider refuses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderRefusal {
    /// How people call the provider: `Cloudflare`.
    pub provider: String,
    /// What it was asked: `GET /zones?name=example.com`, or `update of example.com.`.
    pub call: String,
    /// HTTP status, where one came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's own word for it, where it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// What it says, in one stable line.
    pub said: String,
    /// Absolute name of the zone, where it is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// What there is in place of what was looked for, such as the domains that have an account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// What is at fault.
    pub fault: ProviderFault,
    /// Whether the answer to a signed update is not signed: the server may not have taken the key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unsigned: bool,
}

/// Why a DNS provider does not take a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderFault {
    /// Credentials that are not known there, or cannot be used.
    Credentials,
    /// Credentials that are known, and may not do it.
    Permission,
    /// Their zones have none for the name.
    NoZone,
    /// Too many requests, or an outage.
    Busy,
    /// There is no way to the API.
    Unreachable,
    /// The API does not take requests from this address.
    AddressRefused,
    /// acme-dns has no account for the domain.
    NotRegistered,
    /// A name server refuses a dynamic update, with a code of RFC 2136 or RFC 8945.
    Update,
    /// A name server takes no dynamic updates at all.
    NoUpdates,
    /// Something else.
    #[default]
    Other,
}

impl ProviderRefusal {
    /// A refusal of that sort, as it is told.
    pub fn new(fault: ProviderFault, call: impl Into<String>, said: impl Into<String>) -> Self {
        Self { fault, call: call.into(), said: said.into(), ..Self::default() }
    }

    /// The same with what there is in place of what was looked for.
    #[must_use]
    pub fn knowing(self, known: impl IntoIterator<Item = String>) -> Self {
        Self { known: known.into_iter().take(MOST_KNOWN).collect(), ..self }
    }

    /// What came, in one line.
    pub fn answer(&self) -> String {
        let status = self.status.map(|status| format!("HTTP {status}"));
        let status = status.filter(|status| !self.said.starts_with(status.as_str()));
        let code = Some(&self.code).filter(|code| !code.is_empty() && !self.said.contains(*code));
        let mut parts: Vec<String> = status.into_iter().chain(code.cloned()).collect();
        if !self.said.is_empty() {
            parts.push(self.said.clone());
        }
        parts.join(", ")
    }

    /// The same in a few words, without what belongs to one name.
    pub fn in_short(&self) -> String {
        let Self { provider, code, .. } = self;
        match self.fault {
            ProviderFault::Credentials => format!("{provider} does not take the credentials"),
            ProviderFault::Permission => format!("{provider} does not permit it"),
            ProviderFault::NoZone => format!("{provider} has no such zone"),
            ProviderFault::Busy => format!("{provider} is busy"),
            ProviderFault::Unreachable => format!("{provider} cannot be reached"),
            ProviderFault::AddressRefused => format!("{provider} does not take this address"),
            ProviderFault::NotRegistered => format!("{provider} has no account for it"),
            ProviderFault::Update => format!("{provider} refuses the update ({code})"),
            ProviderFault::NoUpdates => format!("{provider} takes no dynamic updates"),
            ProviderFault::Other => format!("{provider} refuses"),
        }
    }
}

/// How people call the provider of a solver.
pub fn provider_name(dns01: &Dns01Solver) -> &'static str {
    [
        ("Akamai", dns01.akamai.is_some()),
        ("Google Cloud DNS", dns01.cloud_dns.is_some()),
        ("Cloudflare", dns01.cloudflare.is_some()),
        ("Route 53", dns01.route53.is_some()),
        ("Azure DNS", dns01.azure_dns.is_some()),
        ("DigitalOcean", dns01.digitalocean.is_some()),
        ("acme-dns", dns01.acme_dns.is_some()),
        ("the name server", dns01.rfc2136.is_some()),
    ]
    .iter()
    .find(|(_, is)| *is)
    .map_or("the DNS provider", |(name, _)| name)
}

/// Tells whether a provider says that it does not take requests from this address; few have a code of their own for that.
pub fn is_about_address(said: &str) -> bool {
    let said = said.to_lowercase();
    ADDRESS.iter().any(|mark| said.contains(mark))
}

const ADDRESS: [&str; 7] = [
    "ip address is not allowed",
    "ip not allowed",
    "ip is not in the",
    "ip is not whitelisted",
    "invalid request ip",
    "from this ip",
    "cannot use the access token from location",
];

/// A refusal that came before there was an order, kept with the Certificate that it was for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedBefore {
    /// When.
    pub at: Timestamp,
    /// The issuer that has the solver.
    pub issuer: Key,
    /// Counts the changes of that issuer: what was refused of an earlier one may be mended.
    pub generation: Option<i64>,
    /// Place of the solver in the issuer's list, from 0.
    pub solver: usize,
    /// Name of the Certificate, a wildcard as such.
    pub domain: String,
    /// What was refused.
    pub refusal: ProviderRefusal,
}

impl RefusedBefore {
    /// What is kept in the annotations of a Certificate, if anything; what cannot be read counts as forgotten.
    pub fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        serde_json::from_str(annotations.get(REFUSED_BEFORE)?).ok()
    }

    /// Keeps a refusal in the annotations of a Certificate, or forgets the one of before; returns whether anything changed.
    pub fn write(kept: Option<&Self>, annotations: &mut BTreeMap<String, String>) -> bool {
        let before = annotations.get(REFUSED_BEFORE).cloned();
        let text = kept.and_then(|kept| serde_json::to_string(kept).ok());
        match &text {
            Some(text) => drop(annotations.insert(REFUSED_BEFORE.to_owned(), text.clone())),
            None => drop(annotations.remove(REFUSED_BEFORE)),
        }
        before != text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, ObjectName};

    fn refusal() -> ProviderRefusal {
        ProviderRefusal {
            status: Some(403),
            code: "10000".to_owned(),
            ..ProviderRefusal::new(ProviderFault::Permission, "GET /zones", "Authentication error")
        }
    }

    #[test]
    fn an_answer_says_nothing_twice() {
        assert_eq!(refusal().answer(), "HTTP 403, 10000, Authentication error");
        let told = ProviderRefusal { said: "10000: no".to_owned(), ..refusal() };
        assert_eq!(told.answer(), "HTTP 403, 10000: no");
        let bare = ProviderRefusal { said: "HTTP 403 Forbidden".to_owned(), ..refusal() };
        assert_eq!(bare.answer(), "10000, HTTP 403 Forbidden");
    }

    #[test]
    fn a_refusal_is_kept_with_its_certificate_until_it_is_forgotten() {
        let kept = RefusedBefore {
            at: "2026-11-25T10:00:00Z".parse().unwrap(),
            issuer: Key::new(Kind::Issuer, ObjectName::new("web", "acme")),
            generation: Some(2),
            solver: 0,
            domain: "*.example.com".to_owned(),
            refusal: refusal(),
        };
        let mut annotations = BTreeMap::from([("other".to_owned(), "stays".to_owned())]);
        assert!(RefusedBefore::write(Some(&kept), &mut annotations));
        assert!(!RefusedBefore::write(Some(&kept), &mut annotations));
        assert_eq!(RefusedBefore::read(&annotations), Some(kept));
        assert!(RefusedBefore::write(None, &mut annotations));
        assert_eq!((RefusedBefore::read(&annotations), annotations.len()), (None, 1));
    }
}
