//! Zone of a rehearsal on loopback: DNS-01 records in memory, visible only to the rehearsal's own CA and self-check.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::dns::{LookupError, Resolve};
use crate::model::caa::CaaRecordSet;
use crate::model::observation::{
    CheckResult, Hop, NameServer, NameServerAnswer, Observation, Vantage,
};
use crate::model::{Answer, Challenge};
use crate::probes::Probe;
use crate::solvers::{SolveError, Solver};

/// TXT records in memory, by name; clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryZone(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl MemoryZone {
    fn texts_at(&self, name: &str) -> Vec<String> {
        self.0.lock().get(&plain(name)).into_iter().flatten().cloned().collect()
    }
}

/// Returns a name in lower case, without the final dot.
fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[async_trait]
impl Solver for MemoryZone {
    async fn present(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        let name = plain(&challenge.spec.record_name());
        self.0.lock().entry(name).or_default().insert(answer.key_authorization.clone());
        Ok(())
    }

    async fn clean_up(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        let name = plain(&challenge.spec.record_name());
        if let Some(texts) = self.0.lock().get_mut(&name) {
            texts.remove(&answer.key_authorization);
        }
        Ok(())
    }

    fn stands(&self, challenge: &Challenge, answer: &Answer) -> bool {
        self.texts_at(&challenge.spec.record_name()).contains(&answer.key_authorization)
    }
}

#[async_trait]
impl Probe for MemoryZone {
    async fn probe(&self, challenge: &Challenge, _: &Answer) -> Vec<Observation> {
        let name = challenge.spec.record_name();
        let said = match self.texts_at(&name) {
            texts if texts.is_empty() => NameServerAnswer::NoText,
            texts => NameServerAnswer::Texts(texts),
        };
        let server = NameServer { name: "memory.".to_owned(), address: None, said, ttl: None };
        let url = format!("dns:{}?type=TXT", name.trim_end_matches('.'));
        let hops = vec![Hop { url: url.clone(), address: None, status: None }];
        let seen = CheckResult::Records { name, zone: String::new(), servers: vec![server] };
        let at = Timestamp::now();
        vec![Observation { vantage: Vantage::ThisMachine, at, url, hops, seen }]
    }
}

/// Resolver that takes TXT records from a zone in memory, and addresses from another resolver.
#[derive(Debug)]
pub struct MemoryResolver {
    /// Zone with the TXT records.
    pub zone: MemoryZone,
    /// Resolver of addresses.
    pub addresses: Arc<dyn Resolve>,
}

#[async_trait]
impl Resolve for MemoryResolver {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        self.addresses.addresses(host).await
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        match self.zone.texts_at(name) {
            texts if texts.is_empty() => Err(LookupError::NoText { name: name.to_owned() }),
            texts => Ok(texts),
        }
    }

    async fn caa(&self, _: &str) -> Result<CaaRecordSet, LookupError> {
        Ok(CaaRecordSet::default())
    }

    fn replaces_system(&self) -> bool {
        self.addresses.replaces_system()
    }
}
