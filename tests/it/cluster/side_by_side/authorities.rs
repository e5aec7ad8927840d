//! The CAs of a recording, told apart by the ports that they had there.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use super::names;
use crate::support::dns::DnsServer;
use crate::support::gate::Gate;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::proxy::Proxy;
use crate::support::story::Turn;

/// Where a recording has a CA behind a proxy that puts in errors and names orders.
const FAULTY: &str = "https://localhost:14700/dir";
/// Where it has one that forgets its accounts.
const FORGETFUL: &str = "https://localhost:14600/dir";
/// Where it has none.
const NOBODY: &str = "https://localhost:14999/dir";

/// The CAs of one recording.
pub(super) struct Authorities {
    pebble: Pebble,
    /// Before the first one.
    proxy: Option<Proxy>,
    /// Whether all that it is asked comes by way of the proxy.
    is_behind_proxy: bool,
    forgetful: Option<Forgetful>,
}

/// One that comes back at the same address without its data.
struct Forgetful {
    gate: Gate,
    pebble: Mutex<Pebble>,
}

impl Authorities {
    /// Starts those that the recording names; they validate at this port, and ask this resolver if it has DNS-01.
    pub(super) async fn start(recorded: &[Turn], http_port: u16, resolver: &DnsServer) -> Self {
        let has = |server: &str| {
            let of = |turn: &Turn| turn.object.pointer("/spec/acme/server") == Some(&server.into());
            recorded.iter().any(of)
        };
        let dns_server = names::are_needed(recorded).then(|| resolver.address().to_string());
        let is_behind_proxy = dns_server.is_some();
        let pebble = pebble(http_port, dns_server);
        let proxy = (has(FAULTY) || is_behind_proxy).then(|| pebble.proxy());
        if let Some(proxy) = proxy.as_ref().filter(|_| has(FAULTY)) {
            proxy.name_orders();
        }
        let forgetful = if has(FORGETFUL) { Some(Forgetful::start(http_port).await) } else { None };
        Self { pebble, proxy, is_behind_proxy, forgetful }
    }

    /// What stands here for the address of a CA there.
    pub(super) fn address(&self, recorded: &str) -> String {
        match recorded {
            FAULTY => self.proxy().directory(),
            FORGETFUL => {
                let forgetful = self.forgetful.as_ref().unwrap();
                format!("https://localhost:{}/dir", forgetful.gate.port)
            }
            // Nobody may listen there who is not root.
            NOBODY => "https://localhost:1/dir".to_owned(),
            _ if self.is_behind_proxy => self.proxy().directory(),
            _ => self.pebble.directory(),
        }
    }

    /// The proxy before the CA that gives errors or is to wait.
    pub(super) fn proxy(&self) -> &Proxy {
        self.proxy.as_ref().unwrap()
    }

    /// Replaces the CA that forgets by one that knows nothing.
    pub(super) fn forget(&self) {
        let forgetful = self.forgetful.as_ref().unwrap();
        let mut pebble_before = forgetful.pebble.lock().unwrap_or_else(PoisonError::into_inner);
        let after = pebble(pebble_before.http_port(), None);
        forgetful.gate.lead_to(directory_of(&after));
        *pebble_before = after;
    }
}

impl Forgetful {
    async fn start(http_port: u16) -> Self {
        let pebble = pebble(http_port, None);
        Self { gate: Gate::to(directory_of(&pebble)).await, pebble: Mutex::new(pebble) }
    }
}

fn pebble(http_port: u16, dns_server: Option<String>) -> Pebble {
    let http_port = Some(http_port);
    let long_lived = PebbleOptions::long_lived();
    Pebble::start(&PebbleOptions { http_port, dns_server, authz_reuse: 100, ..long_lived })
}

fn directory_of(pebble: &Pebble) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, pebble.directory_port()))
}
