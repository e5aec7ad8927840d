//! What verbs share: what is given, whose turn it is, the controllers at work, and what becomes of it. It acts, and does not judge.

pub mod awaited;
pub mod blocking;
pub mod chain;
pub mod changes;
pub(crate) mod check_report;
pub mod context;
pub mod definitions;
pub mod diagnose;
pub mod engine;
pub mod failure;
pub mod flags;
pub mod follow;
pub mod hints;
pub mod history;
pub mod input;
pub mod inspect;
pub mod invocation;
pub mod lead;
pub mod listing;
pub mod preflight;
pub mod rehearsal;
pub mod tree;
pub mod venue;
pub mod wait_names;
pub mod waiting;
pub mod waiting_orders;
