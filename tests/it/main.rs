//! The one binary of integration tests; `tidy` fails when a file below this folder is not listed.
#![allow(clippy::unwrap_used, reason = "a fault ends the test that sees it")]

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod local;
mod pebble;
