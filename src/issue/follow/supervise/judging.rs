//! Judgement of the followed objects: objects that changed are judged, shown, and ended.
//!
//! A Certificate that failed, or is deleted while it is worked on, is followed for up to 10 s more while our
//! controllers remove its answers, solver objects and keys, and any that remain are named: none may stay behind a
//! one-shot command.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::{MAX_JUDGED_AT_ONCE, Supervision, Workers, passing};
use crate::context::failure::Failure;
use crate::controllers::ReconcileError;
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::case::chain::{Chain, issuer_key};
use crate::diagnosis::verdict::blocker::{Blocker, beyond};
use crate::diagnosis::verdict::caa_refusal::CaaRefusal;
use crate::diagnosis::verdict::failed::Failed;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::next_step::NextStep;
use crate::diagnosis::verdict::waits::{CertificateWait, step_at_challenge};
use crate::diagnosis::verdict::{Verdict, advice, judge_issuer, of_obstacle, of_run};
use crate::hints::invocation;
use crate::issue::plan::renewal::try_mark_for_renewal;
use crate::issue::tracked::{End, Tracked};
use crate::model::{Challenge, Issuer, Key, Kind, ObjectName};
use crate::objects::chain;
use crate::objects::own_request::certificate_of;
use crate::print::wait::{Wait as ShownWait, WaitEnd};
use crate::store::Scope;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Longest time that a failed Certificate is followed while its answers and its temporary key are removed.
const REMOVAL_TIME_MAX: SignedDuration = SignedDuration::from_secs(10);
/// Longest time of the last reads of the store when time is up, for all open objects together.
const LAST_READS_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for the directory of the CA.
const DIRECTORY_TIMEOUT: Duration = Duration::from_secs(10);

impl Supervision {
    /// Judges objects that changed, up to a limit; at the deadline every open object ends. Objects that could not be read
    /// are judged later.
    pub(super) async fn judge(
        &mut self,
        obstacles: &watch::Receiver<Obstacles>,
        has_ended: bool,
    ) -> Result<(), Failure> {
        let now = Timestamp::now();
        let obstacles = obstacles.borrow().clone();
        if has_ended && self.workers == Workers::Ours {
            // An object whose remains were being removed has failed, and is not just late.
            self.workers = Workers::Gone;
            self.dirty.extend(self.open.keys().cloned());
        }
        let is_late = now >= self.deadline || has_ended;
        let mut room = if is_late { usize::MAX } else { MAX_JUDGED_AT_ONCE };
        while room > 0
            && !self.is_away()
            && let Some(key) = self.dirty.pop_first()
        {
            if !self.open.contains_key(&key) {
                continue;
            }
            room -= 1;
            if let Err(error) = self.judge_one(&key, &obstacles, now).await {
                passing(error)?;
                self.away = Some(Instant::now());
                self.dirty.insert(key);
            }
        }
        if let Err(error) = self.hand_over(now).await {
            passing(error)?;
        }
        if is_late {
            let last_looks_end = Instant::now() + LAST_READS_TIMEOUT;
            for key in self.open.keys().cloned().collect::<Vec<_>>() {
                let failure = self.late_failure(&key, last_looks_end).await;
                self.end(&key, End::Failed(failure), now);
            }
        }
        Ok(())
    }

    async fn judge_one(
        &mut self,
        key: &Key,
        obstacles: &Obstacles,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let verdict = match self.verdict(key, obstacles, now).await {
            // The controllers wait until the server is back, and so do we.
            Err(error) if error.may_pass() => {
                self.show_blocker(key, Blocker::of_store(key, &error), now);
                return Err(error);
            }
            // Only this object is left alone; the others go on.
            Err(error @ StoreError::Unreadable { .. }) => {
                self.end(key, End::Failed(error.into()), now);
                return Ok(());
            }
            verdict => verdict?,
        };
        let Some((verdict, step)) = verdict else { return self.end_deleted(key, now).await };
        match verdict {
            Verdict::Issued => self.end(key, End::Done(now), now),
            Verdict::Failed(failed) => self.end_failed(key, failed, now).await?,
            Verdict::Waiting(None) => {
                self.blockers.remove(key);
                self.show_step(key, step, now);
            }
            Verdict::Waiting(Some(blocker)) if self.was_never_reached(key, &blocker).await => {
                let waited = self.standstill.as_secs();
                let message = format!("{}: not reached for {waited} s", blocker.what);
                let failure = Failure::new(blocker.kind, message).held_up_by(&blocker);
                let failure = blocker.next_step.iter().fold(failure, Failure::step);
                self.end(key, End::Failed(self.with_retry_hint(failure)), now);
            }
            Verdict::Waiting(Some(blocker)) => self.show_blocker(key, blocker, now),
        }
        Ok(())
    }

    /// Returns whether our controllers still remove what a failure left, and have time for it; notes when that began.
    fn is_cleaning_up(
        &mut self,
        key: &Key,
        chain: &Chain,
        obstacles: &Obstacles,
        now: Timestamp,
    ) -> bool {
        let is_held_up = || chain.keys().iter().any(|key| obstacles.contains_key(key));
        let has_ended = self.workers != Workers::Ours || now >= self.deadline;
        if has_ended || !chain.is_clearing_up() || is_held_up() {
            self.clearing.remove(key);
            return false;
        }
        let since = *self.clearing.entry(key.clone()).or_insert(now);
        now.duration_since(since) < REMOVAL_TIME_MAX
    }

    /// Ends an object that was deleted; before that, our controllers have time to remove answers of the objects below it.
    async fn end_deleted(&mut self, key: &Key, now: Timestamp) -> Result<(), StoreError> {
        let left = if key.kind.is_issued() { self.challenges_left(key).await? } else { Vec::new() };
        let since = *self.clearing.entry(key.clone()).or_insert(now);
        let is_early = now < self.deadline && now.duration_since(since) < REMOVAL_TIME_MAX;
        if !left.is_empty() && self.workers == Workers::Ours && is_early {
            return Ok(());
        }
        self.clearing.remove(key);
        let message = format!("{key} was deleted while it was worked on");
        let failure = Failure::new(FailureKind::Unexpected, message);
        let failure = left.iter().fold(failure, |failure, challenge| {
            let again = invocation::current()
                .like_in(&key.name.namespace, &format!("challenge cleanup {challenge}"));
            failure.hint(format!("Challenge {challenge} is left; to remove its answer: {again}"))
        });
        self.end(key, End::Failed(failure), now);
        Ok(())
    }

    /// Returns the Challenges of a Certificate that is gone.
    async fn challenges_left(&self, key: &Key) -> Result<Vec<String>, StoreError> {
        let challenges = Resources::<Challenge>::new(Arc::clone(&self.store), Kind::Challenge);
        let mut all = challenges.list(&Scope::namespace(&key.name.namespace).brief()).await?;
        all.retain(|challenge| self.is_below(challenge, key));
        Ok(all.into_iter().map(|challenge| challenge.metadata.name).collect())
    }

    /// Judges an object, and returns the step that it waits for; `None` if the object is gone.
    async fn verdict(
        &mut self,
        key: &Key,
        obstacles: &Obstacles,
        now: Timestamp,
    ) -> Result<Option<(Verdict, Option<CertificateWait>)>, StoreError> {
        if key.kind.is_issued() {
            let since = self.open.get(key).and_then(|followed| followed.since);
            let mut chain = chain::of(&self.store, key).await?;
            let fails =
                |chain: &Chain| matches!(of_run(chain, obstacles, since), Verdict::Failed(_));
            // Changes that another process has just written come by several watches, in any order.
            if self.workers == Workers::Theirs && chain.as_ref().is_some_and(fails) {
                chain = chain::read_anew(&self.store, key).await?;
            }
            return Ok(chain.map(|chain| {
                let verdict = match of_run(&chain, obstacles, since) {
                    Verdict::Waiting(None) => Verdict::Waiting(beyond(&chain, self.deadline)),
                    Verdict::Failed(_) if self.is_cleaning_up(key, &chain, obstacles, now) => {
                        Verdict::Waiting(None)
                    }
                    verdict => verdict,
                };
                (verdict, self.step_beside(&chain))
            }));
        }
        let issuers = Resources::<Issuer>::new(Arc::clone(&self.store), key.kind);
        let Some(issuer) = issuers.get(&key.name).await? else { return Ok(None) };
        let verdict = match obstacles.get(key) {
            Some(obstacle) => of_obstacle(key, obstacle, key),
            None if (self.is_ready)(&issuer) => Verdict::Issued,
            None => judge_issuer(key, &issuer).unwrap_or(Verdict::Waiting(None)),
        };
        Ok(Some((verdict, None)))
    }

    /// Ends a Certificate that failed. If an earlier run made the order and this run has done nothing for it, the
    /// Certificate is tried anew, once: one run costs a name one failed validation.
    async fn end_failed(
        &mut self,
        key: &Key,
        mut failed: Failed,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(followed) = self.open.get_mut(key) else { return Ok(()) };
        let tried = failed.order.as_ref();
        if followed.inherited.take().is_some_and(|before| before.is_left_as_it_was(tried)) {
            try_mark_for_renewal(&self.store, &key.name).await?;
            self.clearing.remove(key);
            self.progress.line(&format!("{key}: trying again after: {}", failed.message), now);
            return Ok(());
        }
        let (order, excluded) = (failed.order.take(), failed.excluded.take());
        let failure = Failure::from(failed);
        let failure = match excluded {
            Some(excluded) => self.advise(&excluded, failure).await,
            None => failure,
        };
        let failure = match order.filter(|_| self.is_kept) {
            Some(order) => {
                let order = ObjectName::new(&key.name.namespace, &order.name);
                let failure = failure.step(&NextStep::DescribeOrder(order));
                match key.kind {
                    Kind::Certificate => failure.step(&NextStep::Timeline(key.name.clone())),
                    _ => failure,
                }
            }
            None => failure,
        };
        self.end(key, End::Failed(failure), now);
        Ok(())
    }

    /// Shows an obstacle; an obstacle that lasts beyond the deadline ends the Certificate at once.
    fn show_blocker(&mut self, key: &Key, blocker: Blocker, now: Timestamp) {
        let too_late = |until: &Timestamp| blocker.named_by_ca && *until > self.deadline;
        if let Some(until) = blocker.until.filter(too_late) {
            let failure = Failure::new(blocker.kind, blocker.what.clone()).hint(format!(
                "run the same command again after {until:.0}, or with a longer --timeout: it goes on where it stopped"
            ));
            let failure = failure.held_up_by(&blocker).late();
            self.end(key, End::Failed(failure), now);
            return;
        }
        let name = key.to_string();
        // A challenge's own reason is shown with the challenge.
        if blocker.of != Kind::Challenge || blocker.kind != FailureKind::Timeout {
            let wait = ShownWait {
                kind: key.kind,
                object: Some(key.name.clone()),
                label: name.clone(),
                state: "held up".to_owned(),
                waits_for: blocker.what.clone(),
                in_short: blocker.what.clone(),
                is_obstacle: true,
                since: self.started,
                // The moment of our next try is no end of the obstacle.
                until: blocker.until.filter(|_| blocker.named_by_ca),
            };
            self.progress.waiting(&name, wait, now);
        } else {
            self.progress.forget(&name);
        }
        self.steps.remove(key);
        self.blockers.insert(key.clone(), blocker);
    }

    async fn late_failure(&self, key: &Key, last_looks_end: Instant) -> Failure {
        let wait = self.deadline.duration_since(self.started);
        let failure = if let Some(blocker) = self.blockers.get(key) {
            let message = format!("{key} is not done after {wait:#}: {}", blocker.what);
            let failure = Failure::new(blocker.kind, message).held_up_by(blocker);
            blocker.next_step.iter().fold(failure, Failure::step)
        } else if let Ok(Some((issuer, error))) =
            timeout_at(last_looks_end, self.silent_ca(key)).await
        {
            let message = format!("{key} is not done after {wait:#}: {issuer}: {error}");
            let step = advice::for_error(&error, &issuer);
            step.iter().fold(Failure::new(FailureKind::of_error(&error), message), Failure::step)
        } else {
            let step = match self.steps.get(key) {
                Some(step) => Some(step.clone()),
                None => timeout_at(last_looks_end, self.last_step(key)).await.ok().flatten(),
            };
            let why =
                step.as_ref().map_or(String::new(), |s| format!(": it waits for {}", s.waits_for));
            let message = format!("{key} is not done after {wait:#}{why}");
            let next = step.iter().flat_map(|step| step.next_step.iter());
            next.fold(Failure::new(FailureKind::Timeout, message), Failure::step)
        };
        self.with_retry_hint(failure.late())
    }

    /// Adds the hint to run the command again, if the work is kept.
    fn with_retry_hint(&self, failure: Failure) -> Failure {
        if self.is_kept {
            failure.hint("run the same command again: it goes on where it stopped")
        } else {
            failure
        }
    }

    /// Marks objects to be judged again whose CA could not be reached at all since this run began.
    pub(super) fn give_up_silent_cas(&mut self) {
        if self.looking.elapsed() < self.standstill {
            return;
        }
        let is_silent = |blocker: &Blocker| blocker.kind == FailureKind::CaUnreachable;
        let silent = self.blockers.iter().filter(|(_, blocker)| is_silent(blocker));
        let anew = silent.map(|(key, _)| key).filter(|key| self.given_up.insert((*key).clone()));
        self.dirty.extend(anew.cloned());
    }

    /// Returns whether the CA of an object has answered no request of this run, and has had time to.
    async fn was_never_reached(&self, key: &Key, blocker: &Blocker) -> bool {
        if blocker.kind != FailureKind::CaUnreachable || self.looking.elapsed() < self.standstill {
            return false;
        }
        let Some(clients) = &self.clients else { return false };
        self.authority(key).await.is_some_and(|(_, server)| !clients.has_answered(&server))
    }

    /// Returns the issuer of an object whose CA has left a request unanswered, and the error of that request.
    async fn silent_ca(&self, key: &Key) -> Option<(Key, ReconcileError)> {
        let clients = self.clients.as_ref()?;
        let (issuer, server) = self.authority(key).await?;
        Some((issuer, clients.silence(&server)?.into()))
    }

    /// Returns the issuer of an object, and the directory URL of its CA.
    async fn authority(&self, key: &Key) -> Option<(Key, String)> {
        let issuer = if key.kind.is_issued() {
            issuer_key(&certificate_of(&self.store.get(key).await.ok()??).ok()?)?
        } else {
            key.clone()
        };
        let issuers = Resources::<Issuer>::new(Arc::clone(&self.store), issuer.kind);
        let acme = issuers.get(&issuer.name).await.ok()??.spec.acme?;
        Some((issuer, acme.server))
    }

    /// Returns the step of a Certificate when time was up and nothing had failed; `None` if the store does not show a step.
    async fn last_step(&self, key: &Key) -> Option<CertificateWait> {
        if !key.kind.is_issued() {
            return None;
        }
        let chain = chain::of(&self.store, key).await.ok()??;
        self.step_beside(&chain).or_else(|| step_at_challenge(&chain))
    }

    /// Adds hints against CAA records that exclude the CA; if this process drives, with the names in the CA's directory.
    async fn advise(&self, excluded: &CaaRefusal, failure: Failure) -> Failure {
        let mut identities = Vec::new();
        if let (Some(clients), Some((server, tls))) = (&self.clients, excluded.ca())
            && let Ok(Ok(directory)) =
                timeout(DIRECTORY_TIMEOUT, clients.directory(server, tls)).await
        {
            identities.clone_from(&directory.caa_identities);
        }
        let steps = excluded.steps(&identities).into_iter().map(NextStep::Caa);
        steps.fold(failure, |failure, step| failure.step(&step))
    }

    pub(super) fn end(&mut self, key: &Key, end: End, now: Timestamp) {
        let was_due = self.open.get(key).is_some_and(Tracked::is_due);
        let state = end.word(key.kind, was_due);
        let name = key.to_string();
        let is_good = matches!(end, End::Done(_));
        let object = Some(&key.name);
        let told = WaitEnd { kind: key.kind, object, label: &name, state, why: "", is_good };
        if let End::Failed(failure) | End::ByHand(failure, _) = &end {
            self.progress.events().step(key, None, (state, &failure.message), now);
        }
        self.progress.done(&name, &told, now);
        self.blockers.remove(key);
        self.open.remove(key);
        self.ends.insert(key.clone(), end);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use async_trait::async_trait;
    use futures_util::StreamExt as _;
    use futures_util::future::{FutureExt as _, pending};
    use futures_util::stream::BoxStream;
    use serde_json::{Value, json};

    use super::*;
    use crate::issue::follow::supervise::{FollowEnd, OtherDriver, followed};
    use crate::lead::{Other, Program};
    use crate::model::Record;
    use crate::print::progress::Progress;
    use crate::print::talk::MessageStream;
    use crate::store::cluster_fault::ClusterFault;
    use crate::store::memory::MemoryStore;
    use crate::store::mirror::Mirror;
    use crate::store::testing::Front;
    use crate::store::{Change, Part, Store};

    /// Store in memory that hides part of its contents.
    #[derive(Debug)]
    enum Keeping {
        /// Store whose watches report existing objects, and no later changes of objects below a Certificate.
        Changes(MemoryStore),
        /// Store in which objects below a Certificate may be watched, and not be read one by one.
        Objects(MemoryStore),
    }

    impl Keeping {
        fn all(&self) -> &MemoryStore {
            let (Self::Changes(store) | Self::Objects(store)) = self;
            store
        }
    }

    #[async_trait]
    impl Front for Keeping {
        fn behind(&self) -> &dyn Store {
            self.all()
        }
        async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
            match (self, key.kind) {
                (Self::Changes(_), _) | (_, Kind::Certificate | Kind::Issuer) => {
                    self.all().get(key).await
                }
                (Self::Objects(_), _) => {
                    Err(StoreError::Cluster(Box::new(ClusterFault::Forbidden {
                        verb: "get",
                        resource: key.kind.to_string(),
                        namespace: None,
                        said: String::new(),
                    })))
                }
            }
        }
        fn watch(
            &self,
            kind: Kind,
            scope: Scope,
        ) -> BoxStream<'static, Result<Change, StoreError>> {
            let changes = self.all().watch(kind, scope);
            match (self, kind) {
                (Self::Objects(_), _) | (_, Kind::Certificate) => changes,
                _ => changes.take(1).chain(pending().into_stream()).boxed(),
            }
        }
    }

    async fn create(store: &dyn Store, kind: Kind, owner: Option<&Record>, spec: Value) -> Record {
        let owners: Vec<Value> = owner
            .map(|owner| {
                json!({
                    "apiVersion": owner.key.kind.api_version(), "kind": owner.key.kind.as_str(),
                    "name": owner.key.name.name, "uid": owner.uid(), "controller": true,
                })
            })
            .into_iter()
            .collect();
        let object = json!({
            "apiVersion": kind.api_version(), "kind": kind.as_str(),
            "metadata": {"name": "web", "namespace": "web", "ownerReferences": owners},
            "spec": spec,
        });
        store.create(Record::new(object).unwrap()).await.unwrap()
    }

    async fn status(store: &dyn Store, key: &Key, status: Value) {
        let mut record = store.get(key).await.unwrap().unwrap();
        record.object["status"] = status;
        store.replace(record, Part::Status).await.unwrap();
    }

    /// Follows a Certificate beside cert-manager, whose Order fails. The Order is made before the watches begin, or as late
    /// as it fails; the Certificate ends with that failure, in whichever order the changes come.
    async fn check(keeping: fn(MemoryStore) -> Keeping, is_made_late: bool) {
        let keeping = Arc::new(keeping(MemoryStore::default()));
        let store = keeping.all();
        let issuer_ref = json!({"name": "web"});
        let acme = json!({"server": "https://ca.example", "privateKeySecretRef": {"name": "key"}, "solvers": []});
        create(store, Kind::Issuer, None, json!({"acme": acme})).await;
        let spec = json!({"secretName": "web-tls", "issuerRef": issuer_ref, "dnsNames": ["www.example.com"]});
        let certificate = create(store, Kind::Certificate, None, spec).await;
        let issuing = json!({"conditions": [{"type": "Issuing", "status": "True", "reason": "", "message": ""}]});
        status(store, &certificate.key, issuing).await;
        let spec = json!({"request": "", "issuerRef": issuer_ref});
        let request =
            create(store, Kind::CertificateRequest, Some(&certificate), spec.clone()).await;
        let mirror: Arc<dyn Store> = Arc::new(Mirror::new(keeping.clone()));
        if is_made_late {
            mirror.watch(Kind::Order, Scope::all()).next().await.unwrap().unwrap();
        }
        let order = create(store, Kind::Order, Some(&request), spec).await;

        let progress = Progress::lines(MessageStream::new(Box::new(std::io::sink())));
        let now = Timestamp::now();
        let times = (now, now + SignedDuration::from_mins(1));
        let tracked = Tracked { since: Some(0), inherited: None };
        let open = BTreeMap::from([(certificate.key.clone(), tracked)]);
        let mut supervision = Supervision::new(followed(mirror, progress, times, open));
        let [driver, next_step] = Default::default();
        let other = Other { seen: None, program: Program::CertManager, driver, next_step };
        let beside = OtherDriver { other: &other, turn: pending().boxed() };
        let failing = async {
            // Time stands still until everybody waits: they follow it by then.
            tokio::time::sleep(Duration::from_millis(300)).await;
            status(store, &order.key, json!({"state": "invalid", "reason": "refused"})).await;
            let failed = json!({
                "lastFailureTime": "2026-11-22T00:00:00Z",
                "conditions": [{"type": "Issuing", "status": "False", "reason": "Failed", "message": "it has failed"}],
            });
            status(store, &certificate.key, failed).await;
        };
        let (watched, ()) = tokio::join!(supervision.run(None, Some(beside)), failing);
        let FollowEnd::Ended(ends) = watched.unwrap() else { panic!("it has not ended") };
        let End::Failed(failure) = &ends[&certificate.key] else { panic!("{ends:?}") };
        assert_eq!(failure.kind, FailureKind::Validation, "{failure:?}");
        assert_eq!(failure.message, "Certificate web/web was not issued: refused");
    }

    #[tokio::test(start_paused = true)]
    async fn beside_another_driver_a_failure_is_judged_by_what_the_server_holds() {
        check(Keeping::Changes, false).await;
        check(Keeping::Changes, true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn beside_another_driver_a_failure_is_judged_by_the_watches_where_nothing_may_be_read() {
        check(Keeping::Objects, false).await;
        check(Keeping::Objects, true).await;
    }

    #[test]
    fn what_held_a_certificate_up_before_is_not_shown_beside_its_challenge() {
        let key = Key::new(Kind::Certificate, ObjectName::new("web", "web"));
        let progress = Progress::lines(MessageStream::new(Box::new(std::io::sink())));
        let now = Timestamp::now();
        let open = BTreeMap::from([(key.clone(), Tracked::default())]);
        let times = (now, now + SignedDuration::from_mins(1));
        let store = Arc::new(MemoryStore::default());
        let mut supervision = Supervision::new(followed(store, progress, times, open));
        let (server, why) = Default::default();
        let away = ClusterFault::Unreachable { server, why };
        let away = Blocker::of_store(&key, &StoreError::from(away));
        let of_challenge =
            Blocker { of: Kind::Challenge, kind: FailureKind::Timeout, ..away.clone() };
        for (blocker, is_shown) in [(away, true), (of_challenge, false)] {
            supervision.show_blocker(&key, blocker, now);
            assert_eq!(supervision.progress.is_waiting(&key.to_string()), is_shown);
        }
    }
}
