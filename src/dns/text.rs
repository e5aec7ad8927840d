//! Answers of name servers for a TXT record: of every server of its zone, or of every resolver, all at once.

use futures_util::future::join_all;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};

use super::lookup::{MAX_HOPS, absolute};
use super::reply::Reply;
use super::server::{Authority, Server};
use super::wire::Recursion;
use super::zone::{Trust, Zones, follow};
use super::{LookupError, Silence};
use crate::model::cause::Symptom;
use crate::model::observation::{NameServer, NameServerAnswer};

/// Answers of all servers for one TXT record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// Absolute names that were asked for, in order: aliases lead from each name to the next.
    pub chain: Vec<String>,
    /// Absolute name of the last name's zone; empty if resolvers were asked.
    pub zone: String,
    /// Servers that were asked, by name, then address, with their answers.
    pub servers: Vec<NameServer>,
}

impl Zones {
    /// Asks all servers for the texts at a name, and if all agree on an alias, for the texts at its target.
    ///
    /// # Errors
    /// Fails if no server can be asked (no zone, no servers, aliases in a circle), or the lookup takes longer than 30 s.
    pub async fn texts(&self, name: &str) -> Result<Answers, LookupError> {
        self.in_time(name, self.look_for_texts(name)).await
    }

    async fn look_for_texts(&self, name: &str) -> Result<Answers, LookupError> {
        let mut chain = vec![absolute(name)?];
        loop {
            let name = &chain[chain.len() - 1];
            let (zone, servers) = match self.trust {
                Trust::Authoritative => self.ask_zone(name).await?,
                Trust::RecursiveOnly => (String::new(), self.ask_resolvers(name).await),
            };
            let Some(next) = agreed_alias(&servers) else {
                let chain = chain.iter().map(Name::to_ascii).collect();
                return Ok(Answers { chain, zone, servers });
            };
            let next = absolute(next)?;
            follow(&mut chain, next)?;
        }
    }

    async fn ask_zone(&self, name: &Name) -> Result<(String, Vec<NameServer>), LookupError> {
        let unknown = |why| LookupError::UnknownZone { name: name.to_ascii(), why: Box::new(why) };
        let apex = self.apex_above(name).await.map_err(unknown)?;
        let zone = self.descend(apex, name).await?;
        let asked = zone.servers.iter().map(|server| self.ask_server(server, &zone.name, name));
        let servers = join_all(asked).await.concat();
        Ok((zone.name.to_ascii(), servers))
    }

    /// Asks a server of the zone at each of its addresses.
    async fn ask_server(&self, server: &Authority, zone: &Name, name: &Name) -> Vec<NameServer> {
        let server_name = server.name.to_ascii();
        if server.addresses.is_empty() {
            let said = NameServerAnswer::Nothing("has no address".to_owned());
            return vec![NameServer { name: server_name, address: None, said, ttl: None }];
        }
        let asked = self.addresses(server).map(|address| {
            let server_name = server_name.clone();
            async move {
                let server = Server::Plain(address);
                let reply =
                    self.wire.ask(&server, name, RecordType::TXT, Recursion::Unwanted).await;
                let ttl = ttl(&reply);
                let said = read_reply(reply, name, Some(zone));
                NameServer { name: server_name, address: Some(address), said, ttl }
            }
        });
        join_all(asked).await
    }

    async fn ask_resolvers(&self, name: &Name) -> Vec<NameServer> {
        let asked = self.resolvers.iter().map(|resolver| async move {
            let reply = self.wire.ask(resolver, name, RecordType::TXT, Recursion::Desired).await;
            let address = match resolver {
                Server::Plain(address) => Some(*address),
                Server::Https(_) => None,
            };
            let (name_of_resolver, ttl) = (resolver.to_string(), ttl(&reply));
            NameServer { name: name_of_resolver, address, said: read_reply(reply, name, None), ttl }
        });
        join_all(asked).await
    }
}

/// Reads a reply. A resolver (without `zone`) follows aliases itself, and the texts at their end count; a server of the
/// zone answers only for the name itself.
fn read_reply(reply: Result<Reply, Silence>, name: &Name, zone: Option<&Name>) -> NameServerAnswer {
    let reply = match reply {
        Ok(reply) => reply,
        Err(Silence::NoRoute) => return NameServerAnswer::NoRoute,
        Err(why) if why.symptom() == Some(Symptom::ServerUnreadable) => {
            return NameServerAnswer::Unreadable(why.to_string());
        }
        Err(why) => return NameServerAnswer::Nothing(why.to_string()),
    };
    let mut end = name;
    if let (Some(_), Some(target)) = (zone, reply.alias(name)) {
        return NameServerAnswer::Alias(target.to_lowercase().to_ascii());
    }
    for _ in 0..MAX_HOPS {
        let Some(target) = reply.alias(end) else { break };
        end = target;
    }
    let texts = reply.texts(end);
    match reply.code() {
        ResponseCode::NoError if !texts.is_empty() => NameServerAnswer::Texts(texts),
        // The code is that of the alias's end (RFC 6604 §2.1).
        ResponseCode::NoError | ResponseCode::NXDomain if end != name => {
            NameServerAnswer::Alias(end.to_lowercase().to_ascii())
        }
        ResponseCode::NoError => match zone.and_then(|zone| reply.referral(zone, name)) {
            Some((below, _)) => NameServerAnswer::Referral(below.to_ascii()),
            None => NameServerAnswer::NoText,
        },
        ResponseCode::NXDomain => NameServerAnswer::NoName,
        _ => NameServerAnswer::Code(reply.code_and_why()),
    }
}

fn ttl(reply: &Result<Reply, Silence>) -> Option<u32> {
    reply.as_ref().ok().and_then(Reply::ttl_of_texts)
}

/// Returns the alias on which all servers with an answer agree; `None` if any of them has no alias, or another.
fn agreed_alias(servers: &[NameServer]) -> Option<&str> {
    let mut agreed = None;
    for server in servers {
        match &server.said {
            NameServerAnswer::Code(_)
            | NameServerAnswer::Nothing(_)
            | NameServerAnswer::Unreadable(_)
            | NameServerAnswer::NoRoute => {}
            NameServerAnswer::Alias(target) if agreed.is_none_or(|known| known == target) => {
                agreed = Some(target.as_str());
            }
            NameServerAnswer::Alias(_)
            | NameServerAnswer::Texts(_)
            | NameServerAnswer::NoText
            | NameServerAnswer::NoName
            | NameServerAnswer::Referral(_) => {
                return None;
            }
        }
    }
    agreed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hickory_resolver::proto::op::{Message, ResponseCode};
    use hickory_resolver::proto::rr::rdata::CNAME;
    use hickory_resolver::proto::rr::{RData, Record, RecordType};

    use super::*;
    use crate::dns::FindZone as _;
    use crate::dns::testing::{self, NoHosts, World, Zone};
    use crate::dns::wire::Wire;

    const RECORD: &str = "_acme-challenge.www.example.com.";
    const NS1: &str = "127.0.0.2";
    const NS2: &str = "127.0.0.3";

    /// `example.com.` with two servers and what `change` adds.
    fn example(change: impl FnOnce(Zone) -> Zone) -> Zone {
        let zone = Zone::new("example.com.")
            .ns("example.com.", "ns1.example.com.")
            .ns("example.com.", "ns2.example.com.")
            .address("ns1.example.com.", NS1.parse().unwrap())
            .address("ns2.example.com.", NS2.parse().unwrap());
        change(zone)
    }

    /// Zones above, as a resolver knows them.
    fn above() -> Vec<Zone> {
        let com = Zone::new("com.")
            .ns("com.", "a.com.")
            .address("a.com.", "127.0.0.9".parse().unwrap())
            .ns("example.com.", "ns1.example.com.")
            .ns("example.com.", "ns2.example.com.");
        vec![Zone::new("."), com]
    }

    fn known(zones: impl IntoIterator<Item = Zone>) -> Vec<Zone> {
        above().into_iter().chain(zones).collect()
    }

    #[tokio::test]
    async fn a_zone_is_found_by_its_servers_where_a_resolver_filters_soa_records() {
        for code in [ResponseCode::NoError, ResponseCode::ServFail, ResponseCode::NotImp] {
            let own = example(text("value"));
            let known = known([own.clone()]);
            let known = known.into_iter().map(|zone| zone.saying(RecordType::SOA, code)).collect();
            let world = World::start(known, &[(NS1, vec![own])]).await;
            for trust in [Trust::Authoritative, Trust::RecursiveOnly] {
                let zones = world.zones(trust);
                assert_eq!(zones.zone_of(RECORD).await, Ok("example.com.".to_owned()), "{code}");
                let fault = zones.soa_fault(RECORD).await.unwrap();
                assert!(fault.to_string().contains("SOA record"), "{fault}");
            }
        }
        let own = example(text("value"));
        let world = World::start(known([own.clone()]), &[(NS1, vec![own])]).await;
        assert_eq!(world.zones(Trust::Authoritative).soa_fault(RECORD).await, None);
    }

    #[tokio::test]
    async fn an_alias_counts_although_its_end_is_not_there() {
        const TARGET: &str = "answers.example.net.";
        let answer = |question: &Message, _| {
            let owner = question.queries[0].name().clone();
            let mut reply = testing::reply(question, ResponseCode::NXDomain);
            if owner == testing::name(RECORD) {
                let alias = RData::CNAME(CNAME(testing::name(TARGET)));
                reply.add_answers([Record::from_rdata(owner, 60, alias)]);
            }
            Some(reply)
        };
        let resolvers = vec![Server::Plain(testing::serve(answer).await)];
        let zones = Zones::new(resolvers, Trust::RecursiveOnly, Arc::new(NoHosts));
        assert_eq!(zones.canonical(RECORD).await, Ok(TARGET.to_owned()));
        let answers = zones.texts(RECORD).await.unwrap();
        assert_eq!(answers.chain, [RECORD, TARGET]);
        assert_eq!(answers.servers[0].said, NameServerAnswer::NoName);
    }

    fn text(value: &'static str) -> impl Fn(Zone) -> Zone {
        move |zone| zone.txt(RECORD, &[value])
    }

    async fn seen(world: &World, trust: Trust) -> String {
        match world.zones(trust).texts(RECORD).await {
            Err(error) => error.to_string(),
            Ok(answers) => {
                let said = answers.servers.iter().map(|server| {
                    let place = server.address.map(|address| address.ip().to_string());
                    format!("{} {} {:?}", server.name, place.unwrap_or_default(), server.said)
                });
                let head = format!("{} in \"{}\"", answers.chain.join(" "), answers.zone);
                [head].into_iter().chain(said).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Checks the outcome by way of the zone's own servers.
    async fn check(world: &World, expected: &[&str]) {
        assert_eq!(seen(world, Trust::Authoritative).await, expected.join("\n"));
    }

    #[tokio::test]
    async fn every_server_of_the_zone_is_asked_and_strings_are_joined() {
        let split = |zone: Zone| zone.txt(RECORD, &["one ", "text"]).txt(RECORD, &["another"]);
        let servers = [(NS1, vec![example(split)]), (NS2, vec![example(text("other"))])];
        let world = World::start(known([example(|zone| zone)]), &servers).await;
        check(
            &world,
            &[
                "_acme-challenge.www.example.com. in \"example.com.\"",
                "ns1.example.com. 127.0.0.2 Texts([\"another\", \"one text\"])",
                "ns2.example.com. 127.0.0.3 Texts([\"other\"])",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn a_secondary_that_lags_behind_is_seen_until_it_has_caught_up() {
        let servers = [(NS1, vec![example(text("text"))]), (NS2, vec![example(|zone| zone)])];
        let world = World::start(known([example(|zone| zone)]), &servers).await;
        let head = "_acme-challenge.www.example.com. in \"example.com.\"";
        let first = "ns1.example.com. 127.0.0.2 Texts([\"text\"])";
        check(&world, &[head, first, "ns2.example.com. 127.0.0.3 NoName"]).await;
        world.servers[1].replace(vec![example(|zone| zone.txt(&format!("x.{RECORD}"), &["x"]))]);
        check(&world, &[head, first, "ns2.example.com. 127.0.0.3 NoText"]).await;
        world.servers[1].replace(vec![example(text("text"))]);
        check(&world, &[head, first, "ns2.example.com. 127.0.0.3 Texts([\"text\"])"]).await;
    }

    #[tokio::test]
    async fn a_zone_with_many_servers_and_addresses_is_asked_at_some_of_them() {
        let mut zone = Zone::new("example.com.");
        for server in 0..40 {
            let name = format!("ns{server}.example.com.");
            zone = zone.ns("example.com.", &name);
            for address in 0..12 {
                zone = zone.address(&name, [127, 0, 1 + server, address + 2].into());
            }
        }
        // Nobody listens there.
        let world = World::start(known([zone]), &[]).await;
        let answers = world.zones(Trust::Authoritative).texts(RECORD).await.unwrap();
        assert_eq!(answers.servers.len(), 16 * 8);
    }

    #[tokio::test]
    async fn a_look_has_a_deadline() {
        let silent = vec![Server::Plain(testing::serve(|_, _| None).await)];
        let zones = Zones::new(silent, Trust::Authoritative, Arc::new(NoHosts));
        let zones = Zones { patience: Duration::from_millis(100), ..zones };
        let late = format!("cannot look up {RECORD}: its name servers take longer than 0 s");
        assert_eq!(zones.texts(RECORD).await.unwrap_err().to_string(), late);
        assert_eq!(zones.canonical(RECORD).await.unwrap_err().to_string(), late);
        let zone = crate::dns::FindZone::zone_of(&zones, RECORD).await;
        assert_eq!(zone.unwrap_err().to_string(), late);
    }

    #[tokio::test]
    async fn resolvers_never_hear_the_name_of_the_record() {
        let servers = [(NS1, vec![example(|zone| zone)]), (NS2, vec![example(|zone| zone)])];
        let world = World::start(known([example(|zone| zone)]), &servers).await;
        // Whoever waits too short asks again by TCP.
        let patient = |wire: Wire| wire.with_patience(Duration::from_mins(1));
        let zones = world.zones(Trust::Authoritative).on(patient, world.address.port());
        for _ in 0..2 {
            zones.texts(RECORD).await.unwrap();
            assert_eq!(zones.canonical(RECORD).await.unwrap(), RECORD);
            assert_eq!(
                crate::dns::FindZone::zone_of(&zones, RECORD).await.unwrap(),
                "example.com."
            );
        }
        let mut asked = world.resolver.questions();
        asked.sort();
        // Each once: what they say holds for a while.
        assert_eq!(
            asked,
            [
                "example.com. NS",
                "ns1.example.com. A",
                "ns1.example.com. AAAA",
                "ns2.example.com. A",
                "ns2.example.com. AAAA",
                "www.example.com. SOA",
            ]
        );
    }

    #[tokio::test]
    async fn delegations_are_followed_down_to_the_record() {
        let cut = |zone: Zone| {
            zone.ns(RECORD, "acme.example.org.").txt(&format!("x.{RECORD}"), &["hidden"])
        };
        let below = Zone::new(RECORD).ns(RECORD, "acme.example.org.").txt(RECORD, &["text"]);
        let org =
            Zone::new("example.org.").address("acme.example.org.", "127.0.0.4".parse().unwrap());
        let servers = [
            (NS1, vec![example(cut)]),
            (NS2, vec![example(cut)]),
            ("127.0.0.4", vec![below.clone()]),
        ];
        let world = World::start(known([example(cut), below, org]), &servers).await;
        let head = format!("{RECORD} in \"{RECORD}\"");
        check(&world, &[&head, "acme.example.org. 127.0.0.4 Texts([\"text\"])"]).await;
        let zones = world.zones(Trust::Authoritative);
        assert_eq!(crate::dns::FindZone::zone_of(&zones, RECORD).await.unwrap(), RECORD);
    }

    #[tokio::test]
    async fn a_delegation_to_a_server_that_knows_nothing_of_it_shows_that_server() {
        let cut = |zone: Zone| {
            zone.ns("www.example.com.", "lame.example.com.")
                .address("lame.example.com.", "127.0.0.4".parse().unwrap())
        };
        let servers = [(NS1, vec![example(cut)]), (NS2, vec![example(cut)]), ("127.0.0.4", vec![])];
        let world = World::start(known([example(cut)]), &servers).await;
        check(
            &world,
            &[
                "_acme-challenge.www.example.com. in \"www.example.com.\"",
                "lame.example.com. 127.0.0.4 Code(\"REFUSED\")",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn a_server_of_parent_and_child_answers_for_the_child() {
        let child = Zone::new("www.example.com.")
            .ns("www.example.com.", "ns2.example.com.")
            .txt(RECORD, &["text"]);
        let parent = example(|zone| zone.ns("www.example.com.", "ns2.example.com."));
        let both = vec![parent.clone(), child.clone()];
        let servers = [(NS1, vec![parent]), (NS2, both)];
        // The resolver is not to tell of the child.
        let world = World::start(known([example(|zone| zone)]), &servers).await;
        world.resolver.replace(known([example(|zone| zone), child]));
        check(
            &world,
            &[
                "_acme-challenge.www.example.com. in \"www.example.com.\"",
                "ns2.example.com. 127.0.0.3 Texts([\"text\"])",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn soa_records_that_a_resolver_withholds_are_not_missed() {
        let withheld = example(|zone| zone.saying(RecordType::SOA, ResponseCode::NoError));
        let mut servers =
            vec![(NS1, vec![example(text("text"))]), (NS2, vec![example(text("text"))])];
        servers.push(("127.0.0.9", above()));
        let world = World::start(known([withheld]), &servers).await;
        check(
            &world,
            &[
                "_acme-challenge.www.example.com. in \"example.com.\"",
                "ns1.example.com. 127.0.0.2 Texts([\"text\"])",
                "ns2.example.com. 127.0.0.3 Texts([\"text\"])",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn a_resolver_that_refuses_soa_questions_is_named_with_its_code() {
        let refused = example(|zone| {
            let zone = zone.saying(RecordType::SOA, ResponseCode::Refused);
            zone.saying(RecordType::NS, ResponseCode::Refused)
        });
        let world = World::start(known([refused]), &[]).await;
        let expected = format!(
            "Could not determine the zone for \"{RECORD}\": When querying the SOA record for the domain \
             'www.example.com.' using nameservers [{}], rcode was expected to be 'NOERROR' or 'NXDOMAIN', \
             but got 'REFUSED'",
            world.address
        );
        check(&world, &[&expected]).await;
        world.resolver.replace(vec![Zone::new(".")]);
        let expected = format!(
            "Could not determine the zone for \"{RECORD}\": Could not find the SOA record in the DNS tree \
             for the domain '{RECORD}' using nameservers [{}]",
            world.address
        );
        check(&world, &[&expected]).await;
    }

    #[tokio::test]
    async fn a_zone_without_ns_records_has_nobody_to_ask() {
        let world = World::start(known([Zone::new("example.com.")]), &[]).await;
        let expected = format!(
            "Could not determine authoritative nameservers for \"{RECORD}\": {} has no NS record of the \
             zone example.com.",
            world.address
        );
        check(&world, &[&expected]).await;
    }

    #[tokio::test]
    async fn aliases_lead_to_the_servers_of_another_zone() {
        let alias = |zone: Zone| zone.cname(RECORD, "www.example.org.");
        let org = |zone: Zone| {
            zone.ns("example.org.", "ns.example.org.")
                .address("ns.example.org.", "127.0.0.4".parse().unwrap())
                .txt("www.example.org.", &["text"])
        };
        let org = org(Zone::new("example.org."));
        let servers = [
            (NS1, vec![example(alias)]),
            (NS2, vec![example(alias)]),
            ("127.0.0.4", vec![org.clone()]),
        ];
        let world = World::start(known([example(alias), org]), &servers).await;
        check(
            &world,
            &[
                "_acme-challenge.www.example.com. www.example.org. in \"example.org.\"",
                "ns.example.org. 127.0.0.4 Texts([\"text\"])",
            ],
        )
        .await;
        let zones = world.zones(Trust::Authoritative);
        assert_eq!(zones.canonical(RECORD).await.unwrap(), "www.example.org.");
        // A server that knows the alias and one that has the text beside it do not agree.
        world.servers[1].replace(vec![example(text("text"))]);
        check(
            &world,
            &[
                "_acme-challenge.www.example.com. in \"example.com.\"",
                "ns1.example.com. 127.0.0.2 Alias(\"www.example.org.\")",
                "ns2.example.com. 127.0.0.3 Texts([\"text\"])",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn aliases_in_a_circle_are_told_in_cert_managers_words() {
        let circle = |zone: Zone| {
            zone.cname(RECORD, "a.example.com.")
                .cname("a.example.com.", "_acme-challenge.www.example.com.")
        };
        let servers = [(NS1, vec![example(circle)]), (NS2, vec![example(circle)])];
        let world = World::start(known([example(circle)]), &servers).await;
        let expected = "Found recursive CNAME record to \"_acme-challenge.www.example.com.\" \
                        when looking up \"a.example.com.\"";
        check(&world, &[expected]).await;
        for trust in [Trust::Authoritative, Trust::RecursiveOnly] {
            let error = world.zones(trust).canonical(RECORD).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_seen_beside_one_that_answers_at_another_address() {
        let twice = |zone: Zone| {
            zone.address("ns1.example.com.", "::1".parse().unwrap())
                .address("ns2.example.com.", "127.0.0.77".parse().unwrap())
        };
        let servers = [("::1", vec![example(text("text"))]), (NS2, vec![example(text("text"))])];
        let world = World::start(known([example(twice)]), &servers).await;
        check(
            &world,
            &[
                "_acme-challenge.www.example.com. in \"example.com.\"",
                "ns1.example.com. 127.0.0.2 Nothing(\"refuses the connection\")",
                "ns1.example.com. ::1 Texts([\"text\"])",
                "ns2.example.com. 127.0.0.3 Texts([\"text\"])",
                "ns2.example.com. 127.0.0.77 Nothing(\"refuses the connection\")",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn in_recursive_only_mode_the_resolvers_are_asked_and_nobody_else() {
        let alias =
            |zone: Zone| zone.cname(RECORD, "a.example.com.").txt("a.example.com.", &["text"]);
        let world = World::start(known([example(alias)]), &[(NS1, vec![])]).await;
        let expected = format!(
            "_acme-challenge.www.example.com. a.example.com. in \"\"\n{0} 127.0.0.1 Texts([\"text\"])",
            world.address
        );
        assert_eq!(seen(&world, Trust::RecursiveOnly).await, expected);
        assert!(world.servers[0].questions().is_empty());
        let zones = world.zones(Trust::Authoritative).for_solver(&[world.address.to_string()]);
        assert_eq!(zones.unwrap().texts(RECORD).await.unwrap().zone, "");
        let why = world.zones(Trust::Authoritative).for_solver(&["dns".to_owned()]).unwrap_err();
        assert_eq!(why, "\"dns\" is neither ADDR:PORT nor an https:// URL");
    }
}
