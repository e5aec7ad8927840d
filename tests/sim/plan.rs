//! What a run is made of: a setting, and a list of faults, each of which can be left out when a run that failed is made shorter.
//!
//! A fault that strikes a request names the point and how often that was passed before, so that leaving one out moves no other.

/// How often each certificate is renewed in a run in which it has to be.
pub(crate) const RENEWALS: i64 = 2;

/// How long somebody goes on deleting a Secret, in seconds.
pub(crate) const FIGHT: u64 = 2_400;

/// One Certificate.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) name: String,
    pub(crate) names: Vec<String>,
}

impl Wish {
    /// Its names once somebody has changed them: one more.
    pub(crate) fn changed_names(&self) -> Vec<String> {
        let more = "more.example.com".to_owned();
        self.names.iter().cloned().chain([more]).collect()
    }
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
    /// Certificates are good for so many minutes from their issuance on, and have to be renewed [`RENEWALS`] times; else for 90 days.
    /// The CA does not say when to renew those that are good for less than an hour.
    pub(crate) minutes_good: Option<u64>,
    /// `rotationPolicy: Never`, for all.
    pub(crate) keeps_key: bool,
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

/// Who is out of reach for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Ca,
    ApiServer,
    /// Whoever puts answers up.
    Provider,
}

/// What somebody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    DeletesSecret,
    /// Deletes it again each time that it is there, for [`FIGHT`] seconds.
    FightsOverSecret,
    ChangesNames,
    DeletesCertificate,
    DeletesRequest,
    DeletesOrder,
    DeletesChallenge,
    Renews,
}

/// When somebody does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Second(u64),
    /// That step of all processes: right before something is done outside, or is heard of.
    Step(u64),
    /// So many milliseconds after the first failure of an order of that Certificate.
    AfterFailure(u64),
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
    /// Nobody there answers, from one second on for so many.
    Outage {
        of: Side,
        at: u64,
        seconds: u64,
    },
    /// Watches of that kind tell nothing for so long, and then begin anew.
    Deaf {
        kind: &'static str,
        at: u64,
        seconds: u64,
    },
    Person {
        at: Moment,
        deed: Deed,
        whose: usize,
    },
}
