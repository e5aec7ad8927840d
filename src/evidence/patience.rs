//! How long a look waits for others.

use std::time::Duration;

/// How long one question to the cluster may take, and how long all take together who are outside of it.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// That somebody outside has not answered in the time that there was.
pub(super) fn no_answer() -> String {
    format!("no answer within {} s", PROBE_TIMEOUT.as_secs())
}
