//! Extended DNS errors as they come from the wire (RFC 8914).

use crate::model::extended_error::ExtendedError;

/// EDNS option that holds an extended error (§2).
pub(super) const OPTION: u16 = 15;

/// Reads the error at the beginning of the option. The server's own text behind it differs from lookup to lookup.
pub(super) fn read(option: &[u8]) -> Option<ExtendedError> {
    ExtendedError::of(u16::from_be_bytes(option.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_and_the_words_behind_it_are_left_out() {
        assert_eq!(read(&[0, 7]), ExtendedError::of(7));
        assert_eq!(read(b"\x00\x16at 192.0.2.1"), ExtendedError::of(22));
        for option in [&[][..], &[0], &[0, 0], &[0, 31], &[255, 255]] {
            assert_eq!(read(option), None, "{option:?}");
        }
    }
}
