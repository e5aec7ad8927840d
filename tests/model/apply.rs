//! Writes: each by itself, and refused where somebody else has written since. Between two of them a process may be killed, and
//! all of them may come late.

use kubectl_acme::model::{Challenge, Order, State as Word};

use super::budget;
use super::properties;
use super::setting::Mutant;
use super::state::{Flight, Job, Process, State, Write, bit};
use super::world::World;

/// What comes of a step before its writes.
pub(crate) struct Branch {
    pub(crate) what: &'static str,
    pub(crate) result: Result<State, String>,
    pub(crate) writes: Vec<Write>,
}

/// How a step ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Written,
    KilledAfter(usize),
    Late,
}

impl World {
    /// All ways in which a step of a process may end.
    pub(crate) fn endings(
        &mut self,
        process: u8,
        job: Job,
        branch: Branch,
    ) -> Vec<(&'static str, End, Result<State, String>)> {
        let Branch { what, result, writes } = branch;
        let mut after = match result {
            Ok(after) => after,
            Err(why) => return vec![(what, End::Written, Err(why))],
        };
        if job == Job::Order && after.stale.is_some_and(|(whose, _)| whose == process) {
            after.stale = None;
        }
        let mut endings = vec![(what, End::Written, self.write_all(after, process, &writes))];
        if after.left.kills > 0 {
            for number in 0..writes.len() {
                let killed = self.write_all(after, process, &writes[..number]);
                let killed = killed.map(|state| self.killed(state, process));
                endings.push((what, End::KilledAfter(number), killed));
            }
        }
        let is_free = after.processes[usize::from(process)].flight.is_none();
        if after.left.late > 0 && is_free && !writes.is_empty() {
            let mut late = after;
            late.left.late -= 1;
            let mut all = [None; 6];
            all.iter_mut().zip(&writes).for_each(|(place, write)| *place = Some(*write));
            late.process(process).flight = Some(Flight { job, writes: all });
            endings.push((what, End::Late, Ok(late)));
        }
        endings
    }

    /// Lets writes that were late arrive.
    pub(crate) fn land(&mut self, state: &State, process: u8) -> Result<State, String> {
        let mut landed = *state;
        let Some(flight) = landed.process(process).flight.take() else { return Ok(landed) };
        let writes: Vec<Write> = flight.writes.into_iter().flatten().collect();
        self.write_all(landed, process, &writes)
    }

    /// Ends a process; the next one under its number knows nothing.
    pub(crate) fn killed(&self, mut state: State, process: u8) -> State {
        let serves = self.setting.serves;
        let died = std::mem::take(state.process(process));
        if serves {
            state.up &= !died.stands;
        }
        state.left.kills -= 1;
        if self.orders.get(state.store.order).status.url.is_empty() {
            state.excused += 1;
        }
        state.holder = if self.setting.is_leased { 1 - process } else { state.holder };
        state.stale = state.stale.filter(|(whose, _)| *whose != process);
        state.patience = state.patience.filter(|(whose, _, _)| *whose != process);
        state
    }

    fn write_all(
        &mut self,
        mut state: State,
        process: u8,
        writes: &[Write],
    ) -> Result<State, String> {
        for write in writes {
            if !self.write(&mut state, process, *write)? {
                // What the CA asked for is lost with the rest of the step: the process asks once more.
                state.patience = state.patience.filter(|(whose, _, _)| *whose != process);
                break;
            }
        }
        properties::slots_are_kept(self, &state)?;
        Ok(state)
    }

    /// Writes once; returns whether the store took it.
    fn write(&mut self, state: &mut State, process: u8, write: Write) -> Result<bool, String> {
        let forgets = self.setting.has(Mutant::Conflict);
        match write {
            Write::Ledger => {
                let ledger = state.store.ledger;
                let ours = state.process(process);
                budget::learn(ours, &ledger);
                state.store.ledger = budget::ledger(ours);
            }
            Write::UrlIsWritten => state.process(process).unwritten = None,
            Write::Order { base, new } => {
                if state.store.order != base && !forgets {
                    return Ok(false);
                }
                let (before, after) = (self.orders.get(state.store.order), self.orders.get(new));
                properties::order_moves_as_it_may(&before, &after)?;
                state.store.order = new;
            }
            Write::Challenge { slot, base, new } => {
                let at = usize::from(slot);
                if state.store.challenges[at] != Some(base) && !forgets {
                    return Ok(false);
                }
                if let (Some(before), Some(new)) = (state.store.challenges[at], new) {
                    let (before, after) = (self.challenges.get(before), self.challenges.get(new));
                    properties::challenge_moves_as_it_may(&before, &after)?;
                }
                state.store.challenges[at] = new;
            }
            Write::Create { slot, new } => {
                state.store.challenges[usize::from(slot)].get_or_insert(new);
            }
            Write::Delete { slot } => {
                let at = usize::from(slot);
                if let Some(id) = state.store.challenges[at] {
                    let mut challenge: Challenge = (*self.challenges.get(id)).clone();
                    let is_marked = !challenge.metadata.finalizers.is_empty();
                    challenge.metadata.deletion_timestamp =
                        Some(super::state::moment(state.now).into());
                    state.store.challenges[at] = is_marked.then(|| self.challenges.put(challenge));
                }
            }
        }
        // Whoever writes knows what it has written.
        if let Some((whose, known)) = &mut state.stale
            && *whose == process
        {
            match write {
                // Challenges hear of it later.
                Write::Order { .. } => {}
                Write::Challenge { slot, .. }
                | Write::Create { slot, .. }
                | Write::Delete { slot } => {
                    known.challenges[usize::from(slot)] = state.store.challenges[usize::from(slot)];
                }
                Write::Ledger | Write::UrlIsWritten => known.ledger = state.store.ledger,
            }
        }
        Ok(true)
    }

    /// The Order after which no acceptance is waited for.
    pub(crate) fn order_has_failed(&self, state: &State) -> bool {
        let order: std::rc::Rc<Order> = self.orders.get(state.store.order);
        order.status.state.is_some_and(Word::is_failure)
    }

    /// Whether a process has put the answer of a slot up.
    pub(crate) fn stands(&self, process: &Process, state: &State, slot: u8) -> bool {
        if self.setting.serves {
            process.stands & bit(slot) != 0
        } else {
            state.up & bit(slot) != 0
        }
    }
}
