//! Objects that a command follows, and the end of the work on each.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::manual::ManualRecord;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failed::FailedOrder;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::{Key, Kind, ObjectName};
use crate::objects::chain;
use crate::store::Store;
use crate::store::error::StoreError;

/// End of the work on one object.
#[derive(Debug)]
pub enum End {
    /// The Secret holds the requested certificate, or the account exists; since that moment.
    Done(Timestamp),
    /// Only a change helps, or time is up.
    Failed(Failure),
    /// A person has to make these records first.
    ByHand(Failure, Vec<ManualRecord>),
}

impl End {
    /// Returns whether the work ended well.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// Returns the word for an object of that kind with this end.
    pub fn word(&self, kind: Kind, was_due: bool) -> &'static str {
        match self {
            Self::Done(_) if was_due => "issued",
            Self::Done(_) if kind.is_issued() => "up to date",
            Self::Done(_) => "ready",
            Self::Failed(_) if kind.is_issued() => "not issued",
            Self::Failed(_) => "not ready",
            Self::ByHand(..) => "waits for a person",
        }
    }
}

/// End of the work on all objects.
#[derive(Debug, Default)]
pub struct WorkResult {
    /// Objects that have ended, each with its end.
    pub ends: BTreeMap<Key, End>,
    /// Why the other objects have not ended.
    pub stopped: Option<Failure>,
    /// Failure to clean up afterwards, printed already.
    pub untidy: Option<FailureKind>,
}

impl WorkResult {
    /// Builds the end of a command that stopped before any work.
    pub fn stopped(failure: Failure) -> Self {
        Self { stopped: Some(failure), ..Self::default() }
    }
}

/// An order as an earlier run has left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// UID of the Order.
    pub uid: String,
    /// When the CA was last given an answer or a signing request for the order, as far as is known.
    pub last_deed: Option<Timestamp>,
}

impl Inherited {
    /// Returns whether `tried` is this order and nothing was done for the order since: its failure is the earlier run's.
    pub fn is_left_as_it_was(&self, tried: Option<&FailedOrder>) -> bool {
        tried.is_some_and(|tried| tried.uid == self.uid && tried.last_deed <= self.last_deed)
    }
}

/// An object that is followed.
#[derive(Clone, Debug, Default)]
pub struct Tracked {
    /// Revision of a due Certificate, which has to change; `None` for an Issuer, and for a Certificate that only has to be
    /// corrected.
    pub since: Option<i64>,
    /// Order that an earlier run began; if the order fails before this run has done anything for it, a new order is made.
    pub inherited: Option<Inherited>,
}

impl Tracked {
    /// Builds the entry of an object to issue that has this revision, without an inherited order.
    pub fn from_revision(revision: i64) -> Self {
        Self { since: Some(revision), inherited: None }
    }

    /// Returns whether the object is a Certificate that has to be issued.
    pub fn is_due(&self) -> bool {
        self.since.is_some()
    }

    /// Builds the entry of a Certificate that is due and has this revision, with an order that an earlier run began.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn due(
        store: &Arc<dyn Store>,
        name: &ObjectName,
        revision: i64,
    ) -> Result<Self, StoreError> {
        let chain = chain::read(store, name).await?;
        let inherited = chain.as_ref().and_then(|chain| {
            let order = chain.order().filter(|order| !order.status.url.is_empty())?;
            let (uid, last_deed) = (order.metadata.uid.clone(), chain.last_deed(order));
            Some(Inherited { uid, last_deed })
        });
        Ok(Self { since: Some(revision), inherited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_for_which_this_run_has_done_something_is_not_tried_anew() {
        let at = |second| Timestamp::from_second(second).ok();
        let inherited = |last_deed| Inherited { uid: "o".to_owned(), last_deed };
        let tried = |uid: &str, last_deed| {
            Some(FailedOrder { uid: uid.to_owned(), name: "web".to_owned(), last_deed })
        };
        for (before, after, is_left) in [
            // It was refused when the CA was last asked by the run before, or nobody knows of anything.
            (at(5), tried("o", at(5)), true),
            (None, tried("o", None), true),
            // This run has given the answer, for the first time or once more.
            (None, tried("o", at(9)), false),
            (at(5), tried("o", at(9)), false),
            (at(5), tried("another", at(5)), false),
            (at(5), None, false),
        ] {
            assert_eq!(inherited(before).is_left_as_it_was(after.as_ref()), is_left, "{after:?}");
        }
    }
}
