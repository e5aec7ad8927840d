//! Facts of one process about a newOrder beyond the ledger in the store.

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
    /// Reply that brought no order, if any.
    pub(super) heard: Option<NoOrder>,
    /// Age of the request when this process first knew of it.
    pub(super) ago: SignedDuration,
    /// Moment of that first knowledge; `None` while the request is being stored or is under way.
    pub(super) since: Option<Instant>,
}

/// Reason that a newOrder brought no order.
#[derive(Clone, Debug)]
pub(super) enum NoOrder {
    /// Error that kept the reply from being read.
    Fault(AcmeError),
    /// The CA's refusal, and until when that holds (`Retry-After`, RFC 8555 §6.6).
    Limit(Box<Problem>, Instant),
}

impl BudgetEntry {
    /// Returns whether this is the entry with that number, of the Order with that UID.
    pub(super) fn is_entry(&self, (number, uid): &(u64, String)) -> bool {
        (self.entry.number, &self.entry.uid) == (*number, uid)
    }

    /// Returns whether the request was for this account and this set of names.
    pub(super) fn is_for(&self, account: &str, names: &str) -> bool {
        (&*self.entry.account, &*self.entry.names) == (account, names)
    }

    /// Returns the age of the request; a request under way counts as made now.
    pub(super) fn ago(&self) -> SignedDuration {
        let elapsed: Duration = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        SignedDuration::try_from(elapsed)
            .ok()
            .and_then(|elapsed| self.ago.checked_add(elapsed))
            .unwrap_or(SignedDuration::MAX)
    }
}
