//! Temporary certificates: stand-ins in a Secret until the real certificate comes, signed by a CA whose key is not kept.

use ::der::Tag;
use aws_lc_rs::rand;
use jiff::{SignedDuration, Timestamp};

use super::csr::{Scheme, extension, requested_extensions};
use super::keys::{PrivateKey, to_pem};
use super::{der, subject};
use crate::model::KeyAlgorithm;
use crate::model::certificate::CertificateSpec;

/// Name of the signer, as cert-manager calls it.
const ISSUER: &str = "cert-manager.local";
const BASIC_CONSTRAINTS: &str = "2.5.29.19";
/// Life time if the Certificate asks for none: 90 days.
const DEFAULT_LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Returns whether the issuer of a certificate, by its common name, signs temporary certificates.
pub fn is_issuer(common_name: &str) -> bool {
    common_name == ISSUER
}

/// Makes a certificate for a key, PEM, with the contents that the Certificate asks for; the CA's own key is thrown away.
///
/// # Errors
/// Fails if the Certificate asks for contents that cannot be written.
pub fn certificate(
    spec: &CertificateSpec,
    key: &PrivateKey,
    now: Timestamp,
) -> Result<String, String> {
    let authority = PrivateKey::generate(KeyAlgorithm::Ecdsa(256)).map_err(|e| e.to_string())?;
    let issuer = CertificateSpec { common_name: ISSUER.to_owned(), ..CertificateSpec::default() };
    let scheme = Scheme::choose(authority.algorithm(), "")?;
    let algorithm = scheme.identifier()?;
    let life = spec.duration.map_or(DEFAULT_LIFETIME, |duration| duration.0);
    let end = now.checked_add(life).map_err(|_| "its life time is too long")?;
    let validity = der::constructed(Tag::Sequence, &[der::time(now), der::time(end)]);
    let mut extensions = requested_extensions(spec)?;
    extensions.push(extension(BASIC_CONSTRAINTS, true, &der::constructed(Tag::Sequence, &[]))?);
    let extensions = der::constructed(Tag::Sequence, &extensions);
    let mut serial = [0; 16];
    rand::fill(&mut serial).map_err(|_| "the crypto library failed")?;
    // Positive, and without zeroes before it (X.690 §8.3.2).
    serial[0] = serial[0] & 0x7f | 0x40;
    let signed = der::constructed(
        Tag::Sequence,
        &[
            der::explicit(0, &der::number(2)),
            der::element(Tag::Integer, &serial),
            algorithm.clone(),
            subject::name(&issuer)?.0,
            validity,
            subject::name(spec)?.0,
            key.public_key().to_vec(),
            der::explicit(3, &extensions),
        ],
    );
    let signature = scheme.sign(&authority, &signed).ok_or("the key of the CA does not sign")?;
    let parts = [signed, algorithm, der::bit_string(&signature)];
    Ok(to_pem("CERTIFICATE", &der::constructed(Tag::Sequence, &parts)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::chain;
    use crate::acme::openssl::openssl;
    use crate::model::certificate::Subject;
    use crate::model::common::Duration;

    #[test]
    fn openssl_reads_what_the_certificate_asks_for() {
        let now: Timestamp = "2026-11-21T04:30:25Z".parse().unwrap();
        let spec = CertificateSpec {
            dns_names: vec!["www.example.com".to_owned()],
            ip_addresses: vec!["192.0.2.1".to_owned()],
            subject: Some(Subject { organizations: vec!["Acme".into()], ..Subject::default() }),
            usages: Some(vec!["server auth".to_owned()]),
            duration: Some(Duration(SignedDuration::from_hours(24))),
            ..CertificateSpec::default()
        };
        for algorithm in [KeyAlgorithm::Rsa(2048), KeyAlgorithm::Ecdsa(521), KeyAlgorithm::Ed25519]
        {
            let key = PrivateKey::generate(algorithm).unwrap();
            let pem = certificate(&spec, &key, now).unwrap();
            let leaf = chain::leaf(&pem).unwrap();
            assert_eq!(leaf.public_key, key.public_key());
            assert_eq!(leaf.not_before, now);
            let text = openssl(&["x509", "-noout", "-text", "-nameopt", "RFC2253"], pem.as_bytes());
            let text = String::from_utf8(text).unwrap();
            for part in [
                "Issuer: CN=cert-manager.local\n",
                "Subject: O=Acme\n",
                "Not After : Nov 22 04:30:25 2026 GMT\n",
                "DNS:www.example.com, IP Address:192.0.2.1\n",
                "TLS Web Server Authentication\n",
                "CA:FALSE\n",
                "Signature Algorithm: ecdsa-with-SHA256\n",
            ] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }
}
