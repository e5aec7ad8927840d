//! Other programs' sentences, read as facts; no other room reads prose.

pub mod controller;
pub mod facts;
pub mod foreign;
pub(crate) mod http;
pub mod issuer;
pub mod provider;
pub mod refusal;
