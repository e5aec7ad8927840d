//! Foreign texts, without this program's credentials in them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use zeroize::Zeroizing;

use super::credential::Credential;
use super::text::encoded;

/// Fewest bytes of a credential; a shorter text is no credential, and hiding it would tear holes into words.
const MIN_CREDENTIAL_BYTES: usize = 4;
/// Text in place of a credential.
const MASK: &str = "***";

/// Returns the text without these credentials: as they are, as URLs encode them and as Basic
/// authentication does; of a credential with several lines, each line is hidden.
pub(super) fn without<'a>(text: &str, hidden: impl Iterator<Item = &'a Credential>) -> String {
    let mut forms: Vec<Zeroizing<String>> = Vec::new();
    for credential in hidden {
        for line in credential.expose().lines().chain([credential.expose()]) {
            let line = line.trim();
            if line.len() >= MIN_CREDENTIAL_BYTES {
                forms.push(Zeroizing::new(line.to_owned()));
                forms.push(Zeroizing::new(encoded(line)));
                let in_base64 = BASE64_STANDARD.encode(line);
                forms.push(Zeroizing::new(in_base64.trim_end_matches('=').to_owned()));
            }
        }
    }
    // Longest first: one may hold another.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), MASK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden_however_they_are_written() {
        let hidden = ["hush hush", "ab", "-----BEGIN KEY-----\nMIIabc\nMIIdef\n-----END KEY-----"];
        let hidden = hidden.map(Credential::new);
        for (text, expected) in [
            ("token=hush%20hush&x=ab", "token=***&x=ab"),
            ("Basic aHVzaCBodXNo", "Basic ***"),
            ("said \"hush hush\"", "said \"***\""),
            ("key MIIabc is bad", "key *** is bad"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without(text, hidden.iter()), expected);
        }
    }
}
