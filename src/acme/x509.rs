//! Names and signatures, common to certificates and signing requests.

use std::net::IpAddr;

use aws_lc_rs::signature::{
    ECDSA_P521_SHA256_ASN1, ECDSA_P521_SHA384_ASN1, ECDSA_P521_SHA512_ASN1, UnparsedPublicKey,
    VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use x509_parser::asn1_rs::BitString;
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::asn1_rs::{Oid, oid};
use x509_parser::verify::verify_signature;
use x509_parser::x509::{
    AlgorithmIdentifier, AttributeTypeAndValue, SubjectPublicKeyInfo, X509Name,
};

use crate::model::certificate::{Names, Subject};

/// The curve P-521, and the signature algorithms for it.
const P521: Oid<'static> = oid!(1.3.132.0.35);
const ECDSA_SHA256: Oid<'static> = oid!(1.2.840.10045.4.3.2);
const ECDSA_SHA384: Oid<'static> = oid!(1.2.840.10045.4.3.3);
const ECDSA_SHA512: Oid<'static> = oid!(1.2.840.10045.4.3.4);

/// Subject alternative names, by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AlternativeNames {
    pub(super) names: Names,
    /// Names of other kinds, each given as its kind.
    pub(super) others: Vec<String>,
}

impl AlternativeNames {
    /// Reads the names; fails if any name is malformed.
    pub(super) fn read(names: &[GeneralName<'_>]) -> Result<Self, String> {
        let mut all = Self::default();
        for name in names {
            all.add(name)?;
        }
        Ok(all)
    }

    /// Joins these names with those of a subject.
    pub(super) fn of(&self, subject: &X509Name<'_>) -> Names {
        Names {
            common_name: common_name(subject),
            subject: self::subject(subject),
            ..self.names.clone()
        }
    }

    /// Reads one more name.
    pub(super) fn add(&mut self, name: &GeneralName<'_>) -> Result<(), String> {
        match name {
            GeneralName::DNSName(name) => self.names.dns_names.push((*name).to_owned()),
            GeneralName::URI(uri) => self.names.uris.push((*uri).to_owned()),
            GeneralName::RFC822Name(email) => self.names.email_addresses.push((*email).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let address = address(bytes)
                    .ok_or_else(|| format!("an IP address of {} bytes", bytes.len()))?;
                self.names.ip_addresses.push(address);
            }
            GeneralName::Invalid(..) => {
                return Err("a malformed alternative name".to_owned());
            }
            GeneralName::OtherName(kind, _) => self.others.push(format!("otherName {kind}")),
            GeneralName::DirectoryName(name) => {
                self.others.push(format!("directoryName {name}"));
            }
            GeneralName::RegisteredID(id) => self.others.push(format!("registeredID {id}")),
            GeneralName::X400Address(_) => self.others.push("x400Address".to_owned()),
            GeneralName::EDIPartyName(_) => self.others.push("ediPartyName".to_owned()),
        }
        Ok(())
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(IpAddr::from(four));
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// The first common name.
pub(super) fn common_name(name: &X509Name<'_>) -> String {
    common_names(name).into_iter().next().unwrap_or_default()
}

/// Every common name.
pub(super) fn common_names(name: &X509Name<'_>) -> Vec<String> {
    texts(name.iter_common_name())
}

/// Attribute values that are text.
pub(super) fn texts<'a>(
    attributes: impl Iterator<Item = &'a AttributeTypeAndValue<'a>>,
) -> Vec<String> {
    attributes.filter_map(|a| a.as_str().ok()).map(str::to_owned).collect()
}

/// Checks a signature, also on P-521, which x509-parser does not know.
pub(super) fn verify(
    key: &SubjectPublicKeyInfo<'_>,
    algorithm: &AlgorithmIdentifier<'_>,
    signature: &BitString<'_>,
    message: &[u8],
) -> Result<(), X509Error> {
    let curve = key.algorithm.parameters.as_ref().and_then(|p| p.as_oid().ok());
    if curve.as_ref() != Some(&P521) {
        return verify_signature(key, algorithm, signature, message);
    }
    let verification: &dyn VerificationAlgorithm = match &algorithm.algorithm {
        oid if *oid == ECDSA_SHA256 => &ECDSA_P521_SHA256_ASN1,
        oid if *oid == ECDSA_SHA384 => &ECDSA_P521_SHA384_ASN1,
        oid if *oid == ECDSA_SHA512 => &ECDSA_P521_SHA512_ASN1,
        _ => return Err(X509Error::SignatureUnsupportedAlgorithm),
    };
    UnparsedPublicKey::new(verification, &key.subject_public_key.data)
        .verify(message, &signature.data)
        .map_err(|_| X509Error::SignatureVerificationError)
}

/// The parts of a subject besides the common name.
pub(super) fn subject(name: &X509Name<'_>) -> Subject {
    let by = |oid: &Oid<'static>| {
        texts(name.iter_attributes().filter(|attribute| attribute.attr_type() == oid))
    };
    Subject {
        organizations: by(&oid!(2.5.4.10)),
        countries: by(&oid!(2.5.4.6)),
        organizational_units: by(&oid!(2.5.4.11)),
        localities: by(&oid!(2.5.4.7)),
        provinces: by(&oid!(2.5.4.8)),
        street_addresses: by(&oid!(2.5.4.9)),
        postal_codes: by(&oid!(2.5.4.17)),
        serial_number: by(&oid!(2.5.4.5)).into_iter().next().unwrap_or_default(),
    }
}

/// Identifier of a certificate in URLs (RFC 9773 §4.1); `None` if the certificate does not name its issuer's key.
pub(super) fn renewal_identifier(certificate: &X509Certificate<'_>) -> Option<String> {
    let issuer = certificate.extensions().iter().find_map(|extension| {
        match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(key) => key.key_identifier.as_ref(),
            _ => None,
        }
    })?;
    let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    Some(format!("{}.{}", text(issuer.0), text(certificate.raw_serial())))
}
