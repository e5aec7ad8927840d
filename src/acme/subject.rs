//! Subjects of signing requests, as cert-manager builds them: from parts, or from the text form of RFC 4514.

use ::der::Tag;

use super::der;
use crate::model::certificate::{CertificateSpec, Subject};

const COUNTRY: &str = "2.5.4.6";
const ORGANIZATION: &str = "2.5.4.10";
const ORGANIZATIONAL_UNIT: &str = "2.5.4.11";
const LOCALITY: &str = "2.5.4.7";
const PROVINCE: &str = "2.5.4.8";
const STREET_ADDRESS: &str = "2.5.4.9";
const POSTAL_CODE: &str = "2.5.4.17";
const COMMON_NAME: &str = "2.5.4.3";
const SERIAL_NUMBER: &str = "2.5.4.5";
const DOMAIN_COMPONENT: &str = "0.9.2342.19200300.100.1.25";
const USER_ID: &str = "0.9.2342.19200300.100.1.1";

/// The subject as a Name (RFC 5280 §4.1.2.4), DER, and whether it is empty.
pub(super) fn name(spec: &CertificateSpec) -> Result<(Vec<u8>, bool), String> {
    let parts = if spec.literal_subject.is_empty() {
        from_parts(&spec.subject.clone().unwrap_or_default(), &spec.common_name)
    } else {
        from_text(&spec.literal_subject)?
    };
    let empty = parts.is_empty();
    Ok((der::constructed(Tag::Sequence, &parts), empty))
}

/// One set per kind of part, in the order of Go's `pkix.Name`.
fn from_parts(subject: &Subject, common_name: &str) -> Vec<Vec<u8>> {
    let one = |text: &str| {
        if text.is_empty() { Vec::new() } else { vec![text.to_owned()] }
    };
    [
        (COUNTRY, &subject.countries),
        (ORGANIZATION, &subject.organizations),
        (ORGANIZATIONAL_UNIT, &subject.organizational_units),
        (LOCALITY, &subject.localities),
        (PROVINCE, &subject.provinces),
        (STREET_ADDRESS, &subject.street_addresses),
        (POSTAL_CODE, &subject.postal_codes),
        (COMMON_NAME, &one(common_name)),
        (SERIAL_NUMBER, &one(&subject.serial_number)),
    ]
    .into_iter()
    .filter(|(_, values)| !values.is_empty())
    .map(|(oid, values)| {
        der::set_of(values.iter().filter_map(|value| attribute(oid, value)).collect())
    })
    .collect()
}

fn attribute(oid: &str, value: &str) -> Option<Vec<u8>> {
    Some(der::constructed(Tag::Sequence, &[der::dotted(oid)?, der::text(value)]))
}

/// Reads `CN=www,O=Acme\, Inc.,C=DE`; the text runs from the last part to the first (RFC 4514 §2.1).
fn from_text(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut sets = Vec::new();
    for set in split(text, &[',', ';']) {
        let mut attributes = Vec::new();
        for part in split(set, &['+']) {
            let (kind, value) = part.split_once('=').ok_or_else(|| {
                format!("\"{}\" in the literal subject has no \"=\"", part.trim())
            })?;
            let kind = kind.trim();
            let value = unescape(value)?;
            let attribute =
                oid_of(kind).and_then(|oid| attribute(oid, &value)).ok_or_else(|| {
                    format!("\"{kind}\" in the literal subject is no attribute that we know")
                })?;
            attributes.push(attribute);
        }
        sets.push(der::set_of(attributes));
    }
    sets.reverse();
    Ok(sets)
}

fn oid_of(kind: &str) -> Option<&str> {
    Some(match kind.to_ascii_uppercase().as_str() {
        "C" => COUNTRY,
        "O" => ORGANIZATION,
        "OU" => ORGANIZATIONAL_UNIT,
        "L" => LOCALITY,
        "ST" => PROVINCE,
        "STREET" => STREET_ADDRESS,
        "POSTALCODE" => POSTAL_CODE,
        "CN" => COMMON_NAME,
        "SERIALNUMBER" => SERIAL_NUMBER,
        "DC" => DOMAIN_COMPONENT,
        "UID" => USER_ID,
        _ if kind.contains('.') => kind,
        _ => return None,
    })
}

/// Splits at separators that are neither escaped nor quoted.
fn split<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let (mut parts, mut start, mut escaped, mut quoted) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            c if !quoted && separators.contains(&c) => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Undoes `\,` and `\C3\A4` (RFC 4514 §2.4); blanks around the value do not count.
fn unescape(value: &str) -> Result<String, String> {
    let bad = || format!("\"{}\" in the literal subject has a broken escape", value.trim());
    let bytes = value.trim_start().as_bytes();
    let mut out = Vec::new();
    let mut solid = 0;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {}
            b'\\' => {
                let next = *bytes.get(at).ok_or_else(bad)?;
                let pair = bytes.get(at..at + 2).and_then(|pair| std::str::from_utf8(pair).ok());
                match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
                    Some(code) if next.is_ascii_hexdigit() => {
                        out.push(code);
                        at += 2;
                    }
                    Some(_) | None => {
                        out.push(next);
                        at += 1;
                    }
                }
                solid = out.len();
            }
            other => {
                out.push(*other);
                if *other != b' ' {
                    solid = out.len();
                }
            }
        }
    }
    out.truncate(solid);
    String::from_utf8(out).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::FromDer as _;
    use x509_parser::x509::X509Name;

    use super::*;

    fn spec(literal: &str) -> CertificateSpec {
        CertificateSpec { literal_subject: literal.to_owned(), ..CertificateSpec::default() }
    }

    fn shown(spec: &CertificateSpec) -> String {
        let (der, _) = name(spec).unwrap();
        let (rest, name) = X509Name::from_der(&der).unwrap();
        assert!(rest.is_empty());
        name.to_string()
    }

    #[test]
    fn parts_stand_in_gos_order() {
        let spec = CertificateSpec {
            subject: Some(Subject {
                organizations: vec!["Zulu".to_owned(), "Acme".to_owned()],
                countries: vec!["DE".to_owned()],
                organizational_units: vec!["Ops".to_owned()],
                localities: vec!["Köln".to_owned()],
                provinces: vec!["NRW".to_owned()],
                street_addresses: vec!["Weg 1".to_owned()],
                postal_codes: vec!["50667".to_owned()],
                serial_number: "7".to_owned(),
            }),
            common_name: "a.example".to_owned(),
            ..CertificateSpec::default()
        };
        assert_eq!(
            shown(&spec),
            "C=DE, O=Acme + O=Zulu, OU=Ops, L=Köln, ST=NRW, streetAddress=Weg 1, postalCode=50667, \
             CN=a.example, serialNumber=7"
        );
    }

    #[test]
    fn no_parts_make_an_empty_subject() {
        let (der, empty) = name(&CertificateSpec::default()).unwrap();
        assert_eq!((der, empty), (vec![0x30, 0x00], true));
    }

    #[test]
    fn text_is_read_backwards_and_unescaped() {
        for (text, expected) in [
            ("CN=a.example,O=Acme,C=DE", "C=DE, O=Acme, CN=a.example"),
            (r"O=Acme\, Inc. , C = DE", "C=DE, O=Acme, Inc."),
            (r#"O="Acme, Inc.",C=DE"#, "C=DE, O=Acme, Inc."),
            (r"L=K\C3\B6ln", "L=Köln"),
            (r"CN=tail\ ", "CN=tail "),
            ("OU=b+OU=a,DC=example", "DC=example, OU=a + OU=b"),
            ("2.5.4.12=Dr", "title=Dr"),
        ] {
            assert_eq!(shown(&spec(text)), expected, "{text}");
        }
    }

    #[test]
    fn text_that_is_no_subject_is_refused() {
        for text in ["a.example", "XX=1", "CN=a,,C=DE", r"CN=a\", r"CN=\ff", "9.9=x"] {
            assert!(name(&spec(text)).is_err(), "{text}");
        }
    }
}
