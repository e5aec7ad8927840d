//! Where everything stands: the store, the CA, the answers, two processes, and what may still go wrong.

use jiff::{SignedDuration, Timestamp};
use kubectl_acme::model::order_ledger::RequestOutcome;

use super::shelf::Id;

/// Names of the order.
pub(crate) const NAMES: [&str; 2] = ["a.example.com", "b.example.com"];
/// Most orders that a CA makes here.
pub(crate) const ORDERS: usize = 4;
/// A place for each Challenge that there may be: one for each name of each order.
pub(crate) const SLOTS: usize = NAMES.len() * ORDERS;
/// Most newOrders that are counted.
pub(crate) const ASKS: usize = 4;

/// The moments at which something may happen, in milliseconds. What goes wrong does so before [`super::setting::Setting::moments`] of them are over.
const MOMENTS: [i64; 8] = [0, 1_500, 12_000, 50_000, 130_000, 600_000, 4_000_000, 7_000_000];
/// The last of them.
pub(crate) const LAST: u8 = 7;

pub(crate) fn moment(number: u8) -> Timestamp {
    let beginning = Timestamp::from_second(1_800_000_000).unwrap();
    beginning + SignedDuration::from_millis(MOMENTS[usize::from(number)])
}

/// What a process sees when it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Objects {
    pub(crate) order: Id,
    pub(crate) challenges: [Option<Id>; SLOTS],
    pub(crate) ledger: [Option<Ask>; ASKS],
}

/// An entry of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub(crate) at: u8,
    pub(crate) became: Fate,
}

/// What became of a newOrder, as a number that can be hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fate(u8);

const FATES: [RequestOutcome; 8] = [
    RequestOutcome::Asked,
    RequestOutcome::NotMade,
    RequestOutcome::Made,
    RequestOutcome::Refused,
    RequestOutcome::Failed,
    RequestOutcome::LostToAnother,
    RequestOutcome::Dropped,
    RequestOutcome::Issued,
];

impl Fate {
    pub(crate) fn of(became: RequestOutcome) -> Self {
        Self(FATES.iter().position(|fate| *fate == became).unwrap().try_into().unwrap())
    }

    pub(crate) fn became(self) -> RequestOutcome {
        FATES[usize::from(self.0)]
    }
}

/// An order at the CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CaOrder {
    pub(crate) state: CaState,
    pub(crate) authorizations: [Proof; 2],
    /// How often a signing request was taken.
    pub(crate) finalized: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CaState {
    Pending,
    Ready,
    Processing,
    Valid,
    Invalid,
    /// The CA knows nothing of it any more.
    Dropped,
}

/// How far an authorization is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Proof {
    Pending,
    /// The CA looks for the answer.
    Looking,
    Valid,
    Invalid,
}

/// A process: what it knows beyond the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    /// Answers that it has put up.
    pub(crate) stands: u8,
    /// The order that its Order got and that is not written down yet.
    pub(crate) unwritten: Option<u8>,
    pub(crate) heard: Option<Heard>,
    /// When each authorization was read last.
    pub(crate) read: [Option<Poll>; SLOTS],
    pub(crate) known: [Option<Known>; ASKS],
    pub(crate) flight: Option<Flight>,
}

/// The last reading of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Heard {
    pub(crate) poll: Poll,
    pub(crate) after_failure: bool,
}

/// When something was read, and whether the CA has named a moment for the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Poll {
    pub(crate) at: u8,
    pub(crate) is_named: bool,
}

/// An entry of the ledger as a process knows it; its number is its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) ask: Ask,
    /// From when on its age is counted.
    pub(crate) since: u8,
    pub(crate) is_ours: bool,
}

/// What a process has done and not written down yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    pub(crate) job: Job,
    pub(crate) writes: [Option<Write>; 6],
}

/// One object in the eyes of one controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    Order,
    Challenge(u8),
    Scheduler,
}

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    /// What the process knows of its newOrders.
    Ledger,
    /// The Order, if it is still the one before.
    Order { base: Id, new: Id },
    /// Its URL is in the store now.
    UrlIsWritten,
    /// A Challenge, if it is still the one before; or its end.
    Challenge { slot: u8, base: Id, new: Option<Id> },
    /// A Challenge goes, now or once its finalizer is off.
    Delete { slot: u8 },
    /// A Challenge, unless there is one.
    Create { slot: u8, new: Id },
}

/// How much may still go wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) kills: u8,
    pub(crate) stale: u8,
    /// Bad answers, of the CA, of those who look, and of those who put answers up.
    pub(crate) answers: u8,
    /// Steps whose writes come late.
    pub(crate) late: u8,
    /// Writes of somebody else to the Order.
    pub(crate) touches: u8,
}

/// Everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) now: u8,
    pub(crate) store: Objects,
    pub(crate) ca: [Option<CaOrder>; ORDERS],
    /// Answers that are up, and those that were seen where the CA looks: a bit for each slot.
    pub(crate) up: u8,
    pub(crate) seen: u8,
    pub(crate) processes: [Process; 2],
    /// Who holds the Lease.
    pub(crate) holder: u8,
    /// Whose next look is at what was there before, and what that is.
    pub(crate) stale: Option<(u8, Objects)>,
    pub(crate) left: Left,
    /// What excuses another newOrder.
    pub(crate) excused: u8,
    /// When the CA was asked for an order last, and how many went out at once then.
    pub(crate) asked: Option<(u8, u8)>,
    /// The CA has asked for patience: which process, about what, and when.
    pub(crate) patience: Option<(u8, Job, u8)>,
    /// Whether something happened that no client can mend.
    pub(crate) may_fail: bool,
}

impl State {
    pub(crate) fn process(&mut self, number: u8) -> &mut Process {
        &mut self.processes[usize::from(number)]
    }
}

pub(crate) fn bit(slot: u8) -> u8 {
    1 << slot
}
