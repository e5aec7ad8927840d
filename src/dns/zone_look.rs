//! Lookup of a zone with its delegation, and one question to one server with the whole answer, to compare servers.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use hickory_resolver::proto::op::{Edns, Message, Query};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::proto::serialize::binary::BinEncodable as _;
use jiff::Timestamp;
use tokio::time::timeout;

use super::lookup::{MAX_HOPS, absolute};
use super::reply::{Reply, mnemonic, sorted};
use super::server::{Authority, Server};
use super::wire::Recursion;
use super::zone::{Trust, Zone, Zones};
use super::{LookupError, Silence};
use crate::model::zone_look::{DnsOutcome, DnsReply, QuestionFault, ZoneServer, ZoneState};

/// Most servers of a zone that are asked, and most addresses of each.
const MAX_SERVERS: usize = 8;
const MAX_ADDRESSES: usize = 2;
/// Longest wait for one answer of one server: a lookup of a zone asks all of its servers.
const SERVER_LOOK: Duration = Duration::from_secs(2);
/// Bytes of a signature before its end time (RFC 4034 §3.1).
const BEFORE_END: usize = 8;

/// Zone that a name is in, found and not yet asked about its state.
#[derive(Clone, Debug)]
pub struct ZoneAround {
    zone: Zone,
    by_resolvers: Option<String>,
    unfound: Option<String>,
}

impl ZoneAround {
    /// Absolute name of the zone.
    pub fn name(&self) -> String {
        self.zone.name.to_ascii()
    }

    /// Returns the state of this zone from the lookup for another name.
    #[must_use]
    pub fn as_looked_at(&self, look: ZoneState) -> ZoneState {
        let (by_resolvers, unfound) = (self.by_resolvers.clone(), self.unfound.clone());
        ZoneState { by_resolvers, unfound, ..look }
    }
}

impl Zones {
    /// Asks one server one question, and returns the whole outcome.
    pub async fn hear(
        &self,
        server: &Server,
        (name, kind): (&str, RecordType),
        recursion: Recursion,
    ) -> DnsOutcome {
        let Ok(name) = absolute(name) else {
            return DnsOutcome::Nothing("is no DNS name".to_owned());
        };
        read_outcome(self.wire.ask(server, &name, kind, recursion).await, &name, kind)
    }

    /// Finds the zone that a name is in. Resolvers are asked only for names above that name.
    ///
    /// # Errors
    /// Fails if the zone cannot be found, or the search takes longer than 30 s.
    pub async fn zone_around(&self, name: &str) -> Result<ZoneAround, LookupError> {
        let absolute = absolute(name)?;
        self.in_time(name, self.find_around(&absolute)).await
    }

    async fn find_around(&self, name: &Name) -> Result<ZoneAround, LookupError> {
        let (apex, unfound) = match self.apex_above(name).await {
            Ok(apex) => (apex, None),
            // Resolvers fail if the zone's servers do: the zone above names those servers.
            Err(error @ LookupError::UnexpectedCode { .. }) => {
                match self.apex_further_up(name).await {
                    Some(apex) => (apex, Some(error.to_string())),
                    None => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let by_resolvers = match unfound {
            None => self.by_soa_alone().apex_above(name).await.ok().map(|apex| apex.to_ascii()),
            Some(_) => None,
        };
        let zone = match self.trust {
            Trust::RecursiveOnly => Zone::without_servers(apex),
            Trust::Authoritative => self.descend(apex, name).await?,
        };
        Ok(ZoneAround { zone, by_resolvers, unfound })
    }

    /// Looks up the state of a zone that was found: its servers by its own records and by its parent's, the serial of
    /// each copy, and the keys by which the zone is signed.
    pub async fn look_at_zone(&self, around: &ZoneAround) -> ZoneState {
        let ZoneAround { zone, by_resolvers, unfound } = around.clone();
        let name = zone.name.to_ascii();
        let bare = ZoneState { name, by_resolvers, unfound, ..ZoneState::default() };
        if self.trust == Trust::RecursiveOnly {
            return bare;
        }
        let above = self.delegation(&zone.name).await;
        let (parent, at_parent, ds_tags) = above.unwrap_or_default();
        let with_keys = !ds_tags.is_empty();
        let servers = zone.servers.iter().take(MAX_SERVERS);
        let servers = servers.map(|server| self.look_at_server(server, &zone.name, with_keys));
        let servers = join_all(servers).await.concat();
        ZoneState { parent, at_parent, ds_tags, servers, ..bare }
    }

    /// Finds the nearest zone above the zone of a name that resolvers know.
    async fn apex_further_up(&self, name: &Name) -> Option<Name> {
        let mut above = name.base_name().base_name();
        while !above.is_root() {
            if let Ok(apex) = self.apex_above(&above).await {
                return Some(apex);
            }
            above = above.base_name();
        }
        None
    }

    /// Returns the zone above, the servers that it names for a zone, and the tags of the zone's DS records.
    async fn delegation(
        &self,
        zone: &Name,
    ) -> Option<(Option<String>, Option<Vec<String>>, Vec<u16>)> {
        let parent = self.apex_above(zone).await.ok().filter(|parent| parent != zone)?;
        let servers = self.servers(&parent, zone).await.ok()?;
        let (names, ds) = tokio::join!(
            self.ask_one(&servers, (zone, RecordType::NS)),
            self.ask_one(&servers, (zone, RecordType::DS))
        );
        let names = names.and_then(|reply| reply.referral(&parent, zone));
        let names = names.filter(|(owner, _)| owner == zone).map(|(_, names)| texts(&names));
        let tags = ds.map(|reply| raw(&reply, zone, RecordType::DS, first_number));
        Some((Some(parent.to_ascii()), names, tags.unwrap_or_default()))
    }

    async fn look_at_server(
        &self,
        server: &Authority,
        zone: &Name,
        with_keys: bool,
    ) -> Vec<ZoneServer> {
        let blank = ZoneServer {
            name: server.name.to_ascii(),
            address: None,
            soa: DnsOutcome::Nothing("has no address".to_owned()),
            serial: None,
            signed_until: None,
            name_servers: Vec::new(),
            key_tags: Vec::new(),
            tcp_fault: None,
            asking_fault: None,
        };
        let looks = self.addresses(server).take(MAX_ADDRESSES).map(|address| {
            let blank = blank.clone();
            async move {
                let server = &Server::Plain(address);
                // A silent server does not keep the other servers of the zone waiting.
                let ask = async |kind, how| {
                    let asked = self.wire.ask(server, zone, kind, how);
                    timeout(SERVER_LOOK, asked).await.unwrap_or(Err(Silence::TimedOut))
                };
                let (soa, names, keys) = tokio::join!(
                    ask(RecordType::SOA, Recursion::UnwantedSigned),
                    ask(RecordType::NS, Recursion::Unwanted),
                    async {
                        if with_keys {
                            ask(RecordType::DNSKEY, Recursion::Unwanted).await.ok()
                        } else {
                            None
                        }
                    }
                );
                let reply = soa.as_ref().ok();
                let is_answered = reply.is_some_and(Reply::is_an_answer);
                let (tcp_fault, asking_fault) = if is_answered {
                    tokio::join!(self.tcp_fault(address, zone), self.asking_fault(address, zone))
                } else {
                    (None, None)
                };
                let names = names.ok().map(|reply| texts(&reply.name_servers(zone).0));
                let keys = keys.map(|reply| raw(&reply, zone, RecordType::DNSKEY, key_tag));
                ZoneServer {
                    address: Some(address),
                    serial: reply.and_then(|reply| serial(reply, zone)),
                    signed_until: reply.and_then(|reply| signed_until(reply, zone)),
                    soa: read_outcome(soa, zone, RecordType::SOA),
                    name_servers: names.unwrap_or_default(),
                    key_tags: keys.unwrap_or_default(),
                    tcp_fault,
                    asking_fault,
                    ..blank
                }
            }
        });
        let looks = join_all(looks).await;
        if looks.is_empty() { vec![blank] } else { looks }
    }
}

impl Zones {
    /// Returns why a server cannot be asked over TCP.
    async fn tcp_fault(&self, server: SocketAddr, zone: &Name) -> Option<String> {
        let question = question(zone, true);
        let asked = self.wire.ask_over_tcp(server, &question);
        let heard = timeout(SERVER_LOOK, asked).await.unwrap_or(Err(Silence::TimedOut));
        heard.err().map(|why| why.to_string())
    }

    /// Returns the feature of a CA's questions that a server cannot handle.
    async fn asking_fault(&self, server: SocketAddr, zone: &Name) -> Option<QuestionFault> {
        let mixed = mixed_letters(zone)?;
        let came = async |name: &Name, with_edns| {
            let question = question(name, with_edns);
            let asked = self.wire.ask_as_it_is(server, &question);
            let heard = timeout(SERVER_LOOK, asked).await.unwrap_or(Err(Silence::TimedOut));
            match heard {
                Err(why) => Some(why.to_string()),
                Ok(answer) => misfit(name, &answer),
            }
        };
        let fault = came(&mixed, true).await?;
        let (plain_letters, without_edns) = tokio::join!(came(zone, true), came(&mixed, false));
        match (plain_letters, without_edns) {
            (None, _) => Some(QuestionFault::Letters { name: mixed.to_ascii(), came: fault }),
            (Some(came), None) => Some(QuestionFault::Edns(came)),
            // Then the form of the question does not matter.
            (Some(_), Some(_)) => None,
        }
    }
}

/// Makes the question for a zone's SOA record in one of two forms.
fn question(zone: &Name, with_edns: bool) -> Message {
    let mut question = Message::query();
    question.metadata.recursion_desired = false;
    question.add_query(Query::query(zone.clone(), RecordType::SOA));
    question.edns = with_edns.then(Edns::new);
    question
}

/// Returns the fault of an answer to the question for a zone's SOA record; `None` if the record came. That there is no
/// such name is as wrong as an error: the zone is there.
fn misfit(name: &Name, answer: &Message) -> Option<String> {
    let reply = Reply(answer.clone());
    let code = reply.code_and_why();
    if !answer.answers.iter().any(|record| record.record_type() == RecordType::SOA) {
        let is_empty = code == "NOERROR";
        return Some(if is_empty { "no SOA record".to_owned() } else { code });
    }
    let other = answer.queries.iter().map(Query::name).find(|asked| !asked.eq_case(name))?;
    Some(format!("an answer to {}", other.to_ascii()))
}

/// Name with every second letter in upper case; `None` if the name has less than two letters.
fn mixed_letters(name: &Name) -> Option<Name> {
    let mut letters = 0;
    let mixed: String = name
        .to_lowercase()
        .to_ascii()
        .chars()
        .map(|c| {
            letters += usize::from(c.is_ascii_alphabetic());
            if c.is_ascii_alphabetic() && letters % 2 == 0 { c.to_ascii_uppercase() } else { c }
        })
        .collect();
    Name::from_ascii(mixed).ok().filter(|_| letters > 1)
}

fn texts(names: &[Name]) -> Vec<String> {
    sorted(names.iter().map(|name| name.to_lowercase().to_ascii()))
}

fn read_outcome(reply: Result<Reply, Silence>, name: &Name, kind: RecordType) -> DnsOutcome {
    let reply = match reply {
        Ok(reply) => reply,
        Err(Silence::NoRoute) => return DnsOutcome::NoRoute,
        Err(why @ Silence::Truncated(_)) => return DnsOutcome::TooLarge(why.to_string()),
        Err(why) => return DnsOutcome::Nothing(why.to_string()),
    };
    let mut end = name.clone();
    let mut aliases = Vec::new();
    while let Some(next) = reply.alias(&end).filter(|_| aliases.len() < MAX_HOPS).cloned() {
        aliases.push(next.to_lowercase().to_ascii());
        end = next;
    }
    let records = || reply.at(&end).filter(|record| record.record_type() == kind);
    let texts = match kind {
        RecordType::TXT => reply.texts(&end),
        _ => sorted(records().map(|record| record.data.to_string())),
    };
    let is_empty = texts.is_empty();
    DnsOutcome::Reply(DnsReply {
        code: mnemonic(reply.code()),
        why: reply.why(),
        ttl: records().map(|record| record.ttl).max(),
        absent_for: absent_for(&reply).filter(|_| is_empty),
        is_validated: reply.0.metadata.authentic_data,
        aliases,
        records: texts,
    })
}

/// Seconds for which an absence may be kept (RFC 2308 §5).
fn absent_for(reply: &Reply) -> Option<u32> {
    reply.0.authorities.iter().find_map(|record| match &record.data {
        RData::SOA(soa) => Some(record.ttl.min(soa.minimum)),
        _ => None,
    })
}

fn serial(reply: &Reply, zone: &Name) -> Option<u32> {
    reply.at(zone).find_map(|record| match &record.data {
        RData::SOA(soa) => Some(soa.serial),
        _ => None,
    })
}

/// Reads DNSSEC records of one type from their bytes, no further than `read` does.
fn raw<T: Ord>(
    reply: &Reply,
    name: &Name,
    kind: RecordType,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Vec<T> {
    let records = reply.at(name).filter(|record| record.record_type() == kind);
    sorted(records.filter_map(bytes).filter_map(|data| read(&data)))
}

/// Bytes of a record on the wire: whether they are parsed further depends on how the resolver's crate is built.
fn bytes(record: &Record) -> Option<Vec<u8>> {
    record.data.to_bytes().ok()
}

fn first_number(data: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(data.first_chunk().copied()?))
}

/// The tag of a key (RFC 4034, appendix B).
fn key_tag(data: &[u8]) -> Option<u16> {
    let word = |pair: &[u8]| match pair {
        [high, low] => u32::from(*high) << 8 | u32::from(*low),
        rest => rest.first().map_or(0, |high| u32::from(*high) << 8),
    };
    // A key is shorter than a packet, so that the sum has room.
    let sum: u32 = data.chunks(2).map(word).sum();
    u16::try_from((sum + (sum >> 16)) & 0xffff).ok()
}

/// End of the signature of an SOA record; the last end if there are several signatures.
fn signed_until(reply: &Reply, zone: &Name) -> Option<Timestamp> {
    let end = |data: &[u8]| {
        let covers_soa = first_number(data) == Some(u16::from(RecordType::SOA));
        let end = data.get(BEFORE_END..)?.first_chunk().copied().map(u32::from_be_bytes)?;
        covers_soa.then(|| Timestamp::from_second(end.into()).ok()).flatten()
    };
    raw(reply, zone, RecordType::RRSIG, end).into_iter().max()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use hickory_resolver::proto::op::ResponseCode;
    use hickory_resolver::proto::rr::rdata::SOA;

    use super::*;

    #[test]
    fn every_second_letter_is_a_capital() {
        let mixed = |name: &str| mixed_letters(&Name::from_ascii(name).unwrap());
        assert_eq!(mixed("example.com.").unwrap().to_ascii(), "eXaMpLe.CoM.");
        assert_eq!(mixed("1.2."), None);
    }

    #[test]
    fn whoever_brings_no_soa_record_of_a_zone_does_not_know_its_name() {
        let name = Name::from_ascii("eXaMpLe.CoM.").unwrap();
        let answer = |asked: &Name, code: ResponseCode, has_soa: bool| {
            let mut answer = question(asked, true);
            answer.metadata.response_code = code;
            let soa = SOA::new(name.clone(), name.clone(), 1, 60, 60, 60, 60);
            let record = Record::from_rdata(name.clone(), 60, RData::SOA(soa));
            answer.answers.extend(Some(record).filter(|_| has_soa));
            misfit(&name, &answer)
        };
        assert_eq!(answer(&name, ResponseCode::NoError, true), None);
        assert_eq!(answer(&name, ResponseCode::NXDomain, false).as_deref(), Some("NXDOMAIN"));
        assert_eq!(answer(&name, ResponseCode::NoError, false).as_deref(), Some("no SOA record"));
        assert_eq!(answer(&name, ResponseCode::Refused, false).as_deref(), Some("REFUSED"));
        let small = Name::from_ascii("example.com.").unwrap();
        let other = answer(&small, ResponseCode::NoError, true);
        assert_eq!(other.as_deref(), Some("an answer to example.com."));
    }

    #[test]
    fn the_tag_of_a_key_is_that_of_the_example_in_rfc_4034() {
        // §5.4, the key of dskey.example.com., whose tag is 60485.
        let key = "AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMmmAphXdvxegXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw==";
        let key = base64::engine::general_purpose::STANDARD.decode(key).unwrap();
        let data = [&[1, 0, 3, 5][..], &key].concat();
        assert_eq!(key_tag(&data), Some(60_485));
        assert_eq!(key_tag(&[]), Some(0));
        assert_eq!(first_number(&[0xec, 0x45, 5]), Some(60_485));
    }
}
