//! HTTP as CAs, DNS providers, name servers and clusters are asked by it: one request, and one answer read up to a limit.
//!
//! What a fault is to its caller, and in which words a status keeps it, the callers know: here it has a type and its causes.

pub mod client;
pub mod exchange;
pub mod headers;
