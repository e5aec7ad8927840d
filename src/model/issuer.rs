//! Issuer and ClusterIssuer: the CA, the account there, the challenge type that an annotation asks for, and lists in fields
//! that cert-manager reads as one text.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::common::{Blob, Condition, Other, SecretKeySelector, is_false};
use super::key::Kind;
use super::metadata::Resource;
use super::solver::ChallengeSolver;
use super::state::ChallengeType;

/// `cert-manager.io/v1` Issuer or ClusterIssuer; `kind` says which.
pub type Issuer = Resource<IssuerSpec, IssuerStatus>;

impl Issuer {
    /// Reports whether the issuer is a ClusterIssuer.
    pub fn is_cluster(&self) -> bool {
        self.kind == Kind::ClusterIssuer.as_str()
    }

    /// Returns the namespace of the issuer's Secrets.
    pub fn secret_namespace<'a>(&'a self, cluster_namespace: &'a str) -> &'a str {
        if self.is_cluster() { cluster_namespace } else { &self.metadata.namespace }
    }

    /// Returns `Kind::Issuer` or `Kind::ClusterIssuer`.
    pub fn issuer_kind(&self) -> Kind {
        if self.is_cluster() { Kind::ClusterIssuer } else { Kind::Issuer }
    }
}

/// Spec of an issuer: exactly one type, of which this program handles `acme` only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerSpec {
    /// An ACME server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acme: Option<AcmeIssuer>,
    /// Other types (`ca`, `vault`, `selfSigned`, `venafi`), left alone.
    #[serde(flatten)]
    pub other: Other,
}

/// ACME server and the account there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AcmeIssuer {
    /// Contact of the account.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// URL of the directory.
    pub server: String,
    /// Common name of the issuer of the last certificate in the wanted chain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub preferred_chain: String,
    /// Roots for the connection to the CA, PEM; in place of the system's.
    #[serde(default, skip_serializing_if = "Blob::is_empty")]
    pub ca_bundle: Blob,
    /// Whether the CA's TLS certificate is not verified.
    #[serde(default, rename = "skipTLSVerify", skip_serializing_if = "is_false")]
    pub skip_tls_verify: bool,
    /// External account binding (RFC 8555 §7.3.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_account_binding: Option<ExternalAccountBinding>,
    /// Secret of the account key; the entry of the Secret is `tls.key` when not named.
    pub private_key_secret_ref: SecretKeySelector,
    /// Solvers, which prove names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub solvers: Vec<ChallengeSolver>,
    /// Whether a missing account key is an error.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_account_key_generation: bool,
    /// Whether `notAfter` is sent, from the Certificate's duration.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enable_duration_feature: bool,
    /// Requested profile.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// Source of the renewal time: `ARI` for the CA, which an empty text means, too, or `None`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub renewal_information_source: String,
    /// Fields that this program does not act on.
    #[serde(flatten)]
    pub other: Other,
}

impl AcmeIssuer {
    /// Reports whether the CA is asked when to renew: yes, unless the manifest says `None`.
    pub fn asks_when_to_renew(&self) -> bool {
        self.renewal_information_source != "None"
    }
}

/// External account binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExternalAccountBinding {
    /// Key identifier given by the CA.
    #[serde(rename = "keyID")]
    pub key_id: String,
    /// Secret that holds the MAC key as base64url text.
    pub key_secret_ref: SecretKeySelector,
    /// Deprecated and ignored: always HS256.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key_algorithm: String,
}

/// Status of an issuer: the progress of its account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IssuerStatus {
    /// The account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acme: Option<AcmeIssuerStatus>,
    /// `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// The account at the CA.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AcmeIssuerStatus {
    /// Account URL.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// Contact last sent, as the spec writes it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_registered_email: String,
    /// Base64 of the SHA-256 of the account key (RSA: PKCS#1 DER).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_private_key_hash: String,
}

impl IssuerSpec {
    /// Returns the names of the given issuer types, `acme` included.
    pub fn types(&self) -> Vec<&str> {
        let acme = self.acme.as_ref().map(|_| "acme");
        let given =
            |(name, value): &(&'static str, Option<&Value>)| value.is_some().then_some(*name);
        let others: Vec<(&'static str, Option<&Value>)> = ["ca", "vault", "selfSigned", "venafi"]
            .into_iter()
            .map(|name| (name, self.other.get(name)))
            .collect();
        acme.into_iter().chain(others.iter().filter_map(given)).collect()
    }
}

/// Annotation on an Issuer or ClusterIssuer: the type by which all of its names are proven, in the RFC's spelling, if
/// cert-manager has no field for the type.
pub const CHALLENGE_TYPE: &str = "kubectl-acme/challenge-type";

/// Types that the annotation may name. Their Challenges live in local stores only: the `spec.type` of cert-manager's
/// definition admits two other types.
const ASKED_TYPES: [ChallengeType; 3] =
    [ChallengeType::DnsAccount01, ChallengeType::DnsPersist01, ChallengeType::TlsAlpn01];

/// Text that is none of the types that the annotation may name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation {CHALLENGE_TYPE} is \"{0}\", and must be dns-account-01, dns-persist-01 or tls-alpn-01"
)]
pub struct UnknownType(String);

/// Returns the type that an issuer asks for; `None` if its solvers alone decide.
///
/// # Errors
/// Fails if the annotation has another text.
pub fn asked_type(issuer: &Issuer) -> Result<Option<ChallengeType>, UnknownType> {
    let Some(text) = issuer.metadata.annotations.get(CHALLENGE_TYPE) else { return Ok(None) };
    let found = ASKED_TYPES.into_iter().find(|kind| kind.acme_name() == text.trim());
    found.map(Some).ok_or_else(|| UnknownType(text.clone()))
}

/// Returns the choices in a field such as `profile: shortlived,classic`, the most wanted first: the whole text, for a name
/// may hold a comma, then its parts.
pub fn choices(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(',').map(str::trim).filter(move |part| *part != text);
    std::iter::once(text).chain(parts).filter(|choice| !choice.is_empty())
}

/// Returns the first choice that is offered.
pub fn first_offered(text: &str, is_offered: impl Fn(&str) -> bool) -> Option<&str> {
    choices(text).find(|choice| is_offered(choice))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_annotation_is_read_and_anything_else_refused() {
        let asked = |text: &str| {
            let issuer: Issuer = serde_json::from_value(json!({
                "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
                "metadata": {"name": "acme", "annotations": {CHALLENGE_TYPE: text}},
                "spec": {},
            }))
            .unwrap();
            asked_type(&issuer)
        };
        assert_eq!(asked("tls-alpn-01"), Ok(Some(ChallengeType::TlsAlpn01)));
        assert_eq!(asked("dns-account-01 "), Ok(Some(ChallengeType::DnsAccount01)));
        assert_eq!(asked("dns-persist-01"), Ok(Some(ChallengeType::DnsPersist01)));
        for text in ["", "dns-01", "DNS-PERSIST-01"] {
            let why = asked(text).unwrap_err().to_string();
            assert!(why.contains(&format!("is \"{text}\", and must be")), "{why}");
        }
    }

    #[test]
    fn a_text_is_its_own_first_choice_and_its_parts_are_the_next() {
        for (text, expected) in [
            ("", vec![]),
            ("classic", vec!["classic"]),
            ("shortlived,classic", vec!["shortlived,classic", "shortlived", "classic"]),
            (" a , ,b", vec![" a , ,b", "a", "b"]),
            (",", vec![","]),
        ] {
            assert_eq!(choices(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_first_that_is_offered_counts() {
        for (text, expected) in [
            ("shortlived,classic", Some("classic")),
            ("classic, tls", Some("classic")),
            ("tls,classic", Some("tls")),
            ("Root, Inc.", Some("Root, Inc.")),
            ("none", None),
            ("", None),
        ] {
            let offered = ["tls", "classic", "Root, Inc."];
            assert_eq!(first_offered(text, |name| offered.contains(&name)), expected, "{text}");
        }
    }
}
