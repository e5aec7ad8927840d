//! HMAC key of an external account binding, read alike from a file, a variable and a Secret.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, NO_PAD};
use zeroize::Zeroizing;

/// Base64url as Go decodes it for cert-manager: trailing bits that belong to no byte are ignored.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);
const LENIENT: GeneralPurposeConfig = NO_PAD.with_decode_allow_trailing_bits(true);
/// Shortest line of folded base64 before another line, in bytes.
const MIN_FOLDED_LINE: usize = 60;

/// Returns a key as un-padded base64url (RFC 8555 §7.3.4). CAs and tools also give keys with padding, in the letters of
/// base64, in quotes, with blanks around or folded into lines; each of these forms means one key only. `None` if the
/// text is empty or in another form.
pub fn base64url(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let text = ['"', '\''].into_iter().fold(text, |text, quote| {
        let inner = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        inner.unwrap_or(text).trim()
    });
    let plain = unfold(text)?.trim_end_matches('=').replace('+', "-").replace('/', "_");
    let is_key = !plain.is_empty() && BASE64URL.decode(&plain).is_ok();
    is_key.then_some(plain)
}

/// Decodes a key; `None` if the text is no key.
pub fn decode(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    BASE64URL.decode(base64url(text)?).ok().map(Zeroizing::new)
}

/// Joins the lines of a folded text; `None` if the lines are no folds, such as a key ID above its key.
fn unfold(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let (last, folds) = lines.split_last()?;
    let width = folds.first().map_or(0, |first| first.len());
    let is_folded = |line: &&str| line.len() == width && width >= MIN_FOLDED_LINE;
    folds.iter().all(is_folded).then(|| [folds, &[*last]].concat().concat())
}
