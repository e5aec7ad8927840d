//! A CA of our own, for rehearsals, the tour and tests; never for production, and trusted by nobody.
//!
//! The server side of RFC 8555 on loopback, complete enough that certbot and lego obtain certificates from it, in the
//! words and with the rules of Boulder, which runs Let's Encrypt. Nothing of `acme/` is used here, so that neither side excuses
//! the other's mistakes. Everything is kept in memory and gone when the server stops.

mod accounts;
mod authorizations;
pub mod behaviour;
mod binding;
mod caa;
mod certificates;
mod contact;
mod identifiers;
mod issuance;
mod jwk;
mod jws;
mod listener;
mod newer;
mod nonces;
mod orders;
mod protocol;
mod refusal;
mod request;
mod revocation;
mod rollover;
mod signing_request;
mod state;
pub mod statistics;
#[cfg(test)]
mod tests;
pub mod validation;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use zeroize::Zeroizing;

use self::behaviour::{Behaviours, Wanted};
pub use self::caa::{Account, Caa, NO_ACCOUNT};
use self::issuance::Authority;
use self::nonces::Nonces;
use self::orders::order_url;
use self::state::State;
use self::statistics::{Counters, Statistics};
use self::validation::Look;
use crate::model::{DnsName, Identifier};
use crate::serve::{self, Places};

const DAY: Duration = Duration::from_hours(24);

/// How the CA behaves; the default is Let's Encrypt's behaviour on a free port of 127.0.0.1.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Names in the server's own certificate. The listening address stands in every URL if it is among them, else the first name.
    pub names: Vec<Identifier>,
    /// Profiles on offer; the first one is for orders that ask for none.
    pub profiles: Vec<Profile>,
    /// MAC keys for external account binding, by key identifier (RFC 8555 §7.3.4).
    pub external_accounts: BTreeMap<String, MacKey>,
    /// Whether newAccount needs such a binding.
    pub external_account_required: bool,
    /// How long an order and its pending authorizations live.
    pub order_lifetime: Duration,
    /// How long a valid authorization lives.
    pub authorization_lifetime: Duration,
    /// Whether newOrder gives back an order for the same names that is pending or ready.
    pub reuse_orders: bool,
    /// Whether a new order takes over the account's valid authorizations.
    pub reuse_authorizations: bool,
    /// Names that are refused, with all names below them.
    pub blocked: Vec<DnsName>,
    /// How many of a hundred good nonces are refused.
    pub refuse_nonces_percent: u8,
    /// Seconds to send as Retry-After while a validation or an issuance is under way; Let's Encrypt sends none for validations.
    pub retry_after: Option<u32>,
    /// For whom CAA records are looked at before a name is taken as proven; none are looked at without.
    pub caa: Option<Caa>,
    /// With a duration, finalize answers `processing` and issues that much later; else it issues at once.
    pub finalize_delay: Option<Duration>,
    /// What it does that a good CA does not, or not always.
    pub behaviours: Vec<Wanted>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            names: loopback_names(),
            profiles: vec![
                Profile::new("classic", "ninety days", 90 * DAY),
                Profile::new("tlsserver", "forty-five days", 45 * DAY),
                Profile::new("shortlived", "160 hours", Duration::from_hours(160)),
            ],
            external_accounts: BTreeMap::new(),
            external_account_required: false,
            order_lifetime: 7 * DAY,
            authorization_lifetime: 30 * DAY,
            reuse_orders: true,
            reuse_authorizations: true,
            blocked: Vec::new(),
            refuse_nonces_percent: 0,
            retry_after: None,
            caa: None,
            finalize_delay: None,
            behaviours: Vec::new(),
        }
    }
}

/// One sort of certificate on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name, as orders ask for it.
    pub name: String,
    /// Sentence for people.
    pub description: String,
    /// How long its certificates are good.
    pub validity: Duration,
}

impl Profile {
    /// Describes a profile.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        validity: Duration,
    ) -> Self {
        Self { name: name.into(), description: description.into(), validity }
    }
}

/// The MAC key of an external account; does not print.
#[derive(Clone)]
pub struct MacKey(Zeroizing<Vec<u8>>);

impl MacKey {
    /// Wraps a key, decoded.
    pub fn new(octets: Vec<u8>) -> Self {
        Self(Zeroizing::new(octets))
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(..)")
    }
}

/// A CA at work; stops when dropped.
#[derive(Debug)]
pub struct Server {
    ca: Arc<Ca>,
    address: SocketAddr,
    stop: DropGuard,
    serving: JoinHandle<()>,
}

impl Server {
    /// The URL that clients are pointed to (RFC 8555 §7.1.1).
    pub fn directory_url(&self) -> String {
        self.ca.url("/directory")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The root of the certificates it issues, in PEM.
    pub fn root_pem(&self) -> &str {
        self.ca.authority.root()
    }

    /// The root of the alternate chains, in PEM.
    pub fn alternate_root_pem(&self) -> &str {
        self.ca.authority.alternate_root()
    }

    /// The root to trust when talking to it (`caBundle`), in PEM; the same that issues.
    pub fn tls_root_pem(&self) -> &str {
        self.ca.authority.root()
    }

    /// How many accounts it has made.
    pub fn accounts(&self) -> usize {
        self.ca.state().accounts.len()
    }

    /// The orders it has made: URLs, with their states in the RFC's words.
    pub fn orders(&self) -> BTreeMap<String, &'static str> {
        let state = self.ca.state();
        let orders = state.orders.iter();
        orders.map(|(id, o)| (order_url(&self.ca, *id), state.order_status(o).word())).collect()
    }

    /// What it was asked so far.
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
/// Fails when the address cannot be listened on, or when no keys can be made.
pub async fn serve(config: Config, look: Arc<dyn Look>) -> io::Result<Server> {
    let listener = TcpListener::bind(config.listen).await?;
    let address = listener.local_addr()?;
    let authority = Authority::new(Timestamp::now()).map_err(io::Error::other)?;
    let shown = authority.server(&config.names, Timestamp::now()).map_err(io::Error::other)?;
    let stop = CancellationToken::new();
    let ca = Arc::new(Ca {
        base: base_url(&config.names, address),
        nonces: Nonces::new(config.refuse_nonces_percent),
        state: Mutex::default(),
        counters: Counters::default(),
        stop: stop.clone(),
        behaviours: Behaviours::new(&config.behaviours),
        authority,
        look,
        config,
    });
    let wire = ca.behaviours.wire();
    let acceptor = listener::acceptor(shown, wire.protocol())?;
    let router = protocol::router(Arc::clone(&ca));
    let stopped = stop.clone();
    let served = move |stream| {
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stopped.clone());
        async move {
            let hello = stop.run_until_cancelled(serve::handshake(stream, &acceptor)).await;
            if let Some(stream) = hello.flatten() {
                wire.serve(stream, router, stop).await;
            }
        }
    };
    let serving =
        tokio::spawn(serve::accept_all(listener, Places::default(), stop.clone(), served));
    Ok(Server { ca, address, stop: stop.drop_guard(), serving })
}

/// Everything the request handlers share.
#[derive(Debug)]
struct Ca {
    config: Config,
    /// Beginning of every URL: scheme, host and port.
    base: String,
    authority: Authority,
    nonces: Nonces,
    state: Mutex<State>,
    counters: Counters,
    behaviours: Behaviours,
    look: Arc<dyn Look>,
    stop: CancellationToken,
}

impl Ca {
    /// The URL of a path of ours.
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// What the CA remembers; not to be held across an await.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The profile of that name, or the default one.
    fn profile(&self, name: Option<&str>) -> Option<&Profile> {
        match name {
            Some(name) => self.config.profiles.iter().find(|profile| profile.name == name),
            None => self.config.profiles.first(),
        }
    }

    /// Runs something in the background until it is done or the server stops.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }
}

fn loopback_names() -> Vec<Identifier> {
    let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    let localhost = Identifier::parse("localhost").ok();
    addresses.into_iter().map(Identifier::Ip).chain(localhost).collect()
}

fn base_url(names: &[Identifier], address: SocketAddr) -> String {
    let listening = Identifier::Ip(address.ip());
    let name =
        if names.contains(&listening) { &listening } else { names.first().unwrap_or(&listening) };
    let port = address.port();
    match name {
        Identifier::Ip(IpAddr::V6(ip)) => format!("https://[{ip}]:{port}"),
        Identifier::Ip(IpAddr::V4(_)) | Identifier::Dns(_) => format!("https://{name}:{port}"),
    }
}
