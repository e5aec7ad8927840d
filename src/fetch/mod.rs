//! One GET as a public CA makes it: one address at a time, ports 80 and 443, few redirects, a short body.
//!
//! Shared by our own CA's validation and by the self-check, so that a rehearsal and a check look alike; Pebble and
//! Boulder's recorded answers keep both honest.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::dns::{LookupError, Resolve};

/// Where the connections of a host really go, for test set-ups and split DNS (`--http01-resolve HOST=ADDR[:PORT]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// By host; `*` stands for every host. A port replaces port 80, never another one.
    pub hosts: BTreeMap<String, (IpAddr, Option<u16>)>,
}

/// Looks at web servers as a public CA does.
#[derive(Clone, Debug)]
pub struct Fetcher {
    /// Looks hosts up.
    pub resolver: Arc<dyn Resolve>,
    /// Where connections really go.
    pub overrides: Overrides,
}

/// What one look brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Every URL asked, the first one first, each with the address that answered or was tried last.
    pub hops: Vec<Hop>,
    /// The last answer, or why there is none.
    pub result: Result<Reply, FetchError>,
}

/// One URL asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// URL.
    pub url: String,
    /// Address.
    pub address: Option<SocketAddr>,
    /// HTTP status, if it answered.
    pub status: Option<u16>,
}

/// The last answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// At most 128 bytes of the body, more than which no CA reads.
    pub body: Vec<u8>,
    /// Whether there was more.
    pub truncated: bool,
}

/// Why there is no answer; texts are stable, since they are kept in a status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The host has no address.
    #[error(transparent)]
    Lookup(LookupError),
    /// No address took a connection, or none answered in time.
    #[error("{why}")]
    Connect {
        /// Last reason, such as `connection refused by 192.0.2.1:80`.
        why: String,
    },
    /// A redirect that no CA follows.
    #[error("redirect to {to}: {why}")]
    Redirect {
        /// Where it leads.
        to: String,
        /// Why it is not followed.
        why: String,
    },
    /// An answer that is no HTTP.
    #[error("{why}")]
    Malformed {
        /// What is wrong.
        why: String,
    },
}
