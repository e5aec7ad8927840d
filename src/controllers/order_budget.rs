//! Order budget: keeps the ledger in the store before a newOrder goes out, and remembers the result of each newOrder.
//!
//! The ledger is an annotation of the Certificate, so that it outlives the Order, the process and a change of
//! controller. An order without a Certificate is remembered by the process alone: its Order asks once. Within a process
//! nothing depends on the wall clock: ages are measured from the moment at which this process first knew of a request.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::ReconcileError;
use super::order_ledger::{
    BudgetEntry, LedgerHolder, NoOrder, has_its_order, holder, is_not_made, write,
};
use super::order_requests::Unanswered;
use crate::model::event::source;
use crate::model::order_budget::{
    Allowance, Budget, Denial, ENTRY_COUNTS_FOR, OverBudget, PastRequest, Permit, ReorderReason,
};
use crate::model::order_ledger::{Entry, Ledger, MAX_KEPT_ENTRIES, RequestOutcome, names_of};
use crate::model::request::REVISION;
use crate::model::{Identifier, Key, Kind, Order};
use crate::reconcile::Refusal;
use crate::reconcile::order::{Outcome, dropped};
use crate::store::error::StoreError;
use crate::store::{Manager, Store, under};

/// Largest number of tries to write the ledger when other writers come in between.
const WRITE_TRIES: usize = 10;
/// Shortest remainder of a CA's limit that counts: a CA names the end by the second.
const LIMIT_GRAIN: Duration = Duration::from_secs(1);

/// Record of newOrders that one process has sent to its CAs, and of earlier ones that it knows.
#[derive(Debug)]
pub struct OrderBudget {
    allowance: Allowance,
    known: Mutex<Vec<BudgetEntry>>,
}

/// Entry of a newOrder that is being stored or is under way: a nonce may take its time. Its age counts from when this
/// guard is dropped, which happens also if the work is cancelled.
#[derive(Debug)]
pub(super) struct Reserved<'a> {
    budget: &'a OrderBudget,
    id: (u64, String),
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let mut all = self.budget.all();
        let is_this = |known: &&mut BudgetEntry| known.is_entry(&self.id);
        if let Some(known) = all.iter_mut().find(is_this) {
            known.since = Some(Instant::now());
        }
    }
}

/// Grant for a newOrder.
#[derive(Debug)]
pub(super) struct Granted<'a> {
    /// Permit to send it.
    pub(super) permit: Permit,
    /// Reason for a repeated order, if it is one.
    pub(super) excuse: Option<ReorderReason>,
    /// Guard to be held until the reply: no other newOrder for the same names goes out until then, nor right after.
    pub(super) reserved: Reserved<'a>,
}

impl OrderBudget {
    /// Builds a budget of which nothing is spent yet.
    pub fn new(allowance: Allowance) -> Arc<Self> {
        Arc::new(Self { allowance, known: Mutex::default() })
    }

    /// Grants the newOrder of an Order, and records in the store that it goes out. As long as a CA's limit holds that
    /// another Certificate with the same names ran into, returns that refusal, and nothing goes out.
    ///
    /// # Errors
    /// Fails with [`ReconcileError::OverBudget`] if none may go out, if the store cannot keep the record, or if another
    /// process has got the order already: nothing goes out then.
    pub(super) async fn ask(
        &self,
        store: &Arc<dyn Store>,
        order: &Order,
        (account, names): (&str, &[Identifier]),
        now: Timestamp,
    ) -> Result<Result<Granted<'_>, Refusal>, ReconcileError> {
        let names = names_of(names);
        let store = under(store, Manager::Controller(source::ORDERS));
        for turn in 0..WRITE_TRIES {
            let holder = holder(&*store, order, turn > 0).await?;
            self.learn(&holder, now);
            // Another process may have stored the result, of which this process has no news yet.
            if self.is_asked_by_others(order) && has_its_order(&*store, order).await? {
                break;
            }
            let budget = Budget {
                allowance: self.allowance,
                holder: &holder.uid,
                order: &order.metadata.uid,
                account,
                names: &names,
                issued: holder.issued,
            };
            if let Some(refusal) = self.limit(&budget, now) {
                return Ok(Err(refusal));
            }
            let grant = match budget.judge(&self.past(&budget)) {
                Ok(grant) => grant,
                Err(denial) => return Err(self.denial_error(&holder, order, denial, now)),
            };
            let granted =
                |reserved| Granted { permit: grant.permit, excuse: grant.excuse, reserved };
            let is_ours = grant.again.and_then(|number| self.reserve_again(&holder.uid, number));
            if let Some(reserved) = is_ours {
                return Ok(Ok(granted(reserved)));
            }
            // An entry of another process is written anew: later processes count from now on.
            if let Some(number) = grant.again {
                self.free(&(number, order.metadata.uid.clone()));
            }
            let annotations = &order.metadata.annotations;
            let revision = annotations.get(REVISION).and_then(|text| text.parse().ok());
            let entry = Entry {
                number: grant.again.unwrap_or_else(|| self.next_number(&holder.uid)),
                at: now,
                order: order.metadata.name.clone(),
                uid: order.metadata.uid.clone(),
                revision: revision.unwrap_or(0),
                account: account.to_owned(),
                names: names.clone(),
                became: RequestOutcome::Asked,
            };
            // The entry counts before it is written: another Order for the same names may ask meanwhile.
            let reserved = self.reserve(&holder.uid, entry);
            match write(&*store, &holder, &self.ledger(&holder.uid)).await {
                Ok(()) => return Ok(Ok(granted(reserved))),
                Err(error) => {
                    self.free(&reserved.id);
                    if !matches!(error, StoreError::Conflict { .. }) {
                        return Err(error.into());
                    }
                }
            }
        }
        Err(StoreError::Conflict { key: Key::new(Kind::Order, order.name()) }.into())
    }

    /// Returns the outcome of an action; a dropped order may be replaced if the budget allows that.
    ///
    /// # Errors
    /// Fails when the store does.
    pub(super) async fn replace(
        &self,
        store: &Arc<dyn Store>,
        order: &Order,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<Outcome, StoreError> {
        let Some(why) = dropped(order, &outcome) else { return Ok(outcome) };
        let holder = match holder(&**store, order, false).await {
            // The Order goes, too, and nothing comes in its place.
            Err(StoreError::NotFound { .. }) => return Ok(outcome),
            holder => holder?,
        };
        self.learn(&holder, now);
        let budget = Budget {
            allowance: self.allowance,
            holder: &holder.uid,
            order: &order.metadata.uid,
            account: "",
            names: "",
            issued: holder.issued,
        };
        Ok(if budget.replaces(&self.past(&budget)) { Outcome::Dropped(why) } else { outcome })
    }

    /// Remembers the result of the last newOrder of an Order.
    pub(super) fn note(&self, order: &Order, became: RequestOutcome) {
        let mut all = self.all();
        let Some(known) = all.iter_mut().rfind(|k| k.entry.uid == order.metadata.uid) else {
            return;
        };
        known.entry.became = became;
        if became == RequestOutcome::Made {
            let Entry { account, names, .. } = known.entry.clone();
            let of_set = all.iter_mut().filter(|known| known.is_for(&account, &names));
            of_set.for_each(|known| known.heard = None);
        }
    }

    /// Remembers the reply, received now, to the last newOrder of an Order: that there is no order, until when there is
    /// none, or why nothing was read.
    pub(super) fn note_answer(
        &self,
        order: &Order,
        asked: &Result<Outcome, Unanswered>,
        now: Timestamp,
    ) {
        if is_not_made(asked) {
            self.note(order, RequestOutcome::NotMade);
        }
        let mut all = self.all();
        let Some(known) = all.iter_mut().rfind(|k| k.entry.uid == order.metadata.uid) else {
            return;
        };
        known.heard = match asked {
            Err(Unanswered { error, .. }) => Some(NoOrder::Fault(error.clone())),
            Ok(Outcome::Refused(_, Refusal::Until(problem, at))) => {
                let pause = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                Instant::now()
                    .checked_add(pause)
                    .map(|until| NoOrder::Limit(problem.clone(), until))
            }
            Ok(_) => None,
        };
    }

    /// Returns whether the last newOrder of an Order met a fault of the CA; 503 does not count: the CA is away.
    pub(super) fn has_failed_at_ca(&self, order: &Order) -> bool {
        let all = self.all();
        let last = all.iter().rfind(|known| known.entry.uid == order.metadata.uid);
        last.is_some_and(|last| {
            let problem = match &last.heard {
                Some(NoOrder::Fault(error)) => error.problem(),
                Some(NoOrder::Limit(problem, _)) => Some(&**problem),
                None => None,
            };
            problem.is_some_and(|problem| problem.status >= 500 && problem.status != 503)
        })
    }

    /// Returns a CA's refusal of Orders of other Certificates for the same names that still holds. Another Order of the
    /// same Certificate was wanted by a person: it asks for itself.
    fn limit(&self, asks: &Budget<'_>, now: Timestamp) -> Option<Refusal> {
        let holds = |known: &BudgetEntry| {
            if known.holder == asks.holder || !known.is_for(asks.account, asks.names) {
                return None;
            }
            let Some(NoOrder::Limit(problem, until)) = &known.heard else { return None };
            let pause =
                until.checked_duration_since(Instant::now()).filter(|p| *p >= LIMIT_GRAIN)?;
            Some(Refusal::Until(problem.clone(), now.checked_add(pause).ok()?))
        };
        self.all().iter().rev().find_map(holds)
    }

    /// Returns why nothing goes out; after an error of the CA, that error until the CA may be asked again.
    fn denial_error(
        &self,
        holder: &LedgerHolder,
        order: &Order,
        denial: Denial,
        now: Timestamp,
    ) -> ReconcileError {
        let all = self.all();
        let last = all.iter().rfind(|known| known.entry.uid == order.metadata.uid);
        match (&denial, last.and_then(|last| last.heard.clone())) {
            (Denial::TooSoon { .. }, Some(NoOrder::Fault(error))) => error.into(),
            _ => over_budget_error(holder, denial, now),
        }
    }

    /// Remembers the result, and keeps it in the store: a later process must know that the order failed.
    ///
    /// # Errors
    /// Fails when the store does.
    pub(super) async fn keep(
        &self,
        store: &Arc<dyn Store>,
        order: &Order,
        became: RequestOutcome,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let store = under(store, Manager::Controller(source::ORDERS));
        for turn in 0..WRITE_TRIES {
            let found = holder(&*store, order, turn > 0).await;
            if let Ok(holder) = &found {
                self.learn(holder, now);
            }
            self.note(order, became);
            let holder = match found {
                // The Order will request nothing any more.
                Err(StoreError::NotFound { .. }) => return Ok(()),
                found => found?,
            };
            let ledger = self.ledger(&holder.uid);
            if ledger.0.is_empty() || ledger == holder.ledger {
                return Ok(());
            }
            match write(&*store, &holder, &ledger).await {
                Err(StoreError::Conflict { .. }) => {}
                Err(StoreError::NotFound { .. }) => return Ok(()),
                written => return written,
            }
        }
        Err(StoreError::Conflict { key: Key::new(Kind::Order, order.name()) })
    }

    /// Counts an entry that is about to be written, so that no other goes out meanwhile.
    fn reserve(&self, holder: &str, entry: Entry) -> Reserved<'_> {
        let id = (entry.number, entry.uid.clone());
        let (ago, since) = (SignedDuration::ZERO, None);
        let holder = holder.to_owned();
        self.all().push(BudgetEntry { holder, entry, is_ours: true, heard: None, ago, since });
        Reserved { budget: self, id }
    }

    /// Removes an entry that could not be written.
    fn free(&self, id: &(u64, String)) {
        self.all().retain(|known| !known.is_entry(id));
    }

    /// Adds entries that others have written, and drops those that count no more.
    fn learn(&self, holder: &LedgerHolder, now: Timestamp) {
        let mut all = self.all();
        // Our own entries stay as long as the store may have them: after a clock was set back, they would count anew.
        let of_holder = all.iter().filter(|known| known.holder == holder.uid).count();
        let mut surplus = match self.allowance {
            Allowance::OneShot => 0,
            Allowance::Standing => of_holder.saturating_sub(MAX_KEPT_ENTRIES),
        };
        all.retain(|known| {
            let is_surplus = known.holder == holder.uid && surplus > 0;
            let stays = known.ago() < ENTRY_COUNTS_FOR || (known.is_ours && !is_surplus);
            surplus -= usize::from(!stays && is_surplus);
            stays
        });
        for entry in &holder.ledger.0 {
            let id = (entry.number, entry.uid.clone());
            let is_known = |known: &BudgetEntry| known.holder == holder.uid && known.is_entry(&id);
            // An entry from the future is by another clock, or from before ours was set back.
            let ago = now.duration_since(entry.at).max(SignedDuration::ZERO);
            if ago < ENTRY_COUNTS_FOR && !all.iter().any(is_known) {
                all.push(BudgetEntry {
                    holder: holder.uid.clone(),
                    entry: entry.clone(),
                    is_ours: false,
                    heard: None,
                    ago,
                    since: Some(Instant::now()),
                });
            }
        }
        all.sort_by_key(|known| known.entry.number);
    }

    /// Returns the entries that count for a request: those for the same names, and those of the same holder.
    fn past(&self, asks: &Budget<'_>) -> Vec<PastRequest> {
        let counts = |known: &&BudgetEntry| {
            known.holder == asks.holder || known.is_for(asks.account, asks.names)
        };
        let past = |known: &BudgetEntry| PastRequest {
            entry: known.entry.clone(),
            holder: known.holder.clone(),
            ago: known.ago(),
            is_ours: known.is_ours,
        };
        self.all().iter().filter(counts).map(past).collect()
    }

    fn ledger(&self, holder: &str) -> Ledger {
        let all = self.all();
        let of_holder = all.iter().filter(|known| known.holder == holder);
        Ledger(of_holder.map(|known| known.entry.clone()).collect())
    }

    fn next_number(&self, holder: &str) -> u64 {
        self.ledger(holder).0.iter().map(|entry| entry.number).max().map_or(1, |last| last + 1)
    }

    fn is_asked_by_others(&self, order: &Order) -> bool {
        self.all().iter().any(|known| known.entry.uid == order.metadata.uid && !known.is_ours)
    }

    /// Records that an entry goes out again, if it is ours.
    fn reserve_again(&self, holder: &str, number: u64) -> Option<Reserved<'_>> {
        let mut all = self.all();
        let of_holder = all.iter_mut().filter(|known| known.holder == holder && known.is_ours);
        let mut found = of_holder.filter(|known| known.entry.number == number);
        let known = found.next()?;
        (known.entry.became, known.heard) = (RequestOutcome::Asked, None);
        (known.ago, known.since) = (SignedDuration::ZERO, None);
        Some(Reserved { budget: self, id: (number, known.entry.uid.clone()) })
    }

    fn all(&self) -> MutexGuard<'_, Vec<BudgetEntry>> {
        self.known.lock()
    }
}

fn over_budget_error(holder: &LedgerHolder, denial: Denial, now: Timestamp) -> ReconcileError {
    let until = denial.pause().and_then(|pause| now.checked_add(pause).ok());
    ReconcileError::OverBudget(Box::new(OverBudget { holder: holder.key.clone(), denial, until }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::acme::error::AcmeError;
    use crate::model::order_ledger::LEDGER_ANNOTATION;
    use crate::model::{ObjectName, Problem, Record};
    use crate::reconcile::order::OrderRequest;
    use crate::store::Part;
    use crate::store::memory::MemoryStore;
    use crate::store::resources::typed;

    const ACCOUNT: &str = "https://ca.example/account/1";

    /// A Certificate with its request, and Orders below that.
    struct Scene {
        store: Arc<dyn Store>,
        orders: Vec<Order>,
    }

    async fn scene(orders: usize) -> Scene {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let create = async |kind: Kind, name: &str, owner: Option<&Record>| {
            let owners = owner.map(|owner| {
                let kind = owner.key.kind;
                json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": owner.key.name.name,
                       "uid": owner.uid(), "controller": true})
            });
            let object = json!({
                "apiVersion": kind.api_version(), "kind": kind.as_str(),
                "spec": {"request": "", "issuerRef": {"name": "ca"}},
                "metadata": {"name": name, "namespace": "web", "annotations": {REVISION: "1"},
                             "ownerReferences": owners.into_iter().collect::<Vec<Value>>()},
            });
            store.create(Record::new(object).unwrap()).await.unwrap()
        };
        let certificate = create(Kind::Certificate, "web", None).await;
        let request = create(Kind::CertificateRequest, "web-1", Some(&certificate)).await;
        let mut made = Vec::new();
        for number in 0..orders {
            let order = create(Kind::Order, &format!("web-1-{number}"), Some(&request)).await;
            made.push(typed(order).unwrap());
        }
        Scene { store, orders: made }
    }

    impl Scene {
        async fn ask<'a>(
            &self,
            budget: &'a OrderBudget,
            order: usize,
            now: Timestamp,
        ) -> Result<Granted<'a>, OverBudget> {
            let names = [Identifier::parse("www.example.com").unwrap()];
            match budget.ask(&self.store, &self.orders[order], (ACCOUNT, &names), now).await {
                Ok(Ok(granted)) => Ok(granted),
                Err(ReconcileError::OverBudget(over)) => Err(*over),
                other => panic!("{other:?}"),
            }
        }

        /// Returns the result of each newOrder, as another process reads it.
        async fn kept(&self) -> Vec<RequestOutcome> {
            let key = Key::new(Kind::Certificate, ObjectName::new("web", "web"));
            let metadata = self.store.get(&key).await.unwrap().unwrap().metadata();
            Ledger::read(&metadata.annotations).0.iter().map(|entry| entry.became).collect()
        }
    }

    fn now() -> Timestamp {
        "2026-11-23T06:00:00.5Z".parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_not_heard_that_another_process_got_the_order_asks_for_none() {
        let scene = scene(1).await;
        let names = [Identifier::parse("www.example.com").unwrap()];
        let (order, asked) = (&scene.orders[0], (ACCOUNT, &names[..]));
        let first = OrderBudget::new(Allowance::Standing);
        first.ask(&scene.store, order, asked, now()).await.unwrap().unwrap();
        let second = OrderBudget::new(Allowance::Standing);
        let later = now() + minutes(1);
        // Nothing is written down: it was killed, for all that anybody knows.
        let granted = second.ask(&scene.store, order, asked, later).await.unwrap();
        assert_eq!(granted.unwrap().excuse, Some(ReorderReason::Unread));
        // Whoever comes after that waits as long as if it had asked itself.
        let third = OrderBudget::new(Allowance::Standing);
        let soon = scene.ask(&third, 0, later + SignedDuration::from_secs(9)).await.unwrap_err();
        assert_eq!(soon.denial, Denial::TooSoon { pause: SignedDuration::from_secs(1) });
        let key = Key::new(Kind::Order, order.name());
        let mut record = scene.store.get(&key).await.unwrap().unwrap();
        record.object["status"] = json!({"url": "https://ca.example/order/1"});
        scene.store.replace(record, Part::Status).await.unwrap();
        let refused = third.ask(&scene.store, order, asked, later + minutes(1)).await;
        let is_race = |error: &ReconcileError| {
            matches!(error, ReconcileError::Store(StoreError::Conflict { .. }))
        };
        assert!(is_race(&refused.unwrap_err()));
    }

    #[tokio::test(start_paused = true)]
    async fn while_one_is_under_way_no_other_goes_out_for_the_same_names() {
        let scene = scene(2).await;
        let budget = OrderBudget::new(Allowance::Standing);
        for _ in 0..2 {
            let first = scene.ask(&budget, 0, now()).await.unwrap();
            // Its nonce takes a minute.
            tokio::time::sleep(Duration::from_mins(1)).await;
            let whole = Denial::TooSoon { pause: SignedDuration::from_secs(10) };
            assert_eq!(scene.ask(&budget, 1, now()).await.unwrap_err().denial, whole);
            drop(first);
            assert_eq!(scene.ask(&budget, 1, now()).await.unwrap_err().denial, whole);
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        scene.ask(&budget, 1, now()).await.unwrap();
    }

    fn minutes(minutes: i64) -> SignedDuration {
        SignedDuration::from_mins(minutes)
    }

    /// Whoever asks for an order at every step gets one a run, by whatever clock.
    #[tokio::test(start_paused = true)]
    async fn a_machine_that_orders_at_every_step_gets_one_order_a_run() {
        let scene = scene(100).await;
        for step in [SignedDuration::ZERO, -minutes(1), minutes(1)] {
            let budget = OrderBudget::new(Allowance::OneShot);
            let (mut granted, mut at) = (0, now());
            for order in 0..100 {
                match scene.ask(&budget, order, at).await {
                    Ok(_) => {
                        granted += 1;
                        budget
                            .keep(&scene.store, &scene.orders[order], RequestOutcome::Failed, at)
                            .await
                            .unwrap();
                    }
                    Err(over) => assert_eq!(over.until, None, "{over}"),
                }
                at += step;
                tokio::time::advance(Duration::from_secs(30)).await;
            }
            assert_eq!(granted, 1, "{step:?}");
        }
        assert_eq!(scene.kept().await, [RequestOutcome::Failed; 3]);
    }

    /// Unwatched, the same machine fails five times an hour, whatever the wall clock says.
    #[tokio::test(start_paused = true)]
    async fn a_machine_that_orders_at_every_step_fails_five_times_an_hour_in_run() {
        for step in [SignedDuration::ZERO, -minutes(10), minutes(1)] {
            let scene = scene(240).await;
            let budget = OrderBudget::new(Allowance::Standing);
            let mut granted = Vec::new();
            let mut at = now();
            // Two hours, one step each half minute.
            for order in 0..240 {
                if scene.ask(&budget, order, at).await.is_ok() {
                    granted.push(order / 2);
                    budget
                        .keep(&scene.store, &scene.orders[order], RequestOutcome::Refused, at)
                        .await
                        .unwrap();
                }
                at += step;
                tokio::time::advance(Duration::from_secs(30)).await;
            }
            assert_eq!(granted, [0, 0, 1, 1, 2, 60, 60, 61, 61, 62], "{step:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_fault_of_the_ca_is_known_until_it_is_asked_again() {
        let scene = scene(1).await;
        let budget = OrderBudget::new(Allowance::OneShot);
        let order = &scene.orders[0];
        let deed = OrderRequest::Create;
        for (status, expected) in [(500, true), (502, true), (503, false), (429, false)] {
            let problem = Box::new(Problem { status, ..Problem::default() });
            let error =
                AcmeError::Refused { problem: problem.clone(), retry_after: None, location: None };
            let until = Refusal::Until(problem, now());
            for answer in [Err(Unanswered { deed, error }), Ok(Outcome::Refused(deed, until))] {
                assert!(!budget.has_failed_at_ca(order));
                scene.ask(&budget, 0, now()).await.unwrap();
                budget.note_answer(order, &answer, now());
                assert_eq!(budget.has_failed_at_ca(order), expected, "{answer:?}");
                tokio::time::advance(Duration::from_secs(2)).await;
                scene.ask(&budget, 0, now()).await.unwrap();
                tokio::time::advance(Duration::from_secs(2)).await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_of_the_ca_holds_for_other_certificates_with_the_same_names() {
        let (one, other) = (scene(2).await, scene(1).await);
        let budget = OrderBudget::new(Allowance::Standing);
        let names = [Identifier::parse("www.example.com").unwrap()];
        let ask = async |scene: &Scene, order: usize, account: &str, at: Timestamp| {
            let asked = (account, &names[..]);
            let asked = budget.ask(&scene.store, &scene.orders[order], asked, at).await.unwrap();
            asked.err().map(|refusal| match refusal {
                Refusal::Until(problem, at) => (problem.status, at),
                Refusal::Final(problem) => panic!("{problem}"),
            })
        };
        assert_eq!(ask(&one, 0, ACCOUNT, now()).await, None);
        let until = now() + SignedDuration::from_secs(600);
        let problem = Problem { status: 429, ..Problem::default() };
        let limit = Outcome::Refused(OrderRequest::Create, Refusal::Until(problem.into(), until));
        budget.note_answer(&one.orders[0], &Ok(limit), now());
        tokio::time::advance(Duration::from_mins(1)).await;
        // By a clock that was set ahead meanwhile.
        let (at, told) = (
            now() + SignedDuration::from_hours(7),
            Some((429, until + SignedDuration::from_mins(419))),
        );
        assert_eq!(ask(&other, 0, ACCOUNT, at).await, told);
        assert_eq!(ask(&other, 0, "https://ca.example/account/2", at).await, None);
        assert_eq!(ask(&one, 1, ACCOUNT, at).await, None, "somebody has deleted the Order before");
        budget.note(&one.orders[1], RequestOutcome::Made);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(ask(&other, 0, ACCOUNT, at).await, None, "the CA takes them again");
    }

    #[tokio::test(start_paused = true)]
    async fn the_ledger_is_written_before_the_request_and_another_process_reads_it() {
        let scene = scene(1).await;
        let first = OrderBudget::new(Allowance::OneShot);
        assert_eq!(scene.ask(&first, 0, now()).await.unwrap().excuse, None);
        assert_eq!(scene.kept().await, [RequestOutcome::Asked]);
        // That process was killed before the answer.
        let second = OrderBudget::new(Allowance::OneShot);
        let excuse = scene.ask(&second, 0, now()).await.unwrap().excuse;
        assert_eq!(excuse, Some(ReorderReason::Unread));
        assert_eq!(scene.kept().await, [RequestOutcome::Asked], "it is the same try");
        second.note(&scene.orders[0], RequestOutcome::Made);
        let over = scene.ask(&second, 0, now()).await.unwrap_err();
        assert_eq!(
            over.to_string(),
            "no other order is asked for in this run: Certificate web/web has had its one, at 2026-11-23T06:00:00Z by Order \
             web-1-0"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_written_is_not_asked_for_and_what_is_not_ours_stays() {
        let scene = scene(2).await;
        let budget = OrderBudget::new(Allowance::Standing);
        scene.ask(&budget, 0, now()).await.unwrap();
        let over = scene.ask(&budget, 1, now()).await.unwrap_err();
        assert_eq!(over.until, Some(now() + SignedDuration::from_secs(10)), "{over}");
        let key = Key::new(Kind::Certificate, ObjectName::new("web", "web"));
        let metadata = scene.store.get(&key).await.unwrap().unwrap().metadata();
        assert_eq!(metadata.annotations[REVISION], "1");
        assert!(metadata.annotations.contains_key(LEDGER_ANNOTATION));
        scene.store.delete(&key).await.unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        // Its Certificate is gone, and the process still knows.
        budget.keep(&scene.store, &scene.orders[0], RequestOutcome::Failed, now()).await.unwrap();
    }
}
