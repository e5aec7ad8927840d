//! Challenge: present, self-check, accept, clean up.
//!
//! The self-check is an observation of a step, not stored state; when it passes, the challenge is accepted in the same
//! step (the CA is asked to validate), so nothing is written for a check that passes. A challenge that the CA already
//! validates when its authorization is first read is presented, but not accepted again.
//!
//! Once its Order has failed, a Challenge that was not accepted yet ends as `errored`: its slot and name would stay
//! taken. An accepted Challenge ends so a minute later, if the CA reports nothing on its name until then or asks for a
//! longer pause: the answer would stay up for ever. A Challenge whose Order is gone keeps its state until it is
//! collected, without any request: it did not end by itself (`tests/fixtures/traces/08-certificate-deleted.jsonl`).
//!
//! A Challenge reads its own authorization only if it resumes, its order has failed, another challenge waits for its
//! slot or name, another one of its order is kept from the CA (a pending order does not show which names are proved),
//! or the CA should have settled all of its order seconds ago. Otherwise only the Order is polled.

use jiff::{SignedDuration, Timestamp};

use super::Wake;
use super::challenge_outcome::memory;
pub use super::challenge_outcome::{Outcome, SeenChallenge, polled, record};
use super::lingering::CachedRecord;
use super::pauses::{Pace, Polled, poll_at};
use super::record_values::RecordState;
use super::schedule::FIRST_SELF_CHECKS;
pub use super::validation_retry::Followed;
use super::validation_retry::{Retry, next_retry, validation_error};
use crate::model::cause::CheckFinding;
use crate::model::challenge::{FINALIZER, LEGACY_FINALIZER};
use crate::model::memory::Memory;
use crate::model::{Challenge, Order, Problem, State, Time};

/// Longest wait of a Challenge for the CA's result on its own name, once its Order has failed.
const RESULT_WAIT_MAX: SignedDuration = SignedDuration::from_secs(60);
/// Pause before the next self-check of an answer that neither the CA nor the last self-check saw.
const SELF_CHECK_PAUSE: SignedDuration = SignedDuration::from_secs(2);
/// Longest wait for another challenge's value at the same record before the wait is written down.
const SIBLING_WAIT_MAX: SignedDuration = SignedDuration::from_secs(10);

/// Observations of one step beside the Challenge.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and any may hold with any"
)]
pub struct Observed<'a> {
    /// Order of the Challenge; `None` if the Order is gone.
    pub order: Option<&'a Order>,
    /// Whether another challenge waits for this one's name, or for a slot.
    pub contended: bool,
    /// Whether another challenge of the order is kept from the CA, so that the order does not show this one's result.
    pub beside: bool,
    /// Last reading or refusal of the authorization by this process, with the CA's Retry-After. Another process starts
    /// anew.
    pub polled: Option<Polled>,
    /// Whether the answer is up where the CA validates; false after a restart of the process that served it.
    pub answer_stands: bool,
    /// Whether a person puts the answer up: then no wait replaces the self-check.
    pub by_hand: bool,
    /// Result of this step's self-check; `None` if there was none yet.
    pub visible: Option<&'a Readiness>,
    /// Old record, without our text, that the CA's resolver may cache.
    pub lingering: Option<&'a CachedRecord>,
    /// State of the other values of the record.
    pub record: &'a RecordState,
    /// Facts of this process about the challenge's validation.
    pub followed: Followed,
}

/// Verdict of a self-check: whether the CA would accept the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Not yet; the reason is stable while the cause is the same.
    NotYet {
        /// Sentence on what was seen instead.
        reason: String,
        /// Cause as data, if it is of a known kind.
        cause: Option<CheckFinding>,
    },
    /// Yes.
    Ready,
}

/// Next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Gives up: the Order has failed or is gone, and the answer is not needed any more.
    Abandon,
    /// Accepts the challenge: informs the CA that the answer is up.
    Accept,
    /// Counts the challenge as accepted: the CA already validates, and nothing is sent to a challenge under way.
    Adopt,
    /// Puts our finalizer on the object, in place of an old one.
    AddFinalizer,
    /// Takes this problem as the CA's final result: the name is not proved.
    Fail(Box<Problem>),
    /// Takes the answer down and the finalizer off.
    CleanUp,
    /// Records until when acceptance waits in place of a self-check.
    Defer(String),
    /// Reads the authorization.
    FetchState,
    /// Delays acceptance until no resolver caches the old record any more.
    HoldBack(CachedRecord),
    /// Puts the answer up.
    Present,
    /// Runs the self-check, as the CA would validate.
    SelfCheck,
    /// Records what the self-check saw, until the next one.
    Report(String, Option<CheckFinding>),
    /// Ends the work: the challenge is neither presented nor processing any more.
    Settle,
    /// Takes the state that the Order has read.
    TakeState(State),
    /// Waits.
    Wait(Wake),
}

/// Decides what to do next.
pub fn next_action(challenge: &Challenge, observed: &Observed<'_>, now: Timestamp) -> Action {
    let status = &challenge.status;
    let memory = memory(challenge);
    if let Some(state) = settled_by_order(challenge, &memory, observed.order) {
        return Action::TakeState(state);
    }
    if challenge.metadata.is_deleted() || status.state.is_some_and(State::is_final) {
        return finish(challenge);
    }
    if memory.accepted_at.is_none() && has_failed(observed.order) {
        // Objects of an Order that is gone are about to be collected.
        let goes = observed.order.is_none() && challenge.metadata.controller().is_some();
        return if goes { Action::Wait(Wake::OnChange) } else { Action::Abandon };
    }
    if !status.processing {
        return Action::Wait(Wake::OnChange);
    }
    if !has_only_our_finalizer(challenge) {
        return Action::AddFinalizer;
    }
    let named = observed.polled.and_then(|polled| polled.retry_after);
    let next_try = memory.next_try.max(named).filter(|at| *at > now);
    if status.state.is_none() {
        return match (first_state(challenge, observed.order), next_try) {
            (Some(state), _) => Action::TakeState(state),
            (None, Some(at)) => Action::Wait(Wake::At(at)),
            (None, None) => Action::FetchState,
        };
    }
    // Without `presented_at` the wait in place of a self-check would never end.
    let timeless =
        challenge.spec.solver.wait_instead_of_self_check.is_some() && status.presented_at.is_none();
    let is_up = status.presented && !timeless && observed.answer_stands;
    if memory.accepted_at.is_none() && !is_up {
        return Action::Present;
    }
    if let Some(accepted_at) = memory.accepted_at {
        let failed_at = failed_since(accepted_at, observed.order);
        if failed_at.is_some_and(|at| is_past_hope(at, next_try, observed.polled, now)) {
            return Action::Abandon;
        }
        if !observed.answer_stands {
            return Action::Present;
        }
        let mut most = failed_at.map(result_deadline);
        if failed_at.is_none() {
            let known = (&observed.followed, observed.polled);
            match next_retry(challenge, &memory, accepted_at, known, now) {
                Retry::Nothing => {}
                Retry::At(at) => most = Some(at),
                Retry::GiveUp(problem) => return Action::Fail(problem),
                Retry::Now => match offer_again(challenge, &memory, observed) {
                    Some(action) => return action,
                    None => most = now.checked_add(SELF_CHECK_PAUSE).ok(),
                },
            }
        }
        return match (next_reading(accepted_at, &memory, observed, now), most) {
            (Wake::Now, _) => Action::FetchState,
            (wake, Some(most)) => Action::Wait(wake.or_at(most)),
            (wake, None) => Action::Wait(wake),
        };
    }
    if first_state(challenge, observed.order) == Some(State::Processing) {
        return Action::Adopt;
    }
    if let Some(at) = next_try {
        return Action::Wait(Wake::At(at));
    }
    before_acceptance(challenge, observed, now)
}

fn finish(challenge: &Challenge) -> Action {
    if !challenge.metadata.finalizers.is_empty() && has_finalizer(challenge) {
        return Action::CleanUp;
    }
    if challenge.status.presented || challenge.status.processing {
        return Action::Settle;
    }
    Action::Wait(Wake::OnChange)
}

/// Returns since when the Order of an accepted Challenge has failed; `None` if the Order has not failed or is gone.
fn failed_since(accepted_at: Timestamp, order: Option<&Order>) -> Option<Timestamp> {
    let order = order.filter(|order| has_failed(Some(order)))?;
    Some(order.status.failure_time.map_or(accepted_at, Time::timestamp).max(accepted_at))
}

/// Returns until when the CA's result on a name is awaited, once its order has failed.
fn result_deadline(failed_at: Timestamp) -> Timestamp {
    failed_at.saturating_add(RESULT_WAIT_MAX).unwrap_or(failed_at)
}

/// Returns whether the CA has had its time to report on the name of a failed order: the authorization was read since,
/// or the CA asks for a longer pause.
fn is_past_hope(
    failed_at: Timestamp,
    next_try: Option<Timestamp>,
    polled: Option<Polled>,
    now: Timestamp,
) -> bool {
    let was_read = polled.is_some_and(|polled| polled.at > failed_at);
    (was_read || next_try.is_some()) && now >= result_deadline(failed_at)
}

/// Returns the action that offers an answer to the CA again; `None` if it is not visible while the CA's error stands.
fn offer_again(challenge: &Challenge, memory: &Memory, observed: &Observed<'_>) -> Option<Action> {
    if challenge.spec.solver.wait_instead_of_self_check.is_some() && !observed.by_hand {
        return Some(Action::Accept);
    }
    match observed.visible {
        None => Some(Action::SelfCheck),
        Some(Readiness::Ready) => Some(Action::Accept),
        Some(Readiness::NotYet { reason, cause }) => validation_error(challenge, memory)
            .is_none()
            .then(|| Action::Report(reason.clone(), *cause)),
    }
}

/// Returns when an accepted Challenge reads its authorization next, if it does.
fn next_reading(
    accepted_at: Timestamp,
    memory: &Memory,
    observed: &Observed<'_>,
    now: Timestamp,
) -> Wake {
    let (pace, since) = match (has_failed(observed.order) || observed.contended, observed.beside) {
        (true, _) => (Pace::Eager, accepted_at),
        (false, true) => (Pace::Spare, accepted_at),
        // While challenges of an order are accepted one after the other, the order is not overdue.
        (false, false) if observed.followed.accepted_since.is_some() => {
            let last = observed.followed.order_accepted_last;
            (Pace::Overdue, last.map_or(accepted_at, |at| at.max(accepted_at)))
        }
        (false, false) => return Wake::OnChange,
    };
    let named = memory.next_try.filter(|at| *at > now);
    named.or_else(|| poll_at(since, observed.polled, pace, now)).map_or(Wake::Now, Wake::At)
}

fn before_acceptance(challenge: &Challenge, observed: &Observed<'_>, now: Timestamp) -> Action {
    let own = challenge.status.presented_at.map_or(now, Time::timestamp);
    let soon = own.saturating_add(FIRST_SELF_CHECKS).unwrap_or(now);
    let late = own.saturating_add(SIBLING_WAIT_MAX).unwrap_or(now);
    let presented_at = match observed.record {
        RecordState::Expected | RecordState::Lacks(_) if now < soon => {
            return Action::Wait(Wake::At(soon));
        }
        // Not every change of the other challenge wakes this one: its turn may go to a third one.
        RecordState::Lacks(_) if now < late => {
            return Action::Wait(Wake::At(now.saturating_add(FIRST_SELF_CHECKS).unwrap_or(now)));
        }
        RecordState::Lacks(other) => {
            let lack = format!(
                "the value of challenge {other}, which stands beside this one, is not up yet"
            );
            return Action::Report(lack, None);
        }
        // The other challenge is slow to be created; then the two are checked one after the other.
        RecordState::Expected => own,
        RecordState::Complete(since) => since.map_or(own, |since| since.max(own)),
    };
    let wait = challenge.spec.solver.wait_instead_of_self_check;
    if let Some(wait) = wait.filter(|_| !observed.by_hand) {
        let until = presented_at.saturating_add(wait.0).unwrap_or(now);
        if until <= now {
            return Action::Accept;
        }
        let kind = challenge.spec.kind;
        let why = format!(
            "Waiting until {until:.0} before accepting {kind} challenge without self-check"
        );
        let is_told = challenge.status.reason == why;
        return if is_told { Action::Wait(Wake::At(until)) } else { Action::Defer(why) };
    }
    match observed.visible {
        None => Action::SelfCheck,
        Some(Readiness::Ready) => match observed.lingering.filter(|kept| kept.until > now) {
            Some(kept) => Action::HoldBack(kept.clone()),
            None => Action::Accept,
        },
        Some(Readiness::NotYet { reason, cause }) => Action::Report(reason.clone(), *cause),
    }
}

fn has_failed(order: Option<&Order>) -> bool {
    order.is_none_or(|order| order.status.state.is_some_and(State::is_failure))
}

fn has_finalizer(challenge: &Challenge) -> bool {
    challenge.metadata.finalizers.iter().any(|f| f == FINALIZER || f == LEGACY_FINALIZER)
}

fn has_only_our_finalizer(challenge: &Challenge) -> bool {
    let finalizers = &challenge.metadata.finalizers;
    finalizers.iter().any(|f| f == FINALIZER) && !finalizers.iter().any(|f| f == LEGACY_FINALIZER)
}

/// Returns `Valid` for an accepted Challenge whose order has moved on: the authorization holds; no request is needed.
fn settled_by_order(
    challenge: &Challenge,
    memory: &Memory,
    order: Option<&Order>,
) -> Option<State> {
    if challenge.has_ended() || memory.accepted_at.is_none() {
        return None;
    }
    match order?.status.state? {
        State::Ready | State::Processing | State::Valid => Some(State::Valid),
        State::Errored | State::Expired | State::Invalid | State::Pending => None,
    }
}

/// Returns the state that the authorization had when the Order read it.
pub fn first_state(challenge: &Challenge, order: Option<&Order>) -> Option<State> {
    order?
        .status
        .authorizations
        .iter()
        .find(|a| a.url == challenge.spec.authorization_url)
        .and_then(|a| a.initial_state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Problem;
    use crate::model::cause::Symptom;
    use crate::model::challenge::{FINALIZER, LEGACY_FINALIZER};
    use crate::model::event::reason;
    use crate::model::memory::Holder;
    use crate::reconcile::Refusal;
    use crate::reconcile::testing::{at, challenge, order};

    const NOBODY_LOOKED: Observed<'static> = Observed {
        order: None,
        contended: false,
        beside: false,
        polled: None,
        answer_stands: true,
        by_hand: false,
        visible: None,
        lingering: None,
        record: &RecordState::Complete(None),
        followed: Followed {
            accepted_since: None,
            order_accepted_last: None,
            is_at_work: false,
            is_ended_by_ca: false,
        },
    };

    /// A challenge in flight, as far as `change` takes it.
    fn running(change: impl FnOnce(&mut Challenge)) -> Challenge {
        challenge("www.example.com")
            .running(true)
            .change(|c| {
                c.metadata.finalizers = vec![FINALIZER.to_owned()];
                c.status.state = Some(State::Pending);
                c.status.presented = true;
                c.status.presented_at = Some(at(10).into());
                change(c);
            })
            .build()
    }

    fn accepted_at(challenge: &mut Challenge, second: i64) {
        let memory = Memory { accepted_at: Some(at(second)), ..Memory::default() };
        memory.write(Holder::Challenge, &mut challenge.metadata.annotations);
    }

    /// Asserts the action for a challenge whose order is in `state`.
    fn check(
        challenge: &Challenge,
        state: State,
        see: &Observed<'_>,
        second: i64,
        expected: &Action,
    ) {
        let order = order("web-1-42").state(state).authorization("www.example.com").build();
        let observed = Observed { order: Some(&order), ..*see };
        assert_eq!(next_action(challenge, &observed, at(second)), *expected);
    }

    #[test]
    fn a_challenge_that_is_not_admitted_waits_for_the_scheduler() {
        let new = challenge("www.example.com").build();
        check(&new, State::Pending, &NOBODY_LOOKED, 1, &Action::Wait(Wake::OnChange));
    }

    #[test]
    fn the_finalizer_is_on_the_object_before_anything_is_presented() {
        let bare = running(|c| c.metadata.finalizers.clear());
        check(&bare, State::Pending, &NOBODY_LOOKED, 1, &Action::AddFinalizer);
        let old = running(|c| c.metadata.finalizers = vec![LEGACY_FINALIZER.to_owned()]);
        check(&old, State::Pending, &NOBODY_LOOKED, 1, &Action::AddFinalizer);
    }

    #[test]
    fn the_first_state_is_what_the_order_has_read() {
        let fresh = running(|c| c.status.state = None);
        check(&fresh, State::Pending, &NOBODY_LOOKED, 1, &Action::TakeState(State::Pending));
    }

    #[test]
    fn a_presented_challenge_waits_for_its_self_check() {
        let presented = running(|_| ());
        check(&presented, State::Pending, &NOBODY_LOOKED, 11, &Action::SelfCheck);
        let cause = Some(Symptom::NotFound.into());
        let seen = Readiness::NotYet { reason: "wrong status code '404'".to_owned(), cause };
        let observed = Observed { visible: Some(&seen), ..NOBODY_LOOKED };
        let report = Action::Report("wrong status code '404'".to_owned(), cause);
        check(&presented, State::Pending, &observed, 11, &report);
        let observed = Observed { visible: Some(&Readiness::Ready), ..NOBODY_LOOKED };
        check(&presented, State::Pending, &observed, 11, &Action::Accept);
    }

    #[test]
    fn a_record_that_a_resolver_may_keep_as_it_was_is_waited_out() {
        let presented = running(|_| ());
        let kept = CachedRecord { record: "r.".to_owned(), ttl: 60, until: at(71) };
        let observed =
            Observed { visible: Some(&Readiness::Ready), lingering: Some(&kept), ..NOBODY_LOOKED };
        let hold_back = Action::HoldBack(kept.clone());
        check(&presented, State::Pending, &observed, 70, &hold_back);
        check(&presented, State::Pending, &observed, 71, &Action::Accept);
        let new = record(&presented, Outcome::HeldBack(kept.clone()), at(20));
        assert_eq!(new.status.reason, kept.reason(&presented));
        // Nobody looks again before, a restart included.
        let told =
            running(|c| assert!(new.memory.write(Holder::Challenge, &mut c.metadata.annotations)));
        check(&told, State::Pending, &NOBODY_LOOKED, 70, &Action::Wait(Wake::At(at(71))));
        check(&told, State::Pending, &NOBODY_LOOKED, 71, &Action::SelfCheck);
    }

    #[test]
    fn the_ca_is_told_of_no_value_before_the_other_one_of_the_record_is_up() {
        let presented = running(|_| ());
        let other = crate::model::ObjectName::new("default", "wild");
        let lacks = RecordState::Lacks(other);
        let seen = Observed { visible: Some(&Readiness::Ready), ..NOBODY_LOOKED };
        for record in [&lacks, &RecordState::Expected] {
            let observed = Observed { record, ..seen };
            check(&presented, State::Pending, &observed, 11, &Action::Wait(Wake::At(at(12))));
        }
        let late = Observed { record: &lacks, ..NOBODY_LOOKED };
        let reason =
            "the value of challenge default/wild, which stands beside this one, is not up yet";
        check(&presented, State::Pending, &late, 12, &Action::Wait(Wake::At(at(14))));
        check(&presented, State::Pending, &late, 20, &Action::Report(reason.to_owned(), None));
        let never = Observed { record: &RecordState::Expected, ..seen };
        check(&presented, State::Pending, &never, 12, &Action::Accept);
        let up = RecordState::Complete(Some(at(20)));
        let both = Observed { record: &up, ..seen };
        check(&presented, State::Pending, &both, 20, &Action::Accept);
        // The wait in place of a self-check begins with the last of them.
        let wait = running(|c| {
            c.spec.solver.wait_instead_of_self_check = Some(crate::model::Duration::from_secs(5));
        });
        let why = "Waiting until 2027-01-15T08:00:25Z before accepting HTTP-01 challenge without self-check";
        check(&wait, State::Pending, &both, 20, &Action::Defer(why.into()));
    }

    #[test]
    fn a_ca_that_cannot_be_told_is_in_the_reason_until_it_has_been() {
        let presented = running(|_| ());
        let why = "503 urn:ietf:params:acme:error:serverInternal: upstream is away".to_owned();
        let new = record(&presented, Outcome::AcceptFailed(why.clone(), None), at(20));
        assert_eq!(new.status.reason, format!("Error accepting challenge: {why}"));
        assert_eq!((new.status.state, new.notes.len()), (Some(State::Pending), 0));
        let failed = running(|c| c.status.reason.clone_from(&new.status.reason));
        let new = record(&failed, Outcome::Accepted(SeenChallenge::default()), at(21));
        assert_eq!(new.status.reason, "");
    }

    #[test]
    fn an_answer_that_died_with_its_process_is_put_up_again() {
        let observed = Observed { answer_stands: false, ..NOBODY_LOOKED };
        check(&running(|_| ()), State::Pending, &observed, 11, &Action::Present);
        check(&running(|c| accepted_at(c, 12)), State::Pending, &observed, 13, &Action::Present);
        check(
            &running(|c| c.status.presented = false),
            State::Pending,
            &NOBODY_LOOKED,
            11,
            &Action::Present,
        );
    }

    #[test]
    fn waiting_can_stand_in_for_the_self_check() {
        let wait = |seconds| {
            running(|c| {
                c.spec.solver.wait_instead_of_self_check =
                    Some(crate::model::Duration::from_secs(seconds));
            })
        };
        check(&wait(0), State::Pending, &NOBODY_LOOKED, 10, &Action::Accept);
        let by_hand = Observed { by_hand: true, ..NOBODY_LOOKED };
        check(&wait(0), State::Pending, &by_hand, 10, &Action::SelfCheck);
        let why = "Waiting until 2027-01-15T08:05:10Z before accepting HTTP-01 challenge without self-check";
        check(&wait(300), State::Pending, &NOBODY_LOOKED, 70, &Action::Defer(why.into()));
        let mut told = wait(300);
        told.status = record(&told, Outcome::Deferred(why.into()), at(70)).status;
        let until = Action::Wait(Wake::At(at(310)));
        check(&told, State::Pending, &NOBODY_LOOKED, 71, &until);
        let timeless = running(|c| {
            c.spec.solver.wait_instead_of_self_check = Some(crate::model::Duration::from_secs(9));
            c.status.presented_at = None;
        });
        check(&timeless, State::Pending, &NOBODY_LOOKED, 70, &Action::Present);
        let new = record(&timeless, Outcome::Presented(Vec::new()), at(70));
        assert_eq!((new.status.presented_at, new.notes.len()), (Some(at(70).into()), 0));
    }

    #[test]
    fn an_accepted_challenge_leaves_the_polling_to_its_order() {
        let accepted = running(|c| accepted_at(c, 12));
        check(&accepted, State::Pending, &NOBODY_LOOKED, 13, &Action::Wait(Wake::OnChange));
        for state in [State::Ready, State::Processing, State::Valid] {
            check(&accepted, state, &NOBODY_LOOKED, 13, &Action::TakeState(State::Valid));
        }
        check(&accepted, State::Invalid, &NOBODY_LOOKED, 13, &Action::FetchState);
    }

    #[test]
    fn it_reads_its_own_authorization_when_the_ca_should_have_settled_it_long_since() {
        let accepted = running(|c| accepted_at(c, 12));
        let known = Followed { accepted_since: Some(at(12)), ..Followed::default() };
        let followed = Observed { followed: known, ..NOBODY_LOOKED };
        check(&accepted, State::Pending, &followed, 13, &Action::Wait(Wake::At(at(17))));
        check(&accepted, State::Pending, &followed, 17, &Action::FetchState);
        let known = Followed { order_accepted_last: Some(at(16)), ..known };
        let followed = Observed { followed: known, ..NOBODY_LOOKED };
        check(&accepted, State::Pending, &followed, 17, &Action::Wait(Wake::At(at(21))));
    }

    #[test]
    fn it_reads_its_own_authorization_when_another_waits_for_its_slot() {
        let accepted = running(|c| accepted_at(c, 12));
        let observed = Observed { contended: true, ..NOBODY_LOOKED };
        check(&accepted, State::Pending, &observed, 13, &Action::FetchState);
    }

    #[test]
    fn it_reads_its_own_authorization_now_and_then_beside_one_that_is_kept_from_the_ca() {
        let accepted = running(|c| accepted_at(c, 12));
        let beside = Observed { beside: true, ..NOBODY_LOOKED };
        check(&accepted, State::Pending, &beside, 13, &Action::Wait(Wake::At(at(14))));
        check(&accepted, State::Pending, &beside, 14, &Action::FetchState);
        let polled = |second, retry_after: Option<i64>| {
            Some(Polled { at: at(second), retry_after: retry_after.map(at) })
        };
        let beside = Observed { polled: polled(14, None), ..beside };
        check(&accepted, State::Pending, &beside, 14, &Action::Wait(Wake::At(at(16))));
        let beside = Observed { polled: polled(912, None), ..beside };
        check(&accepted, State::Pending, &beside, 912, &Action::Wait(Wake::At(at(942))));
        let beside = Observed { polled: polled(14, Some(900)), ..beside };
        check(&accepted, State::Pending, &beside, 30, &Action::Wait(Wake::At(at(900))));
    }

    #[test]
    fn a_reading_that_brings_nothing_new_is_not_written_down() {
        let accepted = running(|c| accepted_at(c, 12));
        let read = |retry_after: i64| {
            let state = Some(State::Pending);
            let said = SeenChallenge {
                state,
                retry_after: Some(at(retry_after)),
                ..SeenChallenge::default()
            };
            record(&accepted, Outcome::StateFetched(said), at(14))
        };
        let unchanged = (accepted.status.clone(), memory(&accepted));
        for seconds in [0, 14, 16] {
            let new = read(seconds);
            assert_eq!((new.status, new.memory), unchanged, "{seconds}");
        }
        assert_eq!(read(60).memory.next_try, Some(at(60)));
    }

    #[test]
    fn a_challenge_that_the_ca_looks_at_already_is_answered_and_not_told_again() {
        let begun = |order: &mut Order| {
            order.status.authorizations[0].initial_state = Some(State::Processing);
        };
        let order = order("web-1-42").state(State::Pending).authorization("www.example.com");
        let order = order.change(begun).build();
        let next = |challenge: &Challenge| {
            let observed = Observed { order: Some(&order), ..NOBODY_LOOKED };
            next_action(challenge, &observed, at(13))
        };
        let first = running(|c| {
            c.status.state = None;
            c.status.presented = false;
        });
        assert_eq!(next(&first), Action::TakeState(State::Processing));
        let taken = record(&first, Outcome::StateTaken(State::Processing), at(13)).status;
        assert_eq!(taken.state, Some(State::Pending));
        let first = Challenge { status: taken, ..first };
        assert_eq!(next(&first), Action::Present);
        assert_eq!(next(&running(|_| ())), Action::Adopt);
        let adopted = running(|c| accepted_at(c, 12));
        assert_eq!(next(&adopted), Action::Wait(Wake::OnChange));
    }

    #[test]
    fn a_deleted_or_final_challenge_is_cleaned_up_before_it_goes() {
        let valid = running(|c| c.status.state = Some(State::Valid));
        check(&valid, State::Ready, &NOBODY_LOOKED, 13, &Action::CleanUp);
        let deleted = running(|c| c.metadata.deletion_timestamp = Some(at(11).into()));
        check(&deleted, State::Pending, &NOBODY_LOOKED, 13, &Action::CleanUp);
        let clean = running(|c| {
            c.status.state = Some(State::Valid);
            c.metadata.finalizers.clear();
        });
        check(&clean, State::Ready, &NOBODY_LOOKED, 13, &Action::Settle);
    }

    #[test]
    fn a_challenge_of_a_failed_order_gives_its_slot_back() {
        check(&running(|_| ()), State::Invalid, &NOBODY_LOOKED, 13, &Action::Abandon);
    }

    #[test]
    fn a_ca_that_never_says_a_word_of_a_name_does_not_keep_the_answer_of_a_failed_order_up() {
        let accepted = running(|c| accepted_at(c, 12));
        let order = order("web-1-42").state(State::Invalid).authorization("www.example.com");
        let order = order.change(|o| o.status.failure_time = Some(at(100).into())).build();
        let next = |polled: i64, second: i64| {
            let polled = Some(Polled { at: at(polled), retry_after: None });
            let observed = Observed { order: Some(&order), polled, ..NOBODY_LOOKED };
            next_action(&accepted, &observed, at(second))
        };
        assert_eq!(next(158, 159), Action::Wait(Wake::At(at(160))));
        // What was read before the order failed says nothing of that.
        assert_eq!(next(90, 160), Action::FetchState);
        assert_eq!(next(159, 160), Action::Abandon);
        let new = record(&accepted, Outcome::Abandoned, at(160)).status;
        assert_eq!(new.state, Some(State::Errored));
        let gone = running(|c| new.clone_into(&mut c.status));
        check(&gone, State::Invalid, &NOBODY_LOOKED, 161, &Action::CleanUp);
    }

    #[test]
    fn a_ca_that_wants_to_be_left_alone_is_not_asked_of_a_failed_order_before_that_is_given_up() {
        let accepted = running(|c| accepted_at(c, 12));
        let order = order("web-1-42").state(State::Invalid).authorization("www.example.com");
        let order = order.change(|o| o.status.failure_time = Some(at(100).into())).build();
        let next = |polled: i64, named: i64, second: i64| {
            let polled = Some(Polled { at: at(polled), retry_after: Some(at(named)) });
            let observed = Observed { order: Some(&order), polled, ..NOBODY_LOOKED };
            next_action(&accepted, &observed, at(second))
        };
        for polled in [90, 101] {
            assert_eq!(next(polled, 900, 110), Action::Wait(Wake::At(at(160))), "{polled}");
            assert_eq!(next(polled, 900, 160), Action::Abandon, "{polled}");
            assert_eq!(next(polled, 130, 110), Action::Wait(Wake::At(at(130))), "{polled}");
            assert_eq!(next(polled, 130, 130), Action::FetchState, "{polled}");
        }
    }

    #[test]
    fn a_challenge_whose_order_is_gone_waits_for_its_own_end_if_it_has_one() {
        let observed = Observed { order: None, ..NOBODY_LOOKED };
        let owned =
            running(|c| c.metadata.owner_references = vec![order("o").build().owner_reference()]);
        assert_eq!(next_action(&owned, &observed, at(13)), Action::Wait(Wake::OnChange));
        let alone = running(|c| c.metadata.owner_references.clear());
        assert_eq!(next_action(&alone, &observed, at(13)), Action::Abandon);
    }

    #[test]
    fn what_the_ca_said_is_kept_in_its_own_words() {
        let accepted = running(|c| accepted_at(c, 12));
        let problem = Problem {
            kind: "urn:ietf:params:acme:error:unauthorized".to_owned(),
            detail: "Invalid response: 404".to_owned(),
            status: 403,
            ..Problem::default()
        };
        let said = SeenChallenge {
            state: Some(State::Invalid),
            problem: Some(problem),
            ..SeenChallenge::default()
        };
        let new = record(&accepted, Outcome::StateFetched(said), at(14));
        assert_eq!(new.status.state, Some(State::Invalid));
        assert_eq!(
            new.status.reason,
            "Error accepting authorization: acme: authorization error for www.example.com: 403 \
             urn:ietf:params:acme:error:unauthorized: Invalid response: 404"
        );
        assert_eq!(new.notes[0].reason, reason::FAILED);
    }

    #[test]
    fn a_refusal_that_passes_waits_and_says_until_when() {
        let problem = Box::new(Problem { status: 429, ..Problem::default() });
        let new =
            record(&running(|_| ()), Outcome::Refused(Refusal::Until(problem, at(60))), at(14));
        assert_eq!(new.status.state, Some(State::Pending));
        assert_eq!(new.memory.next_try, Some(at(60)));
        assert!(
            new.status.reason.ends_with("; next try at 2027-01-15T08:01:00Z"),
            "{}",
            new.status.reason
        );
    }

    #[test]
    fn a_reading_that_is_refused_waits_before_that_is_written_and_says_so_until_the_next() {
        let problem = Box::new(Problem { status: 429, ..Problem::default() });
        let refused = Outcome::Refused(Refusal::Until(problem, at(60)));
        let polled = polled(&refused, at(14));
        let contended = Observed { contended: true, polled, ..NOBODY_LOOKED };
        let accepted = running(|c| accepted_at(c, 12));
        check(&accepted, State::Pending, &contended, 59, &Action::Wait(Wake::At(at(60))));
        check(&accepted, State::Pending, &contended, 60, &Action::FetchState);
        // An acceptance that was refused.
        let told = Observed { polled, visible: Some(&Readiness::Ready), ..NOBODY_LOOKED };
        check(&running(|_| ()), State::Pending, &told, 59, &Action::Wait(Wake::At(at(60))));
        check(&running(|_| ()), State::Pending, &told, 60, &Action::Accept);
        let new = record(&accepted, refused, at(14));
        assert!(
            new.status.reason.starts_with("Failed to fetch authorization: 429"),
            "{}",
            new.status.reason
        );
        let told = running(|c| {
            c.status.reason.clone_from(&new.status.reason);
            assert!(new.memory.write(Holder::Challenge, &mut c.metadata.annotations));
        });
        let pending = SeenChallenge { state: Some(State::Pending), ..SeenChallenge::default() };
        let new = record(&told, Outcome::StateFetched(pending), at(61));
        assert_eq!((new.status.reason.as_str(), new.memory.accepted_at), ("", Some(at(12))));
    }

    #[test]
    fn a_failing_clean_up_releases_the_slot_and_keeps_the_good_news() {
        let valid = running(|c| {
            c.status.state = Some(State::Valid);
            "Successfully authorized domain".clone_into(&mut c.status.reason);
        });
        let new = record(&valid, Outcome::CleanUpFailed("no route".to_owned(), None), at(14));
        assert!(!new.status.processing);
        assert_eq!(new.status.reason, "Successfully authorized domain");
        assert_eq!(new.notes[0].message, "Error cleaning up challenge: no route");
    }
}
