//! Zones: the zone that a name belongs to, the servers of a zone, and the ends of aliases.
//!
//! A resolver that is asked for a name too early keeps its absence for minutes, whatever type was asked for (RFC
//! 2308 §5). Hence the name of a record itself is asked of the zone's own servers; resolvers are asked only for names
//! above it, unless there are no other servers to ask.
//!
//! A zone is searched from the parent of the record's name downwards, by the zones' own servers. The SOA record of a
//! negative answer names the zone at once. If a resolver filters SOA records (dnsmasq with `filterwin2k`), the answer
//! to a question for NS does. A lookup takes 30 s at most, since a zone may be hostile.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use tokio::time::timeout;

use super::lookup::{MAX_HOPS, absolute};
use super::open_questions::OpenQuestions;
use super::remembered::ZoneCache;
use super::reply::{Reply, mnemonic};
use super::server::{Authority, PORT, Server};
use super::wire::{Recursion, Wire};
use super::{FindZone, LookupError, LookupFailure, Resolve, Silence};

/// Longest time for a whole lookup, however many servers there are and wherever they lead.
const WHOLE_LOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// Servers that are asked for records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Every server of the zone itself.
    Authoritative,
    /// Only the resolvers (`--dns01-recursive-nameservers-only`): other servers cannot be reached from here.
    RecursiveOnly,
}

/// Shortest time for which the zone of a name is kept, if the zone's own servers are asked afterwards to confirm it.
/// BIND gives the absence of an SOA record no TTL (`zero-no-soa-ttl`), and every step looks for the zone anew.
const ZONE_KEPT_MIN: Duration = Duration::from_secs(10);

/// A zone and its servers.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    /// Absolute name.
    pub(super) name: Name,
    pub(super) servers: Vec<Authority>,
    /// Whether a server of the zone has confirmed that the name is in the zone.
    is_certain: bool,
}

impl Zone {
    /// Makes a zone whose own servers are not asked.
    pub(super) fn without_servers(name: Name) -> Self {
        Self { name, servers: Vec::new(), is_certain: false }
    }
}

/// Finds zones and their servers by way of resolvers.
#[derive(Clone, Debug)]
pub struct Zones {
    pub(super) wire: Wire,
    /// Resolvers, asked in order until one has an answer.
    pub(super) resolvers: Vec<Server>,
    pub(super) trust: Trust,
    /// Port of the zones' own servers.
    pub(super) port: u16,
    /// Resolver of the servers' addresses that `resolvers` do not know.
    pub(super) hosts: Arc<dyn Resolve>,
    /// Longest time for a whole lookup.
    pub(super) patience: Duration,
    /// Whether zones are found by their SOA records alone, as cert-manager finds them.
    pub(super) by_soa_alone: bool,
    pub(super) remembered: ZoneCache,
    pub(super) asked: OpenQuestions,
}

impl Zones {
    /// Makes lookups by these resolvers; servers' addresses that they do not know are looked up by `hosts`.
    pub fn new(resolvers: Vec<Server>, trust: Trust, hosts: Arc<dyn Resolve>) -> Self {
        let wire = Wire::new(Arc::clone(&hosts));
        let (port, patience) = (PORT, WHOLE_LOOK_TIMEOUT);
        let (remembered, asked) = Default::default();
        let by_soa_alone = false;
        Self { wire, resolvers, trust, port, hosts, patience, by_soa_alone, remembered, asked }
    }

    /// Resolvers, which are asked first.
    pub fn resolvers(&self) -> &[Server] {
        &self.resolvers
    }

    /// Returns why the zone of a name is not found by SOA records alone, as cert-manager looks for it, if a resolver
    /// answers without naming the zone.
    pub async fn soa_fault(&self, name: &str) -> Option<LookupError> {
        let zones = self.by_soa_alone();
        let absolute = absolute(name).ok()?;
        let found = zones.in_time(name, zones.apex_above(&absolute)).await;
        found.err().filter(|error| {
            matches!(error, LookupError::NoZone { .. } | LookupError::UnexpectedCode { .. })
        })
    }

    /// Makes lookups that find zones as cert-manager does, by SOA records alone.
    pub(super) fn by_soa_alone(&self) -> Self {
        Self { by_soa_alone: true, remembered: ZoneCache::default(), ..self.clone() }
    }

    /// Breaks off a lookup that takes too long: a zone may have many servers, and lead to another again and again.
    pub(super) async fn in_time<T>(
        &self,
        name: &str,
        look: impl Future<Output = Result<T, LookupError>>,
    ) -> Result<T, LookupError> {
        let late = || LookupError::Failed {
            name: name.to_owned(),
            why: LookupFailure::Slow { seconds: self.patience.as_secs() },
        };
        timeout(self.patience, look).await.unwrap_or_else(|_| Err(late()))
    }

    /// Sets a wire, and another port for the zones' servers.
    #[cfg(test)]
    pub(crate) fn on(self, wire: impl FnOnce(Wire) -> Wire, port: u16) -> Self {
        Self { wire: wire(self.wire), port, ..self }
    }

    /// Makes lookups by the resolvers that a solver names; then the zones' own servers are not asked, as with
    /// cert-manager. Without named resolvers nothing changes.
    ///
    /// # Errors
    /// Fails if the address of a resolver cannot be read.
    pub fn for_solver(&self, nameservers: &[String]) -> Result<Self, String> {
        if nameservers.is_empty() {
            return Ok(self.clone());
        }
        let resolvers = nameservers.iter().map(|text| Server::parse(text));
        Ok(Self {
            resolvers: resolvers.collect::<Result<_, _>>()?,
            trust: Trust::RecursiveOnly,
            remembered: ZoneCache::default(),
            asked: OpenQuestions::default(),
            ..self.clone()
        })
    }

    /// Returns the end of the aliases of a name (`cnameStrategy: Follow`): the name itself if it is no alias.
    ///
    /// # Errors
    /// Fails if the aliases lead in a circle, or no server answers.
    pub async fn canonical(&self, name: &str) -> Result<String, LookupError> {
        self.in_time(name, self.follow_aliases(name)).await
    }

    async fn follow_aliases(&self, name: &str) -> Result<String, LookupError> {
        let mut chain = vec![absolute(name)?];
        while let Some(next) = self.alias(&chain[chain.len() - 1]).await? {
            follow(&mut chain, next)?;
        }
        Ok(chain[chain.len() - 1].to_ascii())
    }

    /// Returns the target of the alias at a name, if the name is an alias.
    async fn alias(&self, name: &Name) -> Result<Option<Name>, LookupError> {
        let question = (name, RecordType::CNAME);
        let known = match self.trust {
            Trust::RecursiveOnly => None,
            Trust::Authoritative => {
                let zone = self.descend(self.apex_above(name).await?, name).await?;
                self.ask_one(&zone.servers, question).await
            }
        };
        let reply = match known {
            Some(reply) => reply,
            None => self.recurse(question).await?,
        };
        // The code does not matter: it is that of the alias's end (RFC 2308 §2.1, RFC 6604 §2.1).
        Ok(reply.leads_to(name))
    }

    async fn zone(&self, name: &Name) -> Result<Name, LookupError> {
        let zone = self.apex_above(name).await?;
        if self.trust == Trust::Authoritative
            && let Ok(found) = self.descend(zone.clone(), name).await
            && found.is_certain
        {
            return Ok(found.name);
        }
        // A resolver that filters SOA records has named the zone by its servers.
        let Ok(reply) = self.recurse((name, RecordType::SOA)).await else { return Ok(zone) };
        Ok(if reply.zone().is_some_and(|(owner, _)| owner == name) { name.clone() } else { zone })
    }

    /// Finds the zone that the resolvers know above a name; for a name at the top, the name's own zone.
    pub(super) async fn apex_above(&self, name: &Name) -> Result<Name, LookupError> {
        let above = name.base_name();
        if above.is_root() {
            return self.walk(name, name).await;
        }
        match self.walk(name, &above).await {
            // The name itself may be all that is known here.
            Err(LookupError::NoZone { .. }) => self.walk(name, name).await,
            found => found,
        }
    }

    /// Asks a zone's own servers whether the name is in a zone further down, and descends to that zone.
    pub(super) async fn descend(&self, zone: Name, name: &Name) -> Result<Zone, LookupError> {
        let servers = self.servers(&zone, name).await?;
        let mut zone = Zone { name: zone, servers, is_certain: false };
        for _ in 0..MAX_HOPS {
            let Some(reply) = self.ask_one(&zone.servers, (name, RecordType::SOA)).await else {
                return Ok(zone);
            };
            let (below, servers) = match reply.referral(&zone.name, name) {
                Some((below, listed)) => {
                    // If the resolvers find no servers, the servers of the delegation have to do, and show the fault.
                    let known = self.servers(&below, name).await;
                    let servers = match known {
                        Ok(servers) => servers,
                        Err(_) => self.listed_in(&reply, listed).await,
                    };
                    (below, servers)
                }
                None => match nearest(&reply, &zone.name, name) {
                    Some(below) => (below.clone(), self.servers(below, name).await?),
                    None => return Ok(Zone { is_certain: true, ..zone }),
                },
            };
            zone = Zone { name: below, servers, is_certain: false };
        }
        Ok(zone)
    }

    /// Walks towards the root, from `start` to the top-level domain, by one resolver after another; the last error
    /// counts (behaviour reference 7.2). `name` is the name whose zone is wanted.
    async fn walk(&self, name: &Name, start: &Name) -> Result<Name, LookupError> {
        let mut fault = self.no_zone(name);
        for resolver in &self.resolvers {
            match self.walk_by(resolver, name, start).await {
                Ok(zone) => return Ok(zone),
                Err(error) => fault = error,
            }
        }
        Err(fault)
    }

    async fn walk_by(
        &self,
        resolver: &Server,
        name: &Name,
        start: &Name,
    ) -> Result<Name, LookupError> {
        let mut domain = start.clone();
        while !domain.is_root() {
            if let Some(zone) = self.remembered.zone(&domain) {
                return Ok(zone);
            }
            let asked = self.ask_resolver(resolver, (&domain, RecordType::SOA)).await;
            let reply = asked.map_err(|why| silent(&domain, resolver, &why))?;
            let mut by_servers = None;
            if reply.says_nothing() && !self.by_soa_alone {
                let asked = self.ask_resolver(resolver, (&domain, RecordType::NS)).await;
                by_servers = asked.ok().filter(Reply::is_an_answer);
            }
            if !reply.is_an_answer() && by_servers.is_none() {
                return Err(self.unexpected(&domain, resolver, &reply));
            }
            let found = zone_named(&reply, &domain);
            if let Some((zone, ttl)) =
                found.or_else(|| zone_with_servers(by_servers.as_ref()?, &domain))
            {
                let least = match self.trust {
                    Trust::Authoritative => ZONE_KEPT_MIN,
                    Trust::RecursiveOnly => Duration::ZERO,
                };
                self.remembered.keep_zone(&domain, zone, ttl.max(least));
                return Ok(zone.clone());
            }
            domain = domain.base_name();
        }
        Err(self.no_zone(name))
    }

    /// Asks a resolver, or awaits the answer to an equal question that is on its way.
    async fn ask_resolver(
        &self,
        resolver: &Server,
        (name, kind): (&Name, RecordType),
    ) -> Result<Reply, Silence> {
        let question = (resolver.clone(), name.clone(), kind);
        let ask = || {
            let (wire, (server, name, kind)) = (self.wire.clone(), question.clone());
            async move { wire.ask(&server, &name, kind, Recursion::Desired).await }
        };
        self.asked.join(question.clone(), ask).await
    }

    /// Asks one resolver after another until one has an answer; the last error counts.
    pub(super) async fn recurse(
        &self,
        (name, kind): (&Name, RecordType),
    ) -> Result<Reply, LookupError> {
        let mut fault = self.no_zone(name);
        for resolver in &self.resolvers {
            fault = match self.ask_resolver(resolver, (name, kind)).await {
                Ok(reply) if reply.is_an_answer() => return Ok(reply),
                Ok(reply) => LookupError::Failed {
                    name: name.to_ascii(),
                    why: LookupFailure::Other(format!("{resolver} says {}", reply.code_and_why())),
                },
                Err(why) => silent(name, resolver, &why),
            }
        }
        Err(fault)
    }

    /// Makes the error for a resolver's reply on the way that is no answer.
    fn unexpected(&self, domain: &Name, resolver: &Server, reply: &Reply) -> LookupError {
        let is_told = self.resolvers.len() > 1 || reply.why().is_some();
        let more = is_told.then(|| format!(": {resolver} says {}", reply.code_and_why()));
        LookupError::UnexpectedCode {
            name: domain.to_ascii(),
            servers: self.listed(),
            code: mnemonic(reply.code()),
            more: more.unwrap_or_default(),
        }
    }

    fn no_zone(&self, name: &Name) -> LookupError {
        LookupError::NoZone { name: name.to_ascii(), servers: self.listed() }
    }

    /// The resolvers, as cert-manager lists them.
    pub(super) fn listed(&self) -> String {
        let all: Vec<_> = self.resolvers.iter().map(ToString::to_string).collect();
        all.join(" ")
    }
}

#[async_trait]
impl FindZone for Zones {
    async fn zone_of(&self, name: &str) -> Result<String, LookupError> {
        let zone = absolute(name)?;
        let found = self.in_time(name, self.zone(&zone)).await?;
        Ok(found.to_ascii())
    }
}

/// Adds the next name of a chain of aliases.
pub(super) fn follow(chain: &mut Vec<Name>, next: Name) -> Result<(), LookupError> {
    if chain.contains(&next) || chain.len() > MAX_HOPS {
        let name = chain.last().map(Name::to_ascii).unwrap_or_default();
        return Err(LookupError::AliasLoop { name, target: next.to_ascii() });
    }
    chain.push(next);
    Ok(())
}

/// Finds the zone of a name in a reply: the owner of the SOA record in the answer, or beside an absence (RFC 2308 §3).
fn zone_named<'a>(reply: &'a Reply, name: &Name) -> Option<(&'a Name, Duration)> {
    if reply.alias(name).is_some() {
        return None;
    }
    let is_there = reply.code() == ResponseCode::NoError;
    let above = |(zone, _): &(&Name, Duration)| !zone.is_root() && zone.zone_of(name);
    let found = reply.zone().filter(|_| is_there);
    found.or_else(|| reply.zone_of_absence().filter(above))
}

/// Finds the zone of a name in a reply about its name servers: the name itself if it has any, else as [`zone_named`].
fn zone_with_servers<'a>(reply: &'a Reply, name: &'a Name) -> Option<(&'a Name, Duration)> {
    let (servers, ttl) = reply.name_servers(name);
    if servers.is_empty() { zone_named(reply, name) } else { Some((name, ttl)) }
}

/// Returns the lowest of a server's zones, for which the server answers, if it is another zone than `zone`.
fn nearest<'a>(reply: &'a Reply, zone: &Name, name: &Name) -> Option<&'a Name> {
    if !reply.is_authoritative() || reply.alias(name).is_some() {
        return None;
    }
    let owner = reply.zone().or_else(|| reply.zone_of_absence())?.0;
    (zone != owner && zone.zone_of(owner) && owner.zone_of(name)).then_some(owner)
}

fn silent(name: &Name, server: &Server, why: &Silence) -> LookupError {
    let why = LookupFailure::Server { server: server.to_string(), silence: why.clone() };
    LookupError::Failed { name: name.to_ascii(), why }
}
