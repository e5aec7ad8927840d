//! Protection of the parts of a PKCS#12 file: ciphers and seals, with keys derived from the password.

use aws_lc_rs::cipher::{AES_256, EncryptionContext, PaddedBlockEncryptingKey, UnboundCipherKey};
use aws_lc_rs::digest::{self, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use aws_lc_rs::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{pbkdf2, rand};
use cbc::Encryptor;
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockCipherEncrypt, BlockModeEncrypt as _, KeyInit, KeyIvInit as _};
use der::Tag;
use zeroize::Zeroizing;

use super::KeystoreError;
use crate::acme::der::{constructed, dotted, element, number};

/// Password-based encryption of RFC 8018 §6.2.
const PBES2: &str = "1.2.840.113549.1.5.13";
/// Key derivation of RFC 8018 §5.2.
const PBKDF2: &str = "1.2.840.113549.1.5.12";
/// Seal of RFC 9579.
const PBMAC1: &str = "1.2.840.113549.1.5.14";
const HMAC_WITH_SHA256: &str = "1.2.840.113549.2.9";
const AES_256_CBC: &str = "2.16.840.1.101.3.4.1.42";
const PBE_WITH_RC2_40: &str = "1.2.840.113549.1.12.1.6";
const PBE_WITH_TRIPLE_DES: &str = "1.2.840.113549.1.12.1.3";
const SHA_1: &str = "1.3.14.3.2.26";
const SHA_256: &str = "2.16.840.1.101.3.4.2.1";

/// Rounds of the derivation of a key from a password, except in the seals of old profiles.
pub(super) const KEY_DERIVATION_ROUNDS: u32 = 2048;
/// Placeholder for the salt in MacData, for which RFC 9579 §5 has no use.
const NOT_USED: &[u8] = b"NOT USED";

/// Cipher of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cipher {
    /// PBES2 with AES-256.
    Aes256,
    /// RC2 with a key of 40 bits.
    Rc2,
    /// Triple DES with a key of 168 bits.
    TripleDes,
}

impl Cipher {
    /// Returns the object identifier of the algorithm.
    pub(super) fn oid(self) -> &'static str {
        match self {
            Self::Aes256 => PBES2,
            Self::Rc2 => PBE_WITH_RC2_40,
            Self::TripleDes => PBE_WITH_TRIPLE_DES,
        }
    }

    /// Encrypts a text; returns the AlgorithmIdentifier, with all parameters but the password, and the encrypted text.
    pub(super) fn encrypt(
        self,
        password: &str,
        plain: &[u8],
    ) -> Result<(Vec<u8>, Vec<u8>), KeystoreError> {
        match self {
            Self::Aes256 => aes_256(password, plain),
            Self::Rc2 => self.encrypt_legacy::<rc2::Rc2>(password, plain, 5),
            Self::TripleDes => self.encrypt_legacy::<des::TdesEde3>(password, plain, 24),
        }
    }

    /// Encrypts as RFC 7292 §C does.
    fn encrypt_legacy<C: KeyInit + BlockCipherEncrypt>(
        self,
        password: &str,
        plain: &[u8],
        size: usize,
    ) -> Result<(Vec<u8>, Vec<u8>), KeystoreError> {
        let mut salt = [0; 8];
        rand::fill(&mut salt)?;
        let derive = |used_for, size| {
            derive_key(
                &SHA1_FOR_LEGACY_USE_ONLY,
                used_for,
                password,
                &salt,
                KEY_DERIVATION_ROUNDS,
                size,
            )
        };
        let (key, start) = (derive(KeyUse::Key, size), derive(KeyUse::Start, 8));
        let cipher = Encryptor::<C>::new_from_slices(&key, &start);
        let cipher = cipher.map_err(|_| KeystoreError::Library)?;
        let parameters = [element(Tag::OctetString, &salt), number(KEY_DERIVATION_ROUNDS)];
        let algorithm = [oid(self.oid())?, constructed(Tag::Sequence, &parameters)];
        let sealed = cipher.encrypt_padded_vec::<Pkcs7>(plain);
        Ok((constructed(Tag::Sequence, &algorithm), sealed))
    }
}

fn aes_256(password: &str, plain: &[u8]) -> Result<(Vec<u8>, Vec<u8>), KeystoreError> {
    let (mut salt, mut start) = ([0; 16], [0; 16]);
    rand::fill(&mut salt)?;
    rand::fill(&mut start)?;
    let key = UnboundCipherKey::new(&AES_256, &pbkdf2(password, &salt)?)?;
    let cipher = PaddedBlockEncryptingKey::cbc_pkcs7(key)?;
    let mut sealed = plain.to_vec();
    let context = EncryptionContext::Iv128(FixedLength::from(start));
    cipher.less_safe_encrypt(&mut sealed, context)?;
    let derivation = derivation(&salt, false)?;
    let scheme = [oid(AES_256_CBC)?, element(Tag::OctetString, &start)];
    let parameters = [derivation, constructed(Tag::Sequence, &scheme)];
    let algorithm = [oid(PBES2)?, constructed(Tag::Sequence, &parameters)];
    Ok((constructed(Tag::Sequence, &algorithm), sealed))
}

/// Seal of the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// HMAC-SHA-1 with a key of one round.
    Sha1,
    /// HMAC-SHA-256.
    Sha256,
    /// HMAC-SHA-256 with a key derived by PBKDF2 (RFC 9579).
    Pbmac1,
}

impl Seal {
    fn rounds(self) -> u32 {
        match self {
            Self::Sha1 => 1,
            Self::Sha256 | Self::Pbmac1 => KEY_DERIVATION_ROUNDS,
        }
    }

    /// Returns MacData (RFC 7292 §4) over a text, with a random salt.
    pub(super) fn over(self, password: &str, text: &[u8]) -> Result<Vec<u8>, KeystoreError> {
        let mut salt = vec![0; if self == Self::Sha1 { 8 } else { 16 }];
        rand::fill(&mut salt)?;
        self.with_salt(password, text, &salt)
    }

    /// Returns MacData as [`Self::over`] does, with a given salt: the only random part of MacData.
    pub(super) fn with_salt(
        self,
        password: &str,
        text: &[u8],
        salt: &[u8],
    ) -> Result<Vec<u8>, KeystoreError> {
        let null = element(Tag::Null, &[]);
        let (algorithm, key) = match self {
            Self::Sha1 => (vec![oid(SHA_1)?, null], self.key(password, salt)),
            Self::Sha256 => (vec![oid(SHA_256)?, null], self.key(password, salt)),
            Self::Pbmac1 => {
                let mac = constructed(Tag::Sequence, &[oid(HMAC_WITH_SHA256)?, null]);
                let parameters = constructed(Tag::Sequence, &[derivation(salt, true)?, mac]);
                (vec![oid(PBMAC1)?, parameters], pbkdf2(password, salt)?)
            }
        };
        let hash = if self == Self::Sha1 { HMAC_SHA1_FOR_LEGACY_USE_ONLY } else { HMAC_SHA256 };
        let seal = hmac::sign(&hmac::Key::new(hash, &key), text);
        let seal = element(Tag::OctetString, seal.as_ref());
        let digest = constructed(Tag::Sequence, &[constructed(Tag::Sequence, &algorithm), seal]);
        let salt = if self == Self::Pbmac1 { NOT_USED } else { salt };
        let mut parts = vec![digest, element(Tag::OctetString, salt)];
        // One round is the default, which DER leaves out; RFC 9579 has no use for the number.
        if self == Self::Sha256 {
            parts.push(number(self.rounds()));
        }
        Ok(constructed(Tag::Sequence, &parts))
    }

    fn key(self, password: &str, salt: &[u8]) -> Zeroizing<Vec<u8>> {
        let hash = if self == Self::Sha1 { &SHA1_FOR_LEGACY_USE_ONLY } else { &SHA256 };
        derive_key(hash, KeyUse::Seal, password, salt, self.rounds(), hash.output_len())
    }
}

/// Returns the AlgorithmIdentifier of PBKDF2; RFC 9579 wants the key's length in it.
fn derivation(salt: &[u8], with_length: bool) -> Result<Vec<u8>, KeystoreError> {
    let hash = [oid(HMAC_WITH_SHA256)?, element(Tag::Null, &[])];
    let mut parameters = vec![element(Tag::OctetString, salt), number(KEY_DERIVATION_ROUNDS)];
    parameters.extend(with_length.then(|| number(32)));
    parameters.push(constructed(Tag::Sequence, &hash));
    let parts = [oid(PBKDF2)?, constructed(Tag::Sequence, &parameters)];
    Ok(constructed(Tag::Sequence, &parts))
}

fn pbkdf2(password: &str, salt: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeystoreError> {
    let rounds = KEY_DERIVATION_ROUNDS.try_into().map_err(|_| KeystoreError::Library)?;
    let mut key = Zeroizing::new(vec![0; 32]);
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, password.as_bytes(), &mut key);
    Ok(key)
}

fn oid(text: &str) -> Result<Vec<u8>, KeystoreError> {
    dotted(text).ok_or(KeystoreError::Library)
}

/// Purpose of a derived key (RFC 7292 §B.3).
#[derive(Clone, Copy)]
enum KeyUse {
    Key = 1,
    Start = 2,
    Seal = 3,
}

/// Derives a key from a password as RFC 7292 §B.2 does.
fn derive_key(
    hash: &'static digest::Algorithm,
    used_for: KeyUse,
    password: &str,
    salt: &[u8],
    rounds: u32,
    size: usize,
) -> Zeroizing<Vec<u8>> {
    let block = hash.block_len();
    let filled = |bytes: &[u8]| -> Vec<u8> {
        bytes.iter().copied().cycle().take(bytes.len().div_ceil(block) * block).collect()
    };
    let letters = password.encode_utf16().chain([0]).flat_map(u16::to_be_bytes);
    let letters: Zeroizing<Vec<u8>> = Zeroizing::new(letters.collect());
    let mut input = Zeroizing::new([filled(salt), filled(&letters)].concat());
    let mut key = Zeroizing::new(Vec::with_capacity(size + hash.output_len()));
    while key.len() < size {
        let mut context = Context::new(hash);
        context.update(&vec![used_for as u8; block]);
        context.update(&input);
        let mut made = context.finish();
        for _ in 1..rounds {
            made = digest::digest(hash, made.as_ref());
        }
        key.extend_from_slice(made.as_ref());
        for part in input.chunks_mut(block) {
            add(part, made.as_ref());
        }
    }
    key.truncate(size);
    key
}

/// Adds 1 and `other`, repeated up to the length of `number`, to `number`; an overflow is dropped.
fn add(number: &mut [u8], other: &[u8]) {
    let size = number.len();
    let mut carry = 1;
    for (index, byte) in number.iter_mut().enumerate().rev() {
        let sum = u16::from(*byte) + u16::from(other[index % other.len()]) + carry;
        debug_assert!(index < size);
        let [high, low] = sum.to_be_bytes();
        *byte = low;
        carry = u16::from(high);
    }
}
