//! The CA: one method per request, none of them waits. RFC 8555.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::model::Problem;
use crate::model::order_budget::Permit;

pub mod account;
pub mod authority;
pub mod chain;
pub mod csr;
mod der;
mod headers;
pub mod http;
mod jws;
pub mod keys;
pub mod known;
mod nonces;
mod post;
pub mod refusal;
pub mod replies;
pub mod session;
mod shared;
mod subject;
mod under_way;
mod usages;
mod wire;
mod x509;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod openssl;

pub use self::account::AccountKey;
pub use self::authority::{Clients, Requests};
pub use self::csr::{RequestError, SigningRequest};
pub use self::http::TlsOptions;
pub use self::keys::{KeyAlgorithm, KeyEncoding, KeyError, PrivateKey};
pub use self::refusal::Sort;
pub use self::replies::{
    AccountReply, AuthorizationReply, CertificateChain, ChallengeReply, Directory, ExternalAccount,
    NewOrder, OrderReply, Registration,
};
pub use self::session::Session;

/// When another try helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not before something changes.
    Never,
    /// Soon, with growing pauses.
    Backoff,
    /// At that moment, which the CA named.
    At(Timestamp),
}

/// Why a request to the CA brought nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AcmeError {
    /// The CA answered with an error.
    #[error("{problem}")]
    Refused {
        /// The problem, its `status` always filled in; an answer without a problem document keeps up to 200
        /// characters of its body as detail.
        problem: Box<Problem>,
        /// `Retry-After` of the answer.
        retry_after: Option<Timestamp>,
        /// `Location` of the answer, such as the account in a key-change conflict.
        location: Option<String>,
    },
    /// No answer: name resolution, connection, TLS, time-out, or a cut answer.
    #[error("cannot {deed} {url}: {why}")]
    Transport {
        /// What was tried, such as `read`.
        deed: &'static str,
        /// URL.
        url: String,
        /// The whole chain of causes in one line.
        why: String,
        /// What kind of fault it is.
        fault: Fault,
    },
    /// An answer that no CA should give and that another try does not change: what the server URL leads to is no ACME directory,
    /// or newAccount names no account.
    #[error("the answer of {url} is no ACME: {why}")]
    NotAcme {
        /// URL.
        url: String,
        /// What is there.
        why: String,
    },
    /// An answer that no CA should give, although the next one may be good: not JSON, missing headers, foreign URLs, too large.
    #[error("the answer of {url} is no ACME: {why}")]
    Protocol {
        /// URL.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Sorts of transport faults: some only a person can remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The host has no address.
    NoSuchHost,
    /// Nobody could say which address the host has.
    Lookup,
    /// The server's certificate is not trusted.
    Untrusted,
    /// Everything that may pass by itself.
    Passing,
}

impl AcmeError {
    /// Says when another try helps.
    pub fn retry(&self) -> Retry {
        refusal::retry(self)
    }

    /// Says what the obstacle is about.
    pub fn sort(&self) -> Sort {
        refusal::sort(self)
    }

    /// The CA's problem, if it answered.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            Self::Transport { .. } | Self::NotAcme { .. } | Self::Protocol { .. } => None,
        }
    }
}

/// One account at one CA. Every method is one request (plus what a refused nonce costs); waiting is the driver's.
#[async_trait]
pub trait Acme: fmt::Debug + Send + Sync {
    /// Reads the directory, once per process unless it failed or is a day old.
    async fn directory(&self) -> Result<Arc<Directory>, AcmeError>;
    /// newAccount; on success the account's URL is used for all later requests.
    async fn register(&self, registration: &Registration) -> Result<AccountReply, AcmeError>;
    /// Replaces the account's contacts (RFC 8555 §7.3.2).
    async fn update_contact(&self, contact: &[String]) -> Result<AccountReply, AcmeError>;
    /// newOrder, which the order budget has to permit; asked a second time when the answer does not say where the order is, and
    /// without `replaces` where another order does that already.
    async fn create_order(&self, order: &NewOrder, permit: Permit)
    -> Result<OrderReply, AcmeError>;
    /// POST-as-GET of an order.
    async fn order(&self, url: &str) -> Result<OrderReply, AcmeError>;
    /// POST-as-GET of an authorization.
    async fn authorization(&self, url: &str) -> Result<AuthorizationReply, AcmeError>;
    /// Tells the CA that the answer is up (RFC 8555 §7.5.1).
    async fn accept(&self, challenge_url: &str) -> Result<ChallengeReply, AcmeError>;
    /// Sends the signing request, DER.
    async fn finalize(&self, finalize_url: &str, csr_der: &[u8]) -> Result<OrderReply, AcmeError>;
    /// Downloads one chain.
    async fn certificate(&self, url: &str) -> Result<CertificateChain, AcmeError>;
    /// JWK thumbprint of the account key (RFC 7638), base64url; the second half of every key authorization.
    fn thumbprint(&self) -> &str;
    /// Account URL, once known.
    fn account_url(&self) -> Option<String>;
}
