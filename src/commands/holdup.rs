//! What keeps a Certificate from going on for now: the CA's patience, a challenge that waits, a store that is away.

use jiff::Timestamp;

use super::chain::Chain;
use super::failure::Kind as FailureKind;
use super::unseen;
use super::verdict::problem_in;
use crate::model::memory::{Holder, Memory};
use crate::model::{Key, Kind, State};
use crate::reconcile::pauses::LONGEST_PAUSE;
use crate::store::StoreError;

/// An obstacle that may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holdup {
    /// Sort, should time run out.
    pub kind: FailureKind,
    /// The kind of object that waits.
    pub of: Kind,
    /// What it is, in one line.
    pub what: String,
    /// When the next try comes, if that is known.
    pub until: Option<Timestamp>,
    /// Whether the CA has named that moment, so that no earlier try makes sense.
    pub named_by_ca: bool,
    /// What helps.
    pub hint: Option<String>,
}

impl Holdup {
    /// The store does not answer, which may pass.
    pub fn of_store(key: &Key, error: &StoreError) -> Self {
        Self {
            kind: FailureKind::of_store(error),
            of: key.kind,
            what: format!("{key}: {error}"),
            until: None,
            named_by_ca: false,
            hint: error.hints().into_iter().next(),
        }
    }
}

/// The CA named a moment before which the order makes no sense.
pub fn of_order(chain: &Chain) -> Option<Holdup> {
    let order = chain.order()?;
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    if order.status.reason.is_empty() {
        return None;
    }
    let kind = problem_in(&order.status.reason)
        .map_or(FailureKind::Timeout, |problem| FailureKind::of_problem(&problem));
    let reason = &order.status.reason;
    let what = format!("{}: {reason}", Key::new(Kind::Order, order.name()));
    let named_by_ca = names_a_moment(reason);
    Some(Holdup { kind, of: Kind::Order, what, until: memory.next_try, named_by_ca, hint: None })
}

/// The CA wants the order to be left alone until after `deadline`; our own pauses are not worth a word.
pub fn beyond(chain: &Chain, deadline: Timestamp) -> Option<Holdup> {
    let order = chain.order()?;
    let until = Memory::read(Holder::Order, &order.metadata.annotations).next_try?;
    let state = order.status.state.filter(|state| !state.is_final())?;
    let latest = deadline.saturating_add(LONGEST_PAUSE).unwrap_or(deadline);
    (until > latest).then(|| Holdup {
        kind: FailureKind::Timeout,
        of: Kind::Order,
        what: format!(
            "{}: the CA has it as {state}, and asks for patience until {until:.0}",
            Key::new(Kind::Order, order.name())
        ),
        until: Some(until),
        named_by_ca: true,
        hint: None,
    })
}

/// What the first waiting challenge waits for.
pub fn of_challenges(chain: &Chain) -> Option<Holdup> {
    let challenge = chain
        .challenges
        .iter()
        .find(|c| !c.status.state.is_some_and(State::is_final) && !c.status.reason.is_empty())?;
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    let kind = problem_in(&challenge.status.reason)
        .map_or(FailureKind::Timeout, |problem| FailureKind::of_problem(&problem));
    let reason = &challenge.status.reason;
    let what = format!("{}: {reason}", Key::new(Kind::Challenge, challenge.name()));
    let named_by_ca = names_a_moment(reason);
    let hint =
        (kind == FailureKind::Timeout).then(|| unseen::advice(challenge, reason, chain.in_cluster));
    Some(Holdup { kind, of: Kind::Challenge, what, until: memory.next_try, named_by_ca, hint })
}

/// Tells whether a reason tells of a refusal for a time, and not of one of our own pauses.
fn names_a_moment(reason: &str) -> bool {
    reason.contains("; next try at ")
}
