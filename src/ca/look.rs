//! The CA's view of the network: requests to web servers, and lookups in DNS.

use std::fmt;

use async_trait::async_trait;
use url::Url;

use crate::dns::LookupError;
use crate::fetch::Fetcher;
use crate::fetch::alpn::Greeting;
use crate::fetch::outcome::{FetchError, Fetched};
use crate::model::Identifier;
use crate::model::caa::CaaRecordSet;

/// Source of the CA's validation requests to web servers and of its DNS lookups.
#[async_trait]
pub trait Look: fmt::Debug + Send + Sync {
    /// Requests one URL, following redirects as far as a public CA does; reads no more than 128 bytes.
    async fn get(&self, url: &Url) -> Fetched;

    /// Opens a TLS connection to a host by `acme-tls/1`. The default, for sources of web pages alone, fails.
    async fn greet(&self, identifier: &Identifier) -> Greeting {
        let why = format!("nobody greets {identifier} here");
        Greeting { address: None, result: Err(FetchError::Connect { why, symptom: None }) }
    }

    /// Looks up the texts at a name. The default, for sources of web pages alone, finds none.
    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        Err(LookupError::NoSuchName { name: name.to_owned() })
    }

    /// Looks up the CAA records at a name. The default, for sources of web pages alone, finds none.
    async fn caa(&self, _name: &str) -> Result<CaaRecordSet, LookupError> {
        Ok(CaaRecordSet::default())
    }
}

#[async_trait]
impl Look for Fetcher {
    async fn get(&self, url: &Url) -> Fetched {
        Self::get(self, url).await
    }

    async fn greet(&self, identifier: &Identifier) -> Greeting {
        Self::greet(self, identifier).await
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        self.resolver.texts(name).await
    }

    async fn caa(&self, name: &str) -> Result<CaaRecordSet, LookupError> {
        self.resolver.caa(name).await
    }
}
