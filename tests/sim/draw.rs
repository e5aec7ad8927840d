//! What a seed stands for: lots decide on the setting and on each fault.

use super::plan::{
    CaFault, Deed, FIGHT, Fault, Moment, RetryAfter, Setting, Side, SolverFault, StoreFault,
    WatchFault, Wish,
};
use super::rng::Rng;

/// What is watched.
const WATCHED: [&str; 6] =
    ["Certificate", "CertificateRequest", "Order", "Challenge", "Secret", "Issuer"];

/// What a seed stands for.
pub(crate) fn of(seed: u64) -> (Setting, Vec<Fault>) {
    let mut lots = Rng::of(seed, "plan");
    let setting = setting(seed, &mut lots);
    let count = match lots.below(10) {
        0 => 0,
        1..=4 => lots.between(1, 3),
        5..=8 => lots.between(3, 8),
        _ => lots.between(8, 20),
    };
    let mut faults: Vec<Fault> = (0..count).map(|_| fault(&setting, &mut lots)).collect();
    if setting.minutes_good.is_some() {
        faults.iter_mut().step_by(2).for_each(|fault| postpone(fault, &setting));
    }
    if is_fought_over(seed) {
        let at = Moment::Second(lots.below(60));
        faults.push(Fault::Person { at, deed: Deed::FightsOverSecret, whose: 0 });
    }
    if faults.iter().any(is_after_failure) {
        // There has to be a failure.
        faults.push(refused_for_good(&mut lots));
    }
    (setting, faults)
}

/// By no lot of its own: all others stay what they were.
fn is_fought_over(seed: u64) -> bool {
    seed % 64 == 6
}

fn is_after_failure(fault: &Fault) -> bool {
    matches!(fault, Fault::Person { at: Moment::AfterFailure(_), .. })
}

fn setting(seed: u64, lots: &mut Rng) -> Setting {
    let by_record = lots.chance(50);
    let hosts = ["a", "b", "c"];
    let mut wishes: Vec<Wish> = Vec::new();
    for number in 0..lots.pick(&[1, 1, 2, 2, 3, 4]) {
        let mut names: Vec<String> = Vec::new();
        for _ in 0..lots.pick(&[1, 1, 2, 3]) {
            let host = lots.pick(&hosts);
            let star = if by_record && lots.chance(25) { "*." } else { "" };
            names.push(format!("{star}{host}.example.com"));
        }
        names.sort();
        names.dedup();
        let same = wishes.first().map(|first| first.names.clone());
        let names = same.filter(|_| lots.chance(20)).unwrap_or(names);
        wishes.push(Wish { name: format!("cert-{number}"), names });
    }
    let cluster = lots.chance(60);
    let processes = if cluster { lots.pick(&[1, 1, 2, 3]) } else { 1 };
    let skew =
        |lots: &mut Rng| if lots.chance(15) { lots.below(1200).cast_signed() - 600 } else { 0 };
    let calm = lots.pick(&[100, 100, 300, 900]);
    // By no lot of its own: all others stay what they were.
    let minutes_good = (seed % 16 == 5).then_some(if seed % 32 == 5 { 40 } else { 120 });
    Setting {
        seed,
        // Faults strike renewals, too.
        calm: calm + minutes_good.unwrap_or(0) * 60 + if is_fought_over(seed) { FIGHT } else { 0 },
        minutes_good,
        wishes,
        cluster,
        processes,
        cap: lots.pick(&[1, 2, 3, 60]),
        by_record,
        listener: lots.chance(40),
        ca_retry_after: lots.pick(&[None, None, Some(3), Some(30)]),
        finalize_delay: lots.pick(&[None, None, Some(200), Some(20_000)]),
        // By no lot of its own: all others stay what they were.
        keeps_key: seed % 4 == 3,
        reuse_orders: lots.chance(70),
        reuse_authorizations: lots.chance(60),
        refuse_nonces: lots.pick(&[0, 0, 0, 20]),
        validation_delay: lots.pick(&[0, 100, 3_000, 40_000]),
        propagation: lots.pick(&[0, 0, 2_000, 45_000]),
        latency: lots.pick(&[0, 2, 20, 300]),
        ttl: lots.pick(&[0, 60, 300]),
        negative_ttl: lots.pick(&[0, 5, 60]),
        skews: (0..processes).map(|_| skew(lots)).collect(),
    }
}

fn fault(setting: &Setting, lots: &mut Rng) -> Fault {
    let place = usize::try_from(lots.below(setting.processes as u64)).unwrap();
    match lots.below(110) {
        0..=34 => ca_fault(lots),
        35..=54 => store_fault(lots),
        55..=62 => {
            let what = match lots.below(3) {
                0 => WatchFault::Lags(lots.between(1, 60)),
                1 => WatchFault::Repeats,
                _ => WatchFault::BeginsAnew,
            };
            let point = format!("watch {}", lots.pick(&WATCHED));
            Fault::Watch { point, nth: nth(lots), what }
        }
        63..=72 => {
            let what = match lots.below(5) {
                0 => SolverFault::Refuses { done: false },
                1 => SolverFault::Refuses { done: true },
                2 => SolverFault::RefusesUntil(lots.between(5, 600)),
                3 => SolverFault::NeedsPerson,
                _ => SolverFault::Slow(lots.between(1, 100)),
            };
            let point = lots.pick(&["present", "clean_up"]).to_owned();
            Fault::Solver { point, nth: u32::try_from(lots.below(3)).unwrap(), what }
        }
        73..=86 => {
            Fault::Kill { place, life: lots.pick(&[0, 0, 0, 1, 2]), step: lots.between(1, 260) }
        }
        87..=88 => {
            let by = lots.pick(&[-7_200, -600, -30, 30, 600, 7_200]);
            Fault::Clock { place, at: lots.below(setting.calm / 2), by }
        }
        89..=91 => Fault::NoLease {
            place,
            at: lots.below(setting.calm / 2),
            seconds: lots.pick(&[3, 12, 30, 90]),
        },
        92 => Fault::Usurped { at: lots.below(setting.calm / 2) },
        93..=96 => Fault::Outage {
            of: lots.pick(&[Side::Ca, Side::Ca, Side::ApiServer, Side::Provider]),
            at: lots.below(setting.calm / 2),
            seconds: lots.pick(&[3, 30, 120, 900]),
        },
        97..=99 => Fault::Deaf {
            kind: lots.pick(&WATCHED),
            at: lots.below(60),
            seconds: lots.pick(&[5, 30, 600]),
        },
        _ => {
            let deeds = [
                Deed::DeletesSecret,
                Deed::ChangesNames,
                Deed::DeletesCertificate,
                Deed::DeletesRequest,
                Deed::DeletesOrder,
                Deed::DeletesChallenge,
                Deed::Renews,
            ];
            let whose = usize::try_from(lots.below(setting.wishes.len() as u64)).unwrap();
            let deed = lots.pick(&deeds);
            let at = match lots.below(10) {
                0..=1 => Moment::Second(lots.below(60)),
                2..=3 => Moment::Second(lots.below(setting.calm)),
                4..=7 => Moment::Step(lots.between(1, 400)),
                _ => Moment::AfterFailure(lots.pick(&[0, 20, 100, 300, 900, 2_000])),
            };
            Fault::Person { at, deed, whose }
        }
    }
}

/// Has a fault strike about when certificates are renewed.
fn postpone(fault: &mut Fault, setting: &Setting) {
    let steps = 90 * setting.wishes.len() as u64;
    let later = setting.calm / 2;
    match fault {
        Fault::Ca { nth, .. } | Fault::Store { nth, .. } | Fault::Watch { nth, .. } => *nth += 4,
        Fault::Solver { nth, .. } => *nth += 1,
        Fault::Kill { step, .. } | Fault::Person { at: Moment::Step(step), .. } => *step += steps,
        Fault::Clock { at, .. }
        | Fault::NoLease { at, .. }
        | Fault::Usurped { at }
        | Fault::Outage { at, .. }
        | Fault::Deaf { at, .. }
        | Fault::Person { at: Moment::Second(at), .. } => *at += later,
        Fault::Person { at: Moment::AfterFailure(_), .. } => {}
    }
}

/// The CA's last word on a first order.
fn refused_for_good(lots: &mut Rng) -> Fault {
    let kind = "rejectedIdentifier";
    let what = CaFault::Says { acted: false, status: 400, kind, retry_after: None };
    Fault::Ca { point: format!("ca {}", lots.pick(&["newOrder", "finalize"])), nth: 0, what }
}

/// Mostly one of the first times.
fn nth(lots: &mut Rng) -> u32 {
    u32::try_from(match lots.below(4) {
        0 => 0,
        1 => lots.below(3),
        _ => lots.below(10),
    })
    .unwrap()
}

fn ca_fault(lots: &mut Rng) -> Fault {
    let all = [
        "directory",
        "newNonce",
        "newAccount",
        "newOrder",
        "newOrder",
        "order",
        "authorization",
        "challenge",
        "challenge",
        "finalize",
        "finalize",
        "certificate",
    ];
    let retry_after = |lots: &mut Rng| match lots.below(5) {
        0 => None,
        1 => Some(RetryAfter::Seconds(0)),
        2 => Some(RetryAfter::Date(lots.between(5, 900))),
        _ => Some(RetryAfter::Seconds(lots.between(1, 900))),
    };
    let acted = lots.chance(50);
    let what = match lots.below(12) {
        0 => CaFault::Silent { acted, seconds: lots.pick(&[5, 40, 90]) },
        1 | 2 => CaFault::Cut { acted },
        3 => {
            let status = lots.pick(&[500, 502, 503, 504]);
            CaFault::Says { acted, status, kind: "serverInternal", retry_after: retry_after(lots) }
        }
        4 | 5 => CaFault::Says {
            acted: false,
            status: 429,
            kind: "rateLimited",
            retry_after: retry_after(lots),
        },
        6 => {
            let (status, kind) = lots.pick(&[
                (400, "malformed"),
                (403, "unauthorized"),
                (403, "orderNotReady"),
                (400, "rejectedIdentifier"),
                (404, "malformed"),
            ]);
            CaFault::Says { acted: false, status, kind, retry_after: None }
        }
        7 => CaFault::Page,
        8 => CaFault::BadNonce(lots.pick(&[1, 2, 30])),
        9 => CaFault::Spoils,
        10 => match lots.below(3) {
            0 => CaFault::ForgetsAccounts,
            _ => CaFault::ForgetsOrders,
        },
        _ => CaFault::Slow(lots.between(1, 80)),
    };
    Fault::Ca { point: format!("ca {}", lots.pick(&all)), nth: nth(lots), what }
}

fn store_fault(lots: &mut Rng) -> Fault {
    let deeds = [
        "create", "metadata", "metadata", "status", "status", "whole", "apply", "delete", "get",
        "list",
    ];
    let kinds = [
        "Certificate",
        "CertificateRequest",
        "Order",
        "Order",
        "Challenge",
        "Challenge",
        "Secret",
        "Issuer",
        "Event",
    ];
    let what = match lots.below(8) {
        0 => StoreFault::Lost { done: false },
        1 | 2 => StoreFault::Lost { done: true },
        3 | 4 => StoreFault::Raced,
        5 => StoreFault::Forbidden(lots.between(1, 120)),
        6 => StoreFault::Quota,
        _ => StoreFault::Slow(lots.between(1, 20)),
    };
    let point = format!("store {} {}", lots.pick(&deeds), lots.pick(&kinds));
    Fault::Store { point, nth: nth(lots), what }
}
