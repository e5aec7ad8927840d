//! What is followed, and how the work on it ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::manual::ManualRecord;
use crate::app::chain;
use crate::app::failure::Failure;
use crate::diagnosis::chain::Chain;
use crate::diagnosis::failure_kind::FailureKind;
use crate::model::{Key, ObjectName};
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

/// An object that is followed.
#[derive(Clone, Debug, Default)]
pub struct Tracked {
    /// The revision from which it has to move on, for a Certificate that is due; none for an Issuer, and for a Certificate that only
    /// has to be put right.
    pub since: Option<i64>,
    /// UID of an order that an earlier run had begun; should it fail, a fresh one is made.
    pub inherited: Option<String>,
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
        let begun = chain.as_ref().and_then(Chain::order).filter(|o| !o.status.url.is_empty());
        let inherited = begun.map(|order| order.metadata.uid.clone());
        Ok(Self { since: Some(revision), inherited })
    }
}
