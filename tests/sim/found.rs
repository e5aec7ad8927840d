//! What the search has found in what ships, as the shortest runs that show it; each was mended.

use super::plan::{CaFault, Fault, Setting, Wish};
use super::run::run_with;

/// One process, one name over HTTP, no delay.
fn plain() -> Setting {
    let wish = |name: &str| Wish { name: name.to_owned(), names: vec!["a.example.com".to_owned()] };
    Setting {
        seed: 1,
        calm: 100,
        wishes: vec![wish("cert-0")],
        cluster: false,
        processes: 1,
        cap: 60,
        by_record: false,
        listener: false,
        ca_retry_after: None,
        finalize_delay: None,
        reuse_orders: false,
        reuse_authorizations: false,
        refuse_nonces: 0,
        validation_delay: 0,
        propagation: 0,
        latency: 20,
        ttl: 60,
        negative_ttl: 0,
        skews: vec![0],
    }
}

fn holds(setting: &Setting, faults: &[Fault]) {
    let outcome = run_with(setting, faults);
    assert_eq!(outcome.violation, None, "{}", outcome.log.join("\n"));
}

/// The moment that a CA named was counted from a clock that had been set back, and waited for by one that goes on: the order was
/// read fifteen times a second until the two met again.
#[test]
fn a_clock_that_is_set_back_makes_nobody_poll_without_a_pause() {
    let setting = Setting { ca_retry_after: Some(30), finalize_delay: Some(50_000), ..plain() };
    holds(&setting, &[Fault::Clock { place: 0, at: 5, by: -30 }]);
}

/// A directory that a gateway once refused to show counted as the CA's last word on the account, and nobody ever asked again.
#[test]
fn a_directory_that_was_refused_once_is_read_again() {
    let what = CaFault::Says { acted: false, status: 403, kind: "unauthorized", retry_after: None };
    holds(&plain(), &[Fault::Ca { point: "ca directory".to_owned(), nth: 0, what }]);
}

/// Two Certificates for the same names asked for their orders in the same moment, before either stood in the other's way.
#[test]
fn two_orders_for_one_set_of_names_are_not_asked_for_at_once() {
    let mut setting = Setting { latency: 300, ..plain() };
    setting.wishes.push(Wish { name: "cert-1".to_owned(), ..setting.wishes[0].clone() });
    for seed in 1..10 {
        holds(&Setting { seed, ..setting.clone() }, &[]);
    }
}
