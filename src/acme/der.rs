//! DER, just enough to write signing requests (X.690).

use crate::model::certificate::subidentifiers;

/// SEQUENCE.
pub(super) const SEQUENCE: u8 = 0x30;
/// SET.
pub(super) const SET: u8 = 0x31;
/// BOOLEAN.
pub(super) const BOOLEAN: u8 = 0x01;
/// INTEGER.
pub(super) const INTEGER: u8 = 0x02;
/// BIT STRING.
pub(super) const BIT_STRING: u8 = 0x03;
/// OCTET STRING.
pub(super) const OCTET_STRING: u8 = 0x04;
/// NULL.
pub(super) const NULL: u8 = 0x05;
/// OBJECT IDENTIFIER.
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
/// UTF8String.
pub(super) const UTF8_STRING: u8 = 0x0c;
/// PrintableString.
pub(super) const PRINTABLE_STRING: u8 = 0x13;

/// The tag `[number]`, primitive (an implicit string).
pub(super) const fn context(number: u8) -> u8 {
    0x80 | number
}

/// The tag `[number]`, constructed.
pub(super) const fn context_constructed(number: u8) -> u8 {
    0xa0 | number
}

/// One element: tag, length, content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().take_while(|b| **b == 0).count()..];
    match significant {
        [] => out.push(0),
        [short] if *short < 0x80 => out.push(*short),
        long => {
            // A usize has at most eight bytes, so the count fits beside the marker bit.
            out.push(0x80 | u8::try_from(long.len()).unwrap_or(8));
            out.extend_from_slice(long);
        }
    }
    out.extend_from_slice(content);
    out
}

/// One element that holds others, in that order.
pub(super) fn constructed(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    element(tag, &parts.concat())
}

/// SET OF: DER wants the elements in the order of their encodings (X.690 §11.6).
pub(super) fn set_of(mut parts: Vec<Vec<u8>>) -> Vec<u8> {
    parts.sort();
    constructed(SET, &parts)
}

/// BIT STRING of whole bytes.
pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// BIT STRING of named bits, bit 0 first, without the zeroes at the end (X.690 §11.2.2).
pub(super) fn named_bits(bits: u16) -> Vec<u8> {
    let reversed = bits.reverse_bits().to_be_bytes();
    let bytes = if reversed[1] == 0 { &reversed[..1] } else { &reversed[..] };
    let unused = match bytes.last() {
        Some(last) if *last != 0 => u8::try_from(last.trailing_zeros()).unwrap_or(0),
        _ => return element(BIT_STRING, &[0]),
    };
    element(BIT_STRING, &[&[unused], bytes].concat())
}

/// OBJECT IDENTIFIER from its dotted form; `None` when it is none.
pub(super) fn dotted(text: &str) -> Option<Vec<u8>> {
    let numbers = subidentifiers(text)?;
    let content: Vec<u8> = numbers.into_iter().flat_map(base128).collect();
    Some(element(OBJECT_IDENTIFIER, &content))
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

/// Text as Go writes it into names: PrintableString where that suffices, else UTF8String.
pub(super) fn text(text: &str) -> Vec<u8> {
    let printable = |b: u8| {
        b.is_ascii_alphanumeric()
            || matches!(b, b' ' | b'\'' | b'(' | b')' | b'+'..=b'/' | b':' | b'=' | b'?')
    };
    let tag = if text.bytes().all(printable) { PRINTABLE_STRING } else { UTF8_STRING };
    element(tag, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_as_few_bytes_as_they_can() {
        for (length, header) in [
            (0, &[0x04, 0x00][..]),
            (127, &[0x04, 0x7f]),
            (128, &[0x04, 0x81, 0x80]),
            (256, &[0x04, 0x82, 0x01, 0x00]),
        ] {
            let element = element(OCTET_STRING, &vec![7; length]);
            assert_eq!(&element[..header.len()], header, "{length}");
            assert_eq!(element.len(), header.len() + length);
        }
    }

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
        assert_eq!(text("Acme Co").first(), Some(&PRINTABLE_STRING));
        assert_eq!(text("*.example.com").first(), Some(&UTF8_STRING));
        assert_eq!(text("Zürich").first(), Some(&UTF8_STRING));
    }
}
