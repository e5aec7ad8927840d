//! What is seen while objects are followed: whom a change concerns, and how far each challenge is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::Supervision;
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::verdict::waits::{Step, Wait};
use crate::hints;
use crate::lead::Other;
use crate::model::{Challenge, Key, Kind, Record, State, Time};
use crate::print::wait::{Wait as ShownWait, WaitEnd};
use crate::store::Change;
use crate::store::resources::typed;

/// What is said of a Challenge whose last look was an earlier run's.
const LOOKING_AGAIN: &str = "looking again";
/// How long the first look at what an earlier run has left may take.
const FIRST_LOOK: Duration = Duration::from_secs(10);
/// Hints of a run at most; the rest comes at its end.
const HINTS: usize = 6;
/// Where a Challenge says why it waits.
const REASON: &str = "/status/reason";

impl Supervision {
    /// Says once that nothing moves while somebody else drives, and what to do.
    pub(super) fn look_whether_it_moves(&mut self, other: &Other, now: Timestamp) {
        if self.stands || self.moved.elapsed() < self.standstill {
            return;
        }
        self.stands = true;
        let seconds = self.standstill.as_secs();
        self.progress
            .line(&format!("nothing has moved for {seconds} s; driver: {}", other.driver), now);
        self.progress.line(&other.next_step, now);
    }

    /// Shows what a Certificate waits for, unless its challenges do.
    pub(super) fn show_step(&mut self, key: &Key, step: Option<Step>, now: Timestamp) {
        let Some(step) = step else {
            self.steps.remove(key);
            self.progress.forget(&key.to_string());
            return;
        };
        let waits_for = format!("waiting for {}", step.waits_for);
        let wait = ShownWait {
            kind: key.kind,
            object: Some(key.name.clone()),
            label: key.to_string(),
            state: "on its way".to_owned(),
            in_short: format!("waiting for {}", step.in_short),
            waits_for,
            is_obstacle: false,
            since: self.started,
            until: None,
        };
        self.progress.waiting(&key.to_string(), wait, now);
        self.steps.insert(key.clone(), step);
    }

    /// Notes which followed objects a change concerns, and shows challenges.
    pub(super) fn saw(&mut self, change: Change) {
        match change {
            Change::Applied(record) => self.concerns(&record, true),
            Change::Deleted(record) => self.concerns(&record, false),
            Change::Resynced(records) => {
                for record in &records {
                    self.concerns(record, true);
                }
            }
        }
    }

    fn concerns(&mut self, record: &Record, exists: bool) {
        match record.key.kind {
            Kind::Issuer | Kind::ClusterIssuer => self.dirty.extend(self.open.keys().cloned()),
            Kind::Certificate => self.is_below_certificate(record, exists, record.key.clone()),
            Kind::CertificateRequest if self.open.contains_key(&record.key) => {
                self.is_below_certificate(record, exists, record.key.clone());
            }
            Kind::CertificateRequest | Kind::Order | Kind::Challenge => {
                let metadata = record.metadata();
                let Some(owner) = metadata.controller() else { return };
                if let Some(certificate) = self.relatives.get(&owner.uid).cloned() {
                    return self.is_below_certificate(record, exists, certificate);
                }
                // Kinds are watched side by side.
                let early = self.early.entry(owner.uid.clone()).or_default();
                early.insert(record.key.clone(), (record.clone(), exists));
            }
            Kind::Event | Kind::Gateway | Kind::Ingress | Kind::ListenerSet | Kind::Secret => {}
        }
    }

    /// Notes a change of a Certificate or of what hangs below it, and of what was seen below that before.
    fn is_below_certificate(&mut self, record: &Record, exists: bool, certificate: Key) {
        self.notes_movement_of(&certificate);
        self.relatives.insert(record.uid().to_owned(), certificate.clone());
        self.certificates.insert(record.key.clone(), certificate.clone());
        if self.open.contains_key(&certificate) {
            match record.key.kind {
                Kind::Challenge => self.show(record, exists),
                Kind::CertificateRequest | Kind::Order if exists => self.write_step(record),
                _ => {}
            }
        }
        for (early, exists) in
            self.early.remove(record.uid()).into_iter().flat_map(BTreeMap::into_values)
        {
            self.is_below_certificate(&early, exists, certificate.clone());
        }
        self.dirty.insert(certificate);
    }

    /// Notes which followed objects are concerned by obstacles that have come, gone or changed.
    pub(super) fn saw_obstacles(&mut self, now: Obstacles) {
        let before = std::mem::replace(&mut self.obstacles, now);
        let gone = before.keys().filter(|key| !self.obstacles.contains_key(key));
        let news = self.obstacles.iter().filter(|(key, now)| {
            !before.get(key).is_some_and(|before| {
                Arc::ptr_eq(&before.error, &now.error) && before.next_try == now.next_try
            })
        });
        for key in gone.chain(news.map(|(key, _)| key)) {
            let certificate =
                if key.kind == Kind::Certificate { Some(key) } else { self.certificates.get(key) };
            match certificate {
                Some(certificate) => drop(self.dirty.insert(certificate.clone())),
                // An Issuer's concern many; what has not been seen yet may be below any.
                None => self.dirty.extend(self.open.keys().cloned()),
            }
        }
    }

    /// Writes where an object stands of which people are told by its Challenges; what an earlier run has left is old news.
    fn write_step(&self, record: &Record) {
        let made = record.metadata().creation_timestamp.map(Time::timestamp);
        // The store keeps whole seconds.
        let is_ours = made.is_some_and(|made| self.started.duration_since(made).as_secs() < 1);
        let (mut state, mut reason) = (record.text("/status/state"), record.text(REASON));
        let conditions = record.object.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        if let Some(ready) = conditions.find(|condition| condition["type"] == "Ready") {
            state = ready["reason"].as_str().unwrap_or_default();
            reason = ready["message"].as_str().unwrap_or_default();
        }
        if is_ours || !["", "valid", "Issued"].contains(&state) {
            let state = if state.is_empty() { "created" } else { state };
            self.progress.events().step(&record.key, None, (state, reason), Timestamp::now());
        }
    }

    fn show(&mut self, record: &Record, exists: bool) {
        let Ok(challenge) = typed::<Challenge>(record.clone()) else { return };
        let now = Timestamp::now();
        if let Some(hand) = &mut self.by_hand {
            hand.saw(&challenge);
        }
        let (status, name) = (&challenge.status, record.key.to_string());
        let (kind, label) = (Kind::Challenge, challenge.spec.shown_domain());
        let object = Some(&record.key.name);
        let end = |state, is_good| WaitEnd { kind, object, label: &label, state, why: "", is_good };
        if let Some(state) = status.state.filter(|state| state.is_final()) {
            // What an earlier run left is old news; the clean-up writes again, but the end is told once.
            let is_news = status.processing || self.progress.is_waiting(&name);
            if is_news && self.told.insert(challenge.metadata.uid.clone()) {
                // Why is told with the Certificate.
                let stands = (state.as_str(), &*status.reason);
                self.progress.events().step(&record.key, Some(&label), stands, now);
                self.progress.done(&name, &end(state.as_str(), state == State::Valid), now);
            }
            return;
        }
        if !exists {
            if self.progress.is_waiting(&name) {
                self.progress.done(&name, &end("deleted", false), now);
            }
            return;
        }
        let is_old = self.is_of_an_earlier_run(record);
        let waits_for =
            if is_old { LOOKING_AGAIN.to_owned() } else { Wait::of(&challenge).sentence() };
        let in_short = if is_old { waits_for.clone() } else { Wait::in_short(&challenge) };
        let state = if status.processing { State::Pending.as_str() } else { "queued" }.to_owned();
        let since = challenge.metadata.creation_timestamp.map_or(now, Time::timestamp);
        let object = Some(record.key.name.clone());
        let wait = ShownWait {
            kind,
            object,
            label,
            state,
            waits_for,
            in_short,
            is_obstacle: false,
            since,
            until: None,
        };
        self.progress.waiting(&name, wait, now);
    }

    /// Whether the reason of a Challenge was there when it was first seen, and nobody has had time to look again.
    fn is_of_an_earlier_run(&mut self, record: &Record) -> bool {
        let is_first = self.seen.insert(record.uid().to_owned());
        if self.looking.elapsed() >= FIRST_LOOK || record.text(REASON).is_empty() {
            self.unconfirmed.remove(&record.key);
            return false;
        }
        if is_first {
            self.unconfirmed.insert(record.key.clone(), record.clone());
            return true;
        }
        let before = self.unconfirmed.get(&record.key);
        let is_old = before.is_some_and(|before| before.text(REASON) == record.text(REASON));
        if !is_old {
            self.unconfirmed.remove(&record.key);
        }
        is_old
    }

    /// Shows the reasons of an earlier run that nobody has replaced: they hold still.
    pub(super) fn confirm_old_reasons(&mut self) {
        if self.looking.elapsed() >= FIRST_LOOK {
            for record in std::mem::take(&mut self.unconfirmed).into_values() {
                self.show(&record, true);
            }
        }
    }

    /// Says what helps against what has stood in the way for a while, once.
    pub(super) fn hint(&mut self, now: Timestamp) {
        let patience = self.standstill / 2;
        for (key, blocker) in &self.blockers {
            let since = *self.blocked.entry(key.clone()).or_insert_with(Instant::now);
            let Some(step) = blocker.next_step.as_ref().filter(|_| since.elapsed() >= patience)
            else {
                continue;
            };
            for line in hints::lines(step) {
                if self.hinted.len() < HINTS && self.hinted.insert(line.clone()) {
                    self.progress.hint(&line, now);
                }
            }
        }
        self.blocked.retain(|key, _| self.blockers.contains_key(key));
    }

    /// Whether a Challenge was seen below that Certificate.
    pub(super) fn is_below(&self, challenge: &Challenge, certificate: &Key) -> bool {
        let owner = challenge.metadata.controller();
        owner.and_then(|owner| self.relatives.get(&owner.uid)) == Some(certificate)
    }

    fn notes_movement_of(&mut self, certificate: &Key) {
        if self.open.contains_key(certificate) {
            self.moved = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;
    use crate::controllers::ReconcileError;
    use crate::controllers::obstacles::Obstacle;
    use crate::issue::follow::supervise::followed;
    use crate::issue::tracked::Tracked;
    use crate::model::ObjectName;
    use crate::print::progress::Progress;
    use crate::print::talk::Talk;
    use crate::store::memory::MemoryStore;

    fn key(kind: Kind, name: &str) -> Key {
        Key::new(kind, ObjectName::new("web", name))
    }

    /// Two Certificates are followed, and an Order below the first has been seen.
    fn supervision() -> Supervision {
        let open = ["a", "b"]
            .map(|name| (key(Kind::Certificate, name), Tracked { since: None, inherited: None }));
        let progress = Progress::lines(Talk::new(Box::new(std::io::sink())));
        let store = Arc::new(MemoryStore::default());
        let times = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + SignedDuration::from_mins(1));
        let mut supervision =
            Supervision::new(followed(store, progress, times, BTreeMap::from(open)));
        let object = |kind: Kind, uid: &str, owner: Option<(Kind, &str)>| {
            let owners = owner.map(|(kind, uid)| {
                json!({
                    "apiVersion": kind.api_version(), "kind": kind.as_str(), "name": "a",
                    "uid": uid, "controller": true,
                })
            });
            let object = json!({
                "apiVersion": kind.api_version(), "kind": kind.as_str(),
                "metadata": {
                    "name": "a", "namespace": "web", "uid": uid,
                    "ownerReferences": owners.into_iter().collect::<Vec<_>>(),
                },
            });
            Change::Applied(Record::new(object).unwrap())
        };
        supervision.saw(object(Kind::Certificate, "1", None));
        let request = object(Kind::CertificateRequest, "2", Some((Kind::Certificate, "1")));
        supervision.saw(request);
        supervision.saw(object(Kind::Order, "3", Some((Kind::CertificateRequest, "2"))));
        supervision.dirty.clear();
        supervision
    }

    fn obstacle(key: &Key, second: i64) -> (Key, Obstacle) {
        let next_try = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        let error = Arc::new(ReconcileError::Missing("nothing".to_owned()));
        (key.clone(), Obstacle { error, since: Timestamp::UNIX_EPOCH, next_try, tries: 1 })
    }

    #[test]
    fn an_obstacle_concerns_whoever_it_stands_in_the_way_of() {
        let [a, b] = ["a", "b"].map(|name| key(Kind::Certificate, name));
        for (at, concerned) in [
            (a.clone(), vec![&a]),
            (b.clone(), vec![&b]),
            (key(Kind::Order, "a"), vec![&a]),
            (key(Kind::CertificateRequest, "a"), vec![&a]),
            (key(Kind::Challenge, "not-seen-yet"), vec![&a, &b]),
            (key(Kind::Issuer, "a"), vec![&a, &b]),
        ] {
            let mut supervision = supervision();
            let first = Obstacles::from([obstacle(&at, 1)]);
            for now in [first, Obstacles::from([obstacle(&at, 2)]), Obstacles::new()] {
                let unchanged = now.clone();
                supervision.saw_obstacles(now);
                assert_eq!(supervision.dirty.iter().collect::<Vec<_>>(), concerned, "{at}");
                supervision.dirty.clear();
                supervision.saw_obstacles(unchanged);
                assert!(supervision.dirty.is_empty(), "{at}: {:?}", supervision.dirty);
            }
        }
    }
}
