//! Masking of requests and answers for logs: no private key, no credential, no challenge's answer, and not too much.
//!
//! Secrets are recognized by the names of fields, and by their own form if they stand in texts.

use serde_json::Value;

use super::text::hex;

/// Text in the place of a secret.
const HIDDEN: &str = "***";
/// Most bytes of a body that are shown.
const MAX_SHOWN_BYTES: usize = 4096;
/// Characters of a SHA-256 in base64url: tokens of most CAs, thumbprints, and the texts of DNS-01.
const DIGEST_CHARS: usize = 43;
/// Fewest characters of a challenge's token: 128 bits of the token are random (RFC 8555 §8.3).
const MIN_TOKEN_CHARS: usize = 22;
/// Fewest characters of a word that is hidden because it begins as JSON does in base64url.
const MIN_ENCODED_CHARS: usize = 40;
/// Path before the token of a challenge in a URL.
const TOKEN_PATH: &str = "/.well-known/acme-challenge/";
/// Schemes before a credential in a header.
const SCHEMES: [&str; 2] = ["Bearer ", "Basic "];
/// Parts of the names of secret fields, without case and separators.
const SECRET_PARTS: [&str; 13] = [
    "accesskey",
    "apikey",
    "assertion",
    "credential",
    "hmac",
    "keyauth",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "signature",
    "token",
];
/// Whole names of secret fields.
const SECRET_NAMES: [&str; 8] =
    ["auth", "authorization", "externalaccountbinding", "jwk", "key", "mac", "nonce", "pin"];

/// Masks a body for a log: the secret fields of JSON and forms are hidden, and all that looks like a secret in any
/// other text; of a long body only the beginning is shown.
pub fn body(bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let start: &[u8] = &bytes[..bytes.len().min(16)];
        return format!("({} bytes that are no text, beginning with {})", bytes.len(), hex(start));
    };
    let shown = match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Array(_) | Value::Object(_))) => document(value).to_string(),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | Err(_)
            if is_form(text) =>
        {
            form(text)
        }
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | Err(_) => {
            without_digests(&self::text(text))
        }
    };
    truncate(&shown, bytes.len())
}

/// Masks the secret fields of a document.
pub fn document(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| field(name, value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(document).collect()),
        Value::String(text) => Value::String(without_digests(&self::text(&text))),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
    }
}

fn field(name: String, value: Value) -> (String, Value) {
    let is_empty = value == Value::Null || value == Value::String(String::new());
    let is_held = matches!(value, Value::String(_) | Value::Number(_)) || is_whole(&name);
    if is_secret(&name) && is_held && !is_empty {
        return (name, HIDDEN.into());
    }
    (name, document(value))
}

/// Masks the secret fields of a URL's query, and removes the name and password before its host.
pub fn url(url: &str) -> String {
    let url = match url.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.find(['/', '?']).unwrap_or(rest.len());
            let (host, path) = rest.split_at(host);
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    };
    match url.split_once('?') {
        Some((path, query)) => format!("{}?{}", text(path), form(query)),
        None => text(&url),
    }
}

/// Masks private keys, bearer tokens, and the tokens and key authorizations of challenges in a text.
pub fn text(text: &str) -> String {
    let text = without_keys(text);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let length = run(rest, is_word);
        if length == 0 {
            let other = run(rest, |c| !is_word(c));
            shown.push_str(&rest[..other]);
            rest = &rest[other..];
            continue;
        }
        let (word, behind) = rest.split_at(length);
        let is_answer = shown.ends_with(TOKEN_PATH) || SCHEMES.iter().any(|s| shown.ends_with(s));
        let bare = word.trim_end_matches('.');
        if is_answer || is_key_authorization(bare) || is_encoded(bare) {
            shown.push_str(HIDDEN);
            shown.push_str(&word[bare.len()..]);
        } else {
            shown.push_str(word);
        }
        rest = behind;
    }
    shown
}

/// Masks private keys in PEM.
fn without_keys(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN ";
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let label = rest[at + BEGIN.len()..].split("-----").next().unwrap_or_default();
        let end = format!("-----END {label}-----");
        let length = rest[at..].find(&end).map_or(rest.len() - at, |found| found + end.len());
        shown.push_str(&rest[..at]);
        let block = &rest[at..at + length];
        shown.push_str(if label.ends_with("PRIVATE KEY") { HIDDEN } else { block });
        rest = &rest[at + length..];
    }
    shown + rest
}

/// Masks words as long as a SHA-256 in base64url, except in paths.
fn without_digests(text: &str) -> String {
    let is_part = |c: char| is_word(c) && c != '.';
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let length = run(rest, is_part);
        let other = run(&rest[length..], |c| !is_part(c));
        let hidden = length == DIGEST_CHARS && !shown.ends_with('/');
        shown.push_str(if hidden { HIDDEN } else { &rest[..length] });
        shown.push_str(&rest[length..length + other]);
        rest = &rest[length + other..];
    }
    shown
}

/// Masks the secret fields of forms and queries.
fn form(text: &str) -> String {
    let fields = text.split('&').map(|field| match field.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
        Some((name, value)) => format!("{name}={}", without_digests(&self::text(value))),
        None => field.to_owned(),
    });
    fields.collect::<Vec<_>>().join("&")
}

fn is_form(text: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !"<>\"{}".contains(c);
    text.contains('=') && text.chars().all(is_plain)
}

fn is_secret(name: &str) -> bool {
    let name = flat(name);
    is_whole(&name) || SECRET_PARTS.iter().any(|part| name.contains(part))
}

fn is_whole(name: &str) -> bool {
    SECRET_NAMES.contains(&flat(name).as_str())
}

/// Removes case and separators from a name.
fn flat(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
}

/// Reports whether a word is a token and a thumbprint (RFC 8555 §8.1).
fn is_key_authorization(word: &str) -> bool {
    let halves = word.split_once('.');
    halves.is_some_and(|(token, print)| {
        token.len() >= MIN_TOKEN_CHARS && print.len() == DIGEST_CHARS && !print.contains('.')
    })
}

/// Reports whether a word is JSON in base64url, as signed tokens and requests begin.
fn is_encoded(word: &str) -> bool {
    word.starts_with("eyJ") && word.len() >= MIN_ENCODED_CHARS
}

/// Reports whether a character belongs to base64url, or is a dot between its parts.
fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.".contains(character)
}

/// Returns the number of bytes at the beginning whose characters `is_part` accepts.
fn run(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

fn truncate(text: &str, length: usize) -> String {
    if text.len() <= MAX_SHOWN_BYTES {
        return text.to_owned();
    }
    let end = (0..=MAX_SHOWN_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    format!("{}… ({length} bytes)", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST_43: &str = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0";

    #[track_caller]
    fn check(shown: &str, expected: &str) {
        assert_eq!(shown, expected.replace("DIGEST", DIGEST_43));
    }

    fn of(body: &str) -> String {
        super::body(body.replace("DIGEST", DIGEST_43).as_bytes())
    }

    #[test]
    fn a_problem_is_shown_without_the_challenges_token() {
        check(
            &of(
                r#"{"type":"urn:ietf:params:acme:error:unauthorized","status":403,"detail":"Invalid response from http://a.example/.well-known/acme-challenge/DIGEST: 404"}"#,
            ),
            r#"{"detail":"Invalid response from http://a.example/.well-known/acme-challenge/***: 404","status":403,"type":"urn:ietf:params:acme:error:unauthorized"}"#,
        );
        check(
            &of(r#"{"detail":"the server said \"abcdefghijklmnopqrstuvwx.DIGEST\"."}"#),
            r#"{"detail":"the server said \"***\"."}"#,
        );
    }

    #[test]
    fn an_authorization_is_shown_with_its_urls_and_without_tokens() {
        check(
            &of(
                r#"{"challenges":[{"type":"http-01","token":"DIGEST","url":"https://ca/chall/DIGEST"}],"authorizations":["https://ca/authz/1"]}"#,
            ),
            r#"{"authorizations":["https://ca/authz/1"],"challenges":[{"token":"***","type":"http-01","url":"https://ca/chall/DIGEST"}]}"#,
        );
    }

    #[test]
    fn credentials_are_hidden_by_the_names_of_their_fields() {
        for (body, expected) in [
            (
                r#"{"access_token":"abc","expires_in":5}"#,
                r#"{"access_token":"***","expires_in":5}"#,
            ),
            (
                r#"{"config":{"apiKeySecretRef":{"name":"dns"}}}"#,
                r#"{"config":{"apiKeySecretRef":{"name":"dns"}}}"#,
            ),
            (
                r#"{"externalAccountBinding":{"payload":"x"}}"#,
                r#"{"externalAccountBinding":"***"}"#,
            ),
            (
                r#"[{"Password":"p","x-api-key":"k","name":"n"}]"#,
                r#"[{"Password":"***","name":"n","x-api-key":"***"}]"#,
            ),
            (
                "grant_type=client_credentials&client_secret=hush",
                "grant_type=client_credentials&client_secret=***",
            ),
            ("<Value>\"DIGEST\"</Value>", "<Value>\"***\"</Value>"),
            ("said Bearer abc.def, no", "said Bearer ***, no"),
            ("-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\nend", "***\nend"),
            (
                "-----BEGIN CERTIFICATE-----\nMHc\n-----END CERTIFICATE-----\n",
                "-----BEGIN CERTIFICATE-----\nMHc\n-----END CERTIFICATE-----\n",
            ),
            ("cut off: -----BEGIN PRIVATE KEY-----\nMHc", "cut off: ***"),
            (
                r#"{"protected":"eyJhbGciOiJFUzI1NiIsImtpZCI6Imh0dHBzOi8vY2EifQ"}"#,
                r#"{"protected":"***"}"#,
            ),
        ] {
            check(&of(body), expected);
        }
    }

    #[test]
    fn urls_keep_their_paths_and_lose_their_credentials() {
        for (given, expected) in [
            ("https://ca.example/order/1?x=y", "https://ca.example/order/1?x=y"),
            (
                "https://me:hush@dns.example/zones?api_key=1&name=a",
                "https://dns.example/zones?api_key=***&name=a",
            ),
            (
                "http://a.example/.well-known/acme-challenge/token_1",
                "http://a.example/.well-known/acme-challenge/***",
            ),
        ] {
            assert_eq!(url(given), expected);
        }
    }

    #[test]
    fn long_and_odd_bodies_are_told_by_their_beginning() {
        let long = body("ä".repeat(5000).as_bytes());
        assert!(
            long.ends_with("… (10000 bytes)") && long.len() < MAX_SHOWN_BYTES + 30,
            "{}",
            long.len()
        );
        assert_eq!(body(&[0xff, 0x00]), "(2 bytes that are no text, beginning with ff00)");
        assert_eq!(body(b""), "");
    }
}
