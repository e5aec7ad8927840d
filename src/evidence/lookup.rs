//! Conversion of lookup results into the form that cases keep.

use tokio::time::error::Elapsed;

use super::patience::no_answer;
use crate::diagnosis::case::name::LookUp;
use crate::dns::{LookupError, LookupFailure};

/// Converts the result of a lookup with a time limit.
pub(super) fn looked_up<T>(asked: Result<Result<T, LookupError>, Elapsed>) -> LookUp<T> {
    let error = match asked {
        Ok(Ok(found)) => return LookUp::Found(found),
        Ok(Err(error)) => error,
        Err(_) => return LookUp::Silence(no_answer()),
    };
    let said = error.to_string();
    match error {
        LookupError::NoSuchName { .. } => LookUp::NoName(said),
        LookupError::NoSuchTarget { target, .. } => LookUp::Dangling { target },
        LookupError::NoAddress { .. } | LookupError::NoText { .. } => LookUp::NoRecord(said),
        LookupError::AliasLoop { .. }
        | LookupError::Failed { why: LookupFailure::AliasLoop(_), .. } => LookUp::Circle(said),
        LookupError::Failed {
            why: LookupFailure::Answered { code, target: Some(target) }, ..
        } => LookUp::Code(format!("{code} for {target}, the target of its CNAME")),
        LookupError::Failed { why: LookupFailure::Answered { code, .. }, .. }
        | LookupError::UnexpectedCode { code, .. } => LookUp::Code(code),
        LookupError::Failed {
            why: LookupFailure::Silent | LookupFailure::Slow { .. } | LookupFailure::Server { .. },
            ..
        } => LookUp::Silence(said),
        LookupError::Failed { .. }
        | LookupError::NoZone { .. }
        | LookupError::UnknownZone { .. }
        | LookupError::NoServers { .. } => LookUp::Other(said),
    }
}
