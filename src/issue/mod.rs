//! Ordering certificates: what is due, what is checked first, the work until each Certificate has ended, and its results.

pub mod again;
pub mod asking;
pub mod dry_run;
pub mod flags;
pub mod follow;
pub mod issuance;
pub mod manual;
pub mod plan;
pub mod preflight;
pub mod rehearsal;
pub mod results;
pub mod tracked;
