//! What needs a real CA or real name servers: Pebble, BIND, Knot, and the peers beside us.

mod again;
mod bed;
mod challenge_types;
mod ci;
mod diagnose_caa;
mod diagnose_copies;
mod diagnose_dns;
mod diagnose_records;
mod diagnose_servers;
mod diagnose_web;
mod diagnose_zone;
mod dns;
pub(crate) mod dns01;
pub(crate) mod dns01_keys;
mod dns01_manual;
pub(crate) mod dns01_own;
pub(crate) mod dns01_webhook;
mod dns_damaged;
mod dns_look;
mod dns_update;
mod order;
mod peers;
mod rehearse_caa;
mod scale;
pub(crate) mod storm;
