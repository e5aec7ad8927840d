//! The connection to a CA: which certificates are trusted, how long and how much we read, what went wrong.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder};
use rustls::CertificateError;
use url::Url;

use super::error::{AcmeError, Fault};
use crate::model::names::is_loopback;

/// RFC 8555 §6.1 asks clients to say who they are.
const USER_AGENT: &str = concat!("kubectl-acme/", env!("CARGO_PKG_VERSION"));
const CONNECT: Duration = Duration::from_secs(10);
/// When a request is given up that is not answered in full.
pub const WHOLE: Duration = Duration::from_secs(90);

/// Largest JSON answer read, in bytes.
pub(super) const JSON_LIMIT: usize = 1 << 20;
/// Largest chain read, in bytes.
pub(super) const CHAIN_LIMIT: usize = 5 << 20;

/// Whom to trust at the CA's end of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TlsOptions {
    /// PEM certificates that replace the system's roots; none means the system's.
    pub ca_bundle: Vec<u8>,
    /// Takes any certificate (`skipTLSVerify`).
    pub skip_verify: bool,
}

/// Looks the hosts of CAs up in place of the system.
pub type Resolver = Arc<dyn reqwest::dns::Resolve>;

/// An answer, read to its end.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// Where it came from.
    pub(super) url: Url,
}

/// Builds the HTTP client for a server: HTTP/2 where offered, proxies from the environment, no redirects.
/// Loopback is never asked through a proxy, as with cert-manager.
pub(super) fn client(
    server: &Url,
    tls: &TlsOptions,
    resolver: Option<&Resolver>,
) -> Result<Client, AcmeError> {
    let refused = |why: String| AcmeError::Transport {
        deed: "trust",
        url: server.to_string(),
        why,
        fault: Fault::Untrusted,
    };
    // reqwest takes the process's provider; another one may be there already, which is as good.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let mut builder = Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(CONNECT)
        .timeout(WHOLE)
        .redirect(Policy::none())
        .tls_danger_accept_invalid_certs(tls.skip_verify);
    if let Some(resolver) = resolver {
        builder = builder.dns_resolver(Arc::clone(resolver));
    }
    if is_loopback(server) {
        builder = builder.no_proxy();
    }
    if !tls.ca_bundle.is_empty() {
        let roots = Certificate::from_pem_bundle(&tls.ca_bundle)
            .map_err(|e| refused(format!("caBundle is not PEM: {}", chain(&e))))?;
        if roots.is_empty() {
            return Err(refused("caBundle holds no certificate".to_owned()));
        }
        builder = builder.tls_certs_only(roots);
    } else if server.scheme() == "http" {
        // A plain server needs no roots, and there may be none on this machine.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|e| refused(chain(&e)))
}

/// Sends a request and reads the answer, up to `limit` bytes of it.
pub(super) async fn exchange(
    request: RequestBuilder,
    deed: &'static str,
    url: &str,
    limit: usize,
) -> Result<Reply, AcmeError> {
    let failed = |error: reqwest::Error| fault(error, deed, url);
    let mut response = request.send().await.map_err(failed)?;
    let mut reply = Reply {
        status: response.status().as_u16(),
        headers: std::mem::take(response.headers_mut()),
        body: Vec::new(),
        url: response.url().clone(),
    };
    while let Some(part) = response.chunk().await.map_err(failed)? {
        if reply.body.len() + part.len() > limit {
            let why = format!("it is larger than {} MiB", limit >> 20);
            return Err(AcmeError::Protocol { url: url.to_owned(), why });
        }
        reply.body.extend_from_slice(&part);
    }
    Ok(reply)
}

fn fault(error: reqwest::Error, deed: &'static str, url: &str) -> AcmeError {
    let error = error.without_url();
    let why = match (error.is_timeout(), error.is_connect()) {
        (true, true) => format!("no connection within {} s", CONNECT.as_secs()),
        (true, false) => format!("no answer within {} s", WHOLE.as_secs()),
        (false, _) => chain(&error),
    };
    let fault = sort(&error, &why);
    let why = if why.contains(LOOKUP) { no_address(&why, fault, url) } else { why };
    AcmeError::Transport { deed, url: url.to_owned(), fault, why }
}

/// How the standard library begins when the system's resolver gives no address.
const LOOKUP: &str = "failed to lookup address information: ";

/// What the system's resolver said of the host of a URL, in the words that ours has.
fn no_address(why: &str, fault: Fault, url: &str) -> String {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or("the CA");
    if fault == Fault::NoSuchHost {
        return format!("no such host {host}");
    }
    let said = why.split_once(LOOKUP).map_or(why, |(_, said)| said);
    format!("cannot look up {host}: {said}")
}

fn sort(error: &(dyn StdError + 'static), why: &str) -> Fault {
    let untrusted = causes(error).any(|cause| {
        matches!(
            cause.downcast_ref::<rustls::Error>(),
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
        )
    });
    if untrusted {
        return Fault::Untrusted;
    }
    // The resolver's answers come as text only: glibc, musl, macOS, Windows, and ours.
    let no_such_host = [
        "Name or service not known",
        "No address associated with hostname",
        "Name does not resolve",
        "Name has no usable address",
        "nodename nor servname provided",
        "No such host is known",
        "no such host ",
        "has neither an A nor an AAAA record",
    ];
    if no_such_host.iter().any(|text| why.contains(text)) {
        return Fault::NoSuchHost;
    }
    if why.contains(LOOKUP) { Fault::Lookup } else { Fault::Passing }
}

/// The error and everything below it.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |cause| below(*cause))
}

/// An `io::Error` that wraps another hides it from `source`, hence the detour.
fn below<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match cause.downcast_ref::<io::Error>() {
        Some(outer) => outer.get_ref().map(|inner| inner as &(dyn StdError + 'static)),
        None => cause.source(),
    }
}

/// The chain of causes in one line that stays the same from try to try.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut line = String::new();
    let mut station = None;
    for cause in causes(error) {
        if cause.downcast_ref::<io::Error>().is_some_and(|outer| outer.get_ref().is_some()) {
            continue;
        }
        let text = match cause.downcast_ref::<rustls::Error>() {
            Some(rustls::Error::InvalidCertificate(why)) => distrust(why),
            _ => cause.to_string(),
        };
        if STATIONS.iter().any(|start| text.starts_with(start)) {
            station = Some(text);
            continue;
        }
        let text = plain(text.split(" (os error").next().unwrap_or_default());
        if line.contains(&text) {
            continue;
        }
        let separator = if line.is_empty() { "" } else { ": " };
        // Writing to a String cannot fail.
        write!(line, "{separator}{text}").ok();
    }
    if line.is_empty() { station.unwrap_or_else(|| error.to_string()) } else { line }
}

/// What libraries say on the way, which the end of the chain says better.
const STATIONS: [&str; 10] = [
    "builder error",
    "client error (",
    "dns error",
    "error decoding",
    "error reading a body",
    "error resolving DNS",
    "error sending request",
    "error writing a body",
    "http2 error",
    "tcp connect error",
];

/// What libraries say at the end, and what it means; a colon at the end of theirs is followed by a reason.
const PLAIN: [(&str, &str); 12] = [
    ("connection closed before message completed", CLOSED),
    ("connection error received: ", "the server ended the connection (HTTP/2)"),
    ("connection error detected: ", "the server breaks the rules of HTTP/2"),
    ("end of file before message length reached", CLOSED),
    ("invalid HTTP ", "what answers there speaks no HTTP"),
    ("message head is too large", "the headers of the answer are too large"),
    ("peer closed connection without sending TLS close_notify", CLOSED),
    ("received corrupt message of type ", "what answers there speaks no TLS"),
    ("received fatal alert: ", "the server ended the TLS handshake"),
    ("stream error received: ", "the server reset the request (HTTP/2)"),
    ("tls handshake eof", "the server closed the connection in the TLS handshake"),
    ("unexpected EOF during chunk", CLOSED),
];

/// What a cut answer is, whichever layer finds out.
const CLOSED: &str = "the connection was closed before the answer was complete";

/// A cause in words that need no library's documentation.
fn plain(text: &str) -> String {
    for (theirs, ours) in PLAIN {
        match text.strip_prefix(theirs) {
            Some(reason) if theirs.ends_with(": ") => return format!("{ours}: {reason}"),
            Some(_) => return ours.to_owned(),
            None => {}
        }
    }
    // Links into a library's documentation.
    text.split(": https://docs.rs/").next().unwrap_or_default().to_owned()
}

/// rustls names the moment of its look at the certificate, and puts names into Rust's words.
fn distrust(error: &CertificateError) -> String {
    let why = match error {
        CertificateError::UnknownIssuer => "it is signed by nobody who is trusted here",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name"
        }
        CertificateError::Revoked => "it is revoked",
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its signature is not of the key that is trusted here"
        }
        CertificateError::Other(inner) if inner.to_string().contains("CaUsedAsEndEntity") => {
            "it is a CA's own, used for a server"
        }
        _ => return format!("the server's certificate is not trusted: {error:?}"),
    };
    format!("the server's certificate is not trusted: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_host_is_told_from_one_that_may_come_back() {
        for (text, fault) in [
            (
                "dns error: failed to lookup address information: Name or service not known",
                Fault::NoSuchHost,
            ),
            (
                "dns error: failed to lookup address information: Temporary failure in name resolution",
                Fault::Lookup,
            ),
            ("tcp connect error: Connection refused", Fault::Passing),
        ] {
            let error = io::Error::other(text);
            assert_eq!(sort(&error, &chain(&error)), fault, "{text}");
        }
    }

    #[test]
    fn what_the_systems_resolver_says_names_the_host_as_ours_does() {
        for (said, fault, expected) in [
            ("Name or service not known", Fault::NoSuchHost, "no such host ca.example"),
            (
                "Temporary failure in name resolution",
                Fault::Lookup,
                "cannot look up ca.example: Temporary failure in name resolution",
            ),
        ] {
            let why = format!("{LOOKUP}{said}");
            assert_eq!(no_address(&why, fault, "https://ca.example:14000/dir"), expected);
        }
    }

    #[test]
    fn a_certificate_fault_is_found_inside_an_io_error() {
        let inner = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let error = io::Error::new(io::ErrorKind::InvalidData, io::Error::other(inner));
        assert_eq!(sort(&error, ""), Fault::Untrusted);
        let said = chain(&error);
        assert!(
            said.ends_with("not trusted: it is signed by nobody who is trusted here"),
            "{said}"
        );
    }

    #[test]
    fn libraries_are_told_in_plain_words() {
        for (theirs, ours) in [
            (
                "peer closed connection without sending TLS close_notify: https://docs.rs/rustls/latest/rustls/manual/",
                CLOSED,
            ),
            (
                "received fatal alert: HandshakeFailure",
                "the server ended the TLS handshake: HandshakeFailure",
            ),
            (
                "stream error received: refused stream before processing any application logic",
                "the server reset the request (HTTP/2): refused stream before processing any application logic",
            ),
            ("invalid HTTP version parsed", "what answers there speaks no HTTP"),
            ("Connection reset by peer", "Connection reset by peer"),
            ("odd: https://docs.rs/odd", "odd"),
        ] {
            assert_eq!(plain(theirs), ours);
            let outer = io::Error::other(io::Error::other(theirs.to_owned()));
            assert_eq!(chain(&outer), ours);
        }
    }

    #[test]
    fn a_bundle_without_certificates_is_refused() {
        let server = Url::parse("https://ca.example/directory").unwrap();
        for bundle in
            ["no certificate", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"]
        {
            let tls = TlsOptions { ca_bundle: bundle.as_bytes().to_vec(), skip_verify: false };
            let error = client(&server, &tls, None).unwrap_err().to_string();
            assert!(error.contains("caBundle"), "{error}");
        }
    }
}
