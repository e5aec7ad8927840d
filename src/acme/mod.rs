//! ACME client (RFC 8555): one method per request; no method waits between requests.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

pub(crate) use self::error::AcmeError;
use crate::model::order_budget::Permit;

pub mod account;
mod account_key_file;
mod account_requests;
pub mod authority;
mod bundle;
pub mod chain;
pub mod clients;
pub mod csr;
pub(crate) mod der;
pub mod error;
mod headers;
pub mod inspection;
mod jws;
pub mod keys;
mod named_urls;
mod nonces;
pub mod ocsp;
mod pace;
mod post;
mod problem_document;
pub mod refusal;
mod refused_requests;
pub mod renewal_info;
pub mod replies;
pub mod revocation;
pub mod revocation_list;
pub mod session;
mod shared;
mod subject;
mod telling;
pub mod temporary;
pub mod transport;
mod under_way;
mod usages;
mod validation_records;
mod wire;
mod x509;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod openssl;

pub use self::account::AccountKey;
pub use self::account_requests::RevocationReason;
pub use self::account_requests::RevokedBy;
pub use self::authority::Requests;
pub use self::clients::Clients;
pub use self::csr::RequestError;
pub use self::csr::SigningRequest;
pub use self::error::ErrorSubject;
pub use self::keys::KeyEncoding;
pub use self::keys::KeyError;
pub use self::keys::KeyMaker;
pub use self::keys::PrivateKey;
pub use self::refused_requests::RefusedRequests;
pub use self::replies::AccountReply;
pub use self::replies::AuthorizationReply;
pub use self::replies::CertificateChain;
pub use self::replies::ChallengeReply;
pub use self::replies::Directory;
pub use self::replies::ExternalAccount;
pub use self::replies::NewOrder;
pub use self::replies::OrderReply;
pub use self::replies::Registration;
pub use self::session::Session;
pub use self::transport::TlsOptions;

/// One account at one CA. Every method is one request (plus those after a refused nonce); pauses are up to the caller.
#[async_trait]
pub trait Acme: fmt::Debug + Send + Sync {
    /// Reads the directory, once per process; again if reading has failed or the directory is a day old.
    async fn directory(&self) -> Result<Arc<Directory>, AcmeError>;
    /// Sends newAccount; on success the account's URL is used for all later requests.
    async fn register(&self, registration: &Registration) -> Result<AccountReply, AcmeError>;
    /// Replaces the account's contacts (RFC 8555 §7.3.2).
    async fn update_contact(&self, contact: &[String]) -> Result<AccountReply, AcmeError>;
    /// Gives the account another key (RFC 8555 §7.3.5); from then on the CA takes the new key alone.
    async fn change_key(&self, new: &AccountKey) -> Result<(), AcmeError>;
    /// Makes the next request ready to go out at once: directory and account are known, and a nonce is at hand.
    async fn prepare(&self) -> Result<(), AcmeError> {
        Ok(())
    }
    /// Sends newOrder, which the order budget has to permit; sends it a second time if the answer does not give the
    /// order's URL, and without `replaces` if another order already replaces that certificate.
    async fn create_order(&self, order: &NewOrder, permit: Permit)
    -> Result<OrderReply, AcmeError>;
    /// POST-as-GET of an order.
    async fn order(&self, url: &str) -> Result<OrderReply, AcmeError>;
    /// POST-as-GET of an authorization.
    async fn authorization(&self, url: &str) -> Result<AuthorizationReply, AcmeError>;
    /// Asks the CA to validate a challenge whose response is in place (RFC 8555 §7.5.1).
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
