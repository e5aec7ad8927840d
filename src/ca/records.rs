//! Records that the CA finds before it asks DNS: a test sets these records, so that DNS-01 needs no name server.
//!
//! A name with records here is a zone of its own: the name and all names below are answered from here alone,
//! and a record missing here does not exist. With a default address every name is such a zone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::dns::{LookupError, LookupFailure, Resolve};
use crate::model::caa::{CaaProperty, CaaRecordSet};

/// Most aliases that are followed.
const MAX_ALIASES: usize = 16;

/// Records that a test sets, with precedence over the records of a resolver.
#[derive(Debug)]
pub struct Records {
    table: Mutex<Table>,
    beyond: Arc<dyn Resolve>,
}

#[derive(Debug, Default)]
struct Table {
    /// Records by absolute name without the final dot, in lower case.
    names: BTreeMap<String, NameRecords>,
    default_v4: Option<Ipv4Addr>,
    default_v6: Option<Ipv6Addr>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NameRecords {
    v4: BTreeSet<Ipv4Addr>,
    v6: BTreeSet<Ipv6Addr>,
    texts: Vec<String>,
    alias: Option<String>,
    caa: Vec<CaaProperty>,
    fails: bool,
}

/// One change of the records at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordChange {
    /// Adds an A record.
    AddV4(Ipv4Addr),
    /// Adds an AAAA record.
    AddV6(Ipv6Addr),
    /// Adds a TXT record.
    AddText(String),
    /// Adds a CAA record.
    AddCaa(CaaProperty),
    /// Makes the name an alias (CNAME).
    SetAlias(String),
    /// Answers every question about the name with SERVFAIL.
    Fail,
    /// Removes all A records.
    ClearV4,
    /// Removes all AAAA records.
    ClearV6,
    /// Removes all TXT records.
    ClearTexts,
    /// Removes all CAA records.
    ClearCaa,
    /// Removes the alias.
    ClearAlias,
    /// Answers questions about the name again.
    Answer,
}

/// Error of a text that is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not NAME TYPE VALUE with the type A, AAAA, TXT, CNAME or CAA, such as www.example.com A 127.0.0.1"
)]
pub struct InvalidRecord;

impl Records {
    /// Starts without records; other names are looked up in `beyond`.
    pub fn before(beyond: Arc<dyn Resolve>) -> Self {
        Self { table: Mutex::default(), beyond }
    }

    /// Changes the records at a name.
    pub fn change(&self, name: &str, change: RecordChange) {
        let mut table = self.table.lock();
        let name = plain(name);
        let mut entry = table.names.remove(&name).unwrap_or_default();
        entry.apply(change);
        if entry != NameRecords::default() {
            table.names.insert(name, entry);
        }
    }

    /// Answers every name from here, with this address if the name has no address; `None` ends the default.
    pub fn set_default_v4(&self, address: Option<Ipv4Addr>) {
        self.table.lock().default_v4 = address;
    }

    /// Sets the default address for AAAA records, as [`Self::set_default_v4`] does for A records.
    pub fn set_default_v6(&self, address: Option<Ipv6Addr>) {
        self.table.lock().default_v6 = address;
    }

    /// Adds a record as a zone file has it: `NAME TYPE VALUE`.
    ///
    /// # Errors
    /// Fails when the text is no record of a type that can be set.
    pub fn add(&self, text: &str) -> Result<(), InvalidRecord> {
        let (name, rest) = text.trim().split_once(char::is_whitespace).ok_or(InvalidRecord)?;
        let (kind, value) =
            rest.trim_start().split_once(char::is_whitespace).ok_or(InvalidRecord)?;
        let value = value.trim();
        let change = match kind.to_ascii_uppercase().as_str() {
            "A" => RecordChange::AddV4(value.parse().map_err(|_| InvalidRecord)?),
            "AAAA" => RecordChange::AddV6(value.parse().map_err(|_| InvalidRecord)?),
            "TXT" => RecordChange::AddText(unquote(value).to_owned()),
            "CNAME" => RecordChange::SetAlias(value.to_owned()),
            "CAA" => RecordChange::AddCaa(property(value).ok_or(InvalidRecord)?),
            _ => return Err(InvalidRecord),
        };
        self.change(name, change);
        Ok(())
    }
}

impl NameRecords {
    fn apply(&mut self, change: RecordChange) {
        match change {
            RecordChange::AddV4(address) => self.v4.extend([address]),
            RecordChange::AddV6(address) => self.v6.extend([address]),
            RecordChange::AddText(text) => self.texts.push(text),
            RecordChange::AddCaa(property) => self.caa.push(property),
            RecordChange::SetAlias(target) => self.alias = Some(plain(&target)),
            RecordChange::Fail => self.fails = true,
            RecordChange::ClearV4 => self.v4.clear(),
            RecordChange::ClearV6 => self.v6.clear(),
            RecordChange::ClearTexts => self.texts.clear(),
            RecordChange::ClearCaa => self.caa.clear(),
            RecordChange::ClearAlias => self.alias = None,
            RecordChange::Answer => self.fails = false,
        }
    }
}

/// Source of the records of a name, after its aliases are followed.
enum Found {
    /// The table: the name's records, `None` if the name does not exist.
    Here(String, Option<NameRecords>),
    /// The resolver, under this name.
    Beyond(String),
}

impl Table {
    fn find(&self, asked: &str) -> Result<Found, LookupError> {
        let failed = |why| LookupError::Failed { name: asked.to_owned(), why };
        let mut chain = vec![plain(asked)];
        loop {
            let name = chain.last().cloned().unwrap_or_default();
            let entry = self.names.get(&name);
            if entry.is_some_and(|entry| entry.fails) {
                let target = (chain.len() > 1).then_some(name);
                return Err(failed(LookupFailure::Answered {
                    code: "SERVFAIL".to_owned(),
                    target,
                }));
            }
            let Some(target) = entry.and_then(|entry| entry.alias.clone()) else {
                return Ok(match entry {
                    Some(entry) => Found::Here(name, Some(entry.clone())),
                    None if self.covers(&name) => {
                        let exists = self.has_names_below(&name) || self.has_default();
                        Found::Here(name, exists.then(NameRecords::default))
                    }
                    None => Found::Beyond(name),
                });
            };
            if chain.contains(&target) || chain.len() > MAX_ALIASES {
                return Err(failed(LookupFailure::AliasLoop(chain)));
            }
            chain.push(target);
        }
    }

    /// Returns whether a name without records is answered from here.
    fn covers(&self, name: &str) -> bool {
        let mut above = name;
        while let Some((_, rest)) = above.split_once('.') {
            if self.names.contains_key(rest) {
                return true;
            }
            above = rest;
        }
        self.has_default()
    }

    fn has_default(&self) -> bool {
        self.default_v4.is_some() || self.default_v6.is_some()
    }

    fn has_names_below(&self, name: &str) -> bool {
        let is_below =
            |other: &String| other.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        self.names.keys().any(is_below)
    }

    fn addresses(&self, entry: &NameRecords) -> Vec<IpAddr> {
        let default_v6 = self.default_v6.filter(|_| entry.v6.is_empty() && entry.v4.is_empty());
        let default_v4 = self.default_v4.filter(|_| entry.v6.is_empty() && entry.v4.is_empty());
        let six = entry.v6.iter().copied().chain(default_v6).map(IpAddr::V6);
        let four = entry.v4.iter().copied().chain(default_v4).map(IpAddr::V4);
        six.chain(four).collect()
    }
}

#[async_trait]
impl Resolve for Records {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        let name = host.to_owned();
        let found = {
            let table = self.table.lock();
            match table.find(host)? {
                Found::Here(at, entry) => {
                    Ok(entry.map(|entry| table.addresses(&entry)).ok_or_else(|| missing(host, at)))
                }
                Found::Beyond(at) => Err(at),
            }
        };
        match found {
            Ok(Ok(addresses)) if addresses.is_empty() => Err(LookupError::NoAddress { name }),
            Ok(found) => found,
            Err(at) => self.beyond.addresses(&at).await,
        }
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        let found = self.table.lock().find(name)?;
        match found {
            Found::Here(at, None) => Err(missing(name, at)),
            Found::Here(_, Some(entry)) if entry.texts.is_empty() => {
                Err(LookupError::NoText { name: name.to_owned() })
            }
            Found::Here(_, Some(entry)) => Ok(entry.texts),
            Found::Beyond(at) => self.beyond.texts(&format!("{at}.")).await,
        }
    }

    async fn caa(&self, name: &str) -> Result<CaaRecordSet, LookupError> {
        let found = self.table.lock().find(name)?;
        match found {
            Found::Here(_, entry) => Ok(entry.unwrap_or_default().caa.into_iter().collect()),
            Found::Beyond(at) => self.beyond.caa(&format!("{at}.")).await,
        }
    }
}

/// Returns the error for a missing name, or for an alias that leads to a missing name.
fn missing(asked: &str, at: String) -> LookupError {
    let name = asked.to_owned();
    if plain(asked) == at {
        return LookupError::NoSuchName { name };
    }
    LookupError::NoSuchTarget { name, target: at }
}

/// Returns a name without the final dot, in lower case.
fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

fn unquote(value: &str) -> &str {
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
}

/// Reads flags, tag and value of a CAA record (RFC 8659 §4.1.1).
fn property(value: &str) -> Option<CaaProperty> {
    let mut parts = value.splitn(3, char::is_whitespace);
    let (flags, tag, value) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    Some(CaaProperty::new(flags, tag, unquote(value.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolver with one host, and no other name.
    #[derive(Debug)]
    struct Beyond;

    #[async_trait]
    impl Resolve for Beyond {
        async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
            match host {
                "beyond.test" => Ok(vec!["192.0.2.1".parse().unwrap()]),
                other => Err(LookupError::NoSuchName { name: other.to_owned() }),
            }
        }
    }

    fn records(lines: &[&str]) -> Records {
        let records = Records::before(Arc::new(Beyond));
        for line in lines {
            records.add(line).unwrap_or_else(|why| panic!("{line}: {why}"));
        }
        records
    }

    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(
        seen: Result<T, LookupError>,
        expected: Result<T, &str>,
    ) {
        assert_eq!(seen.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    fn addresses(all: &[&str]) -> Vec<IpAddr> {
        all.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_name_with_records_is_answered_from_here_with_all_below_it() {
        let records = records(&[
            "www.bed.test. A 127.0.0.1",
            "WWW.bed.test AAAA ::1",
            "_acme-challenge.www.bed.test TXT \"one two\"",
            "_acme-challenge.www.bed.test  TXT  three",
            "deep.a.bed.test CAA 0 issue \"ca.example; accounturi=x\"",
        ]);
        check(records.addresses("www.bed.test").await, Ok(addresses(&["::1", "127.0.0.1"])));
        check(
            records.texts("_acme-challenge.www.BED.test.").await,
            Ok(texts(&["one two", "three"])),
        );
        check(records.texts("www.bed.test.").await, Err("www.bed.test. has no TXT record"));
        check(records.texts("no.www.bed.test.").await, Err("no such host no.www.bed.test."));
        check(
            records.addresses("deep.a.bed.test").await,
            Err("deep.a.bed.test has neither an A nor an AAAA record"),
        );
        let caa = CaaProperty::new(0, "issue", "ca.example; accounturi=x");
        check(records.caa("deep.a.bed.test.").await, Ok([caa].into_iter().collect()));
        check(records.caa("www.bed.test.").await, Ok(CaaRecordSet::default()));
        check(records.addresses("beyond.test").await, Ok(addresses(&["192.0.2.1"])));
        check(records.addresses("a.bed.test").await, Err("no such host a.bed.test"));
    }

    #[tokio::test]
    async fn an_alias_leads_to_records_here_or_beyond_and_never_in_a_circle() {
        let records = records(&[
            "_acme-challenge.bed.test CNAME validation.test.",
            "validation.test TXT text",
            "out.bed.test CNAME beyond.test",
            "lost.bed.test CNAME gone.validation.test",
            "a.test CNAME b.test",
            "b.test CNAME a.test",
        ]);
        check(records.texts("_acme-challenge.bed.test.").await, Ok(texts(&["text"])));
        check(records.addresses("out.bed.test").await, Ok(addresses(&["192.0.2.1"])));
        check(
            records.addresses("lost.bed.test").await,
            Err("no such host gone.validation.test, where the CNAME of lost.bed.test leads"),
        );
        check(
            records.addresses("a.test").await,
            Err("cannot look up a.test: CNAME loop: a.test -> b.test"),
        );
    }

    #[tokio::test]
    async fn what_is_cleared_is_gone_and_a_default_answers_for_every_name() {
        let records = records(&["bed.test TXT one"]);
        records.change("bed.test", RecordChange::Fail);
        check(
            records.texts("bed.test").await,
            Err("cannot look up bed.test: the name server answered SERVFAIL"),
        );
        records.change("bed.test.", RecordChange::Answer);
        check(records.texts("bed.test").await, Ok(texts(&["one"])));
        records.change("bed.test", RecordChange::ClearTexts);
        check(records.texts("bed.test").await, Err("no such host bed.test."));
        records.set_default_v4(Some(Ipv4Addr::LOCALHOST));
        check(records.addresses("any.test").await, Ok(addresses(&["127.0.0.1"])));
        check(records.addresses("beyond.test").await, Ok(addresses(&["127.0.0.1"])));
        check(records.texts("any.test").await, Err("any.test has no TXT record"));
        records.change("own.test", RecordChange::AddV6(Ipv6Addr::LOCALHOST));
        check(records.addresses("own.test").await, Ok(addresses(&["::1"])));
        records.set_default_v4(None);
        check(records.addresses("any.test").await, Err("no such host any.test"));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for text in [
            "",
            "bed.test",
            "bed.test A",
            "bed.test A host",
            "bed.test AAAA 127.0.0.1",
            "bed.test MX 10 mail",
            "bed.test CAA issue ca",
            "bed.test CAA 0 issue",
        ] {
            assert_eq!(Records::before(Arc::new(Beyond)).add(text), Err(InvalidRecord), "{text}");
        }
    }
}
