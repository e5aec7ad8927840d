//! Why something does not go on, and what helps: judged from chains, obstacles and observations. As on floor 0 there are no
//! clocks, files and sockets here, and nothing waits.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod advice;
pub mod awaited;
pub mod blocker;
pub mod chain;
pub mod sight;
pub mod verdict;
