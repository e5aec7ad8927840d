//! What a rehearsal on loopback cannot rehearse.

use crate::app::failure::Failure;
use crate::app::preflight::certificates::{certificates, choices};
use crate::diagnosis::chain::{issuer_key, key_of};
use crate::model::{Issuer, Record};
use crate::store::resources::typed;

/// Refuses names that a dns01 solver answers: their records would be written to the real zone, and looked for there.
///
/// # Errors
/// Fails with the first such name, and how to rehearse it.
pub(super) fn check(records: &[Record]) -> Result<(), Failure> {
    for certificate in certificates(records) {
        let Some(key) = issuer_key(&certificate) else { continue };
        let Some(record) = records.iter().find(|record| record.key == key) else { continue };
        let issuer = typed::<Issuer>(record.clone())?;
        let mut choices = choices(&certificate, &issuer);
        let by_dns = choices
            .find(|(_, chosen)| chosen.as_ref().is_ok_and(|chosen| chosen.kind.is_by_record()));
        if let Some((name, _)) = by_dns {
            return Err(Failure::usage(format!(
                "cannot rehearse {} on loopback: {name} is answered by a dns01 solver of {key}, which needs \
                 its zone",
                key_of(&certificate)
            ))
            .hint("--rehearse rehearses it with its zone: the TXT record is written there, and taken away again"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_only_dns01_answers_are_refused() {
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "acme", "namespace": "web"},
            "spec": {"acme": {
                "server": "https://ca.example/directory", "privateKeySecretRef": {"name": "key"},
                "solvers": [
                    {"http01": {"ingress": {}}},
                    {"dns01": {"rfc2136": {"nameserver": "192.0.2.1"}}, "selector": {"dnsNames": ["*.example.com"]}},
                ],
            }},
        });
        let check = |names: &[&str]| {
            let certificate = json!({
                "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                "metadata": {"name": "web", "namespace": "web"},
                "spec": {"secretName": "web-tls", "dnsNames": names, "issuerRef": {"name": "acme"}},
            });
            let records = [issuer.clone(), certificate].map(|object| Record::new(object).unwrap());
            check(&records).map_err(|failure| (failure.kind.exit_code(), failure.message))
        };
        assert_eq!(check(&["example.com", "www.example.com"]), Ok(()));
        let (code, message) = check(&["example.com", "*.example.com"]).unwrap_err();
        assert_eq!(code, 2);
        assert!(message.contains("*.example.com is answered by a dns01 solver"), "{message}");
    }
}
