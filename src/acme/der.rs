//! DER, just enough to write signing requests and keystores (X.690).

use der::asn1::{AnyRef, PrintableStringRef};
use der::{Encode as _, Tag, TagNumber};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::model::certificate::subidentifiers;

/// The tag `[number]`, primitive (an implicit string).
pub(crate) fn context(number: u32) -> Tag {
    TagNumber(number).context_specific(false)
}

/// The tag `[0]`, constructed.
pub(crate) fn context_constructed() -> Tag {
    TagNumber(0).context_specific(true)
}

/// Encodes one element: tag, length, content; empty for content beyond the 4 GiB that the library writes.
pub(crate) fn element(tag: Tag, content: &[u8]) -> Vec<u8> {
    AnyRef::new(tag, content).and_then(|element| element.to_der()).unwrap_or_default()
}

/// Encodes one element that holds other elements, in the given order.
pub(crate) fn constructed(tag: Tag, parts: &[Vec<u8>]) -> Vec<u8> {
    element(tag, &parts.concat())
}

/// SET OF: DER wants the elements in the order of their encodings (X.690 §11.6).
pub(crate) fn set_of(mut parts: Vec<Vec<u8>>) -> Vec<u8> {
    parts.sort();
    constructed(Tag::Set, &parts)
}

/// BIT STRING of whole bytes.
pub(crate) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(Tag::BitString, &[&[0], bytes].concat())
}

/// BIT STRING of named bits, bit 0 first, without the zeroes at the end (X.690 §11.2.2).
pub(crate) fn named_bits(bits: u16) -> Vec<u8> {
    let reversed = bits.reverse_bits().to_be_bytes();
    let bytes = if reversed[1] == 0 { &reversed[..1] } else { &reversed[..] };
    let unused = match bytes.last() {
        Some(last) if *last != 0 => u8::try_from(last.trailing_zeros()).unwrap_or(0),
        _ => return element(Tag::BitString, &[0]),
    };
    element(Tag::BitString, &[&[unused], bytes].concat())
}

/// The tag `[number]`, constructed, around an element (explicit).
pub(crate) fn explicit(number: u32, content: &[u8]) -> Vec<u8> {
    element(TagNumber(number).context_specific(true), content)
}

/// Encodes a time, to the second (RFC 5280 §4.1.2.5).
pub(crate) fn time(at: Timestamp) -> Vec<u8> {
    let at = at.to_zoned(TimeZone::UTC);
    let (tag, format) = if (1950..2050).contains(&at.year()) {
        (Tag::UtcTime, "%y%m%d%H%M%SZ")
    } else {
        (Tag::GeneralizedTime, "%Y%m%d%H%M%SZ")
    };
    element(tag, at.strftime(format).to_string().as_bytes())
}

/// INTEGER.
pub(crate) fn number(number: u32) -> Vec<u8> {
    number.to_der().unwrap_or_default()
}

/// OBJECT IDENTIFIER from its dotted form; `None` if the text is no dotted form.
pub(crate) fn dotted(text: &str) -> Option<Vec<u8>> {
    let numbers = subidentifiers(text)?;
    let content: Vec<u8> = numbers.into_iter().flat_map(base128).collect();
    Some(element(Tag::ObjectIdentifier, &content))
}

fn base128(number: u64) -> Vec<u8> {
    let mut digits = vec![(number & 0x7f) as u8];
    let mut rest = number >> 7;
    while rest > 0 {
        digits.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    digits.reverse();
    digits
}

/// Text as Go writes it into names: PrintableString if that type suffices, else UTF8String.
pub(crate) fn text(text: &str) -> Vec<u8> {
    let tag =
        if PrintableStringRef::new(text).is_ok() { Tag::PrintableString } else { Tag::Utf8String };
    element(tag, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_identifiers_read_as_in_the_standard() {
        // X.690 §8.19.5 gives 2.999.3 as 06 03 88 37 03.
        assert_eq!(dotted("2.999.3"), Some(vec![0x06, 0x03, 0x88, 0x37, 0x03]));
        assert_eq!(dotted("1.2.840.113549").map(|d| d.len()), Some(8));
        let (most, more) = ("2.18446744073709551535", "2.18446744073709551536");
        assert_eq!(dotted(most).map(|d| d.len()), Some(12));
        for bad in ["", "1", "3.1", "1.40", "1.x", "+1.2", more, "2.18446744073709551615"] {
            assert_eq!(dotted(bad), None, "{bad}");
        }
    }

    #[test]
    fn named_bits_lose_the_zeroes_at_their_end() {
        // digitalSignature and keyEncipherment, as every TLS certificate has them.
        assert_eq!(named_bits(0b101), [0x03, 0x02, 0x05, 0xa0]);
        // decipherOnly is bit 8 and needs a second byte.
        assert_eq!(named_bits(1 << 8), [0x03, 0x03, 0x07, 0x00, 0x80]);
        assert_eq!(named_bits(0), [0x03, 0x01, 0x00]);
    }

    #[test]
    fn a_star_needs_utf8() {
        assert_eq!(text("Acme Co").first(), Some(&0x13));
        assert_eq!(text("*.example.com").first(), Some(&0x0c));
        assert_eq!(text("Zürich").first(), Some(&0x0c));
    }
}
