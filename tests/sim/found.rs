//! What the search has found in what ships, as the shortest runs that show it; each was mended.

use super::plan::{
    CaFault, Deed, Fault, Moment, RetryAfter, Setting, Side, StoreFault, WatchFault, Wish,
};
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
        minutes_good: None,
        keeps_key: false,
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

/// As many Certificates for that name, in a cluster.
fn alike(number: usize) -> Setting {
    let first = plain().wishes.remove(0);
    let wish = |number| Wish { name: format!("cert-{number}"), ..first.clone() };
    Setting { calm: 300, cluster: true, wishes: (0..number).map(wish).collect(), ..plain() }
}

fn store(point: &str, nth: u32, what: StoreFault) -> Fault {
    Fault::Store { point: format!("store {point}"), nth, what }
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
    let setting = Setting { latency: 300, cluster: false, ..alike(2) };
    for seed in 1..10 {
        holds(&Setting { seed, ..setting.clone() }, &[]);
    }
}

/// A limit that the CA named to one Certificate was nothing to another with the same names, which asked again at once.
#[test]
fn a_limit_holds_for_every_certificate_with_those_names() {
    let retry_after = Some(RetryAfter::Seconds(100));
    let what = CaFault::Says { acted: false, status: 429, kind: "rateLimited", retry_after };
    holds(&alike(2), &[Fault::Ca { point: "ca newOrder".to_owned(), nth: 0, what }]);
}

/// A certificate that is dated back by most of its life was due when it was issued, and so was each that followed: every 20 seconds.
#[test]
fn a_certificate_that_is_due_when_it_is_issued_is_kept() {
    holds(&Setting { minutes_good: Some(40), ..plain() }, &[]);
}

/// Somebody who deletes a Secret again and again got it issued again and again.
#[test]
fn whoever_deletes_a_secret_again_and_again_costs_few_orders() {
    let (at, deed) = (Moment::Second(30), Deed::FightsOverSecret);
    holds(&Setting { calm: 2_500, ..plain() }, &[Fault::Person { at, deed, whose: 0 }]);
}

/// Ten seconds between two newOrders for one set of names were counted from before the ledger was written, which may take long.
#[test]
fn the_pause_after_a_new_order_begins_when_it_goes_out() {
    holds(&alike(3), &[store("metadata Certificate", 1, StoreFault::Slow(6))]);
    // Meanwhile another one went out, and this one right after it.
    for nth in 0..3 {
        for latency in [0, 2] {
            let setting = Setting { latency, ..alike(4) };
            for seconds in [15, 20] {
                let slow = store("metadata Certificate", nth, StoreFault::Slow(seconds));
                holds(&setting, &[slow]);
            }
        }
    }
}

/// A challenge that was started without our hearing of it had no slot until its change was told, and another one got that.
#[test]
fn a_start_whose_answer_is_lost_has_its_slot() {
    let wish = |name: &str, names: &[&str]| Wish {
        name: name.to_owned(),
        names: names.iter().map(|name| format!("{name}.example.com")).collect(),
    };
    let wishes = vec![wish("cert-0", &["a", "b"]), wish("cert-1", &["c"])];
    let lost = store("status Challenge", 0, StoreFault::Lost { done: true });
    for seed in 1..30 {
        let setting = Setting { seed, cap: 1, latency: 20, wishes: wishes.clone(), ..alike(1) };
        let lags =
            Fault::Watch { point: "watch Challenge".to_owned(), nth: 2, what: WatchFault::Lags(5) };
        holds(&setting, &[lost.clone(), lags]);
    }
}

/// A moment that the CA named was lost with the status that another writer had changed meanwhile: the CA was asked once more.
#[test]
fn a_moment_that_could_not_be_written_down_is_waited_for() {
    let setting = Setting { finalize_delay: Some(20_000), ..plain() };
    let retry_after = Some(RetryAfter::Seconds(100));
    let says = CaFault::Says { acted: false, status: 429, kind: "rateLimited", retry_after };
    for (asked, written) in [("order", "Order"), ("authorization", "Challenge")] {
        let what = says.clone();
        let refused = Fault::Ca { point: format!("ca {asked}"), nth: 2, what };
        for nth in 0..6 {
            let raced = store(&format!("metadata {written}"), nth, StoreFault::Raced);
            holds(&setting, &[refused.clone(), raced]);
        }
    }
}

/// Whoever read its own authorization, because another challenge waited for its name, took no heed of a moment that the CA named.
#[test]
fn a_moment_that_an_authorization_names_is_waited_for() {
    let retry_after = Some(RetryAfter::Seconds(100));
    let what = CaFault::Says { acted: false, status: 429, kind: "rateLimited", retry_after };
    let names = ["a", "b"].map(|name| format!("{name}.example.com")).to_vec();
    let wish = |name: &str| Wish { name: name.to_owned(), names: names.clone() };
    let wishes = vec![wish("cert-0"), wish("cert-1")];
    for seed in 1..3 {
        // Its Order, which is asked in its place, is told to wait, and writes that down: a change that wakes it.
        let (wishes, validation_delay) = (wishes.clone(), 100);
        let setting = Setting {
            seed,
            wishes,
            validation_delay,
            propagation: 45_000,
            ca_retry_after: Some(30),
            ..alike(2)
        };
        for nth in 2..8 {
            let point = "ca authorization".to_owned();
            holds(&setting, &[Fault::Ca { point, nth, what: what.clone() }]);
        }
    }
}

/// An Order that had failed was told to wait when it read why; its Challenge asked for the same authorization at once, and kept on.
#[test]
fn what_one_was_told_to_wait_for_nobody_reads_before() {
    let setting = Setting { validation_delay: 40_000, ..plain() };
    let retry_after = Some(RetryAfter::Seconds(585));
    let what = CaFault::Says { acted: false, status: 429, kind: "rateLimited", retry_after };
    let spoils = Fault::Ca { point: "ca order".to_owned(), nth: 2, what: CaFault::Spoils };
    for nth in 1..4 {
        let point = "ca authorization".to_owned();
        holds(&setting, &[spoils.clone(), Fault::Ca { point, nth, what: what.clone() }]);
    }
}

/// What a newOrder needs was read after it was granted: where that took its time, another one went out right after it.
#[test]
fn what_a_new_order_needs_is_read_before_it_is_granted() {
    let silent = CaFault::Silent { acted: false, seconds: 90 };
    let silent = Fault::Ca { point: "ca newOrder".to_owned(), nth: 0, what: silent };
    for seconds in 72..80 {
        let point = "ca newNonce".to_owned();
        let slow = Fault::Ca { point, nth: 1, what: CaFault::Slow(seconds) };
        let setting = Setting { cluster: false, latency: 0, ..alike(2) };
        holds(&setting, &[silent.clone(), slow]);
    }
}

/// A newOrder went out for a Certificate that was deleted while that was written into its ledger, or its nonce was read.
#[test]
fn nothing_is_asked_for_what_was_deleted_while_it_was_granted() {
    for deed in [Deed::DeletesCertificate, Deed::DeletesRequest, Deed::DeletesOrder] {
        let slow = store("metadata Certificate", 0, StoreFault::Slow(19));
        let person = Fault::Person { at: Moment::Second(10), deed, whose: 0 };
        for seed in 1..8 {
            let setting = Setting { seed, cluster: true, latency: 300, ..alike(2) };
            holds(&setting, &[slow.clone(), person.clone()]);
        }
        let ca = |asked: &str, nth, what| Fault::Ca { point: format!("ca {asked}"), nth, what };
        let silent = ca("newOrder", 0, CaFault::Silent { acted: false, seconds: 5 });
        let slow = ca("newNonce", 1, CaFault::Slow(19));
        for at in (10..45).step_by(3) {
            let person = Fault::Person { at: Moment::Second(at), deed, whose: 0 };
            let setting = Setting { latency: 300, ..alike(1) };
            holds(&setting, &[silent.clone(), slow.clone(), person]);
        }
    }
}

/// A Certificate that somebody wanted to be issued once more, right after it had failed, failed at once again by the request before:
/// a try is known by its key, and that of the failed one was still named.
#[test]
fn a_wish_right_after_a_failure_is_a_try_of_its_own() {
    let what =
        CaFault::Says { acted: false, status: 400, kind: "rejectedIdentifier", retry_after: None };
    let refused = |nth| Fault::Ca { point: "ca newOrder".to_owned(), nth, what: what.clone() };
    let wish = |at| Fault::Person { at, deed: Deed::Renews, whose: 0 };
    for pause in (0..400).step_by(20) {
        let again = wish(Moment::AfterFailure(pause));
        let setting = Setting { latency: 20, ..plain() };
        holds(&setting, &[refused(0), again.clone()]);
        // The same key, try after try.
        let first = wish(Moment::Second(30));
        holds(&Setting { keeps_key: true, ..setting }, &[first, refused(1), again]);
    }
}

/// Whoever waits for an Order with the same order of the CA was not told that this one is gone, where that was found out before the
/// change was told.
#[test]
fn whoever_waits_for_an_order_hears_that_it_is_gone() {
    for step in (330..366).step_by(3) {
        let at = Moment::Step(step);
        let person = Fault::Person { at, deed: Deed::DeletesOrder, whose: 0 };
        let setting =
            Setting { latency: 0, reuse_orders: true, validation_delay: 30_000, ..alike(3) };
        holds(&setting, &[person]);
    }
}

/// After a restart an Order was worked on before those with the same order of the CA were heard of: it asked for another one, or
/// used what they were about to use (seed 707122).
#[test]
fn orders_that_share_one_know_each_other_after_a_restart() {
    let lags = |nth| {
        let (point, what) = ("watch Order".to_owned(), WatchFault::Lags(5));
        Fault::Watch { point, nth, what }
    };
    let setting = Setting { reuse_orders: true, validation_delay: 100, latency: 300, ..alike(2) };
    for step in (176..200).step_by(4) {
        let mut faults = vec![
            Fault::Kill { place: 0, life: 0, step },
            store("metadata Order", 0, StoreFault::Forbidden(32)),
        ];
        faults.extend((4..30).map(lags));
        holds(&setting, &faults);
    }
}

/// What a CA did not want to be asked before a moment was asked by what was made anew after a deletion, or because nobody could write
/// that moment down (seeds 1133312, 1167918, 1184912).
#[test]
fn what_is_asked_anew_waits_for_the_moment_that_was_named_before() {
    let retry_after = Some(RetryAfter::Seconds(180));
    let what = CaFault::Says { acted: false, status: 429, kind: "rateLimited", retry_after };
    let refused =
        |asked: &str| Fault::Ca { point: format!("ca {asked}"), nth: 0, what: what.clone() };
    let setting = Setting { reuse_orders: true, ..alike(1) };
    for nth in 0..2 {
        let raced = store("status Issuer", nth, StoreFault::Raced);
        holds(&setting, &[refused("newAccount"), raced]);
    }
    for asked in ["authorization", "challenge"] {
        for deed in [Deed::DeletesCertificate, Deed::DeletesRequest] {
            let person = Fault::Person { at: Moment::Second(20), deed, whose: 0 };
            holds(&setting, &[refused(asked), person]);
        }
        let of = Side::ApiServer;
        holds(&setting, &[refused(asked), Fault::Outage { of, at: 4, seconds: 60 }]);
    }
}

/// A Secret that had been written after a list, was read because the list lacked it, and was then missing from the same list, told once
/// more, counted as gone for ever: it was made again and again (seeds 1340372, 1349833).
#[test]
fn what_was_read_in_place_of_a_list_is_not_gone_with_the_next_one() {
    let names: [&[&str]; 4] = [
        &["b.example.com", "c.example.com"],
        &["b.example.com"],
        &["*.b.example.com", "b.example.com"],
        &["a.example.com", "b.example.com"],
    ];
    let mut setting = Setting {
        seed: 1_349_833,
        calm: 900,
        ttl: 0,
        negative_ttl: 60,
        processes: 2,
        by_record: true,
        ca_retry_after: Some(30),
        reuse_orders: true,
        validation_delay: 3_000,
        latency: 2,
        skews: vec![0, 0],
        ..alike(4)
    };
    for (wish, names) in setting.wishes.iter_mut().zip(names) {
        wish.names = names.iter().map(|name| (*name).to_owned()).collect();
    }
    let fault = |nth, what| Fault::Watch { point: "watch Secret".to_owned(), nth, what };
    for nth in 2..5 {
        let twice = fault(nth + 1, WatchFault::Repeats);
        holds(&setting, &[fault(nth, WatchFault::BeginsAnew), twice]);
    }
}

/// A CA that fails over what an order replaces was asked for the same again where it had named a moment (seed 1349557).
#[test]
fn a_fault_of_the_ca_over_what_is_replaced_is_not_asked_for_again() {
    let setting = Setting { minutes_good: Some(90), ..alike(1) };
    for retry_after in [None, Some(RetryAfter::Seconds(20))] {
        let kind = "serverInternal";
        let what = CaFault::Says { acted: false, status: 500, kind, retry_after };
        let fault = |nth| Fault::Ca { point: "ca newOrder".to_owned(), nth, what: what.clone() };
        let setting = Setting { calm: 12_000, ..setting.clone() };
        holds(&setting, &[fault(1), fault(3)]);
    }
}

/// Where the CA had forgotten an account, a Certificate that was renewed all the time had twelve orders more from the next one (seed 1376774).
#[test]
fn twelve_orders_an_hour_are_twelve_whatever_the_account() {
    let forgets =
        Fault::Ca { point: "ca certificate".to_owned(), nth: 9, what: CaFault::ForgetsAccounts };
    let fights = Fault::Person { at: Moment::Second(49), deed: Deed::FightsOverSecret, whose: 0 };
    let setting = Setting { calm: 2_700, finalize_delay: Some(20_000), ..plain() };
    holds(&setting, &[forgets, fights]);
}

/// An Order whose status nobody may write notes at each look when it looks next, and that change of its own had it ask the CA again a
/// second later, without end (seed 4454).
#[test]
fn what_may_not_be_written_is_not_asked_for_each_second() {
    let setting = Setting { calm: 1_200, validation_delay: 3_000, ..alike(1) };
    let forgets = |asked: &str| {
        let point = format!("ca {asked}");
        Fault::Ca { point, nth: 0, what: CaFault::ForgetsOrders }
    };
    for nth in 0..6 {
        for asked in ["authorization", "order"] {
            let forbidden = store("status Order", nth, StoreFault::Forbidden(900));
            holds(&setting, &[forgets(asked), forbidden]);
        }
    }
}

/// An Order that stood back before another one, and of which the CA had not told the end, said in turns that it waits and that the CA does
/// not answer: it was asked once a second, for as long as it was away (seed 1465462).
#[test]
fn an_order_that_stands_back_does_not_ask_a_ca_that_is_away_each_second() {
    let mut setting = Setting {
        seed: 1_465_462,
        calm: 100,
        listener: true,
        finalize_delay: Some(20_000),
        ttl: 0,
        processes: 3,
        by_record: true,
        ca_retry_after: Some(3),
        reuse_orders: true,
        reuse_authorizations: true,
        validation_delay: 3_000,
        propagation: 45_000,
        latency: 2,
        skews: vec![-74, 0, -570],
        ..alike(2)
    };
    for wish in &mut setting.wishes {
        wish.names = ["*.a.example.com", "a.example.com"].map(str::to_owned).to_vec();
    }
    let ca = |nth, what| Fault::Ca { point: "ca newOrder".to_owned(), nth, what };
    let faults = [
        Fault::Kill { place: 0, life: 0, step: 68 },
        store("metadata Order", 1, StoreFault::Raced),
        Fault::Outage { of: Side::Ca, at: 18, seconds: 120 },
        ca(0, CaFault::BadNonce(1)),
        ca(2, CaFault::ForgetsOrders),
    ];
    holds(&setting, &faults);
}

/// An Order went while its watch was deaf, and the look whether it is there, as the next list lacked it, got no answer: it counted as there
/// for ever, and the request that makes one of that name waited for it to go (seed 1545779).
#[test]
fn what_a_list_lacks_is_looked_for_until_the_store_answers() {
    let mut setting = Setting {
        seed: 1_545_779,
        calm: 900,
        processes: 2,
        cap: 1,
        by_record: true,
        ca_retry_after: Some(30),
        keeps_key: true,
        validation_delay: 100,
        latency: 0,
        ttl: 0,
        negative_ttl: 5,
        skews: vec![-498, 0],
        ..alike(4)
    };
    for wish in &mut setting.wishes {
        wish.names = vec!["b.example.com".to_owned()];
    }
    setting.wishes[2].names.insert(0, "*.b.example.com".to_owned());
    let what = CaFault::ForgetsAccounts;
    let faults = [
        Fault::Person { at: Moment::AfterFailure(900), deed: Deed::Renews, whose: 1 },
        store("get Order", 0, StoreFault::Lost { done: true }),
        Fault::Ca { point: "ca certificate".to_owned(), nth: 0, what },
        Fault::Deaf { kind: "Order", at: 20, seconds: 600 },
    ];
    holds(&setting, &faults);
}

/// An Order that stood back before another one, and heard from the CA that the order is ready, was finalized as soon as the other one had
/// its certificate from it (seed 1596139).
#[test]
fn an_order_that_stood_back_is_asked_for_anew_though_it_is_ready() {
    let setting = Setting {
        seed: 1_596_139,
        calm: 100,
        processes: 2,
        listener: true,
        ca_retry_after: Some(3),
        keeps_key: true,
        reuse_orders: true,
        validation_delay: 3_000,
        propagation: 45_000,
        latency: 0,
        ttl: 0,
        negative_ttl: 60,
        skews: vec![0, 0],
        ..alike(4)
    };
    holds(&setting, &[store("metadata Order", 0, StoreFault::Forbidden(57))]);
}

/// A newOrder waited for a nonce for a minute, after another request had taken the one that was read for it; the next one for the same
/// names counted from when it was granted, and went out two seconds after it (seed 1691700).
#[test]
fn the_pause_after_a_new_order_begins_with_its_answer() {
    let names: [&[&str]; 4] =
        [&["a.example.com"], &["*.a.example.com"], &["b.example.com"], &["a.example.com"]];
    let mut setting = Setting {
        seed: 1_691_700,
        cluster: false,
        calm: 100,
        cap: 3,
        by_record: true,
        reuse_orders: true,
        reuse_authorizations: true,
        validation_delay: 100,
        latency: 300,
        ttl: 0,
        ..alike(4)
    };
    for (wish, names) in setting.wishes.iter_mut().zip(names) {
        wish.names = names.iter().map(|name| (*name).to_owned()).collect();
    }
    let ca = |asked: &str, nth, what| Fault::Ca { point: format!("ca {asked}"), nth, what };
    let faults = [
        ca("newAccount", 0, CaFault::Cut { acted: true }),
        ca("newNonce", 2, CaFault::Slow(62)),
        Fault::Outage { of: Side::Ca, at: 48, seconds: 120 },
    ];
    holds(&setting, &faults);
}

/// An order was finalized, which could not be written down before the Lease was lost; another Order that had the same one, and came first by
/// its name, was finalized for its own key (seed 1691783).
#[test]
fn a_shared_order_is_read_before_it_is_finalized_by_the_next_process() {
    let mut setting = Setting {
        seed: 1_691_783,
        calm: 100,
        cap: 1,
        listener: true,
        ca_retry_after: Some(30),
        keeps_key: true,
        reuse_orders: true,
        ttl: 300,
        skews: vec![-24],
        ..alike(2)
    };
    for wish in &mut setting.wishes {
        wish.names = vec!["b.example.com".to_owned()];
    }
    let says =
        |status, kind, retry_after| CaFault::Says { acted: false, status, kind, retry_after };
    let ca = |asked: &str, what| Fault::Ca { point: format!("ca {asked}"), nth: 0, what };
    let faults = [
        store("metadata Order", 2, StoreFault::Forbidden(12)),
        ca("order", says(429, "rateLimited", Some(RetryAfter::Date(413)))),
        Fault::Person { at: Moment::Second(11), deed: Deed::DeletesOrder, whose: 0 },
        Fault::NoLease { place: 0, at: 24, seconds: 90 },
        ca("finalize", says(400, "rejectedIdentifier", None)),
    ];
    holds(&setting, &faults);
}

/// An API server's clock was minutes ahead, and once that was less than ten seconds after the moment when an Order had been made, the
/// Order was looked at twenty times a second until then, and its CA was not asked (seed 1944715).
#[test]
fn an_order_that_is_made_in_the_future_is_polled_at_its_pace() {
    let mut setting = Setting {
        seed: 1_944_715,
        calm: 100,
        by_record: true,
        ca_retry_after: Some(3),
        finalize_delay: Some(20_000),
        keeps_key: true,
        reuse_orders: true,
        validation_delay: 100,
        latency: 2,
        ttl: 300,
        negative_ttl: 60,
        skews: vec![-317],
        ..alike(2)
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    setting.wishes[0].names = names(&["*.c.example.com", "b.example.com"]);
    setting.wishes[1].names = names(&["b.example.com"]);
    let spoils = CaFault::Spoils;
    let faults = [
        Fault::Deaf { kind: "Order", at: 3, seconds: 600 },
        Fault::Ca { point: "ca newOrder".to_owned(), nth: 0, what: spoils },
        Fault::Usurped { at: 40 },
    ];
    holds(&setting, &faults);
}
