//! OCSP client (RFC 6960, RFC 5019). An answer counts if it is signed by the issuer of the certificate or by a delegate
//! of the issuer, is about that certificate, and is not to be replaced yet. No nonce is sent: few responders take one.
//!
//! The crate x509-ocsp, built on der 0.7, would bring second generations of `der`, `spki` and `const-oid`: requests are
//! written by our own writer, and answers are read by the library that reads certificates here.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use der::Tag as Written;
use jiff::{SignedDuration, Timestamp};
use x509_parser::asn1_rs::{Any, BitString, Class, Oid, Tag, oid};
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::{ParsedExtension, X509Extension};
use x509_parser::nom;
use x509_parser::prelude::FromDer as _;
use x509_parser::time::ASN1Time;
use x509_parser::x509::{AlgorithmIdentifier, SubjectPublicKeyInfo};

use super::chain::{moment, parse_one};
use super::revocation_list::{ListedRevocation, word};
use super::{der as writer, x509};

/// Hash algorithm of requests, SHA-1: all responders take it, and nothing rests on its strength (RFC 6960 §4.3).
const SHA1: Oid<'static> = oid!(1.3.14.3.2.26);
/// Type of the answers that all responders give.
const BASIC: Oid<'static> = oid!(1.3.6.1.5.5.7.48.1.1);
/// Largest lead of a responder's clock.
const CLOCK_LEAD_MAX: SignedDuration = SignedDuration::from_mins(5);
/// Longest age of an answer that states no end: newer answers are to be had at any time (RFC 6960 §4.2.2.1).
const OPEN_ENDED_AGE_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Question whether a certificate was revoked.
#[derive(Debug)]
pub struct OcspQuestion<'a> {
    issuer: X509Certificate<'a>,
    serial: Vec<u8>,
}

/// Answer of a responder about a certificate, after all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OcspAnswer {
    /// Revocation; `None` if the certificate was not revoked.
    pub revoked: Option<ListedRevocation>,
    /// Time by which there is another answer.
    pub next_update: Option<Timestamp>,
}

/// Reason why an answer does not count for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OcspFault {
    /// The bytes are no OCSP answer.
    #[error("it cannot be read as an answer of OCSP: {0}")]
    Unreadable(String),
    /// The responder refuses to answer the request.
    #[error("the responder refuses to answer: {0}")]
    Refused(&'static str),
    /// The responder does not know the certificate.
    #[error("the responder does not know the certificate")]
    NotKnown,
    /// The answer is about other certificates.
    #[error("the answer is about another certificate")]
    OtherCertificate,
    /// The signer's certificate is not in the answer.
    #[error("the answer is signed by somebody whose certificate is not in it")]
    UnknownSigner,
    /// The signer may not answer for the issuer.
    #[error("whoever has signed the answer may not answer for the issuer: {0}")]
    NoDelegate(&'static str),
    /// The answer was not signed by the key that the answer names.
    #[error("the signature of the answer is wrong")]
    BadSignature,
    /// The signature cannot be checked here.
    #[error("the answer is signed in a way that cannot be checked here")]
    UnknownSignature,
    /// The answer holds a critical extension that is not known here.
    #[error("the answer has a critical extension that is not known here")]
    Critical,
    /// The answer begins in the future.
    #[error("the answer is of {0}, which is to come")]
    Future(Timestamp),
    /// The answer was to be replaced by now.
    #[error("the answer was to be replaced by {0}")]
    Outdated(Timestamp),
    /// The answer states no end, and is old.
    #[error("the answer is of {0}, and does not say how long it counts")]
    Old(Timestamp),
}

use OcspFault as Fault;

impl<'a> OcspQuestion<'a> {
    /// Makes the question about the certificate with that serial number that `issuer` (DER) has signed.
    ///
    /// # Errors
    /// Fails if the issuer cannot be read.
    pub fn about(serial: &[u8], issuer: &'a [u8]) -> Result<Self, OcspFault> {
        let issuer = parse_one(issuer).map_err(Fault::Unreadable)?;
        Ok(Self { issuer, serial: serial.to_vec() })
    }

    /// The request, DER (RFC 6960 §4.1.1).
    pub fn request(&self) -> Vec<u8> {
        let sequence = |parts: &[Vec<u8>]| writer::constructed(Written::Sequence, parts);
        let octets = |bytes: Vec<u8>| writer::element(Written::OctetString, &bytes);
        let sha1 = writer::element(Written::ObjectIdentifier, SHA1.as_bytes());
        let id = sequence(&[
            sequence(&[sha1, writer::element(Written::Null, &[])]),
            octets(self.issuer_name()),
            octets(self.issuer_key()),
            writer::element(Written::Integer, &self.serial),
        ]);
        sequence(&[sequence(&[sequence(&[sequence(&[id])])])])
    }

    /// Reads an answer, DER.
    ///
    /// # Errors
    /// Fails if the answer does not count now, or not for that certificate.
    pub fn read(&self, answer: &[u8], now: Timestamp) -> Result<OcspAnswer, OcspFault> {
        let [whole] = &parts(answer)?[..] else { return Err(unreadable("it is not one thing")) };
        let fields = whole.parts(Tag::Sequence)?;
        let (status, body) = fields.split_first().ok_or_else(|| unreadable("it is empty"))?;
        match status.of(Tag::Enumerated)? {
            [0] => {}
            refused => return Err(Fault::Refused(refusal(refused))),
        }
        let body = body.first().ok_or_else(|| unreadable("it says nothing"))?.within(0)?;
        let [sort, basic] = &body.parts(Tag::Sequence)?[..] else {
            return Err(unreadable("its sort is not told"));
        };
        if sort.of(Tag::Oid)? != BASIC.as_bytes() {
            return Err(unreadable("it is of another sort than the basic one"));
        }
        let [basic] = &parts(basic.of(Tag::OctetString)?)?[..] else {
            return Err(unreadable("it is not one thing"));
        };
        let fields = basic.parts(Tag::Sequence)?;
        let [data, algorithm, signature, certificates @ ..] = &fields[..] else {
            return Err(unreadable("it is not signed"));
        };
        let mut said = data.parts(Tag::Sequence)?;
        if said.first().is_some_and(|first| first.is(0)) {
            said.remove(0); // the version
        }
        let [by, _, answers, more @ ..] = &said[..] else {
            return Err(unreadable("a field is missing"));
        };
        let certificates = match certificates.first() {
            Some(list) => list.within(0)?.parts(Tag::Sequence)?,
            None => Vec::new(),
        };
        self.check_signature(by, data.whole, (algorithm, signature), (&certificates, now))?;
        none_is_critical(more, 1)?;
        for answer in answers.parts(Tag::Sequence)? {
            if let Some(answer) = self.single(&answer, now)? {
                return Ok(answer);
            }
        }
        Err(Fault::OtherCertificate)
    }

    /// Reads one of the single answers; `None` if the answer is about another certificate.
    fn single(
        &self,
        answer: &DerPart<'_>,
        now: Timestamp,
    ) -> Result<Option<OcspAnswer>, OcspFault> {
        let fields = answer.parts(Tag::Sequence)?;
        let [id, status, this_update, more @ ..] = &fields[..] else {
            return Err(unreadable("a field of an answer is missing"));
        };
        let [hash, name, key, serial] = &id.parts(Tag::Sequence)?[..] else {
            return Err(unreadable("an answer is about nothing"));
        };
        let hash = hash.parts(Tag::Sequence)?;
        let is_sha1 = hash.first().is_some_and(|hash| hash.of(Tag::Oid) == Ok(SHA1.as_bytes()));
        let is_ours = is_sha1
            && name.of(Tag::OctetString)? == self.issuer_name()
            && key.of(Tag::OctetString)? == self.issuer_key()
            && serial.of(Tag::Integer)? == self.serial;
        if !is_ours {
            return Ok(None);
        }
        none_is_critical(more, 1)?;
        let this_update = this_update.time()?;
        let next_update = more.iter().find(|part| part.is(0));
        let next_update = next_update.map(|part| part.within(0)?.time()).transpose()?;
        if this_update.duration_since(now) > CLOCK_LEAD_MAX {
            return Err(Fault::Future(this_update));
        }
        match next_update {
            Some(next) if next < now => return Err(Fault::Outdated(next)),
            None if now.duration_since(this_update) > OPEN_ENDED_AGE_MAX => {
                return Err(Fault::Old(this_update));
            }
            Some(_) | None => {}
        }
        let revoked = match status.number() {
            Some(0) => None,
            Some(1) => {
                let said = parts(status.content)?;
                let at = said.first().ok_or_else(|| unreadable("a moment is missing"))?.time()?;
                let reason = said.get(1).map(|part| part.within(0)).transpose()?;
                let reason = reason.map(|part| part.of(Tag::Enumerated)).transpose()?;
                let reason = reason.and_then(|code| word(*code.first()?));
                Some(ListedRevocation { at, reason })
            }
            Some(2) => return Err(Fault::NotKnown),
            Some(_) | None => return Err(unreadable("it says something else than RFC 6960 has")),
        };
        Ok(Some(OcspAnswer { revoked, next_update }))
    }

    /// Finds the signer of an answer, and checks that the signer may answer and that the signature is right.
    fn check_signature(
        &self,
        by: &DerPart<'_>,
        data: &[u8],
        (algorithm, signature): (&DerPart<'_>, &DerPart<'_>),
        (certificates, now): (&[DerPart<'_>], Timestamp),
    ) -> Result<(), OcspFault> {
        // The library takes any other kind of element for an object identifier.
        let names = algorithm.parts(Tag::Sequence)?;
        names.first().ok_or_else(|| unreadable("its signature is of no sort"))?.of(Tag::Oid)?;
        let (_, algorithm) = AlgorithmIdentifier::from_der(algorithm.whole).map_err(no_der)?;
        let (_, signature) = BitString::from_der(signature.whole).map_err(no_der)?;
        if signature.unused_bits != 0 {
            return Err(Fault::BadSignature);
        }
        let verify = |key: &SubjectPublicKeyInfo<'_>| {
            x509::verify(key, &algorithm, &signature, data).map_err(|error| match error {
                X509Error::SignatureUnsupportedAlgorithm => Fault::UnknownSignature,
                _ => Fault::BadSignature,
            })
        };
        if is_by(by, &self.issuer)? {
            return verify(self.issuer.public_key());
        }
        for certificate in certificates {
            let signer = parse_one(certificate.whole).map_err(Fault::Unreadable)?;
            if is_by(by, &signer)? {
                self.check_delegate(&signer, now)?;
                return verify(signer.public_key());
            }
        }
        Err(Fault::UnknownSigner)
    }

    /// Checks that the issuer lets a signer answer (RFC 6960 §4.2.2.2).
    fn check_delegate(
        &self,
        signer: &X509Certificate<'_>,
        now: Timestamp,
    ) -> Result<(), OcspFault> {
        let issuer = &self.issuer;
        let (algorithm, signature) = (&signer.signature_algorithm, &signer.signature_value);
        let is_certified = signer.issuer().as_raw() == issuer.subject().as_raw()
            && x509::verify(
                issuer.public_key(),
                algorithm,
                signature,
                signer.tbs_certificate.as_ref(),
            )
            .is_ok();
        if !is_certified {
            return Err(Fault::NoDelegate("its certificate is not by the issuer"));
        }
        let may_answer = signer.extensions().iter().any(|extension| {
            matches!(extension.parsed_extension(), ParsedExtension::ExtendedKeyUsage(of) if of.ocsp_signing)
        });
        if !may_answer {
            return Err(Fault::NoDelegate("its certificate is not for signing answers of OCSP"));
        }
        let (start, end) = (signer.validity().not_before, signer.validity().not_after);
        let now = now.as_second();
        if now < start.timestamp() || now > end.timestamp() {
            return Err(Fault::NoDelegate("the time of its certificate is over, or to come"));
        }
        Ok(())
    }

    fn issuer_name(&self) -> Vec<u8> {
        sha1_of(self.issuer.subject().as_raw())
    }

    fn issuer_key(&self) -> Vec<u8> {
        sha1_of(&self.issuer.public_key().subject_public_key.data)
    }
}

fn sha1_of(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec()
}

/// Returns whether an answer names this signer, by name or by key.
fn is_by(by: &DerPart<'_>, signer: &X509Certificate<'_>) -> Result<bool, OcspFault> {
    let key = || sha1_of(&signer.public_key().subject_public_key.data);
    match by.number() {
        Some(1) => Ok(by.content == signer.subject().as_raw()),
        Some(2) => Ok(by.within(2)?.of(Tag::OctetString)? == key()),
        Some(_) | None => Err(unreadable("whoever has signed it is not told")),
    }
}

/// Checks that no extension in the field of that number is critical, if the field is there.
fn none_is_critical(fields: &[DerPart<'_>], number: u32) -> Result<(), OcspFault> {
    let Some(extensions) = fields.iter().find(|field| field.is(number)) else { return Ok(()) };
    for extension in extensions.within(number)?.parts(Tag::Sequence)? {
        let (_, extension) = X509Extension::from_der(extension.whole).map_err(no_der)?;
        if extension.critical {
            return Err(Fault::Critical);
        }
    }
    Ok(())
}

/// Returns the term of RFC 6960 §4.2.1 for a refusal.
fn refusal(status: &[u8]) -> &'static str {
    match status {
        [1] => "malformedRequest",
        [2] => "internalError",
        [3] => "tryLater",
        [5] => "sigRequired",
        [6] => "unauthorized",
        _ => "by a status that RFC 6960 does not have",
    }
}

/// One element of DER.
#[derive(Debug)]
struct DerPart<'a> {
    class: Class,
    tag: Tag,
    content: &'a [u8],
    /// Content with tag and length.
    whole: &'a [u8],
}

impl<'a> DerPart<'a> {
    /// Returns the content if the element has that tag.
    fn of(&self, tag: Tag) -> Result<&'a [u8], OcspFault> {
        if (self.class, self.tag) == (Class::Universal, tag) {
            return Ok(self.content);
        }
        Err(unreadable(&format!("{tag:?} is missing")))
    }

    /// Returns the child elements if the element has that tag.
    fn parts(&self, tag: Tag) -> Result<Vec<Self>, OcspFault> {
        parts(self.of(tag)?)
    }

    /// Number of the field; `None` if the element is no numbered field.
    fn number(&self) -> Option<u32> {
        (self.class == Class::ContextSpecific).then_some(self.tag.0)
    }

    fn is(&self, number: u32) -> bool {
        self.number() == Some(number)
    }

    /// Returns the one element in the field of that number.
    fn within(&self, number: u32) -> Result<Self, OcspFault> {
        let mut inner = if self.is(number) { parts(self.content)? } else { Vec::new() };
        match (inner.pop(), inner.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => Err(unreadable(&format!("field {number} is missing"))),
        }
    }

    fn time(&self) -> Result<Timestamp, OcspFault> {
        self.of(Tag::GeneralizedTime)?;
        let (_, time) = ASN1Time::from_der(self.whole).map_err(no_der)?;
        moment(time.timestamp()).map_err(Fault::Unreadable)
    }
}

/// Reads the elements that follow each other.
fn parts(mut content: &[u8]) -> Result<Vec<DerPart<'_>>, OcspFault> {
    let mut all = Vec::new();
    while !content.is_empty() {
        let (rest, any) = Any::from_der(content).map_err(no_der)?;
        let whole = &content[..content.len() - rest.len()];
        all.push(DerPart { class: any.class(), tag: any.tag(), content: any.data, whole });
        content = rest;
    }
    Ok(all)
}

fn unreadable(why: &str) -> OcspFault {
    Fault::Unreadable(why.to_owned())
}

fn no_der<E: std::fmt::Debug>(error: nom::Err<E>) -> OcspFault {
    match error {
        nom::Err::Error(why) | nom::Err::Failure(why) => Fault::Unreadable(format!("{why:?}")),
        nom::Err::Incomplete(_) => unreadable("it ends too early"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use der::Tag as T;
    use jiff::tz::TimeZone;
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose,
        IsCa, KeyPair, SigningKey as _,
    };

    use super::*;

    const NOW: i64 = 1_800_000_000;
    const HOUR: i64 = 3_600;
    /// AlgorithmIdentifier of ECDSA with SHA-256.
    const ECDSA: &[u8] = &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];

    type Issuer = CertifiedIssuer<'static, KeyPair>;

    /// Draft of a responder's answer; every field is right until a test changes it.
    struct Draft {
        status: Vec<u8>,
        this_update: i64,
        next_update: Option<i64>,
        serial: u8,
        single_extensions: Option<bool>,
        extensions: Option<bool>,
        hash: Vec<u8>,
    }

    impl Default for Draft {
        fn default() -> Self {
            Self {
                status: vec![0x80, 0],
                this_update: NOW - HOUR,
                next_update: Some(NOW + HOUR),
                serial: 7,
                single_extensions: None,
                extensions: None,
                hash: SHA1.as_bytes().to_vec(),
            }
        }
    }

    fn authority(name: &str) -> Issuer {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
        writer::constructed(T::Sequence, parts)
    }

    fn time(at: i64) -> Vec<u8> {
        let at = Timestamp::from_second(at).unwrap().to_zoned(TimeZone::UTC);
        writer::element(T::GeneralizedTime, at.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes())
    }

    fn extensions(number: u32, critical: Option<bool>) -> Vec<u8> {
        let Some(critical) = critical else { return Vec::new() };
        let oid = vec![6, 3, 0x2a, 3, 4];
        let critical = if critical { vec![1, 1, 0xff] } else { Vec::new() };
        let value = writer::element(T::OctetString, &[5, 0]);
        writer::explicit(number, &sequence(&[sequence(&[oid, critical, value])]))
    }

    impl Draft {
        /// The answer about a certificate of that issuer, by whoever has that key; with these certificates in it.
        fn signed(&self, issuer: &Issuer, by: &[u8], key: &KeyPair, more: &[Vec<u8>]) -> Vec<u8> {
            let question = OcspQuestion::about(&[7], issuer.der()).unwrap();
            let octets = |bytes: &[u8]| writer::element(T::OctetString, bytes);
            let id = sequence(&[
                sequence(&[writer::element(T::ObjectIdentifier, &self.hash)]),
                octets(&question.issuer_name()),
                octets(&question.issuer_key()),
                vec![2, 1, self.serial],
            ]);
            let next = self.next_update.map(|next| writer::explicit(0, &time(next)));
            let single = sequence(&[
                id,
                self.status.clone(),
                time(self.this_update),
                next.unwrap_or_default(),
                extensions(1, self.single_extensions),
            ]);
            let data = sequence(&[
                by.to_vec(),
                time(self.this_update),
                sequence(&[single]),
                extensions(1, self.extensions),
            ]);
            let signature = writer::bit_string(&key.sign(&data).unwrap());
            let certificates = match more {
                [] => Vec::new(),
                more => writer::explicit(0, &sequence(more)),
            };
            let basic = sequence(&[data, ECDSA.to_vec(), signature, certificates]);
            let sort = writer::element(T::ObjectIdentifier, BASIC.as_bytes());
            let body = sequence(&[sort, octets(&basic)]);
            sequence(&[vec![0x0a, 1, 0], writer::explicit(0, &body)])
        }
    }

    fn by_name(signer: &[u8]) -> Vec<u8> {
        writer::explicit(1, parse_one(signer).unwrap().subject().as_raw())
    }

    fn read(answer: &[u8], issuer: &Issuer) -> Result<OcspAnswer, OcspFault> {
        let question = OcspQuestion::about(&[7], issuer.der()).unwrap();
        question.read(answer, Timestamp::from_second(NOW).unwrap())
    }

    /// Reads an answer of the issuer itself that `change` has altered.
    fn says(change: impl FnOnce(&mut Draft)) -> Result<Option<&'static str>, String> {
        let issuer = authority("One");
        let mut draft = Draft::default();
        change(&mut draft);
        let answer = draft.signed(&issuer, &by_name(issuer.der()), issuer.key(), &[]);
        let read = read(&answer, &issuer).map_err(|fault| fault.to_string())?;
        Ok(read.revoked.map(|it| it.reason.unwrap_or("no reason")))
    }

    fn revoked(reason: &[u8]) -> Vec<u8> {
        let parts = [&time(NOW - HOUR)[..], reason].concat();
        writer::element(writer_tag(1), &parts)
    }

    fn writer_tag(number: u32) -> T {
        der::TagNumber(number).context_specific(true)
    }

    #[test]
    fn an_answer_says_good_or_revoked_and_why() {
        assert_eq!(says(|_| ()), Ok(None));
        let key_compromise = [0xa0, 3, 0x0a, 1, 1];
        assert_eq!(says(|it| it.status = revoked(&key_compromise)), Ok(Some("keyCompromise")));
        assert_eq!(says(|it| it.status = revoked(&[])), Ok(Some("no reason")));
        let unknown = "the responder does not know the certificate";
        assert_eq!(says(|it| it.status = vec![0x82, 0]), Err(unknown.to_owned()));
        assert_eq!(says(|it| it.extensions = Some(false)), Ok(None));
        assert_eq!(says(|it| it.single_extensions = Some(false)), Ok(None));
    }

    #[test]
    fn an_answer_that_does_not_count_says_nothing_not_even_that_it_was_revoked() {
        for (change, why) in [
            (
                (|it| it.next_update = Some(NOW - 60)) as fn(&mut Draft),
                "the answer was to be replaced by 2027-01-15T07:59:00Z",
            ),
            (
                |it| it.this_update = NOW + 600,
                "the answer is of 2027-01-15T08:10:00Z, which is to come",
            ),
            (
                |it| (it.this_update, it.next_update) = (NOW - 25 * HOUR, None),
                "the answer is of 2027-01-14T07:00:00Z, and does not say how long it counts",
            ),
            (|it| it.serial = 8, "the answer is about another certificate"),
            (|it| it.hash = vec![0x2a, 3], "the answer is about another certificate"),
            (
                |it| it.extensions = Some(true),
                "the answer has a critical extension that is not known here",
            ),
            (
                |it| it.single_extensions = Some(true),
                "the answer has a critical extension that is not known here",
            ),
        ] {
            for status in [vec![0x80, 0], revoked(&[])] {
                let mut draft = Draft { status, ..Draft::default() };
                change(&mut draft);
                let issuer = authority("One");
                let answer = draft.signed(&issuer, &by_name(issuer.der()), issuer.key(), &[]);
                assert_eq!(read(&answer, &issuer).unwrap_err().to_string(), why);
            }
        }
        // What says nothing of its end counts for a day.
        assert_eq!(says(|it| it.next_update = None), Ok(None));
    }

    #[test]
    fn whoever_signs_has_to_be_the_issuer_or_let_by_it() {
        let (one, namesake, two) = (authority("One"), authority("One"), authority("Two"));
        let draft = Draft::default();
        let by = by_name(one.der());
        let of = |answer: &[u8]| read(answer, &one);
        let key_hash = sha1_of(&parse_one(one.der()).unwrap().public_key().subject_public_key.data);
        let by_key = writer::explicit(2, &writer::element(T::OctetString, &key_hash));
        assert!(of(&draft.signed(&one, &by_key, one.key(), &[])).is_ok());
        let forged = of(&draft.signed(&one, &by, namesake.key(), &[]));
        assert_eq!(forged, Err(OcspFault::BadSignature));
        let other = of(&draft.signed(&one, &by_name(two.der()), two.key(), &[]));
        assert_eq!(other, Err(OcspFault::UnknownSigner));
        let other = draft.signed(&one, &by_name(two.der()), two.key(), &[two.der().to_vec()]);
        let why = "its certificate is not by the issuer";
        assert_eq!(of(&other), Err(OcspFault::NoDelegate(why)));

        let delegate = |by: &Issuer, may_answer: bool, hours: (i64, i64)| {
            let key = KeyPair::generate().unwrap();
            let at = |seconds: i64| {
                let second = u64::try_from(NOW + seconds).unwrap();
                SystemTime::UNIX_EPOCH + Duration::from_secs(second)
            };
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, "Responder");
            let usage = ExtendedKeyUsagePurpose::OcspSigning;
            params.extended_key_usages = if may_answer { vec![usage] } else { Vec::new() };
            params.not_before = at(hours.0 * HOUR).into();
            params.not_after = at(hours.1 * HOUR).into();
            let signer = params.signed_by(&key, by).unwrap().der().to_vec();
            of(&draft.signed(&one, &by_name(&signer), &key, &[two.der().to_vec(), signer]))
        };
        assert!(delegate(&one, true, (-1, 1)).is_ok());
        for (by, may_answer, hours, why) in [
            (&namesake, true, (-1, 1), why),
            (&two, true, (-1, 1), why),
            (&one, false, (-1, 1), "its certificate is not for signing answers of OCSP"),
            (&one, true, (-2, -1), "the time of its certificate is over, or to come"),
            (&one, true, (1, 2), "the time of its certificate is over, or to come"),
        ] {
            assert_eq!(delegate(by, may_answer, hours), Err(OcspFault::NoDelegate(why)));
        }
    }

    #[test]
    fn what_is_no_answer_is_told_as_such_wherever_it_ends() {
        let issuer = authority("One");
        let answer = Draft::default().signed(&issuer, &by_name(issuer.der()), issuer.key(), &[]);
        for end in 0..answer.len() {
            let cut = read(&answer[..end], &issuer);
            assert!(matches!(cut, Err(OcspFault::Unreadable(_))), "{end}: {cut:?}");
        }
        let longer = [&answer[..], &[5, 0]].concat();
        assert!(matches!(read(&longer, &issuer), Err(OcspFault::Unreadable(_))));
        for at in 0..answer.len() {
            let mut changed = answer.clone();
            changed[at] ^= 0x11;
            let seen = read(&changed, &issuer);
            assert!(seen.is_err(), "byte {at} of {answer:02x?} is of no account");
        }
        assert!(matches!(read(b"<html>", &issuer), Err(OcspFault::Unreadable(_))));
        for (code, word) in [(1, "malformedRequest"), (3, "tryLater"), (6, "unauthorized")] {
            let refused = read(&[0x30, 3, 0x0a, 1, code], &issuer);
            assert_eq!(refused, Err(OcspFault::Refused(word)));
        }
    }
}
