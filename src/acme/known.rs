//! Public CAs that we know by name.

use instant_acme::{LetsEncrypt, ZeroSsl};

/// What a CA's certificates are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Trusted by browsers; has limits.
    Production,
    /// For trying out; trusted by nobody.
    Staging,
}

const PRODUCTION: [&str; 4] = [
    LetsEncrypt::Production.url(),
    ZeroSsl::Production.url(),
    "https://dv.acme-v02.api.pki.goog/directory",
    "https://acme-api.actalis.com/acme/directory",
];
const STAGING: [&str; 2] =
    [LetsEncrypt::Staging.url(), "https://dv.acme-v02.test-api.pki.goog/directory"];

/// The directory of a CA named as people name it: `letsencrypt`, `letsencrypt-staging`, `zerossl`.
pub fn directory(name: &str) -> Option<&'static str> {
    match name {
        "letsencrypt" => Some(LetsEncrypt::Production.url()),
        "letsencrypt-staging" => Some(LetsEncrypt::Staging.url()),
        "zerossl" => Some(ZeroSsl::Production.url()),
        _ => None,
    }
}

/// What the CA with that directory is good for, where known.
pub fn tier(directory: &str) -> Option<Tier> {
    let directory = directory.trim_end_matches('/');
    if PRODUCTION.contains(&directory) {
        return Some(Tier::Production);
    }
    STAGING.contains(&directory).then_some(Tier::Staging)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_servers_are_told_apart() {
        for (name, expected) in [
            ("letsencrypt", Some(Tier::Production)),
            ("letsencrypt-staging", Some(Tier::Staging)),
            ("zerossl", Some(Tier::Production)),
            ("mine", None),
        ] {
            assert_eq!(directory(name).and_then(tier), expected, "{name}");
        }
        assert_eq!(tier("https://ca.example/directory"), None);
    }
}
