//! Changes seen while objects are followed: which objects a change concerns, and how far each challenge is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::Supervision;
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::verdict::waits::{CertificateWait, Wait};
use crate::hints;
use crate::lead::Other;
use crate::model::{Challenge, Key, Kind, Record, State, Time};
use crate::print::wait::{Wait as ShownWait, WaitEnd};
use crate::store::Change;
use crate::store::resources::typed;

/// Text for a Challenge whose last self-check was an earlier run's.
const CHECKING_AGAIN: &str = "checking again";
/// Longest time that the first self-check of Challenges of an earlier run may take.
const FIRST_CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Most hints that are printed during a run; the others come at the end of the run.
const MAX_HINTS: usize = 6;
/// Place in a Challenge of the reason why it waits.
const REASON: &str = "/status/reason";

impl Supervision {
    /// Prints once that nothing changes while another process drives, and what to do.
    pub(super) fn look_whether_it_moves(&mut self, other: &Other, now: Timestamp) {
        if self.stands || self.moved.elapsed() < self.standstill {
            return;
        }
        self.stands = true;
        let seconds = self.standstill.as_secs();
        self.progress
            .line(&format!("nothing has changed for {seconds} s; driver: {}", other.driver), now);
        self.progress.line(&other.next_step, now);
    }

    /// Shows the step that a Certificate waits for, unless its challenges show that.
    pub(super) fn show_step(&mut self, key: &Key, step: Option<CertificateWait>, now: Timestamp) {
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
            Change::Applied(record) => self.note_change(&record, true),
            Change::Deleted(record) => self.note_change(&record, false),
            Change::Resynced(records) => {
                for record in &records {
                    self.note_change(record, true);
                }
            }
        }
    }

    fn note_change(&mut self, record: &Record, exists: bool) {
        match record.key.kind {
            Kind::Issuer | Kind::ClusterIssuer => self.dirty.extend(self.open.keys().cloned()),
            Kind::Certificate => self.note_change_below(record, exists, record.key.clone()),
            Kind::CertificateRequest if self.open.contains_key(&record.key) => {
                self.note_change_below(record, exists, record.key.clone());
            }
            Kind::CertificateRequest | Kind::Order | Kind::Challenge => {
                let metadata = record.metadata();
                let Some(owner) = metadata.controller() else { return };
                if let Some(certificate) = self.relatives.get(&owner.uid).cloned() {
                    return self.note_change_below(record, exists, certificate);
                }
                // Each kind has a watch of its own, so an object may come before its owner.
                let early = self.early.entry(owner.uid.clone()).or_default();
                early.insert(record.key.clone(), (record.clone(), exists));
            }
            Kind::Event | Kind::Gateway | Kind::Ingress | Kind::ListenerSet | Kind::Secret => {}
        }
    }

    /// Notes a change of a Certificate or of an object below it, and changes of objects below that one that came before.
    fn note_change_below(&mut self, record: &Record, exists: bool, certificate: Key) {
        self.note_movement_of(&certificate);
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
            self.note_change_below(&early, exists, certificate.clone());
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
                // An Issuer's obstacle concerns many; an object that was not seen yet may be below any Certificate.
                None => self.dirty.extend(self.open.keys().cloned()),
            }
        }
    }

    /// Writes the state of a request or an Order, which people see by its Challenges; passes over ends of earlier runs.
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
            // An end that an earlier run left is not shown; the clean-up writes again, but the end is shown once.
            let is_news = status.processing || self.progress.is_waiting(&name);
            if is_news && self.told.insert(challenge.metadata.uid.clone()) {
                // The reason is shown with the Certificate.
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
            if is_old { CHECKING_AGAIN.to_owned() } else { Wait::of(&challenge).sentence() };
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

    /// Returns whether a Challenge had its reason when it was first seen, and no self-check has had time to run since.
    fn is_of_an_earlier_run(&mut self, record: &Record) -> bool {
        let is_first = self.seen.insert(record.uid().to_owned());
        if self.looking.elapsed() >= FIRST_CHECK_TIMEOUT || record.text(REASON).is_empty() {
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

    /// Shows the reasons of an earlier run that no self-check has replaced: these reasons still apply.
    pub(super) fn confirm_old_reasons(&mut self) {
        if self.looking.elapsed() >= FIRST_CHECK_TIMEOUT {
            for record in std::mem::take(&mut self.unconfirmed).into_values() {
                self.show(&record, true);
            }
        }
    }

    /// Prints hints against obstacles that have lasted for a while, each hint once.
    pub(super) fn hint(&mut self, now: Timestamp) {
        let patience = self.standstill / 2;
        for (key, blocker) in &self.blockers {
            let since = *self.blocked.entry(key.clone()).or_insert_with(Instant::now);
            let Some(step) = blocker.next_step.as_ref().filter(|_| since.elapsed() >= patience)
            else {
                continue;
            };
            for line in hints::lines(step) {
                if self.hinted.len() < MAX_HINTS && self.hinted.insert(line.clone()) {
                    self.progress.hint(&line, now);
                }
            }
        }
        self.blocked.retain(|key, _| self.blockers.contains_key(key));
    }

    /// Returns whether a Challenge was seen below that Certificate.
    pub(super) fn is_below(&self, challenge: &Challenge, certificate: &Key) -> bool {
        let owner = challenge.metadata.controller();
        owner.and_then(|owner| self.relatives.get(&owner.uid)) == Some(certificate)
    }

    fn note_movement_of(&mut self, certificate: &Key) {
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
    use crate::print::talk::MessageStream;
    use crate::store::memory::MemoryStore;

    fn key(kind: Kind, name: &str) -> Key {
        Key::new(kind, ObjectName::new("web", name))
    }

    /// Follows two Certificates, and has seen an Order below the first.
    fn supervision() -> Supervision {
        let open = ["a", "b"]
            .map(|name| (key(Kind::Certificate, name), Tracked { since: None, inherited: None }));
        let progress = Progress::lines(MessageStream::new(Box::new(std::io::sink())));
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
