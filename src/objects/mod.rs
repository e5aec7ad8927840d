//! Objects of one Certificate: its chain, their events, and requests that no Certificate has made.

pub mod awaited;
pub mod chain;
pub mod history;
pub mod own_request;
