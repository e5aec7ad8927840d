//! Server of a solver Pod: one answer, as in cert-manager's solver image.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::PATH;
use crate::model::arrival::DECLINED_BY;
use crate::serve::{self, ConnectionSlots, ConnectionTimeouts};

/// Longest wait for requests under way at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The one answer of a solver Pod.
#[derive(Clone)]
pub struct SolverPodServer {
    /// Name or address that the CA requests; other hosts get no answer.
    pub domain: String,
    /// Token: the last part of the path.
    pub token: String,
    /// Key authorization (RFC 8555 §8.1).
    pub key: String,
}

impl fmt::Debug for SolverPodServer {
    /// Leaves token and key authorization out: logs do not carry them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Single({})", self.domain)
    }
}

/// Listens on a port of all addresses, IPv6 and IPv4, as far as this machine has them.
///
/// # Errors
/// Fails when the port is not permitted or taken.
pub async fn listen(port: u16) -> io::Result<TcpListener> {
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await {
        Ok(listener) => Ok(listener),
        // A machine without IPv6 fails in several ways; any other error comes again for IPv4.
        Err(_) => TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await,
    }
}

impl SolverPodServer {
    /// Serves until `stop` is cancelled, and at most 5 s longer.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let router = Router::new().fallback(answer).with_state(Arc::new(self));
        let stopped = stop.clone();
        let serve = move |stream| {
            serve::http(stream, router.clone(), ConnectionTimeouts::ONE_REQUEST, stopped.clone())
        };
        let server = serve::accept_all(listener, ConnectionSlots::default(), stop.clone(), serve);
        let too_late = async {
            stop.cancelled().await;
            tokio::time::sleep(CLOSE_TIMEOUT).await;
        };
        tokio::select! {
            () = server => {}
            () = too_late => {}
        }
    }
}

async fn answer(
    State(single): State<Arc<SolverPodServer>>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    if ["/", "/healthz"].contains(&uri.path()) {
        return StatusCode::OK.into_response();
    }
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let host = host.or_else(|| uri.authority().map(Authority::as_str));
    let is_ours = uri.path().strip_prefix(PATH) == Some(single.token.as_str())
        && bare(host.unwrap_or_default()) == single.domain;
    if !is_ours {
        return (StatusCode::NOT_FOUND, [DECLINED_BY], "404 page not found\n").into_response();
    }
    let fresh = (header::CACHE_CONTROL, "no-cache, no-store, must-revalidate");
    ([fresh], single.key.clone()).into_response()
}

/// Returns a Host header without port and brackets; an IPv6 address may lack the brackets.
fn bare(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    const TOKEN_PATH: &str = "/.well-known/acme-challenge/token";

    /// Asks a solver for this name once, and compares status and body with what is expected.
    async fn check(domain: &str, request: &str, host: &str, expected: (u16, &str)) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let single = SolverPodServer {
            domain: domain.to_owned(),
            token: "token".into(),
            key: "token.key".into(),
        };
        let server = tokio::spawn(single.serve(listener, stop.clone()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!((status, body), expected, "{request}");
        let is_fresh = head.to_ascii_lowercase().contains("cache-control: no-cache, no-store");
        assert_eq!(is_fresh, body == "token.key", "{head}");
        stop.cancel();
        server.await.unwrap();
    }

    #[tokio::test]
    async fn one_name_and_one_path_are_answered() {
        const NO: (u16, &str) = (404, "404 page not found\n");
        const YES: (u16, &str) = (200, "token.key");
        const ALIVE: (u16, &str) = (200, "");
        let get = format!("GET {TOKEN_PATH}");
        for (domain, request, host, expected) in [
            ("www.example.com", get.as_str(), "www.example.com", YES),
            ("www.example.com", &get, "www.example.com:80", YES),
            ("www.example.com", &format!("POST {TOKEN_PATH}"), "www.example.com", YES),
            ("www.example.com", &format!("{get}?a=b"), "www.example.com", YES),
            ("www.example.com", &get, "WWW.example.com", NO),
            ("www.example.com", &get, "mail.example.com", NO),
            ("www.example.com", &get, "", NO),
            ("www.example.com", &format!("{get}/"), "www.example.com", NO),
            ("www.example.com", &format!("{get}2"), "www.example.com", NO),
            ("www.example.com", "GET /.well-known/acme-challenge/%74oken", "www.example.com", NO),
            ("www.example.com", "GET /other", "www.example.com", NO),
            ("www.example.com", "GET /healthz", "anybody", ALIVE),
            ("www.example.com", "GET /", "anybody", ALIVE),
            ("10.0.0.1", &get, "10.0.0.1:8089", YES),
            ("2001:db8::1", &get, "[2001:db8::1]:80", YES),
            ("2001:db8::1", &get, "[2001:db8::1]", YES),
        ] {
            check(domain, request, host, expected).await;
        }
    }
}
