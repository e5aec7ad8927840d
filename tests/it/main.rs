//! The one binary of integration tests; `tidy` fails when a file beside this one is not listed.
#![allow(clippy::unwrap_used, reason = "a fault ends the test that sees it")]

#[path = "../support/mod.rs"]
mod support;

mod adversary;
mod bed;
mod cli;
mod cluster;
mod crash;
mod faults;
mod generated;
mod kill;
mod order_cluster;
mod pairs;
mod pebble;
mod pebble_again;
mod peers;
mod permissions_cluster;
mod recordings;
mod scale;
mod solve;
mod solver_cluster;
mod store;
mod takeover_cluster;
mod tidy;
