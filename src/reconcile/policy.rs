//! Rules by which a Certificate must be issued, checked in cert-manager's order.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::model::memory::{Holder, Memory, RevokedMemory};
use crate::model::{Certificate, IssuerRef};

use super::differences;
use super::facts::{RequestFacts, SecretFacts, annotation};

/// Finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Reason word for machines, as in cert-manager.
    pub reason: &'static str,
    /// Sentence for people.
    pub message: String,
}

impl Violation {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Input of the rules.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The Certificate.
    pub certificate: &'a Certificate,
    /// Secret that the Certificate names, if it exists.
    pub secret: Option<&'a SecretFacts>,
    /// CertificateRequest of `status.revision`, if it still exists.
    pub current: Option<&'a RequestFacts>,
}

type PolicyCheck = fn(&Input<'_>) -> Option<Violation>;

const CHAIN: [PolicyCheck; 11] = [
    secret_is_missing,
    data_is_missing,
    key_cannot_be_used,
    certificate_cannot_be_used,
    issuer_is_another,
    certificate_is_another,
    key_is_outdated,
    key_is_not_the_requested_one,
    request_is_outdated,
    certificate_is_outdated,
    certificate_is_revoked,
];

/// Returns the first rule that is violated, whatever the time.
pub fn violation(input: &Input<'_>) -> Option<Violation> {
    CHAIN.iter().find_map(|rule| rule(input))
}

/// Returns whether the certificate in the Secret is from another issuer than the Certificate asks for.
pub fn is_of_another_issuer(input: &Input<'_>) -> bool {
    issuer_is_another(input).is_some()
}

/// Builds the violation by a certificate that only holds the place of the real one.
pub fn temporary() -> Violation {
    Violation::new("TemporaryCertificate", "Issuing certificate as Secret contains a temporary one")
}

/// Returns the violation by a renewal that is due since `renewal_time`.
pub fn renewing(renewal_time: Timestamp, now: Timestamp) -> Option<Violation> {
    let shown = renewal_time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC");
    let message = format!("Renewing certificate as renewal was scheduled at {shown}");
    (now >= renewal_time).then(|| Violation::new("Renewing", message))
}

/// Returns the violation by the expiry of the certificate in the Secret.
pub fn expired(input: &Input<'_>, now: Timestamp) -> Option<Violation> {
    let not_after = input.secret?.usable_leaf()?.not_after;
    let shown = not_after.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
    let message = format!("Certificate expired on {shown}");
    (now > not_after).then(|| Violation::new("Expired", message))
}

fn secret_is_missing(input: &Input<'_>) -> Option<Violation> {
    let message = "Issuing certificate as Secret does not exist";
    input.secret.is_none().then(|| Violation::new("DoesNotExist", message))
}

fn data_is_missing(input: &Input<'_>) -> Option<Violation> {
    let secret = input.secret?;
    let what = if !secret.has_data {
        "any data"
    } else if secret.key.is_none() {
        "a private key"
    } else if secret.leaf.is_none() {
        "a certificate"
    } else {
        return None;
    };
    let message = format!("Issuing certificate as Secret does not contain {what}");
    Some(Violation::new("MissingData", message))
}

fn key_cannot_be_used(input: &Input<'_>) -> Option<Violation> {
    let secret = input.secret?;
    let message = match (secret.key.as_ref()?, secret.leaf.as_ref()?) {
        (Err(why), _) => {
            format!("Issuing certificate as Secret contains invalid private key data: {why}")
        }
        (Ok(key), Ok(leaf)) if key.public_key != leaf.public_key => {
            "Issuing certificate as Secret contains a private key that does not match the certificate"
                .to_owned()
        }
        (Ok(_), Ok(_) | Err(_)) => return None,
    };
    Some(Violation::new("InvalidKeyPair", message))
}

fn certificate_cannot_be_used(input: &Input<'_>) -> Option<Violation> {
    let why = input.secret?.leaf.as_ref()?.as_ref().err()?;
    let message = format!("Issuing certificate as Secret contains an invalid certificate: {why}");
    Some(Violation::new("InvalidCertificate", message))
}

/// Checks the issuer; a Secret without any of the three annotations counts as issued by an Issuer of any name.
fn issuer_is_another(input: &Input<'_>) -> Option<Violation> {
    let given = |key: &str| input.secret?.annotations.get(key).cloned();
    let name = given(annotation::ISSUER_NAME);
    let kind = given(annotation::ISSUER_KIND);
    let group = given(annotation::ISSUER_GROUP);
    let wanted = &input.certificate.spec.issuer_ref;
    let annotated = name.is_some() || kind.is_some() || group.is_some();
    let issued_by = IssuerRef {
        name: if annotated { name.unwrap_or_default() } else { wanted.name.clone() },
        kind: kind.unwrap_or_default(),
        group: group.unwrap_or_default(),
    };
    if input.secret.is_none() || differences::same_issuer(wanted, &issued_by) {
        return None;
    }
    let (kind, group) = (issued_by.effective_kind(), issued_by.effective_group());
    let message = format!(
        "Issuing certificate as Secret was previously issued by \"{kind}.{group}/{}\"",
        issued_by.name
    );
    Some(Violation::new("IncorrectIssuer", message))
}

fn certificate_is_another(input: &Input<'_>) -> Option<Violation> {
    let other = input.secret?.annotations.get(annotation::CERTIFICATE_NAME)?;
    if *other == input.certificate.metadata.name {
        return None;
    }
    let message = format!(
        "Secret was issued for \"{other}\". If this message is not transient, \
         you might have two conflicting Certificates pointing to the same secret."
    );
    Some(Violation::new("IncorrectCertificate", message))
}

fn key_is_outdated(input: &Input<'_>) -> Option<Violation> {
    let fields = differences::of_key(&input.certificate.spec, input.secret?.usable_key()?);
    let message =
        format!("Existing private key is not up to date for spec: [{}]", fields.join(" "));
    (!fields.is_empty()).then(|| Violation::new("SecretMismatch", message))
}

fn key_is_not_the_requested_one(input: &Input<'_>) -> Option<Violation> {
    let key = input.secret?.usable_key()?;
    match &input.current?.csr {
        Err(why) => {
            let message = format!("Failed to decode current CertificateRequest: {why}");
            Some(Violation::new("InvalidCertificateRequest", message))
        }
        Ok(csr) if csr.public_key != key.public_key => {
            let message =
                "Secret contains a private key that does not match the current CertificateRequest";
            Some(Violation::new("SecretMismatch", message))
        }
        Ok(_) => None,
    }
}

fn request_is_outdated(input: &Input<'_>) -> Option<Violation> {
    let fields = differences::of_request(&input.certificate.spec, input.current?);
    let message = format!(
        "Fields on existing CertificateRequest resource not up to date: [{}]",
        fields.join(" ")
    );
    (!fields.is_empty()).then(|| Violation::new("RequestChanged", message))
}

fn certificate_is_outdated(input: &Input<'_>) -> Option<Violation> {
    if input.current.is_some() {
        return None;
    }
    let fields = differences::of_leaf(&input.certificate.spec, input.secret?.usable_leaf()?);
    let message = format!(
        "Issuing certificate as Existing issued Secret is not up to date for spec: [{}]",
        fields.join(" ")
    );
    (!fields.is_empty()).then(|| Violation::new("SecretMismatch", message))
}

/// Checks for revocation, a rule of this program: cert-manager does not know what was revoked.
fn certificate_is_revoked(input: &Input<'_>) -> Option<Violation> {
    let revoked = revoked(input.certificate, &input.secret?.usable_leaf()?.serial)?;
    let message =
        format!("Issuing certificate as that in the Secret was revoked at {}", revoked.at);
    Some(Violation::new("Revoked", message))
}

/// Returns the memory that this program revoked the certificate with this serial number, if it did.
pub fn revoked(certificate: &Certificate, serial: &str) -> Option<RevokedMemory> {
    let memory = Memory::read(Holder::Certificate, &certificate.metadata.annotations);
    memory.revoked.filter(|revoked| revoked.serial == serial)
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::certificate::Names;
    use crate::model::{CertificateRequest, KeyAlgorithm};
    use crate::reconcile::facts::{CsrFacts, KeyFacts, LeafFacts, PublicKey};
    use crate::reconcile::testing::at;

    fn certificate(issuer: Value) -> Certificate {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"secretName": "web-tls", "issuerRef": issuer, "dnsNames": ["www.example.com"]},
        }))
        .unwrap()
    }

    fn names() -> Names {
        Names { dns_names: vec!["www.example.com".into()], ..Names::default() }
    }

    /// A Secret with key number 1 and its certificate, changed like that.
    fn secret(change: impl FnOnce(&mut SecretFacts)) -> SecretFacts {
        let public_key = PublicKey(vec![1]);
        let mut secret = SecretFacts {
            has_data: true,
            key: Some(Ok(KeyFacts {
                algorithm: KeyAlgorithm::Rsa(2048),
                public_key: public_key.clone(),
            })),
            leaf: Some(Ok(LeafFacts {
                not_before: at(0),
                not_after: at(100),
                public_key,
                renewal_id: None,
                serial: "01".to_owned(),
                names: names(),
            })),
            ..SecretFacts::default()
        };
        change(&mut secret);
        secret
    }

    fn annotated(pairs: &[(&str, &str)]) -> SecretFacts {
        secret(|s| {
            s.annotations = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        })
    }

    fn request(csr: Result<(u8, Names), &str>) -> RequestFacts {
        let certificate = certificate(json!({"name": "acme"}));
        let mut request = CertificateRequest::default();
        request.spec.issuer_ref = certificate.spec.issuer_ref;
        let csr = csr.map(|(key, names)| CsrFacts { public_key: PublicKey(vec![key]), names });
        RequestFacts { request, csr: csr.map_err(str::to_owned), leaf: None, has_order: true }
    }

    /// The first rule that a Certificate with such an issuer, Secret and current request violates.
    fn check(
        issuer: Value,
        secret: Option<&SecretFacts>,
        current: Option<&RequestFacts>,
        expected: &str,
    ) {
        let certificate = certificate(issuer);
        let found = violation(&Input { certificate: &certificate, secret, current });
        let shown =
            found.map_or_else(|| "none".to_owned(), |v| format!("{}: {}", v.reason, v.message));
        assert_eq!(shown, expected);
    }

    fn acme() -> Value {
        json!({"name": "acme"})
    }

    #[test]
    fn a_secret_must_hold_a_pair_that_fits() {
        check(acme(), None, None, "DoesNotExist: Issuing certificate as Secret does not exist");
        let missing = "MissingData: Issuing certificate as Secret does not contain";
        for (secret, expected) in [
            (secret(|_| ()), "none".to_owned()),
            (SecretFacts::default(), format!("{missing} any data")),
            (secret(|s| s.key = None), format!("{missing} a private key")),
            (secret(|s| s.leaf = None), format!("{missing} a certificate")),
            (
                secret(|s| s.key = Some(Err("no PEM".into()))),
                "InvalidKeyPair: Issuing certificate as Secret contains invalid private key data: no PEM".into(),
            ),
            (
                secret(|s| s.leaf = Some(Err("no PEM".into()))),
                "InvalidCertificate: Issuing certificate as Secret contains an invalid certificate: no PEM".into(),
            ),
            (
                secret(|s| {
                    if let Some(Ok(leaf)) = &mut s.leaf {
                        leaf.public_key = PublicKey(vec![2]);
                    }
                }),
                "InvalidKeyPair: Issuing certificate as Secret contains a private key that does not match the certificate"
                    .into(),
            ),
        ] {
            check(acme(), Some(&secret), None, &expected);
        }
    }

    #[test]
    fn a_certificate_that_this_program_had_revoked_is_not_kept() {
        let at = |serial: &str| {
            let mut certificate = certificate(acme());
            let at = "2026-11-28T00:00:00Z".parse().unwrap();
            let revoked = Some(RevokedMemory { serial: serial.to_owned(), at });
            let annotations = &mut certificate.metadata.annotations;
            Memory { revoked, ..Memory::default() }.write(Holder::Certificate, annotations);
            let secret = &secret(|_| ());
            let input = Input { certificate: &certificate, secret: Some(secret), current: None };
            violation(&input).map(|violation| violation.reason)
        };
        assert_eq!((at("01"), at("02")), (Some("Revoked"), None));
    }

    #[test]
    fn a_secret_must_come_from_this_issuer_and_certificate() {
        let by = |name: &str| {
            format!(
                "IncorrectIssuer: Issuing certificate as Secret was previously issued by \"{name}\""
            )
        };
        let cluster = json!({"name": "acme", "kind": "ClusterIssuer"});
        let full = json!({"name": "acme", "kind": "Issuer", "group": "cert-manager.io"});
        let own = annotated(&[(annotation::ISSUER_NAME, "acme"), (annotation::ISSUER_KIND, "")]);
        check(acme(), Some(&own), None, "none");
        check(full, Some(&own), None, "none");
        check(cluster.clone(), Some(&own), None, &by("Issuer.cert-manager.io/acme"));
        check(cluster, Some(&annotated(&[])), None, &by("Issuer.cert-manager.io/acme"));
        check(
            acme(),
            Some(&annotated(&[(annotation::ISSUER_NAME, "old")])),
            None,
            &by("Issuer.cert-manager.io/old"),
        );
        let other = annotated(&[(annotation::CERTIFICATE_NAME, "other")]);
        check(
            acme(),
            Some(&other),
            None,
            "IncorrectCertificate: Secret was issued for \"other\". If this message is not transient, you might have \
             two conflicting Certificates pointing to the same secret.",
        );
    }

    #[test]
    fn a_secret_must_fit_the_current_request_or_without_one_the_spec() {
        let other = Names { dns_names: vec!["b.example.com".into()], ..Names::default() };
        for (request, expected) in [
            (request(Ok((1, names()))), "none"),
            (
                request(Ok((2, names()))),
                "SecretMismatch: Secret contains a private key that does not match the current CertificateRequest",
            ),
            (
                request(Err("no PEM")),
                "InvalidCertificateRequest: Failed to decode current CertificateRequest: no PEM",
            ),
            (
                request(Ok((1, other.clone()))),
                "RequestChanged: Fields on existing CertificateRequest resource not up to date: [spec.dnsNames]",
            ),
        ] {
            check(acme(), Some(&secret(|_| ())), Some(&request), expected);
        }
        let outdated = secret(|s| {
            if let Some(Ok(leaf)) = &mut s.leaf {
                leaf.names = other;
            }
        });
        check(
            acme(),
            Some(&outdated),
            None,
            "SecretMismatch: Issuing certificate as Existing issued Secret is not up to date for spec: [spec.dnsNames]",
        );
        let small = secret(|s| {
            if let Some(Ok(key)) = &mut s.key {
                key.algorithm = KeyAlgorithm::Rsa(1024);
            }
        });
        let message = "SecretMismatch: Existing private key is not up to date for spec: [spec.privateKey.size]";
        check(acme(), Some(&small), None, message);
    }

    #[test]
    fn moments_are_written_as_go_writes_them() {
        let certificate = certificate(acme());
        let secret = secret(|_| ());
        let input = Input { certificate: &certificate, secret: Some(&secret), current: None };
        assert_eq!(expired(&input, at(100)), None);
        let message = expired(&input, at(101)).unwrap().message;
        assert_eq!(message, "Certificate expired on Fri, 15 Jan 2027 08:01:40 UTC");
        assert_eq!(renewing(at(60), at(59)), None);
        let message = renewing(at(60), at(60)).unwrap().message;
        assert_eq!(
            message,
            "Renewing certificate as renewal was scheduled at 2027-01-15 08:01:00 +0000 UTC"
        );
    }
}
