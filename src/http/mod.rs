//! HTTP exchanges with CAs, DNS providers, name servers and clusters: one request, and one answer read up to a limit.
//!
//! A failure has a type and causes here; the callers decide what a failure means and how a status words it.

pub mod client;
pub mod exchange;
pub mod headers;
