//! What one process knows of a newOrder beyond the ledger that is kept in the store.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

use crate::acme::error::AcmeError;
use crate::model::Problem;
use crate::model::order_ledger::Entry;

/// An entry of a ledger that this process has seen or made.
#[derive(Clone, Debug)]
pub(super) struct BudgetEntry {
    pub(super) holder: String,
    pub(super) entry: Entry,
    pub(super) is_ours: bool,
    /// What was heard of it that is no order.
    pub(super) heard: Option<NoOrder>,
    /// How long ago it was asked when it came to be known.
    pub(super) ago: SignedDuration,
    /// When that was; none while it is being written down or is under way.
    pub(super) since: Option<Instant>,
}

/// What a process has heard of a newOrder that brought no order.
#[derive(Clone, Debug)]
pub(super) enum NoOrder {
    /// Why its answer was not read.
    Fault(AcmeError),
    /// The CA's refusal, and until when that holds (`Retry-After`, RFC 8555 §6.6).
    Limit(Box<Problem>, Instant),
}

impl BudgetEntry {
    /// Whether it is the one with that number, of the Order with that UID.
    pub(super) fn is_entry(&self, (number, uid): &(u64, String)) -> bool {
        (self.entry.number, &self.entry.uid) == (*number, uid)
    }

    /// Whether it was asked of an account, for a set of names.
    pub(super) fn is_for(&self, account: &str, names: &str) -> bool {
        (&*self.entry.account, &*self.entry.names) == (account, names)
    }

    /// How long ago it was asked; one that is under way counts as asked now.
    pub(super) fn ago(&self) -> SignedDuration {
        let elapsed: Duration = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        SignedDuration::try_from(elapsed)
            .ok()
            .and_then(|elapsed| self.ago.checked_add(elapsed))
            .unwrap_or(SignedDuration::MAX)
    }
}
