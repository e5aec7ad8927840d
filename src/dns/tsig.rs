//! Signatures of DNS messages by a shared key (TSIG, RFC 8945), over the bytes as sent and as received.

use std::fmt;

use aws_lc_rs::hmac as aws;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::op::{Header, Query};
use hickory_resolver::proto::rr::rdata::TSIG;
use hickory_resolver::proto::rr::rdata::tsig::{TsigAlgorithm, make_tsig_record};
use hickory_resolver::proto::rr::{Name, RData, Record};
use hickory_resolver::proto::serialize::binary::{
    BinDecodable as _, BinDecoder, BinEncodable as _, BinEncoder, NameEncoding,
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use zeroize::Zeroizing;

/// Largest difference between the clocks of both sides, in seconds (RFC 8945 §10).
pub const FUDGE: u16 = 300;
/// Bytes of a header that count the additional records.
const ADDITIONAL: std::ops::Range<usize> = 10..12;

/// Algorithms that cert-manager has.
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
    /// Reads the name of an algorithm as solvers write it, such as `HMACSHA256`; an empty text is MD5.
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

    /// Name of the algorithm on the wire (RFC 8945 §6).
    fn name(self) -> &'static str {
        match self {
            Self::Md5 => "hmac-md5.sig-alg.reg.int",
            Self::Sha1 => "hmac-sha1",
            Self::Sha256 => "hmac-sha256",
            Self::Sha512 => "hmac-sha512",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().split('.').next().unwrap_or_default())
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
    /// Makes a key from a secret in base64, as every server writes it; the final dot of the name may be left out.
    ///
    /// # Errors
    /// Fails with the reason if the name or the secret cannot be read.
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

    /// Algorithm of the key.
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

    /// Appends the signature to a message, at the moment `now` in seconds since 1970; returns the value that verifies
    /// the answer.
    pub(super) fn sign(&self, message: &mut Vec<u8>, now: u64) -> Signed<'_> {
        let unsigned = self.unsigned(message, now);
        let mac = self.mac(&[message, &self.variables(&unsigned)]);
        self.append(message, unsigned.set_mac(mac.clone()));
        Signed { key: self, mac }
    }

    /// Makes the signature record of a message, without the signature itself.
    fn unsigned(&self, message: &[u8], now: u64) -> TSIG {
        let algorithm = Name::from_ascii(self.algorithm.name()).unwrap_or_default();
        let id = u16::from_be_bytes([message[0], message[1]]);
        let algorithm = TsigAlgorithm::from_name(algorithm);
        TSIG::new(algorithm, now, FUDGE, Vec::new(), id, None, Vec::new())
    }

    fn append(&self, message: &mut Vec<u8>, signature: TSIG) {
        let record = make_tsig_record(self.name.clone(), signature);
        // A name and a signature always fit.
        message.extend(canonical(|encoder| record.emit(encoder)).unwrap_or_default());
        count_additional(message, 1);
    }

    /// Computes the signature of an answer, which covers the signature of its request.
    fn mac_of_answer(&self, request: &[u8], answer: &[u8], signature: &TSIG) -> Vec<u8> {
        let length = u16::try_from(request.len()).unwrap_or(u16::MAX).to_be_bytes();
        self.mac(&[&length, request, answer, &self.variables(signature)])
    }

    /// Data that is signed beside the message (RFC 8945 §4.3.3).
    fn variables(&self, signature: &TSIG) -> Vec<u8> {
        canonical(|encoder| signature.emit_tsig_for_mac(encoder, &self.name)).unwrap_or_default()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} {})", self.name, self.algorithm)
    }
}

/// Recursion available, in the fourth octet of a header (RFC 1035 §4.1.1).
const RA: u8 = 0x80;
/// Authentic data, in the same octet (RFC 4035 §3.1.6).
const AD: u8 = 0x20;

/// A request that was signed.
pub(super) struct Signed<'a> {
    key: &'a Key,
    mac: Vec<u8>,
}

/// Outcome of both signatures: the server's opinion of ours, and ours of the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The server signed the answer, with this error about our signature: none (0), or `BADTIME`.
    Good(u16),
    /// The server did not sign, with this error: `BADKEY`, `BADSIG`, or none (0).
    Unsigned(u16),
    /// The server sent our own signature back: a resolver that knows no updates copies records that it does not read.
    Echoed,
    /// The signature of the answer is wrong.
    Bad,
    /// The signature holds for the answer without the bits that only a resolver sets: a forwarder stands in between.
    Forwarded,
    /// The signature of the answer holds, but the server's clock differs too much from ours.
    Late,
}

impl Signed<'_> {
    /// Checks the answer to the request, at the moment `now` (RFC 8945 §5.3).
    pub(super) fn verify(&self, answer: &[u8], now: u64) -> Verdict {
        let Some((start, signature)) = last_signature(answer) else {
            return Verdict::Unsigned(0);
        };
        let error = signature.error.map_or(0, u16::from);
        if signature.mac.is_empty() {
            return Verdict::Unsigned(error);
        }
        if signature.mac == self.mac {
            return Verdict::Echoed;
        }
        let mut bare = answer[..start].to_vec();
        bare[..2].copy_from_slice(&signature.oid.to_be_bytes());
        count_additional(&mut bare, -1);
        let holds = |bare: &[u8]| {
            let expected = self.key.mac_of_answer(&self.mac, bare, &signature);
            aws_lc_rs::constant_time::verify_slices_are_equal(&expected, &signature.mac).is_ok()
        };
        if !holds(&bare) {
            bare[3] &= !(RA | AD);
            return if holds(&bare) { Verdict::Forwarded } else { Verdict::Bad };
        }
        // A server that objects to our time states its own.
        if error == 0 && signature.time.abs_diff(now) > u64::from(signature.fudge) {
            return Verdict::Late;
        }
        Verdict::Good(error)
    }
}

/// Signature of a message, and its position; `None` if the last record is no signature, or the message is unreadable.
fn last_signature(message: &[u8]) -> Option<(usize, TSIG)> {
    let mut decoder = BinDecoder::new(message);
    let counts = Header::read(&mut decoder).ok()?.counts;
    for _ in 0..counts.queries {
        Query::read(&mut decoder).ok()?;
    }
    let records = [counts.answers, counts.authorities, counts.additionals];
    let mut last = None;
    for _ in 0..records.into_iter().map(u32::from).sum() {
        last = Some((decoder.index(), Record::read(&mut decoder).ok()?.data));
    }
    match last? {
        (start, RData::TSIG(signature)) => Some((start, signature)),
        _ => None,
    }
}

/// Adds `change` to the count of additional records in the header of a message.
fn count_additional(message: &mut [u8], change: i16) {
    let count = u16::from_be_bytes([message[ADDITIONAL.start], message[ADDITIONAL.start + 1]]);
    message[ADDITIONAL].copy_from_slice(&count.saturating_add_signed(change).to_be_bytes());
}

/// Encodes with names in lower case and not compressed (RFC 4034 §6.2); `None` if too large for a message.
pub(super) fn canonical(
    write: impl FnOnce(&mut BinEncoder<'_>) -> Result<(), ProtoError>,
) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = BinEncoder::new(&mut bytes);
    encoder.set_name_encoding(NameEncoding::UncompressedLowercase);
    write(&mut encoder).ok()?;
    Some(bytes)
}

#[cfg(test)]
pub(super) mod tests {
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
    fn answer(key: &Key, request: &Signed<'_>, now: u64) -> Vec<u8> {
        let mut bare = message();
        bare[2] |= 0x80;
        sign_answer(key, &request.mac, bare, now)
    }

    /// Signs an answer to a request, given as received.
    pub(in crate::dns) fn signed_answer(
        key: &Key,
        request: &[u8],
        bare: Vec<u8>,
        now: u64,
    ) -> Vec<u8> {
        sign_answer(key, &last_signature(request).unwrap().1.mac, bare, now)
    }

    fn sign_answer(key: &Key, request: &[u8], mut bare: Vec<u8>, now: u64) -> Vec<u8> {
        let unsigned = key.unsigned(&bare, now);
        let mac = key.mac_of_answer(request, &bare, &unsigned);
        key.append(&mut bare, unsigned.set_mac(mac));
        bare
    }

    #[test]
    fn an_answer_is_good_when_its_signature_covers_ours() {
        for algorithm in [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512] {
            let key = key(algorithm);
            let (mut request, mut other) = (message(), message());
            let signed = key.sign(&mut request, NOW);
            let answered = answer(&key, &signed, NOW);
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
        let answered = answer(&key, &signed, NOW);
        for at in [3, 13, answered.len() - 10] {
            let mut changed = answered.clone();
            changed[at] ^= 1;
            assert_eq!(signed.verify(&changed, NOW), Verdict::Bad, "octet {at}");
        }
        let strange = Key::new("key.example.", Algorithm::Sha256, "b3RoZXI=").unwrap();
        let forged = answer(&strange, &signed, NOW);
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
            let answered = answer(&key, &signed, at);
            assert_eq!(signed.verify(&answered, NOW), expected, "{at}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_good() {
        let key = key(Algorithm::Sha512);
        let mut request = message();
        let signed = key.sign(&mut request, NOW);
        let answered = answer(&key, &signed, NOW);
        assert_eq!(signed.verify(&message(), NOW), Verdict::Unsigned(0));
        for length in 0..answered.len() {
            let verdict = signed.verify(&answered[..length], NOW);
            assert!(matches!(verdict, Verdict::Unsigned(0) | Verdict::Bad), "{length} octets");
        }
    }

    #[test]
    fn the_name_of_a_key_is_signed_in_lower_case_and_its_secret_is_never_printed() {
        let key = key(Algorithm::Md5);
        let signed = key.variables(&key.unsigned(&message(), NOW));
        assert!(signed.starts_with(b"\x03key\x07example\0"));
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
