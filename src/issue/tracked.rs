//! What is followed, and how the work on it ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::manual::ManualRecord;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failed::Tried;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::{Key, Kind, ObjectName};
use crate::objects::chain;
use crate::store::Store;
use crate::store::error::StoreError;

/// How the work on one object ended.
#[derive(Debug)]
pub enum End {
    /// The Secret holds what was asked for, or the account is there; since that moment.
    Done(Timestamp),
    /// Only a change helps, or time is up.
    Failed(Failure),
    /// A person has to make these records first.
    ByHand(Failure, Vec<ManualRecord>),
}

impl End {
    /// Tells whether it ended well.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// The word for an object of that kind that has ended so.
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

/// How the work on all of them ended.
#[derive(Debug, Default)]
pub struct Worked {
    /// What has ended, and how.
    pub ends: BTreeMap<Key, End>,
    /// Why the rest has not.
    pub stopped: Option<Failure>,
    /// What could not be tidied up afterwards, told already.
    pub untidy: Option<FailureKind>,
}

impl Worked {
    /// Nothing was worked on.
    pub fn stopped(failure: Failure) -> Self {
        Self { stopped: Some(failure), ..Self::default() }
    }
}

/// An order as an earlier run has left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// UID.
    pub uid: String,
    /// When the CA was last given an answer or a signing request of it, as far as is known.
    pub last_deed: Option<Timestamp>,
}

impl Inherited {
    /// Tells whether that order is what was tried, and nothing was done for it since: its failure is that of the earlier run.
    pub fn is_left_as_it_was(&self, tried: Option<&Tried>) -> bool {
        tried.is_some_and(|tried| tried.uid == self.uid && tried.last_deed <= self.last_deed)
    }
}

/// An object that is followed.
#[derive(Clone, Debug, Default)]
pub struct Tracked {
    /// The revision from which it has to move on, for a Certificate that is due; none for an Issuer, and for a Certificate that only
    /// has to be put right.
    pub since: Option<i64>,
    /// An order that an earlier run had begun; should it fail before this one has done anything for it, a fresh one is made.
    pub inherited: Option<Inherited>,
}

impl Tracked {
    /// What has to be issued and has this revision; nobody had begun with it.
    pub fn from_revision(revision: i64) -> Self {
        Self { since: Some(revision), inherited: None }
    }

    /// Tells whether it is a Certificate that has to be issued.
    pub fn is_due(&self) -> bool {
        self.since.is_some()
    }

    /// A Certificate that is due and has this revision.
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
            Some(Tried { uid: uid.to_owned(), name: "web".to_owned(), last_deed })
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
