//! Outcome of one request to a web server.

use std::net::SocketAddr;

use crate::dns::LookupError;
use crate::model::cause::Symptom;

/// Outcome of one request, with its redirects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Every URL that was requested, in order, each with the address that answered or was tried last.
    pub hops: Vec<Hop>,
    /// The last answer, or why there is none.
    pub result: Result<HttpReply, FetchError>,
}

/// One URL that was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// URL.
    pub url: String,
    /// Address.
    pub address: Option<SocketAddr>,
    /// HTTP status, if the server answered.
    pub status: Option<u16>,
}

/// The last answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// HTTP status.
    pub status: u16,
    /// At most 128 bytes of the body, more than which no CA reads.
    pub body: Vec<u8>,
    /// Whether the body was longer.
    pub truncated: bool,
    /// Whether a listener of ours declares to lack the answer ([`DECLINED_BY`](crate::model::arrival::DECLINED_BY)).
    pub is_declined: bool,
}

/// Reason why there is no answer; the texts are stable, since a status keeps them.
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
        /// Symptom, as data; `None` if the reason is of no known kind.
        symptom: Option<Symptom>,
    },
    /// A redirect that no CA follows.
    #[error("redirect to {to}: {why}")]
    Redirect {
        /// Target of the redirect.
        to: String,
        /// Reason why the redirect is not followed, in Boulder's words.
        why: String,
    },
    /// An answer that is no HTTP.
    #[error("{why}")]
    Malformed {
        /// Reason.
        why: String,
        /// Symptom, as data; `None` if the reason is of no known kind.
        symptom: Option<Symptom>,
    },
}

impl FetchError {
    /// Symptom, as data; `None` if the error is of no known kind.
    pub fn symptom(&self) -> Option<Symptom> {
        match self {
            Self::Lookup(error) => error.symptom(),
            Self::Connect { symptom, .. } | Self::Malformed { symptom, .. } => *symptom,
            Self::Redirect { .. } => Some(Symptom::RedirectNotFollowed),
        }
    }
}
