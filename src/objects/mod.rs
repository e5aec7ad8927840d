//! What belongs to one Certificate: its chain of objects, their events, and requests that no Certificate has made.

pub mod awaited;
pub mod chain;
pub mod history;
pub mod own_request;
