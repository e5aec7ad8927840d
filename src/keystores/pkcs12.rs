//! PKCS#12 (RFC 7292): key and certificates for Windows, Java and openssl, by cert-manager's profiles.
//!
//! A file has the structure that `go-pkcs12` writes: certificates encrypted together, the key by itself, one seal over
//! both. The key and its certificate refer to each other by a digest and have no name, so that Java calls them "1".

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use der::asn1::AnyRef;
use der::{Decode as _, Tag, TagNumber};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::pkcs12_crypto::{Cipher, Seal};
use super::{Contents, KeystoreError};
use crate::acme::der::{constructed, dotted, element, number, set_of};

const DATA: &str = "1.2.840.113549.1.7.1";
const ENCRYPTED_DATA: &str = "1.2.840.113549.1.7.6";
const FRIENDLY_NAME: &str = "1.2.840.113549.1.9.20";
const LOCAL_KEY_ID: &str = "1.2.840.113549.1.9.21";
const X509_CERTIFICATE: &str = "1.2.840.113549.1.9.22.1";
const SHROUDED_KEY_BAG: &str = "1.2.840.113549.1.12.10.1.2";
const CERTIFICATE_BAG: &str = "1.2.840.113549.1.12.10.1.3";
/// Object identifier of the attribute with the usages for which Java trusts a certificate.
const JAVA_TRUSTED: &str = "2.16.840.1.113894.746875.1.1";
const ANY_USAGE: &str = "2.5.29.37.0";

/// Algorithms that protect a file, by cert-manager's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// Algorithms that every program could once read; openssl 3 reads them only with `-legacy`.
    #[default]
    LegacyRc2,
    /// Algorithms that nearly every program can read.
    LegacyDes,
    /// Algorithms for Java 12, openssl 1.1.1 and newer versions.
    Modern2023,
    /// Algorithms for Java 26, openssl 3.4 and newer versions.
    Modern2026,
}

impl Profile {
    /// Reads cert-manager's name of a profile; an unknown name means the default, as in cert-manager.
    pub fn of(word: &str) -> Self {
        match word {
            "LegacyDES" => Self::LegacyDes,
            "Modern2023" => Self::Modern2023,
            "Modern2026" => Self::Modern2026,
            _ => Self::LegacyRc2,
        }
    }

    fn cipher_of_certificates(self) -> Cipher {
        match self {
            Self::LegacyRc2 => Cipher::Rc2,
            Self::LegacyDes => Cipher::TripleDes,
            Self::Modern2023 | Self::Modern2026 => Cipher::Aes256,
        }
    }

    fn cipher_of_key(self) -> Cipher {
        match self {
            Self::LegacyRc2 | Self::LegacyDes => Cipher::TripleDes,
            Self::Modern2023 | Self::Modern2026 => Cipher::Aes256,
        }
    }

    fn seal(self) -> Seal {
        match self {
            Self::LegacyRc2 | Self::LegacyDes => Seal::Sha1,
            Self::Modern2023 => Seal::Sha256,
            Self::Modern2026 => Seal::Pbmac1,
        }
    }
}

/// Writes a keystore: the key, the key's certificate, and all other certificates.
///
/// # Errors
/// Fails when there is no certificate.
pub fn keystore(
    profile: Profile,
    contents: &Contents<'_>,
    password: &str,
) -> Result<Vec<u8>, KeystoreError> {
    let (leaf, above) = contents.chain.split_first().ok_or(KeystoreError::Empty)?;
    let fingerprint = digest(&SHA1_FOR_LEGACY_USE_ONLY, leaf);
    let fingerprint = element(Tag::OctetString, fingerprint.as_ref());
    let known_as = [attribute(LOCAL_KEY_ID, &fingerprint)?];
    let mut certificates = vec![certificate_bag(leaf, &known_as)?];
    for certificate in above.iter().chain(contents.authorities) {
        certificates.push(certificate_bag(certificate, &[])?);
    }
    let (algorithm, key) = profile.cipher_of_key().encrypt(password, contents.key)?;
    let key = constructed(Tag::Sequence, &[algorithm, element(Tag::OctetString, &key)]);
    let key = bag(SHROUDED_KEY_BAG, &key, &known_as)?;
    let parts = [
        encrypted_safe(profile.cipher_of_certificates(), &certificates, password)?,
        plain_safe(&constructed(Tag::Sequence, &[key]))?,
    ];
    seal_file(profile.seal(), &parts, password)
}

/// Writes a keystore of certificates that Java trusts, each under its subject, and no key.
///
/// # Errors
/// Fails when there is no certificate.
pub fn truststore(
    profile: Profile,
    authorities: &[Vec<u8>],
    password: &str,
) -> Result<Vec<u8>, KeystoreError> {
    let trusted = |certificate: &Vec<u8>| {
        let name = X509Certificate::from_der(certificate)
            .map_or_else(|_| String::new(), |(_, read)| read.subject().to_string());
        let letters: Vec<u8> = name.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let attributes = [
            attribute(JAVA_TRUSTED, &oid(ANY_USAGE)?)?,
            attribute(FRIENDLY_NAME, &element(Tag::BmpString, &letters))?,
        ];
        certificate_bag(certificate, &attributes)
    };
    if authorities.is_empty() {
        return Err(KeystoreError::Empty);
    }
    let bags = authorities.iter().map(trusted).collect::<Result<Vec<_>, _>>()?;
    let parts = [encrypted_safe(profile.cipher_of_certificates(), &bags, password)?];
    seal_file(profile.seal(), &parts, password)
}

/// Reports whether a password opens a keystore, and the file is protected as the profile requires.
pub fn opens(file: &[u8], profile: Profile, password: &str) -> bool {
    is_sealed(file, profile, password).unwrap_or(false)
}

fn is_sealed(file: &[u8], profile: Profile, password: &str) -> Option<bool> {
    let pfx = children(file)?;
    let [_, content, seal] = pfx.as_slice() else { return None };
    let explicit = *children_of(content)?.get(1)?;
    let text = AnyRef::from_der(explicit.value()).ok()?.value();
    let [digest, salt, ..] = *children_of(seal)?.as_slice() else { return None };
    let mut salt = salt.value();
    if profile.seal() == Seal::Pbmac1 {
        let algorithm = *children_of(&digest)?.first()?;
        let parameters = *children_of(&algorithm)?.get(1)?;
        let derivation = *children_of(&parameters)?.first()?;
        let parameters = *children_of(&derivation)?.get(1)?;
        salt = children_of(&parameters)?.first()?.value();
    }
    let expected = profile.seal().with_salt(password, text, salt).ok()?;
    let expected = children(&expected)?;
    // Only digests are compared: the fields beside a digest may differ between writers and mean the same.
    let mark = |digest: &AnyRef<'_>| Some(children_of(digest)?.get(1)?.value().to_vec());
    let is_intact = mark(&digest)? == mark(expected.first()?)?;
    let first = *children(text)?.first()?;
    let cipher = oid(profile.cipher_of_certificates().oid()).ok()?;
    let is_of_profile = first.value().windows(cipher.len()).any(|part| part == cipher);
    Some(is_intact && is_of_profile)
}

/// Returns the elements of a sequence.
fn children(sequence: &[u8]) -> Option<Vec<AnyRef<'_>>> {
    children_of(&AnyRef::from_der(sequence).ok()?)
}

fn children_of<'a>(element: &AnyRef<'a>) -> Option<Vec<AnyRef<'a>>> {
    let mut rest = element.value();
    let mut children = Vec::new();
    while !rest.is_empty() {
        let (child, behind) = AnyRef::from_der_partial(rest).ok()?;
        children.push(child);
        rest = behind;
    }
    Some(children)
}

/// Returns a safe that only the password opens.
fn encrypted_safe(
    cipher: Cipher,
    bags: &[Vec<u8>],
    password: &str,
) -> Result<Vec<u8>, KeystoreError> {
    let plain = constructed(Tag::Sequence, bags);
    let (algorithm, text) = cipher.encrypt(password, &plain)?;
    let text = element(TagNumber(0).context_specific(false), &text);
    let content = constructed(Tag::Sequence, &[oid(DATA)?, algorithm, text]);
    let data = constructed(Tag::Sequence, &[number(0), content]);
    Ok(constructed(Tag::Sequence, &[oid(ENCRYPTED_DATA)?, explicit(data)]))
}

/// Returns a safe that anybody can open.
fn plain_safe(content: &[u8]) -> Result<Vec<u8>, KeystoreError> {
    let content = explicit(element(Tag::OctetString, content));
    Ok(constructed(Tag::Sequence, &[oid(DATA)?, content]))
}

fn seal_file(seal: Seal, parts: &[Vec<u8>], password: &str) -> Result<Vec<u8>, KeystoreError> {
    let text = constructed(Tag::Sequence, parts);
    let seal = seal.over(password, &text)?;
    Ok(constructed(Tag::Sequence, &[number(3), plain_safe(&text)?, seal]))
}

fn certificate_bag(certificate: &[u8], attributes: &[Vec<u8>]) -> Result<Vec<u8>, KeystoreError> {
    let certificate = explicit(element(Tag::OctetString, certificate));
    let value = constructed(Tag::Sequence, &[oid(X509_CERTIFICATE)?, certificate]);
    bag(CERTIFICATE_BAG, &value, attributes)
}

fn bag(kind: &str, value: &[u8], attributes: &[Vec<u8>]) -> Result<Vec<u8>, KeystoreError> {
    let mut parts = vec![oid(kind)?, explicit(value.to_vec())];
    if !attributes.is_empty() {
        parts.push(set_of(attributes.to_vec()));
    }
    Ok(constructed(Tag::Sequence, &parts))
}

fn attribute(kind: &str, value: &[u8]) -> Result<Vec<u8>, KeystoreError> {
    let values = constructed(Tag::Set, &[value.to_vec()]);
    Ok(constructed(Tag::Sequence, &[oid(kind)?, values]))
}

fn explicit(value: Vec<u8>) -> Vec<u8> {
    constructed(TagNumber(0).context_specific(true), &[value])
}

fn oid(text: &str) -> Result<Vec<u8>, KeystoreError> {
    dotted(text).ok_or(KeystoreError::Library)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Chain, keytool, openssl};
    use super::*;

    const ALL: [Profile; 4] =
        [Profile::LegacyRc2, Profile::LegacyDes, Profile::Modern2023, Profile::Modern2026];

    /// Returns openssl's lines about the parts of a profile, as far as the test bed's version can read the profile.
    fn shown(profile: Profile) -> &'static [&'static str] {
        match profile {
            Profile::LegacyRc2 => &[
                "MAC: sha1, Iteration 1",
                "PKCS7 Encrypted data: pbeWithSHA1And40BitRC2-CBC, Iteration 2048",
                "Shrouded Keybag: pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 2048",
            ],
            Profile::LegacyDes => &[
                "MAC: sha1, Iteration 1",
                "PKCS7 Encrypted data: pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 2048",
                "Shrouded Keybag: pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 2048",
            ],
            Profile::Modern2023 | Profile::Modern2026 => &[
                "PKCS7 Encrypted data: PBES2, PBKDF2, AES-256-CBC, Iteration 2048, PRF hmacWithSHA256",
                "Shrouded Keybag: PBES2, PBKDF2, AES-256-CBC, Iteration 2048, PRF hmacWithSHA256",
            ],
        }
    }

    #[test]
    fn openssl_reads_each_profile_as_what_it_is() {
        let chain = Chain::new();
        for profile in ALL {
            let file = keystore(profile, &chain.contents(&[]), "chänge-it").unwrap();
            // openssl 3.0 knows PBMAC1 by its name only.
            let unsealed = if profile == Profile::Modern2026 { &["-nomacver"][..] } else { &[] };
            let (out, said) = openssl(&file, "chänge-it", unsealed);
            for part in shown(profile) {
                assert!(said.contains(part), "{profile:?}: {part} in {said}");
            }
            for part in chain.pem_bodies() {
                assert!(out.replace('\n', "").contains(&part), "{profile:?}: {part} in {out}");
            }
            assert!(!out.contains("friendlyName"), "{out}");
        }
    }

    #[test]
    fn java_finds_the_key_under_its_number_and_authorities_under_their_names() {
        let chain = Chain::new();
        // PBMAC1 is read from Java 26 on.
        for profile in &ALL[..3] {
            let file = keystore(*profile, &chain.contents(&[]), "changeit").unwrap();
            let said = keytool(&file, "PKCS12", "changeit");
            let expected = ["1 entry", "Alias name: 1\n", "PrivateKeyEntry", "chain length: 2"];
            assert!(expected.iter().all(|part| said.contains(part)), "{profile:?}: {said}");
            let file = truststore(*profile, &[chain.authority()], "changeit").unwrap();
            let said = keytool(&file, "PKCS12", "changeit");
            let expected = ["Alias name: cn=root ü", "trustedCertEntry"];
            assert!(expected.iter().all(|part| said.contains(part)), "{profile:?}: {said}");
        }
    }

    #[test]
    fn a_seal_by_pbmac1_is_the_one_of_the_standard() {
        // A.1 of RFC 9579: made by somebody else, under the password 1234.
        let theirs = include_bytes!("../../tests/fixtures/keystores/rfc9579-a1.p12");
        assert!(opens(theirs, Profile::Modern2026, "1234"));
        assert!(!opens(theirs, Profile::Modern2026, "12345"));
        assert!(!opens(theirs, Profile::Modern2023, "1234"));
    }

    #[test]
    fn only_its_password_and_its_profile_open_a_keystore() {
        let chain = Chain::new();
        for written in ALL {
            let file = keystore(written, &chain.contents(&[]), "changeit").unwrap();
            for profile in ALL {
                assert_eq!(opens(&file, profile, "changeit"), profile == written, "{profile:?}");
                assert!(!opens(&file, profile, "changeme"));
            }
            for end in (0..file.len()).step_by(7) {
                assert!(!opens(&file[..end], written, "changeit"), "{end}");
            }
        }
        let none = Contents { key: &[], chain: &[], authorities: &[] };
        assert_eq!(keystore(Profile::LegacyDes, &none, "p"), Err(KeystoreError::Empty));
        assert_eq!(truststore(Profile::LegacyDes, &[], "p"), Err(KeystoreError::Empty));
    }
}
