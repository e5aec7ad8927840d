//! Names on the wire: the [`Resolve`] trait.

pub mod lookup;
pub mod reqwest;
pub mod tsig;
pub mod update;

use std::fmt;
use std::net::IpAddr;

use async_trait::async_trait;

/// Looks names up.
#[async_trait]
pub trait Resolve: fmt::Debug + Send + Sync {
    /// The addresses of a host, IPv6 first, without repeats; never an empty list.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError>;

    /// Whether it stands in for the system's look-ups everywhere, connections to the CA included.
    fn replaces_system(&self) -> bool {
        false
    }
}

/// Finds out which zone a name belongs to.
#[async_trait]
pub trait FindZone: fmt::Debug + Send + Sync {
    /// Absolute name of the zone, with the final dot: the owner of the nearest SOA record at or above that absolute name.
    async fn zone_of(&self, name: &str) -> Result<String, LookupError>;
}

/// Why a look-up has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The name does not exist (RFC 2308 §2.1).
    #[error("no such host {name}")]
    NoSuchName {
        /// Name.
        name: String,
    },
    /// The name exists and has no address.
    #[error("{name} has neither an A nor an AAAA record")]
    NoAddress {
        /// Name.
        name: String,
    },
    /// The servers did not answer, or with an error such as SERVFAIL.
    #[error("cannot look up {name}: {why}")]
    Failed {
        /// Name.
        name: String,
        /// What the servers said; stable text.
        why: String,
    },
}
