//! JKS, Java's own keystore: entries one after the other, followed by a digest of password and contents.
//!
//! The format is specified only by Java's sources and by the programs that read it. The only protection of a key is a
//! stream made with SHA-1: every reader of the file must be entitled to the key.

use aws_lc_rs::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use aws_lc_rs::rand;
use der::Tag;
use jiff::Timestamp;
use zeroize::Zeroizing;

use super::{Contents, KeystoreError};
use crate::acme::der::{constructed, dotted, element};

/// Magic number that begins every file.
const MAGIC: u32 = 0xfeed_feed;
/// Version of the format.
const VERSION: u32 = 2;
/// Tag of an entry that holds a key.
const KEY_ENTRY: u32 = 1;
/// Tag of an entry that holds a certificate to be trusted.
const CERTIFICATE_ENTRY: u32 = 2;
/// Type of every certificate.
const X509: &str = "X.509";
/// Text in the digest between password and contents.
const WHITENER: &[u8] = b"Mighty Aphrodite";
/// Object identifier of the algorithm that protects keys, Sun's own.
const PROTECTION_OID: &str = "1.3.6.1.4.1.42.2.17.1.1";
/// Length of a SHA-1 digest, and of the salt.
const DIGEST_BYTES: usize = 20;

/// Writes a keystore: the key under an alias, and certificates to be trusted.
///
/// # Errors
/// Fails when the alias is too long, or there is no certificate.
pub fn keystore(
    contents: &Contents<'_>,
    alias: &str,
    password: &str,
    created: Timestamp,
) -> Result<Vec<u8>, KeystoreError> {
    if contents.chain.is_empty() {
        return Err(KeystoreError::Empty);
    }
    let key = encrypt_key(contents.key, password)?;
    let mut entry = KEY_ENTRY.to_be_bytes().to_vec();
    entry.extend(head(alias, created)?);
    entry.extend(with_length(&key)?);
    entry.extend(length(contents.chain.len())?);
    for certificate in contents.chain {
        entry.extend(text(X509)?);
        entry.extend(with_length(certificate)?);
    }
    let mut entries = vec![entry];
    entries.extend(trusted_entries(contents.authorities, created)?);
    seal(&entries, password)
}

/// Writes a keystore of certificates to be trusted, and no key.
///
/// # Errors
/// Fails when there is no certificate.
pub fn truststore(
    authorities: &[Vec<u8>],
    password: &str,
    created: Timestamp,
) -> Result<Vec<u8>, KeystoreError> {
    if authorities.is_empty() {
        return Err(KeystoreError::Empty);
    }
    seal(&trusted_entries(authorities, created)?, password)
}

/// Reports whether a password opens a keystore whose first entry is a key under the given alias.
pub fn opens(file: &[u8], alias: &str, password: &str) -> bool {
    let is_under = |rest: &[u8]| {
        let (tag, rest) = rest.split_at_checked(4)?;
        let (size, rest) = rest.split_at_checked(2)?;
        let size = usize::from(u16::from_be_bytes(size.try_into().ok()?));
        Some(
            tag == KEY_ENTRY.to_be_bytes()
                && rest.get(..size)? == modified_utf8(&alias.to_lowercase()),
        )
    };
    let Some((contents, digest)) = file.split_last_chunk::<DIGEST_BYTES>() else { return false };
    let Some(entries) =
        contents.strip_prefix(&[MAGIC.to_be_bytes(), VERSION.to_be_bytes()].concat()[..])
    else {
        return false;
    };
    let is_intact = sha1(&[&utf16(password), WHITENER, contents]) == *digest;
    is_intact && entries.get(4..).and_then(is_under).unwrap_or(false)
}

fn trusted_entries(
    authorities: &[Vec<u8>],
    created: Timestamp,
) -> Result<Vec<Vec<u8>>, KeystoreError> {
    let entry = |(index, certificate): (usize, &Vec<u8>)| {
        let alias = if index == 0 { "ca".to_owned() } else { format!("ca-{index}") };
        let parts = [
            CERTIFICATE_ENTRY.to_be_bytes().to_vec(),
            head(&alias, created)?,
            text(X509)?,
            with_length(certificate)?,
        ];
        Ok(parts.concat())
    };
    authorities.iter().enumerate().map(entry).collect()
}

/// Returns alias and date of an entry; Java looks aliases up in lower case.
fn head(alias: &str, created: Timestamp) -> Result<Vec<u8>, KeystoreError> {
    let mut head = text(&alias.to_lowercase())?;
    head.extend(created.as_millisecond().to_be_bytes());
    Ok(head)
}

fn seal(entries: &[Vec<u8>], password: &str) -> Result<Vec<u8>, KeystoreError> {
    let mut file = [MAGIC.to_be_bytes(), VERSION.to_be_bytes()].concat();
    file.extend(length(entries.len())?);
    file.extend(entries.concat());
    let digest = sha1(&[&utf16(password), WHITENER, &file]);
    file.extend(digest);
    Ok(file)
}

/// Encrypts the key with the password: salt, key xor a stream of digests, digest of password and key.
fn encrypt_key(key: &[u8], password: &str) -> Result<Vec<u8>, KeystoreError> {
    let password = utf16(password);
    let mut salt = [0; DIGEST_BYTES];
    rand::fill(&mut salt)?;
    let mut sealed = salt.to_vec();
    let mut block = salt;
    for part in key.chunks(DIGEST_BYTES) {
        block = sha1(&[&password, &block]);
        sealed.extend(part.iter().zip(block).map(|(byte, mask)| byte ^ mask));
    }
    sealed.extend(sha1(&[&password, key]));
    let number = dotted(PROTECTION_OID).ok_or(KeystoreError::Library)?;
    let algorithm = constructed(Tag::Sequence, &[number, element(Tag::Null, &[])]);
    let sealed = element(Tag::OctetString, &sealed);
    Ok(constructed(Tag::Sequence, &[algorithm, sealed]))
}

fn sha1(parts: &[&[u8]]) -> [u8; DIGEST_BYTES] {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    for part in parts {
        context.update(part);
    }
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// Encodes a password as Java's programs read it: two bytes per UTF-16 unit.
fn utf16(password: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(password.encode_utf16().flat_map(u16::to_be_bytes).collect())
}

fn length(count: usize) -> Result<[u8; 4], KeystoreError> {
    u32::try_from(count).map(u32::to_be_bytes).map_err(|_| KeystoreError::Library)
}

fn with_length(bytes: &[u8]) -> Result<Vec<u8>, KeystoreError> {
    Ok([&length(bytes.len())?[..], bytes].concat())
}

fn text(text: &str) -> Result<Vec<u8>, KeystoreError> {
    let bytes = modified_utf8(text);
    let size = u16::try_from(bytes.len()).map_err(|_| KeystoreError::LongAlias)?;
    Ok([&size.to_be_bytes()[..], &bytes].concat())
}

/// Encodes text as Java's `DataInput` reads it: surrogates one by one, and no byte 0.
fn modified_utf8(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for unit in text.encode_utf16() {
        let [low, middle, high] =
            [unit & 0x3f, unit >> 6 & 0x3f, unit >> 12].map(|bits| bits.to_be_bytes()[1]);
        match unit {
            0x01..=0x7f => bytes.push(unit.to_be_bytes()[1]),
            0x00 | 0x80..=0x7ff => bytes.extend([0xc0 | (unit >> 6).to_be_bytes()[1], 0x80 | low]),
            _ => bytes.extend([0xe0 | high, 0x80 | middle, 0x80 | low]),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Chain, keytool};
    use super::*;

    fn created() -> Timestamp {
        "2026-11-21T04:30:25Z".parse().unwrap()
    }

    /// keytool takes the file under that password and says all of this of it.
    fn check(file: &[u8], password: &str, expected: &[&str]) {
        let said = keytool(file, "JKS", password);
        for part in expected {
            assert!(said.contains(part), "{part} in {said}");
        }
    }

    #[test]
    fn keytool_finds_the_key_and_its_chain_under_the_alias() {
        let chain = Chain::new();
        for (alias, password) in [("certificate", "changeit"), ("Ünï-😀", "sécret-ß")] {
            let file = keystore(&chain.contents(&[]), alias, password, created()).unwrap();
            let alias = alias.to_lowercase();
            check(&file, password, &["1 entry", &alias, "PrivateKeyEntry", "chain length: 2"]);
            assert!(opens(&file, &alias, password));
            assert!(!opens(&file, "other", password) && !opens(&file, &alias, "other"));
        }
    }

    #[test]
    fn keytool_finds_authorities_beside_the_key_and_alone() {
        let chain = Chain::new();
        let authorities = [chain.authority(), chain.authority()];
        let file = keystore(&chain.contents(&authorities), "a", "changeit", created()).unwrap();
        check(&file, "changeit", &["3 entries", "ca-1", "trustedCertEntry"]);
        let file = truststore(&authorities, "changeit", created()).unwrap();
        check(&file, "changeit", &["2 entries", "Alias name: ca\n"]);
        assert_eq!(truststore(&[], "changeit", created()), Err(KeystoreError::Empty));
    }

    #[test]
    fn what_is_no_keystore_is_opened_by_no_password() {
        let chain = Chain::new();
        let file = keystore(&chain.contents(&[]), "a", "changeit", created()).unwrap();
        for end in 0..file.len() {
            assert!(!opens(&file[..end], "a", "changeit"), "{end}");
        }
        assert!(!opens(&truststore(&[chain.authority()], "p", created()).unwrap(), "ca", "p"));
    }
}
