//! Refusals of DNS providers as data: the call, the answer, and the fault. The words for people stand in the error; the
//! refusal is kept beside them for the rules.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Key;
use super::solver::Dns01Solver;

/// Annotation with the refusal of a Certificate's provider that came before there was an order.
const REFUSED_BEFORE: &str = "kubectl-acme/provider-refusal";
/// Most alternatives that are kept of a refusal.
const MAX_KNOWN: usize = 10;

/// Refusal by a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderRefusal {
    /// Name of the provider for people: `Cloudflare`.
    pub provider: String,
    /// Call to the provider: `GET /zones?name=example.com`, or `update of example.com.`.
    pub call: String,
    /// HTTP status, if one came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Error code of the provider, if any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub code: String,
    /// Message of the provider, in one stable line.
    pub said: String,
    /// Absolute name of the zone, if known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Existing alternatives to the object that was looked for, such as the domains that have an account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// Sort of fault.
    pub fault: ProviderFault,
    /// Whether the answer to a signed update is not signed: the server may not have taken the key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unsigned: bool,
}

/// Reasons why a DNS provider does not take a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderFault {
    /// Credentials that the provider does not know, or that cannot be used.
    Credentials,
    /// Credentials that are known, and lack the permission.
    Permission,
    /// The zones of the credentials have none for the name.
    NoZone,
    /// Too many requests, or an outage.
    Busy,
    /// The API cannot be reached.
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
    /// Builds a refusal of the given sort from the call and the provider's message.
    pub fn new(fault: ProviderFault, call: impl Into<String>, said: impl Into<String>) -> Self {
        Self { fault, call: call.into(), said: said.into(), ..Self::default() }
    }

    /// Adds the existing alternatives to the object that was looked for.
    #[must_use]
    pub fn knowing(self, known: impl IntoIterator<Item = String>) -> Self {
        Self { known: known.into_iter().take(MAX_KNOWN).collect(), ..self }
    }

    /// Returns the answer in one line.
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

    /// Describes the refusal in a few words, without parts that belong to one name.
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

/// Returns the name of a solver's provider for people.
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

/// Reports whether a provider says that it refuses requests from this address; few providers have a code for that.
pub fn is_about_address(said: &str) -> bool {
    let said = said.to_lowercase();
    ADDRESS_REFUSALS.iter().any(|mark| said.contains(mark))
}

const ADDRESS_REFUSALS: [&str; 7] = [
    "ip address is not allowed",
    "ip not allowed",
    "ip is not in the",
    "ip is not whitelisted",
    "invalid request ip",
    "from this ip",
    "cannot use the access token from location",
];

/// Refusal that came before there was an order, kept with the Certificate that the record was for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlyRefusal {
    /// Time of the refusal.
    pub at: Timestamp,
    /// Issuer that has the solver.
    pub issuer: Key,
    /// Generation of the issuer: a refusal of an earlier generation may be mended.
    pub generation: Option<i64>,
    /// Place of the solver in the issuer's list, from 0.
    pub solver: usize,
    /// Name in the Certificate, a wildcard with `*.`.
    pub domain: String,
    /// The refusal.
    pub refusal: ProviderRefusal,
}

impl EarlyRefusal {
    /// Reads the refusal in the annotations of a Certificate, if any; a refusal that cannot be read counts as absent.
    pub fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        serde_json::from_str(annotations.get(REFUSED_BEFORE)?).ok()
    }

    /// Writes a refusal into a Certificate's annotations, or removes the earlier one; returns whether anything changed.
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
        let kept = EarlyRefusal {
            at: "2026-11-25T10:00:00Z".parse().unwrap(),
            issuer: Key::new(Kind::Issuer, ObjectName::new("web", "acme")),
            generation: Some(2),
            solver: 0,
            domain: "*.example.com".to_owned(),
            refusal: refusal(),
        };
        let mut annotations = BTreeMap::from([("other".to_owned(), "stays".to_owned())]);
        assert!(EarlyRefusal::write(Some(&kept), &mut annotations));
        assert!(!EarlyRefusal::write(Some(&kept), &mut annotations));
        assert_eq!(EarlyRefusal::read(&annotations), Some(kept));
        assert!(EarlyRefusal::write(None, &mut annotations));
        assert_eq!((EarlyRefusal::read(&annotations), annotations.len()), (None, 1));
    }
}
