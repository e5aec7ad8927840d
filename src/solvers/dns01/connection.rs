//! Connections to providers: the HTTP clients of the process.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Client;
use url::{Host, Url};

use crate::dns::{Resolve, in_place_of_system};
use crate::http::client;
#[cfg(feature = "many-providers")]
use crate::solvers::SolveError;

/// Hint if no root certificates are found.
pub(super) const NO_ROOTS_HINT: &str = "install the certificates of public authorities (package ca-certificates), or name a file of them: SSL_CERT_FILE=FILE";
/// Most repeats within one call to a provider that asks for patience.
const MAX_REPEATS: u32 = 3;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT_NEAR: Duration = Duration::from_secs(2);
/// Longest time of one exchange.
pub(super) const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Connection to providers: the lookups, and the patience.
#[derive(Clone, Debug)]
pub struct Connection {
    resolver: Option<Arc<dyn Resolve>>,
    /// Pause before the first repeat if the provider names no time; each further pause is twice as long.
    pub(super) pause: Duration,
    /// Most repeats within one call to a provider that asks for patience.
    pub(super) repeats: u32,
}

impl Connection {
    /// Reaches providers by the system's lookups, unless this resolver replaces the system's.
    pub fn new(resolver: &Arc<dyn Resolve>) -> Self {
        let resolver = resolver.replaces_system().then(|| Arc::clone(resolver));
        Self { resolver, pause: Duration::from_secs(1), repeats: MAX_REPEATS }
    }

    /// Returns the connection without repeats: the first answer counts.
    #[must_use]
    pub fn impatient(self) -> Self {
        Self { repeats: 0, ..self }
    }

    /// Reaches stubs: by the system's look-ups, with hardly a pause.
    #[cfg(test)]
    pub(super) fn hasty() -> Self {
        Self { resolver: None, pause: Duration::from_millis(1), repeats: MAX_REPEATS }
    }

    /// Returns the process's HTTP client for servers such as this server. Providers are built anew
    /// for every step; their connections are kept, and the system's roots are read once.
    pub(super) fn client(&self, server: &Url) -> reqwest::Result<Client> {
        let (is_near, is_plain) = (Self::is_near(server), server.scheme() == "http");
        let is_it = |known: &&Known| {
            (known.is_near, known.is_plain) == (is_near, is_plain)
                && match (&known.resolver, &self.resolver) {
                    (Some(one), Some(other)) => ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other)),
                    (one, other) => one.is_none() && other.is_none(),
                }
        };
        let mut clients = CLIENTS.lock();
        if let Some(known) = clients.iter().find(is_it) {
            return Ok(known.client.clone());
        }
        let client = self.new_client(server)?;
        let resolver = self.resolver.clone();
        clients.push(Known { resolver, is_near, is_plain, client: client.clone() });
        Ok(client)
    }

    /// Checks that clients can be made at all: without roots on this machine, no client for TLS can.
    #[cfg(feature = "many-providers")]
    pub(super) fn usable() -> Result<(), SolveError> {
        client::anonymous(None).build().map(drop).map_err(|error| {
            SolveError::lasting("cannot make connections", error.to_string())
                .advised(NO_ROOTS_HINT.to_owned())
        })
    }

    /// Builds the HTTP client for a server: no redirects, proxies from the environment except for this machine and its link.
    fn new_client(&self, server: &Url) -> reqwest::Result<Client> {
        let is_near = Self::is_near(server);
        // A metadata service is on the same link, or does not exist.
        let connect = if is_near { CONNECT_TIMEOUT_NEAR } else { CONNECT_TIMEOUT };
        let resolver = self.resolver.as_ref().and_then(in_place_of_system);
        client::named(server, is_near, (connect, EXCHANGE_TIMEOUT), resolver).build()
    }

    /// Returns whether a server is this machine or on its link, where clouds serve metadata: never reached through a proxy.
    pub(super) fn is_near(server: &Url) -> bool {
        match server.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".internal"),
            Some(Host::Ipv4(address)) => address.is_loopback() || address.is_link_local(),
            Some(Host::Ipv6(address)) => address.is_loopback() || address.is_unique_local(),
            None => false,
        }
    }
}

/// HTTP client, with the properties in which clients differ.
struct Known {
    resolver: Option<Arc<dyn Resolve>>,
    is_near: bool,
    is_plain: bool,
    client: Client,
}

/// HTTP clients of the process.
static CLIENTS: Mutex<Vec<Known>> = Mutex::new(Vec::new());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::lookup::SystemResolver;

    #[test]
    fn metadata_and_this_machine_are_never_asked_through_a_proxy() {
        for (url, near) in [
            ("http://169.254.169.254/", true),
            ("http://[fd00:ec2::254]/", true),
            ("http://metadata.google.internal/", true),
            ("http://127.0.0.1:8080/", true),
            ("https://api.cloudflare.com/client/v4", false),
            ("https://192.0.2.1/", false),
        ] {
            assert_eq!(Connection::is_near(&Url::parse(url).unwrap()), near, "{url}");
        }
    }

    #[test]
    fn servers_of_one_kind_share_a_client() {
        let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver::new());
        let connection =
            Connection { resolver: Some(Arc::clone(&resolver)), ..Connection::hasty() };
        let count = || {
            let clients = CLIENTS.lock();
            let is_ours =
                |one: &Arc<dyn Resolve>| ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(&resolver));
            clients.iter().filter(|known| known.resolver.as_ref().is_some_and(is_ours)).count()
        };
        for (server, expected) in [
            ("http://one.example", 1),
            ("http://two.example/path", 1),
            ("http://127.0.0.1:8080", 2),
            ("http://localhost:8081", 2),
        ] {
            connection.client(&Url::parse(server).unwrap()).unwrap();
            assert_eq!(count(), expected, "{server}");
        }
    }
}
