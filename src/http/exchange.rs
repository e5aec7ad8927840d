//! One HTTP request and its answer, read up to a limit; or the reason for no answer, as a type, its causes, and plain text.

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
    /// URL that the answer came from.
    pub url: Url,
    /// Time at which the answer came.
    pub came: Timestamp,
}

/// Reasons why no complete answer was read.
#[derive(Debug)]
pub enum Unanswered {
    /// No connection came about in time.
    NotConnected,
    /// No whole answer came in time.
    TimedOut,
    /// The answer is larger than the limit.
    TooLarge,
    /// Any other error, as the library reports it, without the URL.
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

/// Sends requests to servers, and returns the answers.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request and reads the answer, up to `limit` bytes of it.
    ///
    /// # Errors
    /// Fails if no whole answer comes in time, or the answer has more than `limit` bytes.
    async fn carry(&self, request: RequestBuilder, limit: usize) -> Result<Reply, Unanswered>;
}

/// Carrier over the network of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network;

#[async_trait]
impl Transport for Network {
    async fn carry(&self, request: RequestBuilder, limit: usize) -> Result<Reply, Unanswered> {
        send(request, limit).await
    }
}

/// Sends a request and reads the answer. A body that breaks off, or is too large, counts as empty if the head says that
/// an object was created and where (201 with `Location`): the object exists, and must not be requested a second time.
///
/// # Errors
/// Fails if no whole answer comes in time, or the answer has more than `limit` bytes.
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
/// Fails as [`send`] does.
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

/// Reports whether the server showed no certificate that is trusted here.
pub fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(
            cause.downcast_ref::<rustls::Error>(),
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented)
        )
    })
}

/// Returns the error and every cause below it.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |cause| next_cause(*cause))
}

/// Returns the next cause; an `io::Error` that wraps another error hides the inner one from `source`, hence the detour.
fn next_cause<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match cause.downcast_ref::<io::Error>() {
        Some(outer) => outer.get_ref().map(|inner| inner as &(dyn Error + 'static)),
        None => cause.source(),
    }
}

/// Formats the chain of causes as one line that is identical at every try.
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
        if INTERMEDIATE_MESSAGES.iter().any(|start| text.starts_with(start)) {
            station = Some(text);
            continue;
        }
        let text = simplify(text.split(" (os error").next().unwrap_or_default());
        if line.contains(&text) {
            continue;
        }
        let separator = if line.is_empty() { "" } else { ": " };
        // Writing to a String cannot fail.
        write!(line, "{separator}{text}").ok();
    }
    if line.is_empty() { station.unwrap_or_else(|| error.to_string()) } else { line }
}

/// Beginnings of libraries' intermediate messages; the end of the chain says more.
const INTERMEDIATE_MESSAGES: [&str; 10] = [
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

/// Beginnings of libraries' last messages, each with its plain meaning; a library's final colon is followed by a reason.
const PLAIN_MEANINGS: [(&str, &str); 12] = [
    ("connection closed before message completed", CUT_OFF),
    ("connection error received: ", "the server ended the connection (HTTP/2)"),
    ("connection error detected: ", "the server breaks the rules of HTTP/2"),
    ("end of file before message length reached", CUT_OFF),
    ("invalid HTTP ", "what answers there speaks no HTTP"),
    ("message head is too large", "the headers of the answer are too large"),
    ("peer closed connection without sending TLS close_notify", CUT_OFF),
    ("received corrupt message of type ", "what answers there speaks no TLS"),
    ("received fatal alert: ", "the server ended the TLS handshake"),
    ("stream error received: ", "the server reset the request (HTTP/2)"),
    ("tls handshake eof", "the server closed the connection in the TLS handshake"),
    ("unexpected EOF during chunk", CUT_OFF),
];

/// Meaning of an answer that was cut off, whichever layer notices.
const CUT_OFF: &str = "the connection was closed before the answer was complete";

/// Rewrites a cause in words that need no library's documentation.
fn simplify(text: &str) -> String {
    for (theirs, ours) in PLAIN_MEANINGS {
        match text.strip_prefix(theirs) {
            Some(reason) if theirs.ends_with(": ") => return format!("{ours}: {reason}"),
            Some(_) => return ours.to_owned(),
            None => {}
        }
    }
    // Cuts off links into a library's documentation.
    text.split(": https://docs.rs/").next().unwrap_or_default().to_owned()
}

/// Describes why a certificate is not trusted. rustls's own text has the time of its check, and names in Rust's notation.
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
                CUT_OFF,
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
            assert_eq!(simplify(theirs), ours);
            let outer = io::Error::other(io::Error::other(theirs.to_owned()));
            assert_eq!(chain(&outer), ours);
        }
    }
}
