//! The keys that sign requests to AWS.

use jiff::SignedDuration;
use jiff::Timestamp;

use crate::solvers::dns01::credential::Credential;

/// Keys that requests are signed with.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: Credential,
    /// For temporary keys.
    pub(crate) session: Option<Credential>,
    /// When temporary keys end.
    pub(crate) expires: Option<Timestamp>,
}

impl Keys {
    pub(crate) fn are_good_at(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|end| end.duration_since(now) > MARGIN)
    }
}

/// Temporary keys are given up this long before they end.
pub(crate) const MARGIN: SignedDuration = SignedDuration::from_mins(5);
