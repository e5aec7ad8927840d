//! A search through what may happen to the engine that ships: `Engine` with its driver, controllers and machines, the sessions,
//! nonces and accounts below it, the Lease and the mirror of a cluster. A seed draws a setting and a list of faults ([`mod@draw`], [`plan`]);
//! time is virtual, one thread runs, and whatever is drawn comes from the seed, so that a run is the same each time. Around the
//! engine are our own CA, called without a socket ([`mod@ca`]), a store with an API server's faults ([`store`]), the part of an API
//! server that keeps the Lease ([`lease`]), web servers and DNS with those who answer and look ([`answers`]), and people
//! ([`people`]). [`invariants`] has what must hold. A process is killed before something that it does outside, or before it hears of
//! it: what is between two such places nobody sees ([`world::Life::step`]). A seed that fails is made shorter by leaving out
//! faults, and is shown with its timeline.
//!
//! `just sim SECONDS SEED` searches. KUBECTL_ACME_SIM_ALL goes on after a failure (`first`: no further), KUBECTL_ACME_SIM_LOG shows every timeline,
//! KUBECTL_ACME_SIM_RUNS ends after so many runs, KUBECTL_ACME_SIM_THREADS runs so many side by side.
//!
//! What this does not cover: what `run` and `order` do around the engine (`lead`, `issue`, signals, files); solvers,
//! probes and providers themselves, in whose place one of ours stands, so that no clean-up by name and no zone that is not found
//! is met; the requests of `store::cluster` and its watches (a list that changes between its pages, fields of other managers,
//! webhooks, deletion in the background), the file of `store::local` and its watches (in its place stands one in memory, whose
//! watches never begin anew); TLS, HTTP and sockets; wildcards beyond DNS-01, other challenge types, external accounts, profiles,
//! renewal windows and renewals after months; ClusterIssuers, several issuers, selections; RSA keys; two processes without a
//! Lease; a CA that breaks RFC 8555 in the body of a good answer (the kit of
//! `ca --behave` has those); memory.
#![allow(clippy::unwrap_used, reason = "a fault ends the run that sees it")]
#![allow(clippy::print_stdout, reason = "whoever searches wants to read what was found")]

mod answers;
mod ca;
mod draw;
mod events;
mod found;
mod invariants;
mod keys;
mod lease;
mod people;
mod plan;
mod process;
mod rng;
mod run;
mod store;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, thread};

use parking_lot::Mutex;

/// Seconds that a search takes, where nobody says how long: what the gate has.
const SECONDS: u64 = 40;

/// A run makes and drops objects all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn number(name: &str, otherwise: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// A search under way, by several threads.
struct Search {
    next: AtomicU64,
    runs: AtomicU64,
    requests: AtomicU64,
    failed: Mutex<Vec<u64>>,
    most: u64,
    until: Instant,
    /// For whoever looks into many at once: one line for each that fails.
    all: bool,
}

impl Search {
    /// Runs seeds until there is no time, or one has failed and no further is wanted.
    fn go_on(&self, goes_on: bool) {
        let is_logged = env::var_os("KUBECTL_ACME_SIM_LOG").is_some();
        loop {
            if !goes_on && !self.failed.lock().is_empty() {
                return;
            }
            let number = self.runs.fetch_add(1, Ordering::Relaxed);
            if number >= self.most || (number > 0 && Instant::now() >= self.until) {
                self.runs.fetch_sub(1, Ordering::Relaxed);
                return;
            }
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            let outcome = run::run(seed);
            self.requests.fetch_add(outcome.requests.0, Ordering::Relaxed);
            if is_logged {
                println!("{}", outcome.log.join("\n"));
            }
            if let Some(violation) = outcome.violation {
                self.failed.lock().push(seed);
                if self.all {
                    println!("{seed}: {violation}");
                }
            }
        }
    }
}

/// Runs seeds for as long as it is told; the first that fails is made shorter and shown.
#[test]
fn no_seed_breaks_what_has_to_hold() {
    let first = number("KUBECTL_ACME_SIM_SEED", 1);
    let all = env::var("KUBECTL_ACME_SIM_ALL").ok();
    let search = Search {
        next: first.into(),
        runs: 0.into(),
        requests: 0.into(),
        failed: Mutex::default(),
        most: number("KUBECTL_ACME_SIM_RUNS", u64::MAX),
        until: Instant::now() + Duration::from_secs(number("KUBECTL_ACME_SIM_SECONDS", SECONDS)),
        all: all.is_some(),
    };
    let goes_on = all.as_deref().is_some_and(|all| all != "first");
    thread::scope(|scope| {
        for _ in 0..number("KUBECTL_ACME_SIM_THREADS", 1) {
            scope.spawn(|| search.go_on(goes_on));
        }
    });
    let failed = search.failed.into_inner();
    match failed.iter().min() {
        Some(seed) if !search.all => panic!("{}", shown(*seed)),
        _ => {}
    }
    let [runs, requests] = [search.runs, search.requests].map(AtomicU64::into_inner);
    println!("{runs} runs from seed {first} on, {requests} requests, {} failed", failed.len());
}

/// A failure, as short as it gets.
fn shown(seed: u64) -> String {
    let (setting, faults) = draw::of(seed);
    let (kept, outcome) = run::shorten(&setting, &faults);
    let violation = outcome
        .violation
        .unwrap_or_else(|| "it fails no more: the run is not the same twice".to_owned());
    let faults: Vec<String> = kept.iter().map(|fault| format!("  {fault:?}")).collect();
    format!(
        "seed {seed}: {violation}\n{}\n{setting:#?}\nfaults that are needed, of {}:\n{}",
        outcome.log.join("\n"),
        draw::of(seed).1.len(),
        faults.join("\n")
    )
}

#[test]
fn the_same_seed_runs_the_same_way_twice() {
    // The last asks for renewal information, at a moment that depends on its certificate.
    for seed in [1, 2, 3, 4, 5, 6, 950_062] {
        let (one, other) = (run::run(seed), run::run(seed));
        let mut pairs = one.log.iter().zip(&other.log).enumerate();
        let differs = pairs.find(|(_, (one, other))| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(one.log.len(), other.log.len());
        assert!(!one.log.is_empty());
    }
}
