//! What tests stand on: real servers on loopback, started and stopped by the test that needs them.
//!
//! [`pebble::Pebble`] is a real CA with its DNS server; [`proxy::Proxy`] stands between a client and a CA, counts
//! requests and injects faults; [`cluster::Cluster`] is a real API server. Everything listens on loopback only and dies with the test, however that ends.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "a harness offers more than the tests of one day use"
)]

pub mod bed;
pub mod ca;
pub mod certificates;
pub mod cluster;
pub mod difference;
pub mod dns;
pub mod empty_dns;
pub mod fault;
pub mod full_port;
pub mod gate;
pub mod http;
pub mod lab;
pub mod name_server;
pub mod outcome;
pub mod pebble;
pub mod program;
pub mod provider_api;
pub mod proxy;
pub mod purpose;
pub mod recorded;
pub mod reports;
pub mod story;
pub mod terminal;
pub mod tls_server;
pub mod traffic;
