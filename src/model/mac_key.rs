//! The HMAC key of an external account binding: one reading for a file, a variable and a Secret.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, NO_PAD};
use zeroize::Zeroizing;

/// As Go reads it for cert-manager: bits that belong to no byte are left alone.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);
const LENIENT: GeneralPurposeConfig = NO_PAD.with_decode_allow_trailing_bits(true);
/// Shortest line after which a program that folds base64 begins another.
const MIN_FOLDED_LINE: usize = 60;

/// Returns a key as un-padded base64url (RFC 8555 §7.3.4). CAs and tools also give it with padding, in the letters of base64, in
/// quotes, with blanks around it or folded into lines; each of these forms means one key only. `None` if it is empty or another
/// text.
pub fn base64url(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let text = ['"', '\''].into_iter().fold(text, |text, quote| {
        let inner = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        inner.unwrap_or(text).trim()
    });
    let plain = unfolded(text)?.trim_end_matches('=').replace('+', "-").replace('/', "_");
    let is_key = !plain.is_empty() && BASE64URL.decode(&plain).is_ok();
    is_key.then_some(plain)
}

/// Decodes a key; `None` if it is none.
pub fn decode(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    BASE64URL.decode(base64url(text)?).ok().map(Zeroizing::new)
}

/// The lines of a folded text as one; `None` if its lines are no folds, such as a key ID above its key.
fn unfolded(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let (last, folds) = lines.split_last()?;
    let width = folds.first().map_or(0, |first| first.len());
    let is_folded = |line: &&str| line.len() == width && width >= MIN_FOLDED_LINE;
    folds.iter().all(is_folded).then(|| [folds, &[*last]].concat().concat())
}
