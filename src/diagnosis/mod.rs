//! Why something does not go on, and what helps: judged from chains, obstacles and observations.

pub mod advice;
pub mod awaited;
pub mod blocker;
pub mod chain;
pub mod sight;
pub mod verdict;
