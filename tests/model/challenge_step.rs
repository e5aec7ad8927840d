//! One step for a Challenge, as its controller takes it, and one of the scheduler.

use std::rc::Rc;

use kubectl_acme::model::challenge::FINALIZER;
use kubectl_acme::model::memory::{Holder, Memory};
use kubectl_acme::model::{Challenge, State as Word};
use kubectl_acme::reconcile::challenge::{
    self, Action, Followed, Observed, Outcome, Readiness, SeenChallenge, first_state,
};
use kubectl_acme::reconcile::record_values::RecordState;
use kubectl_acme::reconcile::schedule::{self, Contention, Limits};
use kubectl_acme::reconcile::{Refusal, Wake};

use super::apply::Branch;
use super::objects::{problem, written};
use super::order_step::{one, polled};
use super::properties::{self, PATIENCE};
use super::setting::Mutant;
use super::shelf::Id;
use super::state::{CaState, Job, Objects, Poll, Proof, SLOTS, State, Write, bit, moment};
use super::world::{Step, World};

/// What the scheduler wants, and whom it finds in the way.
#[derive(Debug)]
pub(crate) struct Plan {
    writes: Vec<Write>,
    contention: Contention,
}

impl World {
    pub(crate) fn challenge_step(
        &mut self,
        state: &State,
        process: u8,
        view: &Objects,
        slot: u8,
    ) -> Step {
        let Some(base) = view.challenges[usize::from(slot)] else {
            return Step::Waits(Wake::OnChange);
        };
        let action = self.challenge_action(state, process, view, (slot, base), false);
        let keep = |world: &mut Self, outcome: Outcome| {
            let writes = world.kept_of_challenge(state, (slot, base), outcome);
            one("the Challenge is written", *state, writes)
        };
        match &*action {
            Action::Wait(wake) => Step::Waits(*wake),
            Action::AddFinalizer => {
                one("the finalizer", *state, vec![self.marked(slot, base, true)])
            }
            Action::Present => self.present(state, process, (slot, base)),
            Action::SelfCheck => self.look(state, process, view, (slot, base)),
            Action::Accept => Step::Goes(self.accept(state, process, view, (slot, base))),
            Action::FetchState => self.fetch_state(state, process, (slot, base)),
            Action::CleanUp => self.clean_up(state, process, (slot, base)),
            Action::Adopt => keep(self, Outcome::Accepted(SeenChallenge::default())),
            Action::TakeState(word) => keep(self, Outcome::StateTaken(*word)),
            Action::Fail(problem) => keep(self, Outcome::Unproven(problem.clone())),
            Action::Settle => keep(self, Outcome::Settled),
            Action::Abandon => keep(self, Outcome::Abandoned),
            Action::Defer(why) => keep(self, Outcome::Deferred(why.clone())),
            Action::HoldBack(kept) => keep(self, Outcome::HeldBack(kept.clone())),
            Action::Report(why, cause) => keep(self, Outcome::NotVisible(why.clone(), *cause)),
        }
    }

    fn challenge_action(
        &mut self,
        state: &State,
        process: u8,
        view: &Objects,
        (slot, base): (u8, Id),
        is_seen: bool,
    ) -> Rc<Action> {
        let ours = &state.processes[usize::from(process)];
        let stands = self.stands(ours, state, slot);
        let read = ours.read[usize::from(slot)];
        let plan = self.plan(view);
        let challenge = self.challenges.get(base);
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        let is_accepted = memory.accepted_at.is_some();
        let contended = is_accepted && plan.contention.concerns(&challenge.name());
        let beside = is_accepted && plan.contention.keeps_back("order", moment(state.now));
        let key = (base, view.order, state.now, read, (stands, contended, beside, is_seen));
        if let Some(known) = self.challenge_actions.get(&key) {
            return Rc::clone(known);
        }
        let order = self.orders.get(view.order);
        let observed = Observed {
            order: Some(&*order).filter(|_| !challenge.has_ended()),
            contended,
            beside,
            polled: read.map(polled),
            answer_stands: stands,
            by_hand: false,
            visible: is_seen.then_some(&Readiness::Ready),
            lingering: None,
            record: &RecordState::Complete(None),
            // No answer is given twice: the CA of the model ends each validation by itself.
            followed: Followed::default(),
        };
        let mut action = challenge::next_action(&challenge, &observed, moment(state.now));
        match action {
            Action::SelfCheck if self.setting.has(Mutant::SelfCheck) => action = Action::Accept,
            Action::AddFinalizer if self.setting.has(Mutant::Finalizer) => action = Action::Present,
            _ => {}
        }
        let action = Rc::new(action);
        self.challenge_actions.insert(key, Rc::clone(&action));
        action
    }

    fn kept_of_challenge(
        &mut self,
        state: &State,
        (slot, base): (u8, Id),
        outcome: Outcome,
    ) -> Vec<Write> {
        let key = (base, state.now, format!("{outcome:?}"));
        if let Some(known) = self.challenge_records.get(&key) {
            return known.clone();
        }
        let challenge = self.challenges.get(base);
        let new = challenge::record(&challenge, outcome, moment(state.now));
        let (mut writes, mut current) = (Vec::new(), base);
        for object in written(&challenge, Holder::Challenge, &new.memory, new.status) {
            let next = self.challenges.put(object);
            writes.push(Write::Challenge { slot, base: current, new: Some(next) });
            current = next;
        }
        self.challenge_records.insert(key, writes.clone());
        writes
    }

    /// The write that puts our finalizer on, or takes it off.
    fn marked(&mut self, slot: u8, base: Id, is_on: bool) -> Write {
        let mut challenge: Challenge = (*self.challenges.get(base)).clone();
        challenge.metadata.finalizers.clear();
        if is_on {
            challenge.metadata.finalizers.push(FINALIZER.to_owned());
        }
        let is_gone = !is_on && challenge.metadata.is_deleted();
        let new = (!is_gone).then(|| self.challenges.put(challenge));
        Write::Challenge { slot, base, new }
    }

    fn present(&mut self, state: &State, process: u8, of: (u8, Id)) -> Step {
        let slot = of.0;
        let what = "the answer goes up";
        if let Err(why) = properties::finalizer_comes_first(self, state, slot) {
            return Step::Goes(vec![Branch { what, result: Err(why), writes: vec![] }]);
        }
        let mut after = *state;
        after.up |= bit(slot);
        after.process(process).stands |= bit(slot);
        let writes = self.kept_of_challenge(state, of, Outcome::Presented(Vec::new()));
        let mut branches = vec![Branch { what, result: Ok(after), writes }];
        if state.left.answers > 0 {
            let mut after = *state;
            after.left.answers -= 1;
            let outcome = Outcome::PresentFailed("the solver refuses".to_owned(), None);
            let writes = self.kept_of_challenge(state, of, outcome);
            branches.push(Branch { what: "the answer does not go up", result: Ok(after), writes });
        }
        Step::Goes(branches)
    }

    /// Looks for the answer; what is seen is told to the CA in the same step.
    fn look(&mut self, state: &State, process: u8, view: &Objects, of: (u8, Id)) -> Step {
        let slot = of.0;
        let mut branches = Vec::new();
        if state.up & bit(slot) != 0 {
            let mut seen = *state;
            seen.seen |= bit(slot);
            match &*self.challenge_action(state, process, view, of, true) {
                Action::Accept => branches = self.accept(&seen, process, view, of),
                other => panic!("after a look that has seen the answer: {other:?}"),
            }
        }
        if state.left.answers > 0 || branches.is_empty() {
            let mut after = *state;
            after.left.answers = after.left.answers.saturating_sub(1);
            let outcome = Outcome::NotVisible("connection refused".to_owned(), None);
            let writes = self.kept_of_challenge(state, of, outcome);
            branches.push(Branch { what: "the answer is not seen", result: Ok(after), writes });
        }
        Step::Goes(branches)
    }

    /// Tells the CA.
    fn accept(&mut self, state: &State, process: u8, _: &Objects, of: (u8, Id)) -> Vec<Branch> {
        let (slot, job) = (of.0, Job::Challenge(of.0));
        let what = "the CA is told";
        let checked = properties::answer_was_seen(state, slot)
            .and_then(|()| properties::pause_is_kept(self, state, process, job));
        if let Err(why) = checked {
            return vec![Branch { what, result: Err(why), writes: vec![] }];
        }
        let (order, name) = (usize::from(slot) / 2, usize::from(slot) % 2);
        let mut after = *state;
        let at_ca = after.ca[order].as_mut().expect("a Challenge has what the CA has made");
        let is_open =
            at_ca.state == CaState::Pending && at_ca.authorizations[name] == Proof::Pending;
        if is_open {
            at_ca.authorizations[name] = Proof::Looking;
        }
        let outcome = if is_open {
            Outcome::Accepted(SeenChallenge {
                state: Some(Word::Processing),
                ..SeenChallenge::default()
            })
        } else {
            after_malformed(&after, slot)
        };
        if matches!(outcome, Outcome::Refused(_)) {
            after.may_fail = true;
        }
        let writes = self.kept_of_challenge(state, of, outcome);
        let mut branches = vec![Branch { what, result: Ok(after), writes }];
        if state.left.answers == 0 {
            return branches;
        }
        let failed = || Outcome::AcceptFailed("the CA does not answer".to_owned(), None);
        let refused = Refusal::Final(Box::new(problem(403, "unauthorized")));
        let until = moment(state.now) + PATIENCE;
        let limit = Refusal::Until(Box::new(problem(429, "rateLimited")), until);
        for (what, outcome, is_done) in [
            ("the CA refuses for good", Outcome::Refused(refused), false),
            ("the CA says 429", Outcome::Refused(limit), false),
            ("the CA says 503, or nothing", failed(), false),
            ("the CA is told, and the answer is lost", failed(), true),
        ] {
            let mut bad = if is_done { after } else { *state };
            bad.left.answers -= 1;
            let mut outcome = outcome;
            match what {
                "the CA says 429" => {
                    bad.patience = Some((process, job, state.now));
                    if self.setting.has(Mutant::Patience) {
                        outcome = failed();
                    }
                }
                "the CA refuses for good" => bad.may_fail = true,
                _ => {}
            }
            let writes = self.kept_of_challenge(state, of, outcome);
            branches.push(Branch { what, result: Ok(bad), writes });
        }
        branches
    }

    fn fetch_state(&mut self, state: &State, process: u8, of: (u8, Id)) -> Step {
        let slot = of.0;
        let what = "the authorization is read";
        if let Err(why) = properties::pause_is_kept(self, state, process, Job::Challenge(slot)) {
            return Step::Goes(vec![Branch { what, result: Err(why), writes: vec![] }]);
        }
        let outcome = match proof(state, slot) {
            None => Outcome::Refused(Refusal::Final(Box::new(problem(404, "malformed")))),
            Some(_) => Outcome::StateFetched(said(state, slot)),
        };
        let mut after = *state;
        if matches!(outcome, Outcome::StateFetched(_)) {
            after.process(process).read[usize::from(slot)] =
                Some(Poll { at: state.now, is_named: false });
        }
        let writes = self.kept_of_challenge(state, of, outcome);
        let mut branches = vec![Branch { what, result: Ok(after), writes }];
        if state.left.answers > 0 {
            let named = SeenChallenge {
                retry_after: Some(moment(state.now) + PATIENCE),
                ..said(state, slot)
            };
            let mut after = *state;
            after.left.answers -= 1;
            let poll = Poll { at: state.now, is_named: true };
            after.process(process).read[usize::from(slot)] = Some(poll);
            let writes = self.kept_of_challenge(state, of, Outcome::StateFetched(named));
            branches.push(Branch {
                what: "the authorization names a moment",
                result: Ok(after),
                writes,
            });
        }
        Step::Goes(branches)
    }

    fn clean_up(&mut self, state: &State, process: u8, of: (u8, Id)) -> Step {
        let (slot, base) = of;
        let what = "the answer is taken down";
        if let Err(why) = properties::answer_stays_while_looked_for(self, state, slot) {
            return Step::Goes(vec![Branch { what, result: Err(why), writes: vec![] }]);
        }
        let mut after = *state;
        if !self.setting.has(Mutant::CleanUp) {
            after.up &= !bit(slot);
        }
        after.process(process).stands &= !bit(slot);
        let mut branches =
            vec![Branch { what, result: Ok(after), writes: vec![self.marked(slot, base, false)] }];
        if state.left.answers > 0 {
            let mut after = *state;
            after.left.answers -= 1;
            let outcome = Outcome::CleanUpFailed("the solver refuses".to_owned(), None);
            let writes = self.kept_of_challenge(state, of, outcome);
            branches.push(Branch { what: "the answer stays up", result: Ok(after), writes });
        }
        Step::Goes(branches)
    }

    /// Starts what may start, and tells the others what they wait for.
    pub(crate) fn schedule(&mut self, state: &State, view: &Objects) -> Step {
        let plan = self.plan(view);
        if plan.writes.is_empty() {
            return Step::Waits(Wake::OnChange);
        }
        one("the scheduler", *state, plan.writes.clone())
    }

    fn plan(&mut self, view: &Objects) -> Rc<Plan> {
        let key = (view.challenges, view.order);
        if let Some(known) = self.plans.get(&key) {
            return Rc::clone(known);
        }
        let order = self.orders.get(view.order);
        let mut all: [Option<Rc<Challenge>>; SLOTS] = [const { None }; SLOTS];
        for (place, id) in all.iter_mut().zip(view.challenges) {
            *place = id.map(|id| self.challenges.get(id));
        }
        let challenges: Vec<&Challenge> = all.iter().flatten().map(|c| &**c).collect();
        let cap = if self.setting.has(Mutant::Cap) { SLOTS } else { self.setting.cap };
        let plan = schedule::plan(challenges.clone(), Limits { max_in_flight: cap });
        let contention = Contention::of(challenges, &plan.queue);
        let mut changed: Vec<Challenge> = Vec::new();
        for admitted in &plan.admitted {
            let mut started = (*admitted).clone();
            let first = first_state(admitted, Some(&order)).filter(|word| *word == Word::Pending);
            started.status.state = started.status.state.or(first);
            started.status.processing = true;
            started.status.reason = String::new();
            changed.push(started);
        }
        for queued in &plan.queue {
            let reason = queued.waits.reason(queued.challenge);
            if queued.challenge.status.reason != reason {
                let mut told = queued.challenge.clone();
                told.status.reason = reason;
                changed.push(told);
            }
        }
        let mut writes = Vec::new();
        for new in changed {
            let slot = super::objects::slot_of(&new.spec.authorization_url);
            let base = view.challenges[usize::from(slot)].expect("it was planned for");
            writes.push(Write::Challenge { slot, base, new: Some(self.challenges.put(new)) });
        }
        let plan = Rc::new(Plan { writes, contention });
        self.plans.insert(key, Rc::clone(&plan));
        plan
    }
}

/// The CA takes no answer any more, and the authorization is read for the reason.
fn after_malformed(state: &State, slot: u8) -> Outcome {
    let proof = proof(state, slot);
    match proof {
        None => Outcome::Refused(Refusal::Final(Box::new(problem(404, "malformed")))),
        Some(Proof::Pending) => {
            Outcome::Refused(Refusal::Final(Box::new(problem(400, "malformed"))))
        }
        Some(_) => Outcome::Accepted(said(state, slot)),
    }
}

/// How far an authorization is; none where the CA has dropped it.
fn proof(state: &State, slot: u8) -> Option<Proof> {
    let (order, name) = (usize::from(slot) / 2, usize::from(slot) % 2);
    let at_ca = state.ca[order].expect("a Challenge has what the CA has made");
    (at_ca.state != CaState::Dropped).then_some(at_ca.authorizations[name])
}

/// What the CA says of an authorization.
fn said(state: &State, slot: u8) -> SeenChallenge {
    let word = match proof(state, slot) {
        Some(Proof::Pending | Proof::Looking) => Word::Pending,
        Some(Proof::Valid) => Word::Valid,
        Some(Proof::Invalid) | None => Word::Invalid,
    };
    let problem = (word == Word::Invalid).then(|| problem(403, "unauthorized"));
    SeenChallenge { state: Some(word), problem, ..SeenChallenge::default() }
}
