//! Lookups by the system's name servers or by given name servers. Nothing is kept: a caller that waits for a change
//! must not get yesterday's absence (RFC 2308 §5).
//!
//! A resolver that fails gives no aliases on the way: they are queried one after another, so that the error can give
//! the name that fails. These queries take 5 s at most.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::Hosts;
use hickory_resolver::proto::op::{Message, OpCode, Query, ResponseCode};
use hickory_resolver::proto::rr::domain::usage::{INVALID, LOCALHOST, ONION};
use hickory_resolver::proto::rr::rdata::CAA;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::time::timeout;

use super::reply::Reply;
use super::server::{self, Server};
use super::wire::{Recursion, SERVER_TIMEOUT, Wire};
use super::{LookupError, LookupFailure, Resolve, Silence};
use crate::model::caa::{CaaProperty, CaaRecordSet};

/// Most aliases and delegations that are followed.
pub(super) const MAX_HOPS: usize = 16;
/// Most attempts while servers answer with an error.
const ATTEMPTS: usize = 2;
/// Shortest time-out for a server that this machine's configuration may set.
const TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// Longest search for the name for which a server fails.
const ALIAS_SEARCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The bit of a CAA record's flags that RFC 8659 §4.1 calls critical.
const CRITICAL: u8 = 0x80;

/// Resolver by the system's configuration: the hosts file comes first, then the name servers.
pub struct SystemResolver {
    hosts: Hosts,
    servers: DirectResolver,
}

impl SystemResolver {
    /// Reads the system's configuration; if no servers are configured, every lookup fails with that reason.
    pub fn new() -> Self {
        let (servers, options) = server::configured();
        let wire = Wire::without_hosts(options.timeout.max(TIMEOUT_MIN));
        let servers = DirectResolver { servers, wire, attempts: options.attempts };
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
        let listed = self.in_hosts_file(&absolute(host)?);
        if listed.is_empty() { self.servers.addresses(host).await } else { Ok(listed) }
    }

    async fn behind_hosts_file(&self, host: &str) -> Option<Vec<IpAddr>> {
        if without_asking(host).is_some() || self.in_hosts_file(&absolute(host).ok()?).is_empty() {
            return None;
        }
        self.servers.addresses(host).await.ok()
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        self.servers.texts(name).await
    }

    async fn caa(&self, name: &str) -> Result<CaaRecordSet, LookupError> {
        self.servers.caa(name).await
    }
}

/// Resolver by certain name servers alone: UDP, then TCP when the answer is truncated or none comes (`--dns`).
#[derive(Debug)]
pub struct DirectResolver {
    servers: Vec<Server>,
    wire: Wire,
    /// Most attempts with all servers while they answer with errors.
    attempts: usize,
}

impl DirectResolver {
    /// Makes a resolver of the name server at that address.
    pub fn new(server: SocketAddr) -> Self {
        Self::at(vec![server])
    }

    /// Makes a resolver of the name server at one of these addresses, which are tried in order until the server answers.
    pub fn at(addresses: Vec<SocketAddr>) -> Self {
        let servers = addresses.into_iter().map(Server::Plain).collect();
        Self { servers, wire: Wire::without_hosts(SERVER_TIMEOUT), attempts: ATTEMPTS }
    }

    /// Looks up records at the end of the aliases of a name. Returns the last reply and the name that the reply is
    /// about, at which there may be no record.
    async fn records(&self, text: &str, kind: RecordType) -> Result<(Reply, Name), LookupError> {
        let failed = |why| LookupError::Failed { name: text.to_owned(), why };
        let mut chain = vec![absolute(text)?];
        let reply = self.follow(&mut chain, kind).await.map_err(failed)?;
        if !reply.is_an_answer() {
            let aliases =
                timeout(ALIAS_SEARCH_TIMEOUT, self.follow(&mut chain, RecordType::CNAME)).await;
            if let Ok(Err(circle @ LookupFailure::AliasLoop(_))) = aliases {
                return Err(failed(circle));
            }
        }
        let end = chain[chain.len() - 1].clone();
        let target = (chain.len() > 1).then(|| bare(&end));
        let name = text.to_owned();
        match (reply.code(), target) {
            (ResponseCode::NoError, _) => Ok((reply, end)),
            (ResponseCode::NXDomain, None) => Err(LookupError::NoSuchName { name }),
            // For an alias, the name at its end is missing.
            (ResponseCode::NXDomain, Some(target)) => {
                Err(LookupError::NoSuchTarget { name, target })
            }
            (_, target) => {
                Err(failed(LookupFailure::Answered { code: reply.code_and_why(), target }))
            }
        }
    }

    /// Looks up records at the end of a chain of aliases, adds the aliases of the replies, and returns the last reply.
    async fn follow(
        &self,
        chain: &mut Vec<Name>,
        kind: RecordType,
    ) -> Result<Reply, LookupFailure> {
        loop {
            let known = chain.len();
            let reply = self.ask(&chain[known - 1], kind).await?;
            while let Some(next) = reply.alias(&chain[chain.len() - 1]) {
                let is_known = chain.contains(next);
                chain.push(next.clone());
                if is_known {
                    return Err(LookupFailure::AliasLoop(chain.iter().map(bare).collect()));
                }
            }
            let end = &chain[chain.len() - 1];
            let is_there = reply.at(end).any(|record| record.record_type() == kind);
            let is_last = chain.len() == known || chain.len() > MAX_HOPS;
            if is_there || is_last || !reply.is_an_answer() {
                return Ok(reply);
            }
        }
    }

    async fn ask(&self, name: &Name, kind: RecordType) -> Result<Reply, LookupFailure> {
        if let Some(code) = reserved(name) {
            return Ok(Reply(Message::error_msg(0, OpCode::Query, code)));
        }
        let mut attempts = 1;
        loop {
            let said = self.wire.ask_any(&self.servers, (name, kind), Recursion::Desired).await;
            let nobody = || "this machine's configuration names no name server".to_owned();
            let reply =
                said.ok_or_else(|| LookupFailure::Other(nobody()))?.map_err(|why| silent(&why))?;
            if reply.is_an_answer() || attempts >= self.attempts {
                return Ok(reply);
            }
            attempts += 1;
        }
    }
}

#[async_trait]
impl Resolve for DirectResolver {
    /// Either family suffices; a server's failure on one family outranks "no address" and "no such name" of the other.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        if let Some(known) = without_asking(host) {
            return Ok(known);
        }
        let (six, four) =
            tokio::join!(self.records(host, RecordType::AAAA), self.records(host, RecordType::A));
        let mut addresses: Vec<IpAddr> = Vec::new();
        let mut fault = LookupError::NoAddress { name: host.to_owned() };
        for family in [six, four] {
            match family {
                Ok((reply, end)) => {
                    for address in reply.at(&end).filter_map(|record| record.data.ip_addr()) {
                        if !addresses.contains(&address) {
                            addresses.push(address);
                        }
                    }
                }
                Err(error) if error.tells_nothing() || !fault.tells_nothing() => fault = error,
                Err(_) => {}
            }
        }
        if addresses.is_empty() { Err(fault) } else { Ok(addresses) }
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        let (reply, end) = self.records(name, RecordType::TXT).await?;
        let texts = reply.texts(&end);
        if texts.is_empty() {
            Err(LookupError::NoText { name: name.to_owned() })
        } else {
            Ok(texts)
        }
    }

    async fn caa(&self, name: &str) -> Result<CaaRecordSet, LookupError> {
        let (reply, end) = match self.records(name, RecordType::CAA).await {
            Err(LookupError::NoSuchName { .. } | LookupError::NoSuchTarget { .. }) => {
                return Ok(CaaRecordSet::default());
            }
            found => found?,
        };
        let records = reply.at(&end).filter_map(|record| match &record.data {
            RData::CAA(record) => Some(caa_property(record)),
            _ => None,
        });
        Ok(records.collect())
    }

    fn replaces_system(&self) -> bool {
        true
    }
}

/// Finds the addresses of a name server given as `HOST:PORT`, `HOST` or an address. A host is looked up by `resolver`,
/// and all its addresses count, IPv6 first, in the order of their numbers; never an empty list.
pub async fn server_addresses(
    text: &str,
    resolver: &dyn Resolve,
) -> Result<Vec<SocketAddr>, LookupError> {
    if let Ok(Server::Plain(address)) = Server::parse(text) {
        return Ok(vec![address]);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, "53"));
    let port = port.parse().map_err(|_| LookupError::Failed {
        name: text.to_owned(),
        why: LookupFailure::Other(format!("\"{port}\" is not a port")),
    })?;
    let mut found = resolver.addresses(host).await?;
    if found.is_empty() {
        return Err(LookupError::NoAddress { name: host.to_owned() });
    }
    found.sort_by_key(|address| (address.is_ipv4(), *address));
    Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

/// Addresses of literals and of `localhost` (RFC 6761 §6.3), for which no server needs to be asked.
fn without_asking(host: &str) -> Option<Vec<IpAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(vec![address]);
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    (name == "localhost" || name.ends_with(".localhost"))
        .then(|| vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()])
}

/// Code for names that no server may be asked for (RFC 6761 §6.3 and §6.4, RFC 7686 §2); `None` for other names.
fn reserved(name: &Name) -> Option<ResponseCode> {
    if LOCALHOST.zone_of(name) {
        return Some(ResponseCode::NoError);
    }
    (INVALID.zone_of(name) || ONION.zone_of(name)).then_some(ResponseCode::NXDomain)
}

/// Reads a name as absolute, so that the lookup uses no search domains.
pub(super) fn absolute(name: &str) -> Result<Name, LookupError> {
    let mut read = Name::from_ascii(name).map_err(|_| LookupError::Failed {
        name: name.to_owned(),
        why: LookupFailure::Other("it is not a DNS name".to_owned()),
    })?;
    read.set_fqdn(true);
    Ok(read)
}

/// Writes a name as people do, in lower case and without the final dot.
fn bare(name: &Name) -> String {
    let name = name.to_lowercase().to_ascii();
    name.strip_suffix('.').unwrap_or(&name).to_owned()
}

fn silent(why: &Silence) -> LookupFailure {
    match why {
        Silence::Truncated(_) => {
            LookupFailure::Other("the answer was truncated, over TCP too".to_owned())
        }
        Silence::Unreadable => LookupFailure::Unreadable,
        Silence::TimedOut | Silence::Refused | Silence::NoRoute | Silence::Https(_) => {
            LookupFailure::Silent
        }
    }
}

/// Property in a CAA record as it comes from the wire.
fn caa_property(record: &CAA) -> CaaProperty {
    let flags = if record.issuer_critical { CRITICAL } else { 0 } | record.reserved_flags;
    CaaProperty::new(flags, &record.tag, &String::from_utf8_lossy(&record.value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hickory_resolver::proto::op::Edns;
    use hickory_resolver::proto::rr::Record;
    use hickory_resolver::proto::rr::rdata::opt::EdnsOption;
    use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, SOA};

    use super::*;
    use crate::dns::reply::EXTENDED_ERROR;
    use crate::dns::testing::{self, Transport};

    /// Answer of the test server; the first label of the name selects the fault.
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

    fn impatient(addresses: Vec<SocketAddr>) -> DirectResolver {
        let wire = Wire::without_hosts(Duration::from_millis(300));
        DirectResolver { wire, ..DirectResolver::at(addresses) }
    }

    /// Looks a host up; several addresses are separated by blanks.
    async fn check(host: &str, expected: Result<&str, LookupError>) {
        let seen = impatient(vec![serve().await])
            .addresses(host)
            .await
            .map(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        assert_eq!(seen.as_deref(), expected.as_ref().copied(), "{host}");
    }

    fn failed(name: &str, why: LookupFailure) -> LookupError {
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
        let answered = |code: &str| LookupFailure::Answered { code: code.to_owned(), target: None };
        for (host, why) in [
            ("broken.example.com", answered("SERVFAIL")),
            ("half-empty.example.com", answered("SERVFAIL")),
            ("refused.example.com", answered("REFUSED")),
            ("silent.example.com", LookupFailure::Silent),
            ("a..b", LookupFailure::Other("it is not a DNS name".to_owned())),
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
    async fn no_server_hears_of_reserved_names() {
        let resolver = impatient(Vec::new());
        let addresses = resolver.addresses("a.Invalid").await.unwrap_err();
        assert_eq!(addresses.to_string(), "no such host a.Invalid");
        let texts = resolver.texts("a.localhost").await.unwrap_err();
        assert_eq!(texts.to_string(), "a.localhost has no TXT record");
        assert_eq!(resolver.caa("localhost").await, Ok(CaaRecordSet::default()));
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
        let failing =
            |question: &Message, _| Some(testing::reply(question, ResponseCode::ServFail));
        let failing = testing::serve(failing).await;
        let addresses = vec![failing, nobody.local_addr().unwrap(), serve().await];
        let found = impatient(addresses).addresses("four.example.com").await;
        assert_eq!(found, Ok(vec!["192.0.2.1".parse().unwrap()]));
    }

    #[tokio::test]
    async fn the_hosts_file_comes_before_the_servers() {
        let mut hosts = Hosts::default();
        hosts.read_hosts_conf("192.0.2.8 listed.example.com".as_bytes()).unwrap();
        let why =
            LookupFailure::Other("this machine's configuration names no name server".to_owned());
        let resolver = SystemResolver { hosts, servers: DirectResolver::at(Vec::new()) };
        let listed = resolver.addresses("listed.example.com").await;
        assert_eq!(listed, Ok(vec!["192.0.2.8".parse().unwrap()]));
        let unlisted = resolver.addresses("other.example.com").await;
        assert_eq!(unlisted, Err(failed("other.example.com", why)));
    }

    #[tokio::test]
    async fn reqwest_asks_the_same_server() {
        use ::reqwest::dns::{Name, Resolve as _};
        let ours = Arc::new(DirectResolver::new(serve().await));
        let theirs = crate::dns::ReqwestResolver(ours);
        let found = theirs.resolve("both.example.com".parse::<Name>().unwrap()).await.unwrap();
        let found: Vec<_> = found.map(|address| address.to_string()).collect();
        assert_eq!(found, ["[2001:db8::1]:0", "192.0.2.1:0"]);
    }

    /// Where aliases lead.
    const ALIASES: [(&str, &str); 6] = [
        ("a.example.com.", "b.example.com."),
        ("b.example.com.", "a.example.com."),
        ("into.example.com.", "a.example.com."),
        ("old.example.com.", "gone.example.net."),
        ("signed.example.com.", "bogus.example.net."),
        ("www.example.com.", "web.example.net."),
    ];

    fn cname(owner: &Name) -> Option<Record> {
        let (_, target) = ALIASES.iter().find(|(alias, _)| *owner == testing::name(alias))?;
        Some(Record::from_rdata(owner.clone(), 60, RData::CNAME(CNAME(testing::name(target)))))
    }

    /// A resolver, which follows aliases for every type but their own; `in_circles` is what it says of those.
    fn aliased(question: &Message, in_circles: ResponseCode) -> Message {
        let query = &question.queries[0];
        let (kind, mut end) = (query.query_type(), query.name().clone());
        let mut chain = Vec::new();
        while let Some(alias) = cname(&end).filter(|_| chain.len() < 8) {
            if let RData::CNAME(target) = &alias.data {
                end = target.0.clone();
            }
            chain.push(alias);
            if kind == RecordType::CNAME {
                break;
            }
        }
        let code = match bare(&end).as_str() {
            _ if kind == RecordType::CNAME => ResponseCode::NoError,
            "gone.example.net" => ResponseCode::NXDomain,
            "bogus.example.net" | "dead.example.net" => ResponseCode::ServFail,
            "a.example.com" | "b.example.com" => in_circles,
            _ => ResponseCode::NoError,
        };
        let mut reply = testing::reply(question, code);
        if end == testing::name("bogus.example.net.") {
            let mut edns = Edns::new();
            let bogus = [&6u16.to_be_bytes()[..], b"words of the moment"].concat();
            edns.options_mut().insert(EdnsOption::Unknown(EXTENDED_ERROR, bogus));
            reply.set_edns(edns);
        }
        if code != ResponseCode::ServFail {
            reply.add_answers(chain);
        }
        if kind == RecordType::A && bare(&end) == "web.example.net" {
            reply.add_answer(Record::from_rdata(end, 60, RData::A(A::new(192, 0, 2, 1))));
        } else {
            let zone = testing::name("example.net.");
            let soa = SOA::new(zone.clone(), zone.clone(), 1, 60, 60, 60, 60);
            reply.add_authority(Record::from_rdata(zone, 60, RData::SOA(soa)));
        }
        reply
    }

    async fn seen(host: &str, in_circles: ResponseCode) -> String {
        let server = testing::serve(move |question, _| Some(aliased(question, in_circles))).await;
        match DirectResolver::new(server).addresses(host).await {
            Ok(found) => format!("{found:?}"),
            Err(error) => error.to_string(),
        }
    }

    async fn check_aliased(host: &str, expected: &str) {
        assert_eq!(seen(host, ResponseCode::ServFail).await, expected);
    }

    #[tokio::test]
    async fn what_the_server_says_beside_its_code_is_told() {
        check_aliased(
            "bogus.example.net",
            "cannot look up bogus.example.net: the name server answered SERVFAIL (DNSSEC Bogus)",
        )
        .await;
        check_aliased(
            "dead.example.net",
            "cannot look up dead.example.net: the name server answered SERVFAIL",
        )
        .await;
    }

    #[tokio::test]
    async fn the_name_at_the_end_of_an_alias_is_told() {
        check_aliased("www.example.com", "[192.0.2.1]").await;
        check_aliased(
            "old.example.com",
            "no such host gone.example.net, where the CNAME of old.example.com leads",
        )
        .await;
        check_aliased(
            "signed.example.com",
            "cannot look up signed.example.com: the name server answered SERVFAIL (DNSSEC Bogus) \
             for the target of its CNAME, bogus.example.net",
        )
        .await;
        check_aliased("gone.example.net", "no such host gone.example.net").await;
    }

    #[tokio::test]
    async fn aliases_that_lead_in_a_circle_are_told_whatever_the_server_makes_of_them() {
        for code in [ResponseCode::ServFail, ResponseCode::NoError] {
            for (host, chain) in [
                ("a.example.com", "a.example.com -> b.example.com -> a.example.com"),
                (
                    "into.example.com",
                    "into.example.com -> a.example.com -> b.example.com -> a.example.com",
                ),
            ] {
                let expected = format!("cannot look up {host}: CNAME loop: {chain}");
                assert_eq!(seen(host, code).await, expected);
            }
        }
    }
}
