//! The keys that sign requests to AWS.

use jiff::SignedDuration;
use jiff::Timestamp;

use crate::solvers::dns01::credential::Credential;

/// Keys that sign requests.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: Credential,
    /// Session token of temporary keys.
    pub(crate) session: Option<Credential>,
    /// End of temporary keys.
    pub(crate) expires: Option<Timestamp>,
}

impl Keys {
    pub(crate) fn are_good_at(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|end| end.duration_since(now) > MARGIN)
    }
}

/// Time before the end at which temporary keys are given up.
pub(crate) const MARGIN: SignedDuration = SignedDuration::from_mins(5);
