//! Groups of flags that several commands share, and the values that they give.

pub mod connection;
pub mod global;
pub mod lease;
pub mod log;
pub mod look;
pub mod output;
pub mod report;
pub mod slots;

use crate::model::Duration;

/// Reads a duration as Go does.
///
/// # Errors
/// Fails if the text is not a duration, or is negative.
pub fn duration(text: &str) -> Result<Duration, String> {
    Duration::parse(text)
        .filter(|d| !d.0.is_negative())
        .ok_or_else(|| format!("\"{text}\" is not a duration such as 90s, 10m or 1h30m"))
}
