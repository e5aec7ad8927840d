//! All that may happen to the machines that ship, in the small and to the end: `reconcile::order`, `reconcile::challenge`, the
//! scheduler's `schedule::plan` and the order budget's `judge`, an order of two names, two processes, one kill, one stale read,
//! late writes, and every kind of answer ([`order_answers`]); and `reconcile::certificate` with `reconcile::request`, their keys
//! and Secrets ([`certificates`]). Around the machines is a world of our own that is small enough to be compared: the store with
//! its refusal of old writes and the ledger ([`apply`]), the CA, answers that are up, and moments, of which there are eight.
//! [`properties`] has what must hold, in the words of `tests/sim/invariants/`. Each state is visited once ([`search`]); from
//! each, where nothing goes wrong any more, the steps that follow have to come to an end within two hours of the world's time,
//! long before the order expires. A machine that waits for nothing and has not ended is found by that, and so is one that goes
//! round and round.
//!
//! A search of our own in place of stateright: its `eventually` holds on acyclic paths only, and what we fear most are circles;
//! and a process killed between two writes, or that writes late, is a successor here and would be an actor there.
//!
//! `just model` has the wider bounds. What this does not cover, and the simulation does in part (`tests/sim/`): the driver, so that
//! a change that wakes nobody is not found; the controllers' own code, in whose place `order_step`, `challenge_step` and `budget` do
//! the same; sessions, nonces (a refused one never reaches a machine) and accounts; solvers and probes; an API server that lets
//! writes through in another order. Nor: several Orders that share one at the CA; a Retry-After whose write was refused; expiry;
//! wildcards, records that a resolver keeps, answers by hand, a wait in place of the self-check; people who change or delete;
//! renewal. A stale read of the Order's job is of everything, one of a Challenge's of its Order alone: its own object is what wakes
//! it.
#![allow(clippy::unwrap_used, reason = "a fault ends the run that sees it")]
#![allow(clippy::large_types_passed_by_value, reason = "a state is copied for each step")]
#![allow(clippy::print_stdout, reason = "whoever searches wants to read how large it was")]

mod apply;
mod budget;
mod certificates;
mod challenge_step;
mod objects;
mod order_answers;
mod order_step;
mod properties;
mod search;
mod setting;
mod shelf;
mod state;
mod world;

use std::env;

use self::certificates::{Bounds, Forgets};
use self::search::explore;
use self::setting::{Mutant, Setting};
use self::state::Left;
use self::world::World;

/// One kill and one bad answer, under a Lease, with one slot for two challenges.
const USUAL: Setting = Setting {
    left: Left { kills: 1, stale: 0, answers: 1, late: 0, touches: 0 },
    moments: 2,
    cap: 1,
    is_leased: true,
    serves: false,
    mutant: None,
};

/// More states than this are a mistake in the bounds, and would not fit into memory.
const MOST: usize = 6_000_000;

fn is_large() -> bool {
    env::var_os("KUBECTL_ACME_MODEL").is_some_and(|bounds| bounds == "large")
}

/// Searches the first of these; where somebody asks for more, the second.
fn check(name: &str, small: Setting, large: Setting) {
    let mut world = World::new(if is_large() { large } else { small });
    match explore(&mut world, MOST) {
        Ok(found) => println!("{name}: {found}"),
        Err(why) => panic!("{name}: {why}"),
    }
}

fn left(kills: u8, stale: u8, answers: u8, late: u8) -> Left {
    Left { kills, stale, answers, late, touches: 0 }
}

#[test]
fn one_kill_and_one_bad_answer_of_every_kind_do_no_harm() {
    let small = Setting { moments: 3, ..USUAL };
    check("one kill, one bad answer", small, Setting { left: left(1, 0, 2, 0), ..small });
}

#[test]
fn what_is_read_as_it_was_does_no_harm() {
    let small = Setting { left: left(1, 1, 0, 0), moments: 3, ..USUAL };
    check("one stale read", small, Setting { left: left(1, 1, 1, 0), ..small });
}

#[test]
fn what_is_written_late_does_no_harm() {
    let small = Setting { left: Left { touches: 1, ..left(1, 0, 0, 1) }, ..USUAL };
    let large = Setting { left: Left { touches: 1, ..left(1, 0, 1, 1) }, moments: 3, ..USUAL };
    check("one late write", small, large);
}

#[test]
fn answers_that_end_with_their_process_are_put_up_again() {
    let small = Setting { cap: 2, serves: true, moments: 1, ..USUAL };
    check("answers that a process serves", small, Setting { moments: 3, ..small });
}

#[test]
fn two_processes_at_once_do_no_harm_beyond_the_cap() {
    let small = Setting { left: left(1, 0, 0, 0), cap: 2, is_leased: false, ..USUAL };
    check("without a Lease", small, Setting { left: left(1, 0, 1, 0), ..small });
}

/// A bad Order, a kill and a stale read.
const CERTIFICATE: Bounds = Bounds {
    left: certificates::Left { kills: 1, stale: 1, late: 0, failures: 1 },
    moments: 3,
    forgets: None,
};

#[test]
fn a_certificate_comes_whatever_became_of_its_orders() {
    let left = certificates::Left { kills: 1, stale: 2, late: 1, failures: 2 };
    let large = Bounds { left, moments: 4, ..CERTIFICATE };
    let bounds = if is_large() { large } else { CERTIFICATE };
    match explore(&mut certificates::World::new(bounds), MOST) {
        Ok(found) => println!("a Certificate and its request: {found}"),
        Err(why) => panic!("{why}"),
    }
}

#[test]
fn whoever_forgets_something_of_a_certificate_is_found() {
    for (forgets, expected) in [
        (Forgets::Key, "keys: key 51 is used, and no Secret has it"),
        (Forgets::NextKey, "end: "),
        (Forgets::WhichRequest, "one order: "),
        (Forgets::Pause, "pause: "),
    ] {
        let late = u8::from(forgets == Forgets::WhichRequest);
        let left = certificates::Left { kills: 0, stale: 0, late, failures: 1 };
        let bounds = Bounds { left, forgets: Some(forgets), ..CERTIFICATE };
        let found = explore(&mut certificates::World::new(bounds), MOST);
        let why = found.map(|found| found.to_string()).expect_err("the search does not find it");
        println!("{forgets:?}: {}", why.lines().next().unwrap());
        assert!(why.starts_with(expected), "{why}");
    }
}

/// Asserts that the search finds a fault of ours, and as what.
#[track_caller]
fn finds(mutant: Mutant, setting: Setting, expected: &str) {
    let why = explore(&mut World::new(setting.with(mutant)), MOST).map(|found| found.to_string());
    let why = why.expect_err("the search does not find it");
    let first = why.lines().next().unwrap();
    println!("{mutant:?}: {first}");
    assert!(why.starts_with(expected), "{why}");
}

#[test]
fn whoever_forgets_something_is_found() {
    let two = Setting { moments: 3, left: left(1, 0, 1, 0), ..USUAL };
    finds(Mutant::Ledger, two, "one order: a newOrder goes out that stands in no ledger");
    let touched = Left { touches: 1, ..left(0, 0, 0, 1) };
    finds(Mutant::Unwritten, Setting { left: touched, ..two }, "one order: 2 were made");
    finds(Mutant::Anew, Setting { left: left(1, 1, 0, 0), ..two }, "one order: 2 were made");
    // A process that is killed each time it has asked: without that moment the next one does not wait.
    let thrice = Setting { left: left(2, 0, 1, 0), ..two };
    finds(Mutant::AskedAgain, thrice, "one order: three go out at once");
    finds(Mutant::SelfCheck, USUAL, "acceptance: the answer of challenge 0 was never seen");
    finds(Mutant::Finalizer, USUAL, "finalizer: the answer of challenge 0 goes up without one");
    finds(Mutant::CleanUp, USUAL, "end: nothing more happens");
    finds(Mutant::Patience, USUAL, "Retry-After: Order is asked for before its time");
    finds(Mutant::Cap, USUAL, "cap: 2 challenges under way, 1 may be");
    finds(Mutant::Poll, USUAL, "end: nothing more happens");
    finds(Mutant::Conflict, Setting { left: left(1, 0, 1, 1), ..USUAL }, "");
}
