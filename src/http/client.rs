//! HTTP clients: the name that they send, and the settings that all of them share.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use url::Url;

/// Name of the program, which RFC 8555 §6.1 asks ACME clients to send; operators find requests in their logs by this name.
pub const USER_AGENT: &str = concat!("kubectl-acme/", env!("CARGO_PKG_VERSION"));

/// Resolver that looks up hosts in place of the system.
pub type Resolver = Arc<dyn reqwest::dns::Resolve>;

/// Returns a builder of clients that follow no redirects: HTTP/2 if offered, proxies from the environment, the system's
/// roots, and the system's lookups unless a resolver is given.
pub fn anonymous(resolver: Option<Resolver>) -> ClientBuilder {
    // reqwest takes the process's crypto provider; a provider that is already installed is as good.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    let builder = Client::builder().redirect(Policy::none());
    match resolver {
        Some(resolver) => builder.dns_resolver(resolver),
        None => builder,
    }
}

/// Returns a builder of clients that send [`USER_AGENT`] to servers like the given one, with time limits to connect and
/// for a whole exchange; a near server is never asked through a proxy.
pub fn named(
    server: &Url,
    is_near: bool,
    (connect, whole): (Duration, Duration),
    resolver: Option<Resolver>,
) -> ClientBuilder {
    let builder = anonymous(resolver).user_agent(USER_AGENT);
    let builder = builder.connect_timeout(connect).timeout(whole);
    let builder = if is_near { builder.no_proxy() } else { builder };
    // Plain HTTP needs no roots, and this machine may have none.
    if server.scheme() == "http" { builder.tls_certs_only([]) } else { builder }
}
