//! DNS-01: a TXT record where the CA looks (RFC 8555 §8.4), by the provider that the Challenge's solver names.

pub mod acme_dns;
pub mod akamai;
mod api;
mod aws;
pub mod azure_dns;
mod azure_login;
pub mod cloud_dns;
pub mod cloudflare;
mod connection;
mod credential;
pub mod digitalocean;
mod edge_grid;
mod exec;
pub mod factory;
mod files;
mod google_federation;
mod google_login;
mod hosted;
pub mod manual;
#[cfg(feature = "many-providers")]
mod many;
mod memory;
pub mod own;
mod redacted;
mod refusal;
pub mod rfc2136;
pub mod route53;
mod silent_servers;
pub mod site;
pub mod solver;
#[cfg(test)]
mod tests;
mod text;
mod token;
pub mod webhook;
mod zones;

use std::fmt;

use async_trait::async_trait;
pub use connection::Connection;

pub use credential::{Ambient, Credential};

use super::SolveError;
use crate::model::provider_zone::ProviderZone;

/// What is to become of a text among those of its name.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Add,
    Remove,
}

/// One text at one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxtRecord {
    /// The name of the Challenge's spec, without `*.`: some providers keep credentials for each.
    pub domain: String,
    /// Absolute name with the final dot: `_acme-challenge.example.com.`, or where a followed CNAME leads.
    pub name: String,
    /// The text, without quotes: base64url of the key authorization's SHA-256, 43 characters.
    pub value: String,
}

/// A place where names are served, written through its own API.
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync {
    /// Adds the text beside those that others have at the same name, and returns at once: it need not be visible yet. Safe to
    /// repeat.
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError>;

    /// Takes this text away and leaves all others. Safe to repeat; succeeds when it is not there.
    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError>;

    /// Asks whether the credentials are good for the zone of that name, by one cheap read; writes nothing. Providers without
    /// such a read succeed.
    async fn check(&self, name: &str) -> Result<(), SolveError>;

    /// Asks the same by reading alone, for those who may change nothing.
    async fn look(&self, name: &str) -> Result<(), SolveError> {
        self.check(name).await
    }

    /// Whether there is what a record of that domain needs, as far as nobody has to be asked; the name of the Challenge's spec,
    /// without `*.`.
    fn knows(&self, _domain: &str) -> Result<(), SolveError> {
        Ok(())
    }

    /// The zones of the name of the zone that holds a name: a provider may have several, of which it writes into one. Providers that
    /// cannot have more than one name none.
    async fn zones_of_name(&self, _name: &str) -> Result<Vec<ProviderZone>, SolveError> {
        Ok(Vec::new())
    }

    /// Whether what was added has reached all of the provider's servers, as the provider itself says; true where it does not
    /// say, and after a restart. One name served from many places cannot be looked at in all of them.
    async fn is_everywhere(&self, _record: &TxtRecord) -> Result<bool, SolveError> {
        Ok(true)
    }
}
