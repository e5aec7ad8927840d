//! One request and its answer, read up to a limit; or why there is none, as a type, by its causes and in plain words.

use std::error::Error;
use std::fmt::Write as _;
use std::{io, iter, mem};

use async_trait::async_trait;
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use reqwest::{RequestBuilder, Response};
use rustls::CertificateError;
use url::Url;

/// An answer, read to its end.
#[derive(Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
    /// Where it came from.
    pub url: Url,
    /// When it came.
    pub came: Timestamp,
}

/// Why there is no answer, or none that was read to its end.
#[derive(Debug)]
pub enum Unanswered {
    /// No connection came about in time.
    NotConnected,
    /// No whole answer came in time.
    TimedOut,
    /// There is more of the answer than was to be read.
    TooLarge,
    /// Everything else, as the library has it, without the URL.
    Broken(reqwest::Error),
}

impl From<reqwest::Error> for Unanswered {
    fn from(error: reqwest::Error) -> Self {
        match (error.is_timeout(), error.is_connect()) {
            (true, true) => Self::NotConnected,
            (true, false) => Self::TimedOut,
            (false, _) => Self::Broken(error.without_url()),
        }
    }
}

/// Carries requests to servers, and brings their answers.
#[async_trait]
pub trait Carrier: Send + Sync {
    /// Sends a request and reads the answer, up to `limit` bytes of it.
    ///
    /// # Errors
    /// Fails when no whole answer comes in time, or one of more than `limit` bytes.
    async fn carry(&self, request: RequestBuilder, limit: usize) -> Result<Reply, Unanswered>;
}

/// The network of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network;

#[async_trait]
impl Carrier for Network {
    async fn carry(&self, request: RequestBuilder, limit: usize) -> Result<Reply, Unanswered> {
        send(request, limit).await
    }
}

/// Sends a request and reads the answer. A body that breaks off, or is too large, counts as empty where the head says that
/// something was created and where it is (201 with `Location`): it is there, and may not be asked for a second time.
///
/// # Errors
/// Fails when no whole answer comes in time, or one of more than `limit` bytes.
pub async fn send(request: RequestBuilder, limit: usize) -> Result<Reply, Unanswered> {
    let mut response = request.send().await?;
    let (status, url) = (response.status(), response.url().clone());
    let headers = mem::take(response.headers_mut());
    let is_named = status == StatusCode::CREATED && headers.contains_key(LOCATION);
    let body = match read(response, limit).await {
        Err(_) if is_named => Vec::new(),
        body => body?,
    };
    Ok(Reply { status, headers, body, url, came: Timestamp::now() })
}

/// Reads the body of an answer.
///
/// # Errors
/// As [`send`].
pub async fn read(mut response: Response, limit: usize) -> Result<Vec<u8>, Unanswered> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await? {
        if body.len() + part.len() > limit {
            return Err(Unanswered::TooLarge);
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

/// Tells whether the server showed no certificate that is trusted here.
pub fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(
            cause.downcast_ref::<rustls::Error>(),
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
        )
    })
}

/// The error and everything below it.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |cause| below(*cause))
}

/// An `io::Error` that wraps another hides it from `source`, hence the detour.
fn below<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match cause.downcast_ref::<io::Error>() {
        Some(outer) => outer.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => cause.source(),
    }
}

/// The chain of causes in one line that stays the same from try to try.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut line = String::new();
    let mut station = None;
    for cause in causes(error) {
        if cause.downcast_ref::<io::Error>().is_some_and(|outer| outer.get_ref().is_some()) {
            continue;
        }
        let text = match cause.downcast_ref::<rustls::Error>() {
            Some(rustls::Error::InvalidCertificate(why)) => {
                format!("the server's certificate is not trusted: {}", distrust(why))
            }
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

/// Why a certificate is not trusted. rustls names the moment of its look at it, and puts names into Rust's words.
pub fn distrust(error: &CertificateError) -> String {
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
        _ => return format!("{error:?}"),
    };
    why.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_fault_is_found_inside_an_io_error() {
        let inner = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let error = io::Error::new(io::ErrorKind::InvalidData, io::Error::other(inner));
        assert!(is_untrusted(&error));
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
}
