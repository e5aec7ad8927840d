//! Certificates: two roots, one intermediate signed by both roots, and leaves. All keys are ECDSA P-256, all in memory.

use std::fmt;
use std::time::{Duration, SystemTime};

use der::asn1::AnyRef;
use der::{Encode as _, Tag, TagNumber};
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    CrlDistributionPoint, CrlIssuingDistributionPoint, CrlScope, CustomExtension,
    DistinguishedName, DnType, Error, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair,
    KeyUsagePurpose, PublicKeyData, RevocationReason, RevokedCertParams, SanType, SerialNumber,
    SignatureAlgorithm, SigningKey as _,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::config::{BACKDATE, Profile};
use super::state::after;
use crate::model::Identifier;
use crate::surroundings::Environment;

const ROOT: &str = "kubectl-acme rehearsal root, trusted by nobody";
const ALTERNATE_ROOT: &str = "kubectl-acme rehearsal root two, trusted by nobody";
const INTERMEDIATE: &str = "kubectl-acme rehearsal intermediate, trusted by nobody";

/// OID of AuthorityInfoAccess, and the content of OCSP's object identifier for that extension.
const AUTHORITY_INFO_ACCESS: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 1, 1];
const OCSP: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1];

/// Lifetime of the roots, the intermediate and the server's own certificate.
const AUTHORITY_VALIDITY: Duration = Duration::from_hours(10 * 365 * 24);

/// Issuing authority; its keys do not appear in `Debug`.
pub(super) struct IssuingAuthority {
    root: String,
    alternate_root: String,
    intermediate: CertifiedIssuer<'static, KeyPair>,
    /// Certificate of the intermediate's name and key, signed by the alternate root.
    alternate_intermediate: String,
    /// Identifier of the intermediate's key (RFC 5280 §4.2.1.2), part of requests for renewal information (RFC 9773
    /// §4.1). The identifier is drawn, not derived from the key: equal draws give clients equal identifiers.
    key_identifier: KeyIdMethod,
    surroundings: Environment,
}

/// Content of a leaf.
#[derive(Debug)]
pub(super) struct Leaf<'a> {
    pub(super) identifiers: &'a [Identifier],
    pub(super) key: &'a SubjectKey,
    pub(super) lifetime: Lifetime<'a>,
    pub(super) revocation: &'a RevocationUrls,
}

/// URLs at which a leaf's revocation is published.
#[derive(Clone, Debug, Default)]
pub(super) struct RevocationUrls {
    /// URL of the revocation list.
    pub(super) list: Option<String>,
    /// URL of the OCSP responder.
    pub(super) responder: Option<String>,
}

/// Revoked certificate.
#[derive(Clone, Copy, Debug)]
pub(super) struct RevokedSerial {
    pub(super) serial: u128,
    pub(super) at: Timestamp,
    /// Number of the reason (RFC 5280 §5.3.1).
    pub(super) reason: u8,
}

/// Lifetime of a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lifetime<'a> {
    /// Duration from the (backdated) start.
    For(Duration),
    /// Duration of a profile.
    Of(&'a Profile),
    /// Fixed end.
    Until(Timestamp),
}

/// Public key from a signing request.
#[derive(Clone, Debug)]
pub(super) struct SubjectKey {
    /// Content of the bit string in the key's SubjectPublicKeyInfo.
    pub(super) octets: Vec<u8>,
    /// Algorithm that identifies the kind of key; the algorithm signs nothing.
    pub(super) algorithm: &'static SignatureAlgorithm,
}

impl PublicKeyData for SubjectKey {
    fn der_bytes(&self) -> &[u8] {
        &self.octets
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }
}

/// Newly issued certificate.
#[derive(Debug)]
pub(super) struct IssuedCertificate {
    /// Serial number in hexadecimal.
    pub(super) serial: String,
    pub(super) der: Vec<u8>,
}

impl fmt::Debug for IssuingAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority(..)")
    }
}

impl IssuingAuthority {
    /// Makes all keys and the certificates above the leaves.
    pub(super) fn new(surroundings: Environment) -> Result<Self, Error> {
        let now = surroundings.now();
        let root = CertifiedIssuer::self_signed(authority(ROOT, now)?, KeyPair::generate()?)?;
        let alternate_root =
            CertifiedIssuer::self_signed(authority(ALTERNATE_ROOT, now)?, KeyPair::generate()?)?;
        let mut parameters = authority(INTERMEDIATE, now)?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        // The intermediate also signs OCSP answers.
        parameters.key_usages.insert(0, KeyUsagePurpose::DigitalSignature);
        parameters.use_authority_key_identifier_extension = true;
        let drawn = surroundings.draw::<20>().map_err(|_| Error::RingUnspecified)?;
        let key_identifier = KeyIdMethod::PreSpecified(drawn.to_vec());
        parameters.key_identifier_method = key_identifier.clone();
        let key = KeyPair::generate()?;
        let alternate_intermediate = parameters.signed_by(&key, &alternate_root)?.pem();
        Ok(Self {
            intermediate: CertifiedIssuer::signed_by(parameters, key, &root)?,
            alternate_intermediate,
            root: root.pem(),
            alternate_root: alternate_root.pem(),
            key_identifier,
            surroundings,
        })
    }

    /// Returns the intermediate of a chain, in PEM.
    pub(super) fn intermediate(&self, chain: Chain) -> String {
        match chain {
            Chain::Usual => self.intermediate.pem(),
            Chain::Alternate => self.alternate_intermediate.clone(),
        }
    }

    /// Returns the root of the usual chain, in PEM.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// Returns the root of the alternate chain, in PEM.
    pub(super) fn alternate_root(&self) -> &str {
        &self.alternate_root
    }

    /// Signs a leaf: names in the SAN only, and for servers only.
    pub(super) fn issue(
        &self,
        leaf: &Leaf<'_>,
        now: Timestamp,
    ) -> Result<IssuedCertificate, Error> {
        let mut parameters = parameters(leaf.identifiers, now, leaf.lifetime)?;
        parameters.key_usages = key_usages(leaf.key.algorithm);
        parameters.crl_distribution_points =
            leaf.revocation.list.iter().map(|url| point(url)).collect();
        parameters.custom_extensions =
            leaf.revocation.responder.iter().map(|url| access(url)).collect();
        let serial = random_serial(&self.surroundings)?;
        parameters.serial_number = Some(SerialNumber::from_slice(&serial.to_be_bytes()));
        let certificate = parameters.signed_by(leaf.key, &self.intermediate)?;
        Ok(IssuedCertificate { serial: format!("{serial:032x}"), der: certificate.der().to_vec() })
    }

    /// Returns the issuer's certificate, in DER.
    pub(super) fn issuer(&self) -> &[u8] {
        self.intermediate.der()
    }

    /// Signs other data with the issuing key: ECDSA with SHA-256.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.intermediate.key().sign(message)
    }

    /// Signs the list of revoked certificates, in DER.
    pub(super) fn revocation_list(
        &self,
        revoked: &[RevokedSerial],
        url: &str,
        now: Timestamp,
        good_for: Duration,
    ) -> Result<Vec<u8>, Error> {
        let revoked = revoked.iter().map(|one| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&one.serial.to_be_bytes()),
            revocation_time: SystemTime::from(one.at).into(),
            reason_code: reason(one.reason),
            invalidity_date: None,
        });
        let number = u64::try_from(now.as_millisecond()).unwrap_or_default();
        let list = CertificateRevocationListParams {
            this_update: SystemTime::from(now).into(),
            next_update: (SystemTime::from(now) + good_for).into(),
            crl_number: SerialNumber::from(number),
            issuing_distribution_point: Some(CrlIssuingDistributionPoint {
                distribution_point: point(url),
                scope: Some(CrlScope::UserCertsOnly),
            }),
            revoked_certs: revoked.collect(),
            key_identifier_method: self.key_identifier.clone(),
        };
        Ok(list.signed_by(&self.intermediate)?.der().to_vec())
    }

    /// Returns the chain of a leaf in PEM, without its root, with an empty line between certificates as at Boulder.
    pub(super) fn chain(&self, leaf: &[u8], chain: Chain) -> String {
        let leaf = pem::encode(&pem::Pem::new("CERTIFICATE", leaf));
        format!("{leaf}\n{}", self.intermediate(chain)).replace("\r\n", "\n")
    }

    /// Makes the certificate and the key of the CA's own server.
    pub(super) fn server(
        &self,
        names: &[Identifier],
        now: Timestamp,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
        let key = KeyPair::generate()?;
        let mut parameters = parameters(names, now, Lifetime::For(AUTHORITY_VALIDITY))?;
        parameters.key_usages = key_usages(key.algorithm());
        let certificate = parameters.signed_by(&key, &self.intermediate)?;
        let chain = vec![certificate.der().clone(), self.intermediate.der().clone()];
        Ok((chain, PrivatePkcs8KeyDer::from(key.serialize_der()).into()))
    }
}

/// Chain of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chain {
    Usual,
    Alternate,
}

fn authority(name: &str, now: Timestamp) -> Result<CertificateParams, Error> {
    let mut parameters = parameters(&[], now, Lifetime::For(AUTHORITY_VALIDITY))?;
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.use_authority_key_identifier_extension = false;
    parameters.extended_key_usages.clear();
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(parameters)
}

fn parameters(
    names: &[Identifier],
    now: Timestamp,
    lifetime: Lifetime<'_>,
) -> Result<CertificateParams, Error> {
    let backdated = match lifetime {
        Lifetime::Of(profile) => profile.backdated,
        Lifetime::For(_) | Lifetime::Until(_) => BACKDATE,
    };
    let start = SystemTime::from(now) - backdated;
    let end = match lifetime {
        // The last second counts (RFC 5280 §4.1.2.5).
        Lifetime::For(duration) | Lifetime::Of(&Profile { validity: duration, .. }) => {
            start + duration.saturating_sub(Duration::from_secs(1))
        }
        Lifetime::Until(moment) => SystemTime::from(moment),
    };
    let mut parameters = CertificateParams::default();
    parameters.not_before = start.into();
    parameters.not_after = end.into();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.subject_alt_names = names.iter().map(alternative_name).collect::<Result<_, _>>()?;
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    parameters.use_authority_key_identifier_extension = true;
    Ok(parameters)
}

fn alternative_name(identifier: &Identifier) -> Result<SanType, Error> {
    match identifier {
        Identifier::Dns(name) => Ok(SanType::DnsName(name.as_str().try_into()?)),
        Identifier::Ip(address) => Ok(SanType::IpAddress(*address)),
    }
}

/// Builds the extension with the URL of the OCSP responder (RFC 5280 §4.2.2.1).
fn access(url: &str) -> CustomExtension {
    let element = |tag: Tag, content: &[u8]| {
        AnyRef::new(tag, content).and_then(|element| element.to_der()).unwrap_or_default()
    };
    let place = element(TagNumber(6).context_specific(false), url.as_bytes());
    let one = [element(Tag::ObjectIdentifier, OCSP), place].concat();
    let all = element(Tag::Sequence, &element(Tag::Sequence, &one));
    CustomExtension::from_oid_content(AUTHORITY_INFO_ACCESS, all)
}

fn point(url: &str) -> CrlDistributionPoint {
    CrlDistributionPoint { uris: vec![url.to_owned()] }
}

/// Returns the reason of that number; `None` for number 0, unspecified (RFC 5280 §5.3.1).
fn reason(number: u8) -> Option<RevocationReason> {
    match number {
        1 => Some(RevocationReason::KeyCompromise),
        3 => Some(RevocationReason::AffiliationChanged),
        4 => Some(RevocationReason::Superseded),
        5 => Some(RevocationReason::CessationOfOperation),
        _ => None,
    }
}

/// Returns the usages of a key; only RSA keys can encipher another key (RFC 5480 §3).
fn key_usages(algorithm: &SignatureAlgorithm) -> Vec<KeyUsagePurpose> {
    let mut usages = vec![KeyUsagePurpose::DigitalSignature];
    if *algorithm == rcgen::PKCS_RSA_SHA256 {
        usages.push(KeyUsagePurpose::KeyEncipherment);
    }
    usages
}

/// Draws a serial of sixteen octets; the first octet keeps the number positive and its length fixed (RFC 5280 §4.1.2.2).
fn random_serial(from: &Environment) -> Result<u128, Error> {
    let mut octets = from.draw::<16>().map_err(|_| Error::RingUnspecified)?;
    octets[0] = 0x7f;
    Ok(u128::from_be_bytes(octets))
}

/// Returns the latest end that a leaf of this profile may have.
pub(super) fn latest_end(profile: &Profile, now: Timestamp) -> Timestamp {
    after(now, profile.validity.saturating_sub(profile.backdated))
}
