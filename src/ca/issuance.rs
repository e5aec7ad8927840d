//! Certificates: two roots, one intermediate that either vouches for, leaves. All keys ECDSA P-256, all in memory.

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

use super::config::{BACKDATED, Profile};
use super::state::after;
use crate::model::Identifier;
use crate::surroundings::Surroundings;

const ROOT: &str = "kubectl-acme rehearsal root, trusted by nobody";
const ALTERNATE_ROOT: &str = "kubectl-acme rehearsal root two, trusted by nobody";
const INTERMEDIATE: &str = "kubectl-acme rehearsal intermediate, trusted by nobody";

/// AuthorityInfoAccess, and in it the content of the object identifier for OCSP.
const ACCESS: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 1, 1];
const OCSP: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1];

/// How long roots, the intermediate and our own server certificate are good.
const AUTHORITY_VALIDITY: Duration = Duration::from_hours(10 * 365 * 24);

/// Who signs; its keys do not print.
pub(super) struct IssuingAuthority {
    root: String,
    alternate_root: String,
    intermediate: CertifiedIssuer<'static, KeyPair>,
    /// The intermediate's name and key once more, signed by the alternate root.
    alternate_intermediate: String,
    /// What names the intermediate's key (RFC 5280 §4.2.1.2). Renewal information is asked by it (RFC 9773 §4.1), so it is drawn and
    /// not derived from the key: clients see the same whenever the same is drawn.
    key_identifier: KeyIdMethod,
    surroundings: Surroundings,
}

/// What a leaf says.
#[derive(Debug)]
pub(super) struct Leaf<'a> {
    pub(super) identifiers: &'a [Identifier],
    pub(super) key: &'a SubjectKey,
    pub(super) lifetime: Lifetime<'a>,
    pub(super) revocation: &'a RevocationUrls,
}

/// Where would be told that a leaf was revoked.
#[derive(Clone, Debug, Default)]
pub(super) struct RevocationUrls {
    /// The list lies there.
    pub(super) list: Option<String>,
    /// The OCSP responder is asked there.
    pub(super) responder: Option<String>,
}

/// A certificate that was revoked.
#[derive(Clone, Copy, Debug)]
pub(super) struct RevokedSerial {
    pub(super) serial: u128,
    pub(super) at: Timestamp,
    /// Number of the reason (RFC 5280 §5.3.1).
    pub(super) reason: u8,
}

/// How long a leaf is good.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lifetime<'a> {
    /// This long, from its (backdated) start.
    For(Duration),
    /// As long as a profile says.
    Of(&'a Profile),
    /// Until this moment.
    Until(Timestamp),
}

/// A public key out of a signing request.
#[derive(Clone, Debug)]
pub(super) struct SubjectKey {
    /// Content of the bit string in its SubjectPublicKeyInfo.
    pub(super) octets: Vec<u8>,
    /// Says which sort of key it is; nothing is signed with it.
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

/// A certificate just made.
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
    pub(super) fn new(surroundings: Surroundings) -> Result<Self, Error> {
        let now = surroundings.now();
        let root = CertifiedIssuer::self_signed(authority(ROOT, now)?, KeyPair::generate()?)?;
        let alternate_root =
            CertifiedIssuer::self_signed(authority(ALTERNATE_ROOT, now)?, KeyPair::generate()?)?;
        let mut parameters = authority(INTERMEDIATE, now)?;
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        // It signs answers of OCSP, too.
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

    /// The intermediate of a chain, in PEM.
    pub(super) fn intermediate(&self, chain: Chain) -> String {
        match chain {
            Chain::Usual => self.intermediate.pem(),
            Chain::Alternate => self.alternate_intermediate.clone(),
        }
    }

    /// The root of the usual chain, in PEM.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// The root of the alternate chain, in PEM.
    pub(super) fn alternate_root(&self) -> &str {
        &self.alternate_root
    }

    /// Signs a leaf: names in its SAN only, for servers only.
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

    /// The certificate of whoever issues, DER.
    pub(super) fn issuer(&self) -> &[u8] {
        self.intermediate.der()
    }

    /// Signs something else by the key that issues: ECDSA with SHA-256.
    pub(super) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.intermediate.key().sign(message)
    }

    /// Signs the list of those that were revoked, DER.
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

    /// The chain of a leaf in PEM, without its root, an empty line between certificates as at Boulder.
    pub(super) fn chain(&self, leaf: &[u8], chain: Chain) -> String {
        let leaf = pem::encode(&pem::Pem::new("CERTIFICATE", leaf));
        format!("{leaf}\n{}", self.intermediate(chain)).replace("\r\n", "\n")
    }

    /// Makes the certificate and key that our own server shows.
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

/// Which of the two chains of a certificate.
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
        Lifetime::For(_) | Lifetime::Until(_) => BACKDATED,
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

/// Says where the OCSP responder is (RFC 5280 §4.2.2.1).
fn access(url: &str) -> CustomExtension {
    let element = |tag: Tag, content: &[u8]| {
        AnyRef::new(tag, content).and_then(|element| element.to_der()).unwrap_or_default()
    };
    let place = element(TagNumber(6).context_specific(false), url.as_bytes());
    let one = [element(Tag::ObjectIdentifier, OCSP), place].concat();
    let all = element(Tag::Sequence, &element(Tag::Sequence, &one));
    CustomExtension::from_oid_content(ACCESS, all)
}

fn point(url: &str) -> CrlDistributionPoint {
    CrlDistributionPoint { uris: vec![url.to_owned()] }
}

/// The reason of that number; none is given where none was (RFC 5280 §5.3.1).
fn reason(number: u8) -> Option<RevocationReason> {
    match number {
        1 => Some(RevocationReason::KeyCompromise),
        3 => Some(RevocationReason::AffiliationChanged),
        4 => Some(RevocationReason::Superseded),
        5 => Some(RevocationReason::CessationOfOperation),
        _ => None,
    }
}

/// Only RSA keys can encipher one (RFC 5480 §3).
fn key_usages(algorithm: &SignatureAlgorithm) -> Vec<KeyUsagePurpose> {
    let mut usages = vec![KeyUsagePurpose::DigitalSignature];
    if *algorithm == rcgen::PKCS_RSA_SHA256 {
        usages.push(KeyUsagePurpose::KeyEncipherment);
    }
    usages
}

/// Sixteen octets, the first one such that the number is positive and keeps its length (RFC 5280 §4.1.2.2).
fn random_serial(from: &Surroundings) -> Result<u128, Error> {
    let mut octets = from.draw::<16>().map_err(|_| Error::RingUnspecified)?;
    octets[0] = 0x7f;
    Ok(u128::from_be_bytes(octets))
}

/// The latest moment a leaf of this profile may name.
pub(super) fn latest_end(profile: &Profile, now: Timestamp) -> Timestamp {
    after(now, profile.validity.saturating_sub(profile.backdated))
}
