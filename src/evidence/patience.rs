//! Time limits of a diagnosis.

use std::time::Duration;

/// Longest wait for one request to the cluster, and for all requests to everything outside of it together.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Message that something outside has not answered within the limit.
pub(super) fn no_answer() -> String {
    format!("no answer within {} s", PROBE_TIMEOUT.as_secs())
}
