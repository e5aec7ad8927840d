//! What comes of a question to resolvers, as cases keep it.

use std::time::Duration;

use tokio::time::timeout;

use crate::diagnosis::name_case::LookUp;
use crate::dns::{LookupError, Why};

/// What comes of a question to resolvers within that time.
pub(super) async fn looked_up<T>(
    within: Duration,
    asked: impl Future<Output = Result<T, LookupError>>,
) -> LookUp<T> {
    let error = match timeout(within, asked).await {
        Ok(Ok(found)) => return LookUp::Found(found),
        Ok(Err(error)) => error,
        Err(_) => {
            return LookUp::Silence(format!("no answer within {} s", within.as_secs()));
        }
    };
    let said = error.to_string();
    match error {
        LookupError::NoSuchName { .. } => LookUp::NoName(said),
        LookupError::NoSuchTarget { target, .. } => LookUp::Dangling { target },
        LookupError::NoAddress { .. } | LookupError::NoText { .. } => LookUp::NoRecord(said),
        LookupError::AliasLoop { .. } | LookupError::Failed { why: Why::AliasLoop(_), .. } => {
            LookUp::Circle(said)
        }
        LookupError::Failed { why: Why::Answered { code, .. }, .. }
        | LookupError::UnexpectedCode { code, .. } => LookUp::Code(code),
        LookupError::Failed {
            why: Why::Silent | Why::Slow { .. } | Why::Server { .. }, ..
        } => LookUp::Silence(said),
        LookupError::Failed { .. }
        | LookupError::NoZone { .. }
        | LookupError::UnknownZone { .. }
        | LookupError::NoServers { .. } => LookUp::Other(said),
    }
}
