//! One file or folder per verb, with the flags and the body. Code that two verbs need stands in a room below; no verb
//! imports another one.

pub mod account;
pub mod ca;
pub mod certificate;
pub mod challenge;
pub mod crds;
pub mod delete;
pub mod describe;
pub mod diagnose;
pub mod explain;
pub mod get;
pub mod order;
pub mod probe;
pub mod run;
pub mod schedule;
pub mod solve;
pub mod status;
pub mod timeline;
pub mod tree;
pub mod version;
pub mod wait;
pub mod watch;
