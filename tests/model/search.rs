//! The search: breadth first through all states, each once, then to the end from each.
//!
//! "In the end" is checked on the graph itself. Of every state one successor is the calm one: what happens next where nothing goes
//! wrong any more. Whoever follows these from any state has to come to a state that is an end. A circle of calm steps, or a state
//! that is no end and has no calm step, is a fault.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{self, Display};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// What may happen next in a state.
pub(crate) struct Successors<S, L> {
    /// What happens, and what comes of it; or what must not happen.
    pub(crate) all: Vec<(L, Result<S, String>)>,
    /// Which of them is next where nothing goes wrong any more.
    pub(crate) calm: Option<usize>,
    /// Nothing is left to do, and all is well.
    pub(crate) is_end: bool,
}

/// Something to be searched.
pub(crate) trait Model {
    type State: Clone + Eq + Hash;
    type Label: Display;
    fn first(&self) -> Self::State;
    fn successors(&mut self, state: &Self::State) -> Successors<Self::State, Self::Label>;
    /// What stands where, for whoever reads a counterexample.
    fn show(&self, state: &Self::State) -> String;
}

/// How large the search was.
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) steps: usize,
    /// The longest way from the beginning to a state.
    pub(crate) depth: usize,
    /// States at which all is over.
    pub(crate) ends: usize,
    pub(crate) took: Duration,
}

impl Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, steps, depth, ends, took } = self;
        write!(f, "{states} states, {steps} steps, {ends} ends, {depth} steps deep, in {took:.1?}")
    }
}

/// No way to the end is known yet.
const NOWHERE: u32 = u32::MAX;
/// It is an end.
const END: u32 = u32::MAX - 1;

/// Visits every state; fails with the shortest way to what must not be.
pub(crate) fn explore<M: Model>(model: &mut M, most: usize) -> Result<Found, String> {
    let began = Instant::now();
    let first = model.first();
    let mut numbers: HashMap<M::State, u32> = HashMap::from([(first.clone(), 0)]);
    let mut states = vec![first];
    // By which step of which state each was found first.
    let mut from: Vec<(u32, u16)> = vec![(0, 0)];
    let mut depths: Vec<u16> = vec![0];
    let mut calm: Vec<u32> = Vec::new();
    let (mut steps, mut ends) = (0, 0);
    let mut at = 0;
    while at < states.len() {
        let state = states[at].clone();
        let next = model.successors(&state);
        let number = u32::try_from(at).unwrap();
        let mut calm_one = if next.is_end { END } else { NOWHERE };
        ends += usize::from(next.is_end);
        for (step, (label, result)) in next.all.into_iter().enumerate() {
            steps += 1;
            let reached = match result {
                Ok(reached) => reached,
                Err(why) => {
                    let way = way(model, &states, &from, number);
                    return Err(format!("{why}\n{way}{label}\n{}", model.show(&state)));
                }
            };
            let found = match numbers.entry(reached) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let found = u32::try_from(states.len()).unwrap();
                    states.push(new.key().clone());
                    from.push((number, u16::try_from(step).unwrap()));
                    depths.push(depths[at] + 1);
                    new.insert(found);
                    found
                }
            };
            if next.calm == Some(step) && !next.is_end {
                calm_one = found;
            }
        }
        calm.push(calm_one);
        at += 1;
        if states.len() > most {
            return Err(format!("there are more than {most} states: the bounds are too wide"));
        }
    }
    if let Some((number, why)) = never_ends(&calm) {
        let way = way(model, &states, &from, number);
        let mut calm_way = String::new();
        let (mut at, mut left) = (number, 12);
        while left > 0 && calm[at as usize] < END {
            let next = model.successors(&states[at as usize]);
            let label = next.calm.map(|step| next.all[step].0.to_string()).unwrap_or_default();
            calm_way = format!("{calm_way}calm: {label}\n");
            at = calm[at as usize];
            left -= 1;
        }
        return Err(format!("{why}\n{way}{calm_way}{}", model.show(&states[at as usize])));
    }
    let depth = depths.iter().copied().max().unwrap_or(0).into();
    Ok(Found { states: states.len(), steps, depth, ends, took: began.elapsed() })
}

/// The first state from which the calm steps do not come to an end.
fn never_ends(calm: &[u32]) -> Option<(u32, &'static str)> {
    let mut comes_to_end = vec![false; calm.len()];
    // In which walk a state was met.
    let mut walks = vec![0_u32; calm.len()];
    for start in 0..u32::try_from(calm.len()).unwrap() {
        let (mut at, mut path) = (start, Vec::new());
        loop {
            let index = at as usize;
            if comes_to_end[index] || calm[index] == END {
                break;
            }
            if calm[index] == NOWHERE {
                return Some((start, "end: nothing more happens, and it is not over"));
            }
            if walks[index] == start + 1 {
                return Some((start, "end: it goes round and round"));
            }
            walks[index] = start + 1;
            path.push(index);
            at = calm[index];
        }
        comes_to_end[at as usize] = true;
        for index in path {
            comes_to_end[index] = true;
        }
    }
    None
}

/// The steps from the beginning to a state, one on each line.
fn way<M: Model>(model: &mut M, states: &[M::State], from: &[(u32, u16)], to: u32) -> String {
    let mut lines = Vec::new();
    let mut at = to;
    while at != 0 {
        let (before, step) = from[at as usize];
        let next = model.successors(&states[before as usize]);
        lines.push(format!("{}\n", next.all[usize::from(step)].0));
        at = before;
    }
    lines.reverse();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers up to ten; each is followed by the next one and by its double.
    struct Numbers {
        forbidden: u32,
        calm: fn(u32) -> Option<usize>,
    }

    impl Model for Numbers {
        type State = u32;
        type Label = String;
        fn first(&self) -> u32 {
            1
        }
        fn successors(&mut self, state: &u32) -> Successors<u32, String> {
            let to = |next: u32| {
                let next = next.min(10);
                let result =
                    if next == self.forbidden { Err(format!("{next}!")) } else { Ok(next) };
                (format!("to {next}"), result)
            };
            let all = vec![to(state + 1), to(state * 2)];
            Successors { all, calm: (self.calm)(*state), is_end: *state == 10 }
        }
        fn show(&self, state: &u32) -> String {
            format!("at {state}")
        }
    }

    fn searched(forbidden: u32, calm: fn(u32) -> Option<usize>) -> Result<usize, String> {
        explore(&mut Numbers { forbidden, calm }, 100).map(|found| found.states)
    }

    #[test]
    fn the_shortest_way_to_what_must_not_be_is_told() {
        assert_eq!(searched(8, |_| Some(0)), Err("8!\nto 2\nto 4\nto 8\nat 4".to_owned()));
        assert_eq!(searched(77, |_| Some(0)), Ok(10));
    }

    #[test]
    fn what_never_ends_is_found() {
        let stuck = searched(77, |at| (at != 3).then_some(0));
        assert!(stuck.unwrap_err().starts_with("end: nothing more happens"));
        assert!(explore(&mut Numbers { forbidden: 77, calm: |_| Some(0) }, 5).is_err());
    }
}
