//! Which answers are final, which are worth another try, and when.

use super::{AcmeError, Fault, Retry};

/// Says when another try helps.
pub fn retry(error: &AcmeError) -> Retry {
    match error {
        AcmeError::Transport { fault: Fault::NoSuchHost | Fault::Untrusted, .. } => Retry::Never,
        AcmeError::Transport { fault: Fault::Passing, .. } | AcmeError::Protocol { .. } => {
            Retry::Backoff
        }
        AcmeError::Refused { problem, retry_after, .. } => match (problem.status, retry_after) {
            (429 | 500.., Some(at)) => Retry::At(*at),
            (500.., None) => Retry::Backoff,
            _ => Retry::Never,
        },
    }
}
