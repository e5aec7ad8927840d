//! What one look at a web server brought.

use std::net::SocketAddr;

use crate::dns::LookupError;
use crate::model::cause::Symptom;

/// What one look brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Every URL asked, the first one first, each with the address that answered or was tried last.
    pub hops: Vec<Hop>,
    /// The last answer, or why there is none.
    pub result: Result<HttpReply, FetchError>,
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
pub struct HttpReply {
    /// HTTP status.
    pub status: u16,
    /// At most 128 bytes of the body, more than which no CA reads.
    pub body: Vec<u8>,
    /// Whether there was more.
    pub truncated: bool,
    /// Whether a listener of this program says that it does not have the answer ([`DECLINED_BY`](crate::model::arrival::DECLINED_BY)).
    pub is_declined: bool,
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
        /// The same as data, if it is of a known sort.
        symptom: Option<Symptom>,
    },
    /// A redirect that no CA follows.
    #[error("redirect to {to}: {why}")]
    Redirect {
        /// Where it leads.
        to: String,
        /// Why it is not followed, in Boulder's words.
        why: String,
    },
    /// An answer that is no HTTP.
    #[error("{why}")]
    Malformed {
        /// What is wrong.
        why: String,
        /// The same as data, if it is of a known sort.
        symptom: Option<Symptom>,
    },
}

impl FetchError {
    /// What it is as data, if it is of a known sort.
    pub fn symptom(&self) -> Option<Symptom> {
        match self {
            Self::Lookup(error) => error.symptom(),
            Self::Connect { symptom, .. } | Self::Malformed { symptom, .. } => *symptom,
            Self::Redirect { .. } => Some(Symptom::RedirectNotFollowed),
        }
    }
}
