//! How the CA looks at those who ask for certificates: at web servers and in DNS.

use std::fmt;

use async_trait::async_trait;
use url::Url;

use crate::dns::LookupError;
use crate::fetch::Fetcher;
use crate::fetch::alpn::Greeting;
use crate::fetch::outcome::{FetchError, Fetched};
use crate::model::Identifier;
use crate::model::caa::CaaRecordSet;

/// Looks at web servers and TXT records in the CA's stead.
#[async_trait]
pub trait Look: fmt::Debug + Send + Sync {
    /// Asks one URL, following redirects as far as a public CA does; reads no more than 128 bytes.
    async fn get(&self, url: &Url) -> Fetched;

    /// Greets a host by `acme-tls/1`. Whoever looks at web servers only has no greeting.
    async fn greet(&self, identifier: &Identifier) -> Greeting {
        let why = format!("nobody greets {identifier} here");
        Greeting { address: None, result: Err(FetchError::Connect { why, symptom: None }) }
    }

    /// Looks up the texts at a name. Whoever looks at web servers only finds none.
    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        Err(LookupError::NoSuchName { name: name.to_owned() })
    }

    /// Looks up the CAA records at a name. Whoever looks at web servers only finds none.
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
