//! Serves all answers from one table in memory.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use parking_lot::{Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use super::{DECLINED_BY, PATH};
use crate::model::{Answer, Challenge, Identifier};
use crate::serve::{self, ConnectionSlots, Patience};
use crate::solvers::{SolveError, Solver, sockets};

/// How long an answer is still served after its clean-up: the CA's remote perspectives may come late, when the
/// authorization is valid already.
const GRACE: Duration = Duration::from_secs(10);
/// How long a shutdown waits for requests under way.
const FAREWELL: Duration = Duration::from_secs(5);

/// Answers HTTP-01 on its own sockets; as soon as it is dropped, nobody answers any more.
#[derive(Debug)]
pub struct Listener {
    addresses: Vec<SocketAddr>,
    table: AnswerTable,
    servers: JoinSet<()>,
    stop: DropGuard,
}

impl Listener {
    /// Listens on all these addresses, or on none: the first that cannot be had is the error.
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, SolveError> {
        Self::serve(sockets::at(addresses).await?)
    }

    /// Listens on a port of all addresses, IPv6 and IPv4, as far as this machine has them.
    pub async fn bind_everywhere(port: u16) -> Result<Self, SolveError> {
        Self::serve(sockets::everywhere(port).await?)
    }

    /// Answers for one name and token from now on.
    pub fn put(&self, answer: &Answer) {
        self.table.put(answer);
    }

    /// The addresses it listens on, each with its real port.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Takes no more connections and waits for requests under way, at most 5 s.
    pub async fn close(self) {
        let Self { mut servers, stop, .. } = self;
        drop(stop);
        let all_ended = async { while servers.join_next().await.is_some() {} };
        // Whoever has not read the answer by now will not.
        if timeout(FAREWELL, all_ended).await.is_err() {
            servers.shutdown().await;
        }
    }

    fn serve(sockets: Vec<TcpListener>) -> Result<Self, SolveError> {
        let table = AnswerTable::default();
        let router = Router::new().fallback(answer).with_state(table.clone());
        let (stop, places) = (CancellationToken::new(), ConnectionSlots::default());
        let mut addresses = Vec::new();
        let mut servers = JoinSet::new();
        for socket in sockets {
            addresses.push(sockets::address(&socket)?);
            let (router, stopped) = (router.clone(), stop.clone());
            let serve =
                move |stream| serve::http(stream, router.clone(), Patience::SHORT, stopped.clone());
            servers.spawn(serve::accept_all(socket, places.clone(), stop.clone(), serve));
        }
        Ok(Self { addresses, table, servers, stop: stop.drop_guard() })
    }
}

#[async_trait]
impl Solver for Listener {
    async fn present(&self, _: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        self.put(answer);
        Ok(())
    }

    async fn clean_up(&self, _: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        self.table.retire(answer, Instant::now() + GRACE);
        Ok(())
    }

    fn stands(&self, _: &Challenge, answer: &Answer) -> bool {
        self.table.stands(answer)
    }
}

/// Serves one request; the Host header is read as cert-manager's solver does, but in any case.
async fn answer(State(table): State<AnswerTable>, headers: HeaderMap, uri: Uri) -> Response {
    if uri.path() == "/healthz" {
        return StatusCode::OK.into_response();
    }
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let host = host.or_else(|| uri.host()).unwrap_or_default();
    let found = uri.path().strip_prefix(PATH).and_then(|token| table.find(host, token));
    debug!(host, answered = found.is_some(), "request on the HTTP-01 listener");
    match found {
        Some(body) => {
            let fresh = (header::CACHE_CONTROL, "no-cache, no-store, must-revalidate");
            ([fresh], body).into_response()
        }
        None => (StatusCode::NOT_FOUND, [DECLINED_BY], "404 page not found\n").into_response(),
    }
}

/// Key authorizations by identifier and token.
#[derive(Clone, Debug, Default)]
struct AnswerTable(Arc<Mutex<HashMap<(Identifier, String), ShownAnswer>>>);

struct ShownAnswer {
    key_authorization: String,
    /// From when on it is not served any more; none while it is up.
    until: Option<Instant>,
}

impl std::fmt::Debug for ShownAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("until", &self.until).finish_non_exhaustive()
    }
}

impl AnswerTable {
    /// Locks the table; whatever is over is forgotten on the way.
    fn current(&self) -> MutexGuard<'_, HashMap<(Identifier, String), ShownAnswer>> {
        let mut entries = self.0.lock();
        let now = Instant::now();
        entries.retain(|_, entry| entry.until.is_none_or(|until| now < until));
        entries
    }

    fn put(&self, answer: &Answer) {
        let key_authorization = answer.key_authorization.clone();
        self.current().insert(key(answer), ShownAnswer { key_authorization, until: None });
    }

    fn retire(&self, answer: &Answer, until: Instant) {
        if let Some(entry) = self.current().get_mut(&key(answer)) {
            entry.until.get_or_insert(until);
        }
    }

    fn stands(&self, answer: &Answer) -> bool {
        self.current().get(&key(answer)).is_some_and(|entry| {
            entry.until.is_none() && entry.key_authorization == answer.key_authorization
        })
    }

    fn find(&self, host: &str, token: &str) -> Option<String> {
        let identifier = Identifier::parse(without_port(host)).ok()?;
        let entries = self.current();
        entries.get(&(identifier, token.to_owned())).map(|entry| entry.key_authorization.clone())
    }
}

fn key(answer: &Answer) -> (Identifier, String) {
    (answer.identifier.clone(), answer.token.clone())
}

/// Takes the port and an IPv6 address's brackets off a Host header (RFC 9110 §7.2).
fn without_port(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::solvers::testing::challenge;

    const LOOPBACK: [SocketAddr; 1] =
        [SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0)];

    fn answer_for(identifier: &str) -> Answer {
        Answer {
            identifier: Identifier::parse(identifier).unwrap(),
            token: "token".to_owned(),
            key_authorization: "token.thumbprint".to_owned(),
        }
    }

    /// Asks as a CA does and returns the whole answer in lower case.
    async fn ask(listener: &Listener, host: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(listener.addresses()[0]).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply.to_ascii_lowercase()
    }

    /// Presents an answer for the identifier and asks for it under that host and path.
    async fn check(identifier: &str, host: &str, path: &str, expected: (&str, &str)) {
        let listener = Listener::bind(&LOOPBACK).await.unwrap();
        listener.present(&challenge(), &answer_for(identifier)).await.unwrap();
        let reply = ask(&listener, host, path).await;
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap();
        assert_eq!((status, body), expected, "{host}{path}");
    }

    const SERVED: (&str, &str) = ("200", "token.thumbprint");
    const DECLINED: (&str, &str) = ("404", "404 page not found\n");
    const TOKEN_PATH: &str = "/.well-known/acme-challenge/token";

    #[tokio::test]
    async fn the_host_is_read_without_port_brackets_and_case() {
        check("www.example.com", "www.example.com", TOKEN_PATH, SERVED).await;
        check("www.example.com", "WWW.Example.com:8080", TOKEN_PATH, SERVED).await;
        check("www.example.com", "www.example.com.", TOKEN_PATH, SERVED).await;
        check("2001:db8::1", "[2001:DB8:0::1]", TOKEN_PATH, SERVED).await;
        check("2001:db8::1", "[2001:db8::1]:80", TOKEN_PATH, SERVED).await;
        check("192.0.2.1", "192.0.2.1:80", TOKEN_PATH, SERVED).await;
    }

    #[tokio::test]
    async fn anything_else_is_not_found() {
        check("www.example.com", "example.com", TOKEN_PATH, DECLINED).await;
        check("www.example.com", "", TOKEN_PATH, DECLINED).await;
        for path in ["/", "/token", "/.well-known/acme-challenge/", "/.well-known/acme-challenge"] {
            check("www.example.com", "www.example.com", path, DECLINED).await;
        }
        let near = ["/.well-known/acme-challenge/token/", "/.well-known/acme-challenge/%74oken"];
        for path in near {
            check("www.example.com", "www.example.com", path, DECLINED).await;
        }
    }

    #[tokio::test]
    async fn it_tells_that_it_is_well() {
        check("www.example.com", "anything", "/healthz", ("200", "")).await;
    }

    #[tokio::test]
    async fn answers_are_plain_text_that_nobody_keeps() {
        let listener = Listener::bind(&LOOPBACK).await.unwrap();
        listener.present(&challenge(), &answer_for("a.example")).await.unwrap();
        let reply = ask(&listener, "a.example", TOKEN_PATH).await;
        for expected in [
            "\r\ncontent-type: text/plain; charset=utf-8\r\n",
            "\r\ncache-control: no-cache, no-store, must-revalidate\r\n",
        ] {
            assert!(reply.contains(expected), "{reply}");
        }
    }

    #[tokio::test]
    async fn an_answer_outlives_its_clean_up_by_ten_seconds() {
        tokio::time::pause();
        let table = AnswerTable::default();
        let answer = answer_for("a.example");
        table.put(&answer);
        table.retire(&answer, Instant::now() + GRACE);
        assert!(!table.stands(&answer));
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(table.find("a.example", "token").is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(table.find("a.example", "token").is_none());
    }

    #[tokio::test]
    async fn an_answer_put_up_again_stays() {
        tokio::time::pause();
        let table = AnswerTable::default();
        let answer = answer_for("a.example");
        table.put(&answer);
        table.retire(&answer, Instant::now() + GRACE);
        table.put(&answer);
        tokio::time::advance(GRACE * 2).await;
        assert!(table.stands(&answer));
    }

    #[tokio::test]
    async fn a_taken_address_is_named_and_nothing_is_left_listening() {
        let holder = TcpListener::bind(LOOPBACK[0]).await.unwrap();
        let taken = holder.local_addr().unwrap();
        let free = TcpListener::bind(LOOPBACK[0]).await.unwrap().local_addr().unwrap();
        let error = Listener::bind(&[free, taken]).await.unwrap_err();
        assert!(TcpListener::bind(free).await.is_ok());
        assert_eq!(
            error.to_string(),
            format!("cannot listen on {taken}: another program listens there")
        );
        assert!(error.needs_person);
    }

    #[tokio::test]
    async fn everywhere_means_ipv4_too() {
        let listener = Listener::bind_everywhere(0).await.unwrap();
        listener.present(&challenge(), &answer_for("a.example")).await.unwrap();
        let port = listener.addresses()[0].port();
        let four = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
        assert!(four.is_ok());
        let listening_on_six = listener.addresses()[0].is_ipv6();
        assert_eq!(TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.is_ok(), listening_on_six);
    }

    #[tokio::test]
    async fn those_who_never_finish_a_request_do_not_keep_a_ca_from_its_answer() {
        let listener = Listener::bind(&LOOPBACK).await.unwrap();
        listener.present(&challenge(), &answer_for("a.example")).await.unwrap();
        let mut idle = Vec::new();
        for _ in 0..=ConnectionSlots::default().most() {
            let mut stream = TcpStream::connect(listener.addresses()[0]).await.unwrap();
            stream.write_all(b"GET /").await.unwrap();
            idle.push(stream);
        }
        // The first had to make room.
        let read = timeout(Duration::from_mins(1), idle[0].read(&mut [0])).await;
        assert!(matches!(read.expect("nobody makes room"), Ok(0) | Err(_)));
        let reply = ask(&listener, "a.example", TOKEN_PATH).await;
        assert!(reply.ends_with(SERVED.1), "{reply}");
    }

    #[tokio::test]
    async fn a_closed_listener_answers_nobody() {
        let listener = Listener::bind(&LOOPBACK).await.unwrap();
        let address = listener.addresses()[0];
        listener.close().await;
        let error = TcpStream::connect(address).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn a_dropped_listener_answers_nobody() {
        let listener = Listener::bind(&LOOPBACK).await.unwrap();
        let address = listener.addresses()[0];
        drop(listener);
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}
