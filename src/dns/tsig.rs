//! Signatures of DNS messages by a shared key (TSIG, RFC 8945).

use std::fmt;

use aws_lc_rs::hmac as aws;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hickory_resolver::proto::rr::Name;
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use zeroize::Zeroizing;

/// How far the clocks of both sides may differ, in seconds (RFC 8945 §10).
pub const FUDGE: u16 = 300;
/// Type of the record (RFC 8945 §4.1).
const TSIG: u16 = 250;
/// Its class: ANY.
const ANY: u16 = 255;
/// Where a header counts the additional records.
const ADDITIONAL: std::ops::Range<usize> = 10..12;
/// Length of a header.
const HEADER: usize = 12;

/// The algorithms that cert-manager has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC-MD5, the default of old.
    Md5,
    /// HMAC-SHA-1.
    Sha1,
    /// HMAC-SHA-256.
    Sha256,
    /// HMAC-SHA-512.
    Sha512,
}

impl Algorithm {
    /// Reads it as solvers write it, such as `HMACSHA256`; none is MD5.
    ///
    /// # Errors
    /// Fails in cert-manager's words.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_uppercase().as_str() {
            "" | "HMACMD5" => Ok(Self::Md5),
            "HMACSHA1" => Ok(Self::Sha1),
            "HMACSHA256" => Ok(Self::Sha256),
            "HMACSHA512" => Ok(Self::Sha512),
            _ => Err(format!("algorithm '{text}' is not supported")),
        }
    }

    /// Its name on the wire (RFC 8945 §6).
    fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Md5 => &["hmac-md5", "sig-alg", "reg", "int"],
            Self::Sha1 => &["hmac-sha1"],
            Self::Sha256 => &["hmac-sha256"],
            Self::Sha512 => &["hmac-sha512"],
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.labels()[0])
    }
}

/// A key that a server shares with us.
#[derive(Clone)]
pub struct Key {
    name: Name,
    algorithm: Algorithm,
    secret: Zeroizing<Vec<u8>>,
}

impl Key {
    /// Takes a key whose secret is base64, as every server writes it; the final dot of the name may be left out.
    ///
    /// # Errors
    /// Fails with the reason when name or secret cannot be read.
    pub fn new(name: &str, algorithm: Algorithm, secret: &str) -> Result<Self, String> {
        let read = Name::from_ascii(name)
            .map_err(|_| format!("the TSIG key name \"{name}\" is not a DNS name"))?;
        let compact: Zeroizing<String> =
            Zeroizing::new(secret.chars().filter(|c| !c.is_ascii_whitespace()).collect());
        let secret = STANDARD
            .decode(compact.as_bytes())
            .map_err(|_| format!("the secret of the TSIG key \"{name}\" is not base64"))?;
        Ok(Self { name: read, algorithm, secret: Zeroizing::new(secret) })
    }

    /// The algorithm it is for.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn mac(&self, parts: &[&[u8]]) -> Vec<u8> {
        let algorithm = match self.algorithm {
            Algorithm::Md5 => {
                // Any length of key will do for HMAC.
                let Ok(mut mac) = Hmac::<Md5>::new_from_slice(&self.secret) else {
                    return Vec::new();
                };
                for part in parts {
                    mac.update(part);
                }
                return mac.finalize().into_bytes().to_vec();
            }
            Algorithm::Sha1 => aws::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Algorithm::Sha256 => aws::HMAC_SHA256,
            Algorithm::Sha512 => aws::HMAC_SHA512,
        };
        let mut mac = aws::Context::with_key(&aws::Key::new(algorithm, &self.secret));
        for part in parts {
            mac.update(part);
        }
        mac.sign().as_ref().to_vec()
    }

    /// Appends the signature to a message, at that moment in seconds since 1970; returns what its answer has to be verified
    /// with.
    pub(super) fn sign(&self, message: &mut Vec<u8>, now: u64) -> Signed<'_> {
        let id = [message[0], message[1]];
        let times = Times { signed: now, fudge: FUDGE, error: 0, other: Vec::new() };
        let mac = self.mac(&[message, &self.variables(&times)]);
        let mut record = canonical(&self.name);
        record.extend([TSIG, ANY].iter().flat_map(|number| number.to_be_bytes()));
        record.extend(0_u32.to_be_bytes());
        let data = [
            &algorithm_name(self.algorithm)[..],
            &times.head(),
            &length(&mac),
            &mac,
            &id,
            &times.tail(),
        ]
        .concat();
        record.extend(length(&data));
        record.extend(data);
        message.extend(record);
        let count = u16::from_be_bytes([message[ADDITIONAL.start], message[ADDITIONAL.start + 1]]);
        message[ADDITIONAL].copy_from_slice(&(count + 1).to_be_bytes());
        Signed { key: self, mac }
    }

    /// What is signed beside the message (RFC 8945 §4.3.3).
    fn variables(&self, times: &Times) -> Vec<u8> {
        [
            &canonical(&self.name)[..],
            &ANY.to_be_bytes(),
            &0_u32.to_be_bytes(),
            &algorithm_name(self.algorithm),
            &times.head(),
            &times.tail(),
        ]
        .concat()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} {})", self.name, self.algorithm)
    }
}

/// A request that was signed.
pub(super) struct Signed<'a> {
    key: &'a Key,
    mac: Vec<u8>,
}

/// What a server thought of our signature, and we of its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It signed the answer, and has this to say of ours: nothing, or `BADTIME`.
    Good(u16),
    /// It did not sign, and has this to say: `BADKEY`, `BADSIG`, or nothing at all.
    Unsigned(u16),
    /// Its signature does not hold.
    Bad,
    /// Its signature holds, but its clock differs too much from ours.
    Late,
}

impl Signed<'_> {
    /// Judges the answer to the request, at that moment (RFC 8945 §5.3).
    pub(super) fn verify(&self, answer: &[u8], now: u64) -> Verdict {
        let Some((start, record)) = last_record(answer).filter(|(_, record)| record.kind == TSIG)
        else {
            return Verdict::Unsigned(0);
        };
        let Some((mac, id, times)) = read_data(record.data) else { return Verdict::Bad };
        if mac.is_empty() {
            return Verdict::Unsigned(times.error);
        }
        let mut bare = answer[..start].to_vec();
        bare[..2].copy_from_slice(&id);
        let count = u16::from_be_bytes([bare[ADDITIONAL.start], bare[ADDITIONAL.start + 1]]);
        bare[ADDITIONAL].copy_from_slice(&count.saturating_sub(1).to_be_bytes());
        let parts: [&[u8]; 4] = [&length(&self.mac), &self.mac, &bare, &self.key.variables(&times)];
        let expected = self.key.mac(&parts);
        if aws_lc_rs::constant_time::verify_slices_are_equal(&expected, mac).is_err() {
            return Verdict::Bad;
        }
        // The server tells the time it has, when ours is what it objects to.
        if times.error == 0 && times.signed.abs_diff(now) > u64::from(times.fudge) {
            return Verdict::Late;
        }
        Verdict::Good(times.error)
    }
}

/// The part of a signature that is signed itself.
struct Times {
    signed: u64,
    fudge: u16,
    error: u16,
    other: Vec<u8>,
}

impl Times {
    fn head(&self) -> Vec<u8> {
        [&self.signed.to_be_bytes()[2..], &self.fudge.to_be_bytes()].concat()
    }

    fn tail(&self) -> Vec<u8> {
        [&self.error.to_be_bytes()[..], &length(&self.other), &self.other].concat()
    }
}

/// A record's type and data.
struct RecordData<'a> {
    kind: u16,
    data: &'a [u8],
}

/// The last record of a message, with where it begins; none when there is none, or the message cannot be read.
fn last_record(message: &[u8]) -> Option<(usize, RecordData<'_>)> {
    let counts: Vec<u16> = (4..HEADER).step_by(2).filter_map(|at| number(message, at)).collect();
    let [questions, records @ ..] = counts.as_slice() else { return None };
    let mut at = HEADER;
    for _ in 0..*questions {
        at = skip_name(message, at)? + 4;
    }
    let mut last = None;
    for _ in 0..records.iter().map(|count| u32::from(*count)).sum() {
        let start = at;
        at = skip_name(message, at)?;
        let kind = number(message, at)?;
        let end = at + 10 + usize::from(number(message, at + 8)?);
        last = Some((start, RecordData { kind, data: message.get(at + 10..end)? }));
        at = end;
    }
    last
}

/// Where the name at a place ends; it may end in a pointer (RFC 1035 §4.1.4).
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length if length >= 0xc0 => return Some(at + 2),
            length => at += 1 + usize::from(length),
        }
    }
}

/// Signature, original id and times of the data of a TSIG record.
fn read_data(data: &[u8]) -> Option<(&[u8], [u8; 2], Times)> {
    let at = skip_name(data, 0)?;
    let mut signed = [0; 8];
    signed[2..].copy_from_slice(data.get(at..at + 6)?);
    let fudge = number(data, at + 6)?;
    let size = usize::from(number(data, at + 8)?);
    let at = at + 10;
    let mac = data.get(at..at + size)?;
    let at = at + size;
    let id = number(data, at)?.to_be_bytes();
    let error = number(data, at + 2)?;
    let other = data.get(at + 6..at + 6 + usize::from(number(data, at + 4)?))?.to_vec();
    Some((mac, id, Times { signed: u64::from_be_bytes(signed), fudge, error, other }))
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The length of something, as it stands before it; nothing here is longer than a message.
fn length(bytes: &[u8]) -> [u8; 2] {
    u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes()
}

/// A name on the wire, in lower case and not compressed (RFC 4034 §6.2).
pub(super) fn canonical(name: &Name) -> Vec<u8> {
    labels(name.iter())
}

fn algorithm_name(algorithm: Algorithm) -> Vec<u8> {
    labels(algorithm.labels().iter().map(|label| label.as_bytes()))
}

fn labels<'a>(labels: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut wire = Vec::new();
    for label in labels {
        // A label has 63 octets at most.
        wire.push(u8::try_from(label.len()).unwrap_or_default());
        wire.extend(label.to_ascii_lowercase());
    }
    wire.push(0);
    wire
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn key(algorithm: Algorithm) -> Key {
        Key::new("Key.Example", algorithm, "c2VjcmV0").unwrap()
    }

    /// A message with one question, as small as it gets.
    fn message() -> Vec<u8> {
        [&[0x12, 0x34, 0x28, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &[0, 0, 6, 0, 1]].concat()
    }

    /// An answer to a request, signed by a server with this key, at this moment.
    fn answer(key: &Key, request: &Signed<'_>, times: &Times) -> Vec<u8> {
        let mut bare = message();
        bare[2] |= 0x80;
        let parts: [&[u8]; 4] = [&length(&request.mac), &request.mac, &bare, &key.variables(times)];
        let mac = key.mac(&parts);
        let mut signed = bare;
        key.sign(&mut signed, times.signed);
        // The signature of an answer covers that of its request.
        let place = signed.len() - times.tail().len() - 2 - mac.len();
        signed[place..place + mac.len()].copy_from_slice(&mac);
        signed
    }

    fn on_time(signed: u64) -> Times {
        Times { signed, fudge: FUDGE, error: 0, other: Vec::new() }
    }

    #[test]
    fn an_answer_is_good_when_its_signature_covers_ours() {
        for algorithm in [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512] {
            let key = key(algorithm);
            let (mut request, mut other) = (message(), message());
            let signed = key.sign(&mut request, NOW);
            let answered = answer(&key, &signed, &on_time(NOW));
            assert_eq!(signed.verify(&answered, NOW), Verdict::Good(0), "{algorithm}");
            let other = key.sign(&mut other, NOW + 1);
            assert_eq!(other.verify(&answered, NOW), Verdict::Bad, "{algorithm}");
        }
    }

    #[test]
    fn an_answer_that_was_changed_is_bad() {
        let key = key(Algorithm::Sha256);
        let mut request = message();
        let signed = key.sign(&mut request, NOW);
        let answered = answer(&key, &signed, &on_time(NOW));
        for at in [3, 13, answered.len() - 10] {
            let mut changed = answered.clone();
            changed[at] ^= 1;
            assert_eq!(signed.verify(&changed, NOW), Verdict::Bad, "octet {at}");
        }
        let strange = Key::new("key.example.", Algorithm::Sha256, "b3RoZXI=").unwrap();
        let forged = answer(&strange, &signed, &on_time(NOW));
        assert_eq!(signed.verify(&forged, NOW), Verdict::Bad);
    }

    #[test]
    fn an_answer_of_another_time_is_late() {
        let key = key(Algorithm::Sha1);
        let mut request = message();
        let signed = key.sign(&mut request, NOW);
        let fudge = u64::from(FUDGE);
        for (at, expected) in [
            (NOW + fudge, Verdict::Good(0)),
            (NOW - fudge, Verdict::Good(0)),
            (NOW + fudge + 1, Verdict::Late),
            (NOW - fudge - 1, Verdict::Late),
        ] {
            let answered = answer(&key, &signed, &on_time(at));
            assert_eq!(signed.verify(&answered, NOW), expected, "{at}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_good() {
        let key = key(Algorithm::Sha512);
        let mut request = message();
        let signed = key.sign(&mut request, NOW);
        let answered = answer(&key, &signed, &on_time(NOW));
        assert_eq!(signed.verify(&message(), NOW), Verdict::Unsigned(0));
        for length in 0..answered.len() {
            let verdict = signed.verify(&answered[..length], NOW);
            assert!(matches!(verdict, Verdict::Unsigned(0) | Verdict::Bad), "{length} octets");
        }
    }

    #[test]
    fn the_name_of_a_key_is_signed_in_lower_case_and_its_secret_is_never_printed() {
        let key = key(Algorithm::Md5);
        assert!(canonical(&key.name).starts_with(b"\x03key\x07example\0"));
        let printed = format!("{key:?}");
        assert_eq!(printed, "Key(Key.Example hmac-md5)");
    }

    #[test]
    fn a_key_that_cannot_be_read_says_why() {
        let read = |name: &str, secret: &str| Key::new(name, Algorithm::Md5, secret).err();
        assert_eq!(read("key.example.", " c2Vj\ncmV0\n"), None);
        let why = "the secret of the TSIG key \"key.\" is not base64";
        assert_eq!(read("key.", "no secret!").as_deref(), Some(why));
        let why = "the TSIG key name \"a..b\" is not a DNS name";
        assert_eq!(read("a..b", "").as_deref(), Some(why));
        assert_eq!(Algorithm::parse("hmacsha512"), Ok(Algorithm::Sha512));
        let why = "algorithm 'HMACSHA384' is not supported";
        assert_eq!(Algorithm::parse("HMACSHA384"), Err(why.to_owned()));
    }
}
