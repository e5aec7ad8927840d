//! What a seed stands for: a setting, and a list of faults, each of which can be left out when a run that failed is made shorter.
//!
//! A fault that strikes a request names the point and how often that was passed before, so that leaving one out moves no other.

use super::rng::Rng;

/// One Certificate.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) name: String,
    pub(crate) names: Vec<String>,
}

/// What stays the same during a run.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn for itself")]
pub(crate) struct Setting {
    pub(crate) seed: u64,
    /// Faults end after so many seconds; what is wrong after that is ours.
    pub(crate) calm: u64,
    pub(crate) wishes: Vec<Wish>,
    /// A cluster with a Lease and a mirror, or a store of our own with one process.
    pub(crate) cluster: bool,
    pub(crate) processes: usize,
    pub(crate) cap: usize,
    /// DNS-01, or HTTP-01.
    pub(crate) by_record: bool,
    /// HTTP-01 answers live in the process that serves them.
    pub(crate) listener: bool,
    pub(crate) ca_retry_after: Option<u32>,
    pub(crate) finalize_delay: Option<u64>,
    pub(crate) reuse_orders: bool,
    pub(crate) reuse_authorizations: bool,
    pub(crate) refuse_nonces: u8,
    /// Milliseconds.
    pub(crate) validation_delay: u64,
    pub(crate) propagation: u64,
    pub(crate) latency: u64,
    /// Seconds.
    pub(crate) ttl: u64,
    pub(crate) negative_ttl: u64,
    /// Seconds by which the clocks of processes differ from the CA's.
    pub(crate) skews: Vec<i64>,
}

/// What a CA, or the way to it, does once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaFault {
    /// No answer for so many seconds; whether the CA has acted.
    Silent { acted: bool, seconds: u64 },
    /// The connection breaks; whether the CA has acted.
    Cut { acted: bool },
    /// A status, a word for the type, a Retry-After; whether the CA has acted.
    Says { acted: bool, status: u16, kind: &'static str, retry_after: Option<RetryAfter> },
    /// An answer that is no JSON, after the deed.
    Page,
    /// A nonce that it does not take, so many times.
    BadNonce(u32),
    /// Right after its answer, all authorizations of all orders of the account are taken back.
    Spoils,
    /// Right after its answer, it forgets all orders.
    ForgetsOrders,
    /// Right after its answer, it forgets all accounts.
    ForgetsAccounts,
    /// The answer takes so many seconds.
    Slow(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAfter {
    Seconds(u64),
    Date(u64),
}

/// What a store does once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreFault {
    /// It does not answer; whether it was done.
    Lost { done: bool },
    /// Somebody else was quicker: the object changes by a label first.
    Raced,
    /// No permission, until somebody gives it; so many seconds.
    Forbidden(u64),
    /// A quota is full.
    Quota,
    /// The answer takes so many seconds.
    Slow(u64),
}

/// What a watch does once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchFault {
    Lags(u64),
    Repeats,
    BeginsAnew,
}

/// What a solver does once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SolverFault {
    Refuses { done: bool },
    RefusesUntil(u64),
    NeedsPerson,
    Slow(u64),
}

/// What somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    DeletesSecret,
    ChangesNames,
    DeletesCertificate,
    DeletesRequest,
    DeletesOrder,
    DeletesChallenge,
    Renews,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Ca {
        point: String,
        nth: u32,
        what: CaFault,
    },
    Store {
        point: String,
        nth: u32,
        what: StoreFault,
    },
    Watch {
        point: String,
        nth: u32,
        what: WatchFault,
    },
    Solver {
        point: String,
        nth: u32,
        what: SolverFault,
    },
    /// The process in that place is killed at that step of its life, which is the so-manieth there.
    Kill {
        place: usize,
        life: u32,
        step: u64,
    },
    Clock {
        place: usize,
        at: u64,
        by: i64,
    },
    /// The API server's Lease does not answer that process.
    NoLease {
        place: usize,
        at: u64,
        seconds: u64,
    },
    /// Somebody writes another name into the Lease.
    Usurped {
        at: u64,
    },
    Person {
        at: u64,
        deed: Deed,
        whose: usize,
    },
}

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
    let faults = (0..count).map(|_| fault(&setting, &mut lots)).collect();
    (setting, faults)
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
    Setting {
        seed,
        calm: lots.pick(&[100, 100, 300, 900]),
        wishes,
        cluster,
        processes,
        cap: lots.pick(&[1, 2, 3, 60]),
        by_record,
        listener: lots.chance(40),
        ca_retry_after: lots.pick(&[None, None, Some(3), Some(30)]),
        finalize_delay: lots.pick(&[None, None, Some(200), Some(20_000)]),
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
    match lots.below(100) {
        0..=34 => ca_fault(lots),
        35..=54 => store_fault(lots),
        55..=62 => {
            let kinds =
                ["Certificate", "CertificateRequest", "Order", "Challenge", "Secret", "Issuer"];
            let what = match lots.below(3) {
                0 => WatchFault::Lags(lots.between(1, 60)),
                1 => WatchFault::Repeats,
                _ => WatchFault::BeginsAnew,
            };
            let point = format!("watch {}", lots.pick(&kinds));
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
            let at = if lots.chance(60) { lots.below(60) } else { lots.below(setting.calm) };
            Fault::Person { at, deed: lots.pick(&deeds), whose }
        }
    }
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
