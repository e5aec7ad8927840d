//! Types of challenges that cert-manager has no field for: refused, before anything is written, if they cannot be served.

use super::certificates::{certificates, names};
use crate::context::failure::Failure;
use crate::diagnosis::case::chain::{issuer_key, key_of};
use crate::lead::venue::Venue;
use crate::model::issuer::{CHALLENGE_TYPE, asked_type};
use crate::model::{Certificate, ChallengeType, Identifier, Issuer, Key, Kind, Record};
use crate::reconcile::order::required::not_in_a_cluster;
use crate::store::resources::typed;

/// Checks that the type that an issuer asks for can be served here, and can prove every name of a Certificate.
///
/// # Errors
/// Fails with the first obstacle.
pub(crate) fn check(
    certificate: &Certificate,
    key: &Key,
    issuer: &Issuer,
    venue: Venue,
) -> Result<(), Failure> {
    let Some(kind) = requested_type(key, issuer)? else { return Ok(()) };
    let word = kind.acme_name();
    if venue.is_in_cluster() {
        return Err(Failure::usage(format!("{key} cannot be used: {}", not_in_a_cluster(kind)))
            .hint(format!(
                "take the annotation {CHALLENGE_TYPE} away from {key}, or issue with --local"
            )));
    }
    let certificate_key = key_of(certificate);
    for name in names(certificate) {
        let Ok(identifier) = Identifier::parse(name) else { continue };
        if !kind.can_prove(&identifier) {
            let what = match identifier {
                Identifier::Dns(_) => "a wildcard",
                Identifier::Ip(_) => "an address",
            };
            return Err(Failure::usage(format!(
                "{certificate_key}: {name}: {word} cannot show control of {what}"
            ))
            .hint(ways(kind, key)));
        }
    }
    Ok(())
}

/// Returns the hint for a name that a type cannot prove.
fn ways(kind: ChallengeType, key: &Key) -> String {
    let other = match kind {
        ChallengeType::TlsAlpn01 | ChallengeType::Http01 => {
            "a type by record (dns-account-01, dns-persist-01, or a dns01 solver)"
        }
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01 => {
            "tls-alpn-01, or an http01 solver"
        }
    };
    format!(
        "give that name a Certificate of its own, from an issuer with {other}; keep {key} for the other names"
    )
}

/// Checks that no issuer of a rehearsal asks for dns-persist-01, whose record would stay.
///
/// # Errors
/// Fails with the first issuer that asks for that type.
pub(crate) fn check_rehearsal(records: &[Record]) -> Result<(), Failure> {
    for certificate in certificates(records) {
        let Some(key) = issuer_key(&certificate) else { continue };
        let Some(record) = records.iter().find(|record| record.key == key) else { continue };
        let asked = requested_type(&key, &typed::<Issuer>(record.clone())?)?;
        if asked != Some(ChallengeType::DnsPersist01) {
            continue;
        }
        let message = format!(
            "cannot rehearse {}: {key} asks for dns-persist-01, and a record for the CA of a rehearsal would stay",
            key_of(&certificate)
        );
        return Err(Failure::usage(message)
            .hint("challenge check shows whether the record is good, once there is an order"));
    }
    Ok(())
}

/// Returns whether an issuer of a set leaves its names to its solvers.
pub(crate) fn leave_to_solvers(records: &[Record]) -> bool {
    let mut issuers = records
        .iter()
        .filter(|record| matches!(record.key.kind, Kind::Issuer | Kind::ClusterIssuer));
    issuers.any(|record| {
        typed::<Issuer>(record.clone()).is_ok_and(|issuer| asked_type(&issuer) == Ok(None))
    })
}

fn requested_type(key: &Key, issuer: &Issuer) -> Result<Option<ChallengeType>, Failure> {
    asked_type(issuer).map_err(|why| Failure::usage(format!("{key}: {why}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::challenge_type;

    /// Checks names of an issuer that asks for a type; returns exit code and message.
    fn refusal(asked: &str, names: &[&str], venue: Venue) -> Option<(u8, String)> {
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "acme", "namespace": "web"},
            "spec": {"acme": {
                "server": "https://ca.example/directory", "privateKeySecretRef": {"name": "key"},
            }},
        });
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "web", "namespace": "web"},
            "spec": {"secretName": "web-tls", "dnsNames": names, "issuerRef": {"name": "acme"}},
        });
        let mut records = [issuer, certificate].map(|object| Record::new(object).unwrap());
        challenge_type::ask(asked, records.iter_mut()).unwrap();
        let [issuer, certificate] = records;
        let certificate: Certificate = typed(certificate).unwrap();
        let checked = check(&certificate, &issuer.key, &typed(issuer.clone()).unwrap(), venue);
        checked.err().map(|failure| (failure.kind.exit_code(), failure.message))
    }

    fn check_refused(asked: &str, names: &[&str], venue: Venue, part: &str) {
        let (code, message) = refusal(asked, names, venue).unwrap();
        assert_eq!(code, 2);
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn names_that_a_type_cannot_prove_are_refused() {
        let (www, star) = ("www.example.com", "*.example.com");
        assert_eq!(refusal("tls-alpn-01", &[www, "192.0.2.1"], Venue::Local), None);
        assert_eq!(refusal("dns-account-01", &[www, star], Venue::Local), None);
        assert_eq!(refusal("dns-persist-01", &[star], Venue::ByHand), None);
        let part =
            "Certificate web/web: *.example.com: tls-alpn-01 cannot show control of a wildcard";
        check_refused("tls-alpn-01", &[www, star], Venue::Local, part);
        let part = "192.0.2.1: dns-persist-01 cannot show control of an address";
        check_refused("dns-persist-01", &["192.0.2.1"], Venue::Local, part);
    }

    #[test]
    fn no_cluster_has_words_for_them() {
        for venue in [Venue::Cluster, Venue::CertManager, Venue::Elsewhere, Venue::Rehearsal] {
            let part = "dns-persist-01 is for a store of one machine only";
            check_refused("dns-persist-01", &["www.example.com"], venue, part);
        }
    }

    #[test]
    fn an_unknown_type_is_told() {
        let part = "is \"tls-sni-01\", and must be dns-account-01, dns-persist-01 or tls-alpn-01";
        check_refused("tls-sni-01", &["www.example.com"], Venue::Local, part);
    }
}
