//! What has to hold. The words are those of `tests/sim/invariants/`, so that whoever reads a fault finds both.

use kubectl_acme::model::challenge::FINALIZER;
use kubectl_acme::model::memory::{Holder, Memory};
use kubectl_acme::model::{Challenge, Order, State as Word};

use super::state::{CaOrder, CaState, Job, Proof, State, bit, moment};
use super::world::World;

type Holds = Result<(), String>;

/// How long a CA that asks for patience wants to be left alone.
pub(crate) const PATIENCE: jiff::SignedDuration = jiff::SignedDuration::from_secs(30);

/// At most one newOrder for each try, save where a process was killed, an answer was lost, the CA made none or has dropped it.
pub(crate) fn one_order(state: &State) -> Holds {
    let made = state.ca.iter().flatten().count();
    if made > 1 + usize::from(state.excused) {
        return Err(format!("one order: {made} were made, {} excused", state.excused));
    }
    Ok(())
}

/// Whether the last newOrder is less than ten seconds ago.
pub(crate) fn was_just_asked(state: &State) -> Option<u8> {
    let (at, times) = state.asked?;
    let ago = moment(state.now).duration_since(moment(at));
    (ago.as_secs() < 10).then_some(times)
}

/// Two newOrders are ten seconds apart, whoever asks. What a process has asked for again is not written down each time, so that
/// there may be one more after it is killed.
pub(crate) fn orders_are_apart(state: &mut State) -> Holds {
    let times = was_just_asked(state).unwrap_or(0) + 1;
    state.asked = Some((state.now, times));
    if times > 2 { Err("one order: three go out at once".to_owned()) } else { Ok(()) }
}

/// A newOrder stands in the ledger before it goes out.
pub(crate) fn order_is_in_its_ledger(state: &State) -> Holds {
    if state.store.ledger.iter().flatten().next().is_none() {
        return Err("one order: a newOrder goes out that stands in no ledger".to_owned());
    }
    Ok(())
}

/// A signing request that was taken is not sent again.
pub(crate) fn one_finalize(order: CaOrder) -> Holds {
    if order.finalized > 1 {
        return Err("finalize: the CA has taken two signing requests for one order".to_owned());
    }
    Ok(())
}

/// The CA is told only of an answer that was seen and that is still up.
pub(crate) fn answer_was_seen(state: &State, slot: u8) -> Holds {
    if state.seen & bit(slot) == 0 {
        return Err(format!("acceptance: the answer of challenge {slot} was never seen"));
    }
    if state.up & bit(slot) == 0 {
        return Err(format!("acceptance: the answer of challenge {slot} is not up any more"));
    }
    Ok(())
}

/// A Challenge has its finalizer before its answer is put up.
pub(crate) fn finalizer_comes_first(world: &World, state: &State, slot: u8) -> Holds {
    let stored = state.store.challenges[usize::from(slot)].map(|id| world.challenges.get(id));
    if stored.is_some_and(|stored| stored.metadata.finalizers.iter().any(|f| f == FINALIZER)) {
        return Ok(());
    }
    Err(format!("finalizer: the answer of challenge {slot} goes up without one"))
}

/// No answer is taken down that the CA still looks for, unless it or its order has failed.
pub(crate) fn answer_stays_while_looked_for(world: &World, state: &State, slot: u8) -> Holds {
    let (order, name) = (usize::from(slot) / 2, usize::from(slot) % 2);
    let is_looked_for = state.ca[order].is_some_and(|at_ca| {
        at_ca.state == CaState::Pending && at_ca.authorizations[name] == Proof::Looking
    });
    let stored = state.store.challenges[usize::from(slot)].map(|id| world.challenges.get(id));
    let was_refused = stored.is_some_and(|c| c.status.state.is_some_and(Word::is_failure));
    let is_current = current_order(world, state) == Some(order);
    if is_looked_for && is_current && !was_refused && !world.order_has_failed(state) {
        return Err(format!("answers: that of challenge {slot} goes while the CA looks for it"));
    }
    Ok(())
}

fn current_order(world: &World, state: &State) -> Option<usize> {
    let order = world.orders.get(state.store.order);
    (!order.status.url.is_empty()).then(|| super::objects::number_of(&order).into())
}

/// Retry-After is heeded: the same process does not ask about the same before. An order that has failed does not leave its
/// answers up for so long.
pub(crate) fn pause_is_kept(world: &World, state: &State, process: u8, job: Job) -> Holds {
    let Some((whose, about, at)) = state.patience else { return Ok(()) };
    let is_over = moment(state.now) >= moment(at) + PATIENCE;
    if whose != process || about != job || is_over || world.order_has_failed(state) {
        return Ok(());
    }
    Err(format!("Retry-After: {job:?} is asked for before its time"))
}

/// Never more challenges under way than the cap.
pub(crate) fn slots_are_kept(world: &World, state: &State) -> Holds {
    if !world.setting.is_leased {
        return Ok(());
    }
    let all = state.store.challenges.iter().flatten().map(|id| world.challenges.get(*id));
    let running = all.filter(|challenge| challenge.status.processing).count();
    if running > world.setting.cap {
        return Err(format!("cap: {running} challenges under way, {} may be", world.setting.cap));
    }
    Ok(())
}

/// Statuses move as cert-manager's may: what has ended stays as it is.
fn state_moves_as_it_may(before: Option<Word>, after: Option<Word>, kind: &str) -> Holds {
    if before.is_some_and(Word::is_final) && before != after {
        return Err(format!("statuses: {kind} goes from {before:?} to {after:?}"));
    }
    Ok(())
}

/// The same for an Order, which besides keeps its certificate and loses its URL only where the CA has dropped the order.
pub(crate) fn order_moves_as_it_may(before: &Order, after: &Order) -> Holds {
    let (was, is) = (&before.status, &after.status);
    state_moves_as_it_may(was.state, is.state, "an Order")?;
    if !was.certificate.is_empty() && is.certificate != was.certificate {
        return Err("statuses: an Order loses its certificate".to_owned());
    }
    if !was.url.is_empty() && was.url != is.url && !is.reason.contains("dropped") {
        return Err(format!("statuses: an Order goes from {} to {:?}", was.url, is.url));
    }
    Ok(())
}

/// The same for a Challenge, which besides remembers that it was accepted.
pub(crate) fn challenge_moves_as_it_may(before: &Challenge, after: &Challenge) -> Holds {
    state_moves_as_it_may(before.status.state, after.status.state, "a Challenge")?;
    let accepted_at =
        |c: &Challenge| Memory::read(Holder::Challenge, &c.metadata.annotations).accepted_at;
    if accepted_at(before).is_some() && accepted_at(after).is_none() {
        return Err("statuses: a Challenge forgets that it was accepted".to_owned());
    }
    Ok(())
}

/// Whether all is over: the Order has ended, with a certificate or with a reason; no answer is left, and no Challenge has
/// anything to do.
pub(crate) fn is_over(world: &World, state: &State) -> bool {
    let order = world.orders.get(state.store.order);
    let has_ended = match order.status.state {
        Some(Word::Valid) => !order.status.certificate.is_empty(),
        Some(bad) => bad.is_failure() && !order.status.reason.is_empty(),
        None => false,
    };
    let is_quiet = |challenge: &Challenge| {
        let status = &challenge.status;
        let bears_mark = !challenge.metadata.finalizers.is_empty();
        challenge.has_ended() && !status.presented && !status.processing && !bears_mark
    };
    let mut challenges = state.store.challenges.iter().flatten();
    has_ended
        && state.up == 0
        && state.processes.iter().all(|process| process.flight.is_none())
        && challenges.all(|id| is_quiet(&world.challenges.get(*id)))
}

/// Whatever went wrong, the certificate comes, save where the CA has said no for good; and no Challenge is left.
pub(crate) fn is_as_it_should_be(world: &World, state: &State) -> Holds {
    let order = world.orders.get(state.store.order);
    let is_valid = order.status.state == Some(Word::Valid);
    if !state.may_fail && !is_valid {
        return Err(format!(
            "end: nothing happened that ends an order, and yet: {}",
            order.status.reason
        ));
    }
    if is_valid && state.store.challenges.iter().any(Option::is_some) {
        return Err("end: Challenges are left behind".to_owned());
    }
    Ok(())
}
