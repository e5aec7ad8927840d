//! DNS-01: a TXT record that the CA looks up (RFC 8555 §8.4), by the provider that the Challenge's solver names.

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
mod google_federation;
mod google_login;
mod hosted;
pub mod manual;
#[cfg(feature = "many-providers")]
mod many;
mod memory;
pub mod own;
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

use std::fmt;

use async_trait::async_trait;
pub use connection::Connection;

pub use credential::{Ambient, Credential};

use super::SolveError;
use crate::model::zone_look::ProviderZone;

/// Change of one text among the texts of its name.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Add,
    Remove,
}

/// TXT record: one text at one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxtRecord {
    /// Name in the Challenge's spec, without `*.`: some providers keep credentials for each name.
    pub domain: String,
    /// Absolute name with the final dot: `_acme-challenge.example.com.`, or the target of a followed CNAME.
    pub name: String,
    /// The text, without quotes: base64url of the key authorization's SHA-256, 43 characters.
    pub value: String,
}

/// Provider of DNS, changed through its own API.
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync {
    /// Adds the text beside other texts at the name, and returns at once, before the text has to be
    /// visible. Safe to repeat.
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError>;

    /// Removes this text and leaves all others. Safe to repeat; succeeds if the text is not there.
    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError>;

    /// Checks by one cheap read that the credentials are good for the zone of that name; writes
    /// nothing. Providers without such a read succeed.
    async fn check(&self, name: &str) -> Result<(), SolveError>;

    /// Checks the credentials by reading alone, for callers that may change nothing.
    async fn check_read_only(&self, name: &str) -> Result<(), SolveError> {
        self.check(name).await
    }

    /// Checks, as far as possible without a request, that the provider has everything for a record
    /// of that domain, the name in the Challenge's spec without `*.`.
    fn knows(&self, _domain: &str) -> Result<(), SolveError> {
        Ok(())
    }

    /// Returns the provider's zones with the name of the zone that holds `name`: a provider may have several,
    /// and writes into one of them. Providers that cannot have more than one zone return none.
    async fn zones_of_name(&self, _name: &str) -> Result<Vec<ProviderZone>, SolveError> {
        Ok(Vec::new())
    }

    /// Returns whether an added record has reached all of the provider's servers, by the provider's own report; true
    /// without a report, and after a restart. A lookup cannot check every place from which a name is served.
    async fn is_everywhere(&self, _record: &TxtRecord) -> Result<bool, SolveError> {
        Ok(true)
    }
}
