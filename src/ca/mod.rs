//! A CA inside this program, for rehearsals, the tour and tests; never for production, and not trusted by clients.
//!
//! The server side of RFC 8555 on loopback, complete enough that certbot and lego obtain certificates from it, in the
//! words and with the rules of Boulder, which runs Let's Encrypt. The code of `acme/` is not used here, so that no side
//! hides the other side's mistakes. All state is in memory and gone when the server stops.

mod accounts;
mod authorizations;
mod base_url;
pub mod behaviour;
mod caa;
mod certificates;
mod chance;
pub mod config;
mod contact;
mod context;
mod csr_signature;
mod identifiers;
mod issuance;
mod jwk;
mod jws;
mod management;
mod nonces;
mod ocsp;
mod orders;
mod plain;
mod protocol;
pub mod records;
mod refusal;
mod renewal;
mod reply;
mod request;
mod revocation;
mod rollover;
mod signing_request;
mod state;
pub mod statistics;
#[cfg(test)]
mod tests;
mod tls_alpn;
mod validation;
pub mod without_socket;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::base_url::BaseUrl;
use self::behaviour::{Behaviours, RequestedBehaviour};
pub use self::caa::NO_ACCOUNT;
pub use self::config::{
    Caa, Config, MacKey, OptionalEndpoint, Profile, RecordAccount, RevocationSource,
};
use self::context::Ca;
pub use self::context::Look;
use self::issuance::IssuingAuthority;
use self::orders::order_url;
use self::state::{MovedWindow, Revocation};
use self::statistics::Statistics;
use crate::serve::{self, ConnectionSlots, ConnectionTimeouts};
use crate::surroundings::Environment;

/// The first byte of a TLS handshake (RFC 8446 §5.1).
const HANDSHAKE_BYTE: u8 = 0x16;
/// Longest wait for a client's first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);

/// Running CA; stops when dropped.
#[derive(Debug)]
pub struct Server {
    ca: Arc<Ca>,
    address: SocketAddr,
    management: Option<SocketAddr>,
    stop: DropGuard,
    serving: JoinHandle<()>,
}

impl Server {
    /// Returns the URL of the directory, to which clients are pointed (RFC 8555 §7.1.1).
    pub fn directory_url(&self) -> String {
        self.ca.url("/directory")
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the management, where tests read certificates and change DNS records; `None` without one.
    pub fn management(&self) -> Option<SocketAddr> {
        self.management
    }

    /// Returns the root of the issued certificates, in PEM.
    pub fn root_pem(&self) -> &str {
        self.ca.authority.root()
    }

    /// Returns the root of the alternate chains, in PEM.
    pub fn alternate_root_pem(&self) -> &str {
        self.ca.authority.alternate_root()
    }

    /// Returns the root to trust for connections to the CA (`caBundle`), in PEM: the issuing root.
    pub fn tls_root_pem(&self) -> &str {
        self.ca.authority.root()
    }

    /// Returns the number of accounts.
    pub fn accounts(&self) -> usize {
        self.ca.state().accounts.len()
    }

    /// Returns the URLs of all orders, with the orders' states in the RFC's words.
    pub fn orders(&self) -> BTreeMap<String, &'static str> {
        let state = self.ca.state();
        let orders = state.orders.iter();
        orders
            .map(|(id, o)| (order_url(&self.ca.base, *id), state.order_status(o).word()))
            .collect()
    }

    /// Revokes a certificate by its serial number in hexadecimal and the number of a reason (RFC
    /// 5280 §5.3.1), as a CA does after a mistake; returns whether there is such a certificate.
    pub fn revoke(&self, serial: &str, reason: u8) -> bool {
        let mut state = self.ca.state();
        let issued = state.certificates.get_mut(serial);
        let revocation = Revocation { at: self.ca.now(), reason };
        issued.map(|issued| issued.revoked = Some(revocation)).is_some()
    }

    /// Moves the renewal windows of all certificates issued so far (RFC 9773), and names a page
    /// with the reason; an empty text names no page.
    pub fn move_windows(&self, window: (Timestamp, Timestamp), explanation: &str) {
        let (at, explanation) = (self.ca.now(), explanation.to_owned());
        self.ca.state().moved_window = Some(MovedWindow { at, window, explanation });
    }

    /// Returns the serial numbers, in hexadecimal, of the certificates that orders replace, one number for each such order.
    pub fn replaced(&self) -> Vec<String> {
        let state = self.ca.state();
        state.orders.values().filter_map(renewal::replaced).collect()
    }

    /// Returns the statistics of the requests so far.
    pub fn statistics(&self) -> Statistics {
        self.ca.counters.read()
    }

    /// Stops and waits until the last answer is sent; validations under way are given up.
    pub async fn stop(self) {
        let Self { stop, serving, .. } = self;
        drop(stop);
        if let Err(error) = serving.await {
            tracing::warn!(%error, "the rehearsal CA did not stop cleanly");
        }
    }
}

/// Starts the CA.
///
/// # Errors
/// Fails if the server cannot listen on the address, or if keys cannot be made.
pub async fn serve(config: Config, look: Arc<dyn Look>) -> io::Result<Server> {
    serve_as(config, &[], look).await
}

/// Starts a CA with behaviours that differ from a good CA's, always or sometimes.
///
/// # Errors
/// Fails if the server cannot listen on the address, or if keys cannot be made.
pub async fn serve_as(
    config: Config,
    behaviours: &[RequestedBehaviour],
    look: Arc<dyn Look>,
) -> io::Result<Server> {
    let listener = TcpListener::bind(config.listen).await?;
    let address = listener.local_addr()?;
    let managed = match config.management {
        Some(listen) => Some(TcpListener::bind(listen).await?),
        None => None,
    };
    let management = managed.as_ref().map(TcpListener::local_addr).transpose()?;
    let around = Environment::default();
    let authority = IssuingAuthority::new(around.clone()).map_err(io::Error::other)?;
    let names = config.server_names(address.ip());
    let shown = authority.server(&names, around.now()).map_err(io::Error::other)?;
    let stop = CancellationToken::new();
    let base = BaseUrl::printed(&config.names, address);
    let ca = Arc::new(Ca::new((config, base), authority, look, (stop.clone(), around)));
    let behaviours = Arc::new(Behaviours::new(behaviours));
    let wire = behaviours.wire();
    let acceptor = acceptor(shown, wire.protocols())?;
    let router = protocol::router(Arc::clone(&ca), &behaviours);
    let plain = plain::router(Arc::clone(&ca));
    let stopped = stop.clone();
    let served = move |stream| {
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stopped.clone());
        let plain = plain.clone();
        async move {
            match stop.run_until_cancelled(begins_tls(&stream)).await {
                Some(true) => {}
                Some(false) => {
                    return serve::http(stream, plain, ConnectionTimeouts::ONE_REQUEST, stop).await;
                }
                None => return,
            }
            let hello = stop.run_until_cancelled(serve::handshake(stream, &acceptor)).await;
            if let Some(stream) = hello.flatten() {
                wire.serve(stream, router, stop).await;
            }
        }
    };
    let accepting = serve::accept_all(listener, ConnectionSlots::default(), stop.clone(), served);
    let managing = management::serve(managed, Arc::clone(&ca), stop.clone());
    let serving = tokio::spawn(async move {
        tokio::join!(accepting, managing);
    });
    Ok(Server { ca, address, management, stop: stop.drop_guard(), serving })
}

/// Returns whether a client begins with a TLS handshake.
async fn begins_tls(stream: &TcpStream) -> bool {
    let mut first = [0];
    let seen = timeout(FIRST_BYTE_TIMEOUT, stream.peek(&mut first)).await;
    matches!(seen, Ok(Ok(1))) && first == [HANDSHAKE_BYTE]
}

/// Builds an acceptor with this certificate chain and only these protocols (ALPN), the first protocol preferred.
fn acceptor(
    (chain, key): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    protocols: &[&[u8]],
) -> io::Result<TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(io::Error::other)?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
