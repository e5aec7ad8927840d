//! One question to one name server, or to several until the first answers: UDP and TCP (RFC 1035 §4.2, RFC 6891),
//! HTTPS (RFC 8484). Updates use UDP and TCP alike, by packets.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hickory_resolver::proto::op::{Edns, Message, MessageType, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use reqwest::Client;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use super::reply::Reply;
use super::server::Server;
use super::{Resolve, Silence, in_place_of_system};
use crate::http::client;
use crate::http::exchange::{self, Unanswered, causes, is_untrusted};

/// Longest wait for a server over UDP, and again over TCP.
pub(super) const SERVER_TIMEOUT: Duration = Duration::from_secs(3);
/// Sendings of a packet over UDP before the server counts as silent: packets get lost.
pub(super) const SENDINGS: u32 = 3;
/// Wait for a better answer after an answer that any host may have sent (RFC 8945 §5.3).
const BETTER_ANSWER_WAIT: Duration = Duration::from_millis(300);
/// Time of one server to answer before another one is asked beside it.
const HEAD_START: Duration = Duration::from_millis(300);
/// Largest answer that we take over UDP, in bytes; a larger answer would arrive in fragments, or not at all.
const PAYLOAD: u16 = 1232;
/// Largest possible answer, in bytes.
const MAX_ANSWER_BYTES: usize = 65_535;
const MEDIA_TYPE: &str = "application/dns-message";

/// Wish for recursion: whether the server is to ask other servers on our behalf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recursion {
    /// The server is a resolver.
    Desired,
    /// The server is a resolver, and is to state whether it has validated the answer (RFC 6840 §5.7).
    DesiredValidated,
    /// The server is a resolver, and is not to validate (RFC 4035 §3.2.2).
    DesiredUnvalidated,
    /// The server is to answer from its own data alone, as when a resolver asks.
    Unwanted,
    /// Like [`Self::Unwanted`], with signatures (RFC 3225).
    UnwantedSigned,
}

/// Client of name servers; keeps no answers.
#[derive(Clone, Debug)]
pub struct Wire {
    /// Client that is made when the first HTTPS server is asked: reading the system's roots takes a while.
    https: Arc<OnceLock<Result<Client, String>>>,
    resolver: Option<Arc<dyn Resolve>>,
    patience: Duration,
}

impl Wire {
    /// Makes a wire whose HTTPS servers are found by that resolver.
    pub fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self { resolver: Some(resolver), ..Self::without_hosts(SERVER_TIMEOUT) }
    }

    /// Makes a wire for servers that are given by their addresses.
    pub(super) fn without_hosts(patience: Duration) -> Self {
        Self { https: Arc::default(), resolver: None, patience }
    }

    /// Sets another longest wait.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Returns the seconds that the texts at an absolute name may be kept, by an authoritative server; `None` if the
    /// server has no texts, or does not answer.
    pub(crate) async fn ttl_of_texts(&self, server: SocketAddr, name: &str) -> Option<u32> {
        let name = Name::from_ascii(name).ok()?;
        let server = Server::Plain(server);
        let reply = self.ask(&server, &name, RecordType::TXT, Recursion::Unwanted).await.ok()?;
        reply.ttl_of_texts().filter(|_| reply.is_authoritative())
    }

    /// Zone in which a server, as its authority, has an absolute name; `None` if the server has no such zone or answer.
    pub(crate) async fn zone_at(&self, server: SocketAddr, name: &str) -> Option<String> {
        let name = Name::from_ascii(name).ok()?;
        let server = Server::Plain(server);
        let reply = self.ask(&server, &name, RecordType::SOA, Recursion::Unwanted).await.ok()?;
        let (zone, _) = reply.zone().or_else(|| reply.zone_of_absence())?;
        (reply.is_authoritative() && zone.zone_of(&name)).then(|| zone.to_lowercase().to_ascii())
    }

    /// Asks servers in order until one has an answer. Each has a head start before the next one is asked, too; one that
    /// fails has none. Without an answer the first other reply counts, else a silence; `None` without servers.
    pub(super) async fn ask_any(
        &self,
        servers: &[Server],
        (name, kind): (&Name, RecordType),
        recursion: Recursion,
    ) -> Option<Result<Reply, Silence>> {
        let mut servers = servers.iter();
        let mut asked = FuturesUnordered::new();
        let mut fault = None;
        loop {
            asked.extend(servers.next().map(|server| self.ask(server, name, kind, recursion)));
            match timeout(HEAD_START, asked.next()).await {
                Ok(Some(Ok(reply))) if reply.is_an_answer() => return Some(Ok(reply)),
                Ok(Some(failure)) if !matches!(fault, Some(Ok(_))) => fault = Some(failure),
                Ok(None) => return fault,
                Ok(Some(_)) | Err(_) => {}
            }
        }
    }

    /// Asks one question of one server.
    pub(super) async fn ask(
        &self,
        server: &Server,
        name: &Name,
        kind: RecordType,
        recursion: Recursion,
    ) -> Result<Reply, Silence> {
        let mut question = Message::query();
        let is_signed = recursion == Recursion::UnwantedSigned;
        question.metadata.recursion_desired = !is_signed && recursion != Recursion::Unwanted;
        question.metadata.authentic_data = recursion == Recursion::DesiredValidated;
        question.metadata.checking_disabled = recursion == Recursion::DesiredUnvalidated;
        question.add_query(Query::query(name.clone(), kind));
        let mut edns = Edns::new();
        edns.set_max_payload(PAYLOAD);
        edns.set_dnssec_ok(is_signed);
        question.set_edns(edns);
        let answer = self.exchange(server, &question).await?;
        // Servers that do not know EDNS answer with these codes (RFC 6891 §7).
        let codes = [ResponseCode::FormErr, ResponseCode::NotImp];
        if answer.edns.is_none() && codes.contains(&answer.metadata.response_code) {
            question.edns = None;
            return Ok(Reply(self.exchange(server, &question).await?));
        }
        Ok(Reply(answer))
    }

    /// Asks a question in this form alone, over UDP, and over TCP if UDP brings no answer.
    pub(super) async fn ask_as_it_is(
        &self,
        server: SocketAddr,
        question: &Message,
    ) -> Result<Message, Silence> {
        self.plain(server, question).await
    }

    /// Asks a question over TCP alone.
    pub(super) async fn ask_over_tcp(
        &self,
        server: SocketAddr,
        question: &Message,
    ) -> Result<Message, Silence> {
        let packet = question.to_vec().map_err(|_| Silence::Unreadable)?;
        let received = timeout(self.patience, tcp(server, &packet)).await;
        match received.map_err(io::Error::from).flatten() {
            Ok(received) => answer_to(question, &received).ok_or(Silence::Unreadable),
            Err(error) => Err(silence(&error)),
        }
    }

    async fn exchange(&self, server: &Server, question: &Message) -> Result<Message, Silence> {
        match server {
            Server::Plain(address) => self.plain(*address, question).await,
            Server::Https(url) => self.https(url, question).await,
        }
    }

    /// Asks over UDP, then over TCP if the answer is cut short, or missing.
    async fn plain(&self, server: SocketAddr, question: &Message) -> Result<Message, Silence> {
        let packet = question.to_vec().map_err(|_| Silence::Unreadable)?;
        let truncated = match self.over_udp(server, question, &packet).await {
            Ok(answer) if !answer.metadata.truncation => return Ok(answer),
            Ok(_) => true,
            Err(error) if silence(&error) == Silence::NoRoute => return Err(Silence::NoRoute),
            Err(_) => false,
        };
        let answer = self.ask_over_tcp(server, question).await;
        answer.map_err(|why| if truncated { Silence::Truncated(Box::new(why)) } else { why })
    }

    async fn over_udp(
        &self,
        server: SocketAddr,
        question: &Message,
        packet: &[u8],
    ) -> io::Result<Message> {
        let socket = udp_socket(server).await?;
        let judge =
            |received: &[u8]| answer_to(question, received).map_or(Packet::Foreign, Packet::Answer);
        for _ in 1..SENDINGS {
            match udp(&socket, packet, self.patience / SENDINGS, judge).await {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                heard => return heard,
            }
        }
        udp(&socket, packet, self.patience / SENDINGS, judge).await
    }

    async fn https(&self, url: &Url, question: &Message) -> Result<Message, Silence> {
        let client = self.https.get_or_init(|| https_client(self.resolver.as_ref()));
        let client = client.as_ref().map_err(|why| Silence::Https(why.clone()))?;
        let mut question = question.clone();
        // Equal questions are equal requests everywhere (§4.1).
        question.metadata.id = 0;
        let body = question.to_vec().map_err(|_| Silence::Unreadable)?;
        // The answer to a POST may not come from a cache (RFC 9110 §9.3.3).
        let request = client
            .post(url.clone())
            .header(CONTENT_TYPE, MEDIA_TYPE)
            .header(ACCEPT, MEDIA_TYPE)
            .timeout(self.patience + self.patience)
            .body(body);
        let response = request.send().await.map_err(|error| https_fault(error.into()))?;
        if response.status() != 200 {
            return Err(Silence::Https(format!("says HTTP status {}", response.status().as_u16())));
        }
        let read = exchange::read(response, MAX_ANSWER_BYTES).await.map_err(https_fault)?;
        answer_to(&question, &read).ok_or(Silence::Unreadable)
    }
}

/// Judgement of a packet that was received.
pub(super) enum Packet<T> {
    /// The packet is the answer.
    Answer(T),
    /// Any host may have sent the packet; the first such packet counts if no better answer comes soon.
    Doubtful(T),
    /// The packet answers another question, or is a forger's guess; the true answer may still come.
    Foreign,
}

/// Opens a socket that is connected to a server, so that the system drops other packets and reports a closed port.
pub(super) async fn udp_socket(server: SocketAddr) -> io::Result<UdpSocket> {
    let here: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(here).await?;
    socket.connect(server).await?;
    Ok(socket)
}

/// Sends a packet once and waits for the answer; fails with `TimedOut` if none comes.
pub(super) async fn udp<T>(
    socket: &UdpSocket,
    packet: &[u8],
    patience: Duration,
    mut judge: impl FnMut(&[u8]) -> Packet<T>,
) -> io::Result<T> {
    socket.send(packet).await?;
    let mut received = vec![0; MAX_ANSWER_BYTES];
    let mut until = Instant::now() + patience;
    let mut doubtful = None;
    while let Ok(length) = timeout_at(until, socket.recv(&mut received)).await {
        match judge(&received[..length?]) {
            Packet::Answer(answer) => return Ok(answer),
            Packet::Doubtful(answer) if doubtful.is_none() => {
                doubtful = Some(answer);
                until = until.min(Instant::now() + BETTER_ANSWER_WAIT);
            }
            Packet::Doubtful(_) | Packet::Foreign => {}
        }
    }
    doubtful.ok_or_else(|| io::ErrorKind::TimedOut.into())
}

/// Sends a packet over a connection of its own, and returns the answer.
pub(super) async fn tcp(server: SocketAddr, packet: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(packet.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), packet].concat()).await?;
    let length = stream.read_u16().await?;
    let mut received = vec![0; length.into()];
    stream.read_exact(&mut received).await?;
    Ok(received)
}

fn silence(error: &io::Error) -> Silence {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Silence::Refused,
        io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::Unsupported => Silence::NoRoute,
        _ => Silence::TimedOut,
    }
}

/// Reads an answer; `None` if it is for another question. Servers may leave the question out of an error.
fn answer_to(question: &Message, packet: &[u8]) -> Option<Message> {
    let answer = Message::from_vec(packet).ok()?;
    let fits = answer.metadata.id == question.metadata.id
        && answer.metadata.message_type == MessageType::Response
        && (answer.queries == question.queries
            || (answer.queries.is_empty()
                && answer.metadata.response_code != ResponseCode::NoError));
    fits.then_some(answer)
}

fn https_client(resolver: Option<&Arc<dyn Resolve>>) -> Result<Client, String> {
    client::anonymous(resolver.and_then(in_place_of_system))
        .build()
        .map_err(|_| "cannot be trusted: this machine has no root certificates".to_owned())
}

fn https_fault(why: Unanswered) -> Silence {
    let Unanswered::Broken(error) = why else {
        let is_large = matches!(why, Unanswered::TooLarge);
        return if is_large { Silence::Unreadable } else { Silence::TimedOut };
    };
    let mut causes = causes(&error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    if causes.any(|cause| cause.kind() == io::ErrorKind::ConnectionRefused) {
        return Silence::Refused;
    }
    let why = if is_untrusted(&error) {
        "shows a certificate that is not trusted"
    } else {
        "cannot be asked over HTTPS"
    };
    Silence::Https(why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use axum::Router;
    use axum::body::Bytes;
    use axum::http::{HeaderMap, StatusCode};
    use axum::routing::post;
    use hickory_resolver::proto::rr::rdata::TXT;
    use hickory_resolver::proto::rr::{RData, Record};
    use tokio::net::TcpListener;

    use super::*;
    use crate::dns::reply::mnemonic;
    use crate::dns::testing::{NoHosts, Transport, name, reply, serve};

    /// Answer of the test server; the first label of the name selects the fault.
    fn answer(question: &Message, transport: Transport) -> Option<Message> {
        let asked = question.queries[0].name().clone();
        let fault = String::from_utf8_lossy(asked.iter().next().unwrap()).into_owned();
        let mut good = reply(question, ResponseCode::NoError);
        good.add_answer(Record::from_rdata(
            asked,
            60,
            RData::TXT(TXT::new(vec!["good".to_owned()])),
        ));
        let truncated = good.truncate();
        match (fault.as_str(), transport) {
            ("large" | "too-large", Transport::Udp) => Some(truncated),
            ("half-silent", Transport::Udp) | ("too-large" | "silent", _) => None,
            ("plain", _) if question.edns.is_some() => {
                let mut refused = reply(question, ResponseCode::FormErr);
                refused.edns = None;
                Some(refused)
            }
            ("forged", Transport::Udp) => {
                good.metadata.id = good.metadata.id.wrapping_add(1);
                Some(good)
            }
            ("astray", _) => {
                good.queries[0].set_name(name("elsewhere.example.com."));
                Some(good)
            }
            ("refused", _) => Some(reply(question, ResponseCode::Refused)),
            _ => Some(good),
        }
    }

    fn wire() -> Wire {
        Wire::new(Arc::new(NoHosts)).with_patience(Duration::from_millis(500))
    }

    async fn ask(server: &Server, host: &str) -> String {
        let host = name(host);
        match wire().ask(server, &host, RecordType::TXT, Recursion::Unwanted).await {
            Ok(reply) => format!("{} {:?}", mnemonic(reply.code()), reply.texts(&host)),
            Err(why) => why.to_string(),
        }
    }

    async fn check(label: &str, expected: &str) {
        let server = Server::Plain(serve(answer).await);
        assert_eq!(ask(&server, &format!("{label}.example.com.")).await, expected, "{label}");
    }

    #[tokio::test]
    async fn what_does_not_come_over_udp_is_asked_again_over_tcp() {
        for label in ["good", "large", "half-silent", "forged"] {
            check(label, "NOERROR [\"good\"]").await;
        }
    }

    #[tokio::test]
    async fn a_packet_that_gets_lost_is_sent_again() {
        let lost = AtomicBool::new(false);
        let deaf_once = move |question: &Message, transport| {
            let is_heard = transport == Transport::Udp && lost.swap(true, Ordering::Relaxed);
            is_heard.then(|| reply(question, ResponseCode::NoError))
        };
        let server = Server::Plain(serve(deaf_once).await);
        assert_eq!(ask(&server, "www.example.com.").await, "NOERROR []");
    }

    #[tokio::test]
    async fn a_server_that_knows_nothing_of_edns_is_asked_without() {
        check("plain", "NOERROR [\"good\"]").await;
    }

    #[tokio::test]
    async fn other_codes_are_answers() {
        check("refused", "REFUSED []").await;
    }

    #[tokio::test]
    async fn who_does_not_answer_is_told_by_how() {
        check("silent", "does not answer").await;
        check("too-large", "has an answer too large for UDP, and over TCP it does not answer")
            .await;
        check("astray", "gives an answer that cannot be read").await;
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        assert_eq!(ask(&Server::Plain(gone), "a.example.com.").await, "refuses the connection");
    }

    #[tokio::test]
    async fn https_servers_are_asked_by_post() {
        let serve = |headers: HeaderMap, body: Bytes| async move {
            let question = Message::from_vec(&body).unwrap();
            assert_eq!(question.metadata.id, 0);
            assert_eq!([&headers[ACCEPT], &headers[CONTENT_TYPE]], [MEDIA_TYPE; 2]);
            match answer(&question, Transport::Tcp) {
                Some(answer) => (StatusCode::OK, answer.to_vec().unwrap()),
                None => (StatusCode::BAD_GATEWAY, Vec::new()),
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/dns-query", post(serve));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let server = Server::Https(format!("http://{address}/dns-query").parse().unwrap());
        for (host, expected) in [
            ("good.example.com.", "NOERROR [\"good\"]"),
            ("refused.example.com.", "REFUSED []"),
            ("silent.example.com.", "says HTTP status 502"),
            ("astray.example.com.", "gives an answer that cannot be read"),
        ] {
            assert_eq!(ask(&server, host).await, expected, "{host}");
        }
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let gone = Server::Https(format!("https://{gone}/dns-query").parse().unwrap());
        assert_eq!(ask(&gone, "a.example.com.").await, "refuses the connection");
        let untrusted = Server::Https(format!("https://{address}/dns-query").parse().unwrap());
        assert_eq!(ask(&untrusted, "a.example.com.").await, "cannot be asked over HTTPS");
    }
}
