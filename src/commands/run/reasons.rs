//! `run` reports why issuers, Orders and Challenges wait: once for each change of the reason, not at every try.
//!
//! A reason is printed a second after it came, and each text at most once a minute, so that a journal stays readable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::select_all;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::controllers::obstacles::{Obstacle, Obstacles};
use crate::model::common::condition;
use crate::model::memory::{Holder, Memory};
use crate::model::{Challenge, ConditionStatus, Issuer, Key, Kind, Order, Record, State};
use crate::print::progress::Progress;
use crate::reconcile::without_moment;
use crate::store::resources::typed;
use crate::store::{Change, Scope, Store};

/// Kinds whose status has the reason of a wait.
const KINDS: [Kind; 4] = [Kind::Issuer, Kind::ClusterIssuer, Kind::Order, Kind::Challenge];
/// Interval at which reasons are printed; a reason that passes within an interval gets no line.
const PRINT_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two lines of one object with the same text, since reasons may take turns.
const REPEAT_PAUSE: SignedDuration = SignedDuration::from_mins(1);

/// Reports reasons until the watch of the store ends; `follow` reports faults of the store.
pub async fn tell(
    store: &Arc<dyn Store>,
    obstacles: watch::Receiver<Obstacles>,
    mut progress: Progress,
) {
    let mut changes = select_all(KINDS.map(|kind| store.watch(kind, Scope::all())));
    let mut reasons = Reasons::default();
    let mut tick = interval(PRINT_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            change = changes.next() => match change {
                Some(Ok(Change::Applied(record))) => reasons.observe(record),
                Some(Ok(Change::Resynced(records))) => {
                    for record in records {
                        reasons.observe(record);
                    }
                }
                Some(Ok(Change::Deleted(record))) => reasons.forget(&record.key),
                Some(Err(error)) => tracing::debug!(%error, "cannot watch these reasons"),
                None => return std::future::pending().await,
            },
            _ = tick.tick() => {
                let now = Timestamp::now();
                for line in reasons.news(&obstacles.borrow(), now) {
                    progress.line(&line, now);
                }
            }
        }
    }
}

/// Known reasons of objects.
#[derive(Debug, Default)]
struct Reasons {
    known: BTreeMap<Key, ReportedReason>,
    /// Objects whose reason differs from the reason that was printed last.
    fresh: BTreeSet<Key>,
}

#[derive(Debug, Default)]
struct ReportedReason {
    /// Present reason.
    reason: String,
    /// Present reason without the time of the next try.
    text: String,
    /// Printed texts, with their times.
    told: BTreeMap<String, Timestamp>,
    /// Text that was printed last.
    last: String,
}

impl Reasons {
    fn observe(&mut self, record: Record) {
        let key = record.key.clone();
        let Some((reason, next_try)) = reason(record) else { return self.forget(&key) };
        let known = self.known.entry(key.clone()).or_default();
        without_moment(&reason, next_try).clone_into(&mut known.text);
        known.reason = reason;
        if known.text == known.last {
            self.fresh.remove(&key);
        } else {
            self.fresh.insert(key);
        }
    }

    fn forget(&mut self, key: &Key) {
        self.known.remove(key);
        self.fresh.remove(key);
    }

    /// Lines for unprinted reasons. Reasons that need a person are printed with the obstacles, with a hint.
    fn news(&mut self, obstacles: &Obstacles, now: Timestamp) -> Vec<String> {
        let mut lines = Vec::new();
        let known = &mut self.known;
        self.fresh.retain(|key| {
            let Some(known) = known.get_mut(key) else { return false };
            known.told.retain(|_, at| now.duration_since(*at) < REPEAT_PAUSE);
            if known.told.contains_key(&known.text) {
                return true;
            }
            if !obstacles.get(key).is_some_and(Obstacle::stays) {
                lines.push(format!("{key}: {}", known.reason));
            }
            known.told.insert(known.text.clone(), now);
            known.last.clone_from(&known.text);
            false
        });
        lines
    }
}

/// Reason why an object waits or has failed, with the time of the next try; `None` for a Challenge in the queue.
fn reason(record: Record) -> Option<(String, Option<Timestamp>)> {
    let annotations = record.metadata().annotations;
    let (reason, holder) = match record.key.kind {
        Kind::Issuer | Kind::ClusterIssuer => {
            let issuer: Issuer = typed(record).ok()?;
            let ready = condition(&issuer.status.conditions, "Ready")?;
            let message = (ready.status != ConditionStatus::True).then(|| ready.message.clone())?;
            (message, Holder::Issuer)
        }
        Kind::Order => (typed::<Order>(record).ok()?.status.reason, Holder::Order),
        Kind::Challenge => {
            let status = typed::<Challenge>(record).ok()?.status;
            let is_queued = !status.processing && !status.state.is_some_and(State::is_final);
            ((!is_queued).then_some(status.reason)?, Holder::Challenge)
        }
        Kind::Certificate
        | Kind::CertificateRequest
        | Kind::Event
        | Kind::Gateway
        | Kind::Ingress
        | Kind::ListenerSet
        | Kind::Secret => return None,
    };
    let next_try = Memory::read(holder, &annotations).next_try;
    (!reason.is_empty()).then_some((reason, next_try))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::ReconcileError;
    use crate::reconcile::testing::at;
    use crate::solvers::SolveError;

    /// A Challenge under way that says so.
    fn challenge(reason: &str, processing: bool) -> Record {
        let object = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge",
            "metadata": {"name": "c", "namespace": "web"},
            "spec": {
                "url": "", "authorizationURL": "", "dnsName": "www.example.com", "type": "HTTP-01", "token": "",
                "key": "", "solver": {"http01": {}}, "issuerRef": {"name": "acme"},
            },
            "status": {"state": "pending", "processing": processing, "reason": reason},
        });
        Record::new(object).unwrap()
    }

    /// Tells what is told of a Challenge that shows these reasons, each at its second.
    fn check(seen: &[(i64, &str)], expected: &[(i64, &str)]) {
        let seen: Vec<_> = seen.iter().map(|(at, reason)| (*at, *reason, None)).collect();
        check_tries(&seen, expected);
    }

    /// Tells the same where reasons name the moment of the next try.
    fn check_tries(seen: &[(i64, &str, Option<Timestamp>)], expected: &[(i64, &str)]) {
        let mut reasons = Reasons::default();
        let mut told = Vec::new();
        for (second, reason, next_try) in seen {
            let mut record = challenge(reason, true);
            let mut annotations = BTreeMap::new();
            let memory = Memory { next_try: *next_try, ..Memory::default() };
            memory.write(Holder::Challenge, &mut annotations);
            record.object["metadata"]["annotations"] = json!(annotations);
            reasons.observe(record);
            let lines = reasons.news(&Obstacles::new(), at(*second));
            told.extend(lines.into_iter().map(|line| (*second, line)));
        }
        let expected = expected.iter().map(|(at, text)| (*at, format!("Challenge web/c: {text}")));
        assert_eq!(told, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_reason_is_told_when_it_changes() {
        check(&[(0, "a"), (10, "a"), (100, "a"), (110, "b")], &[(0, "a"), (110, "b")]);
    }

    #[test]
    fn reasons_that_take_turns_are_told_once_a_minute_and_the_last_one_stands() {
        check(
            &[(0, "a"), (10, "b"), (20, "a"), (30, "b"), (40, "a"), (50, "a"), (60, "a")],
            &[(0, "a"), (10, "b"), (60, "a")],
        );
    }

    #[test]
    fn another_moment_of_the_next_try_is_no_news() {
        let refused = |second| {
            let at = at(second);
            (format!("429 too many; next try at {at:.0}"), Some(at))
        };
        let ((first, soon), (second, later)) = (refused(60), refused(180));
        check_tries(
            &[(0, &first, soon), (100, &second, later), (200, "c", None)],
            &[(0, &first), (200, "c")],
        );
    }

    #[test]
    fn what_waits_for_its_turn_is_not_told() {
        let mut reasons = Reasons::default();
        reasons.observe(challenge("waiting for a free slot", false));
        assert!(reasons.news(&Obstacles::new(), at(0)).is_empty());
    }

    #[test]
    fn what_takes_a_person_is_left_to_the_obstacles() {
        let mut reasons = Reasons::default();
        let record = challenge("no such zone", true);
        let [what, why] = ["cannot publish", "no such zone"].map(str::to_owned);
        let error = SolveError::lasting(what, why);
        let error = Arc::new(ReconcileError::from(error));
        let obstacle = Obstacle { error, since: at(0), next_try: at(9), tries: 1 };
        let obstacles = Obstacles::from([(record.key.clone(), obstacle)]);
        reasons.observe(record);
        assert!(reasons.news(&obstacles, at(0)).is_empty());
    }
}
