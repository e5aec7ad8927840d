//! `--dns01-manual` while objects are followed: finds when only a person can go on, and which records a person may remove.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use tokio::time::Instant;

use super::Supervision;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::issue::manual::{ManualRecord, MissingReason};
use crate::issue::tracked::End;
use crate::model::memory::{Holder, Memory};
use crate::model::observation::{CheckResult, NameServer, NameServerAnswer, Observation};
use crate::model::{Answer, Challenge, ChallengeType, Key, Kind, ObjectName, Order, State};
use crate::objects::chain;
use crate::probes::Probe as _;
use crate::probes::dns::DnsProbe;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::dns01_visible;
use crate::reconcile::schedule::{Limits, Obstacle, Plan, plan};
use crate::store::error::StoreError;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Interval of the checks whether only a person can go on.
const PERSON_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Most records looked up at once: a name server that is asked for hundreds at once drops some.
const MAX_CONCURRENT_LOOKUPS: usize = 16;

/// Records that a person makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualRecords {
    /// All records (`--dns01-manual`).
    All,
    /// Records that persist, if no provider is named.
    Persistent,
}

/// Watcher of the records of DNS-01 that a person makes.
#[derive(Debug)]
pub struct ManualWatch {
    probe: DnsProbe,
    limits: Limits,
    hands: ManualRecords,
    /// UIDs of Challenges whose records an earlier run has printed.
    told: BTreeSet<String>,
    looked: Option<Instant>,
    /// UIDs of Challenges for whose records this run has said to wait.
    awaited: BTreeSet<String>,
    /// Challenges that are over, by UID: their records may go.
    over: BTreeMap<String, Challenge>,
    /// Challenges that are not over, by UID, as last seen: the end of the last Challenge may go unseen.
    unfinished: BTreeMap<String, Challenge>,
}

/// A Challenge that waits for a person, and its Certificate.
type Open = (Key, Challenge);

impl ManualWatch {
    /// Builds the watcher; the person knows the records of these Certificates that an earlier run has presented.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn new(
        probe: DnsProbe,
        limits: Limits,
        hands: ManualRecords,
        store: &Arc<dyn Store>,
        certificates: impl Iterator<Item = &Key>,
    ) -> Result<Self, StoreError> {
        let mut told = BTreeSet::new();
        for key in certificates.filter(|key| key.kind.is_issued()) {
            let Some(chain) = chain::of(store, key).await? else { continue };
            let open: Vec<&Challenge> =
                chain.challenges.iter().filter(|c| hands.wait_for(c)).collect();
            // The records of queued Challenges were printed together with those of the Challenge before them.
            if open.iter().any(|challenge| challenge.status.presented) {
                told.extend(open.iter().map(|challenge| challenge.metadata.uid.clone()));
            }
        }
        let (awaited, over, unfinished) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { probe, limits, hands, told, looked: None, awaited, over, unfinished })
    }

    /// Notes the end of a Challenge whose record a person has made.
    pub(super) fn saw(&mut self, challenge: &Challenge) {
        let uid = challenge.metadata.uid.clone();
        let was_made = challenge.status.presented || is_accepted(challenge);
        let is_of_use_once =
            matches!(challenge.spec.kind, ChallengeType::Dns01 | ChallengeType::DnsAccount01);
        if !is_of_use_once || self.hands != ManualRecords::All {
            return;
        }
        if !challenge.has_ended() {
            self.unfinished.insert(uid, challenge.clone());
            return;
        }
        self.unfinished.remove(&uid);
        if was_made {
            self.over.entry(uid).or_insert_with(|| challenge.clone());
        }
    }

    /// Returns the records that are no longer needed, one line each.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn removable(&self, store: &Arc<dyn Store>) -> Result<Vec<String>, StoreError> {
        let mut over: Vec<&Challenge> = self.over.values().collect();
        for challenge in self.unfinished.values() {
            let key = Key::new(Kind::Challenge, challenge.name());
            let there = store.get(&key).await?;
            if there.is_none_or(|record| record.uid() != challenge.metadata.uid) {
                over.push(challenge);
            }
        }
        Ok(removable(&self.probe, over.into_iter()).await)
    }

    /// Looks for the record of a Challenge: where it belongs, and why it is not there.
    async fn find_record(&self, challenge: &Challenge) -> (String, Option<MissingReason>) {
        find_record(&self.probe, challenge).await
    }

    /// Returns the Challenges for which a Certificate waits, if it waits for a person alone; else none.
    async fn open_of(
        &self,
        store: &Arc<dyn Store>,
        certificate: &Key,
        queued: &BTreeSet<ObjectName>,
    ) -> Result<Vec<Open>, StoreError> {
        if !certificate.kind.is_issued() {
            return Ok(Vec::new());
        }
        let Some(chain) = chain::of(store, certificate).await? else {
            return Ok(Vec::new());
        };
        let Some(order) = chain.order() else { return Ok(Vec::new()) };
        // A chain is read without the authorizations of its Order.
        let orders = Resources::<Order>::new(Arc::clone(store), Kind::Order);
        let Some(order) = orders.get(&order.name()).await? else { return Ok(Vec::new()) };
        let own =
            chain.challenges.iter().filter(|c| c.metadata.is_controlled_by(&order.metadata.uid));
        let own: Vec<&Challenge> = own.collect();
        let has_begun = order.status.authorizations.iter().all(|authorization| {
            authorization.initial_state == Some(State::Valid)
                || own.iter().any(|c| c.spec.authorization_url == authorization.url)
        });
        // An accepted Challenge waits for the CA alone.
        let is_ours = |c: &&Challenge| !c.has_ended() && !is_accepted(c);
        let open: Vec<&Challenge> = own.into_iter().filter(is_ours).collect();
        let waits = |challenge: &&Challenge| {
            let is_up = challenge.status.processing && challenge.status.presented;
            // A Challenge that was made after the queue was read is not in the queue.
            let is_queued = !challenge.status.processing && queued.contains(&challenge.name());
            self.hands.wait_for(challenge) && (is_up || is_queued)
        };
        if order.status.authorizations.is_empty() || !has_begun || !open.iter().all(waits) {
            return Ok(Vec::new());
        }
        Ok(open.into_iter().map(|challenge| (certificate.clone(), challenge.clone())).collect())
    }
}

impl Supervision {
    /// Ends every Certificate, with the records to make, once all Certificates wait for a person only and some records are
    /// new, or time is up. Records that exist already are left to the controllers.
    pub(super) async fn hand_over(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let is_late = now >= self.deadline;
        let Some(hand) = &mut self.by_hand else { return Ok(()) };
        if !is_late && hand.looked.is_some_and(|at| at.elapsed() < PERSON_CHECK_INTERVAL) {
            return Ok(());
        }
        hand.looked = Some(Instant::now());
        let challenges = Resources::<Challenge>::new(Arc::clone(&self.store), Kind::Challenge);
        let all = challenges.list(&Scope::all()).await?;
        let queued = list_queued(&all, hand.limits);
        let mut open = Vec::new();
        for key in self.open.keys() {
            let own = hand.open_of(&self.store, key, &queued).await?;
            if own.is_empty() && !is_late {
                return Ok(());
            }
            open.extend(own);
        }
        let are_known = open.iter().all(|(_, c)| hand.told.contains(&c.metadata.uid));
        if are_known && !is_late {
            open.retain(|(_, challenge)| hand.awaited.insert(challenge.metadata.uid.clone()));
        }
        let looks = stream::iter(&open).map(|(_, challenge)| hand.find_record(challenge));
        let looks: Vec<_> = looks.buffered(MAX_CONCURRENT_LOOKUPS).collect().await;
        let mut wanted: BTreeMap<Key, Vec<ManualRecord>> = BTreeMap::new();
        for ((key, challenge), (name, lack)) in open.iter().zip(looks) {
            match lack {
                Some(lack) => {
                    let record = ManualRecord::new(name, challenge, &key.name, lack);
                    wanted.entry(key.clone()).or_default().push(record);
                }
                // The controllers see the record, too, and go on.
                None if challenge.status.processing && !is_late && !are_known => return Ok(()),
                None => {}
            }
        }
        if are_known && !is_late {
            for (key, ManualRecord { name, value, .. }) in flat(&wanted) {
                self.progress
                    .line(&format!("{key} waits for the record {name} TXT \"{value}\""), now);
            }
            return Ok(());
        }
        for (key, records) in wanted {
            // A record that is printed for the first time cannot exist yet.
            let is_blind = are_known && !records.iter().any(|record| record.lack.is_checked);
            let end = if is_blind {
                End::Failed(unchecked_failure(&key, &records))
            } else {
                End::ByHand(person_failure(&key, &records), records)
            };
            self.end(&key, end, now);
        }
        Ok(())
    }
}

/// Returns the records of Challenges that are over, one line each.
pub async fn removable(
    probe: &DnsProbe,
    challenges: impl Iterator<Item = &Challenge>,
) -> Vec<String> {
    let lines = stream::iter(challenges).map(|challenge| async {
        let name = find_record(probe, challenge).await.0;
        format!("not needed any more, and yours to remove: {name} TXT \"{}\"", challenge.spec.key)
    });
    lines.buffered(MAX_CONCURRENT_LOOKUPS).collect().await
}

/// Looks for the record of a Challenge: where it belongs, and why it is not there.
async fn find_record(probe: &DnsProbe, challenge: &Challenge) -> (String, Option<MissingReason>) {
    let record = challenge.spec.record_name();
    let answer = match Answer::of(challenge) {
        Ok(answer) => answer,
        Err(why) => {
            return (record, Some(MissingReason { reason: why.to_string(), is_checked: true }));
        }
    };
    // A person writes the record where aliases lead, whatever the solver of the manifest would do.
    let mut challenge = challenge.clone();
    let dns01 = challenge.spec.solver.dns01.get_or_insert_default();
    "Follow".clone_into(&mut dns01.cname_strategy);
    let seen = probe.probe(&challenge, &answer).await;
    let end = seen.iter().find_map(end_of_aliases).unwrap_or(record);
    match dns01_visible::judge(&challenge, &answer, &seen) {
        Readiness::Ready => (end, None),
        Readiness::NotYet { reason, .. } => {
            (end, Some(MissingReason { reason, is_checked: !seen.iter().all(is_blind) }))
        }
    }
}

/// Returns whether an observation shows nothing of a record: no name server that was asked says anything of it.
fn is_blind(look: &Observation) -> bool {
    let is_silent = |server: &NameServer| match server.said {
        NameServerAnswer::Nothing(_)
        | NameServerAnswer::Unreadable(_)
        | NameServerAnswer::NoRoute
        | NameServerAnswer::Code(_) => true,
        NameServerAnswer::Texts(_)
        | NameServerAnswer::NoText
        | NameServerAnswer::NoName
        | NameServerAnswer::Alias(_)
        | NameServerAnswer::Referral(_) => false,
    };
    match &look.seen {
        CheckResult::NoLook { .. } => true,
        CheckResult::Records { servers, .. } => servers.iter().all(is_silent),
        CheckResult::Nothing { .. }
        | CheckResult::Handshake { .. }
        | CheckResult::Redirect { .. }
        | CheckResult::Reply { .. } => false,
    }
}

/// Returns the queued Challenges that start neither now nor as soon as the CA has validated a Challenge before them.
fn list_queued(all: &[Challenge], limits: Limits) -> BTreeSet<ObjectName> {
    let Plan { queue, .. } = plan(all, limits);
    let validated: BTreeSet<ObjectName> =
        all.iter().filter(|c| c.status.processing && is_accepted(c)).map(Challenge::name).collect();
    let stay = queue.into_iter().filter_map(|queued| {
        let is_next = match &queued.waits {
            Obstacle::Lock { holder } => validated.contains(holder),
            Obstacle::Slot { .. } => !validated.is_empty(),
            Obstacle::Nothing => true,
        };
        (!is_next).then(|| queued.challenge.name())
    });
    stay.collect()
}

fn flat(wanted: &BTreeMap<Key, Vec<ManualRecord>>) -> impl Iterator<Item = (&Key, &ManualRecord)> {
    wanted.iter().flat_map(|(key, records)| records.iter().map(move |record| (key, record)))
}

fn reasons(records: &[ManualRecord]) -> String {
    let reasons: BTreeSet<&str> =
        records.iter().map(|record| record.lack.reason.as_str()).collect();
    reasons.into_iter().collect::<Vec<_>>().join("; ")
}

/// Builds the failure if the records may exist, but no name server could be asked.
fn unchecked_failure(key: &Key, records: &[ManualRecord]) -> Failure {
    let what = match records {
        [_] => "its record is".to_owned(),
        all => format!("its {} records are", all.len()),
    };
    let why = reasons(records);
    let message = format!("{key}: whether {what} there could not be checked: {why}");
    Failure::new(FailureKind::Solver, message)
        .hint("name a resolver that answers with --dns or --dns01-recursive-nameservers")
        .hint(format!("then {}", invocation::current().go_on()))
}

fn person_failure(key: &Key, records: &[ManualRecord]) -> Failure {
    let (what, them) = match records {
        [_] => ("a record".to_owned(), "it"),
        all => (format!("{} records", all.len()), "them"),
    };
    let why = reasons(records);
    let message = format!("{key} waits for a person to make {what}: {why}");
    Failure::new(FailureKind::Person, message)
        .hint(format!("make {them} as printed, then {}", invocation::current().go_on()))
}

impl ManualRecords {
    /// Returns whether a Challenge that the CA has not been asked to validate waits for a person.
    fn wait_for(self, challenge: &Challenge) -> bool {
        let is_theirs = match challenge.spec.kind {
            ChallengeType::Http01 | ChallengeType::TlsAlpn01 => false,
            ChallengeType::Dns01 | ChallengeType::DnsAccount01 => self == Self::All,
            ChallengeType::DnsPersist01 => {
                self == Self::All || challenge.spec.solver.dns01.is_none()
            }
        };
        is_theirs && !challenge.has_ended() && !is_accepted(challenge)
    }
}

fn is_accepted(challenge: &Challenge) -> bool {
    Memory::read(Holder::Challenge, &challenge.metadata.annotations).accepted_at.is_some()
}

/// Returns the name to which the aliases of a name lead; `None` if the observation shows no records.
fn end_of_aliases(look: &Observation) -> Option<String> {
    match &look.seen {
        CheckResult::Records { name, .. } if !name.is_empty() => Some(name.clone()),
        CheckResult::Handshake { .. }
        | CheckResult::Records { .. }
        | CheckResult::Redirect { .. }
        | CheckResult::Reply { .. }
        | CheckResult::Nothing { .. }
        | CheckResult::NoLook { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::testing::challenge;

    #[test]
    fn only_what_waits_in_the_queue_waits_for_a_person_there() {
        let waiting = challenge("www.example.com").dns01().build();
        let limits = |max_in_flight| Limits { max_in_flight };
        let all = [waiting.clone()];
        assert_eq!(list_queued(&all, limits(0)), [waiting.name()].into());
        assert_eq!(list_queued(&all, limits(1)), BTreeSet::new(), "it starts now");
        assert_eq!(
            list_queued(&[], limits(0)),
            BTreeSet::new(),
            "it was made after the queue was read"
        );
    }
}
