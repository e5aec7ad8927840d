//! CAs that have a short name, and ACME servers as the command line names them.

use super::hashed_names;
use super::text::closest;

/// Directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
/// Directory of Let's Encrypt's staging server, which nobody trusts and which may be used freely.
pub const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// Longest object name made here, in bytes; leaves room for `-account-key`.
const NAME_LIMIT: usize = 200;

/// Public CAs: short name and directory. All but Let's Encrypt want an external account (RFC 8555 §7.3.4), as their
/// directories say.
const PUBLIC_SERVERS: [(&str, &str); 13] = [
    ("letsencrypt", LETS_ENCRYPT),
    ("letsencrypt-staging", LETS_ENCRYPT_STAGING),
    ("zerossl", "https://acme.zerossl.com/v2/DV90"),
    ("google", "https://dv.acme-v02.api.pki.goog/directory"),
    ("google-staging", "https://dv.acme-v02.test-api.pki.goog/directory"),
    ("sslcom-ecc", "https://acme.ssl.com/sslcom-dv-ecc"),
    ("sslcom-rsa", "https://acme.ssl.com/sslcom-dv-rsa"),
    ("actalis", "https://acme-api.actalis.com/acme/directory"),
    ("sectigo-dv", "https://acme.sectigo.com/v2/DV"),
    ("sectigo-ev", "https://acme.sectigo.com/v2/EV"),
    ("sectigo-ov", "https://acme.sectigo.com/v2/OV"),
    ("digicert", "https://one.digicert.com/mpki/api/v1/acme/v2/directory"),
    ("globalsign", "https://emea.acme.atlas.globalsign.com/directory"),
];

/// An ACME server, as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeServer {
    url: String,
    name: String,
}

/// A text that names no ACME server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownServer {
    /// Neither the short name of a CA nor a URL.
    #[error("\"{0}\" is neither the URL of an ACME directory nor the name of a CA")]
    Neither(String),
    /// The text is almost the short name of a CA.
    #[error("\"{given}\" is not the name of a CA; did you mean {meant}?")]
    Misspelt {
        /// Text that was given.
        given: String,
        /// Short name that was probably meant.
        meant: &'static str,
    },
}

impl AcmeServer {
    /// Returns the short names of CAs.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PUBLIC_SERVERS.iter().map(|(name, _)| *name)
    }

    /// Returns the hosts of public CAs.
    pub fn public_hosts() -> impl Iterator<Item = &'static str> {
        PUBLIC_SERVERS.iter().filter_map(|(_, url)| url.split('/').nth(2))
    }

    /// Reports whether the URL of a directory belongs to a public CA.
    pub fn is_public(directory: &str) -> bool {
        let directory = url::Url::parse(directory).ok();
        let host = directory.as_ref().and_then(url::Url::host_str).unwrap_or_default();
        Self::public_hosts().any(|known| {
            host == known || host.strip_suffix(known).is_some_and(|it| it.ends_with('.'))
        })
    }

    /// Reads the short name of a CA or the URL of a directory.
    ///
    /// # Errors
    /// Fails when the text is neither.
    pub fn parse(text: &str) -> Result<Self, UnknownServer> {
        if let Some((name, url)) = PUBLIC_SERVERS.iter().find(|(name, _)| *name == text) {
            return Ok(Self { url: (*url).to_owned(), name: (*name).to_owned() });
        }
        let parsed = url::Url::parse(text).ok();
        let Some(url) = parsed.filter(|url| ["https", "http"].contains(&url.scheme())) else {
            let given = text.to_owned();
            return Err(match closest(text, Self::names()) {
                Some(meant) => UnknownServer::Misspelt { given, meant },
                None => UnknownServer::Neither(given),
            });
        };
        let name = match PUBLIC_SERVERS[..2].iter().find(|(_, known)| *known == url.as_str()) {
            Some((name, _)) => (*name).to_owned(),
            // Two directories of one host are two issuers.
            None => object_name(
                url.as_str().trim_start_matches("https://").trim_start_matches("http://"),
            ),
        };
        Ok(Self { url: text.to_owned(), name })
    }

    /// Returns the URL of the directory.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the name of the Issuer made for the server.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Turns a name, an address or a URL into the name of an object: `*.example.com` to `wildcard-example-com`.
pub(crate) fn object_name(text: &str) -> String {
    let text = match text.strip_prefix("*.") {
        Some(base) => format!("wildcard-{base}"),
        None => text.to_owned(),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = text.chars().map(plain).collect();
    hashed_names::shorten(name.trim_matches('-'), NAME_LIMIT).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_names_of_their_own() {
        for (text, url, name) in [
            ("letsencrypt", LETS_ENCRYPT, "letsencrypt"),
            ("letsencrypt-staging", LETS_ENCRYPT_STAGING, "letsencrypt-staging"),
            (LETS_ENCRYPT_STAGING, LETS_ENCRYPT_STAGING, "letsencrypt-staging"),
            ("https://localhost:14000/dir", "https://localhost:14000/dir", "localhost-14000-dir"),
            ("google", "https://dv.acme-v02.api.pki.goog/directory", "google"),
            (
                "https://acme.zerossl.com/v2/DV90",
                "https://acme.zerossl.com/v2/DV90",
                "acme-zerossl-com-v2-dv90",
            ),
        ] {
            let server = AcmeServer::parse(text).unwrap();
            assert_eq!((server.url(), server.name()), (url, name));
        }
    }

    #[test]
    fn what_names_no_server_is_refused_with_the_name_that_was_meant() {
        for (text, told) in [
            ("letsencypt", "\"letsencypt\" is not the name of a CA; did you mean letsencrypt?"),
            ("", "\"\" is neither the URL of an ACME directory nor the name of a CA"),
            (
                "acme.example/dir",
                "\"acme.example/dir\" is neither the URL of an ACME directory nor the name of a CA",
            ),
            (
                "ftp://ca.example",
                "\"ftp://ca.example\" is neither the URL of an ACME directory nor the name of a CA",
            ),
        ] {
            assert_eq!(
                AcmeServer::parse(text).map_err(|why| why.to_string()),
                Err(told.to_owned())
            );
        }
    }

    #[test]
    fn every_known_directory_is_a_url_of_https() {
        for (name, url) in PUBLIC_SERVERS {
            let url = url::Url::parse(url).unwrap();
            assert_eq!((url.scheme(), object_name(name)), ("https", name.to_owned()));
        }
        assert!(AcmeServer::public_hosts().all(|host| host.contains('.')));
    }
}
