//! The one binary of integration tests; `tidy` fails when a file beside this one is not listed.
#![allow(clippy::unwrap_used, reason = "a fault ends the test that sees it")]

#[path = "../support/mod.rs"]
mod support;

mod adversary;
mod bed;
mod behaviours;
mod challenge_answer;
mod challenge_types;
mod challenge_types_cluster;
mod cli;
mod cluster;
mod conformance_cluster;
mod crash;
mod deploy;
mod dns;
mod dns01;
mod dns01_cluster;
mod dns01_keys;
mod dns01_manual;
mod dns01_own;
mod dns01_webhook;
mod dns_look;
mod dns_spoilt;
mod dns_update;
mod examples;
mod faults;
mod faults_cluster;
mod generated;
mod handover_cluster;
mod kill;
mod kubectl_cluster;
mod order_cluster;
mod outage_cluster;
mod pairs;
mod pebble;
mod pebble_again;
mod peers;
mod permissions_cluster;
mod plugin_cluster;
mod probe_cluster;
mod recordings;
mod rehearse_caa;
mod rehearse_cluster;
mod scale;
mod side_by_side_cluster;
mod solve;
mod solver_cluster;
mod store;
mod storm;
mod storm_cluster;
mod takeover_cluster;
mod tidy;
