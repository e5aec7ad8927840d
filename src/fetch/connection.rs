//! One GET to one address.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

use super::outcome::{FetchError, HttpReply};
use super::tls;
use crate::http::client::USER_AGENT;
use crate::model::arrival::DECLINED_BY;
use crate::model::cause::Symptom;

/// Time limits of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimits {
    /// Limit for a TCP connection.
    pub(super) connect: Duration,
    /// Limit for the answer, TLS and body included.
    pub(super) answer: Duration,
}

/// An answer, with the location that a redirect needs.
#[derive(Debug)]
pub(super) struct FetchAnswer {
    pub(super) reply: HttpReply,
    pub(super) location: Option<String>,
}

/// Reason why an address gave no answer; all texts are stable.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// No connection came about: another address may be tried.
    NotConnected(String, Option<Symptom>),
    /// The server took the connection and did not answer.
    Silent(String, Option<Symptom>),
    /// The server sent an answer that is no HTTP.
    Malformed(String, Option<Symptom>),
}

/// Addresses that took no connection, one after another.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    whys: Vec<String>,
    symptoms: Vec<Symptom>,
}

impl Refusals {
    pub(super) fn add(&mut self, why: String, symptom: Option<Symptom>) {
        self.whys.push(why);
        self.symptoms.extend(symptom);
    }

    /// Joins all refusals into one error: a host that refuses is there, which says more than silence.
    pub(super) fn into_error(self) -> FetchError {
        let refused = self.symptoms.iter().find(|it| **it == Symptom::ConnectionRefused);
        let symptom = refused.or_else(|| self.symptoms.first()).copied();
        FetchError::Connect { why: self.whys.join("; "), symptom }
    }
}

impl NoAnswer {
    /// Makes the error for an address that took the connection.
    pub(super) fn into_error(self) -> FetchError {
        match self {
            Self::NotConnected(why, symptom) | Self::Silent(why, symptom) => {
                FetchError::Connect { why, symptom }
            }
            Self::Malformed(why, symptom) => FetchError::Malformed { why, symptom },
        }
    }
}

/// Gets a URL from that address, without following redirects; reads at most `limit` bytes of the body.
pub(super) async fn get(
    url: &Url,
    address: SocketAddr,
    (patience, limit): (TimeLimits, usize),
) -> Result<FetchAnswer, NoAnswer> {
    let stream = connect(address, patience).await?;
    let talking = async {
        match url.scheme() {
            "https" => talk(handshake(url, address, stream).await?, (url, limit), address).await,
            _ => talk(stream, (url, limit), address).await,
        }
    };
    timeout(patience.answer, talking).await.unwrap_or_else(|_| Err(late(address, patience)))
}

/// Opens a connection.
pub(super) async fn connect(
    address: SocketAddr,
    patience: TimeLimits,
) -> Result<TcpStream, NoAnswer> {
    match timeout(patience.connect, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => {
            let (why, symptom) = connect_fault(&error, address);
            Err(NoAnswer::NotConnected(why, symptom))
        }
        Err(_) => {
            let seconds = patience.connect.as_secs();
            let why = format!("no answer from {address} within {seconds}s");
            Err(NoAnswer::NotConnected(why, Some(Symptom::Unreachable)))
        }
    }
}

/// Makes the error for a connection without an answer in time.
pub(super) fn late(address: SocketAddr, patience: TimeLimits) -> NoAnswer {
    let seconds = patience.answer.as_secs();
    let why = format!("{address} took the connection but did not answer within {seconds}s");
    NoAnswer::Silent(why, Some(Symptom::NoReply))
}

async fn handshake(
    url: &Url,
    address: SocketAddr,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, NoAnswer> {
    let failed = |why: &dyn std::fmt::Display| no_handshake(address, why);
    let name = match url.host() {
        Some(Host::Ipv4(ip)) => ServerName::from(std::net::IpAddr::V4(ip)),
        Some(Host::Ipv6(ip)) => ServerName::from(std::net::IpAddr::V6(ip)),
        Some(Host::Domain(name)) => {
            ServerName::try_from(name.trim_end_matches('.').to_owned()).map_err(|e| failed(&e))?
        }
        None => return Err(failed(&"the URL has no host")),
    };
    let connector = TlsConnector::from(tls::config().map_err(|e| failed(&e))?);
    connector.connect(name, stream).await.map_err(|error| failed(&tls_fault(&error)))
}

/// Makes the error for a handshake that failed.
pub(super) fn no_handshake(address: SocketAddr, why: &dyn std::fmt::Display) -> NoAnswer {
    let why = format!("TLS handshake with {address} failed: {why}");
    NoAnswer::Silent(why, Some(Symptom::NoTls))
}

async fn talk<S>(
    stream: S,
    (url, limit): (&Url, usize),
    address: SocketAddr,
) -> Result<FetchAnswer, NoAnswer>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let request = request(url).map_err(|why| NoAnswer::Malformed(format!("{url}: {why}"), None))?;
    let fault = |error: hyper::Error| answer_fault(&error, address);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(fault)?;
    // The task carries the bytes while we wait, and ends with this request.
    let _carrier = AbortOnDropHandle::new(tokio::spawn(connection));
    let response = sender.send_request(request).await.map_err(fault)?;
    read(response, address, limit).await
}

fn request(url: &Url) -> Result<Request<Empty<Bytes>>, http::Error> {
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let host = url.host_str().unwrap_or_default();
    let host = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    Request::get(target)
        .header(header::HOST, host)
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::ACCEPT, "*/*")
        .header(header::CONNECTION, "close")
        .body(Empty::new())
}

async fn read(
    response: Response<Incoming>,
    address: SocketAddr,
    limit: usize,
) -> Result<FetchAnswer, NoAnswer> {
    let (head, mut incoming) = response.into_parts();
    let mut body = Vec::new();
    while body.len() <= limit {
        let Some(frame) = incoming.frame().await else { break };
        let frame = frame.map_err(|_| {
            let why = format!("{address} broke off in the middle of its answer");
            NoAnswer::Malformed(why, Some(Symptom::HungUp))
        })?;
        body.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
    }
    let truncated = body.len() > limit;
    body.truncate(limit);
    let (name, who) = DECLINED_BY;
    let is_declined = head.headers.get(name).is_some_and(|value| value == who);
    let location = head.headers.get(header::LOCATION).map(HeaderValue::as_bytes);
    Ok(FetchAnswer {
        reply: HttpReply { status: head.status.as_u16(), body, truncated, is_declined },
        location: location.map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
    })
}

fn connect_fault(error: &io::Error, address: SocketAddr) -> (String, Option<Symptom>) {
    use io::ErrorKind::{
        AddrNotAvailable, ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable,
        PermissionDenied, TimedOut,
    };
    let why = match error.kind() {
        ConnectionRefused => format!("connection refused by {address}"),
        ConnectionReset => format!("connection reset by {address}"),
        HostUnreachable | NetworkUnreachable => format!("no route to {address}"),
        AddrNotAvailable => format!("no route to {address} from this machine"),
        TimedOut => format!("no answer from {address}"),
        PermissionDenied => format!("this machine does not allow connections to {address}"),
        kind => format!("cannot connect to {address}: {kind}"),
    };
    let symptom = match error.kind() {
        ConnectionRefused => Some(Symptom::ConnectionRefused),
        ConnectionReset => Some(Symptom::HungUp),
        HostUnreachable | NetworkUnreachable | AddrNotAvailable | TimedOut => {
            Some(Symptom::Unreachable)
        }
        _ => None,
    };
    (why, symptom)
}

/// Reason why a handshake failed, in stable words.
pub(super) fn tls_fault(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidMessage(_)) => "the server does not speak TLS there".to_owned(),
        Some(error) => error.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the server closed the connection".to_owned()
        }
        None => error.kind().to_string(),
    }
}

fn answer_fault(error: &hyper::Error, address: SocketAddr) -> NoAnswer {
    if error.is_parse() {
        let why = format!("the answer of {address} is not HTTP/1.1");
        return NoAnswer::Malformed(why, Some(Symptom::NotHttp));
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        let why = format!("{address} closed the connection without an answer");
        return NoAnswer::Silent(why, Some(Symptom::HungUp));
    }
    let cause = std::error::Error::source(error).and_then(|e| e.downcast_ref::<io::Error>());
    let why = match cause.map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionReset) => format!("connection reset by {address}"),
        Some(kind) => format!("connection to {address} lost: {kind}"),
        None => format!("connection to {address} lost"),
    };
    NoAnswer::Silent(why, Some(Symptom::HungUp))
}
