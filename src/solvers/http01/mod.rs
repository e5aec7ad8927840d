//! HTTP-01 (RFC 8555 §8.3): the answer under a path of the name itself, on port 80.

pub mod cluster;
pub mod files;
pub mod listener;
pub mod single;
pub mod webroot;

/// Path of answers on a web server; the token follows.
pub const PATH: &str = "/.well-known/acme-challenge/";

/// Returns whether a token may stand in a path: base64url, as the RFC demands, so that the path can never lead elsewhere.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}
