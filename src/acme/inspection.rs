//! Certificates and keys of any origin, taken apart for people and programs.
//!
//! All that can be read is reported: unlike a chain that a CA sends us, an inspected chain need not be good, and
//! nothing is decided by it. The certificates keep the order in which they were found, since servers send them so.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::{DistributionPointName, GeneralName, ParsedExtension};
use x509_parser::objects::{oid_registry, oid2sn};
use x509_parser::oid_registry::asn1_rs::{Oid, oid};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::{SubjectPublicKeyInfo, X509Name};

use super::chain::{ChainFault, MAX_CHAIN_CERTIFICATES, moment, parse_one};
use super::keys::{KeyError, PrivateKey};
use super::usages;
use super::x509::{self, AlternativeNames};
use crate::model::certificate_report::{
    AlternativeNamesByKind, CertificateContent, CertificateKey, ChainEnd, ChainLink, Fingerprints,
    days_left, test_authority,
};
use crate::model::text::hex;

const CERTIFICATE: &str = "CERTIFICATE";
const PRIVATE_KEY: &str = "PRIVATE KEY";
const PEM: &[u8] = b"-----BEGIN ";

const RSA_PSS: Oid<'static> = oid!(1.2.840.113549.1.1.10);
const ED25519: Oid<'static> = oid!(1.3.101.112);
const EC_PUBLIC_KEY: Oid<'static> = oid!(1.2.840.10045.2.1);
const P256: Oid<'static> = oid!(1.2.840.10045.3.1.7);
const P384: Oid<'static> = oid!(1.3.132.0.34);
const P521: Oid<'static> = oid!(1.3.132.0.35);
/// Access method of OCSP (RFC 5280 §4.2.2.1).
const OCSP: Oid<'static> = oid!(1.3.6.1.5.5.7.48.1);

/// Contents of a text or a file.
#[derive(Debug, Default)]
pub struct Material {
    /// Certificates, DER, in their order.
    pub certificates: Vec<Vec<u8>>,
    /// The first private key, or the reason why the key cannot be used.
    pub key: Option<Result<PrivateKey, KeyError>>,
}

impl Material {
    /// Finds certificates and a private key in PEM, whatever stands around them, or one of the two in DER.
    ///
    /// # Errors
    /// Fails if the input holds neither a certificate nor a key.
    pub fn find(bytes: &[u8]) -> Result<Self, ChainFault> {
        if !bytes.windows(PEM.len()).any(|window| window == PEM) {
            return Self::find_der(bytes);
        }
        let blocks = pem::parse_many(bytes)
            .map_err(|e| ChainFault::Unreadable { number: 1, why: e.to_string() })?;
        let is_key = |block: &pem::Pem| block.tag().ends_with(PRIVATE_KEY);
        let key = blocks.iter().any(is_key).then(|| PrivateKey::from_pem(bytes));
        let certificates = blocks.into_iter().filter(|block| block.tag() == CERTIFICATE);
        let certificates: Vec<_> = certificates.map(pem::Pem::into_contents).collect();
        if certificates.is_empty() && key.is_none() {
            return Err(ChainFault::Empty);
        }
        Ok(Self { certificates, key })
    }

    fn find_der(bytes: &[u8]) -> Result<Self, ChainFault> {
        let Err(why) = parse_one(bytes) else {
            return Ok(Self { certificates: vec![bytes.to_vec()], key: None });
        };
        match PrivateKey::from_der(bytes) {
            Ok(key) => Ok(Self { certificates: Vec::new(), key: Some(Ok(key)) }),
            // A sequence, as every certificate is one.
            Err(_) if bytes.first() == Some(&0x30) => {
                Err(ChainFault::Unreadable { number: 1, why })
            }
            Err(_) => Err(ChainFault::Empty),
        }
    }
}

/// Contents of certificates that were found together.
#[derive(Clone, Debug, PartialEq)]
pub struct InspectedChain {
    /// Contents of the first certificate.
    pub content: CertificateContent,
    /// Public key of the first certificate, DER; comparable with [`PrivateKey::public_key`].
    pub public_key: Vec<u8>,
    /// Links of the chain, one for each certificate.
    pub links: Vec<ChainLink>,
    /// Public keys of all certificates.
    pub public_keys: Vec<Vec<u8>>,
    /// End of the chain.
    pub end: ChainEnd,
}

impl InspectedChain {
    /// Takes certificates (DER) apart; the certificate that counts comes first.
    ///
    /// # Errors
    /// Fails if there is no certificate, a certificate cannot be read, or there are more than any chain has.
    pub fn read(certificates: &[Vec<u8>], now: Timestamp) -> Result<Self, ChainFault> {
        if certificates.len() > MAX_CHAIN_CERTIFICATES {
            return Err(ChainFault::TooLong(certificates.len()));
        }
        let unreadable = |index: usize, why| ChainFault::Unreadable { number: index + 1, why };
        let parsed = certificates.iter().enumerate();
        let parsed =
            parsed.map(|(index, der)| parse_one(der).map_err(|why| unreadable(index, why)));
        let parsed: Vec<_> = parsed.collect::<Result<_, _>>()?;
        let (Some(first), Some(last)) = (parsed.first(), parsed.last()) else {
            return Err(ChainFault::Empty);
        };
        let links = parsed.iter().enumerate().map(|(index, certificate)| {
            link(certificate, parsed.get(index + 1)).map_err(|why| unreadable(index, why))
        });
        let mut content = content(first, now).map_err(|why| unreadable(0, why))?;
        let issuers = identities(first.issuer()).into_iter().chain(identities(last.issuer()));
        let issuers: Vec<String> = issuers.collect();
        content.test_authority = test_authority(issuers.iter().map(String::as_str));
        let end = match (is_self_signed(last), parsed.len()) {
            (true, 1) => ChainEnd::SelfSigned,
            (true, _) => ChainEnd::Included,
            (false, _) => ChainEnd::NotIncluded,
        };
        let public_keys = parsed.iter().map(|c| c.public_key().raw.to_vec()).collect();
        Ok(Self {
            content,
            public_key: first.public_key().raw.to_vec(),
            links: links.collect::<Result<_, _>>()?,
            public_keys,
            end,
        })
    }

    /// Returns whether a private key belongs to the first certificate, and if not, its owner or why it cannot be used.
    pub fn compare(
        &self,
        key: Option<&Result<PrivateKey, KeyError>>,
    ) -> (Option<bool>, Option<String>) {
        let key = match key {
            None => return (None, None),
            Some(Err(why)) => return (None, Some(why.to_string())),
            Some(Ok(key)) => key,
        };
        match self.public_keys.iter().position(|public| public == key.public_key()) {
            Some(0) => (Some(true), None),
            Some(index) => {
                (Some(false), Some(format!("it is that of certificate {} of the chain", index + 1)))
            }
            None => (
                Some(false),
                Some(format!("it is that of another certificate ({})", key.algorithm())),
            ),
        }
    }
}

/// Returns the common name of the issuer of a certificate, DER; empty if the issuer has no common name.
pub fn issuer_name(der: &[u8]) -> String {
    parse_one(der).map(|certificate| x509::common_name(certificate.issuer())).unwrap_or_default()
}

/// Organizations and common names of a distinguished name.
fn identities(name: &X509Name<'_>) -> Vec<String> {
    x509::texts(name.iter_organization().chain(name.iter_common_name()))
}

fn content(
    certificate: &X509Certificate<'_>,
    now: Timestamp,
) -> Result<CertificateContent, String> {
    let validity = certificate.validity();
    let not_after = moment(validity.not_after.timestamp())?;
    let der = certificate.as_raw();
    let spki = certificate.public_key();
    let mut content = CertificateContent {
        names: AlternativeNamesByKind::default(),
        subject: certificate.subject().to_string(),
        common_name: x509::common_name(certificate.subject()),
        issuer: certificate.issuer().to_string(),
        test_authority: None,
        serial_number: certificate.raw_serial_as_string().replace(':', ""),
        not_before: moment(validity.not_before.timestamp())?.into(),
        not_after: not_after.into(),
        days_left: days_left(not_after, now),
        key: key(spki),
        signature_algorithm: algorithm(&certificate.signature_algorithm.algorithm),
        fingerprints: Fingerprints {
            sha256: sha256(der),
            sha1: hex(digest(&SHA1_FOR_LEGACY_USE_ONLY, der).as_ref()),
        },
        spki_sha256: STANDARD.encode(digest(&SHA256, spki.raw)),
        usages: Vec::new(),
        is_ca: false,
        ocsp_urls: Vec::new(),
        crl_urls: Vec::new(),
        sct_count: 0,
        faults: Vec::new(),
    };
    read_extensions(certificate, &mut content);
    Ok(content)
}

fn read_extensions(certificate: &X509Certificate<'_>, content: &mut CertificateContent) {
    let mut names = AlternativeNames::default();
    let (mut basic, mut extended) = (0, Vec::new());
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(all) => {
                let faults = all.general_names.iter().filter_map(|name| names.add(name).err());
                content.faults.extend(faults);
            }
            ParsedExtension::KeyUsage(usage) => basic |= usage.flags,
            ParsedExtension::ExtendedKeyUsage(usage) => extended.extend(usages::numbers(usage)),
            ParsedExtension::BasicConstraints(constraints) => content.is_ca |= constraints.ca,
            ParsedExtension::AuthorityInfoAccess(access) => {
                let ocsp = access.iter().filter(|it| it.access_method == OCSP);
                content.ocsp_urls.extend(ocsp.filter_map(|it| url(&it.access_location)));
            }
            ParsedExtension::CRLDistributionPoints(points) => {
                let names = points.iter().filter_map(|point| match &point.distribution_point {
                    Some(DistributionPointName::FullName(names)) => Some(names),
                    _ => None,
                });
                content.crl_urls.extend(names.flatten().filter_map(url));
            }
            ParsedExtension::SCT(promises) => content.sct_count += promises.len(),
            ParsedExtension::ParseError { .. } => {
                content
                    .faults
                    .push(format!("a malformed extension, {}", algorithm(&extension.oid)));
            }
            _ => {}
        }
    }
    content.usages = usages::words(basic, extended);
    content.names = AlternativeNamesByKind {
        ips: names.names.addresses(),
        dns: names.names.dns_names,
        uris: names.names.uris,
        emails: names.names.email_addresses,
        others: names.others,
    };
}

fn url(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::URI(url) => Some((*url).to_owned()),
        _ => None,
    }
}

/// Algorithm and size of a public key.
fn key(spki: &SubjectPublicKeyInfo<'_>) -> CertificateKey {
    let kind = &spki.algorithm.algorithm;
    let of = |algorithm: &str, size| CertificateKey { algorithm: algorithm.to_owned(), size };
    if let Ok(PublicKey::RSA(rsa)) = spki.parsed() {
        return of("RSA", Some(bits(rsa.modulus)));
    }
    if *kind == ED25519 {
        return of("Ed25519", None);
    }
    if *kind == RSA_PSS {
        return of("RSA-PSS", None);
    }
    if *kind != EC_PUBLIC_KEY {
        return of(&algorithm(kind), None);
    }
    let curve = spki.algorithm.parameters.as_ref().and_then(|p| p.as_oid().ok());
    let known = [(P256, 256), (P384, 384), (P521, 521)];
    let size = known.iter().find(|(oid, _)| Some(oid) == curve.as_ref());
    if let Some((_, size)) = size {
        return of("ECDSA", Some(*size));
    }
    let curve = curve.map_or_else(|| "unnamed".to_owned(), |curve| algorithm(&curve));
    of(&format!("ECDSA on the curve {curve}"), None)
}

/// Number of bits of an integer, written with or without zeroes before it.
fn bits(number: &[u8]) -> u32 {
    let zeroes = number.iter().take_while(|byte| **byte == 0).count();
    let bytes = u32::try_from(number.len() - zeroes).unwrap_or(u32::MAX / 8);
    bytes * 8 - number.get(zeroes).map_or(0, |byte| byte.leading_zeros())
}

/// Returns the name of an object identifier, else its dotted form.
fn algorithm(oid: &Oid<'_>) -> String {
    oid2sn(oid, oid_registry()).map_or_else(|_| oid.to_id_string(), str::to_owned)
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn link(
    certificate: &X509Certificate<'_>,
    next: Option<&X509Certificate<'_>>,
) -> Result<ChainLink, String> {
    Ok(ChainLink {
        subject: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        not_after: moment(certificate.validity().not_after.timestamp())?.into(),
        sha256: sha256(certificate.as_raw()),
        self_signed: is_self_signed(certificate),
        signed_by_next: next.and_then(|next| has_signed(next, certificate)),
    })
}

fn is_self_signed(certificate: &X509Certificate<'_>) -> bool {
    has_signed(certificate, certificate).unwrap_or(true)
}

/// Returns whether one certificate has signed another, by name and signature; `None` if the signature cannot be checked.
fn has_signed(above: &X509Certificate<'_>, below: &X509Certificate<'_>) -> Option<bool> {
    if above.subject().as_raw() != below.issuer().as_raw() {
        return Some(false);
    }
    let (algorithm, signature) = (&below.signature_algorithm, &below.signature_value);
    let signed = below.tbs_certificate.as_ref();
    match x509::verify(above.public_key(), algorithm, signature, signed) {
        Ok(()) => Some(true),
        Err(X509Error::SignatureUnsupportedAlgorithm) => None,
        Err(_) => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CrlDistributionPoint, CustomExtension, DnType,
        ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::acme::keys::KeyEncoding;
    use crate::model::KeyAlgorithm;

    const NOW: &str = "2026-11-24T12:00:00Z";

    fn named(name: &str, names: &[&str]) -> CertificateParams {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(2026, 11, 1);
        params.not_after = rcgen::date_time_ymd(2027, 2, 1);
        params.serial_number = Some(SerialNumber::from(0x00ab_cdef));
        params
    }

    fn authority(name: &str) -> (CertificateParams, KeyPair) {
        let mut params = named(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        (params, KeyPair::generate().unwrap())
    }

    fn pair(key: &PrivateKey) -> KeyPair {
        KeyPair::from_pem(&key.to_pem(KeyEncoding::Pkcs8).unwrap()).unwrap()
    }

    /// root → intermediate → leaf for that key, DER, leaf first; and an intermediate of the same name with another key.
    fn chain(params: &CertificateParams, key: &PrivateKey) -> ([Vec<u8>; 3], Vec<u8>) {
        let (root, root_key) = authority("Root");
        let root_der = root.self_signed(&root_key).unwrap().der().to_vec();
        let root = Issuer::new(root, root_key);
        let (intermediate, intermediate_key) = authority("Intermediate");
        let intermediate_der = intermediate.signed_by(&intermediate_key, &root).unwrap();
        let stranger = intermediate.signed_by(&KeyPair::generate().unwrap(), &root).unwrap();
        let intermediate = Issuer::new(intermediate, intermediate_key);
        let leaf = params.signed_by(&pair(key), &intermediate).unwrap();
        ([leaf.der().to_vec(), intermediate_der.der().to_vec(), root_der], stranger.der().to_vec())
    }

    fn read(certificates: &[Vec<u8>]) -> InspectedChain {
        InspectedChain::read(certificates, NOW.parse().unwrap()).unwrap()
    }

    fn ecdsa() -> PrivateKey {
        PrivateKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap()
    }

    /// Contents of a certificate of these parameters, as programs get them.
    fn says(params: &CertificateParams) -> Value {
        let own = KeyPair::generate().unwrap();
        json!(read(&[params.self_signed(&own).unwrap().der().to_vec()]).content)
    }

    fn signed(links: &[ChainLink]) -> Vec<Option<bool>> {
        links.iter().map(|link| link.signed_by_next).collect()
    }

    #[test]
    fn every_signature_of_a_chain_is_verified() {
        let ([leaf, intermediate, root], stranger) = chain(&named("a", &["a.example"]), &ecdsa());
        let whole = read(&[leaf.clone(), intermediate.clone(), root.clone()]);
        assert_eq!(signed(&whole.links), [Some(true), Some(true), None]);
        assert_eq!(whole.end, ChainEnd::Included);
        let usual = read(&[leaf.clone(), intermediate.clone()]);
        assert_eq!(
            (signed(&usual.links), usual.end),
            (vec![Some(true), None], ChainEnd::NotIncluded)
        );
        // Of the right name, but with another key.
        let broken = read(&[leaf.clone(), stranger, root.clone()]);
        assert_eq!(signed(&broken.links), [Some(false), Some(true), None]);
        let disordered = read(&[leaf.clone(), root.clone(), intermediate]);
        assert_eq!(signed(&disordered.links), [Some(false), Some(false), None]);
        let twice = read(&[leaf.clone(), leaf]);
        assert_eq!(signed(&twice.links), [Some(false), None]);
        let alone = read(&[root]);
        assert_eq!((alone.end, alone.links[0].self_signed), (ChainEnd::SelfSigned, true));
    }

    #[test]
    fn chains_of_every_kind_of_key_are_verified() {
        for algorithm in [
            KeyAlgorithm::Rsa(2048),
            KeyAlgorithm::Ecdsa(384),
            KeyAlgorithm::Ecdsa(521),
            KeyAlgorithm::Ed25519,
        ] {
            let key = PrivateKey::generate(algorithm).unwrap();
            let (mut root, _) = authority("Root");
            root.distinguished_name.push(DnType::OrganizationName, "Acme");
            let der = root.self_signed(&pair(&key)).unwrap().der().to_vec();
            let issuer = Issuer::new(root, pair(&key));
            let leaf = named("a", &["a.example"]).signed_by(&pair(&key), &issuer).unwrap();
            let read = read(&[leaf.der().to_vec(), der]);
            assert_eq!(signed(&read.links), [Some(true), None], "{algorithm}");
            assert_eq!(read.compare(Some(&Ok(key))), (Some(true), None));
            let known = read.content.key;
            let name = match algorithm {
                KeyAlgorithm::Rsa(_) => "RSA",
                KeyAlgorithm::Ecdsa(_) => "ECDSA",
                KeyAlgorithm::Ed25519 => "Ed25519",
            };
            let size = match algorithm {
                KeyAlgorithm::Rsa(size) | KeyAlgorithm::Ecdsa(size) => Some(size),
                KeyAlgorithm::Ed25519 => None,
            };
            assert_eq!((known.algorithm.as_str(), known.size), (name, size));
        }
    }

    #[test]
    fn a_key_is_compared_with_every_certificate() {
        let key = ecdsa();
        let (params, of_root) = authority("Root");
        let root = params.self_signed(&of_root).unwrap().der().to_vec();
        let issuer = Issuer::new(params, &of_root);
        let leaf = named("a", &["a.example"]).signed_by(&pair(&key), &issuer).unwrap();
        let read = read(&[leaf.der().to_vec(), root]);
        assert_eq!(read.compare(None), (None, None));
        assert_eq!(read.compare(Some(&Ok(key))), (Some(true), None));
        let said = |key: Result<PrivateKey, KeyError>| {
            let (matches, why) = read.compare(Some(&key));
            (matches, why.unwrap_or_default())
        };
        assert_eq!(
            said(Ok(ecdsa())),
            (Some(false), "it is that of another certificate (ECDSA P-256)".to_owned())
        );
        let of_root = PrivateKey::from_pem(of_root.serialize_pem().as_bytes());
        assert_eq!(
            said(of_root),
            (Some(false), "it is that of certificate 2 of the chain".to_owned())
        );
        let damaged = said(Err(KeyError::Unreadable("it is encrypted".to_owned())));
        assert_eq!(damaged, (None, "cannot read private key: it is encrypted".to_owned()));
    }

    #[test]
    fn all_that_a_certificate_says_is_told() {
        let mut params = named("www.example.com", &["www.example.com", "xn--bcher-kva.example"]);
        params.distinguished_name.push(DnType::OrganizationName, "Bücher & Söhne");
        let address = |text: &str| SanType::IpAddress(text.parse().unwrap());
        params.subject_alt_names.extend([
            address("192.0.2.1"),
            address("2001:db8::1"),
            SanType::URI("spiffe://a/b".try_into().unwrap()),
            SanType::Rfc822Name("me@example.com".try_into().unwrap()),
        ]);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyAgreement];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::Other(vec![1, 2, 3]),
        ];
        let crl = "http://crl.example/1.crl".to_owned();
        params.crl_distribution_points = vec![CrlDistributionPoint { uris: vec![crl] }];
        // One OCSP responder and one issuer's certificate, of which only the first is told.
        let access = b"\x30\x2d\x30\x14\x06\x08\x2b\x06\x01\x05\x05\x07\x30\x01\x86\x08http://a\
            \x30\x15\x06\x08\x2b\x06\x01\x05\x05\x07\x30\x02\x86\x09http://bb";
        let access =
            CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], access.to_vec());
        params.custom_extensions = vec![access, promises(2)];
        let said = says(&params);
        let digests = ["/fingerprints/sha256", "/fingerprints/sha1", "/spkiSha256"];
        let lengths = digests.map(|at| said.pointer(at).unwrap().as_str().unwrap().len());
        assert_eq!(lengths, [64, 40, 44]);
        insta::assert_json_snapshot!(said, {
            ".fingerprints.sha256" => "…", ".fingerprints.sha1" => "…", ".spkiSha256" => "…",
        }, @r#"
        {
          "commonName": "www.example.com",
          "crlUrls": [
            "http://crl.example/1.crl"
          ],
          "daysLeft": 68,
          "fingerprints": {
            "sha1": "…",
            "sha256": "…"
          },
          "isCA": false,
          "issuer": "CN=www.example.com, O=Bücher & Söhne",
          "key": {
            "algorithm": "ECDSA",
            "size": 256
          },
          "names": {
            "dns": [
              "www.example.com",
              "xn--bcher-kva.example"
            ],
            "emails": [
              "me@example.com"
            ],
            "ips": [
              "192.0.2.1",
              "2001:db8::1"
            ],
            "others": [],
            "uris": [
              "spiffe://a/b"
            ]
          },
          "notAfter": "2027-02-01T00:00:00Z",
          "notBefore": "2026-11-01T00:00:00Z",
          "ocspUrls": [
            "http://a"
          ],
          "sctCount": 2,
          "serialNumber": "00abcdef",
          "signatureAlgorithm": "ecdsa-with-SHA256",
          "spkiSha256": "…",
          "subject": "CN=www.example.com, O=Bücher & Söhne",
          "usages": [
            "digital signature",
            "key agreement",
            "server auth",
            "1.2.3"
          ]
        }
        "#);
    }

    /// So many promises of logs, none of which means anything.
    fn promises(count: u8) -> CustomExtension {
        let one = [&[0, 47, 0][..], &[7; 32], &[0; 8], &[0, 0], &[4, 3, 0, 0]].concat();
        let all = one.repeat(count.into());
        let length = u8::try_from(all.len()).unwrap();
        let content = [&[4, 0x81, length + 2, 0, length][..], &all].concat();
        CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2], content)
    }

    #[test]
    fn what_has_expired_is_read_like_any_other() {
        let mut params = named("a", &["a.example"]);
        params.not_after = rcgen::date_time_ymd(2026, 11, 21);
        assert_eq!(says(&params)["daysLeft"], -4);
        params.not_before = rcgen::date_time_ymd(1950, 1, 1);
        params.not_after = rcgen::date_time_ymd(9999, 12, 31);
        assert_eq!(says(&params)["notAfter"], "9999-12-30T22:00:00Z");
    }

    #[test]
    fn a_hundred_names_are_all_there_and_keep_their_order() {
        let names: Vec<String> = (0..100).rev().map(|n| format!("n{n}.example")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(says(&named("a", &names))["names"]["dns"], json!(names));
    }

    #[test]
    fn malformed_parts_are_told_and_the_rest_is_read() {
        let mut params = named("a", &[]);
        let names = b"\x30\x13\x82\x02\xff\xfe\x82\x09a.example\x87\x02\x01\x02".to_vec();
        let usage = CustomExtension::from_oid_content(&[2, 5, 29, 15], vec![0x05, 0x00]);
        params.custom_extensions =
            vec![CustomExtension::from_oid_content(&[2, 5, 29, 17], names), usage];
        let said = says(&params);
        assert_eq!(said["names"]["dns"], json!(["a.example"]));
        assert_eq!(
            said["faults"],
            json!([
                "a malformed alternative name",
                "an IP address of 2 bytes",
                "a malformed extension, keyUsage"
            ])
        );
    }

    #[test]
    fn a_ca_that_nobody_trusts_is_known_by_its_own_name_or_by_its_roots() {
        let key = ecdsa();
        for (name, expected) in [
            ("(STAGING) Pretend Pear X1", json!("Let's Encrypt staging")),
            ("Pebble Root CA 3f7b1e", json!("Pebble")),
            ("Root", Value::Null),
        ] {
            let (root, root_key) = authority(name);
            let root = Issuer::new(root, root_key);
            let (intermediate, intermediate_key) = authority("Intermediate");
            let above = intermediate.signed_by(&intermediate_key, &root).unwrap();
            let issuer = Issuer::new(intermediate, intermediate_key);
            let leaf = named("a", &["a.example"]).signed_by(&pair(&key), &issuer).unwrap();
            let read = read(&[leaf.der().to_vec(), above.der().to_vec()]);
            assert_eq!(json!(read.content)["testCA"], expected, "{name}");
        }
    }

    #[test]
    fn certificates_and_keys_are_found_in_whatever_form_they_are() {
        let key = ecdsa();
        let ([leaf, intermediate, _], _) = chain(&named("a", &["a.example"]), &key);
        let pem = |der: &[u8]| crate::acme::keys::to_pem(CERTIFICATE, der);
        let of_key = key.to_pem(KeyEncoding::Pkcs1).unwrap();
        let all = format!("text\n{}{}\n{}", *of_key, pem(&leaf), pem(&intermediate));
        for (bytes, certificates, has_key) in [
            (all.as_bytes(), 2, true),
            (all.replace('\n', "\r\n").as_bytes(), 2, true),
            (pem(&leaf).as_bytes(), 1, false),
            (&leaf, 1, false),
            (of_key.as_bytes(), 0, true),
            (key.pkcs8(), 0, true),
        ] {
            let found = Material::find(bytes).unwrap();
            let is_own = found.key.map(|found| found.unwrap().public_key() == key.public_key());
            assert_eq!((found.certificates.len(), is_own), (certificates, has_key.then_some(true)));
        }
        let fault = |bytes: &[u8]| Material::find(bytes).unwrap_err().to_string();
        assert_eq!(fault(b""), "there is no certificate in the chain");
        assert_eq!(fault(b"no certificate at all"), "there is no certificate in the chain");
        let cut = fault(&leaf[..leaf.len() - 1]);
        assert!(cut.starts_with("cannot read certificate 1 of the chain: "), "{cut}");
        let locked =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let found = Material::find(locked.as_bytes()).unwrap();
        assert_eq!(
            found.key.unwrap().unwrap_err().to_string(),
            "cannot read private key: it is encrypted"
        );
    }

    #[test]
    fn more_than_a_chain_has_is_refused() {
        let ([leaf, ..], _) = chain(&named("a", &["a.example"]), &ecdsa());
        let many = vec![leaf; MAX_CHAIN_CERTIFICATES + 1];
        let fault = InspectedChain::read(&many, NOW.parse().unwrap()).unwrap_err();
        assert_eq!(fault, ChainFault::TooLong(MAX_CHAIN_CERTIFICATES + 1));
        assert_eq!(InspectedChain::read(&[], NOW.parse().unwrap()), Err(ChainFault::Empty));
    }

    #[test]
    fn no_damage_makes_it_panic() {
        let mut params = named("a", &["a.example", "192.0.2.1"]);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.custom_extensions = vec![promises(1)];
        let ([leaf, ..], _) = chain(&params, &ecdsa());
        let now = NOW.parse().unwrap();
        for at in 0..leaf.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut damaged = leaf.clone();
                damaged[at] ^= change;
                // Whether it can still be read is not the point.
                drop(InspectedChain::read(&[damaged.clone(), leaf.clone()], now));
                drop(Material::find(&damaged));
            }
            drop(Material::find(&leaf[..at]));
        }
    }
}
