//! Signing requests (RFC 2986): written as cert-manager writes them, read with their signature checked.

use std::net::IpAddr;

use ::der::{Tag, TagNumber};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA256_ASN1_SIGNING,
    ECDSA_P521_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512,
    RsaEncoding,
};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::AlgorithmIdentifier;

use super::keys::{PrivateKey, to_pem};
use super::x509::{self, AlternativeNames};
use super::{der, subject, usages};
use crate::model::certificate::{
    CertificateSpec, ConstrainedNames, NameConstraints, Names, network,
};
use crate::model::{DnsName, KeyAlgorithm};

const TAG: &str = "CERTIFICATE REQUEST";
/// Start of a PEM block.
const PEM_BEGIN: &[u8] = b"-----BEGIN ";
const ALTERNATIVE_NAMES: &str = "2.5.29.17";
const KEY_USAGE: &str = "2.5.29.15";
const EXTENDED_KEY_USAGE: &str = "2.5.29.37";
const NAME_CONSTRAINTS: &str = "2.5.29.30";
const EXTENSION_REQUEST: &str = "1.2.840.113549.1.9.14";

/// A signing request whose signature is good.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SigningRequest {
    /// Names in the request.
    pub names: Names,
    /// Alternative names of other kinds, each given as its kind.
    pub other_names: Vec<String>,
    /// SubjectPublicKeyInfo, DER; comparable with [`PrivateKey::public_key`].
    pub public_key: Vec<u8>,
    /// Usages that the request asks for, in cert-manager's words; empty if the request leaves them to the signer.
    pub usages: Vec<String>,
    /// Whether the request asks to be a CA.
    pub is_ca: bool,
    /// The request itself, DER, as the CA wants it.
    pub der: Vec<u8>,
}

/// Error of writing or reading a signing request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The Certificate asks for something that cannot be written.
    #[error("cannot write signing request: {0}")]
    Unwritable(String),
    /// The input is no signing request, or is not signed by the key in the request.
    #[error("cannot read signing request: {0}")]
    Unreadable(String),
}

impl RequestError {
    /// The reason alone.
    pub fn why(self) -> String {
        match self {
            Self::Unwritable(why) | Self::Unreadable(why) => why,
        }
    }
}

/// Writes the signing request of a Certificate (cert-manager's `GenerateCSR`): subject, alternative names, critical
/// only when the subject is empty, and usages unless switched off.
pub fn sign(spec: &CertificateSpec, key: &PrivateKey) -> Result<SigningRequest, RequestError> {
    read(&write(spec, key).map_err(RequestError::Unwritable)?)
}

/// Reads a signing request, PEM or DER, and checks that the key in it signed it.
pub fn read(bytes: &[u8]) -> Result<SigningRequest, RequestError> {
    let request = read_unverified(bytes)?;
    verify(&request.der).map_err(RequestError::Unreadable)?;
    Ok(request)
}

/// Reads a signing request, PEM or DER, without checking the signature.
pub fn read_unverified(bytes: &[u8]) -> Result<SigningRequest, RequestError> {
    let unreadable = |why: String| RequestError::Unreadable(why);
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    // A request is a SEQUENCE, and no text begins so: text may stand before and behind the block (RFC 7468 §2).
    if bytes.first() == Some(&0x30) && !bytes.windows(PEM_BEGIN.len()).any(|part| part == PEM_BEGIN)
    {
        return read_der(bytes).map_err(unreadable);
    }
    let blocks = pem::parse_many(bytes).map_err(|error| unreadable(error.to_string()))?;
    let is_request = |block: &&pem::Pem| matches!(block.tag(), TAG | "NEW CERTIFICATE REQUEST");
    match (blocks.iter().filter(is_request).collect::<Vec<_>>().as_slice(), blocks.first()) {
        ([request], _) => read_der(request.contents()).map_err(unreadable),
        ([_, _, ..], _) => Err(unreadable("there is more than one certificate request".to_owned())),
        ([], Some(block)) => {
            Err(unreadable(format!("it is a PEM block of type \"{}\"", block.tag())))
        }
        ([], None) => Err(unreadable("there is no PEM block of a certificate request".to_owned())),
    }
}

impl SigningRequest {
    /// The request as PEM.
    pub fn to_pem(&self) -> String {
        to_pem(TAG, &self.der)
    }
}

fn write(spec: &CertificateSpec, key: &PrivateKey) -> Result<Vec<u8>, String> {
    let (name, _) = subject::name(spec)?;
    let extensions = requested_extensions(spec)?;
    let mut attributes = Vec::new();
    if !extensions.is_empty() {
        let list = der::constructed(Tag::Sequence, &extensions);
        let values = der::constructed(Tag::Set, &[list]);
        attributes.push(der::constructed(Tag::Sequence, &[oid(EXTENSION_REQUEST)?, values]));
    }
    let information = der::constructed(
        Tag::Sequence,
        &[
            der::element(Tag::Integer, &[0]),
            name,
            key.public_key().to_vec(),
            der::constructed(der::context_constructed(), &attributes),
        ],
    );
    let scheme = Scheme::choose(key.algorithm(), &spec.signature_algorithm)?;
    let signature = scheme
        .sign(key, &information)
        .ok_or_else(|| format!("the {} key does not sign", key.algorithm()))?;
    let algorithm = scheme.identifier()?;
    Ok(der::constructed(Tag::Sequence, &[information, algorithm, der::bit_string(&signature)]))
}

/// The extensions that a Certificate asks for.
pub(super) fn requested_extensions(spec: &CertificateSpec) -> Result<Vec<Vec<u8>>, String> {
    let (_, empty) = subject::name(spec)?;
    let mut extensions = Vec::new();
    if let Some(names) = alternative_names(spec)? {
        extensions.push(extension(ALTERNATIVE_NAMES, empty, &names)?);
    }
    if spec.encode_usages_in_request.unwrap_or(true) {
        let usages = usages::read(spec.usages.as_deref().unwrap_or_default(), spec.is_ca)?;
        extensions.push(extension(KEY_USAGE, true, &der::named_bits(usages.basic))?);
        if !usages.extended.is_empty() {
            let oids: Option<Vec<Vec<u8>>> =
                usages.extended.iter().map(|o| der::dotted(o)).collect();
            let oids = oids.ok_or("an extended usage has no number")?;
            let list = der::constructed(Tag::Sequence, &oids);
            extensions.push(extension(EXTENDED_KEY_USAGE, false, &list)?);
        }
    }
    if let Some(constraints) = &spec.name_constraints
        && let Some(names) = encode_name_constraints(constraints)?
    {
        extensions.push(extension(NAME_CONSTRAINTS, constraints.critical, &names)?);
    }
    Ok(extensions)
}

fn oid(dotted: &str) -> Result<Vec<u8>, String> {
    der::dotted(dotted).ok_or_else(|| format!("\"{dotted}\" is no object identifier"))
}

pub(super) fn extension(kind: &str, critical: bool, value: &[u8]) -> Result<Vec<u8>, String> {
    let mut parts = vec![oid(kind)?];
    if critical {
        parts.push(der::element(Tag::Boolean, &[0xff]));
    }
    parts.push(der::element(Tag::OctetString, value));
    Ok(der::constructed(Tag::Sequence, &parts))
}

/// GeneralNames (RFC 5280 §4.2.1.6) in the order of their tags; `None` when there are none.
fn alternative_names(spec: &CertificateSpec) -> Result<Option<Vec<u8>>, String> {
    let mut names = Vec::new();
    for other in &spec.other_names {
        let value = der::element(Tag::Utf8String, other.utf8_value.as_bytes());
        let value = der::constructed(der::context_constructed(), &[value]);
        names.push(der::constructed(der::context_constructed(), &[oid(&other.oid)?, value]));
    }
    for email in &spec.email_addresses {
        names.push(der::element(der::context(1), ascii("e-mail address", email)?.as_bytes()));
    }
    for name in &spec.dns_names {
        let parsed = DnsName::parse(name).map_err(|e| e.to_string())?;
        let text = if name.is_ascii() { name.as_str() } else { parsed.as_str() };
        names.push(der::element(der::context(2), text.as_bytes()));
    }
    for uri in &spec.uris {
        names.push(der::element(der::context(6), ascii("URI", uri)?.as_bytes()));
    }
    for address in &spec.ip_addresses {
        let bytes = match address.parse() {
            Ok(IpAddr::V4(address)) => address.octets().to_vec(),
            Ok(IpAddr::V6(address)) => address.octets().to_vec(),
            Err(_) => return Err(format!("\"{address}\" is no IP address")),
        };
        names.push(der::element(der::context(7), &bytes));
    }
    Ok((!names.is_empty()).then(|| der::constructed(Tag::Sequence, &names)))
}

/// NameConstraints (RFC 5280 §4.2.1.10) in cert-manager's order; `None` when there are none.
fn encode_name_constraints(constraints: &NameConstraints) -> Result<Option<Vec<u8>>, String> {
    let mut halves = Vec::new();
    for (number, half) in [(0, &constraints.permitted), (1, &constraints.excluded)] {
        let names = half.as_ref().map(general_names).transpose()?.unwrap_or_default();
        if !names.is_empty() {
            let trees = names.into_iter().map(|name| der::constructed(Tag::Sequence, &[name]));
            let trees: Vec<_> = trees.collect();
            halves.push(der::constructed(TagNumber(number).context_specific(true), &trees));
        }
    }
    Ok((!halves.is_empty()).then(|| der::constructed(Tag::Sequence, &halves)))
}

fn general_names(half: &ConstrainedNames) -> Result<Vec<Vec<u8>>, String> {
    let mut names = Vec::new();
    for domain in &half.dns_domains {
        names.push(der::element(der::context(2), ascii("DNS domain", domain)?.as_bytes()));
    }
    for range in &half.ip_ranges {
        let bytes = network(range).ok_or_else(|| format!("\"{range}\" is no IP network"))?;
        names.push(der::element(der::context(7), &bytes));
    }
    for email in &half.email_addresses {
        names.push(der::element(der::context(1), ascii("e-mail address", email)?.as_bytes()));
    }
    for domain in &half.uri_domains {
        names.push(der::element(der::context(6), ascii("URI domain", domain)?.as_bytes()));
    }
    Ok(names)
}

fn ascii<'a>(what: &str, text: &'a str) -> Result<&'a str, String> {
    if text.is_ascii() { Ok(text) } else { Err(format!("the {what} \"{text}\" is not ASCII")) }
}

/// Signature scheme of a request or a certificate.
#[derive(Clone, Copy)]
pub(super) enum Scheme {
    Rsa(&'static dyn RsaEncoding, &'static str),
    Ecdsa(&'static EcdsaSigningAlgorithm, &'static str),
    Ed25519,
}

impl Scheme {
    /// Chooses the scheme that the Certificate names, else cert-manager's choice for the key.
    pub(super) fn choose(key: KeyAlgorithm, wanted: &str) -> Result<Self, String> {
        let default = match key {
            KeyAlgorithm::Rsa(..3072) => "SHA256WithRSA",
            KeyAlgorithm::Rsa(..4096) => "SHA384WithRSA",
            KeyAlgorithm::Rsa(_) => "SHA512WithRSA",
            KeyAlgorithm::Ecdsa(256) => "ECDSAWithSHA256",
            KeyAlgorithm::Ecdsa(384) => "ECDSAWithSHA384",
            KeyAlgorithm::Ecdsa(_) => "ECDSAWithSHA512",
            KeyAlgorithm::Ed25519 => "PureEd25519",
        };
        let name = if wanted.is_empty() { default } else { wanted };
        Ok(match (key, name) {
            (KeyAlgorithm::Rsa(_), "SHA256WithRSA") => {
                Self::Rsa(&RSA_PKCS1_SHA256, "1.2.840.113549.1.1.11")
            }
            (KeyAlgorithm::Rsa(_), "SHA384WithRSA") => {
                Self::Rsa(&RSA_PKCS1_SHA384, "1.2.840.113549.1.1.12")
            }
            (KeyAlgorithm::Rsa(_), "SHA512WithRSA") => {
                Self::Rsa(&RSA_PKCS1_SHA512, "1.2.840.113549.1.1.13")
            }
            (KeyAlgorithm::Ecdsa(256), "ECDSAWithSHA256") => {
                Self::Ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING, "1.2.840.10045.4.3.2")
            }
            (KeyAlgorithm::Ecdsa(384), "ECDSAWithSHA384") => {
                Self::Ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING, "1.2.840.10045.4.3.3")
            }
            (KeyAlgorithm::Ecdsa(521), "ECDSAWithSHA256") => {
                Self::Ecdsa(&ECDSA_P521_SHA256_ASN1_SIGNING, "1.2.840.10045.4.3.2")
            }
            (KeyAlgorithm::Ecdsa(521), "ECDSAWithSHA384") => {
                Self::Ecdsa(&ECDSA_P521_SHA384_ASN1_SIGNING, "1.2.840.10045.4.3.3")
            }
            (KeyAlgorithm::Ecdsa(521), "ECDSAWithSHA512") => {
                Self::Ecdsa(&ECDSA_P521_SHA512_ASN1_SIGNING, "1.2.840.10045.4.3.4")
            }
            (KeyAlgorithm::Ed25519, "PureEd25519") => Self::Ed25519,
            _ => return Err(format!("a {key} key does not sign with {name}")),
        })
    }

    pub(super) fn identifier(self) -> Result<Vec<u8>, String> {
        let parts = match self {
            // RSA alone carries a NULL (RFC 4055 §5).
            Self::Rsa(_, number) => vec![oid(number)?, der::element(Tag::Null, &[])],
            Self::Ecdsa(_, number) => vec![oid(number)?],
            Self::Ed25519 => vec![oid("1.3.101.112")?],
        };
        Ok(der::constructed(Tag::Sequence, &parts))
    }

    pub(super) fn sign(self, key: &PrivateKey, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(encoding, _) => {
                let pair = RsaKeyPair::from_pkcs8(key.pkcs8()).ok()?;
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &random, message, &mut signature).ok()?;
                Some(signature)
            }
            Self::Ecdsa(algorithm, _) => {
                let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.pkcs8()).ok()?;
                Some(pair.sign(&random, message).ok()?.as_ref().to_vec())
            }
            Self::Ed25519 => {
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.pkcs8()).ok()?;
                Some(pair.sign(message).as_ref().to_vec())
            }
        }
    }
}

const PSS: &str = "RSASSA-PSS";

/// Checks that the key in a request signed it.
fn verify(der: &[u8]) -> Result<(), String> {
    let (_, request) =
        X509CertificationRequest::from_der(der).map_err(|_| "it is damaged".to_owned())?;
    let information = &request.certification_request_info;
    let name = signature_name(&request.signature_algorithm);
    let unknown = format!("its signature cannot be checked: {name} is not known here");
    x509::verify(
        &information.subject_pki,
        &request.signature_algorithm,
        &request.signature_value,
        information.raw,
    )
    .map_err(|error| match error {
        X509Error::SignatureUnsupportedAlgorithm => unknown,
        // The library takes salts of one length alone, and reports other lengths as a wrong signature.
        _ if name == PSS => unknown,
        // The library reports such keys as a wrong signature.
        _ if information.subject_pki.parsed().is_ok_and(|key| is_small_rsa(&key)) => {
            "its signature cannot be checked: CAs take no RSA key of less than 2048 bits".to_owned()
        }
        _ => "its signature is not of the key in it".to_owned(),
    })
}

fn is_small_rsa(key: &PublicKey<'_>) -> bool {
    matches!(key, PublicKey::RSA(key) if key.key_size() < 2048)
}

/// Returns the name of a signature algorithm, else its number.
fn signature_name(algorithm: &AlgorithmIdentifier<'_>) -> String {
    match algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.113549.1.1.10" => PSS.to_owned(),
        "1.2.840.113549.1.1.4" => "MD5 with RSA".to_owned(),
        "1.3.101.113" => "Ed448".to_owned(),
        number => format!("algorithm {number}"),
    }
}

fn read_der(bytes: &[u8]) -> Result<SigningRequest, String> {
    let (rest, request) =
        X509CertificationRequest::from_der(bytes).map_err(|_| "it is damaged".to_owned())?;
    if !rest.is_empty() {
        return Err("there is something behind it".to_owned());
    }
    let information = &request.certification_request_info;
    let mut names = AlternativeNames::default();
    let mut is_ca = false;
    let (mut basic, mut extended) = (0, Vec::new());
    for extension in request.requested_extensions().into_iter().flatten() {
        match extension {
            ParsedExtension::SubjectAlternativeName(found) => {
                names = AlternativeNames::read(&found.general_names)?;
            }
            ParsedExtension::BasicConstraints(constraints) => is_ca = constraints.ca,
            ParsedExtension::KeyUsage(usage) => basic |= usage.flags,
            ParsedExtension::ExtendedKeyUsage(usage) => extended.extend(usages::numbers(usage)),
            _ => {}
        }
    }
    Ok(SigningRequest {
        names: names.of(&information.subject),
        other_names: names.others,
        public_key: information.subject_pki.raw.to_vec(),
        usages: usages::words(basic, extended),
        is_ca,
        der: bytes.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::keys::KeyEncoding;
    use crate::acme::openssl::{file, openssl};
    use crate::model::certificate::{OtherName, Subject};

    fn full() -> CertificateSpec {
        CertificateSpec {
            subject: Some(Subject { organizations: vec!["Acme".to_owned()], ..Subject::default() }),
            common_name: "www.example.com".to_owned(),
            dns_names: vec!["www.example.com".to_owned(), "*.example.com".to_owned()],
            ip_addresses: vec!["192.0.2.1".to_owned(), "2001:db8::1".to_owned()],
            uris: vec!["spiffe://example/a".to_owned()],
            email_addresses: vec!["me@example.com".to_owned()],
            ..CertificateSpec::default()
        }
    }

    /// openssl takes the request, and the parts of its text in that order.
    fn check(spec: &CertificateSpec, key: &PrivateKey, parts: &[&str]) {
        let request = sign(spec, key).unwrap();
        assert_eq!(request.public_key, key.public_key());
        assert_eq!(read(request.to_pem().as_bytes()), Ok(request.clone()));
        let text = openssl(
            &["req", "-verify", "-noout", "-text", "-nameopt", "RFC2253"],
            request.to_pem().as_bytes(),
        );
        let text = String::from_utf8(text).unwrap();
        let mut rest = text.as_str();
        for part in parts {
            let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part} in {text}"));
            rest = after;
        }
    }

    fn key(algorithm: KeyAlgorithm) -> PrivateKey {
        PrivateKey::generate(algorithm).unwrap()
    }

    #[test]
    fn a_request_is_what_cert_manager_would_send() {
        check(
            &full(),
            &key(KeyAlgorithm::Ecdsa(256)),
            &[
                "Version: 1 (0x0)",
                "Subject: CN=www.example.com,O=Acme\n",
                "X509v3 Subject Alternative Name: \n",
                "email:me@example.com, DNS:www.example.com, DNS:*.example.com, \
                 URI:spiffe://example/a, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1\n",
                "X509v3 Key Usage: critical\n",
                "Digital Signature, Key Encipherment\n",
                "Signature Algorithm: ecdsa-with-SHA256",
            ],
        );
    }

    #[test]
    fn name_constraints_stand_in_the_request() {
        let half = |domain: &str| ConstrainedNames {
            dns_domains: vec![domain.to_owned()],
            ip_ranges: vec!["192.0.2.77/24".to_owned(), "2001:db8::/32".to_owned()],
            email_addresses: vec![".example.com".to_owned()],
            uri_domains: vec!["example.org".to_owned()],
        };
        let constraints = NameConstraints {
            critical: true,
            permitted: Some(half("example.com")),
            excluded: Some(half("x.example.com")),
        };
        let spec = CertificateSpec { is_ca: true, name_constraints: Some(constraints), ..full() };
        let addresses = ["IP:192.0.2.0/255.255.255.0\n", "/FFFF:FFFF:0:0:0:0:0:0\n"];
        let others = ["email:.example.com\n", "URI:example.org\n"];
        let permitted =
            ["X509v3 Name Constraints: critical\n", "Permitted:\n", "DNS:example.com\n"];
        let excluded = ["Excluded:\n", "DNS:x.example.com\n"];
        let parts = [&permitted[..], &addresses, &others, &excluded, &addresses, &others].concat();
        check(&spec, &key(KeyAlgorithm::Ecdsa(256)), &parts);
    }

    #[test]
    fn nothing_is_asked_that_was_not_listed() {
        let request = sign(&full(), &key(KeyAlgorithm::Ecdsa(256))).unwrap();
        let text = openssl(&["req", "-noout", "-text"], request.to_pem().as_bytes());
        let text = String::from_utf8(text).unwrap();
        for absent in ["Basic Constraints", "Extended Key Usage"] {
            assert!(!text.contains(absent), "{absent}");
        }
    }

    #[test]
    fn alternative_names_are_critical_without_a_subject() {
        let spec = CertificateSpec {
            dns_names: vec!["a.example".to_owned()],
            usages: Some(vec!["server auth".to_owned(), "digital signature".to_owned()]),
            ..CertificateSpec::default()
        };
        check(
            &spec,
            &key(KeyAlgorithm::Ecdsa(384)),
            &[
                "Subject: \n",
                "X509v3 Subject Alternative Name: critical\n",
                "X509v3 Key Usage: critical\n                    Digital Signature\n",
                "X509v3 Extended Key Usage: \n",
                "TLS Web Server Authentication\n",
                "ecdsa-with-SHA384",
            ],
        );
    }

    #[test]
    fn usages_can_be_left_out_and_a_ca_signs_certificates() {
        let bare = CertificateSpec {
            common_name: "a.example".to_owned(),
            encode_usages_in_request: Some(false),
            ..CertificateSpec::default()
        };
        check(&bare, &key(KeyAlgorithm::Ecdsa(256)), &["Subject: CN=a.example", "(none)"]);
        let ca = CertificateSpec { is_ca: true, ..full() };
        check(
            &ca,
            &key(KeyAlgorithm::Ecdsa(256)),
            &["Digital Signature, Key Encipherment, Certificate Sign\n"],
        );
    }

    #[test]
    fn every_key_signs_with_the_hash_that_fits_it() {
        for (algorithm, wanted, name) in [
            (KeyAlgorithm::Rsa(2048), "", "sha256WithRSAEncryption"),
            (KeyAlgorithm::Rsa(2048), "SHA512WithRSA", "sha512WithRSAEncryption"),
            (KeyAlgorithm::Rsa(3072), "", "sha384WithRSAEncryption"),
            (KeyAlgorithm::Rsa(4096), "", "sha512WithRSAEncryption"),
            (KeyAlgorithm::Ecdsa(521), "", "ecdsa-with-SHA512"),
            (KeyAlgorithm::Ecdsa(521), "ECDSAWithSHA384", "ecdsa-with-SHA384"),
            (KeyAlgorithm::Ed25519, "", "ED25519"),
        ] {
            let spec = CertificateSpec { signature_algorithm: wanted.to_owned(), ..full() };
            check(&spec, &key(algorithm), &[&format!("Signature Algorithm: {name}")]);
        }
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let with = |change: fn(&mut CertificateSpec)| {
            let mut spec = full();
            change(&mut spec);
            sign(&spec, &key(KeyAlgorithm::Ecdsa(256))).unwrap_err().to_string()
        };
        for (error, part) in [
            (with(|s| s.ip_addresses = vec!["300.0.0.1".to_owned()]), "300.0.0.1"),
            (with(|s| s.dns_names = vec!["a b".to_owned()]), "a b"),
            (with(|s| s.uris = vec!["https://ö".to_owned()]), "ö"),
            (with(|s| s.usages = Some(vec!["world peace".to_owned()])), "world peace"),
            (with(|s| s.signature_algorithm = "SHA256WithRSA".to_owned()), "ECDSA P-256"),
            (with(|s| s.literal_subject = "nonsense".to_owned()), "nonsense"),
            (
                with(|s| {
                    s.other_names =
                        vec![OtherName { oid: "x".to_owned(), utf8_value: "y".to_owned() }];
                }),
                "object identifier",
            ),
        ] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn other_names_and_foreign_letters_are_written() {
        let spec = CertificateSpec {
            dns_names: vec!["bücher.example".to_owned()],
            other_names: vec![OtherName {
                oid: "1.3.6.1.4.1.311.20.2.3".to_owned(),
                utf8_value: "me@example.com".to_owned(),
            }],
            ..CertificateSpec::default()
        };
        check(
            &spec,
            &key(KeyAlgorithm::Ecdsa(256)),
            &["othername: UPN::me@example.com", "DNS:xn--bcher-kva.example"],
        );
    }

    #[test]
    fn a_request_made_by_openssl_is_read() {
        let key = key(KeyAlgorithm::Rsa(2048));
        let pem = file(key.to_pem(KeyEncoding::Pkcs8).unwrap().as_bytes());
        let arguments = [
            "req",
            "-new",
            "-key",
            pem.path().to_str().unwrap(),
            "-subj",
            "/CN=a.example",
            "-addext",
            "subjectAltName=DNS:b.example,IP:192.0.2.7",
        ];
        let text = openssl(&arguments, b"");
        let request = read(&text).unwrap();
        assert_eq!(request.names.common_name, "a.example");
        assert_eq!(request.names.dns_names, ["b.example"]);
        assert_eq!(request.names.ip_addresses, ["192.0.2.7".parse::<IpAddr>().unwrap()]);
        assert_eq!(request.public_key, key.public_key());
        assert_eq!(read(&request.der), Ok(request));
    }

    /// A key and a request for a.example, by openssl.
    fn by_openssl(key_words: &[&str], request_words: &[&str]) -> Vec<u8> {
        let key = openssl(&[&["genpkey"][..], key_words].concat(), b"");
        let pem = file(&key);
        let path = pem.path().to_str().unwrap();
        let names = ["-subj", "/CN=A.example", "-addext", "subjectAltName=DNS:a.example"];
        openssl(&[&["req", "-new", "-key", path][..], &names, request_words].concat(), b"")
    }

    #[test]
    fn a_request_is_found_in_what_stands_around_it() {
        let text = String::from_utf8(by_openssl(
            &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
            &[],
        ))
        .unwrap();
        let plain = read(text.as_bytes()).unwrap();
        let shown = String::from_utf8(openssl(&["req", "-text"], text.as_bytes())).unwrap();
        let parameters =
            "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
        for around in [
            shown,
            format!("\u{feff}{text}"),
            text.replace('\n', "\r\n"),
            format!("0 of this is a request\n{text}and nothing more\n"),
            format!("{parameters}{text}"),
            text.replace("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"),
        ] {
            assert_eq!(read(around.as_bytes()), Ok(plain.clone()), "{around}");
        }
        let twice = read(format!("{text}{text}").as_bytes()).unwrap_err().to_string();
        assert!(twice.contains("more than one"), "{twice}");
    }

    #[test]
    fn a_signature_that_cannot_be_checked_is_not_called_wrong() {
        let rsa = |bits: &str| {
            [
                "-algorithm".into(),
                "RSA".into(),
                "-pkeyopt".into(),
                format!("rsa_keygen_bits:{bits}"),
            ]
        };
        for (bits, words, expected) in [
            ("2048", &["-sigopt", "rsa_padding_mode:pss"][..], "cannot be checked: RSASSA-PSS"),
            ("1024", &[], "no RSA key of less than 2048 bits"),
        ] {
            let key: Vec<String> = rsa(bits).into();
            let key: Vec<&str> = key.iter().map(String::as_str).collect();
            let why = read(&by_openssl(&key, words)).unwrap_err().to_string();
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let good = sign(&full(), &key(KeyAlgorithm::Ecdsa(256))).unwrap();
        let mut forged = good.der.clone();
        let at = forged.windows(4).position(|w| w == b"Acme").unwrap();
        forged[at] = b'E';
        let mut longer = good.der.clone();
        longer.push(0);
        let block = to_pem("CERTIFICATE", &good.der);
        for (bytes, reason) in [
            (&forged[..], "signature"),
            (&longer, "behind"),
            (&good.der[..40], "damaged"),
            (b"", "no PEM block"),
            (b"this is no request", "no PEM block"),
            (block.as_bytes(), "\"CERTIFICATE\""),
        ] {
            let error = read(bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
