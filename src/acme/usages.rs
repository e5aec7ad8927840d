//! Key usages: cert-manager's words and their encoding in a request (RFC 5280 §4.2.1.3, §4.2.1.12).

use x509_parser::extensions::ExtendedKeyUsage;
use x509_parser::oid_registry::asn1_rs::Oid;

/// Usages of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usages {
    /// Bits of KeyUsage, bit 0 first.
    pub(super) basic: u16,
    /// Numbers of ExtKeyUsage, in the order listed.
    pub(super) extended: Vec<&'static str>,
}

const DIGITAL_SIGNATURE: u16 = 1;
const KEY_ENCIPHERMENT: u16 = 1 << 2;
const CERT_SIGN: u16 = 1 << 5;

/// Words and bits of KeyUsage.
const BASIC: [(&str, u16); 10] = [
    ("digital signature", DIGITAL_SIGNATURE),
    ("signing", DIGITAL_SIGNATURE),
    ("content commitment", 1 << 1),
    ("key encipherment", KEY_ENCIPHERMENT),
    ("data encipherment", 1 << 3),
    ("key agreement", 1 << 4),
    ("cert sign", CERT_SIGN),
    ("crl sign", 1 << 6),
    ("encipher only", 1 << 7),
    ("decipher only", 1 << 8),
];
/// Words and numbers of ExtKeyUsage.
const EXTENDED: [(&str, &str); 13] = [
    ("any", "2.5.29.37.0"),
    ("server auth", "1.3.6.1.5.5.7.3.1"),
    ("client auth", "1.3.6.1.5.5.7.3.2"),
    ("code signing", "1.3.6.1.5.5.7.3.3"),
    ("email protection", "1.3.6.1.5.5.7.3.4"),
    ("s/mime", "1.3.6.1.5.5.7.3.4"),
    ("ipsec end system", "1.3.6.1.5.5.7.3.5"),
    ("ipsec tunnel", "1.3.6.1.5.5.7.3.6"),
    ("ipsec user", "1.3.6.1.5.5.7.3.7"),
    ("timestamping", "1.3.6.1.5.5.7.3.8"),
    ("ocsp signing", "1.3.6.1.5.5.7.3.9"),
    ("microsoft sgc", "1.3.6.1.4.1.311.10.3.3"),
    ("netscape sgc", "2.16.840.1.113730.4.1"),
];

/// Reads a list of usages; an empty list means digital signature and key encipherment; a CA also signs certificates.
pub(super) fn read(words: &[String], is_ca: bool) -> Result<Usages, String> {
    let mut usages = Usages::default();
    if is_ca {
        usages.basic |= CERT_SIGN;
    }
    if words.is_empty() {
        usages.basic |= DIGITAL_SIGNATURE | KEY_ENCIPHERMENT;
    }
    for word in words {
        match (basic(word), extended(word)) {
            (Some(bit), _) => usages.basic |= bit,
            (None, Some(number)) if usages.extended.contains(&number) => {}
            (None, Some(number)) => usages.extended.push(number),
            (None, None) => return Err(format!("\"{word}\" is no key usage")),
        }
    }
    Ok(usages)
}

/// Returns usages in cert-manager's words, the clearer word if there are two; a number without a word stays as it is.
pub(super) fn words(basic: u16, extended: impl IntoIterator<Item = String>) -> Vec<String> {
    let of_bits = (0..u16::BITS).map(|bit| 1 << bit).filter(|bit| basic & bit != 0);
    let of_bits = of_bits
        .filter_map(|bit| BASIC.iter().find(|(_, known)| *known == bit))
        .map(|(word, _)| (*word).to_owned());
    let of_numbers = extended.into_iter().map(|number| {
        let known = EXTENDED.iter().find(|(_, known)| *known == number);
        known.map_or(number, |(word, _)| (*word).to_owned())
    });
    of_bits.chain(of_numbers).collect()
}

/// Numbers of ExtKeyUsage. The library keeps the numbers that it knows as flags, so that their order is lost.
pub(super) fn numbers(usage: &ExtendedKeyUsage<'_>) -> Vec<String> {
    let known = [
        (usage.any, "2.5.29.37.0"),
        (usage.server_auth, "1.3.6.1.5.5.7.3.1"),
        (usage.client_auth, "1.3.6.1.5.5.7.3.2"),
        (usage.code_signing, "1.3.6.1.5.5.7.3.3"),
        (usage.email_protection, "1.3.6.1.5.5.7.3.4"),
        (usage.time_stamping, "1.3.6.1.5.5.7.3.8"),
        (usage.ocsp_signing, "1.3.6.1.5.5.7.3.9"),
    ];
    let known = known.into_iter().filter(|(is_set, _)| *is_set).map(|(_, id)| id.to_owned());
    known.chain(usage.other.iter().map(Oid::to_id_string)).collect()
}

fn basic(word: &str) -> Option<u16> {
    BASIC.iter().find(|(known, _)| *known == word).map(|(_, bit)| *bit)
}

fn extended(word: &str) -> Option<&'static str> {
    EXTENDED.iter().find(|(known, _)| *known == word).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn usages_are_read_as_cert_manager_reads_them() {
        for (list, is_ca, basic, extended) in [
            (&[][..], false, 0b101, &[][..]),
            (&[], true, 0b10_0101, &[]),
            (&["server auth"], false, 0, &["1.3.6.1.5.5.7.3.1"]),
            (&["signing", "digital signature", "decipher only"], false, 0b1_0000_0001, &[]),
            (
                &["s/mime", "email protection", "any"],
                false,
                0,
                &["1.3.6.1.5.5.7.3.4", "2.5.29.37.0"],
            ),
        ] {
            let usages = read(&words(list), is_ca).unwrap();
            assert_eq!((usages.basic, &usages.extended[..]), (basic, extended), "{list:?}");
        }
        assert!(read(&words(&["Server Auth"]), false).is_err());
    }

    #[test]
    fn usages_are_told_in_the_words_in_which_they_are_asked_for() {
        for list in [
            &["digital signature", "key encipherment", "server auth", "client auth"][..],
            &["decipher only", "email protection"],
        ] {
            let usages = read(&words(list), false).unwrap();
            let numbers = usages.extended.iter().map(|number| (*number).to_owned());
            assert_eq!(super::words(usages.basic, numbers), list);
        }
        let strange = ["1.2.3".to_owned()];
        assert_eq!(super::words(0b1000_0000_0000_0000, strange), ["1.2.3"]);
    }
}
