//! Signing requests (RFC 8555 §7.4): comparison with the order, and check of the key.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rcgen::SignatureAlgorithm;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_SIG_ED25519};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::csr_signature::{self, Unproven};
use super::issuance::SubjectKey;
use super::jwk::Jwk;
use super::refusal::{Kind, Refusal};
use crate::model::{DnsName, Identifier};

/// Lengths in bits of the RSA keys that the CA certifies.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Checks a signing request in DER; returns the key to certify.
pub(super) fn check(
    der: &[u8],
    identifiers: &[Identifier],
    account_key: Option<&Jwk>,
) -> Result<SubjectKey, Refusal> {
    let (rest, request) =
        X509CertificationRequest::from_der(der).map_err(|error| unreadable(&error.to_string()))?;
    if !rest.is_empty() {
        return Err(unreadable("trailing data"));
    }
    let subject = &request.certification_request_info.subject_pki;
    let key = subject_key(subject)?;
    csr_signature::check(&request).map_err(|why| match why {
        Unproven::Wrong => bad("invalid signature on CSR"),
        Unproven::UnknownAlgorithm => bad("signature algorithm not supported"),
    })?;
    let mut named = alternative_names(&request)?;
    for name in common_names(&request) {
        if !identifiers.contains(&name) {
            return Err(bad(&format!(
                "the common name \"{name}\" of the CSR is not among the identifiers of the order"
            )));
        }
        named.insert(name);
    }
    if named.is_empty() {
        return Err(bad("at least one identifier is required"));
    }
    if account_key.is_some_and(|account_key| account_key.is(subject)) {
        let detail =
            "Error finalizing order :: certificate public key must be different than account key";
        return Err(Refusal::malformed(detail));
    }
    if !named.iter().eq(identifiers) {
        let detail = "Error finalizing order :: CSR does not specify same identifiers as Order";
        return Err(Refusal::new(Kind::Unauthorized, detail));
    }
    Ok(key)
}

/// Returns the key, if the CA certifies keys of its kind and length.
pub(super) fn subject_key(subject: &SubjectPublicKeyInfo<'_>) -> Result<SubjectKey, Refusal> {
    let refused = |why: &str| bad(&format!("invalid public key in CSR: {why}"));
    let algorithm = match subject.parsed() {
        Ok(PublicKey::RSA(key)) => {
            let bits = key.key_size();
            if !RSA_BITS.contains(&bits) {
                return Err(refused(&format!("key size not supported: {bits}")));
            }
            Some(&rcgen::PKCS_RSA_SHA256)
        }
        Ok(PublicKey::EC(_)) => curve_algorithm(subject),
        _ if subject.algorithm.algorithm == OID_SIG_ED25519 => Some(&rcgen::PKCS_ED25519),
        _ => None,
    };
    let algorithm = algorithm.ok_or_else(|| refused("key type not supported"))?;
    Ok(SubjectKey { octets: subject.subject_public_key.data.to_vec(), algorithm })
}

fn curve_algorithm(subject: &SubjectPublicKeyInfo<'_>) -> Option<&'static SignatureAlgorithm> {
    let curve = subject.algorithm.parameters.as_ref()?.as_oid().ok()?;
    if curve == OID_EC_P256 {
        return Some(&rcgen::PKCS_ECDSA_P256_SHA256);
    }
    if curve == OID_NIST_EC_P384 {
        return Some(&rcgen::PKCS_ECDSA_P384_SHA384);
    }
    (curve == OID_NIST_EC_P521).then_some(&rcgen::PKCS_ECDSA_P521_SHA512)
}

/// Returns the names of hosts in the subject. A common name that is no host, such as `My Host`, requests nothing.
fn common_names(request: &X509CertificationRequest<'_>) -> Vec<Identifier> {
    let texts = request.certification_request_info.subject.iter_common_name();
    let names = texts.filter_map(|text| Identifier::parse(text.as_str().ok()?).ok());
    let is_host = |name: &Identifier| match name {
        Identifier::Dns(name) => name.base().contains('.'),
        Identifier::Ip(_) => true,
    };
    names.filter(is_host).collect()
}

/// Returns the alternative names, sorted.
fn alternative_names(
    request: &X509CertificationRequest<'_>,
) -> Result<BTreeSet<Identifier>, Refusal> {
    let mut named = BTreeSet::new();
    for extension in request.requested_extensions().into_iter().flatten() {
        if let ParsedExtension::SubjectAlternativeName(alternatives) = extension {
            for name in &alternatives.general_names {
                named.insert(identifier(name)?);
            }
        }
    }
    Ok(named)
}

fn identifier(name: &GeneralName<'_>) -> Result<Identifier, Refusal> {
    match name {
        GeneralName::DNSName(name) => {
            DnsName::parse(name).map(Identifier::Dns).map_err(|error| bad(&error.to_string()))
        }
        GeneralName::IPAddress(octets) => address(octets)
            .map(Identifier::Ip)
            .ok_or_else(|| bad("CSR contains an IP address of an impossible length")),
        _ => Err(bad("CSR contains a name that is neither a DNS name nor an IP address")),
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(octets).map(|octets| Ipv4Addr::from(octets).into());
    let v6 = || <[u8; 16]>::try_from(octets).map(|octets| Ipv6Addr::from(octets).into());
    v4().or_else(|_| v6()).ok()
}

fn bad(why: &str) -> Refusal {
    Refusal::new(Kind::BadCsr, format!("Error finalizing order :: {why}"))
}

fn unreadable(why: &str) -> Refusal {
    Refusal::malformed(format!("Error parsing certificate request: {why}"))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    const NAME: &str = "www.bed.test";

    fn refusal(der: &[u8], names: &[&str]) -> Option<(String, String)> {
        let names: Vec<_> = names.iter().map(|name| Identifier::parse(name).unwrap()).collect();
        let document = check(der, &names, None).err()?.document();
        let kind = document["type"].as_str().unwrap().rsplit(':').next().unwrap();
        Some((kind.to_owned(), document["detail"].as_str().unwrap().to_owned()))
    }

    #[test]
    fn a_key_may_sign_with_any_digest_and_padding_and_a_wrong_signature_is_told_from_an_unknown_one()
     {
        // Made by openssl req for www.bed.test.
        let requests = include_str!("../../tests/fixtures/requests/signatures.txt");
        for line in requests.lines() {
            let (sort, der) = line.split_once(' ').unwrap();
            let mut der = BASE64_STANDARD.decode(der).unwrap();
            let is_known = !sort.ends_with("-sha1");
            let expected = (!is_known).then_some("signature algorithm not supported");
            let detail = |der: &[u8]| refusal(der, &[NAME]).map(|(_, detail)| detail);
            let detail_of = |why: &str| format!("Error finalizing order :: {why}");
            assert_eq!(detail(&der), expected.map(detail_of), "{sort}");
            // The last octet of the signature.
            *der.last_mut().unwrap() ^= 1;
            let expected = if is_known { "invalid signature on CSR" } else { expected.unwrap() };
            assert_eq!(detail(&der), Some(detail_of(expected)), "{sort}");
        }
        assert_eq!(requests.lines().count(), 23);
    }

    /// A request with these common names and alternative names.
    fn request(common: &[&str], alternative: &[&str]) -> Vec<u8> {
        let names: Vec<_> = alternative.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.distinguished_name = DistinguishedName::new();
        for name in common {
            parameters.distinguished_name.push(DnType::CommonName, *name);
        }
        parameters.serialize_request(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn a_common_name_counts_if_it_is_the_name_of_a_host() {
        let outside = "badCSR";
        for (common, alternative, ordered, expected) in [
            (NAME, &[][..], &[NAME][..], None),
            ("WWW.Bed.test", &[], &[NAME], None),
            (NAME, &["a.bed.test"], &["a.bed.test", NAME], None),
            (NAME, &[NAME], &[NAME], None),
            ("192.0.2.1", &[], &["192.0.2.1"], None),
            ("*.bed.test", &[], &["*.bed.test"], None),
            // No names of hosts.
            ("My Host", &[NAME], &[NAME], None),
            ("localhost", &[NAME], &[NAME], None),
            ("Jane Doe, a.bed.test", &[NAME], &[NAME], None),
            ("me@bed.test", &[NAME], &[NAME], None),
            ("https://www.bed.test/", &[NAME], &[NAME], None),
            ("", &[NAME], &[NAME], None),
            ("My Host", &[], &[NAME], Some("badCSR")),
            // Hosts that nobody has ordered.
            ("other.bed.test", &[NAME], &[NAME], Some(outside)),
            ("bed.test", &["*.bed.test"], &["*.bed.test"], Some(outside)),
            ("192.0.2.1", &[NAME], &[NAME], Some(outside)),
            // Alternative names that nobody has ordered, and one that is missing.
            (NAME, &["other.bed.test"], &[NAME], Some("unauthorized")),
            (NAME, &[], &["a.bed.test", NAME], Some("unauthorized")),
        ] {
            let seen = refusal(&request(&[common], alternative), ordered);
            let kind = seen.as_ref().map(|(kind, _)| kind.as_str());
            assert_eq!(kind, expected, "{common} {alternative:?}: {seen:?}");
        }
    }
}
