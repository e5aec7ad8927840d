//! Certificates that the user asks about: the places that arguments of the command line name, and their content.
//!
//! The syntax of an argument decides, without asking a store or a resolver: a name with the ending of a certificate file
//! or of an existing file, `KIND/NAME`, `HOST:PORT`, and otherwise a Certificate. Users can write an ambiguous name so
//! that it is clear: `certificate/web`, `./web`.

pub mod files;
pub mod inquiry;
pub mod servers;
pub mod stored;

use std::path::Path;

use jiff::Timestamp;
use url::Url;

use crate::acme::PrivateKey;
use crate::acme::chain::ChainFault;
use crate::acme::inspection::{InspectedChain, Material, issuer_name};
use crate::context::failure::Failure;
use crate::model::certificate_report::{CertificateSource, ReportedCertificate};
use crate::model::{DnsName, Key, Kind};

/// File name endings of certificates and keys.
const FILE_ENDINGS: [&str; 6] = [".cer", ".crt", ".der", ".key", ".pem", ".cert"];
/// Default port of TLS servers.
const HTTPS_PORT: u16 = 443;

/// Place of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificatePlace {
    /// Secret of a Certificate.
    Certificate(String),
    /// Status of a CertificateRequest.
    Request(String),
    /// File or folder; `-` is standard input.
    File(String),
    /// Secret.
    Secret(String),
    /// TLS server.
    Server {
        /// Host name or IP address.
        host: String,
        /// TCP port.
        port: u16,
    },
}

impl CertificatePlace {
    /// Parses an argument; `is_file` returns whether a file exists.
    ///
    /// # Errors
    /// Fails when the argument names a kind without certificates, or has no known form.
    pub fn parse(word: &str, is_file: impl Fn(&Path) -> bool) -> Result<Self, Failure> {
        if let Some(place) = Self::of_url(word) {
            return Ok(place);
        }
        let lower = word.to_ascii_lowercase();
        let is_named_so = FILE_ENDINGS.iter().any(|ending| lower.ends_with(ending));
        // A path may begin with a folder named like a kind, such as `certs`.
        if !is_named_so
            && let Some((kind, name)) = word.split_once('/')
            && let Some(kind) = Kind::parse(kind)
            && !name.is_empty()
            && !name.contains('/')
        {
            return match kind {
                Kind::Certificate => Ok(Self::Certificate(name.to_owned())),
                Kind::CertificateRequest => Ok(Self::Request(name.to_owned())),
                Kind::Secret => Ok(Self::Secret(name.to_owned())),
                _ => Err(Failure::usage(format!(
                    "cannot show {word}: no {kind} holds a certificate"
                ))
                .hint("use certificate/NAME, certificaterequest/NAME or secret/NAME")),
            };
        }
        if word == "-" || word.contains('/') || is_named_so || is_file(Path::new(word)) {
            return Ok(Self::File(word.to_owned()));
        }
        if !word.contains(':') {
            return Ok(Self::Certificate(word.to_owned()));
        }
        Self::of_host(word).ok_or_else(|| {
            Failure::usage(format!("cannot read \"{word}\" as HOST:PORT"))
                .hint("write an IPv6 address in brackets: [2001:db8::1]:443")
        })
    }

    fn of_url(word: &str) -> Option<Self> {
        let url = Url::parse(word).ok().filter(|url| url.scheme() == "https")?;
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        Some(Self::Server { host, port: url.port().unwrap_or(HTTPS_PORT) })
    }

    fn of_host(word: &str) -> Option<Self> {
        let (host, port) = word.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_host = !host.is_empty() && (bare.is_some() || !host.contains([':', '[', ']']));
        // TLS servers know a name in another script only in its ASCII form.
        let plain = DnsName::parse(host).ok().filter(|_| !host.is_ascii());
        let host = plain.map_or_else(|| bare.unwrap_or(host).to_owned(), |name| name.to_string());
        is_host.then_some(Self::Server { host, port })
    }

    /// Returns whether the place is in a store.
    pub fn is_stored(&self) -> bool {
        matches!(self, Self::Certificate(_) | Self::Request(_) | Self::Secret(_))
    }
}

/// Certificate that was found, with the data for questions to its CA.
#[derive(Clone, Debug)]
pub struct FoundCertificate {
    /// Report on the certificate's content.
    pub reported: ReportedCertificate,
    /// Certificate and the certificates found with it, DER.
    pub chain: Vec<Vec<u8>>,
    /// Common name of the issuer of the last certificate; empty if it has none.
    pub top_issuer: String,
    /// Issuer of the certificate, if its Secret or resource names one.
    pub issued_by: Option<Key>,
    /// Time at which this program had the certificate revoked, if its Certificate records it.
    pub revoked_at: Option<Timestamp>,
}

impl FoundCertificate {
    /// Reads certificates that were found together; `given` replaces the key found with them.
    ///
    /// # Errors
    /// Fails when there is no certificate, or one cannot be read.
    pub fn read(
        source: CertificateSource,
        found: Material,
        given: Option<&PrivateKey>,
        now: Timestamp,
    ) -> Result<Self, ChainFault> {
        let reported = report(source, &found, given, now)?;
        let chain = found.certificates;
        let top_issuer = chain.last().map(|der| issuer_name(der)).unwrap_or_default();
        Ok(Self { reported, chain, top_issuer, issued_by: None, revoked_at: None })
    }
}

/// Reports the content of certificates that were found together; `given` replaces the key found with them.
///
/// # Errors
/// Fails when there is no certificate, or one cannot be read.
fn report(
    source: CertificateSource,
    found: &Material,
    given: Option<&PrivateKey>,
    now: Timestamp,
) -> Result<ReportedCertificate, ChainFault> {
    let inspected = InspectedChain::read(&found.certificates, now)?;
    let given = given.map(|key| Ok(key.clone()));
    let (key_matches, key_fault) = inspected.compare(given.as_ref().or(found.key.as_ref()));
    let InspectedChain { content, links, end, .. } = inspected;
    Ok(ReportedCertificate {
        source,
        content,
        key_matches,
        key_fault,
        chain: links,
        root: end,
        resource: None,
        server: None,
        revocation: None,
        renewal_window: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: &str) {
        let place = CertificatePlace::parse(word, |path| path == Path::new("there"));
        let shown = match place {
            Ok(CertificatePlace::Certificate(name)) => format!("Certificate {name}"),
            Ok(CertificatePlace::Request(name)) => format!("CertificateRequest {name}"),
            Ok(CertificatePlace::File(path)) => format!("file {path}"),
            Ok(CertificatePlace::Secret(name)) => format!("Secret {name}"),
            Ok(CertificatePlace::Server { host, port }) => format!("server {host} {port}"),
            Err(failure) => format!("error: {failure}"),
        };
        assert_eq!(shown, expected, "{word}");
    }

    #[test]
    fn a_word_is_taken_for_what_it_looks_like() {
        check("web", "Certificate web");
        check("www.example.com", "Certificate www.example.com");
        check("cert/web", "Certificate web");
        check("certificates.cert-manager.io/web", "Certificate web");
        check("secret/web-tls", "Secret web-tls");
        check("cr/own", "CertificateRequest own");
        check("there", "file there");
        check("web.pem", "file web.pem");
        check("WEB.CRT", "file WEB.CRT");
        check("certs/tls.crt", "file certs/tls.crt");
        check("./web", "file ./web");
        check("/etc/ssl/acme/web-tls", "file /etc/ssl/acme/web-tls");
        check("secret/a/b", "file secret/a/b");
        check("-", "file -");
        check("www.example.com:443", "server www.example.com 443");
        check("[2001:db8::1]:8443", "server 2001:db8::1 8443");
        check("192.0.2.1:443", "server 192.0.2.1 443");
        check("https://www.example.com/path", "server www.example.com 443");
        check("https://[2001:db8::1]:8443", "server 2001:db8::1 8443");
    }

    #[test]
    fn what_looks_like_nothing_is_refused() {
        check("order/web-1", "error: cannot show order/web-1: no Order holds a certificate");
        for word in ["2001:db8::1", "www.example.com:https", ":443", "a:0", "a:70000", "[::1:443"] {
            check(word, &format!("error: cannot read \"{word}\" as HOST:PORT"));
        }
    }
}
