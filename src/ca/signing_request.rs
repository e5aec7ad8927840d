//! Signing requests (RFC 8555 §7.4): does it ask for exactly what the order says, with a key we take?

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aws_lc_rs::signature::{ECDSA_P521_SHA512_ASN1, UnparsedPublicKey};
use rcgen::SignatureAlgorithm;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{
    OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519,
};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::issuance::SubjectKey;
use super::jwk::Jwk;
use super::refusal::{Kind, Refusal};
use crate::model::{DnsName, Identifier};

/// Lengths of RSA keys that are certified, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Checks a signing request in DER; gives the key to certify.
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
    if !is_self_signed(&request) {
        return Err(bad("invalid signature on CSR"));
    }
    let named = named_identifiers(&request)?;
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

/// Takes the key, if its sort and length are such as we certify.
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

/// Tells whether the holder of the key signed the request (RFC 2986 §3).
fn is_self_signed(request: &X509CertificationRequest<'_>) -> bool {
    match request.verify_signature() {
        Ok(()) => true,
        // The library knows neither P-521 nor the hash that goes with it.
        Err(X509Error::SignatureUnsupportedAlgorithm)
            if request.signature_algorithm.algorithm == OID_SIG_ECDSA_WITH_SHA512 =>
        {
            let info = &request.certification_request_info;
            UnparsedPublicKey::new(
                &ECDSA_P521_SHA512_ASN1,
                &info.subject_pki.subject_public_key.data,
            )
            .verify(info.raw, &request.signature_value.data)
            .is_ok()
        }
        Err(_) => false,
    }
}

/// Every name in the request, the common name among them, sorted.
fn named_identifiers(
    request: &X509CertificationRequest<'_>,
) -> Result<BTreeSet<Identifier>, Refusal> {
    let mut named = BTreeSet::new();
    for common_name in request.certification_request_info.subject.iter_common_name() {
        let text = common_name.as_str().map_err(|error| unreadable(&error.to_string()))?;
        if !text.is_empty() {
            named.insert(Identifier::parse(text).map_err(|error| bad(&error.to_string()))?);
        }
    }
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
