//! Order: outcomes of actions, and how each is written down.
//!
//! A request that the CA does not answer stands in the Order's reason until the CA answers. cert-manager has it in a
//! Challenge and in its log only, which users elsewhere do not see.
//!
//! Once the CA has taken the signing request, the request is not sent again while the chain cannot be had: the next
//! poll finds the chain.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::required::{Unsolved, mismatch, too_many};
use super::shared::own_state;
use super::words::{OrderRequest, lost, unanswered, why_failed};
use crate::model::cause::{About, OrderWait};
use crate::model::event::{reason, source};
use crate::model::memory::{Holder, Memory};
use crate::model::order::Authorization;
use crate::model::{Blob, Order, OrderSpec, OrderStatus, Problem, State};
use crate::reconcile::pauses::{Polled, worth_keeping};
use crate::reconcile::{NEXT_TRY, Note, Recorded, Refusal};

/// Longest time that an order may stay `ready` after finalize before the signing request is sent again.
const FINALIZE_RETRY_PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// Assumed lifetime of an order whose CA does not give one, although RFC 8555 §7.1.3 asks for it.
pub(super) const ORDER_LIFETIME_DEFAULT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Pause before a new order is requested in place of one that was dropped or used for another key.
const REORDER_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// Start of a reason about a request that the CA did not carry out.
const FAILED_TO: &str = "Failed to ";

/// Outcome of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The order exists at the CA, or existed before (the CA returns an identical one).
    Created(SeenOrder),
    /// Challenges were created: object name and DNS name of each.
    ChallengesCreated(Vec<(String, String)>),
    /// Challenges were deleted.
    ChallengesDeleted,
    /// The CA has dropped the order, in words; another order may be requested in its place.
    Dropped(String),
    /// The order expired at this moment.
    Expired(Timestamp),
    /// No solver fits a name.
    Explained(Unsolved),
    /// Solvers have been found for all names.
    Solved,
    /// The order belongs to another Order, and is forgotten.
    Forgotten,
    /// The order was read.
    Fetched(SeenOrder),
    /// The signing request was taken; the order in the CA's reply.
    Finalized(SeenOrder),
    /// Authorizations were read, in the requested sequence, and the refusal that left the others unread.
    AuthorizationsFetched(Vec<Authorization>, Option<Refusal>),
    /// An authorization is no longer valid, nor can it be proved any more: its name, and the CA's word for its state.
    AuthorizationLost(String, &'static str),
    /// The CA refused a request.
    Refused(OrderRequest, Refusal),
    /// The CA lacks the requested profile, in words.
    NoProfile(String),
    /// The CA did not reply usefully: its problem, if it sent one, and why, in words.
    Unanswered(OrderRequest, Option<Box<Problem>>, String),
    /// The certificate of the order is for another key than ours, in words.
    OtherKey(String),
    /// The Order has to wait for its turn, in words.
    Queued(String),
    /// Another Order goes first, in words.
    StoodBack(String),
    /// The Order is given up without a request, or because the reply does not match the order: why, in words, and the
    /// CA's problem from an earlier request, if any.
    GivenUp(String, Option<Box<Problem>>),
    /// The Order is given up: the CA did not find the answer for a name. Why, in words, and the CA's problem, if any.
    Invalidated(String, Option<Box<Problem>>),
}

/// Order as the CA reported it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenOrder {
    /// Order URL.
    pub url: String,
    /// Finalize URL.
    pub finalize_url: String,
    /// Authorization URLs.
    pub authorizations: Vec<String>,
    /// State; `None` for an unknown word, which counts as not final.
    pub state: Option<State>,
    /// Expiry of the order.
    pub expires: Option<Timestamp>,
    /// Problems of an invalid order, one for each name that has one: name (empty for the order itself) and problem.
    pub problems: Vec<(String, Problem)>,
    /// Checked chain, once the order is valid and the chain was downloaded.
    pub certificate: Option<Vec<u8>>,
    /// Deviations of the chain from what was ordered.
    pub remarks: Vec<String>,
    /// Earliest moment at which the CA wants to be asked again.
    pub retry_after: Option<Timestamp>,
}

/// Returns the moment and Retry-After of a reading, if this outcome is a reply that shows the order.
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
        // A valid order is downloaded: its certificate may be for our key.
        Outcome::Created(seen) if seen.state == Some(State::Processing) => {
            let why =
                format!("Failed to create Order: the CA gave back {}, which is used up", seen.url);
            fail(&mut new, State::Errored, why, now);
        }
        Outcome::Created(seen) => {
            new.memory.next_try = worth_keeping(seen.retry_after, now);
            new.memory.expires = now.saturating_add(ORDER_LIFETIME_DEFAULT).ok();
            new.status.reason = String::new();
            fold(&mut new, &order.spec, seen, now);
        }
        Outcome::Fetched(seen) => {
            problem = fold_fetched(&mut new, order, seen, now).or(problem);
        }
        Outcome::Finalized(seen) => {
            new.memory.finalized_at = Some(now);
            let passed = new.memory.passed_try(now);
            new.memory.next_try = worth_keeping(seen.retry_after, now).or(passed);
            clear_unanswered(&mut new);
            fold(&mut new, &order.spec, seen, now);
        }
        Outcome::AuthorizationsFetched(read, refusal) => {
            clear_unanswered(&mut new);
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
            new.memory.next_try = now.saturating_add(REORDER_PAUSE).ok();
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
        Outcome::Unanswered(deed, _, why) => {
            new.status.reason = format!("{FAILED_TO}{deed}: {why}");
        }
        Outcome::Expired(at) => {
            fail(&mut new, State::Expired, format!("The order expired at {at:.0}"), now);
        }
        Outcome::Queued(why) | Outcome::StoodBack(why) => new.status.reason = why,
        Outcome::Forgotten => forget(&mut new),
        // Another store with this account was given the same order and was quicker; our own order is yet to come.
        Outcome::OtherKey(_) if new.memory.finalized_at.is_none() => {
            forget(&mut new);
            new.memory.next_try = now.saturating_add(REORDER_PAUSE).ok();
        }
        Outcome::Invalidated(why, _) => fail(&mut new, State::Invalid, why, now),
        Outcome::OtherKey(why) | Outcome::GivenUp(why, _) | Outcome::NoProfile(why) => {
            fail(&mut new, State::Errored, why, now);
        }
    }
    attach_facts(&mut new, problem, waits_for);
    let is_over =
        !new.status.certificate.is_empty() || new.status.state.is_some_and(State::is_failure);
    if is_over {
        new.memory.next_try =
            Memory::read(Holder::Order, &order.metadata.annotations).passed_try(now);
    }
    new
}

/// Records a refusal, and from when on the CA may be asked again.
fn refuse(new: &mut Recorded<OrderStatus>, asked: OrderRequest, refusal: Refusal, now: Timestamp) {
    match refusal {
        Refusal::Final(problem) => {
            fail(new, State::Errored, format!("{FAILED_TO}{asked}: {problem}"), now);
        }
        Refusal::Until(problem, at) => {
            new.memory.next_try = Some(at);
            new.status.reason = format!("{FAILED_TO}{asked}: {problem}{NEXT_TRY}{at:.0}");
        }
    }
}

/// Folds in an order as it was read. Returns the problem of an earlier refusal if the CA itself does not say why the
/// order is invalid.
fn fold_fetched(
    new: &mut Recorded<OrderStatus>,
    order: &Order,
    mut seen: SeenOrder,
    now: Timestamp,
) -> Option<Problem> {
    let earlier = unanswered(order, &new.memory);
    seen.state = own_state(order, seen.state);
    remember(&mut new.memory, &seen, now);
    clear_unanswered(new);
    let is_unexplained = seen.problems.is_empty();
    fold(new, &order.spec, seen, now);
    let (why, said) = earlier?;
    if !is_unexplained || new.status.state != Some(State::Invalid) {
        return None;
    }
    new.status.reason = format!("{why}; then the order is invalid");
    Some(said)
}

/// Attaches the known facts to the new reason. Older facts stay until then, although their reason is gone: removal
/// would be a write of its own.
fn attach_facts(
    new: &mut Recorded<OrderStatus>,
    problem: Option<Problem>,
    waits_for: Option<OrderWait>,
) {
    let reason = &new.status.reason;
    if let Some(problem) = problem {
        new.memory.problem = Some(About::new(reason, problem.kept()));
    }
    if let Some(waits_for) = waits_for {
        new.memory.waits_for = Some(About::new(reason, waits_for));
    }
}

/// Returns the facts behind the reason that an outcome leaves: the CA's problem, and the wait.
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

/// Returns the wait behind an Order's reason; `None` if the reason is not one of this program.
pub fn waits_for(order: &Order) -> Option<OrderWait> {
    Memory::read(Holder::Order, &order.metadata.annotations).wait_of(&order.status.reason)
}

/// Returns why the CA no longer has the order; `None` if the outcome does not show that, or after finalize.
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

/// Clears the reason of a request that the CA refused or did not answer: the CA answers again.
fn clear_unanswered(new: &mut Recorded<OrderStatus>) {
    if new.memory.wait_of(&new.status.reason) == Some(OrderWait::Authority) {
        new.status.reason = String::new();
    }
}

/// Updates the memory from an order that was read.
fn remember(memory: &mut Memory, seen: &SeenOrder, now: Timestamp) {
    let is_ready = seen.state == Some(State::Ready);
    let is_pending = seen.state == Some(State::Pending);
    let finalized_at = memory.finalized_at;
    if is_ready && finalized_at.is_some_and(|at| now.duration_since(at) > FINALIZE_RETRY_PAUSE) {
        memory.finalized_at = None;
    }
    let passed = memory.passed_try(now);
    memory.next_try = worth_keeping(seen.retry_after, now).or(passed);
    if memory.expires.is_none() {
        memory.expires = now.saturating_add(ORDER_LIFETIME_DEFAULT).ok();
        // The order was read for its expiry only: nothing is polled while its challenges are under way.
        memory.next_try = memory.next_try.filter(|_| !is_pending);
    }
}

/// Resets the Order to the time before newOrder.
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
        // Surplus authorizations are neither kept nor read.
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
