//! What a CA does not want to be asked for before a moment: whoever reads it meanwhile hears that refusal again, and no request goes
//! out.
//!
//! Several objects read one resource, and each keeps only what it was told itself: an Order and its Challenge read the same
//! authorization, Orders that share an order read that.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::error::{AcmeError, Retry};

/// By URL: the refusal, and the moment that it names.
#[derive(Default)]
pub(super) struct RefusedReads(Mutex<HashMap<String, (Timestamp, AcmeError)>>);

impl RefusedReads {
    /// Keeps a refusal that names a moment, and no longer than until then.
    pub(super) fn note(&self, url: &str, error: &AcmeError, now: Timestamp) {
        let Retry::At(until) = error.retry() else { return };
        let mut all = self.0.lock();
        all.retain(|_, (until, _)| now < *until);
        all.insert(url.to_owned(), (until, error.clone()));
    }

    /// The refusal that still holds for a URL.
    pub(super) fn of(&self, url: &str, now: Timestamp) -> Option<AcmeError> {
        let all = self.0.lock();
        let (_, error) = all.get(url).filter(|(until, _)| now < *until)?;
        Some(error.clone())
    }
}
