//! What `run` says and writes while the controllers are at work.

mod files_to_write;
pub mod follow;
mod next_renewal;
pub mod obstacles;
pub mod provider_talk;
pub mod reasons;
mod reported;
