//! Why a look-up by way of resolvers has no result: they are asked again, one alias after another, for what the first
//! answer did not tell.
//!
//! The library that asks resolvers drops extended errors and the names of aliases; asking again is worth 5 s at most.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::select_ok;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use tokio::time::timeout;

use super::reply::{Reply, mnemonic};
use super::server::Server;
use super::wire::{Recursion, Wire};
use super::zone::HOPS;
use super::{LookupError, Resolve, Why};

/// Asks resolvers why.
#[derive(Clone, Debug)]
pub(super) struct Inquiry {
    servers: Vec<Server>,
    wire: Wire,
    patience: Duration,
}

/// What the aliases at a name come to.
enum End {
    /// The last name, which is no alias; the first one where there is none.
    Name(Name),
    /// They lead back to a name before: all of them in order, the last one being that name.
    Circle(Vec<Name>),
}

impl Inquiry {
    /// Asks these all at once, and takes what comes first; a whole inquiry takes no longer than `patience`.
    pub(super) fn at(servers: Vec<Server>, patience: Duration) -> Self {
        Self { servers, wire: Wire::new(Arc::new(NoHost)), patience }
    }

    /// Why a name has no record of a type, where a resolver answered with that code; nothing where that says it all.
    pub(super) async fn why(
        &self,
        name: &Name,
        kind: RecordType,
        code: ResponseCode,
    ) -> Option<Why> {
        timeout(self.patience, self.look_for_cause(name, kind, code)).await.ok().flatten()
    }

    async fn look_for_cause(
        &self,
        name: &Name,
        kind: RecordType,
        code: ResponseCode,
    ) -> Option<Why> {
        let end = match self.follow(name).await {
            End::Circle(names) => return Some(Why::AliasLoop(names.iter().map(bare).collect())),
            End::Name(_) if code == ResponseCode::NoError => return None,
            End::Name(end) => end,
        };
        let reply = self.ask(&end, kind).await.filter(|reply| reply.code() == code);
        let purpose = reply.and_then(|reply| reply.why());
        let purpose = purpose.map(|purpose| format!(" ({purpose})")).unwrap_or_default();
        let target = (end != *name).then(|| bare(&end));
        Some(Why::Answered { code: format!("{}{purpose}", mnemonic(code)), target })
    }

    async fn follow(&self, name: &Name) -> End {
        let mut chain = vec![name.clone()];
        while chain.len() <= HOPS {
            let last = &chain[chain.len() - 1];
            let reply = self.ask(last, RecordType::CNAME).await;
            let Some(next) = reply.and_then(|reply| reply.alias(last).cloned()) else { break };
            let is_known = chain.contains(&next);
            chain.push(next);
            if is_known {
                return End::Circle(chain);
            }
        }
        End::Name(chain.pop().unwrap_or_else(|| name.clone()))
    }

    async fn ask(&self, name: &Name, kind: RecordType) -> Option<Reply> {
        let asked = self
            .servers
            .iter()
            .map(|server| Box::pin(self.wire.ask(server, name, kind, Recursion::Desired)));
        let asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            return None;
        }
        select_ok(asked).await.ok().map(|(reply, _)| reply)
    }
}

/// A name as people write it.
pub(super) fn bare(name: &Name) -> String {
    let name = name.to_lowercase().to_ascii();
    name.strip_suffix('.').unwrap_or(&name).to_owned()
}

/// Servers named by addresses need no look-ups.
#[derive(Debug)]
struct NoHost;

#[async_trait]
impl Resolve for NoHost {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        Err(LookupError::NoSuchName { name: host.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use hickory_resolver::proto::op::{Edns, Message};
    use hickory_resolver::proto::rr::rdata::opt::EdnsOption;
    use hickory_resolver::proto::rr::rdata::{A, CNAME, SOA};
    use hickory_resolver::proto::rr::{RData, Record};

    use super::*;
    use crate::dns::lookup::DirectResolver;
    use crate::dns::{extended_error, testing};

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
    fn answer(question: &Message, in_circles: ResponseCode) -> Message {
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
            edns.options_mut().insert(EdnsOption::Unknown(extended_error::OPTION, bogus));
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
        let server = testing::serve(move |question, _| Some(answer(question, in_circles))).await;
        match DirectResolver::new(server).addresses(host).await {
            Ok(found) => format!("{found:?}"),
            Err(error) => error.to_string(),
        }
    }

    async fn check(host: &str, expected: &str) {
        assert_eq!(seen(host, ResponseCode::ServFail).await, expected);
    }

    #[tokio::test]
    async fn what_the_server_says_beside_its_code_is_told() {
        check(
            "bogus.example.net",
            "cannot look up bogus.example.net: the name server answered SERVFAIL (DNSSEC Bogus)",
        )
        .await;
        check(
            "dead.example.net",
            "cannot look up dead.example.net: the name server answered SERVFAIL",
        )
        .await;
    }

    #[tokio::test]
    async fn the_name_at_the_end_of_an_alias_is_told() {
        check("www.example.com", "[192.0.2.1]").await;
        check(
            "old.example.com",
            "no such host gone.example.net, where the CNAME of old.example.com leads",
        )
        .await;
        check(
            "signed.example.com",
            "cannot look up signed.example.com: the name server answered SERVFAIL (DNSSEC Bogus) \
             for the target of its CNAME, bogus.example.net",
        )
        .await;
        check("gone.example.net", "no such host gone.example.net").await;
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
