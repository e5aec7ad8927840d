//! Order: create, authorize, finalize, download.
//!
//! An ACME order goes through these states (RFC 8555 §7.1.6); the code makes or notices each change here:
//!
//! ```text
//! (none)                newOrder: `decide` chooses `Action::Create`, `OrderAtCa::create` sends it, `fold` keeps it
//!    │
//!    ▼
//! pending ─────────┐    authorizations: `decide` has them read, `sync_challenges` creates Challenges for open ones;
//!    │             │    all valid: the CA changes the state, `pending` has the order read, `fold_fetched` notices it
//!    ▼             │
//! ready ───────────┤    finalize: `decide` chooses `Action::Finalize`, `OrderAtCa::finalize` sends the signing request
//!    │             │
//!    ▼             │
//! processing ──────┤    issuance: `poll` has the order read, `OrderAtCa::conclude` downloads and checks the chain,
//!    │             │    `fold` keeps it
//!    ▼             ▼
//! valid         invalid an error, or a failed authorization: `fold` notices it, `after_failure` gives up an order
//!                       that the CA keeps pending, `fail` keeps the state and the reason
//! ```
//!
//! After `valid`, `clear_away` deletes the Challenges. `OrderAtCa` is in `controllers::order_requests`; `fold`,
//! `fold_fetched` and `fail` are in [`outcome`].
//!
//! While all Challenges are accepted, only the Order is polled; a Challenge sees `ready` in the Order that it observes.
//! While something keeps a Challenge with a slot from the CA, and no Challenge was accepted for a second, the Order is
//! polled for the other Challenges. Otherwise no poll comes before 5 s without an acceptance. An order that has turned
//! invalid has its authorizations read and ends every Challenge. An order that is born `ready` is finalized without
//! reading its authorizations.
//!
//! A Challenge that failed ends the Order even if the CA keeps the order pending (after some seconds for `invalid`), and
//! an order a minute past its `expires` is `expired`: cert-manager's Order stays pending for ever, and every wait of
//! this program is bounded. For the same reason a pending order without a known expiry is read once.

pub mod outcome;
pub mod required;
pub mod shared;
pub mod turns;
mod words;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

pub use self::outcome::Outcome;
pub use self::outcome::SeenOrder;
pub use self::outcome::dropped;
pub use self::outcome::polled;
pub use self::outcome::record;
pub use self::outcome::waits_for;
use self::required::{OrderTerms, Required, Unsolved, wanted};
use self::shared::{Sharer, ahead, waiting_message};
pub use self::words::OrderRequest;
use self::words::{solver_message, unproven};
use super::pauses::{Pace, Polled, poll_at};
use super::{Refusal, Wake, schedule};
use crate::model::cause::{Cause, OrderWait};
use crate::model::memory::{Holder, Memory};
use crate::model::order::Authorization;
use crate::model::{Challenge, Order, OrderStatus, Problem, State, Time};

/// Longest time after the acceptance of a challenge that turned invalid in which its order may stay pending.
const PENDING_AFTER_FAILURE_MAX: SignedDuration = SignedDuration::from_secs(5);

/// Longest gap between two acceptances of an order in which no challenge is stuck.
const ACCEPTANCE_GAP_MAX: SignedDuration = SignedDuration::from_secs(1);
/// Number of challenges that lengthen the gap by a second: a hundred self-checks and acceptances take their time.
const CHALLENGES_PER_SECOND: usize = 20;

/// Time after its expiry at which an order is given up without a request: clocks differ.
const EXPIRY_MARGIN: SignedDuration = SignedDuration::from_secs(60);
/// Time after its expiry at which an order is checked against [`EXPIRY_MARGIN`].
const EXPIRY_CHECK_AFTER: SignedDuration = SignedDuration::from_secs(61);

/// Observations of one step beside the Order.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// Challenges that this Order owns.
    pub challenges: &'a [Challenge],
    /// Challenges that the authorizations call for, or why none can be made; empty before the authorizations are read.
    pub required: Result<&'a [Required], &'a Unsolved>,
    /// Other Orders under way here that got the same order from the CA.
    pub sharers: &'a [Sharer],
    /// Last reading of the order by this process; another process starts anew.
    pub heard: Option<LastRead>,
}

/// Last reading of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRead {
    /// Moment of the reading, and the CA's Retry-After.
    pub polled: Polled,
    /// Whether one of the Order's Challenges had failed by then.
    pub after_failure: bool,
}

/// Next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Requests the order (newOrder).
    Create(OrderTerms),
    /// Creates these Challenges.
    CreateChallenges(Vec<Required>),
    /// Deletes Challenges by name.
    DeleteChallenges(Vec<String>),
    /// Records that the order is too old to go on.
    Expire(Timestamp),
    /// Records for which name there is no solver.
    Explain(Unsolved),
    /// Records that there are solvers for all names by now.
    Solved,
    /// Reads the order, and downloads the chain once the order is valid.
    Fetch,
    /// Reads these authorizations in parallel.
    FetchAuthorizations(Vec<String>),
    /// Sends the signing request.
    Finalize,
    /// Forgets the order that another Order has used, and requests a new one.
    Forget,
    /// Gives up: why, in words, and the CA's problem, if any.
    GiveUp(String, Option<Box<Problem>>),
    /// Gives up, because the CA did not find the answer for a name: why, in words, and the CA's problem, if any.
    Invalidate(String, Option<Box<Problem>>),
    /// Records that another Order goes first.
    StandBack(String),
    /// Waits.
    Wait(Wake),
}

impl Action {
    /// Returns whether a CA's reply that is not in the store yet makes this action superfluous, see [`is_asked_once`].
    pub fn is_answered_by(&self, outcome: &Outcome, now: Timestamp) -> bool {
        let is_over = matches!(outcome, Outcome::Refused(_, Refusal::Until(_, at)) if *at <= now);
        matches!(self, Self::Create(_)) && is_asked_once(outcome) && !is_over
    }
}

/// Returns whether a repeated request would create a second order, or count as one. The client itself sends no other
/// request before the moment that the CA named.
pub fn is_asked_once(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Created(_) | Outcome::Refused(OrderRequest::Create, Refusal::Until(..))
    )
}

/// Decides what to do next; no wait lasts beyond the end of the order.
pub fn next_action(order: &Order, observed: &Observed<'_>, now: Timestamp) -> Action {
    let action = decide(order, observed, now);
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    let expires = memory.expires.filter(|_| !order.has_ended());
    let is_unanswered = waits_for(order) == Some(OrderWait::Authority)
        && memory.next_try.is_none_or(|at| at <= now);
    match (action, expires.and_then(|at| at.checked_add(EXPIRY_CHECK_AFTER).ok())) {
        (Action::Wait(Wake::OnChange), Some(end)) if end > now => Action::Wait(Wake::At(end)),
        (Action::Wait(Wake::At(at)), Some(end)) => Action::Wait(Wake::At(at.min(end))),
        // Another program began the order, or this one was killed before the expiry was written: the CA has it.
        (Action::Wait(Wake::OnChange), None) if is_endless(order, &memory) => Action::Fetch,
        // The unanswered reading stays in the reason until the CA answers: two reasons would alternate.
        (Action::StandBack(_) | Action::Explain(_), None)
            if is_unanswered && is_endless(order, &memory) =>
        {
            Action::Fetch
        }
        (action, _) => action,
    }
}

/// Returns whether nothing bounds the wait for the challenges of an order.
fn is_endless(order: &Order, memory: &Memory) -> bool {
    let Order { status, metadata, .. } = order;
    let is_pending = status.state == Some(State::Pending) && !status.url.is_empty();
    is_pending && memory.expires.is_none() && !metadata.is_deleted()
}

fn decide(order: &Order, observed: &Observed<'_>, now: Timestamp) -> Action {
    let status = &order.status;
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    if order.metadata.is_deleted() || status.state.is_some_and(State::is_failure) {
        return Action::Wait(Wake::OnChange);
    }
    if status.state == Some(State::Valid) && !status.certificate.is_empty() {
        return clear_away(observed.challenges);
    }
    if let Some(at) = memory.expires.filter(|at| now.duration_since(*at) > EXPIRY_MARGIN) {
        return Action::Expire(at);
    }
    if let Some(at) = memory.next_try.filter(|at| *at > now) {
        // The CA asked for patience; work on our own objects goes on meanwhile.
        return sync_challenges(order, observed).unwrap_or(Action::Wait(Wake::At(at)));
    }
    if status.url.is_empty() {
        return match wanted(order, now) {
            Ok(wanted) => Action::Create(wanted),
            Err(why) => Action::GiveUp(why, None),
        };
    }
    let created_at = order.metadata.creation_timestamp.map_or(now, Time::timestamp);
    let last_deed = memory.finalized_at.unwrap_or(created_at);
    let poll = || poll(last_deed, observed, Pace::Eager, now);
    if status.finalize_url.is_empty() || status.state == Some(State::Valid) {
        return poll();
    }
    if let Some(deed) = share(order, observed.sharers) {
        return deed;
    }
    let unread = unread(status);
    // An order that is ready or further needs no authorization: nothing is left to prove.
    if !unread.is_empty() && status.state == Some(State::Pending) {
        return Action::FetchAuthorizations(unread);
    }
    if let Some(deed) = sync_challenges(order, observed) {
        return deed;
    }
    match status.state {
        // Another Order may have finalized the order for its key, which this process has not observed yet.
        Some(State::Ready) if observed.heard.is_none() && !observed.sharers.is_empty() => poll(),
        Some(State::Ready) if memory.finalized_at.is_none() => Action::Finalize,
        Some(State::Pending) | None => pending(observed, created_at, now),
        Some(
            State::Ready
            | State::Processing
            | State::Valid
            | State::Invalid
            | State::Expired
            | State::Errored,
        ) => poll(),
    }
}

/// Lets another Order go first that has the same order, and requests a new one afterwards. Nothing is lost: the CA
/// returns what the other Order left pending, and names that it proved need no second proof.
fn share(order: &Order, sharers: &[Sharer]) -> Option<Action> {
    let Some(first) = ahead(order, sharers) else {
        let stands_back = waits_for(order) == Some(OrderWait::OtherOrder);
        return stands_back.then_some(Action::Forget);
    };
    let why = waiting_message(&first.name());
    let told = order.status.reason == why;
    Some(if told { Action::Wait(Wake::OnChange) } else { Action::StandBack(why) })
}

/// Creates missing Challenges and deletes those no longer called for, once all authorizations are read, and unless
/// another Order goes first.
fn sync_challenges(order: &Order, observed: &Observed<'_>) -> Option<Action> {
    let is_pending = !order.status.url.is_empty() && order.status.state == Some(State::Pending);
    let is_read = unread(&order.status).is_empty();
    if !is_pending || !is_read || ahead(order, observed.sharers).is_some() {
        return None;
    }
    let required = match observed.required {
        Ok(required) => required,
        Err(unsolved) => {
            let why = solver_message(&unsolved.why);
            let told = order.status.reason == why;
            let explain = || Action::Explain(Unsolved { why, ..unsolved.clone() });
            return Some(if told { Action::Wait(Wake::OnChange) } else { explain() });
        }
    };
    let exists = |name: &str| observed.challenges.iter().any(|c| c.metadata.name == name);
    let missing: Vec<Required> = required.iter().filter(|r| !exists(&r.name)).cloned().collect();
    if !missing.is_empty() {
        return Some(Action::CreateChallenges(missing));
    }
    let surplus: Vec<String> = observed
        .challenges
        .iter()
        .filter(|c| !c.metadata.is_deleted())
        .map(|c| c.metadata.name.clone())
        .filter(|name| !required.iter().any(|r| r.name == *name))
        .collect();
    if !surplus.is_empty() {
        return Some(Action::DeleteChallenges(surplus));
    }
    // Solvers have been found since.
    let is_unsolved =
        matches!(waits_for(order), Some(OrderWait::Solver | OrderWait::ChallengeType));
    is_unsolved.then_some(Action::Solved)
}

/// Returns the action for a pending order: it waits while challenges are under way, and is polled once one is accepted,
/// the sooner the less else there is to wait for.
fn pending(observed: &Observed<'_>, created_at: Timestamp, now: Timestamp) -> Action {
    let (mut is_open, mut kept_back_from) = (false, None);
    let mut accepted_last = None;
    let mut unsettled: Vec<Timestamp> = Vec::new();
    // A challenge of an order that the CA has dropped is about to go and has no bearing on the new order.
    let required = observed.required.unwrap_or_default();
    let is_of_this = |c: &&Challenge| required.iter().any(|r| r.name == c.metadata.name);
    for challenge in observed.challenges.iter().filter(is_of_this) {
        let status = &challenge.status;
        if status.state.is_some_and(State::is_failure) {
            return after_failure(challenge, observed, now);
        }
        let accepted_at =
            Memory::read(Holder::Challenge, &challenge.metadata.annotations).accepted_at;
        accepted_last = accepted_last.max(accepted_at);
        if !status.state.is_some_and(State::is_final) {
            unsettled.extend(accepted_at);
            is_open |= accepted_at.is_none();
            let from = schedule::kept_back_from(challenge);
            kept_back_from = kept_back_from.into_iter().chain(from).min();
        }
    }
    // The Order's creation time is by the clock of an API server, which may be ahead of ours.
    let last_deed = accepted_last.unwrap_or(created_at);
    let heard_at = observed.heard.map(|heard| heard.polled.at);
    let unheard = unsettled.iter().copied().filter(|at| heard_at.is_none_or(|heard| heard < *at));
    if !is_open {
        return poll(last_deed, observed, Pace::Eager, now);
    }
    if unsettled.is_empty() {
        // No challenge is accepted yet, so there is no result to read; a change of a challenge wakes this Order.
        return Action::Wait(Wake::OnChange);
    }
    match kept_back_from {
        Some(from) if from <= now => {
            // While one acceptance follows the other no challenge is stuck.
            let many = i64::try_from(observed.challenges.len() / CHALLENGES_PER_SECOND)
                .unwrap_or(i64::MAX);
            let flowing = ACCEPTANCE_GAP_MAX.saturating_add(SignedDuration::from_secs(many));
            match last_deed.checked_add(flowing).ok().filter(|at| *at > now) {
                Some(at) => Action::Wait(Wake::At(at)),
                None => poll(unheard.min().unwrap_or(last_deed), observed, Pace::Beside, now),
            }
        }
        from => match (poll(last_deed, observed, Pace::Patient, now), from) {
            (Action::Wait(Wake::At(at)), Some(from)) => Action::Wait(Wake::At(at.min(from))),
            (action, _) => action,
        },
    }
}

/// Returns the action after a failed challenge: the order is read, but a CA that keeps it pending does not block us.
fn after_failure(challenge: &Challenge, observed: &Observed<'_>, now: Timestamp) -> Action {
    if !observed.heard.is_some_and(|heard| heard.after_failure) {
        return Action::Fetch;
    }
    let told = challenge.status.state == Some(State::Invalid);
    let since = Memory::read(Holder::Challenge, &challenge.metadata.annotations).accepted_at;
    let agrees = since.filter(|at| told && now.duration_since(*at) <= PENDING_AFTER_FAILURE_MAX);
    if let Some(since) = agrees {
        return poll(since, observed, Pace::Eager, now);
    }
    let name = &challenge.spec.dns_name;
    let reason = &challenge.status.reason;
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    let cause = memory.cause.as_ref().and_then(|about| about.of(reason));
    let why = || format!("challenge for {name}: {reason}");
    match cause {
        Some(Cause::Validation(problem)) if told => {
            Action::Invalidate(unproven(name, problem), Some(problem.clone()))
        }
        Some(Cause::Validation(problem) | Cause::Refused(problem)) => {
            Action::GiveUp(why(), Some(problem.clone()))
        }
        Some(Cause::Seen(_) | Cause::NoIngress | Cause::Denied(_) | Cause::Provider(_)) | None
            if told =>
        {
            Action::Invalidate(why(), None)
        }
        Some(Cause::Seen(_) | Cause::NoIngress | Cause::Denied(_) | Cause::Provider(_)) | None => {
            Action::GiveUp(why(), None)
        }
    }
}

/// Reads the order when the poll is due; the operation that is polled for began at `since`.
fn poll(since: Timestamp, observed: &Observed<'_>, pace: Pace, now: Timestamp) -> Action {
    let polled = observed.heard.map(|heard| heard.polled);
    poll_at(since, polled, pace, now).map_or(Action::Fetch, |at| Action::Wait(Wake::At(at)))
}

/// Deletes, once the certificate is there, the Challenges that have recorded their end; the others first record it.
fn clear_away(challenges: &[Challenge]) -> Action {
    let done: Vec<String> = challenges
        .iter()
        .filter(|c| !c.metadata.is_deleted() && c.has_ended())
        .map(|c| c.metadata.name.clone())
        .collect();
    if done.is_empty() { Action::Wait(Wake::OnChange) } else { Action::DeleteChallenges(done) }
}

fn unread(status: &OrderStatus) -> Vec<String> {
    let bare = |a: &&Authorization| a.identifier.is_empty();
    let mut urls = BTreeSet::new();
    let bare = status.authorizations.iter().filter(bare).map(|a| &a.url);
    bare.filter(|url| urls.insert(*url)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::outcome::ORDER_LIFETIME_DEFAULT;
    use super::*;
    use crate::model::event::reason;
    use crate::model::{Blob, Identifier, Problem};
    use crate::reconcile::challenge::{self, SeenChallenge};
    use crate::reconcile::testing::{at, challenge, order};

    const NAME: &str = "www.example.com";

    #[test]
    fn an_answer_that_is_not_in_the_store_yet_takes_the_place_of_the_request_until_its_moment() {
        let made = Outcome::Created(SeenOrder::default());
        let refusal = Refusal::Until(Box::default(), at(10));
        let refused = Outcome::Refused(OrderRequest::Create, refusal);
        let create = Action::Create(wanted(&order(NAME).build(), at(0)).unwrap());
        for (action, outcome, [before, then]) in [
            (&create, &made, [true, true]),
            (&Action::Fetch, &made, [false, false]),
            (&create, &refused, [true, false]),
            (&Action::Finalize, &refused, [false, false]),
            (&Action::Solved, &refused, [false, false]),
            (&Action::Wait(Wake::OnChange), &refused, [false, false]),
        ] {
            assert!(is_asked_once(outcome));
            let is_answered = |second| action.is_answered_by(outcome, at(second));
            assert_eq!([9, 10].map(is_answered), [before, then], "{action:?} {outcome:?}");
        }
        let refused =
            Outcome::Refused(OrderRequest::Finalize, Refusal::Until(Box::default(), at(10)));
        for other in [refused, Outcome::Fetched(SeenOrder::default())] {
            assert!(!is_asked_once(&other));
        }
    }

    fn required() -> Vec<Required> {
        let spec = challenge(NAME).build().spec;
        vec![Required { name: NAME.to_owned(), spec }]
    }

    fn remember(order: &mut Order, memory: &Memory) {
        memory.write(Holder::Order, &mut order.metadata.annotations);
    }

    /// As the CA has told its end.
    fn ending(mut order: Order) -> Order {
        let memory = Memory::read(Holder::Order, &order.metadata.annotations);
        remember(&mut order, &Memory { expires: Some(at(1000)), ..memory });
        order
    }

    /// Until the end of that.
    fn wait() -> Action {
        Action::Wait(Wake::At(at(1000) + EXPIRY_CHECK_AFTER))
    }

    fn accepted(second: i64) -> Challenge {
        let memory = Memory { accepted_at: Some(at(second)), ..Memory::default() };
        challenge(NAME)
            .running(true)
            .state(State::Pending)
            .change(|c| {
                memory.write(Holder::Challenge, &mut c.metadata.annotations);
            })
            .build()
    }

    fn check(order: &Order, challenges: &[Challenge], second: i64, expected: &Action) {
        let required = required();
        let observed = Observed { challenges, required: Ok(&required), sharers: &[], heard: None };
        assert_eq!(next_action(order, &observed, at(second)), *expected);
    }

    fn problem(status: u16, kind: &str) -> Problem {
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        Problem { kind, status, detail: "no".to_owned(), ..Problem::default() }
    }

    #[test]
    fn names_are_ordered_once_and_sorted() {
        let new = order("o")
            .change(|o| {
                o.spec.dns_names =
                    ["b.example", "A.example", "b.example"].map(str::to_owned).to_vec();
                o.spec.ip_addresses = vec!["192.0.2.1".to_owned()];
                "c.example".clone_into(&mut o.spec.common_name);
            })
            .build();
        let names: Vec<String> =
            wanted(&new, at(0)).unwrap().identifiers.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a.example", "b.example", "c.example", "192.0.2.1"]);
        let odd = order("o").change(|o| "My Site".clone_into(&mut o.spec.common_name)).build();
        assert_eq!(wanted(&odd, at(0)).unwrap().identifiers.len(), 1);
    }

    #[test]
    fn a_new_order_is_created_then_its_authorizations_are_read() {
        let fresh = order("o").build();
        let identifiers = vec![Identifier::parse(NAME).unwrap()];
        check(&fresh, &[], 1, &Action::Create(OrderTerms { identifiers, ..OrderTerms::default() }));
        let seen = SeenOrder {
            url: "https://ca.example/order/1".to_owned(),
            finalize_url: "https://ca.example/f".to_owned(),
            authorizations: vec!["https://ca.example/authz/1".to_owned()],
            state: Some(State::Pending),
            ..SeenOrder::default()
        };
        let status = record(&fresh, Outcome::Created(seen), at(1)).status;
        let created = order("o").change(|o| o.status = status).build();
        let urls = vec!["https://ca.example/authz/1".to_owned()];
        check(&created, &[], 2, &Action::FetchAuthorizations(urls));
    }

    #[test]
    fn challenges_follow_the_authorizations() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        check(&read, &[], 1, &Action::CreateChallenges(required()));
        let stranger = challenge("other.example").build();
        let ours = challenge(NAME).build();
        let surplus = Action::DeleteChallenges(vec!["other.example".to_owned()]);
        check(&read, &[ours.clone(), stranger], 1, &surplus);
        check(&ending(read), &[ours], 1, &wait());
    }

    #[test]
    fn the_end_of_an_order_that_others_began_is_read_once() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let ours = [challenge(NAME).build()];
        check(&read, &ours, 10, &Action::Fetch);
        for (told, end) in [(Some(at(90)), at(90)), (None, at(10) + ORDER_LIFETIME_DEFAULT)] {
            let retry_after = Some(at(15));
            let state = Some(State::Pending);
            let seen = SeenOrder { state, expires: told, retry_after, ..SeenOrder::default() };
            let new = record(&read, Outcome::Fetched(seen), at(10));
            assert_eq!((new.memory.expires, new.memory.next_try), (Some(end), None));
            let mut known = read.clone();
            remember(&mut known, &new.memory);
            check(&known, &ours, 11, &Action::Wait(Wake::At(end + EXPIRY_CHECK_AFTER)));
        }
    }

    #[test]
    fn when_no_solver_fits_it_is_said_once() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let unsolved = Unsolved::by_solvers("none");
        let observed =
            Observed { challenges: &[], required: Err(&unsolved), sharers: &[], heard: None };
        let explained = Unsolved::by_solvers(solver_message("none"));
        assert_eq!(next_action(&read, &observed, at(1)), Action::Explain(explained.clone()));
        let new = record(&read, Outcome::Explained(explained), at(1));
        assert_eq!(new.notes[0].reason, reason::SOLVER);
        let told = order("o").change(|o| remember(o, &new.memory)).build();
        let told = Order { status: new.status, ..told };
        let told =
            Order { status: OrderStatus { state: Some(State::Pending), ..told.status }, ..told };
        let told = ending(told);
        assert_eq!(next_action(&told, &observed, at(1)), wait());

        let ours = challenge(NAME).build();
        check(&told, std::slice::from_ref(&ours), 1, &Action::Solved);
        let mended = record(&told, Outcome::Solved, at(1));
        assert_eq!((mended.status.reason.as_str(), mended.notes.len()), ("", 0));
        let mended = ending(order("o").change(|o| o.status = mended.status).build());
        check(&mended, &[ours], 1, &wait());
    }

    #[test]
    fn a_refusal_is_forgotten_with_the_next_answer() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let refusal = Refusal::Until(Box::new(problem(429, "rateLimited")), at(20));
        let refused = record(&read, Outcome::Refused(OrderRequest::Fetch, refusal), at(5));
        assert_eq!(refused.memory.next_try, Some(at(20)));
        let away = Outcome::Unanswered(OrderRequest::Fetch, None, "cut off".to_owned());
        let away = record(&read, away, at(5));
        assert_eq!(away.status.reason, "Failed to retrieve Order resource: cut off");
        for waiting in [refused, away] {
            let memory = waiting.memory;
            let waiting = order("o").change(|o| o.status = waiting.status);
            let waiting = waiting.change(|o| remember(o, &memory)).build();
            let seen = || SeenOrder { state: Some(State::Pending), ..SeenOrder::default() };
            for answer in [
                Outcome::Fetched(seen()),
                Outcome::Finalized(seen()),
                Outcome::AuthorizationsFetched(Vec::new(), None),
            ] {
                assert_eq!(record(&waiting, answer, at(21)).status.reason, "");
            }
        }
        let shared = order("o").change(|o| "Waiting for order".clone_into(&mut o.status.reason));
        let shared = shared.state(State::Pending).build();
        let seen = SeenOrder { state: Some(State::Pending), ..SeenOrder::default() };
        let told = record(&shared, Outcome::Fetched(seen), at(21));
        assert_eq!(told.status.reason, "Waiting for order");
    }

    #[test]
    fn the_order_is_polled_once_every_challenge_is_accepted() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let soon = at(10) + SignedDuration::from_millis(50);
        check(&read, &[accepted(10)], 10, &Action::Wait(Wake::At(soon)));
        check(&read, &[accepted(10)], 11, &Action::Fetch);
        let ahead = order("o").state(State::Pending).authorization(NAME).change(|o| {
            o.metadata.creation_timestamp = Some(at(19).into());
        });
        check(&ahead.build(), &[accepted(10)], 11, &Action::Fetch);
    }

    #[test]
    fn of_two_with_the_same_order_one_waits_and_then_asks_for_its_own() {
        let first = order("first").state(State::Pending).authorization(NAME).build();
        let second = order("second").state(State::Pending).authorization(NAME).build();
        let next = |order: &Order, sharers: &[Sharer]| {
            let observed = Observed { challenges: &[], required: Ok(&[]), sharers, heard: None };
            next_action(order, &observed, at(1))
        };
        let later = Sharer { order: second.clone(), came_first: false };
        assert_eq!(next(&first, &[later]), Action::Fetch);
        let why = waiting_message(&first.name());
        let sharers = &[Sharer { order: first.clone(), came_first: true }];
        assert_eq!(next(&second, sharers), Action::StandBack(why.clone()));
        let unanswered = Outcome::Unanswered(OrderRequest::Fetch, None, "no answer".to_owned());
        let unanswered = record(&second, unanswered, at(1));
        let mut unread = Order { status: unanswered.status, ..second.clone() };
        remember(&mut unread, &unanswered.memory);
        assert_eq!(next(&unread, sharers), Action::Fetch);
        assert_eq!(next(&ending(unread), sharers), Action::StandBack(why.clone()));
        let new = record(&second, Outcome::StoodBack(why), at(1));
        assert_eq!(new.notes, []);
        let mut waiting = Order { status: new.status, ..second };
        remember(&mut waiting, &new.memory);
        let waiting = ending(waiting);
        assert_eq!(next(&waiting, sharers), wait());
        assert_eq!(next(&waiting, &[]), Action::Forget);
        for state in [State::Ready, State::Processing] {
            let url = waiting.status.url.clone();
            let seen = SeenOrder { state: Some(state), url, ..SeenOrder::default() };
            let read = record(&waiting, Outcome::Fetched(seen), at(1));
            let mut read_anew = Order { status: read.status, ..waiting.clone() };
            remember(&mut read_anew, &read.memory);
            assert_eq!(next(&read_anew, sharers), wait());
            assert_eq!(next(&read_anew, &[]), Action::Forget, "{state} was the other one");
        }
        let new = record(&waiting, Outcome::Forgotten, at(2));
        assert_eq!((new.status, new.memory), (OrderStatus::default(), Memory::default()));
    }

    #[test]
    fn an_order_that_another_one_has_too_is_read_by_a_new_process_before_it_is_finalized() {
        let ready = order("first").state(State::Ready).authorization(NAME).build();
        let sharers = [Sharer { order: order("second").build(), came_first: false }];
        let polled = Polled { at: at(1), retry_after: None };
        let read = Some(LastRead { polled, after_failure: false });
        for (sharers, heard, expected) in [
            (&sharers[..], None, Action::Fetch),
            (&sharers, read, Action::Finalize),
            (&[], None, Action::Finalize),
        ] {
            let observed = Observed { challenges: &[], required: Ok(&[]), sharers, heard };
            assert_eq!(next_action(&ready, &observed, at(2)), expected);
        }
    }

    #[test]
    fn who_stands_back_makes_no_challenge_while_the_ca_asks_for_patience() {
        let patient = Memory { next_try: Some(at(30)), ..Memory::default() };
        let patient = order("second").state(State::Pending).authorization(NAME).change(|o| {
            remember(o, &patient);
        });
        let patient = patient.build();
        let first = order("first").state(State::Pending).authorization(NAME).build();
        let first = [Sharer { order: first, came_first: true }];
        let required = required();
        let made = Action::CreateChallenges(required.clone());
        for (sharers, expected) in [(&first[..], Action::Wait(Wake::At(at(30)))), (&[], made)] {
            let required = Ok(&required[..]);
            let observed = Observed { challenges: &[], required, sharers, heard: None };
            assert_eq!(next_action(&patient, &observed, at(1)), expected);
        }
    }

    #[test]
    fn an_order_that_somebody_else_finalized_is_asked_for_again_after_a_moment() {
        let why = "it is for another key".to_owned();
        let ready = order("o").state(State::Ready).authorization(NAME).build();
        let new = record(&ready, Outcome::OtherKey(why.clone()), at(5));
        assert_eq!((&new.status, new.memory.next_try), (&OrderStatus::default(), Some(at(6))));
        // Also where its signing request was still under way.
        let seen = SeenOrder { state: Some(State::Processing), ..SeenOrder::default() };
        let read = record(&ready, Outcome::Fetched(seen), at(5));
        let mut theirs = Order { status: read.status, ..ready.clone() };
        remember(&mut theirs, &read.memory);
        let new = record(&theirs, Outcome::OtherKey(why.clone()), at(6));
        assert_eq!((&new.status, new.memory.next_try), (&OrderStatus::default(), Some(at(7))));
        let sent = Memory { finalized_at: Some(at(4)), ..Memory::default() };
        let ours = order("o").state(State::Processing).change(|o| remember(o, &sent)).build();
        let new = record(&ours, Outcome::OtherKey(why.clone()), at(5)).status;
        assert_eq!((new.state, new.reason), (Some(State::Errored), why));
        // One that is valid when it is given is looked at: its certificate may be for our key.
        let used = |state| SeenOrder {
            state: Some(state),
            url: ready.status.url.clone(),
            ..SeenOrder::default()
        };
        let given = record(&order("o").build(), Outcome::Created(used(State::Valid)), at(6));
        assert_eq!(given.status.state, Some(State::Valid));
        let given = Order { status: given.status, ..order("o").build() };
        check(&given, &[], 6, &Action::Fetch);
        // And a CA that gives back what is used up is not asked without end.
        let seen = SeenOrder { state: Some(State::Pending), ..SeenOrder::default() };
        let new = record(&order("o").build(), Outcome::Created(seen), at(6)).status;
        assert_eq!(new.state, Some(State::Errored));
        let processing = Outcome::Created(used(State::Processing));
        let new = record(&order("o").build(), processing, at(6)).status;
        assert_eq!(new.state, Some(State::Errored));
    }

    #[test]
    fn retry_after_is_waited_for() {
        let patient = Memory { next_try: Some(at(30)), ..Memory::default() };
        let read = order("o")
            .state(State::Pending)
            .authorization(NAME)
            .change(|o| remember(o, &patient))
            .build();
        check(&read, &[accepted(10)], 11, &Action::Wait(Wake::At(at(30))));
        check(&read, &[accepted(10)], 30, &Action::Fetch);
    }

    #[test]
    fn no_wait_lasts_beyond_the_end_of_the_order() {
        let memory = Memory { expires: Some(at(100)), ..Memory::default() };
        let read = order("o")
            .state(State::Pending)
            .authorization(NAME)
            .change(|o| remember(o, &memory))
            .build();
        let unanswered = [challenge(NAME).running(true).state(State::Pending).build()];
        check(&read, &unanswered, 1, &Action::Wait(Wake::At(at(161))));
        check(&read, &unanswered, 161, &Action::Expire(at(100)));
        // However patient the CA wants us to be.
        let memory = Memory { expires: Some(at(100)), next_try: Some(at(9000)), ..memory };
        let asked = order("o")
            .state(State::Processing)
            .authorization(NAME)
            .change(|o| remember(o, &memory))
            .build();
        check(&asked, &[], 1, &Action::Wait(Wake::At(at(161))));
        check(&asked, &[], 161, &Action::Expire(at(100)));
    }

    #[test]
    fn an_order_whose_end_the_ca_does_not_name_ends_after_a_week() {
        let url = "https://ca.example/order/1".to_owned();
        let seen = SeenOrder { url, state: Some(State::Pending), ..SeenOrder::default() };
        let new = record(&order("o").build(), Outcome::Created(seen.clone()), at(0));
        assert_eq!(new.memory.expires, Some(at(7 * 24 * 3600)));
        let seen = SeenOrder { expires: Some(at(9)), ..seen };
        let new = record(&order("o").build(), Outcome::Created(seen), at(0));
        assert_eq!(new.memory.expires, Some(at(9)));
    }

    #[test]
    fn authorizations_that_do_not_fit_the_order_end_it() {
        let authorization = |identifier: &str, wildcard: bool, state: State| Authorization {
            url: format!("https://ca.example/authz/{identifier}/{wildcard}"),
            identifier: identifier.to_owned(),
            wildcard: Some(wildcard),
            initial_state: Some(state),
            ..Authorization::default()
        };
        let (pending, valid) = (State::Pending, State::Valid);
        for (names, read, fault) in [
            (vec!["a.example"], vec![authorization("A.example", false, pending)], None),
            (vec!["*.a.example"], vec![authorization("a.example", true, pending)], None),
            (vec!["2001:DB8::1"], vec![authorization("2001:db8:0::1", false, pending)], None),
            // A CA that knows the owner of the domain proves it once.
            (vec!["w.a.example"], vec![authorization("a.example", false, valid)], None),
            (
                vec!["a.example"],
                vec![authorization("b.example", false, pending)],
                Some(
                    "an authorization of b.example, which was not ordered: the order is for a.example",
                ),
            ),
            (
                vec!["a.example"],
                vec![authorization("a.example", true, pending)],
                Some("*.a.example, which was not ordered"),
            ),
            (
                vec!["a.example", "b.example"],
                vec![authorization("a.example", false, pending)],
                Some("no authorization for b.example: it has a.example"),
            ),
        ] {
            let bare = |a: &Authorization| Authorization {
                url: a.url.clone(),
                ..Authorization::default()
            };
            let unread = order("o")
                .state(State::Pending)
                .change(|o| {
                    o.spec.dns_names = names.iter().map(|name| (*name).to_owned()).collect();
                    o.status.authorizations = read.iter().map(bare).collect();
                })
                .build();
            let new = record(&unread, Outcome::AuthorizationsFetched(read, None), at(1)).status;
            let ended = (new.state == Some(State::Errored)).then_some(new.reason);
            match (ended, fault) {
                (None, None) => {}
                (Some(why), Some(fault)) => assert!(why.contains(fault), "{why}"),
                (ended, fault) => panic!("{names:?}: {ended:?} in place of {fault:?}"),
            }
        }
    }

    #[test]
    fn more_authorizations_than_names_end_the_order_before_any_is_read() {
        let url = |number: usize| format!("https://ca.example/authz/{number}");
        let created = |urls: Vec<String>| {
            let seen = SeenOrder {
                url: "https://ca.example/order/1".to_owned(),
                authorizations: urls,
                state: Some(State::Pending),
                ..SeenOrder::default()
            };
            record(&order("o").build(), Outcome::Created(seen), at(1)).status
        };
        let status = created((0..1000).map(url).collect());
        assert_eq!((status.state, status.authorizations.len()), (Some(State::Errored), 0));
        assert_eq!(
            status.reason,
            "the CA asks for 1000 authorizations, more than the order has names: it is for www.example.com"
        );
        assert_eq!(status.url, "https://ca.example/order/1");
        let status = created(vec![url(7); 1000]);
        assert_eq!((status.state, status.authorizations.len()), (Some(State::Pending), 1));
    }

    #[test]
    fn an_authorization_that_stands_twice_is_read_once() {
        let url = "https://ca.example/authz/1".to_owned();
        let bare = Authorization { url: url.clone(), ..Authorization::default() };
        let twice = order("o").state(State::Pending).change(|o| {
            o.status.authorizations = vec![bare.clone(); 2];
        });
        let twice = twice.build();
        check(&twice, &[], 1, &Action::FetchAuthorizations(vec![url]));
        let read = Authorization { identifier: NAME.to_owned(), ..bare };
        let new = Outcome::AuthorizationsFetched(vec![read.clone()], None);
        let new = record(&twice, new, at(1)).status;
        assert_eq!(new.authorizations, vec![read; 2]);
    }

    #[test]
    fn what_was_read_before_a_refusal_is_not_asked_for_again() {
        let bare = |n: u8| Authorization {
            url: format!("https://ca.example/authz/{n}"),
            ..Authorization::default()
        };
        let names = ["a.example.com", "b.example.com"];
        let unread = order("o").state(State::Pending).change(|o| {
            o.spec.dns_names = names.map(str::to_owned).to_vec();
            o.status.authorizations = vec![bare(1), bare(2)];
        });
        let read = Authorization { identifier: names[0].to_owned(), ..bare(1) };
        let busy = Problem { detail: "busy".to_owned(), ..Problem::default() };
        let refusal = Refusal::Until(Box::new(busy), at(9));
        let some = Outcome::AuthorizationsFetched(vec![read.clone()], Some(refusal));
        let new = record(&unread.build(), some, at(1));
        assert_eq!(new.status.authorizations, [read, bare(2)]);
        assert!(new.status.reason.starts_with("Failed to fetch authorization: "));
        let waiting = order("o").change(|o| o.status = new.status.clone());
        let waiting = waiting.change(|o| remember(o, &new.memory)).build();
        check(&waiting, &[], 8, &Action::Wait(Wake::At(at(9))));
        check(&waiting, &[], 9, &Action::FetchAuthorizations(vec![bare(2).url]));
    }

    #[test]
    fn an_order_of_which_the_ca_has_dropped_an_authorization_is_over() {
        let unread = order("o").state(State::Pending).build();
        let lost = Outcome::AuthorizationLost("*.example.com".to_owned(), "revoked");
        let new = record(&unread, lost, at(1)).status;
        assert_eq!(new.state, Some(State::Expired));
        assert!(new.reason.starts_with("the authorization of *.example.com is revoked: "));
    }

    #[test]
    fn only_an_order_that_is_not_finalized_can_be_dropped_and_replaced() {
        let refused = |deed, status| {
            Outcome::Refused(deed, Refusal::Final(Box::new(problem(status, "malformed"))))
        };
        let young = order("o").state(State::Pending).authorization(NAME).build();
        let sent = Memory { finalized_at: Some(at(4)), ..Memory::default() };
        let ours = order("o").state(State::Processing).change(|o| remember(o, &sent)).build();
        let lost = Outcome::AuthorizationLost(NAME.to_owned(), "revoked");
        for (outcome, is_dropped) in [
            (lost, true),
            (refused(OrderRequest::Fetch, 404), true),
            (refused(OrderRequest::Fetch, 410), true),
            (refused(OrderRequest::Fetch, 403), false),
            (refused(OrderRequest::Create, 404), false),
            (Outcome::GivenUp(String::new(), None), false),
        ] {
            assert_eq!(dropped(&young, &outcome).is_some(), is_dropped, "{outcome:?}");
            assert_eq!(dropped(&ours, &outcome), None, "{outcome:?}");
        }
        let why = "the CA has dropped the order".to_owned();
        let new = record(&young, Outcome::Dropped(why.clone()), at(5));
        let expected = OrderStatus { reason: why, ..OrderStatus::default() };
        assert_eq!((new.status, new.memory.next_try), (expected, Some(at(6))));
    }

    #[test]
    fn a_ready_order_is_finalized_once() {
        let ready = order("o").state(State::Ready).authorization(NAME).build();
        check(&ready, &[accepted(10)], 11, &Action::Finalize);
        let sent = Memory { finalized_at: Some(at(11)), ..Memory::default() };
        let processing = order("o").state(State::Processing).change(|o| remember(o, &sent)).build();
        check(&processing, &[], 12, &Action::Fetch);
        let still = order("o").state(State::Ready).change(|o| remember(o, &sent)).build();
        check(&still, &[], 12, &Action::Fetch);
        let seen = SeenOrder { state: Some(State::Ready), ..SeenOrder::default() };
        let later = record(&still, Outcome::Fetched(seen.clone()), at(12));
        assert_eq!(later.memory.finalized_at, Some(at(11)));
        let later = record(&still, Outcome::Fetched(seen), at(30));
        assert_eq!(later.memory.finalized_at, None);
    }

    #[test]
    fn an_order_found_ready_is_finalized_at_once() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let seen = SeenOrder { state: Some(State::Ready), ..SeenOrder::default() };
        assert_eq!(record(&read, Outcome::Fetched(seen), at(11)).memory.next_try, None);
    }

    #[test]
    fn a_poll_that_brings_nothing_new_is_not_written_down() {
        let passed = Memory { next_try: Some(at(5)), expires: Some(at(1000)), ..Memory::default() };
        let read = order("o")
            .state(State::Pending)
            .authorization(NAME)
            .change(|o| remember(o, &passed))
            .build();
        let polled = |retry_after: Option<i64>| {
            let state = Some(State::Pending);
            let (url, retry_after) = (read.status.url.clone(), retry_after.map(at));
            let seen = SeenOrder { url, state, retry_after, ..SeenOrder::default() };
            record(&read, Outcome::Fetched(seen), at(10))
        };
        for (named, next_try) in
            [(None, 5), (Some(0), 5), (Some(10), 5), (Some(12), 5), (Some(13), 13)]
        {
            let new = polled(named);
            assert_eq!(new.memory, Memory { next_try: Some(at(next_try)), ..passed.clone() });
            assert_eq!((new.status, new.notes.len()), (read.status.clone(), 0), "{named:?}");
        }
    }

    #[test]
    fn an_order_is_polled_at_our_own_pace_whatever_the_ca_names() {
        let sent = Memory { finalized_at: Some(at(10)), ..Memory::default() };
        let processing = order("o").state(State::Processing).change(|o| remember(o, &sent)).build();
        for named in [None, Some(at(0)), Some(at(30))] {
            let polled = Polled { at: at(30), retry_after: named };
            let heard = Some(LastRead { polled, after_failure: false });
            let observed = Observed { challenges: &[], required: Ok(&[]), sharers: &[], heard };
            let next = |second| next_action(&processing, &observed, at(second));
            assert_eq!(next(30), Action::Wait(Wake::At(at(32))), "{named:?}");
            assert_eq!(next(32), Action::Fetch, "{named:?}");
        }
    }

    /// A challenge of that name whose answer is up, and not told to the CA yet.
    fn untold(name: &str, reason: &str) -> Challenge {
        let build = challenge(name).running(true).state(State::Pending).change(|c| {
            c.status.presented_at = Some(at(9).into());
            reason.clone_into(&mut c.status.reason);
        });
        build.build()
    }

    /// Next action for an order with these challenges, read at that moment.
    fn next(challenges: &[Challenge], heard: Option<i64>, second: i64) -> Action {
        let mut read = order("o").state(State::Pending).authorization(NAME);
        let names = challenges.iter().map(|c| c.metadata.name.as_str());
        for name in names.clone().filter(|name| *name != NAME) {
            read = read.authorization(name);
        }
        let spec = |name: &str| challenge(name).build().spec;
        let required = |name: &str| Required { name: name.to_owned(), spec: spec(name) };
        let required: Vec<Required> = names.map(required).collect();
        let polled = |second| Polled { at: at(second), retry_after: None };
        let heard = heard.map(|second| LastRead { polled: polled(second), after_failure: false });
        let observed = Observed { challenges, required: Ok(&required), sharers: &[], heard };
        next_action(&ending(read.build()), &observed, at(second))
    }

    #[test]
    fn what_the_ca_says_of_one_name_is_heard_while_another_is_kept_from_it() {
        let soon = |second| Action::Wait(Wake::At(at(second) + SignedDuration::from_millis(500)));
        let until = |second| Action::Wait(Wake::At(at(second)));
        let stuck = [accepted(10), untold("b.example.com", "connection refused")];
        // Its first looks may yet see it.
        assert_eq!(next(&stuck, None, 10), until(11));
        assert_eq!(next(&stuck, None, 11), Action::Fetch);
        // Ever more slowly, and anew for what was accepted since.
        assert_eq!(next(&stuck, Some(11), 11), soon(11));
        assert_eq!(next(&stuck, Some(18), 18), until(22));
        assert_eq!(next(&stuck, Some(100), 100), until(110));
        let [first, stuck] = stuck;
        let later = challenge("c.example.com").running(true).state(State::Pending);
        let later = later.change(|c| c.metadata.annotations = accepted(20).metadata.annotations);
        let mut all = [first, later.build(), stuck];
        assert_eq!(next(&all, Some(18), 20), until(21));
        // An answer that the CA has given already is not waited for.
        for known in &mut all[..2] {
            known.status.state = Some(State::Valid);
        }
        assert_eq!(next(&all, None, 20), wait());
    }

    #[test]
    fn an_order_is_left_alone_while_its_challenges_are_on_their_way() {
        let on_its_way = [accepted(10), untold("b.example.com", "")];
        assert_eq!(next(&on_its_way, None, 11), Action::Wait(Wake::At(at(15))));
        assert_eq!(next(&on_its_way, None, 15), Action::Fetch);
        assert_eq!(next(&[untold(NAME, "connection refused")], None, 20), wait());
    }

    #[test]
    fn challenges_of_a_finished_order_go_when_they_have_recorded_their_end() {
        let done = order("o")
            .state(State::Valid)
            .change(|o| o.status.certificate = Blob(b"PEM".to_vec()))
            .build();
        check(&done, &[accepted(10)], 12, &Action::Wait(Wake::OnChange));
        let valid = challenge(NAME).state(State::Valid).build();
        check(&done, &[valid], 12, &Action::DeleteChallenges(vec![NAME.to_owned()]));
    }

    #[test]
    fn a_refusal_ends_the_order_and_a_limit_only_delays_it() {
        let fresh = order("o").build();
        let outcome = Outcome::Refused(
            OrderRequest::Create,
            Refusal::Final(Box::new(problem(400, "rejectedIdentifier"))),
        );
        let new = record(&fresh, outcome, at(5));
        assert_eq!(new.status.state, Some(State::Errored));
        assert_eq!(new.status.failure_time, Some(at(5).into()));
        assert_eq!(
            new.status.reason,
            "Failed to create Order: 400 urn:ietf:params:acme:error:rejectedIdentifier: no"
        );
        let outcome = Outcome::Refused(
            OrderRequest::Create,
            Refusal::Until(Box::new(problem(429, "rateLimited")), at(3600)),
        );
        let new = record(&fresh, outcome, at(5));
        assert_eq!((new.status.state, new.memory.next_try), (None, Some(at(3600))));
        let waiting = order("o").change(|o| remember(o, &new.memory)).build();
        check(&waiting, &[], 6, &Action::Wait(Wake::At(at(3600))));
    }

    #[test]
    fn an_invalid_order_says_which_name_failed_and_why() {
        let read = order("o").state(State::Pending).authorization(NAME).build();
        let problems = vec![(NAME.to_owned(), problem(403, "unauthorized"))];
        let seen = SeenOrder { state: Some(State::Invalid), problems, ..SeenOrder::default() };
        let new = record(&read, Outcome::Fetched(seen), at(5));
        assert_eq!(
            new.status.reason,
            "acme: authorization error for www.example.com: 403 \
             urn:ietf:params:acme:error:unauthorized: no"
        );
    }

    #[test]
    fn a_challenge_given_up_does_not_hold_the_order_for_ever() {
        let read = ending(order("o").state(State::Pending).authorization(NAME).build());
        let errored = challenge(NAME)
            .state(State::Errored)
            .change(|c| "refused".clone_into(&mut c.status.reason))
            .build();
        check(&read, std::slice::from_ref(&errored), 5, &Action::Fetch);
        let polled = Polled { at: at(5), retry_after: None };
        let next = |after_failure| {
            let required = required();
            let heard = Some(LastRead { polled, after_failure });
            let challenges = std::slice::from_ref(&errored);
            let observed = Observed { challenges, required: Ok(&required), sharers: &[], heard };
            next_action(&read, &observed, at(5))
        };
        // What was read before it failed says nothing of that.
        assert_eq!(next(false), Action::Fetch);
        let given_up = Action::GiveUp("challenge for www.example.com: refused".to_owned(), None);
        assert_eq!(next(true), given_up);
    }

    #[test]
    fn a_challenge_that_the_ca_has_refused_ends_an_order_that_stays_pending() {
        let read = ending(order("o").state(State::Pending).authorization(NAME).build());
        let said = SeenChallenge {
            state: Some(State::Invalid),
            problem: Some(problem(0, "rejectedIdentifier")),
            ..SeenChallenge::default()
        };
        let mut invalid = accepted(10);
        let new = challenge::record(&invalid, challenge::Outcome::StateFetched(said), at(11));
        new.memory.write(Holder::Challenge, &mut invalid.metadata.annotations);
        invalid.status = new.status;
        let next = |second| {
            let (required, challenges) = (required(), std::slice::from_ref(&invalid));
            let polled = Polled { at: at(second), retry_after: None };
            let heard = Some(LastRead { polled, after_failure: true });
            let observed = Observed { challenges, required: Ok(&required), sharers: &[], heard };
            next_action(&read, &observed, at(second))
        };
        assert!(matches!(next(15), Action::Wait(Wake::At(_))));
        let why = "acme: authorization error for www.example.com: urn:ietf:params:acme:error:rejectedIdentifier: no";
        let Action::Invalidate(told, said) = next(16) else { panic!("{:?}", next(16)) };
        assert_eq!(
            (told.as_str(), said.as_deref()),
            (why, Some(&problem(0, "rejectedIdentifier")))
        );
        let new = record(&read, Outcome::Invalidated(told, said), at(16));
        assert_eq!((new.status.state, new.status.reason.as_str()), (Some(State::Invalid), why));
        assert!(new.memory.problem.as_ref().and_then(|about| about.of(why)).is_some());
    }

    #[test]
    fn an_order_that_turns_invalid_without_a_word_is_told_with_those_of_the_refused_finalize() {
        let ready = order("o").state(State::Ready).authorization(NAME).build();
        let failed = Some(Box::new(problem(500, "serverInternal")));
        let why = failed.as_ref().unwrap().to_string();
        let unanswered = Outcome::Unanswered(OrderRequest::Finalize, failed, why.clone());
        let new = record(&ready, unanswered, at(5));
        let mut waits = Order { status: new.status, ..ready };
        remember(&mut waits, &new.memory);
        let invalid = |problems| {
            let seen = SeenOrder { state: Some(State::Invalid), problems, ..SeenOrder::default() };
            record(&waits, Outcome::Fetched(seen), at(6))
        };
        let new = invalid(Vec::new());
        assert_eq!(
            new.status.reason,
            format!("Failed to finalize Order: {why}; then the order is invalid")
        );
        let kept = new.memory.problem.as_ref().and_then(|about| about.of(&new.status.reason));
        assert_eq!(kept, Some(&problem(500, "serverInternal")));
        // The order's own word is a better one.
        let new = invalid(vec![(String::new(), problem(403, "caa"))]);
        assert_eq!(new.status.reason, problem(403, "caa").to_string());
    }

    #[test]
    fn a_challenge_of_an_order_that_the_ca_has_dropped_does_not_end_the_next_one() {
        let read = ending(order("o").state(State::Pending).authorization(NAME).build());
        let left = challenge("left.example").state(State::Errored).change(|c| {
            c.metadata.deletion_timestamp = Some(at(4).into());
        });
        let ours = challenge(NAME).running(true).state(State::Pending).build();
        check(&read, &[left.build(), ours], 5, &wait());
    }

    #[test]
    fn an_order_past_its_end_is_expired() {
        let old = Memory { expires: Some(at(100)), ..Memory::default() };
        let read = order("o")
            .state(State::Pending)
            .authorization(NAME)
            .change(|o| remember(o, &old))
            .build();
        check(&read, &[], 200, &Action::Expire(at(100)));
        let new = record(&read, Outcome::Expired(at(100)), at(200));
        assert_eq!(new.status.state, Some(State::Expired));
    }
}
