//! Serves all answers from one table in memory, behind any proxy: the token is the secret part, so every Host is accepted,
//! and a header of the PROXY protocol is read. Arrivals are kept for a while, as evidence if an answer is not visible.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use super::PATH;
use crate::model::arrival::{Arrival, Came, DECLINED_BY, kept_host};
use crate::model::{Answer, Challenge, Identifier};
use crate::serve::opening::{self, Opening, Protocol};
use crate::serve::{self, ConnectionSlots, ConnectionTimeouts};
use crate::solvers::{SolveError, Solver, sockets};

/// Port that the CA connects to.
const PORT: u16 = 80;
/// Time for which an answer is still served after its clean-up: the CA's remote perspectives may
/// come late, when the authorization is valid already.
const CLEAN_UP_GRACE: Duration = Duration::from_secs(10);
/// Longest wait of a shutdown for requests under way.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most arrivals kept of each kind: with a token, and without.
const MAX_ARRIVALS: usize = 64;
/// Reply to a client without HTTP: in plain text, so that a TLS client learns that the port has no TLS.
const BAD_REQUEST_REPLY: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Cache-Control: no-store\r\nConnection: close\r\nContent-Length: 30\r\n\r\nthis port speaks HTTP/1.1 only";
/// Most bytes read after a refusal, so that the refusal itself arrives.
const MAX_REFUSED_BYTES: u64 = 64 * 1024;

/// HTTP-01 solver with its own sockets; a dropped listener answers no more.
#[derive(Debug)]
pub struct Listener {
    addresses: Vec<SocketAddr>,
    table: AnswerTable,
    servers: JoinSet<()>,
    stop: DropGuard,
}

impl Listener {
    /// Listens on all these addresses, or on none: the first address that fails is the error.
    pub async fn bind(addresses: &[SocketAddr]) -> Result<Self, SolveError> {
        Self::serve(sockets::at(addresses).await?)
    }

    /// Listens on a port of all addresses, IPv6 and IPv4, as far as this machine has them.
    pub async fn bind_everywhere(port: u16) -> Result<Self, SolveError> {
        Self::serve(sockets::everywhere(port).await?)
    }

    /// Serves this answer for its name and token from now on.
    pub fn put(&self, answer: &Answer) {
        self.table.put(answer);
    }

    /// Returns the listening addresses, each with its real port.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the arrivals since a moment for an answer, or for no known answer.
    pub fn came_since(&self, answer: &Answer, since: Timestamp) -> Vec<Arrival> {
        self.table.came_since(&answer.token, since)
    }

    /// Takes no more connections and waits for requests under way, at most 5 s.
    pub async fn close(self) {
        let Self { mut servers, stop, .. } = self;
        drop(stop);
        let all_ended = async { while servers.join_next().await.is_some() {} };
        // A client that has not read the answer by now will not read it.
        if timeout(CLOSE_TIMEOUT, all_ended).await.is_err() {
            servers.shutdown().await;
        }
    }

    fn serve(sockets: Vec<TcpListener>) -> Result<Self, SolveError> {
        let table = AnswerTable::default();
        let (stop, places) = (CancellationToken::new(), ConnectionSlots::default());
        let mut addresses = Vec::new();
        let mut servers = JoinSet::new();
        for socket in sockets {
            addresses.push(sockets::address(&socket)?);
            let (table, stopped) = (table.clone(), stop.clone());
            let serve = move |stream| converse(stream, table.clone(), stopped.clone());
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
        self.table.retire(answer, Instant::now() + CLEAN_UP_GRACE);
        Ok(())
    }

    fn stands(&self, _: &Challenge, answer: &Answer) -> bool {
        self.table.stands(answer)
    }

    fn listens_at(&self) -> Vec<SocketAddr> {
        sockets::chosen(&self.addresses, PORT)
    }

    fn came_since(&self, answer: &Answer, since: Timestamp) -> Vec<Arrival> {
        Self::came_since(self, answer, since)
    }
}

/// One connection, with the data that its answers need.
#[derive(Clone)]
struct Caller {
    table: AnswerTable,
    from: IpAddr,
    is_proxied: bool,
}

/// Serves one connection, after an optional header of a proxy.
async fn converse(stream: TcpStream, table: AnswerTable, stop: CancellationToken) {
    let Ok(peer) = stream.peer_addr() else { return };
    let opening = opening::read(stream, ConnectionTimeouts::ONE_REQUEST.header);
    let Some(Some((opening, stream))) = stop.run_until_cancelled(opening).await else { return };
    let Opening { proxied, speech } = opening;
    let source = proxied.and_then(|proxied| proxied.source);
    debug!(%peer, ?source, ?speech, "connection to the HTTP-01 listener");
    let from = peer.ip().to_canonical();
    let caller = Caller { table, from, is_proxied: proxied.is_some() };
    let came = match speech {
        Protocol::Plain => {
            let router = Router::new().fallback(answer).with_state(caller);
            return serve::http(stream, router, ConnectionTimeouts::ONE_REQUEST, stop).await;
        }
        Protocol::Tls => Came::Tls,
        Protocol::Garbled => Came::Garbled,
    };
    caller.note(came, None);
    // A client that has hung up does not need the reply.
    let _in_time = timeout(CLOSE_TIMEOUT, refuse(stream)).await;
}

async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    if stream.write_all(BAD_REQUEST_REPLY.as_bytes()).await.is_ok()
        && stream.shutdown().await.is_ok()
    {
        let _rest =
            tokio::io::copy(&mut stream.take(MAX_REFUSED_BYTES), &mut tokio::io::sink()).await;
    }
}

/// Serves one request.
async fn answer(State(caller): State<Caller>, headers: HeaderMap, uri: Uri) -> Response {
    if uri.path() == "/healthz" {
        return StatusCode::OK.into_response();
    }
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let host = host.or_else(|| uri.host()).unwrap_or_default();
    let found = uri.path().strip_prefix(PATH).and_then(|token| caller.table.find(host, token));
    debug!(host, answered = found.is_some(), "request on the HTTP-01 listener");
    let last = uri.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let host = kept_host(host);
    let came = match &found {
        Some(_) => Some(Came::Answered { host }),
        None if caller.table.holds_like(last) => Some(Came::OtherPath { host }),
        None if uri.path().starts_with(PATH) => Some(Came::UnknownToken { host }),
        None => None,
    };
    if let Some(came) = came {
        caller.note(came, Some(last));
    }
    if let Some(body) = found {
        let fresh = (header::CACHE_CONTROL, "no-cache, no-store, must-revalidate");
        return ([fresh], body).into_response();
    }
    // A cache that keeps this reply would hide the answer that is put up next.
    let fresh = (header::CACHE_CONTROL, "no-store");
    (StatusCode::NOT_FOUND, [DECLINED_BY], [fresh], "404 page not found\n").into_response()
}

impl Caller {
    /// Records an arrival, with the token that it names.
    fn note(&self, came: Came, token: Option<&str>) {
        let (at, from, is_proxied) = (Timestamp::now(), self.from, self.is_proxied);
        let token = token.filter(|_| came.names_token()).unwrap_or_default().to_owned();
        let arrival = Arrival { at, from, is_proxied, came };
        self.table.note(token, arrival);
    }
}

/// Key authorizations by identifier and token, and the arrivals.
#[derive(Clone, Debug, Default)]
struct AnswerTable {
    entries: Arc<Mutex<HashMap<(Identifier, String), ShownAnswer>>>,
    /// Arrivals that name no token, and arrivals that name a token.
    arrivals: Arc<Mutex<[Arrivals; 2]>>,
}

/// Arrivals, each with its token or an empty text; the oldest first.
type Arrivals = VecDeque<(String, Arrival)>;

struct ShownAnswer {
    key_authorization: String,
    /// Time from which the answer is not served any more; `None` while it is up.
    until: Option<Instant>,
}

impl std::fmt::Debug for ShownAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("until", &self.until).finish_non_exhaustive()
    }
}

impl AnswerTable {
    /// Locks the table, without the answers whose time is over.
    fn current(&self) -> MutexGuard<'_, HashMap<(Identifier, String), ShownAnswer>> {
        let mut entries = self.entries.lock();
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

    /// Returns the answer to a token: of the host if several hosts have the token, else of any host.
    fn find(&self, host: &str, token: &str) -> Option<String> {
        let identifier = Identifier::parse(without_port(host)).ok();
        let entries = self.current();
        let of_token = entries.iter().filter(|((_, of), _)| of == token);
        let found = of_token.max_by_key(|((of, _), _)| Some(of) == identifier.as_ref());
        found.map(|(_, entry)| entry.key_authorization.clone())
    }

    /// Returns whether there is an answer to a token in any case of letters: a proxy may have changed the case, too.
    fn holds_like(&self, token: &str) -> bool {
        self.current().keys().any(|(_, of)| of.eq_ignore_ascii_case(token))
    }

    fn note(&self, token: String, arrival: Arrival) {
        let mut arrivals = self.arrivals.lock();
        let kept = &mut arrivals[usize::from(arrival.came.names_token())];
        if kept.len() == MAX_ARRIVALS {
            kept.pop_front();
        }
        kept.push_back((token, arrival));
    }

    fn came_since(&self, token: &str, since: Timestamp) -> Vec<Arrival> {
        let arrivals = self.arrivals.lock();
        let of_it = arrivals.iter().flatten().filter(|(of, arrival)| {
            arrival.at >= since && (!arrival.came.names_token() || of.eq_ignore_ascii_case(token))
        });
        of_it.map(|(_, arrival)| arrival.clone()).collect()
    }
}

fn key(answer: &Answer) -> (Identifier, String) {
    (answer.identifier.clone(), answer.token.clone())
}

/// Removes the port and an IPv6 address's brackets from a Host header (RFC 9110 §7.2).
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

    const LOOPBACK: [SocketAddr; 1] = [SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)];

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
    async fn whoever_knows_the_token_is_answered_whatever_the_host() {
        check("www.example.com", "www.example.com", TOKEN_PATH, SERVED).await;
        check("www.example.com", "WWW.Example.com:8080", TOKEN_PATH, SERVED).await;
        check("www.example.com", "www.example.com.", TOKEN_PATH, SERVED).await;
        check("2001:db8::1", "[2001:DB8:0::1]", TOKEN_PATH, SERVED).await;
        check("2001:db8::1", "[2001:db8::1]:80", TOKEN_PATH, SERVED).await;
        check("192.0.2.1", "192.0.2.1:80", TOKEN_PATH, SERVED).await;
        // What proxies send who pass no Host on: the address that they connect to, or the name of a group of servers.
        for host in ["127.0.0.1:8080", "backend", "_", "localhost", "", "[::1]:8080", "a b"] {
            check("www.example.com", host, TOKEN_PATH, SERVED).await;
        }
    }

    /// Presents an answer, sends these bytes and returns the reply in lower case, and what came by the listener's account.
    async fn say(bytes: &[u8]) -> (String, Vec<Came>) {
        let listener = Listener::bind(&LOOPBACK).await.unwrap();
        let answer = answer_for("www.example.com");
        listener.present(&challenge(), &answer).await.unwrap();
        let mut stream = TcpStream::connect(listener.addresses()[0]).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let came = listener.came_since(&answer, Timestamp::UNIX_EPOCH);
        assert!(came.iter().all(|it| it.from == LOOPBACK[0].ip()), "{came:?}");
        let other = Answer { token: "other".to_owned(), ..answer };
        let of_other = listener.came_since(&other, Timestamp::UNIX_EPOCH);
        assert!(of_other.iter().all(|it| !it.came.names_token()), "{of_other:?}");
        (reply.to_ascii_lowercase(), came.into_iter().map(|it| it.came).collect())
    }

    #[tokio::test]
    async fn old_http_without_a_host_is_answered() {
        let (reply, came) = say(format!("GET {TOKEN_PATH} HTTP/1.0\r\n\r\n").as_bytes()).await;
        assert!(reply.ends_with(SERVED.1), "{reply}");
        assert_eq!(came, [Came::Answered { host: String::new() }]);
    }

    #[tokio::test]
    async fn a_header_of_the_proxy_protocol_is_read_before_the_request() {
        let request = format!("GET {TOKEN_PATH} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let two = |command: u8, family: u8, body: &[u8]| {
            let length = [0, u8::try_from(body.len()).unwrap()];
            [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[command, family], &length, body].concat()
        };
        for header in [
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\n".to_vec(),
            b"PROXY UNKNOWN\r\n".to_vec(),
            two(0x21, 0x11, &[192, 0, 2, 1, 192, 0, 2, 2, 0, 1, 0, 80, 4, 0, 1, 9]),
            two(0x21, 0x21, &[7; 36]),
            two(0x20, 0, &[]),
        ] {
            let (reply, came) = say(&[&header[..], request.as_bytes()].concat()).await;
            assert!(reply.ends_with(SERVED.1), "{reply}");
            assert_eq!(came, [Came::Answered { host: "a".to_owned() }]);
        }
        let (reply, came) = say(b"PROXY nonsense\r\n").await;
        assert!(reply.starts_with("http/1.1 400 "), "{reply}");
        assert_eq!(came, [Came::Garbled]);
    }

    #[tokio::test]
    async fn a_tls_handshake_is_known_for_what_it_is() {
        let (reply, came) = say(&[&[22, 3, 1, 2, 0, 1, 0][..], &[0; 2000]].concat()).await;
        assert!(reply.ends_with("this port speaks http/1.1 only"), "{reply}");
        assert_eq!(came, [Came::Tls]);
    }

    #[tokio::test]
    async fn a_path_that_a_proxy_has_changed_is_kept_as_evidence() {
        for path in
            ["/token", "/acme-challenge/token", "//.well-known/acme-challenge/token", "/x/token/"]
        {
            let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let (reply, came) = say(request.as_bytes()).await;
            assert!(reply.ends_with(DECLINED.1), "{reply}");
            assert_eq!(came, [Came::OtherPath { host: "a".to_owned() }], "{path}");
        }
        // Its case, too.
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            TOKEN_PATH
                .to_ascii_uppercase()
                .replace("/.WELL-KNOWN/ACME-CHALLENGE", "/.well-known/acme-challenge")
        );
        let (_, came) = say(request.as_bytes()).await;
        assert_eq!(came, [Came::OtherPath { host: "a".to_owned() }]);
        let request = format!("GET {TOKEN_PATH}2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let (reply, came) = say(request.as_bytes()).await;
        assert!(reply.contains("\r\ncache-control: no-store\r\n"), "{reply}");
        assert!(reply.contains("\r\nx-acme-solver: kubectl-acme\r\n"), "{reply}");
        assert_eq!(came, [Came::UnknownToken { host: "a".to_owned() }]);
        let (_, came) = say(b"GET /favicon.ico HTTP/1.1\r\nConnection: close\r\n\r\n").await;
        assert_eq!(came, []);
    }

    #[tokio::test]
    async fn anything_else_is_not_found() {
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
        table.retire(&answer, Instant::now() + CLEAN_UP_GRACE);
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
        table.retire(&answer, Instant::now() + CLEAN_UP_GRACE);
        table.put(&answer);
        tokio::time::advance(CLEAN_UP_GRACE * 2).await;
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
