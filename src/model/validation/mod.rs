//! Rules of cert-manager's admission webhook, and rules against faults that would show up later without it.
//!
//! Kinds of values (text, numbers, known words) are checked when a manifest is read; these are the rules between fields.

mod certificate;
mod dns01;
mod issuer;

pub use self::certificate::{certificate, certificate_request};
pub use self::issuer::issuer;

use super::common::SecretKeySelector;
use super::field::{FieldPath, Remark, secret_key_faults};

/// Faults of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validation {
    /// Faults that must be mended.
    pub errors: Vec<Remark>,
    /// Faults that may stay, although the object hardly does what was meant.
    pub warnings: Vec<Remark>,
}

impl Validation {
    fn error(&mut self, path: FieldPath, message: impl Into<String>) {
        self.errors.push(Remark::new(path, message));
    }

    /// Adds an error with a hint on what to write instead.
    fn error_hint(&mut self, path: FieldPath, message: impl Into<String>, hint: &str) {
        self.errors.push(Remark::new(path, message).hint(hint));
    }

    fn warn(&mut self, path: FieldPath, message: impl Into<String>) {
        self.warnings.push(Remark::new(path, message));
    }

    /// Adds an error if the text is no name that an object can have.
    fn object_name(&mut self, path: FieldPath, text: &str) {
        if let Some(why) = object_name_fault(text) {
            self.error(path, format!("\"{text}\" is not a valid name: {why}"));
        }
    }

    /// Checks a reference to one key of a Secret.
    fn secret_key(&mut self, path: &FieldPath, selector: &SecretKeySelector) {
        self.errors.extend(secret_key_faults(path, selector));
    }
}

/// Says why a text cannot be one segment of a path at an API server, by Kubernetes's rule for names and the rules of URLs.
pub fn path_segment_fault(text: &str) -> Option<&'static str> {
    match text {
        "" => Some("it is empty"),
        "." | ".." => Some("it leads elsewhere"),
        _ if text.len() > 253 => Some("it is longer than 253 characters"),
        _ if text.contains(|c: char| !c.is_ascii_graphic() || "/\\%?#".contains(c)) => {
            Some("a character in it means something in a URL")
        }
        _ => None,
    }
}

/// Says why a text cannot be the name of an object (a DNS subdomain, RFC 1123 §2.1, as Kubernetes demands).
pub fn object_name_fault(text: &str) -> Option<&'static str> {
    let edge = |label: &str| label.starts_with('-') || label.ends_with('-');
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() {
        Some("it is empty")
    } else if text.len() > 253 {
        Some("it is longer than 253 characters")
    } else if text.split('.').any(str::is_empty) {
        Some("a '.' must stand between letters or digits")
    } else if text.split('.').any(edge) {
        Some("every part must begin and end with a letter or digit")
    } else if !text.split('.').all(|label| label.bytes().all(allowed)) {
        Some("only lower-case letters, digits, '-' and '.' are allowed")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_segment_stays_where_it_is() {
        for text in ["ours", "my-Solver_1.x", "..."] {
            assert_eq!(path_segment_fault(text), None, "{text}");
        }
        for text in ["", ".", "..", "a/b", "a%2fb", "a?b", "a#b", "a\\b", "a b", "a\tb", "\u{e9}"] {
            assert!(path_segment_fault(text).is_some(), "{text}");
        }
    }

    #[test]
    fn object_names_are_dns_subdomains() {
        for name in ["web", "www.example.com", "0", "a-b.c"] {
            assert_eq!(object_name_fault(name), None, "{name}");
        }
        for name in ["", "Web", "a_b", "-a", "a-", "a..b", ".a", "*.a", "ä", &"a".repeat(254)] {
            assert!(object_name_fault(name).is_some(), "{name}");
        }
    }
}
