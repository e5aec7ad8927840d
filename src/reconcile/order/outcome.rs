//! Order: what came of a deed, and how it is written down.
//!
//! What the CA does not answer stands in the Order's reason until it does, where cert-manager has it in a Challenge and
//! in its log only: whoever looks from elsewhere has no log.
//!
//! Once the CA has taken the signing request it is not sent again while the chain cannot be had: the next poll finds
//! the chain.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::request::OrderRequest;
use super::required::{Unsolved, mismatch, too_many};
use super::shared::own_state;
use super::words::{lost, unanswered, why_failed};
use crate::model::cause::{About, OrderWait};
use crate::model::event::{reason, source};
use crate::model::memory::{Holder, Memory};
use crate::model::order::Authorization;
use crate::model::{Blob, Order, OrderSpec, OrderStatus, Problem, State};
use crate::reconcile::pauses::{Polled, worth_keeping};
use crate::reconcile::{NEXT_TRY, Note, Recorded, Refusal};

/// How long an order may stay `ready` after finalize before the signing request is sent again.
const FINALIZE_AGAIN: SignedDuration = SignedDuration::from_secs(10);
/// How long an order lives whose CA does not say, although RFC 8555 §7.1.3 asks it to.
pub(super) const LIFE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How long after the loss of an order to somebody else another one is asked for.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// Before what the CA did not do.
const FAILED: &str = "Failed to ";

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The order exists at the CA, or existed (an identical one is given back).
    Created(SeenOrder),
    /// Challenges were made: name and DNS name of each.
    ChallengesCreated(Vec<(String, String)>),
    /// Challenges were deleted.
    ChallengesDeleted,
    /// The CA has dropped the order, in words, and another one may be asked for in its place.
    Dropped(String),
    /// Too old to go on.
    Expired(Timestamp),
    /// No solver fits a name.
    Explained(Unsolved),
    /// Solvers have been found for all names.
    Solved,
    /// The order is another one's, and forgotten.
    Forgotten,
    /// The order was read.
    Fetched(SeenOrder),
    /// The signing request was taken; this is the CA's answer.
    Finalized(SeenOrder),
    /// Authorizations were read, in the order asked, and why the others were not.
    AuthorizationsFetched(Vec<Authorization>, Option<Refusal>),
    /// An authorization holds no more, nor can it be shown any more: its name, and the CA's word for that.
    AuthorizationLost(String, &'static str),
    /// The CA refused.
    Refused(OrderRequest, Refusal),
    /// The CA lacks the profile that is asked for, in words.
    NoProfile(String),
    /// The CA did not answer, or not usefully: what it answered, if it did, and why, in words.
    Unanswered(OrderRequest, Option<Box<Problem>>, String),
    /// The certificate of the order is for another key than ours, in words.
    OtherKey(String),
    /// It is not its turn to be begun, in words.
    Queued(String),
    /// Another Order goes first, in words.
    StoodBack(String),
    /// Given up without asking, or because what came is not what was ordered: why, in words, and what the CA has answered to
    /// something before, if it did.
    GivenUp(String, Option<Box<Problem>>),
    /// Given up, because the CA has not found the answer for a name: why, in words, and what it said, if it did.
    Invalidated(String, Option<Box<Problem>>),
}

/// What the CA said of the order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenOrder {
    /// Order URL.
    pub url: String,
    /// Finalize URL.
    pub finalize_url: String,
    /// Authorization URLs.
    pub authorizations: Vec<String>,
    /// State; none for a word we do not know, which counts as not final.
    pub state: Option<State>,
    /// When it ends.
    pub expires: Option<Timestamp>,
    /// Why it is invalid, one problem for each name that has one: name (empty for the order itself) and problem.
    pub problems: Vec<(String, Problem)>,
    /// The chain, checked, once it is valid and was downloaded.
    pub certificate: Option<Vec<u8>>,
    /// What the chain has otherwise than ordered.
    pub remarks: Vec<String>,
    /// Not before this moment does the CA want to be asked again.
    pub retry_after: Option<Timestamp>,
}

/// When the order was read last, if this outcome is an answer that shows it.
pub fn polled(outcome: &Outcome, now: Timestamp) -> Option<Polled> {
    let (Outcome::Fetched(seen) | Outcome::Finalized(seen)) = outcome else { return None };
    Some(Polled { at: now, retry_after: seen.retry_after })
}

/// Folds an outcome into status, memory and notes.
pub fn record(order: &Order, outcome: Outcome, now: Timestamp) -> Recorded<OrderStatus> {
    let mut new = Recorded {
        status: order.status.clone(),
        memory: Memory::read(Holder::Order, &order.metadata.annotations),
        notes: Vec::new(),
    };
    let (mut problem, waits_for) = facts(&outcome);
    match outcome {
        Outcome::Created(seen) if seen.url.is_empty() => {
            let why =
                "Failed to create Order: the CA does not say where it is (no Location header)";
            fail(&mut new, State::Errored, why.to_owned(), now);
        }
        // One that is valid already is downloaded: its certificate may be for our key.
        Outcome::Created(seen) if seen.state == Some(State::Processing) => {
            let why =
                format!("Failed to create Order: the CA gave back {}, which is used up", seen.url);
            fail(&mut new, State::Errored, why, now);
        }
        Outcome::Created(seen) => {
            new.memory.next_try = worth_keeping(seen.retry_after, now);
            new.memory.expires = now.saturating_add(LIFE).ok();
            new.status.reason = String::new();
            fold(&mut new, &order.spec, seen, now);
        }
        Outcome::Fetched(seen) => {
            problem = fetched(&mut new, order, seen, now).or(problem);
        }
        Outcome::Finalized(seen) => {
            new.memory.finalized_at = Some(now);
            let passed = new.memory.passed_try(now);
            new.memory.next_try = worth_keeping(seen.retry_after, now).or(passed);
            answered(&mut new);
            fold(&mut new, &order.spec, seen, now);
        }
        Outcome::AuthorizationsFetched(read, refusal) => {
            answered(&mut new);
            for authorization in read {
                let slots = new.status.authorizations.iter_mut();
                for slot in slots.filter(|slot| slot.url == authorization.url) {
                    slot.clone_from(&authorization);
                }
            }
            if let Some(why) = mismatch(&order.spec, &new.status.authorizations) {
                fail(&mut new, State::Errored, why, now);
            }
            if let Some(refusal) = refusal {
                refuse(&mut new, OrderRequest::FetchAuthorizations, refusal, now);
            }
        }
        Outcome::AuthorizationLost(name, word) => {
            fail(&mut new, State::Expired, lost(&name, word), now);
        }
        Outcome::Dropped(why) => {
            forget(&mut new);
            new.status.reason = why;
            new.memory.next_try = now.saturating_add(AGAIN_AFTER).ok();
        }
        Outcome::ChallengesCreated(made) => {
            new.status.reason = String::new();
            for (name, domain) in made {
                let message =
                    format!("Created Challenge resource \"{name}\" for domain \"{domain}\"");
                new.notes.push(Note::normal(source::ORDERS, reason::CREATED, message));
            }
        }
        Outcome::ChallengesDeleted => {}
        Outcome::Solved => new.status.reason = String::new(),
        Outcome::Explained(Unsolved { why, .. }) => {
            new.status.reason.clone_from(&why);
            new.notes.push(Note::warning(source::ORDERS, reason::SOLVER, why));
        }
        Outcome::Refused(deed, refusal) => refuse(&mut new, deed, refusal, now),
        Outcome::Unanswered(deed, _, why) => new.status.reason = format!("{FAILED}{deed}: {why}"),
        Outcome::Expired(at) => {
            fail(&mut new, State::Expired, format!("The order expired at {at:.0}"), now);
        }
        Outcome::Queued(why) | Outcome::StoodBack(why) => new.status.reason = why,
        Outcome::Forgotten => forget(&mut new),
        // Somebody else was given the same order and was quicker (another store with this account); ours is yet to come.
        Outcome::OtherKey(_) if new.memory.finalized_at.is_none() => {
            forget(&mut new);
            new.memory.next_try = now.saturating_add(AGAIN_AFTER).ok();
        }
        Outcome::Invalidated(why, _) => fail(&mut new, State::Invalid, why, now),
        Outcome::OtherKey(why) | Outcome::GivenUp(why, _) | Outcome::NoProfile(why) => {
            fail(&mut new, State::Errored, why, now);
        }
    }
    tell(&mut new, problem, waits_for);
    let is_over =
        !new.status.certificate.is_empty() || new.status.state.is_some_and(State::is_failure);
    if is_over {
        new.memory.next_try =
            Memory::read(Holder::Order, &order.metadata.annotations).passed_try(now);
    }
    new
}

/// Notes what the CA does not do, and from when on it may be asked again.
fn refuse(new: &mut Recorded<OrderStatus>, asked: OrderRequest, refusal: Refusal, now: Timestamp) {
    match refusal {
        Refusal::Final(problem) => {
            fail(new, State::Errored, format!("{FAILED}{asked}: {problem}"), now);
        }
        Refusal::Until(problem, at) => {
            new.memory.next_try = Some(at);
            new.status.reason = format!("{FAILED}{asked}: {problem}{NEXT_TRY}{at:.0}");
        }
    }
}

/// Folds in an order as it was read. Returns the problem of an earlier refusal where the CA does not say itself why the order is
/// invalid.
fn fetched(
    new: &mut Recorded<OrderStatus>,
    order: &Order,
    mut seen: SeenOrder,
    now: Timestamp,
) -> Option<Problem> {
    let earlier = unanswered(order, &new.memory);
    seen.state = own_state(order, seen.state);
    remember(&mut new.memory, &seen, now);
    answered(new);
    let is_unexplained = seen.problems.is_empty();
    fold(new, &order.spec, seen, now);
    let (why, said) = earlier?;
    if !is_unexplained || new.status.state != Some(State::Invalid) {
        return None;
    }
    new.status.reason = format!("{why}; then the order is invalid");
    Some(said)
}

/// Keeps what is known of the new reason. Facts of before stay until then, about a reason that is no more: taking them off would be
/// a write of its own.
fn tell(new: &mut Recorded<OrderStatus>, problem: Option<Problem>, waits_for: Option<OrderWait>) {
    let reason = &new.status.reason;
    if let Some(problem) = problem {
        new.memory.problem = Some(About::new(reason, problem.kept()));
    }
    if let Some(waits_for) = waits_for {
        new.memory.waits_for = Some(About::new(reason, waits_for));
    }
}

/// What is known of the reason that an outcome leaves: the CA's problem, and what is waited for.
fn facts(outcome: &Outcome) -> (Option<Problem>, Option<OrderWait>) {
    match outcome {
        Outcome::Refused(_, refusal) | Outcome::AuthorizationsFetched(_, Some(refusal)) => {
            match refusal {
                Refusal::Final(problem) => (Some((**problem).clone()), None),
                Refusal::Until(problem, _) => {
                    (Some((**problem).clone()), Some(OrderWait::Authority))
                }
            }
        }
        Outcome::Unanswered(_, problem, _) => {
            (problem.as_deref().cloned(), Some(OrderWait::Authority))
        }
        Outcome::GivenUp(_, problem) | Outcome::Invalidated(_, problem) => {
            (problem.as_deref().cloned(), None)
        }
        Outcome::NoProfile(why) => (Some(Problem::no_profile(why)), None),
        Outcome::Explained(unsolved) => (None, Some(unsolved.waits_for)),
        Outcome::Queued(_) => (None, Some(OrderWait::Turn)),
        Outcome::StoodBack(_) => (None, Some(OrderWait::OtherOrder)),
        Outcome::Created(seen) | Outcome::Fetched(seen) | Outcome::Finalized(seen) => {
            (seen.problems.first().map(|(_, problem)| problem.clone()), None)
        }
        Outcome::AuthorizationLost(..)
        | Outcome::AuthorizationsFetched(_, None)
        | Outcome::ChallengesCreated(_)
        | Outcome::ChallengesDeleted
        | Outcome::Dropped(_)
        | Outcome::Expired(_)
        | Outcome::Forgotten
        | Outcome::OtherKey(_)
        | Outcome::Solved => (None, None),
    }
}

/// What an Order waits for that this program has written; nothing where its reason is somebody else's.
pub fn waits_for(order: &Order) -> Option<OrderWait> {
    Memory::read(Holder::Order, &order.metadata.annotations).wait_of(&order.status.reason)
}

/// Why the order of an Order is no more at the CA, if that is what came of a deed before anything was finalized.
pub fn dropped(order: &Order, outcome: &Outcome) -> Option<String> {
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    if memory.finalized_at.is_some() {
        return None;
    }
    if let Outcome::AuthorizationLost(name, word) = outcome {
        return Some(lost(name, word));
    }
    let Outcome::Refused(OrderRequest::Fetch, Refusal::Final(problem)) = outcome else {
        return None;
    };
    matches!(problem.status, 404 | 410).then(|| format!("the CA has dropped the order: {problem}"))
}

/// The CA answers, and refuses no more: what could not be done is done, or asked for again.
fn answered(new: &mut Recorded<OrderStatus>) {
    if new.memory.wait_of(&new.status.reason) == Some(OrderWait::Authority) {
        new.status.reason = String::new();
    }
}

/// What is remembered of an order that was read.
fn remember(memory: &mut Memory, seen: &SeenOrder, now: Timestamp) {
    let is_ready = seen.state == Some(State::Ready);
    let is_pending = seen.state == Some(State::Pending);
    let finalized_at = memory.finalized_at;
    if is_ready && finalized_at.is_some_and(|at| now.duration_since(at) > FINALIZE_AGAIN) {
        memory.finalized_at = None;
    }
    let passed = memory.passed_try(now);
    memory.next_try = worth_keeping(seen.retry_after, now).or(passed);
    if memory.expires.is_none() {
        memory.expires = now.saturating_add(LIFE).ok();
        // Only its end was asked for: nothing is polled while its challenges are under way.
        memory.next_try = memory.next_try.filter(|_| !is_pending);
    }
}

/// Back to the time before newOrder.
fn forget(new: &mut Recorded<OrderStatus>) {
    new.status =
        OrderStatus { other: std::mem::take(&mut new.status.other), ..OrderStatus::default() };
    new.memory = Memory::default();
}

fn fold(new: &mut Recorded<OrderStatus>, spec: &OrderSpec, seen: SeenOrder, now: Timestamp) {
    let remark = |text| Note::warning(source::ORDERS, reason::NOT_AS_ORDERED, text);
    new.notes.extend(seen.remarks.into_iter().map(remark));
    let status = &mut new.status;
    status.url = seen.url;
    if !seen.finalize_url.is_empty() {
        status.finalize_url = seen.finalize_url;
    }
    let mut surplus = None;
    if status.authorizations.is_empty() {
        let mut urls = BTreeSet::new();
        let once = seen.authorizations.into_iter().filter(|url| urls.insert(url.clone()));
        let bare = |url| Authorization { url, ..Authorization::default() };
        let bare: Vec<Authorization> = once.map(bare).collect();
        surplus = too_many(spec, bare.len());
        // What is too much is neither kept nor read.
        status.authorizations = if surplus.is_none() { bare } else { Vec::new() };
    }
    new.memory.expires = seen.expires.or(new.memory.expires);
    if let Some(why) = surplus {
        fail(new, State::Errored, why, now);
        return;
    }
    let Some(state) = seen.state else { return };
    if state.is_failure() {
        let why = why_failed(state, &seen.problems);
        fail(new, state, why, now);
        return;
    }
    new.status.state = Some(state);
    if state != State::Pending {
        new.status.reason = String::new();
    }
    if let Some(pem) = seen.certificate {
        new.status.certificate = Blob(pem);
        let message = "Order completed successfully";
        new.notes.push(Note::normal(source::ORDERS, reason::COMPLETE, message));
    }
}

fn fail(new: &mut Recorded<OrderStatus>, state: State, why: String, now: Timestamp) {
    new.status.state = Some(state);
    new.status.reason = why;
    new.status.failure_time = Some(now.into());
}
