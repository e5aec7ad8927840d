//! Clients: who they say that they are, and what holds for all of them.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use url::Url;

/// Names the program, as RFC 8555 §6.1 asks ACME clients to; people find our requests by it in their logs.
pub const USER_AGENT: &str = concat!("kubectl-acme/", env!("CARGO_PKG_VERSION"));

/// Looks hosts up in place of the system.
pub type Resolver = Arc<dyn reqwest::dns::Resolve>;

/// Begins a client that follows no redirects: HTTP/2 where offered, proxies from the environment, the system's roots, and
/// the system's look-ups unless a resolver stands in for them.
pub fn anonymous(resolver: Option<Resolver>) -> ClientBuilder {
    // reqwest takes the process's provider; another one may be there already, which is as good.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let builder = Client::builder().redirect(Policy::none());
    match resolver {
        Some(resolver) => builder.dns_resolver(resolver),
        None => builder,
    }
}

/// Begins a client that names this program to a server like that one, with the longest times for a connection and for a
/// whole exchange; a near server is never asked through a proxy.
pub fn named(
    server: &Url,
    is_near: bool,
    (connect, whole): (Duration, Duration),
    resolver: Option<Resolver>,
) -> ClientBuilder {
    let builder = anonymous(resolver).user_agent(USER_AGENT);
    let builder = builder.connect_timeout(connect).timeout(whole);
    let builder = if is_near { builder.no_proxy() } else { builder };
    // A plain server needs no roots, and there may be none on this machine.
    if server.scheme() == "http" { builder.tls_certs_only([]) } else { builder }
}
