//! Records that the CA has looked up, by challenge: its resolver may cache what was there.
//!
//! Facts from the store survive a restart: Challenges at the same name, and Orders whose Challenges are gone. Facts
//! that this process alone has seen count too: the targets of aliases, and the texts that were there already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OnceCell;

use super::is_by_record;
use crate::model::memory::{Holder, Memory};
use crate::model::observation::{CheckResult, NameServerAnswer, Observation};
use crate::model::{Challenge, Kind, Order, Record, State, Time};
use crate::reconcile::dns01_visible;
use crate::reconcile::lingering::{CachedRecord, EarlierLookup};
use crate::store::error::StoreError;
use crate::store::resources::{Resources, typed};
use crate::store::{Scope, Store};

/// Number of entries below which no entry is dropped.
const ENTRIES_KEPT_MIN: usize = 1024;
/// Longest time that a CA takes to validate one challenge.
const VALIDATION_MAX: SignedDuration = SignedDuration::from_mins(10);
/// Time for which entries of ended validations are kept once there are many.
const ENTRY_LIFETIME: SignedDuration = SignedDuration::from_hours(2);

/// Record as seen by a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Published {
    /// Absolute name after aliases; empty if the record was not looked up.
    name: String,
    /// Texts that every server has.
    texts: BTreeSet<String>,
    /// TTL, in seconds.
    ttl: u32,
}

impl Published {
    /// Returns the record that observations show.
    pub(super) fn of(observations: &[Observation]) -> Self {
        let mut published = Self::default();
        let mut common: Option<BTreeSet<&String>> = None;
        for observation in observations {
            let CheckResult::Records { name, servers, .. } = &observation.seen else { continue };
            published.name = name.to_lowercase();
            for server in servers {
                published.ttl = published.ttl.max(server.ttl.unwrap_or(0));
                let NameServerAnswer::Texts(texts) = &server.said else { continue };
                let texts = texts.iter().collect();
                common = Some(match common {
                    None => texts,
                    Some(common) => &common & &texts,
                });
            }
        }
        published.texts = common.unwrap_or_default().into_iter().cloned().collect();
        published
    }
}

/// Lookups by the CA, by the UID of the challenge that they were for.
#[derive(Debug)]
pub(super) struct ResolverCache {
    challenges: Resources<Challenge>,
    orders: Resources<Order>,
    /// Filled once the store's content from before this process has been read.
    before: OnceCell<()>,
    known: Mutex<BTreeMap<String, ResolverEntry>>,
}

/// Lookup by the CA.
#[derive(Debug)]
struct ResolverEntry {
    /// Absolute names of the record: its own, and the target of its alias.
    names: BTreeSet<String>,
    /// Texts that the CA found for certain.
    texts: BTreeSet<String>,
    look: EarlierLookup,
}

impl ResolverCache {
    /// Builds the cache; the store is read when the content first matters.
    pub(super) fn new(store: &Arc<dyn Store>) -> Self {
        Self {
            challenges: Resources::new(Arc::clone(store), Kind::Challenge),
            orders: Resources::new(Arc::clone(store), Kind::Order),
            before: OnceCell::new(),
            known: Mutex::default(),
        }
    }

    /// Records that a challenge is about to be accepted while its record was seen as `seen`.
    pub(super) fn record_acceptance(&self, challenge: &Challenge, seen: Published, now: Timestamp) {
        if !challenge.spec.kind.is_by_record() {
            return;
        }
        let names = [record(challenge), seen.name].into_iter().filter(|name| !name.is_empty());
        let look = EarlierLookup { accepted_at: Some(now), finished_at: None };
        let known = ResolverEntry { names: names.collect(), texts: seen.texts, look };
        self.with_room(now).insert(challenge.metadata.uid.clone(), known);
    }

    /// Records the state of a Challenge that has changed.
    pub(super) fn heard(&self, changed: &Record, now: Timestamp) {
        if is_by_record(changed)
            && let Ok(challenge) = typed::<Challenge>(changed.clone())
        {
            self.observe(&challenge, now);
        }
    }

    fn observe(&self, challenge: &Challenge, now: Timestamp) {
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        let state = challenge.status.state;
        let was_looked_at =
            memory.accepted_at.is_some() || matches!(state, Some(State::Valid | State::Invalid));
        if !challenge.spec.kind.is_by_record() || !was_looked_at {
            return;
        }
        let is_over = state.is_some_and(State::is_final) || challenge.metadata.is_deleted();
        let mut all = self.with_room(now);
        let known = all.entry(challenge.metadata.uid.clone()).or_insert_with(|| ResolverEntry {
            names: [record(challenge)].into(),
            texts: BTreeSet::new(),
            // A validation that is over when first seen may have been over for long.
            look: EarlierLookup {
                accepted_at: memory.accepted_at,
                finished_at: latest_end(memory.accepted_at, now).filter(|_| is_over),
            },
        });
        if is_over {
            known.look.finished_at.get_or_insert(now);
        }
    }

    /// Records an Order from before this process: the lookups of its names are no longer known in detail.
    fn observe_order(&self, order: &Order, now: Timestamp) {
        let memory = Memory::read(Holder::Order, &order.metadata.annotations);
        let failed_at = order.status.failure_time.map(Time::timestamp);
        let Some(finished_at) = memory.finalized_at.or(failed_at) else { return };
        let authorizations = order.status.authorizations.iter();
        let fresh = authorizations.filter(|a| a.initial_state != Some(State::Valid));
        let names = fresh.map(|a| format!("_acme-challenge.{}.", a.identifier.to_lowercase()));
        let look = EarlierLookup { accepted_at: None, finished_at: Some(finished_at) };
        let known = ResolverEntry { names: names.collect(), texts: BTreeSet::new(), look };
        self.with_room(now).entry(order.metadata.uid.clone()).or_insert(known);
    }

    /// Returns the old record of a challenge, without its text, that the CA's resolver may cache.
    ///
    /// # Errors
    /// Fails if the store does.
    pub(super) async fn lingering(
        &self,
        challenge: &Challenge,
        seen: &Published,
        now: Timestamp,
    ) -> Result<Option<CachedRecord>, StoreError> {
        let is_by_record = challenge.spec.kind.is_by_record();
        let Some(presented_at) = challenge.status.presented_at.filter(|_| is_by_record) else {
            return Ok(None);
        };
        self.before.get_or_try_init(|| self.read(now)).await?;
        let own = record(challenge);
        let name = if seen.name.is_empty() { &own } else { &seen.name };
        // A persistent record may meet the same demand in other words.
        let demand = dns01_visible::demand(challenge, now);
        let is_good = |text: &String| {
            *text == challenge.spec.key || demand.as_ref().is_some_and(|d| d.is_met_by(text))
        };
        let all = self.lock();
        let others = all.iter().filter(|(uid, _)| **uid != challenge.metadata.uid);
        let looks = others.filter(|(_, known)| {
            (known.names.contains(&own) || known.names.contains(name))
                && !known.texts.iter().any(is_good)
        });
        let looks = looks.map(|(_, known)| known.look);
        Ok(CachedRecord::of(name, seen.ttl, looks, presented_at.timestamp()))
    }

    async fn read(&self, now: Timestamp) -> Result<(), StoreError> {
        for challenge in self.challenges.list(&Scope::all()).await? {
            self.observe(&challenge, now);
        }
        for order in self.orders.list(&Scope::all()).await? {
            self.observe_order(&order, now);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ResolverEntry>> {
        self.known.lock()
    }

    fn with_room(&self, now: Timestamp) -> MutexGuard<'_, BTreeMap<String, ResolverEntry>> {
        let mut all = self.lock();
        // Scanned only now and then: each time there are twice as many entries.
        if all.len() >= ENTRIES_KEPT_MIN && all.len().is_power_of_two() {
            let is_wanted = |at: Timestamp| now.duration_since(at) < ENTRY_LIFETIME;
            all.retain(|_, known| known.look.finished_at.is_none_or(is_wanted));
        }
        all
    }
}

/// Returns the latest end of a validation of which only the beginning is known; `None` if it may still be under way.
fn latest_end(accepted_at: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    accepted_at?.saturating_add(VALIDATION_MAX).ok().filter(|end| *end < now)
}

fn record(challenge: &Challenge) -> String {
    challenge.spec.record_name().to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::model::observation::{NameServer, Vantage};
    use crate::reconcile::testing::{at, challenge, order};
    use crate::store::memory::MemoryStore;

    const NAME: &str = "_acme-challenge.example.com.";
    /// The other name of a record whose alias leads there.
    const ELSEWHERE: &str = "_acme-challenge.example.org.";

    fn cache() -> ResolverCache {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        ResolverCache::new(&store)
    }

    /// A record as two servers have it, with a TTL of a minute.
    fn seen(name: &str, texts: &[&[&str]]) -> Published {
        let servers = texts.iter().map(|texts| NameServer {
            name: "ns.example.com.".to_owned(),
            address: Some((Ipv4Addr::LOCALHOST, 53).into()),
            said: NameServerAnswer::Texts(texts.iter().map(|text| (*text).to_owned()).collect()),
            ttl: Some(60),
        });
        let records = CheckResult::Records {
            name: name.to_owned(),
            zone: "example.com.".to_owned(),
            servers: servers.collect(),
        };
        Published::of(&[Observation {
            vantage: Vantage::ThisMachine,
            at: at(0),
            url: String::new(),
            hops: Vec::new(),
            seen: records,
        }])
    }

    /// A challenge of `example.com` whose text was put up at a moment.
    fn presented(name: &str, text: &str, second: i64) -> Challenge {
        let build = challenge(name).dns01().named(text).change(|c| {
            text.clone_into(&mut c.metadata.uid);
            text.clone_into(&mut c.spec.key);
            c.status.presented_at = Some(at(second).into());
        });
        build.build()
    }

    /// Until when the wildcard waits, whose text was put up at second 100.
    async fn until(cache: &ResolverCache, name: &str, seen: &Published) -> Option<Timestamp> {
        let wildcard = presented(name, "wildcard", 100);
        let lingering = cache.lingering(&wildcard, seen, at(101)).await.unwrap();
        lingering.map(|lingering| lingering.until)
    }

    #[tokio::test]
    async fn the_wildcard_waits_for_what_the_ca_saw_for_the_apex() {
        let cache = cache();
        let now = seen(NAME, &[&["wildcard"], &["wildcard"]]);
        assert_eq!(until(&cache, "example.com", &now).await, None);
        let mut apex = presented("example.com", "apex", 50);
        cache.record_acceptance(&apex, seen(NAME, &[&["apex"]]), at(60));
        assert_eq!(until(&cache, "example.com", &now).await, Some(at(162)));
        apex.status.state = Some(State::Valid);
        cache.observe(&apex, at(70));
        assert_eq!(until(&cache, "example.com", &now).await, Some(at(131)));
        assert_eq!(until(&cache, "example.net", &Published::default()).await, None);
        let fleeting = Published { ttl: 0, ..now };
        assert_eq!(until(&cache, "example.com", &fleeting).await, Some(at(76)));
    }

    #[tokio::test]
    async fn a_text_that_every_server_had_when_the_ca_looked_waits_for_nothing() {
        let now = seen(NAME, &[&["wildcard"]]);
        for (texts, waits) in [
            (&[&["apex", "wildcard"][..], &["apex", "wildcard"]][..], false),
            (&[&["apex", "wildcard"], &["apex"]], true),
        ] {
            let cache = cache();
            cache.record_acceptance(
                &presented("example.com", "apex", 50),
                seen(NAME, texts),
                at(110),
            );
            assert_eq!(until(&cache, "example.com", &now).await.is_some(), waits);
        }
    }

    #[tokio::test]
    async fn names_whose_aliases_lead_to_one_place_wait_for_each_other() {
        let cache = cache();
        let apex = presented("example.com", "apex", 50);
        cache.record_acceptance(&apex, seen(ELSEWHERE, &[&["apex"]]), at(60));
        let now = seen(ELSEWHERE, &[&["apex", "wildcard"]]);
        assert_eq!(until(&cache, "example.net", &now).await, Some(at(162)));
    }

    #[tokio::test]
    async fn another_process_reads_it_from_the_store() {
        let now = seen(NAME, &[&["wildcard"]]);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let challenges = Resources::<Challenge>::new(Arc::clone(&store), Kind::Challenge);
        let mut apex = presented("example.com", "apex", 50);
        let memory = Memory { accepted_at: Some(at(60)), ..Memory::default() };
        memory.write(Holder::Challenge, &mut apex.metadata.annotations);
        challenges.create(&apex).await.unwrap();
        assert_eq!(until(&ResolverCache::new(&store), "example.com", &now).await, Some(at(162)));

        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let orders = Resources::<Order>::new(Arc::clone(&store), Kind::Order);
        let mut past = order("past").authorization("example.com").build();
        let memory = Memory { finalized_at: Some(at(70)), ..Memory::default() };
        memory.write(Holder::Order, &mut past.metadata.annotations);
        let created = orders.create(&past).await.unwrap();
        orders.replace_status(&created, &past.status).await.unwrap();
        assert_eq!(until(&ResolverCache::new(&store), "example.com", &now).await, Some(at(131)));
    }

    #[tokio::test]
    async fn a_look_ends_with_its_challenge_however_that_ends() {
        let now = seen(NAME, &[&["wildcard"]]);
        let accepted = |second: i64| {
            let mut apex = presented("example.com", "apex", second);
            let memory = Memory { accepted_at: Some(at(second)), ..Memory::default() };
            memory.write(Holder::Challenge, &mut apex.metadata.annotations);
            apex
        };
        let mut deleted = accepted(60);
        deleted.metadata.deletion_timestamp = Some(at(70).into());
        let looks_at_deleted = cache();
        looks_at_deleted.observe(&deleted, at(70));
        assert_eq!(until(&looks_at_deleted, "example.com", &now).await, Some(at(131)));

        let mut failed = accepted(-86_400);
        failed.status.state = Some(State::Invalid);
        let looks_at_failed = cache();
        looks_at_failed.observe(&failed, at(99));
        let long_ago = at(-86_400 + 600 + 61);
        assert_eq!(until(&looks_at_failed, "example.com", &now).await, Some(long_ago));
    }

    #[test]
    fn what_is_long_over_is_forgotten() {
        let cache = cache();
        for number in 0..=ENTRIES_KEPT_MIN {
            let mut over = presented("example.com", &format!("n{number}"), 0);
            over.status.state = Some(State::Valid);
            cache.observe(&over, at(if number < ENTRIES_KEPT_MIN { 0 } else { 7200 }));
        }
        assert_eq!(cache.lock().len(), 1);
    }
}
