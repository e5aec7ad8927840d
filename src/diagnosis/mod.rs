//! Judgment of chains, obstacles and observations: why something does not go on, and what helps. As on floor 0 there are
//! no clocks, files and sockets here, and nothing waits; steps that help are data, which `hints` puts into words.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod case;
pub mod catalogue;
pub mod finding;
pub mod rules;
pub mod verdict;
pub mod words;
