//! Our lookups as a resolver of reqwest, so that connections to the CA obey `--dns` too.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolving};

use super::Resolve;
use crate::http::client::Resolver;

/// Returns the resolver for HTTP clients, if it replaces the system's lookups.
pub fn in_place_of_system(resolver: &Arc<dyn Resolve>) -> Option<Resolver> {
    resolver.replaces_system().then(|| -> Resolver { Arc::new(ReqwestResolver(resolver.clone())) })
}

/// A resolver for `reqwest::ClientBuilder::dns_resolver`.
#[derive(Clone, Debug)]
pub struct ReqwestResolver(pub Arc<dyn Resolve>);

impl reqwest::dns::Resolve for ReqwestResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = Arc::clone(&self.0);
        Box::pin(async move {
            let found = resolver.addresses(name.as_str()).await?;
            // The client puts the port of its URL in place of 0.
            let addresses: Addrs =
                Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
