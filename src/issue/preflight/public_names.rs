//! Names and addresses that no public CA certifies, refused before an order is spent. A private CA may certify anything, so
//! only CAs count that are known as public by their URL.

use super::certificates::{certificates, names};
use crate::context::failure::Failure;
use crate::diagnosis::case::chain::{issuer_key, key_of};
use crate::diagnosis::rules::public_name::refusal;
use crate::hints::invocation;
use crate::model::acme_server::AcmeServer;
use crate::model::certificate::{LIST_COMMON_NAME, STRAY_COMMON_NAME, is_listed};
use crate::model::{Certificate, Identifier, Issuer, Key, Record};
use crate::store::resources::typed;

/// Checks the Certificates of a set whose issuers are in the set.
///
/// # Errors
/// Fails with the first name that their CA never certifies.
pub(crate) fn check(records: &[Record]) -> Result<(), Failure> {
    for certificate in certificates(records) {
        let Some(key) = issuer_key(&certificate) else { continue };
        let Some(record) = records.iter().find(|record| record.key == key) else { continue };
        check_certificate(&certificate, &key, &typed::<Issuer>(record.clone())?)?;
    }
    Ok(())
}

/// Checks one Certificate.
///
/// # Errors
/// Fails with the first name that its CA never certifies, and with a common name that no ACME CA certifies.
pub(crate) fn check_certificate(
    certificate: &Certificate,
    key: &Key,
    issuer: &Issuer,
) -> Result<(), Failure> {
    let Some(acme) = &issuer.spec.acme else { return Ok(()) };
    let (name, spec) = (key_of(certificate), &certificate.spec);
    if !is_listed(&spec.common_name, &spec.dns_names, &spec.ip_addresses) {
        let message =
            format!("{name}: spec.commonName: \"{}\" {STRAY_COMMON_NAME}", spec.common_name);
        return Err(Failure::usage(message).hint(LIST_COMMON_NAME).about(&name));
    }
    if !AcmeServer::is_public(&acme.server) {
        return Ok(());
    }
    for text in names(certificate) {
        let Some(why) = Identifier::parse(text).ok().as_ref().and_then(refusal) else { continue };
        let cause = why.cause();
        let message = format!("{name}: no public CA certifies {text}, and {key} uses one: {why}");
        let explain = invocation::current().like(&format!("explain {cause}"));
        return Err(Failure::usage(message)
            .hint("name a host below a domain that is yours, or an issuer of a CA of your own")
            .hint(format!("more: {explain}"))
            .about(&name));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::acme_server::{LETS_ENCRYPT, LETS_ENCRYPT_STAGING};

    fn check_names(server: &str, names: &[&str], common_name: &str) -> Result<(), (u8, String)> {
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "acme", "namespace": "web"},
            "spec": {"acme": {"server": server, "privateKeySecretRef": {"name": "key"}}},
        });
        let (addresses, names): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| name.parse::<std::net::IpAddr>().is_ok());
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "web", "namespace": "web"},
            "spec": {"secretName": "web-tls", "dnsNames": names, "ipAddresses": addresses,
                "commonName": common_name, "issuerRef": {"name": "acme"}},
        });
        let records = [issuer, certificate].map(|object| Record::new(object).unwrap());
        check(&records).map_err(|failure| (failure.kind.exit_code(), failure.message))
    }

    #[test]
    fn a_public_ca_is_not_asked_for_what_it_never_certifies() {
        for name in
            ["localhost", "a_b.example.org", "nas.local", "10.0.0.1", "::1", "*.corp.internal"]
        {
            for server in [LETS_ENCRYPT, LETS_ENCRYPT_STAGING, "https://acme.zerossl.com/v2/DV90"] {
                let (code, message) = check_names(server, &[name], "").unwrap_err();
                assert_eq!(code, 2, "{message}");
                assert!(message.contains(name), "{message}");
            }
            assert_eq!(check_names("https://ca.corp.internal/acme", &[name], ""), Ok(()), "{name}");
        }
        assert_eq!(check_names(LETS_ENCRYPT, &["www.example.com", "9.9.9.9"], ""), Ok(()));
    }

    #[test]
    fn a_common_name_is_one_of_the_names() {
        let server = "https://ca.example/dir";
        for (name, listed) in [
            ("www.example.com", true),
            ("WWW.example.com.", true),
            ("192.0.2.1", true),
            ("metrics", false),
        ] {
            let checked = check_names(server, &["www.example.com", "192.0.2.1"], name);
            assert_eq!(checked.is_ok(), listed, "{checked:?}");
        }
    }
}
