//! Answer of a name server, read for the data that our questions are for.

use std::net::IpAddr;
use std::time::Duration;

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::opt::EdnsOption;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::proto::serialize::binary::{BinDecodable as _, BinDecoder};

use crate::model::extended_error::ExtendedError;

/// Record type that leads all names below its owner elsewhere (RFC 6672).
const DNAME: u16 = 39;
/// EDNS option that holds an extended error (RFC 8914 §2).
pub(super) const EXTENDED_ERROR: u16 = 15;

/// An answer, whatever its code.
#[derive(Clone, Debug)]
pub(super) struct Reply(pub(super) Message);

impl Reply {
    pub(super) fn code(&self) -> ResponseCode {
        self.0.metadata.response_code
    }

    /// Returns whether nothing in the reply answers a question for a zone: a resolver filters the answer, or fails.
    pub(super) fn says_nothing(&self) -> bool {
        !self.is_an_answer() || (self.0.answers.is_empty() && self.0.authorities.is_empty())
    }

    /// Returns whether the reply says that the name exists, or does not; every other code is about the server.
    pub(super) fn is_an_answer(&self) -> bool {
        matches!(self.code(), ResponseCode::NoError | ResponseCode::NXDomain)
    }

    /// Code as `dig` writes it, with the reason if the server gives one: `SERVFAIL (DNSSEC Bogus)`.
    pub(super) fn code_and_why(&self) -> String {
        let code = mnemonic(self.code());
        match self.why() {
            Some(why) => format!("{code} ({why})"),
            None => code,
        }
    }

    /// Reason for the code, if the server gives one (RFC 8914).
    pub(super) fn why(&self) -> Option<ExtendedError> {
        let options = self.0.edns.as_ref()?.options();
        options.as_ref().iter().find_map(|(_, option)| match option {
            EdnsOption::Unknown(EXTENDED_ERROR, data) => read_extended_error(data),
            _ => None,
        })
    }

    /// Returns whether the server answers as an authority of the zone (AA).
    pub(super) fn is_authoritative(&self) -> bool {
        self.0.metadata.authoritative
    }

    /// The texts at a name, each joined from its strings (RFC 8555 §8.4), sorted.
    pub(super) fn texts(&self, name: &Name) -> Vec<String> {
        sorted(self.at(name).filter_map(|record| match &record.data {
            RData::TXT(text) => Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned()),
            _ => None,
        }))
    }

    /// Seconds for which the texts may be kept; `None` if there are no texts.
    pub(super) fn ttl_of_texts(&self) -> Option<u32> {
        let texts = self.0.answers.iter().filter(|r| r.record_type() == RecordType::TXT);
        texts.map(|record| record.ttl).max()
    }

    /// Target of the CNAME record at a name.
    pub(super) fn alias(&self, name: &Name) -> Option<&Name> {
        self.at(name).find_map(|record| match &record.data {
            RData::CNAME(target) => Some(&target.0),
            _ => None,
        })
    }

    /// Target of a name, by a CNAME of its own or by a DNAME above it (RFC 6672 §2.2).
    pub(super) fn leads_to(&self, name: &Name) -> Option<Name> {
        self.alias(name).cloned().or_else(|| {
            self.0.answers.iter().find_map(|record| {
                let owner = &record.name;
                let is_above = owner != name && owner.zone_of(name);
                let RData::Unknown { code, rdata } = &record.data else { return None };
                if u16::from(*code) != DNAME || !is_above {
                    return None;
                }
                let target = Name::read(&mut BinDecoder::new(&rdata.anything)).ok()?;
                let own = name.num_labels().saturating_sub(owner.num_labels());
                let labels = name.iter().take(own.into());
                Name::from_labels(labels).ok()?.append_domain(&target).ok()
            })
        })
    }

    /// Zone whose SOA record is the answer, and the TTL of the record.
    pub(super) fn zone(&self) -> Option<(&Name, Duration)> {
        soa(&self.0.answers)
    }

    /// Zone that states an absence by its SOA record, and the TTL of the record (RFC 2308 §3).
    pub(super) fn zone_of_absence(&self) -> Option<(&Name, Duration)> {
        soa(&self.0.authorities)
    }

    /// Name servers of a zone that was asked for, sorted, and the TTL of their records.
    pub(super) fn name_servers(&self, zone: &Name) -> (Vec<Name>, Duration) {
        let ttl = self.at(zone).map(|record| record.ttl).min().unwrap_or_default();
        (names(self.at(zone)), Duration::from_secs(ttl.into()))
    }

    /// A zone below `zone` whose servers are to be asked for `name`, and these servers (RFC 1034 §4.2.1).
    pub(super) fn referral(&self, zone: &Name, name: &Name) -> Option<(Name, Vec<Name>)> {
        if self.code() != ResponseCode::NoError || !self.0.answers.is_empty() {
            return None;
        }
        let owner = &self.0.authorities.iter().find(|r| r.record_type() == RecordType::NS)?.name;
        let is_below = zone.zone_of(owner) && zone != owner && owner.zone_of(name);
        let servers = names(self.0.authorities.iter().filter(|record| record.name == *owner));
        is_below.then(|| (owner.clone(), servers))
    }

    /// The addresses of a server that a referral brings along, sorted.
    pub(super) fn glue(&self, server: &Name) -> Vec<IpAddr> {
        let glue = self.0.additionals.iter().filter(|record| record.name == *server);
        sorted(glue.filter_map(|record| record.data.ip_addr()))
    }

    /// All addresses in the answer.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.0.answers.iter().filter_map(|record| record.data.ip_addr())
    }

    /// The records of an answer at one name.
    pub(super) fn at(&self, name: &Name) -> impl Iterator<Item = &Record> {
        self.0.answers.iter().filter(move |record| record.name == *name)
    }
}

fn names<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<Name> {
    sorted(records.filter_map(|record| match &record.data {
        RData::NS(server) => Some(server.0.clone()),
        _ => None,
    }))
}

fn soa(records: &[Record]) -> Option<(&Name, Duration)> {
    let soa = records.iter().find(|record| record.record_type() == RecordType::SOA)?;
    Some((&soa.name, Duration::from_secs(soa.ttl.into())))
}

/// Sorts items and removes repeats.
pub(super) fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<_> = all.collect();
    all.sort();
    all.dedup();
    all
}

/// The code as `dig` writes it.
pub(super) fn mnemonic(code: ResponseCode) -> String {
    let known = match code {
        ResponseCode::NoError => "NOERROR",
        ResponseCode::FormErr => "FORMERR",
        ResponseCode::ServFail => "SERVFAIL",
        ResponseCode::NXDomain => "NXDOMAIN",
        ResponseCode::NotImp => "NOTIMP",
        ResponseCode::Refused => "REFUSED",
        ResponseCode::YXDomain => "YXDOMAIN",
        ResponseCode::YXRRSet => "YXRRSET",
        ResponseCode::NXRRSet => "NXRRSET",
        ResponseCode::NotAuth => "NOTAUTH",
        ResponseCode::NotZone => "NOTZONE",
        other => return format!("RCODE {}", u16::from(other)),
    };
    known.to_owned()
}

/// Reads the extended error at the beginning of its option. The server's own text behind it differs from lookup to lookup.
fn read_extended_error(option: &[u8]) -> Option<ExtendedError> {
    ExtendedError::of(u16::from_be_bytes(option.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use hickory_resolver::proto::rr::rdata::NULL;

    use super::*;

    #[test]
    fn a_dname_leads_every_name_below_it_elsewhere() {
        let name = |text: &str| Name::from_ascii(text).unwrap();
        let target = b"\x04acme\x07example\x03net\0".to_vec();
        let data = RData::Unknown { code: RecordType::from(DNAME), rdata: NULL::with(target) };
        let mut message = Message::query();
        message.add_answers([Record::from_rdata(name("dn.example.com."), 60, data)]);
        let reply = Reply(message);
        let led = reply.leads_to(&name("_acme-challenge.www.dn.example.com."));
        assert_eq!(led, Some(name("_acme-challenge.www.acme.example.net.")));
        // Not the name itself, and none beside it.
        assert_eq!(reply.leads_to(&name("dn.example.com.")), None);
        assert_eq!(reply.leads_to(&name("www.example.com.")), None);
    }

    #[test]
    fn an_error_is_read_and_the_words_behind_it_are_left_out() {
        assert_eq!(read_extended_error(&[0, 7]), ExtendedError::of(7));
        assert_eq!(read_extended_error(b"\x00\x16at 192.0.2.1"), ExtendedError::of(22));
        for option in [&[][..], &[0], &[0, 0], &[0, 31], &[255, 255]] {
            assert_eq!(read_extended_error(option), None, "{option:?}");
        }
    }
}
