//! Name servers for the tests of lookups: each answers as a closure says, on loopback, over UDP and TCP.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, NS, SOA, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use super::server::Server;
use super::wire::Wire;
use super::zone::{Trust, Zones};
use super::{LookupError, Resolve};

/// Transport of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

/// Serves DNS on a free port of 127.0.0.1, UDP and TCP, until the test ends; `None` from `answer` means no answer.
pub(crate) async fn serve(
    answer: impl Fn(&Message, Transport) -> Option<Message> + Send + Sync + 'static,
) -> SocketAddr {
    loop {
        if let Some(sockets) = bind((Ipv4Addr::LOCALHOST, 0).into()).await {
            return serve_on(sockets, answer);
        }
    }
}

/// Binds both sockets of a server; `None` if a port is taken.
async fn bind(address: SocketAddr) -> Option<(UdpSocket, TcpListener)> {
    let tcp = TcpListener::bind(address).await.ok()?;
    Some((UdpSocket::bind(tcp.local_addr().unwrap()).await.ok()?, tcp))
}

fn serve_on(
    (udp, tcp): (UdpSocket, TcpListener),
    answer: impl Fn(&Message, Transport) -> Option<Message> + Send + Sync + 'static,
) -> SocketAddr {
    let address = tcp.local_addr().unwrap();
    let answer = Arc::new(answer);
    let reply = move |question: &[u8], transport| {
        let question = Message::from_vec(question).unwrap();
        Some(answer(&question, transport)?.to_vec().unwrap())
    };
    let reply_udp = reply.clone();
    tokio::spawn(async move {
        let mut packet = [0; 1500];
        while let Ok((length, from)) = udp.recv_from(&mut packet).await {
            if let Some(reply) = reply_udp(&packet[..length], Transport::Udp) {
                udp.send_to(&reply, from).await.unwrap();
            }
        }
    });
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = tcp.accept().await {
            let reply = reply.clone();
            tokio::spawn(async move {
                while let Ok(length) = stream.read_u16().await {
                    let mut packet = vec![0; length.into()];
                    stream.read_exact(&mut packet).await.unwrap();
                    if let Some(reply) = reply(&packet, Transport::Tcp) {
                        stream.write_u16(reply.len().try_into().unwrap()).await.unwrap();
                        stream.write_all(&reply).await.unwrap();
                    }
                }
            });
        }
    });
    address
}

/// An empty answer to a question.
pub(crate) fn reply(question: &Message, code: ResponseCode) -> Message {
    let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
    reply.metadata.message_type = MessageType::Response;
    reply.metadata.response_code = code;
    reply.metadata.recursion_available = true;
    reply.add_queries(question.queries.clone());
    reply.edns.clone_from(&question.edns);
    reply
}

/// A name with its final dot.
pub(crate) fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

/// Records of a zone, and codes that are sent in their place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Zone {
    /// Absolute name.
    apex: String,
    records: Vec<Record>,
    /// Codes that answer the questions of a type, in place of the records.
    codes: Vec<(RecordType, ResponseCode)>,
}

impl Zone {
    /// A zone with its SOA record.
    pub(crate) fn new(apex: &str) -> Self {
        let apex_name = name(apex);
        let soa = SOA::new(apex_name.clone(), apex_name, 1, 60, 60, 60, 60);
        Self { apex: apex.to_owned(), ..Self::default() }.with(apex, RData::SOA(soa))
    }

    pub(crate) fn with(mut self, owner: &str, data: RData) -> Self {
        self.records.push(Record::from_rdata(name(owner), 60, data));
        self
    }

    pub(crate) fn ns(self, owner: &str, server: &str) -> Self {
        self.with(owner, RData::NS(NS(name(server))))
    }

    pub(crate) fn txt(self, owner: &str, strings: &[&str]) -> Self {
        let strings = strings.iter().map(|text| (*text).to_owned()).collect();
        self.with(owner, RData::TXT(TXT::new(strings)))
    }

    pub(crate) fn cname(self, owner: &str, target: &str) -> Self {
        self.with(owner, RData::CNAME(CNAME(name(target))))
    }

    pub(crate) fn address(self, owner: &str, address: IpAddr) -> Self {
        let data = match address {
            IpAddr::V4(address) => RData::A(A(address)),
            IpAddr::V6(address) => RData::AAAA(AAAA(address)),
        };
        self.with(owner, data)
    }

    pub(crate) fn saying(mut self, kind: RecordType, code: ResponseCode) -> Self {
        self.codes.push((kind, code));
        self
    }

    /// Answers as a server of this zone does (RFC 1034 §4.3.2).
    fn answer(&self, question: &Message) -> Message {
        let query = &question.queries[0];
        let (owner, kind) = (query.name(), query.query_type());
        if let Some((_, code)) = self.codes.iter().find(|(asked, _)| *asked == kind) {
            return reply(question, *code);
        }
        let apex = name(&self.apex);
        let delegation = self
            .records
            .iter()
            .find(|r| r.record_type() == RecordType::NS && r.name != apex && r.name.zone_of(owner));
        let mut reply = reply(question, ResponseCode::NoError);
        if let Some(delegation) = delegation {
            let cut = self.records.iter().filter(|r| r.name == delegation.name);
            reply.add_authorities(cut.cloned());
            return reply;
        }
        reply.metadata.authoritative = true;
        let exists = |name: &Name| self.records.iter().any(|r| name.zone_of(&r.name));
        let mut source = owner.clone();
        if !exists(owner) {
            // The closest name that is there may have a wildcard below it (RFC 4592 §3.3.1).
            let mut encloser = owner.base_name();
            while !exists(&encloser) {
                encloser = encloser.base_name();
            }
            source = name("*").append_domain(&encloser).unwrap();
            if !exists(&source) {
                reply.metadata.response_code = ResponseCode::NXDomain;
            }
        }
        let fits =
            |r: &&Record| r.name == source && [kind, RecordType::CNAME].contains(&r.record_type());
        let given = self.records.iter().filter(fits).cloned();
        reply.add_answers(given.map(|mut record| {
            record.name = owner.clone();
            record
        }));
        if reply.answers.is_empty() {
            reply.add_authorities(self.records.iter().take(1).cloned());
        }
        reply
    }
}

/// Answers as a server of several zones, the lowest of which answers; names outside of the zones are refused.
fn answer(zones: &[Zone], question: &Message) -> Message {
    let asked = question.queries[0].name();
    let mut fitting: Vec<_> = zones.iter().filter(|z| name(&z.apex).zone_of(asked)).collect();
    fitting.sort_by_key(|zone| zone.apex.len());
    match fitting.last() {
        Some(zone) => zone.answer(question),
        None => reply(question, ResponseCode::Refused),
    }
}

/// Server whose zones can be changed while it runs, with a log of its questions.
#[derive(Clone, Debug)]
pub(crate) struct TestServer {
    zones: Arc<Mutex<Vec<Zone>>>,
    questions: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    fn start(sockets: (UdpSocket, TcpListener), zones: Vec<Zone>) -> Self {
        let zones = Arc::new(Mutex::new(zones));
        let questions: Arc<Mutex<Vec<String>>> = Arc::default();
        let (served, log) = (Arc::clone(&zones), Arc::clone(&questions));
        serve_on(sockets, move |question, _| {
            let query = &question.queries[0];
            log.lock().push(format!("{} {}", query.name(), query.query_type()));
            Some(answer(&served.lock(), question))
        });
        Self { zones, questions }
    }

    /// Replaces the zones.
    pub(crate) fn replace(&self, zones: Vec<Zone>) {
        *self.zones.lock() = zones;
    }

    /// Questions that were asked, as `NAME TYPE`.
    pub(crate) fn questions(&self) -> Vec<String> {
        self.questions.lock().clone()
    }
}

/// A resolver on 127.0.0.1 and the servers of zones on addresses of their own, all with one port.
pub(crate) struct World {
    pub(crate) resolver: TestServer,
    /// Address of the resolver.
    pub(crate) address: SocketAddr,
    pub(crate) servers: Vec<TestServer>,
}

impl World {
    /// Starts all servers. The resolver answers as a server of all its zones would; no server knows the root better.
    pub(crate) async fn start(resolver: Vec<Zone>, servers: &[(&str, Vec<Zone>)]) -> Self {
        loop {
            let Some(first) = bind((Ipv4Addr::LOCALHOST, 0).into()).await else { continue };
            let address = first.1.local_addr().unwrap();
            let mut sockets = Vec::new();
            for (ip, _) in servers {
                sockets.extend(bind((ip.parse::<IpAddr>().unwrap(), address.port()).into()).await);
            }
            if sockets.len() < servers.len() {
                continue;
            }
            let zones = servers.iter().map(|(_, zones)| zones.clone());
            let started = sockets.into_iter().zip(zones);
            return Self {
                resolver: TestServer::start(first, resolver),
                address,
                servers: started
                    .map(|(sockets, zones)| TestServer::start(sockets, zones))
                    .collect(),
            };
        }
    }

    /// Makes lookups by the resolver, with short time-outs.
    pub(crate) fn zones(&self, trust: Trust) -> Zones {
        let resolvers = vec![Server::Plain(self.address)];
        let impatient = |wire: Wire| wire.with_patience(Duration::from_millis(700));
        Zones::new(resolvers, trust, Arc::new(NoHosts)).on(impatient, self.address.port())
    }
}

/// Resolver that knows no host.
#[derive(Debug)]
pub(crate) struct NoHosts;

#[async_trait]
impl Resolve for NoHosts {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        Err(LookupError::NoSuchName { name: host.to_owned() })
    }
}
