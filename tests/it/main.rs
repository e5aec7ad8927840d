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
mod faults_cluster;
mod generated;
mod kill;
mod order_cluster;
mod pairs;
mod pebble;
mod pebble_again;
mod peers;
mod recordings;
mod scale;
mod solve;
mod solver_cluster;
mod store;
mod tidy;
