//! The CAs of a recording, told apart by the ports that they had there.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

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
    faulty: Option<Proxy>,
    forgetful: Option<Forgetful>,
}

/// One that comes back at the same address without its data.
struct Forgetful {
    gate: Gate,
    pebble: Mutex<Pebble>,
}

impl Authorities {
    /// Starts those that the recording names; they validate at this port.
    pub(super) async fn start(recorded: &[Turn], http_port: u16) -> Self {
        let has = |server: &str| {
            let of = |turn: &Turn| turn.object.pointer("/spec/acme/server") == Some(&server.into());
            recorded.iter().any(of)
        };
        let pebble = pebble(http_port);
        let faulty = has(FAULTY).then(|| pebble.proxy());
        if let Some(proxy) = &faulty {
            proxy.name_orders();
        }
        let forgetful = if has(FORGETFUL) { Some(Forgetful::start(http_port).await) } else { None };
        Self { pebble, faulty, forgetful }
    }

    /// What stands here for the address of a CA there.
    pub(super) fn address(&self, recorded: &str) -> String {
        match recorded {
            FAULTY => self.faulty().directory(),
            FORGETFUL => {
                let forgetful = self.forgetful.as_ref().unwrap();
                format!("https://localhost:{}/dir", forgetful.gate.port)
            }
            // Nobody may listen there who is not root.
            NOBODY => "https://localhost:1/dir".to_owned(),
            _ => self.pebble.directory(),
        }
    }

    /// The proxy before the CA that gives errors.
    pub(super) fn faulty(&self) -> &Proxy {
        self.faulty.as_ref().unwrap()
    }

    /// Replaces the CA that forgets by one that knows nothing.
    pub(super) fn forget(&self) {
        let forgetful = self.forgetful.as_ref().unwrap();
        let mut pebble_before = forgetful.pebble.lock().unwrap_or_else(PoisonError::into_inner);
        let after = pebble(pebble_before.http_port());
        forgetful.gate.lead_to(directory_of(&after));
        *pebble_before = after;
    }
}

impl Forgetful {
    async fn start(http_port: u16) -> Self {
        let pebble = pebble(http_port);
        Self { gate: Gate::to(directory_of(&pebble)).await, pebble: Mutex::new(pebble) }
    }
}

fn pebble(http_port: u16) -> Pebble {
    let http_port = Some(http_port);
    Pebble::start(&PebbleOptions { http_port, authz_reuse: 100, ..PebbleOptions::calm() })
}

fn directory_of(pebble: &Pebble) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, pebble.directory_port()))
}
