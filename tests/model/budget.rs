//! The order budget as a process keeps it: the ledger in the store, and what it knows beyond that.

use jiff::SignedDuration;
use kubectl_acme::model::order_budget::{Allowance, Budget, PastRequest};
use kubectl_acme::model::order_ledger::{Entry, RequestOutcome};

use super::objects::ACCOUNT;
use super::state::{ASKS, Ask, Fate, Known, Process, State, moment};

const HOLDER: &str = "certificate";
const ORDER: &str = "order";

/// Takes over what the ledger has and the process does not know.
pub(crate) fn learn(process: &mut Process, ledger: &[Option<Ask>; ASKS]) {
    for (known, ask) in process.known.iter_mut().zip(ledger) {
        if let (None, Some(ask)) = (&known, ask) {
            *known = Some(Known { ask: *ask, since: ask.at, is_ours: false });
        }
    }
}

/// The ledger as the process would write it.
pub(crate) fn ledger(process: &Process) -> [Option<Ask>; ASKS] {
    process.known.map(|known| known.map(|known| known.ask))
}

/// Remembers what became of the last newOrder.
pub(crate) fn note(process: &mut Process, became: RequestOutcome) {
    if let Some(known) = process.known.iter_mut().flatten().last() {
        known.ask.became = Fate::of(became);
    }
}

fn past(process: &Process, now: u8) -> Vec<PastRequest> {
    let known = process.known.iter().flatten().zip(1..);
    let past = known.map(|(known, number)| PastRequest {
        entry: Entry {
            number,
            at: moment(known.ask.at),
            order: "web-1".to_owned(),
            uid: ORDER.to_owned(),
            revision: 1,
            account: ACCOUNT.url.to_owned(),
            names: "names".to_owned(),
            became: known.ask.became.became(),
        },
        holder: HOLDER.to_owned(),
        ago: moment(now).duration_since(moment(known.since)),
        is_ours: known.is_ours,
    });
    past.collect()
}

fn budget(account: &str) -> Budget<'_> {
    Budget {
        allowance: Allowance::Standing,
        holder: HOLDER,
        order: ORDER,
        account,
        names: "names",
        issued: 0,
    }
}

/// Grants the newOrder of the Order and writes the ledger, which others may have written meanwhile: it is read anew then.
/// Returns the state after that write, if there was one; or how long to wait, if that helps.
pub(crate) fn ask(
    state: &State,
    process: u8,
    forgets: bool,
) -> Result<State, Option<SignedDuration>> {
    let mut asked = *state;
    let ledger_now = asked.store.ledger;
    let ours = asked.process(process);
    learn(ours, &ledger_now);
    match budget(ACCOUNT.url).judge(&past(ours, state.now)) {
        Err(denial) => return Err(denial.pause()),
        Ok(grant) => {
            if let Some(number) = grant.again {
                let index = usize::try_from(number).unwrap() - 1;
                let known = ours.known[index].as_mut().unwrap();
                let was_ours = known.is_ours;
                known.ask.became = Fate::of(RequestOutcome::Asked);
                (known.since, known.is_ours) = (state.now, true);
                if !was_ours && !forgets {
                    known.ask.at = state.now;
                    asked.store.ledger = ledger(ours);
                }
            } else {
                let ask = Ask { at: state.now, became: Fate::of(RequestOutcome::Asked) };
                let free = ours.known.iter().position(Option::is_none);
                let free = free.expect("there is room for every newOrder");
                ours.known[free] = Some(Known { ask, since: state.now, is_ours: true });
                asked.store.ledger = ledger(ours);
            }
        }
    }
    Ok(asked)
}

/// Whether another process has asked for the order before.
pub(crate) fn is_asked_by_others(state: &State, process: u8) -> bool {
    let mut process = state.processes[usize::from(process)];
    learn(&mut process, &state.store.ledger);
    process.known.iter().flatten().any(|known| !known.is_ours)
}

/// Whether an order that the CA has dropped is asked for again.
pub(crate) fn replaces(state: &State, process: u8) -> bool {
    let mut process = state.processes[usize::from(process)];
    learn(&mut process, &state.store.ledger);
    budget("").replaces(&past(&process, state.now))
}
