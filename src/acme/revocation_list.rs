//! Lists of revoked certificates (RFC 5280 §5 and §6.3). A list counts if it is signed by the issuer of the
//! certificate, is whole, is of a place that the certificate names, and is not to be replaced yet.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::{DistributionPointName, GeneralName, ParsedExtension};
use x509_parser::oid_registry::asn1_rs::{Oid, oid};
use x509_parser::prelude::FromDer as _;
use x509_parser::revocation_list::{CertificateRevocationList, RevokedCertificate};

use super::chain::{moment, parse_one};
use super::x509;

/// Extension of a list that holds only the changes since another list (RFC 5280 §5.2.4).
const DELTA: Oid<'static> = oid!(2.5.29.27);
/// Largest lead of a CA's clock.
const CLOCK_LEAD_MAX: SignedDuration = SignedDuration::from_mins(5);
/// Start of PEM, which some CAs send.
const PEM: &[u8] = b"-----BEGIN ";

/// List with the signature of the issuer.
#[derive(Clone, Debug)]
pub struct RevocationList {
    this_update: Timestamp,
    next_update: Option<Timestamp>,
    /// Places of the list by its own statement; empty if the list names none.
    points: Vec<String>,
    /// Entries by serial number, without leading zeroes.
    entries: HashMap<Vec<u8>, ListedRevocation>,
}

/// Entry of a list about a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedRevocation {
    /// Time of the revocation.
    pub at: Timestamp,
    /// Reason in the RFC's word, if the list gives a reason.
    pub reason: Option<&'static str>,
}

/// Reason why a list does not count for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevocationListFault {
    /// The bytes are no list.
    #[error("it cannot be read as a list of revoked certificates: {0}")]
    Unreadable(String),
    /// The list is by another CA.
    #[error("it is not by the issuer of the certificate")]
    OtherIssuer,
    /// The list was not signed by the issuer's key.
    #[error("its signature is not that of the issuer")]
    BadSignature,
    /// The signature cannot be checked here.
    #[error("it is signed in a way that cannot be checked here")]
    UnknownSignature,
    /// The list holds other certificates, or not all.
    #[error("it is not a whole list of such certificates ({0})")]
    Partial(&'static str),
    /// The list is of another place.
    #[error("it is the list of another distribution point")]
    OtherPoint,
    /// The list begins in the future.
    #[error("it is of {0}, which is to come")]
    Future(Timestamp),
    /// The list was to be replaced by now.
    #[error("it was to be replaced by {0}")]
    Outdated(Timestamp),
    /// The list states no end.
    #[error("it does not say how long it counts")]
    Endless,
}

impl RevocationList {
    /// Reads a list, DER or PEM, and checks that `issuer` (a certificate, DER) has signed the list.
    ///
    /// # Errors
    /// Fails if the list cannot be read, is signed by another CA, or is not a whole list of certificates for servers.
    pub fn read(bytes: &[u8], issuer: &[u8]) -> Result<Self, RevocationListFault> {
        use RevocationListFault as Fault;
        let unreadable = |why: &dyn ToString| Fault::Unreadable(why.to_string());
        let decoded = bytes.starts_with(PEM).then(|| pem::parse(bytes)).transpose();
        let decoded = decoded.map_err(|error| unreadable(&error))?;
        let bytes = decoded.as_ref().map_or(bytes, pem::Pem::contents);
        let (rest, list) =
            CertificateRevocationList::from_der(bytes).map_err(|error| unreadable(&error))?;
        if !rest.is_empty() {
            return Err(unreadable(&"something follows it"));
        }
        let issuer = parse_one(issuer).map_err(|why| unreadable(&why))?;
        if list.issuer().as_raw() != issuer.subject().as_raw() {
            return Err(Fault::OtherIssuer);
        }
        let (algorithm, signature) = (&list.signature_algorithm, &list.signature_value);
        let signed = list.tbs_cert_list.as_ref();
        match x509::verify(issuer.public_key(), algorithm, signature, signed) {
            Ok(()) => {}
            Err(X509Error::SignatureUnsupportedAlgorithm) => return Err(Fault::UnknownSignature),
            Err(_) => return Err(Fault::BadSignature),
        }
        let at = |seconds| moment(seconds).map_err(|why| unreadable(&why));
        let next_update = list.next_update().map(|next| at(next.timestamp())).transpose()?;
        Ok(Self {
            this_update: at(list.last_update().timestamp())?,
            next_update,
            points: points(&list)?,
            entries: list.iter_revoked_certificates().filter_map(entry).collect(),
        })
    }

    /// Returns the entry of the certificate with that serial number, which names these places; `None` if not revoked.
    ///
    /// # Errors
    /// Fails if the list does not count now, or not for that certificate.
    pub fn find(
        &self,
        serial: &[u8],
        places: &[String],
        now: Timestamp,
    ) -> Result<Option<ListedRevocation>, RevocationListFault> {
        use RevocationListFault as Fault;
        if !self.points.is_empty() && !self.points.iter().any(|point| places.contains(point)) {
            return Err(Fault::OtherPoint);
        }
        // A revocation stays, however old the list is.
        if let Some(entry) = self.entries.get(number(serial)) {
            return Ok(Some(*entry));
        }
        if self.this_update.duration_since(now) > CLOCK_LEAD_MAX {
            return Err(Fault::Future(self.this_update));
        }
        match self.next_update {
            None => Err(Fault::Endless),
            Some(next) if next < now => Err(Fault::Outdated(next)),
            Some(_) => Ok(None),
        }
    }

    /// Time at which the CA made the list, and time by which there is another list.
    pub fn updates(&self) -> (Timestamp, Option<Timestamp>) {
        (self.this_update, self.next_update)
    }
}

/// Finds the certificate in a chain (DER) that has signed the first certificate.
pub fn issuer_within(chain: &[Vec<u8>]) -> Option<&Vec<u8>> {
    let leaf = parse_one(chain.first()?).ok()?;
    let has_signed = |above: &X509Certificate<'_>| {
        let (algorithm, signature) = (&leaf.signature_algorithm, &leaf.signature_value);
        above.subject().as_raw() == leaf.issuer().as_raw()
            && x509::verify(above.public_key(), algorithm, signature, leaf.tbs_certificate.as_ref())
                .is_ok()
    };
    chain.iter().skip(1).find(|der| parse_one(der).is_ok_and(|above| has_signed(&above)))
}

/// Reads the places that a list names for itself. The list must be whole, and of certificates that are no CA's.
fn points(list: &CertificateRevocationList<'_>) -> Result<Vec<String>, RevocationListFault> {
    let partial = |what| Err(RevocationListFault::Partial(what));
    let mut points = Vec::new();
    for extension in list.extensions() {
        if extension.oid == DELTA {
            return partial("changes only");
        }
        let ParsedExtension::IssuingDistributionPoint(of) = extension.parsed_extension() else {
            let is_known = matches!(
                extension.parsed_extension(),
                ParsedExtension::AuthorityKeyIdentifier(_) | ParsedExtension::CRLNumber(_)
            );
            if extension.critical && !is_known {
                return partial("it has a critical extension that is not known here");
            }
            continue;
        };
        if of.only_contains_ca_certs || of.only_contains_attribute_certs {
            return partial("other sorts only");
        }
        if of.indirect_crl {
            return partial("those of several CAs");
        }
        if of.only_some_reasons.is_some() {
            return partial("some reasons only");
        }
        if let Some(DistributionPointName::FullName(names)) = &of.distribution_point {
            points.extend(names.iter().filter_map(|name| match name {
                GeneralName::URI(uri) => Some((*uri).to_owned()),
                _ => None,
            }));
        }
    }
    Ok(points)
}

fn entry(entry: &RevokedCertificate<'_>) -> Option<(Vec<u8>, ListedRevocation)> {
    let at = moment(entry.revocation_date.timestamp()).ok()?;
    let reason = entry.reason_code().and_then(|(_, reason)| word(reason.0));
    Some((number(entry.raw_serial()).to_vec(), ListedRevocation { at, reason }))
}

/// Number without leading zeroes.
fn number(serial: &[u8]) -> &[u8] {
    let zeroes = serial.iter().take_while(|byte| **byte == 0).count();
    &serial[zeroes..]
}

/// Term for a reason (RFC 5280 §5.3.1).
pub(super) fn word(reason: u8) -> Option<&'static str> {
    Some(match reason {
        1 => "keyCompromise",
        2 => "cACompromise",
        3 => "affiliationChanged",
        4 => "superseded",
        5 => "cessationOfOperation",
        6 => "certificateHold",
        9 => "privilegeWithdrawn",
        10 => "aACompromise",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use rcgen::{
        BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
        CrlDistributionPoint, CrlIssuingDistributionPoint, CrlScope, DnType, IsCa, KeyIdMethod,
        KeyPair, KeyUsagePurpose, RevocationReason, RevokedCertParams, SerialNumber,
    };

    use super::*;

    const HERE: &str = "http://ca.test/1.crl";
    const NOW: i64 = 1_800_000_000;
    const DAY: i64 = 86_400;

    fn at(second: i64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(second).unwrap())
    }

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    /// A list in which number 7 stands.
    fn list() -> CertificateRevocationListParams {
        CertificateRevocationListParams {
            this_update: at(NOW - DAY).into(),
            next_update: at(NOW + DAY).into(),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(7_u64),
                revocation_time: at(NOW - 60).into(),
                reason_code: Some(RevocationReason::KeyCompromise),
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        }
    }

    fn point(scope: Option<CrlScope>) -> CrlIssuingDistributionPoint {
        let distribution_point = CrlDistributionPoint { uris: vec![HERE.to_owned()] };
        CrlIssuingDistributionPoint { distribution_point, scope }
    }

    /// Reason in a list that `change` has altered, for a serial number.
    fn find(
        change: impl FnOnce(&mut CertificateRevocationListParams),
        serial: u8,
        places: &[&str],
    ) -> Result<Option<&'static str>, String> {
        let ca = authority("One");
        let mut params = list();
        change(&mut params);
        let der = params.signed_by(&ca).unwrap();
        let places: Vec<String> = places.iter().map(|place| (*place).to_owned()).collect();
        let list = RevocationList::read(der.der(), ca.der()).map_err(|why| why.to_string())?;
        let looked = list.find(&[0, serial], &places, now()).map_err(|why| why.to_string())?;
        Ok(looked.map(|entry| entry.reason.unwrap_or("no reason")))
    }

    #[test]
    fn a_number_stands_in_a_list_or_does_not() {
        assert_eq!(find(|_| (), 7, &[HERE]), Ok(Some("keyCompromise")));
        assert_eq!(find(|_| (), 8, &[HERE]), Ok(None));
        let user_only = |list: &mut CertificateRevocationListParams| {
            list.issuing_distribution_point = Some(point(Some(CrlScope::UserCertsOnly)));
        };
        assert_eq!(find(user_only, 8, &[HERE]), Ok(None));
    }

    #[test]
    fn a_list_that_does_not_count_says_nothing_but_what_was_revoked_stays_so() {
        let outdated = |list: &mut CertificateRevocationListParams| {
            list.next_update = at(NOW - 60).into();
        };
        let why = "it was to be replaced by 2027-01-15T07:59:00Z";
        assert_eq!(find(outdated, 8, &[HERE]), Err(why.to_owned()));
        assert_eq!(find(outdated, 7, &[HERE]), Ok(Some("keyCompromise")));
        let future = |list: &mut CertificateRevocationListParams| {
            list.this_update = at(NOW + 600).into();
        };
        let why = "it is of 2027-01-15T08:10:00Z, which is to come";
        assert_eq!(find(future, 8, &[HERE]), Err(why.to_owned()));
        let elsewhere = |list: &mut CertificateRevocationListParams| {
            list.issuing_distribution_point = Some(point(None));
        };
        let why = "it is the list of another distribution point";
        assert_eq!(find(elsewhere, 7, &["http://ca.test/2.crl"]), Err(why.to_owned()));
        let of_authorities = |list: &mut CertificateRevocationListParams| {
            list.issuing_distribution_point = Some(point(Some(CrlScope::CaCertsOnly)));
        };
        let why = "it is not a whole list of such certificates (other sorts only)";
        assert_eq!(find(of_authorities, 7, &[HERE]), Err(why.to_owned()));
    }

    #[test]
    fn a_list_by_somebody_else_is_no_list() {
        let (ca, namesake, other) = (authority("One"), authority("One"), authority("Two"));
        let der = list().signed_by(&ca).unwrap().der().to_vec();
        let read = |bytes: &[u8], issuer: &[u8]| RevocationList::read(bytes, issuer).unwrap_err();
        assert_eq!(read(&der, namesake.der()), RevocationListFault::BadSignature);
        assert_eq!(read(&der, other.der()), RevocationListFault::OtherIssuer);
        let mut changed = der.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(read(&changed, ca.der()), RevocationListFault::BadSignature);
        assert!(matches!(read(b"<html>", ca.der()), RevocationListFault::Unreadable(_)));
        let longer = [&der[..], b"0"].concat();
        assert!(matches!(read(&longer, ca.der()), RevocationListFault::Unreadable(_)));
        let text = pem::encode(&pem::Pem::new("X509 CRL", der));
        assert!(RevocationList::read(text.as_bytes(), ca.der()).is_ok());
    }

    #[test]
    fn the_issuer_is_the_one_whose_key_has_signed() {
        let (ca, namesake) = (authority("One"), authority("One"));
        let leaf = CertificateParams::new(vec!["www.test".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &ca).unwrap();
        let of = |der: &[u8]| der.to_vec();
        let chain = [of(leaf.der()), of(namesake.der()), of(ca.der())];
        assert_eq!(issuer_within(&chain), Some(&chain[2]));
        assert_eq!(issuer_within(&chain[..2]), None);
        assert_eq!(issuer_within(&[]), None);
    }
}
