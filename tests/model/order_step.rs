//! One step for the Order, as its controller takes it: look, decide, ask the CA, write down.

use std::rc::Rc;

use kubectl_acme::model::memory::Holder;
use kubectl_acme::model::order_ledger::RequestOutcome;
use kubectl_acme::model::{Challenge, Order, OrderStatus, State as Word};
use kubectl_acme::reconcile::Wake;
use kubectl_acme::reconcile::order::required::Required;
use kubectl_acme::reconcile::order::{self, Action, LastRead, Observed, Outcome, SeenOrder};
use kubectl_acme::reconcile::pauses::Polled;

use super::apply::Branch;
use super::budget;
use super::objects::{self, slot_of, written};
use super::properties::PATIENCE;
use super::setting::Mutant;
use super::shelf::Id;
use super::state::{Heard, Objects, Poll, State, Write, moment};
use super::world::{Step, World};

/// What was recorded of an outcome, as writes.
pub(crate) struct OrderWrites {
    pub(crate) writes: Vec<Write>,
    became: Option<RequestOutcome>,
    polled: bool,
    forgets: bool,
}

impl World {
    pub(crate) fn order_step(&mut self, state: &State, process: u8, view: &Objects) -> Step {
        let order = self.orders.get(view.order);
        let action = self.order_action(state, process, view, &order);
        match &*action {
            Action::Wait(wake) => Step::Waits(*wake),
            Action::Create(_) => self.create(state, process, view, &order),
            Action::Fetch | Action::Finalize | Action::FetchAuthorizations(_) => {
                let branches = self.ask_of_order(state, process, view, &order, &action);
                Step::Goes(branches)
            }
            Action::CreateChallenges(missing) => self.make_challenges(state, view, &order, missing),
            Action::DeleteChallenges(names) => {
                let goes = |c: &Challenge| names.contains(&c.metadata.name);
                let all = (0..).zip(view.challenges);
                let slots =
                    all.filter(|(_, id)| id.is_some_and(|id| goes(&self.challenges.get(id))));
                let mut writes: Vec<Write> =
                    slots.map(|(slot, _)| Write::Delete { slot }).collect();
                let recorded = self.recorded(state, view.order, Outcome::ChallengesDeleted);
                writes.extend(&recorded.writes);
                one("Challenges are deleted", *state, writes)
            }
            Action::Expire(at) => self.conclude(state, process, view, Outcome::Expired(*at)),
            Action::Explain(why) => {
                self.conclude(state, process, view, Outcome::Explained(why.clone()))
            }
            Action::Solved => self.conclude(state, process, view, Outcome::Solved),
            Action::Forget => self.conclude(state, process, view, Outcome::Forgotten),
            Action::GiveUp(why, problem) => {
                let outcome = Outcome::GivenUp(why.clone(), problem.clone());
                self.conclude(state, process, view, outcome)
            }
            Action::Invalidate(why, problem) => {
                let outcome = Outcome::Invalidated(why.clone(), problem.clone());
                self.conclude(state, process, view, outcome)
            }
            Action::StandBack(why) => {
                self.conclude(state, process, view, Outcome::StoodBack(why.clone()))
            }
        }
    }

    fn order_action(
        &mut self,
        state: &State,
        process: u8,
        view: &Objects,
        order: &Order,
    ) -> Rc<Action> {
        let heard = state.processes[usize::from(process)].heard;
        let key = (view.order, view.challenges, heard, state.now);
        if let Some(known) = self.order_actions.get(&key) {
            return Rc::clone(known);
        }
        let ids = view.challenges.iter().flatten();
        let challenges: Vec<Challenge> =
            ids.map(|id| (*self.challenges.get(*id)).clone()).collect();
        let required = objects::required_of(order, &self.issuer);
        let last_read = |heard: Heard| LastRead {
            polled: polled(heard.poll),
            after_failure: heard.after_failure,
        };
        let observed = Observed {
            challenges: &challenges,
            required: Ok(&required),
            sharers: &[],
            heard: heard.map(last_read),
        };
        let mut action = order::next_action(order, &observed, moment(state.now));
        if self.setting.has(Mutant::Poll) && order.status.state == Some(Word::Pending) {
            let told =
                |c: &Challenge| c.metadata.annotations.keys().any(|k| k.contains("accepted"));
            if action == Action::Fetch && challenges.iter().all(told) {
                action = Action::Wait(Wake::OnChange);
            }
        }
        let action = Rc::new(action);
        self.order_actions.insert(key, Rc::clone(&action));
        action
    }

    pub(crate) fn conclude(
        &mut self,
        state: &State,
        process: u8,
        view: &Objects,
        outcome: Outcome,
    ) -> Step {
        let mut after = *state;
        let order = self.orders.get(view.order);
        let writes = self.kept(&mut after, process, view, &order, outcome);
        one("the Order is written", after, writes)
    }

    /// What is remembered of an outcome at once, and what is to be written.
    pub(crate) fn kept(
        &mut self,
        after: &mut State,
        process: u8,
        view: &Objects,
        order: &Order,
        outcome: Outcome,
    ) -> Vec<Write> {
        let outcome = match order::dropped(order, &outcome) {
            Some(why) if budget::replaces(after, process) => Outcome::Dropped(why),
            Some(_) => {
                after.may_fail = true;
                outcome
            }
            None => outcome,
        };
        let named = matches!(&outcome, Outcome::Fetched(SeenOrder { retry_after: Some(_), .. }));
        let is_dropped = matches!(outcome, Outcome::Dropped(_));
        let recorded = self.recorded(after, view.order, outcome);
        let (now, ours) = (after.now, after.process(process));
        let mut writes = Vec::new();
        match recorded.became {
            Some(
                bad @ (RequestOutcome::Refused | RequestOutcome::Failed | RequestOutcome::Dropped),
            ) => {
                budget::note(ours, bad);
                writes.push(Write::Ledger);
            }
            Some(became) => budget::note(ours, became),
            None => {}
        }
        if recorded.polled {
            let failed =
                |id: &Id| self.challenges.get(*id).status.state.is_some_and(Word::is_failure);
            let after_failure = view.challenges.iter().flatten().any(failed);
            let poll = Poll { at: now, is_named: named };
            ours.heard = Some(Heard { poll, after_failure });
        }
        if recorded.forgets || is_dropped {
            ours.heard = None;
        }
        writes.extend(&recorded.writes);
        writes
    }

    /// Folds an outcome and works out the writes; the URL of a new order comes before everything.
    pub(crate) fn recorded(
        &mut self,
        state: &State,
        base: Id,
        outcome: Outcome,
    ) -> Rc<OrderWrites> {
        let key = (base, state.now, format!("{outcome:?}"));
        if let Some(known) = self.order_records.get(&key) {
            return Rc::clone(known);
        }
        let order = self.orders.get(base);
        let is_dropped = matches!(outcome, Outcome::Dropped(_));
        let polled = order::polled(&outcome, moment(state.now)).is_some();
        let new = order::record(&order, outcome, moment(state.now));
        let became = became(&order, is_dropped, &new.status);
        let forgets = !order.status.url.is_empty() && new.status.url.is_empty();
        let mut writes = Vec::new();
        let (mut current, mut before) = (base, (*order).clone());
        if order.status.url.is_empty() && !new.status.url.is_empty() {
            before.status = new.status.clone();
            let with_url = self.orders.put(before.clone());
            writes.extend([Write::Order { base, new: with_url }, Write::UrlIsWritten]);
            current = with_url;
        }
        for object in written(&before, Holder::Order, &new.memory, new.status) {
            let next = self.orders.put(object);
            writes.push(Write::Order { base: current, new: next });
            current = next;
        }
        let recorded = Rc::new(OrderWrites { writes, became, polled, forgets });
        self.order_records.insert(key, Rc::clone(&recorded));
        recorded
    }

    fn make_challenges(
        &mut self,
        state: &State,
        view: &Objects,
        order: &Order,
        missing: &[Required],
    ) -> Step {
        let mut writes = Vec::new();
        for required in missing {
            let slot = slot_of(&required.spec.authorization_url);
            let made = objects::challenge(order, required.clone(), state.now);
            writes.push(Write::Create { slot, new: self.challenges.put(made) });
        }
        let made = missing.iter().map(|r| (r.name.clone(), r.spec.dns_name.clone())).collect();
        let recorded = self.recorded(state, view.order, Outcome::ChallengesCreated(made));
        writes.extend(&recorded.writes);
        one("Challenges are made", *state, writes)
    }
}

/// What became of a newOrder by what is recorded now, as the controller tells it.
fn became(order: &Order, is_dropped: bool, now: &OrderStatus) -> Option<RequestOutcome> {
    if is_dropped {
        return Some(RequestOutcome::Dropped);
    }
    let has_failed = now.state.is_some_and(Word::is_failure);
    match (order.status.url.is_empty(), now.url.is_empty()) {
        (true, _) => has_failed.then_some(RequestOutcome::Refused),
        (false, true) => Some(RequestOutcome::LostToAnother),
        (false, false) if has_failed => Some(RequestOutcome::Failed),
        (false, false) => (!now.certificate.is_empty()).then_some(RequestOutcome::Issued),
    }
}

pub(crate) fn one(what: &'static str, state: State, writes: Vec<Write>) -> Step {
    Step::Goes(vec![Branch { what, result: Ok(state), writes }])
}

pub(crate) fn polled(poll: Poll) -> Polled {
    let at = moment(poll.at);
    Polled { at, retry_after: poll.is_named.then(|| at + PATIENCE) }
}
