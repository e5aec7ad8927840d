//! Plan for each Certificate of a command: whether the Certificate is due, why, and what is left out.

pub mod chosen;
pub mod due;
pub mod leftovers;
pub mod opening;
pub mod renewal;
pub mod replacement;
pub mod required_types;
pub mod subset;
