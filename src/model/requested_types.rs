//! Challenge types for which cert-manager has no field: an annotation on the issuer asks for them.
//!
//! Challenges of these types live in local stores only: the `spec.type` of cert-manager's definition admits two types.

use super::issuer::Issuer;
use super::state::ChallengeType;

/// Annotation on an Issuer or ClusterIssuer: the type by which all of its names are proven, in the RFC's spelling.
pub const CHALLENGE_TYPE: &str = "kubectl-acme/challenge-type";

/// Types that the annotation may name.
pub const ASKED_TYPES: [ChallengeType; 3] =
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
}
