//! Look-ups through the system's name servers or through one that is named.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Hosts, TokioResolver};

use super::cause::{Inquiry, bare};
use super::reply::mnemonic;
use super::server::{self, PORT, Server};
use super::{CaaRecord, LookupError, Resolve, Why};

/// How long a name server may take over UDP, and as long again over TCP.
const SERVER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long it may take to find out why a look-up failed.
const INQUIRY: Duration = Duration::from_secs(5);

/// Asks the name servers of the system's configuration; the hosts file comes first.
pub struct SystemResolver {
    hosts: Hosts,
    servers: Servers,
}

impl SystemResolver {
    /// Reads the system's configuration; when it names no servers, every look-up will say so.
    pub fn new() -> Self {
        let resolver = TokioResolver::builder_tokio().and_then(|mut builder| {
            remember_nothing(builder.options_mut());
            builder.build()
        });
        let why = "this machine's configuration names no name server";
        let resolver = resolver.map_err(|_| Why::Other(why.to_owned()));
        let inquiry = Inquiry::at(server::of_the_system(), INQUIRY);
        let servers = Servers { resolver, inquiry };
        Self { hosts: Hosts::from_system().unwrap_or_default(), servers }
    }

    fn in_hosts_file(&self, name: &Name) -> Vec<IpAddr> {
        [RecordType::AAAA, RecordType::A]
            .into_iter()
            .filter_map(|kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind)))
            .flat_map(|found| {
                found.answers().iter().filter_map(|r| r.data.ip_addr()).collect::<Vec<_>>()
            })
            .collect()
    }
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SystemResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemResolver")
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        if let Some(known) = without_asking(host) {
            return Ok(known);
        }
        let name = absolute(host)?;
        let listed = self.in_hosts_file(&name);
        if !listed.is_empty() {
            return Ok(listed);
        }
        self.servers.ask(host, &name).await
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        self.servers.texts(name).await
    }

    async fn caa(&self, name: &str) -> Result<Vec<CaaRecord>, LookupError> {
        self.servers.caa(name).await
    }
}

/// Asks one name server and nothing else: UDP, then TCP when the answer is truncated or none comes (`--dns`).
pub struct DirectResolver {
    addresses: Vec<SocketAddr>,
    servers: Servers,
}

impl DirectResolver {
    /// Asks the name server at that address.
    pub fn new(server: SocketAddr) -> Self {
        Self::at(vec![server])
    }

    /// Asks the name server at one of these addresses after another, until it answers.
    pub fn at(addresses: Vec<SocketAddr>) -> Self {
        Self::with_patience(addresses, SERVER_TIMEOUT)
    }

    fn with_patience(addresses: Vec<SocketAddr>, patience: Duration) -> Self {
        let name_servers = addresses.iter().map(|server| {
            let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
            for connection in &mut connections {
                connection.port = server.port();
            }
            NameServerConfig::new(server.ip(), true, connections)
        });
        let config = ResolverConfig::from_parts(None, Vec::new(), name_servers.collect());
        let mut builder =
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let options = builder.options_mut();
        remember_nothing(options);
        options.timeout = patience;
        options.attempts = 1;
        let resolver = builder.build().map_err(|error| why(&error));
        let servers = addresses.iter().copied().map(Server::Plain).collect();
        let inquiry = Inquiry::at(servers, INQUIRY);
        Self { addresses, servers: Servers { resolver, inquiry } }
    }
}

impl fmt::Debug for DirectResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DirectResolver({:?})", self.addresses)
    }
}

#[async_trait]
impl Resolve for DirectResolver {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        if let Some(known) = without_asking(host) {
            return Ok(known);
        }
        self.servers.ask(host, &absolute(host)?).await
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        self.servers.texts(name).await
    }

    async fn caa(&self, name: &str) -> Result<Vec<CaaRecord>, LookupError> {
        self.servers.caa(name).await
    }

    fn replaces_system(&self) -> bool {
        true
    }
}

/// Whom to ask.
struct Servers {
    /// Why nobody can be asked, otherwise.
    resolver: Result<TokioResolver, Why>,
    /// Asks the same servers for what the resolver leaves out of its errors.
    inquiry: Inquiry,
}

impl Servers {
    async fn ask(&self, host: &str, name: &Name) -> Result<Vec<IpAddr>, LookupError> {
        let resolver = self.resolver(host)?;
        let (six, four) = tokio::join!(
            records(resolver, name, RecordType::AAAA),
            records(resolver, name, RecordType::A)
        );
        match join([(RecordType::AAAA, six), (RecordType::A, four)]) {
            Ok(found) => Ok(found),
            Err(None) => Err(LookupError::NoAddress { name: host.to_owned() }),
            Err(Some((kind, error))) => {
                let fault = self.fault(host, name, kind, &error).await;
                Err(fault.unwrap_or_else(|| LookupError::NoAddress { name: host.to_owned() }))
            }
        }
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        let (kind, asked) = (RecordType::TXT, absolute(name)?);
        let nothing = || LookupError::NoText { name: name.to_owned() };
        let found = match self.resolver(name)?.lookup(asked.clone(), kind).await {
            Ok(found) => found,
            Err(error) => {
                return Err(self.fault(name, &asked, kind, &error).await.unwrap_or_else(nothing));
            }
        };
        let texts = found.answers().iter().filter_map(|record| match &record.data {
            RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        if texts.is_empty() { Err(nothing()) } else { Ok(texts) }
    }

    /// What an error says of a name, written as `text`; nothing where the name is there and has nothing of that type.
    async fn fault(
        &self,
        text: &str,
        name: &Name,
        kind: RecordType,
        error: &NetError,
    ) -> Option<LookupError> {
        let code = response_code(error);
        if code == Some(ResponseCode::NXDomain) {
            return Some(no_such_name(text, name, error));
        }
        let cause = match code {
            Some(code) => self.inquiry.why(name, kind, code).await,
            None => None,
        };
        if cause.is_none() && code == Some(ResponseCode::NoError) {
            return None;
        }
        let why = cause.unwrap_or_else(|| why(error));
        Some(LookupError::Failed { name: text.to_owned(), why })
    }

    async fn caa(&self, name: &str) -> Result<Vec<CaaRecord>, LookupError> {
        let (kind, asked) = (RecordType::CAA, absolute(name)?);
        let found = match self.resolver(name)?.lookup(asked.clone(), kind).await {
            Ok(found) => found,
            Err(error) if error.is_nx_domain() => return Ok(Vec::new()),
            Err(error) => match self.fault(name, &asked, kind, &error).await {
                Some(fault) => return Err(fault),
                None => return Ok(Vec::new()),
            },
        };
        let records = found.answers().iter().filter_map(|record| match &record.data {
            RData::CAA(record) => Some(CaaRecord::from(record)),
            _ => None,
        });
        Ok(records.collect())
    }

    fn resolver(&self, name: &str) -> Result<&TokioResolver, LookupError> {
        let failed = |why: &Why| LookupError::Failed { name: name.to_owned(), why: why.clone() };
        self.resolver.as_ref().map_err(failed)
    }
}

async fn records(
    resolver: &TokioResolver,
    name: &Name,
    kind: RecordType,
) -> Result<Vec<IpAddr>, NetError> {
    let found = resolver.lookup(name.clone(), kind).await?;
    Ok(found.answers().iter().filter_map(|record| record.data.ip_addr()).collect())
}

/// Finds the name server that a person wrote as `HOST:PORT`, `HOST` or an address; a host is looked up by `resolver`, and all its
/// addresses count, IPv6 first, in the order of their numbers; never an empty list.
pub async fn server_addresses(
    text: &str,
    resolver: &dyn Resolve,
) -> Result<Vec<SocketAddr>, LookupError> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, PORT)]);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "53"));
    let port = port.parse().map_err(|_| LookupError::Failed {
        name: text.to_owned(),
        why: Why::Other(format!("\"{port}\" is not a port")),
    })?;
    let mut found = resolver.addresses(host).await?;
    if found.is_empty() {
        return Err(LookupError::NoAddress { name: host.to_owned() });
    }
    found.sort_by_key(|address| (address.is_ipv4(), *address));
    Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

/// Whoever waits for a change must not be told yesterday's absence (RFC 2308 §5).
fn remember_nothing(options: &mut ResolverOpts) {
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
}

/// Literals, and `localhost` (RFC 6761 §6.3): no server needs to be asked.
fn without_asking(host: &str) -> Option<Vec<IpAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(vec![address]);
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    (name == "localhost" || name.ends_with(".localhost"))
        .then(|| vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()])
}

/// With its final dot a name is asked as it is, without search domains.
fn absolute(host: &str) -> Result<Name, LookupError> {
    let mut name = Name::from_ascii(host).map_err(|_| LookupError::Failed {
        name: host.to_owned(),
        why: Why::Other("it is not a DNS name".to_owned()),
    })?;
    name.set_fqdn(true);
    Ok(name)
}

/// One family is enough; a server's failure on both beats "there is nothing", and so does "there is no such name".
fn join(
    families: [(RecordType, Result<Vec<IpAddr>, NetError>); 2],
) -> Result<Vec<IpAddr>, Option<(RecordType, NetError)>> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    let mut faults = Vec::new();
    for (kind, family) in families {
        match family {
            Ok(found) => {
                for address in found {
                    if !addresses.contains(&address) {
                        addresses.push(address);
                    }
                }
            }
            Err(error) => faults.push((kind, error)),
        }
    }
    if !addresses.is_empty() {
        return Ok(addresses);
    }
    Err(faults.into_iter().max_by_key(|(_, error)| match response_code(error) {
        Some(ResponseCode::NoError) => 0,
        Some(ResponseCode::NXDomain) => 1,
        _ => 2,
    }))
}

/// Of an alias it is the name at its end that is missing.
fn no_such_name(text: &str, name: &Name, error: &NetError) -> LookupError {
    let text = text.to_owned();
    match error {
        NetError::Dns(DnsError::NoRecordsFound(found)) if found.query.name() != name => {
            LookupError::NoSuchTarget { name: text, target: bare(found.query.name()) }
        }
        _ => LookupError::NoSuchName { name: text },
    }
}

fn response_code(error: &NetError) -> Option<ResponseCode> {
    match error {
        NetError::Dns(DnsError::ResponseCode(code)) => Some(*code),
        NetError::Dns(DnsError::NoRecordsFound(found)) => Some(found.response_code),
        _ => None,
    }
}

fn why(error: &NetError) -> Why {
    match (response_code(error), error) {
        (Some(code), _) => Why::Answered { code: mnemonic(code), target: None },
        (None, NetError::Timeout | NetError::NoConnections | NetError::Io(_)) => Why::Silent,
        (None, NetError::Truncated) => {
            Why::Other("the answer was truncated, over TCP too".to_owned())
        }
        (None, NetError::Proto(_)) => Why::Unreadable,
        (None, other) => Why::Other(other.as_metrics_label().replace('_', " ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hickory_resolver::proto::op::Message;
    use hickory_resolver::proto::rr::Record;
    use hickory_resolver::proto::rr::rdata::{A, AAAA, SOA};

    use super::*;
    use crate::dns::testing::{self, Transport};

    /// What the test server says; the first label of the name tells which fault it plays.
    fn answer(question: &Message, transport: Transport) -> Option<Message> {
        let query = question.queries[0].clone();
        let four = RData::A(A::new(192, 0, 2, 1));
        let six = RData::AAAA(AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
        let is_six = query.query_type() == RecordType::AAAA;
        let label = String::from_utf8_lossy(query.name().iter().next().unwrap()).into_owned();
        let (code, data, truncated) = match (label.as_str(), is_six) {
            ("both" | "six", true) => (ResponseCode::NoError, vec![six], false),
            ("both" | "four" | "half-broken", false) => (ResponseCode::NoError, vec![four], false),
            ("twice", false) => (ResponseCode::NoError, vec![four.clone(), four], false),
            ("long", false) if transport == Transport::Tcp => {
                (ResponseCode::NoError, vec![four], false)
            }
            ("long", false) => (ResponseCode::NoError, vec![], true),
            ("missing", _) => (ResponseCode::NXDomain, vec![], false),
            ("broken", _) | ("half-broken" | "half-empty", true) => {
                (ResponseCode::ServFail, vec![], false)
            }
            ("refused", _) => (ResponseCode::Refused, vec![], false),
            ("silent", _) => return None,
            _ => (ResponseCode::NoError, vec![], false),
        };
        let mut reply = testing::reply(question, code);
        reply.metadata.truncation = truncated;
        for data in &data {
            reply.add_answer(Record::from_rdata(query.name().clone(), 60, data.clone()));
        }
        if data.is_empty() && !truncated {
            let zone = Name::from_ascii("example.com.").unwrap();
            let soa = SOA::new(zone.clone(), zone.clone(), 1, 60, 60, 60, 60);
            reply.add_authority(Record::from_rdata(zone, 60, RData::SOA(soa)));
        }
        Some(reply)
    }

    async fn serve() -> SocketAddr {
        testing::serve(answer).await
    }

    /// Looks a host up; several addresses are separated by blanks.
    async fn check(host: &str, expected: Result<&str, LookupError>) {
        let resolver =
            DirectResolver::with_patience(vec![serve().await], Duration::from_millis(300));
        let seen = resolver
            .addresses(host)
            .await
            .map(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        assert_eq!(seen.as_deref(), expected.as_ref().copied(), "{host}");
    }

    fn failed(name: &str, why: Why) -> LookupError {
        LookupError::Failed { name: name.to_owned(), why }
    }

    #[tokio::test]
    async fn ipv6_comes_first() {
        check("both.example.com", Ok("2001:db8::1 192.0.2.1")).await;
    }

    #[tokio::test]
    async fn one_family_is_enough() {
        check("four.example.com", Ok("192.0.2.1")).await;
        check("six.example.com.", Ok("2001:db8::1")).await;
        check("half-broken.example.com", Ok("192.0.2.1")).await;
    }

    #[tokio::test]
    async fn a_repeated_address_is_listed_once() {
        check("twice.example.com", Ok("192.0.2.1")).await;
    }

    #[tokio::test]
    async fn a_truncated_answer_is_asked_again_over_tcp() {
        check("long.example.com", Ok("192.0.2.1")).await;
    }

    #[tokio::test]
    async fn a_missing_name_is_not_an_empty_one() {
        let name = || "missing.example.com".to_owned();
        check("missing.example.com", Err(LookupError::NoSuchName { name: name() })).await;
        let name = || "empty.example.com".to_owned();
        check("empty.example.com", Err(LookupError::NoAddress { name: name() })).await;
    }

    #[tokio::test]
    async fn a_failing_server_is_named_with_its_answer() {
        let answered = |code: &str| Why::Answered { code: code.to_owned(), target: None };
        for (host, why) in [
            ("broken.example.com", answered("SERVFAIL")),
            ("half-empty.example.com", answered("SERVFAIL")),
            ("refused.example.com", answered("REFUSED")),
            ("silent.example.com", Why::Silent),
            ("a..b", Why::Other("it is not a DNS name".to_owned())),
        ] {
            check(host, Err(failed(host, why))).await;
        }
    }

    #[tokio::test]
    async fn literals_and_localhost_need_no_server() {
        check("192.0.2.9", Ok("192.0.2.9")).await;
        check("2001:db8::9", Ok("2001:db8::9")).await;
        check("LocalHost", Ok("::1 127.0.0.1")).await;
        check("www.localhost", Ok("::1 127.0.0.1")).await;
    }

    #[tokio::test]
    async fn a_name_server_is_found_by_address_or_name() {
        let resolver = DirectResolver::new(serve().await);
        for (text, expected) in [
            ("127.0.0.1:5353", Ok("127.0.0.1:5353")),
            ("127.0.0.1", Ok("127.0.0.1:53")),
            ("::1", Ok("[::1]:53")),
            ("[::1]", Ok("[::1]:53")),
            ("[::1]:5353", Ok("[::1]:5353")),
            ("four.example.com:5353", Ok("192.0.2.1:5353")),
            ("four.example.com", Ok("192.0.2.1:53")),
            ("both.example.com", Ok("[2001:db8::1]:53 192.0.2.1:53")),
            ("four.example.com:x", Err("cannot look up four.example.com:x: \"x\" is not a port")),
            ("missing.example.com:53", Err("no such host missing.example.com")),
        ] {
            let seen = server_addresses(text, &resolver).await;
            let seen = seen
                .map(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
            let seen = seen.map_err(|error| error.to_string());
            assert_eq!(seen.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }

    #[tokio::test]
    async fn a_name_server_is_asked_at_the_next_address_where_the_first_leads_nowhere() {
        let nobody = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addresses = vec![nobody.local_addr().unwrap(), serve().await];
        let resolver = DirectResolver::with_patience(addresses, Duration::from_millis(300));
        let found = resolver.addresses("four.example.com").await;
        assert_eq!(found, Ok(vec!["192.0.2.1".parse().unwrap()]));
    }

    #[tokio::test]
    async fn the_hosts_file_comes_before_the_servers() {
        let mut hosts = Hosts::default();
        hosts.read_hosts_conf("192.0.2.8 listed.example.com".as_bytes()).unwrap();
        let why = || Why::Other("this machine's configuration names no name server".to_owned());
        let inquiry = Inquiry::at(Vec::new(), INQUIRY);
        let resolver = SystemResolver { hosts, servers: Servers { resolver: Err(why()), inquiry } };
        let listed = resolver.addresses("listed.example.com").await;
        assert_eq!(listed, Ok(vec!["192.0.2.8".parse().unwrap()]));
        let unlisted = resolver.addresses("other.example.com").await;
        assert_eq!(unlisted, Err(failed("other.example.com", why())));
    }

    #[tokio::test]
    async fn reqwest_asks_the_same_server() {
        use ::reqwest::dns::{Name, Resolve as _};
        let ours = Arc::new(DirectResolver::new(serve().await));
        let theirs = crate::dns::reqwest::ReqwestResolver(ours);
        let found = theirs.resolve("both.example.com".parse::<Name>().unwrap()).await.unwrap();
        let found: Vec<_> = found.map(|address| address.to_string()).collect();
        assert_eq!(found, ["[2001:db8::1]:0", "192.0.2.1:0"]);
    }
}
