//! Selection of the challenges that may start now, and the obstacle that each other one waits for.
//!
//! cert-manager starts one challenge for a name and type at a time. So does this program, except for challenges of one
//! Order whose values stand side by side at one record (`record_values`): a resolver's cache would hide the second.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::record_values::may_stand_together;
use crate::model::memory::{Holder, Memory};
use crate::model::{Challenge, ChallengeType, ObjectName, State, Time};

/// Time after presentation in which a challenge is on its way, although the first self-checks have not seen the answer.
pub(super) const FIRST_SELF_CHECKS: SignedDuration = SignedDuration::from_secs(2);

/// Limits on how many challenges run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest number of challenges in flight (`--max-concurrent-challenges`).
    pub max_in_flight: usize,
}

impl Default for Limits {
    /// Returns cert-manager's default.
    fn default() -> Self {
        Self { max_in_flight: 60 }
    }
}

/// Obstacle that a queued challenge waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Obstacle {
    /// A slot: all slots are taken.
    Slot {
        /// Number of slots.
        slots: usize,
    },
    /// Another challenge for the same name and type.
    Lock {
        /// Challenge that runs, or that is older.
        holder: ObjectName,
    },
    /// Nothing: the challenge starts at the next change.
    Nothing,
}

impl Obstacle {
    /// Returns the sentence kept in `status.reason`, which does not change while the wait is the same.
    pub fn reason(&self, challenge: &Challenge) -> String {
        match self {
            Self::Slot { slots } => {
                format!("Waiting for a slot: {slots} challenges are being processed")
            }
            Self::Lock { holder } => format!(
                "Waiting for challenge {holder}: one {} challenge for {} at a time",
                challenge.spec.kind, challenge.spec.dns_name
            ),
            Self::Nothing => String::new(),
        }
    }
}

/// One queued challenge.
#[derive(Clone, Debug, PartialEq)]
pub struct Queued<'a> {
    /// The challenge.
    pub challenge: &'a Challenge,
    /// Place among the challenges that wait for the same thing, from 1.
    pub position: usize,
    /// Obstacle of the challenge.
    pub waits: Obstacle,
}

/// Plan for the challenges that have yet to start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan<'a> {
    /// Challenges that may start now: oldest first (whole seconds; ties by DNS name, type, object name), never more
    /// than the limit in flight, and two with the same DNS name and type only if their values may stand together.
    pub admitted: Vec<&'a Challenge>,
    /// Every other challenge with its obstacle, in the order in which they will start.
    pub queue: Vec<Queued<'a>>,
}

/// Plans which challenges start now; running and final challenges are not planned.
pub fn plan<'a>(
    challenges: impl IntoIterator<Item = &'a Challenge> + Clone,
    limits: Limits,
) -> Plan<'a> {
    plan_by(challenges, limits, may_stand_together)
}

/// Plans which challenges cert-manager starts now: never two with the same DNS name and type.
pub fn plan_of_cert_manager<'a>(
    challenges: impl IntoIterator<Item = &'a Challenge> + Clone,
    limits: Limits,
) -> Plan<'a> {
    plan_by(challenges, limits, |_, _| false)
}

fn plan_by<'a>(
    challenges: impl IntoIterator<Item = &'a Challenge> + Clone,
    limits: Limits,
    may_share: fn(&Challenge, &Challenge) -> bool,
) -> Plan<'a> {
    let running = || challenges.clone().into_iter().filter(|c| c.status.processing);
    let mut holders: BTreeMap<Lock<'_>, Vec<&Challenge>> = BTreeMap::new();
    for challenge in running() {
        holders.entry(lock(challenge)).or_default().push(challenge);
    }
    let mut free = limits.max_in_flight.saturating_sub(running().count());
    let mut plan = Plan::default();
    let (mut slots, mut locked) = (0, 0);
    for challenge in waiting(challenges) {
        let holders = holders.entry(lock(challenge)).or_default();
        if let Some(holder) = holders.iter().rfind(|holder| !may_share(challenge, holder)) {
            locked += 1;
            let waits = Obstacle::Lock { holder: holder.name() };
            plan.queue.push(Queued { challenge, position: locked, waits });
            continue;
        }
        holders.push(challenge);
        if free > 0 {
            free -= 1;
            plan.admitted.push(challenge);
            continue;
        }
        slots += 1;
        let waits = Obstacle::Slot { slots: limits.max_in_flight };
        plan.queue.push(Queued { challenge, position: slots, waits });
    }
    plan
}

/// Challenges that run or wait in another one's way, for the decisions of a single challenge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Whether any challenge waits for a slot.
    slot: bool,
    /// Challenges whose name another challenge waits for.
    holders: BTreeSet<ObjectName>,
    /// UIDs of the Orders of which a running challenge is kept from the CA, each with the moment since when.
    kept_back: BTreeMap<String, Timestamp>,
    /// Challenges that wait for their turn and are proved by a record.
    queued_by_record: BTreeSet<ObjectName>,
}

impl Contention {
    /// Collects the obstacles of queued challenges, and the running challenges that are kept from the CA.
    pub fn of<'a>(
        challenges: impl IntoIterator<Item = &'a Challenge>,
        queue: &[Queued<'_>],
    ) -> Self {
        let mut contention = Self::default();
        for challenge in challenges {
            if let (Some(from), Some(owner)) =
                (kept_back_from(challenge), challenge.metadata.controller())
            {
                let known = contention.kept_back.entry(owner.uid.clone()).or_insert(from);
                *known = from.min(*known);
            }
        }
        for queued in queue {
            if queued.challenge.spec.kind.is_by_record() {
                contention.queued_by_record.insert(queued.challenge.name());
            }
            match &queued.waits {
                Obstacle::Slot { .. } => contention.slot = true,
                Obstacle::Lock { holder } => drop(contention.holders.insert(holder.clone())),
                Obstacle::Nothing => {}
            }
        }
        contention
    }

    /// Returns whether a running challenge stands in another one's way.
    pub fn concerns(&self, challenge: &ObjectName) -> bool {
        self.slot || self.holders.contains(challenge)
    }

    /// Returns whether a challenge that is proved by a record waits for its turn.
    pub fn has_queued(&self, challenge: &ObjectName) -> bool {
        self.queued_by_record.contains(challenge)
    }

    /// Returns whether another challenge of the Order with this UID is kept from the CA.
    pub fn keeps_back(&self, order: &str, now: Timestamp) -> bool {
        self.kept_back.get(order).is_some_and(|from| *from <= now)
    }
}

/// Returns since when something, named in its reason, keeps a challenge with a slot from acceptance; `None` if nothing
/// does. A challenge that is seen at one of the first self-checks is on its way.
pub fn kept_back_from(challenge: &Challenge) -> Option<Timestamp> {
    let status = &challenge.status;
    let is_running = status.processing && !status.state.is_some_and(State::is_final);
    if !is_running || status.reason.is_empty() {
        return None;
    }
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    if memory.accepted_at.is_some() {
        return None;
    }
    let presented_at = status.presented_at.map(Time::timestamp);
    presented_at.map_or(Some(Timestamp::MIN), |at| at.checked_add(FIRST_SELF_CHECKS).ok())
}

type Lock<'a> = (&'a str, ChallengeType);

fn lock(challenge: &Challenge) -> Lock<'_> {
    (&challenge.spec.dns_name, challenge.spec.kind)
}

/// Returns all challenges that have yet to start, oldest first.
fn waiting<'a>(challenges: impl IntoIterator<Item = &'a Challenge>) -> Vec<&'a Challenge> {
    let mut waiting: Vec<&Challenge> = challenges
        .into_iter()
        .filter(|c| !c.status.processing && !c.has_ended())
        .filter(|c| !c.metadata.is_deleted())
        .collect();
    waiting.sort_by(|a, b| age(a).cmp(&age(b)));
    waiting
}

fn age(challenge: &Challenge) -> impl Ord + '_ {
    let metadata = &challenge.metadata;
    (metadata.creation_timestamp, lock(challenge), &metadata.namespace, &metadata.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reconcile::testing::{at, challenge};

    fn names(admitted: &[&Challenge]) -> Vec<String> {
        admitted.iter().map(|c| c.metadata.name.clone()).collect()
    }

    fn check(challenges: &[Challenge], max_in_flight: usize, expected: &[&str]) {
        assert_eq!(names(&plan(challenges, Limits { max_in_flight }).admitted), expected);
    }

    #[test]
    fn one_new_challenge_starts() {
        check(&[challenge("a.example").build()], 60, &["a.example"]);
    }

    #[test]
    fn the_oldest_start_first() {
        let all: Vec<Challenge> = (0..10_i64)
            .map(|i| challenge(&format!("n{i}.example")).created_at(100 - i).build())
            .collect();
        check(&all, 3, &["n9.example", "n8.example", "n7.example"]);
    }

    #[test]
    fn never_more_than_the_limit() {
        let all: Vec<Challenge> =
            (0..240).map(|i| challenge(&format!("n{i:03}.example")).build()).collect();
        assert_eq!(plan(&all, Limits::default()).admitted.len(), 60);
        let busy: Vec<Challenge> =
            (0..65).map(|i| challenge(&format!("n{i}.example")).running(i < 60).build()).collect();
        check(&busy, 60, &[]);
    }

    #[test]
    fn a_final_one_does_not_block() {
        let all = [
            challenge("x.example").named("new").build(),
            challenge("x.example").named("old").state(State::Valid).build(),
        ];
        check(&all, 60, &["new"]);
    }

    #[test]
    fn of_equal_names_the_older_starts() {
        let a = challenge("x.example").named("a").created_at(2).build();
        let b = challenge("x.example").named("b").created_at(1).build();
        check(&[a.clone(), b.clone()], 60, &["b"]);
        check(&[b, a], 60, &["b"]);
    }

    #[test]
    fn types_do_not_block_each_other_and_dns_goes_first() {
        let http = challenge("x.example").named("http").build();
        let dns = challenge("x.example").named("dns").dns01().build();
        check(&[http.clone(), dns.clone()], 60, &["dns", "http"]);
        check(&[dns, http], 60, &["dns", "http"]);
    }

    #[test]
    fn a_running_name_blocks_its_wildcard() {
        let all = [
            challenge("x.example").named("wild").dns01().build(),
            challenge("x.example").named("apex").dns01().running(true).build(),
            challenge("y.example").named("other").dns01().build(),
        ];
        check(&all, 60, &["other"]);
    }

    /// A challenge of `x.example` that belongs to that Order, and that a solver with these fields answers.
    fn of_order(name: &str, order: &str, dns01: serde_json::Value) -> Challenge {
        let order = crate::reconcile::testing::order(order).build();
        challenge("x.example")
            .named(name)
            .dns01()
            .change(|c| {
                c.metadata.owner_references = vec![order.owner_reference()];
                c.spec.solver.dns01 = serde_json::from_value(dns01).unwrap();
            })
            .build()
    }

    #[test]
    fn a_wildcard_starts_beside_its_name_where_the_provider_keeps_both_values() {
        let update = || json!({"rfc2136": {"nameserver": "192.0.2.53"}});
        let pair = |other: &str, dns01: serde_json::Value| {
            [of_order("apex", "one", update()), of_order("wild", other, dns01)]
        };
        check(&pair("one", update()), 60, &["apex", "wild"]);
        check(&pair("one", update()), 1, &["apex"]);
        check(&pair("another", update()), 60, &["apex"]);
        let webhook = json!({"webhook": {"groupName": "acme.example", "solverName": "ours"}});
        check(&pair("one", webhook), 60, &["apex"]);
        let alone = plan_of_cert_manager(&pair("one", update()), Limits::default()).queue.len();
        assert_eq!(alone, 1, "cert-manager starts one at a time");
        // Another order waits for both.
        let [mut first, mut second] = pair("one", update());
        (first.status.processing, second.status.processing) = (true, true);
        let third = of_order("third", "another", update());
        let all = [first, second, third];
        let queue = plan(&all, Limits::default()).queue;
        assert!(matches!(&queue[..], [Queued { waits: Obstacle::Lock { .. }, .. }]), "{queue:?}");
        assert!(Contention::of(&all, &queue).has_queued(&all[2].name()));
    }

    #[test]
    fn two_running_ones_of_a_name_start_nothing() {
        let all = [
            challenge("x.example").named("a").running(true).build(),
            challenge("x.example").named("b").running(true).build(),
        ];
        check(&all, 60, &[]);
    }

    #[test]
    fn everyone_in_the_queue_is_told_what_it_waits_for() {
        let all = [
            challenge("x.example").named("first").running(true).created_at(1).build(),
            challenge("x.example").named("second").created_at(2).build(),
            challenge("y.example").named("third").created_at(3).build(),
            challenge("z.example").named("fourth").created_at(4).build(),
        ];
        let queue = plan(&all, Limits { max_in_flight: 1 }).queue;
        let told: Vec<(String, usize, String)> = queue
            .iter()
            .map(|q| (q.challenge.metadata.name.clone(), q.position, q.waits.reason(q.challenge)))
            .collect();
        let slot = "Waiting for a slot: 1 challenges are being processed".to_owned();
        assert_eq!(
            told,
            [
                (
                    "second".to_owned(),
                    1,
                    "Waiting for challenge default/first: one HTTP-01 challenge for x.example \
                     at a time"
                        .to_owned()
                ),
                ("third".to_owned(), 1, slot.clone()),
                ("fourth".to_owned(), 2, slot),
            ]
        );
        assert!(Contention::of(&all, &queue).concerns(&all[0].name()));
    }

    #[test]
    fn an_order_is_known_of_which_a_challenge_is_kept_from_the_ca() {
        let of = |order: &str, reason: &str, accepted_at: Option<i64>| {
            let order = crate::reconcile::testing::order(order).build();
            let memory = Memory { accepted_at: accepted_at.map(at), ..Memory::default() };
            let running = challenge("x.example").running(true).state(State::Pending);
            let running = running.change(|c| {
                reason.clone_into(&mut c.status.reason);
                c.status.presented_at = Some(at(5).into());
                memory.write(Holder::Challenge, &mut c.metadata.annotations);
                c.metadata.owner_references = vec![order.owner_reference()];
            });
            running.build()
        };
        let mut all = [
            of("stuck", "connection refused", None),
            of("on-its-way", "", None),
            of("told", "what it failed with before", Some(1)),
            of("queued", "Waiting for a slot", None),
        ];
        all[3].status.processing = false;
        let contention = Contention::of(&all, &[]);
        let known = ["stuck", "on-its-way", "told", "queued"];
        let at =
            |second| known.map(|name| contention.keeps_back(&format!("uid-{name}"), at(second)));
        // Its first looks may yet see it.
        assert_eq!((at(6), at(7)), ([false; 4], [true, false, false, false]));
    }
}
