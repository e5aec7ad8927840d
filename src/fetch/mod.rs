//! One GET as a public CA makes it: one address at a time, ports 80 and 443, few redirects, a short body.
//!
//! Shared by our own CA's validation and by the self-check, so that a rehearsal and a check look alike; Pebble and
//! Boulder's recorded answers keep both honest.

mod connection;
mod overrides;
mod redirect;
mod reserved;
mod tls;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use url::{Host, Url};

use self::connection::{Answer, NoAnswer, Patience};
pub use self::overrides::{InvalidOverride, Overrides};
use crate::dns::{LookupError, Resolve};

/// How long a CA waits for a connection, and as long again for the answer.
const PATIENCE: Patience =
    Patience { connect: Duration::from_secs(10), answer: Duration::from_secs(10) };

/// The most bytes of a body that a CA reads.
pub const BODY_LIMIT: usize = 128;

/// Looks at web servers as a public CA does.
#[derive(Clone, Debug)]
pub struct Fetcher {
    /// Looks hosts up.
    pub resolver: Arc<dyn Resolve>,
    /// Where connections really go.
    pub overrides: Overrides,
}

/// What one look brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Every URL asked, the first one first, each with the address that answered or was tried last.
    pub hops: Vec<Hop>,
    /// The last answer, or why there is none.
    pub result: Result<Reply, FetchError>,
}

/// One URL asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// URL.
    pub url: String,
    /// Address.
    pub address: Option<SocketAddr>,
    /// HTTP status, if it answered.
    pub status: Option<u16>,
}

/// The last answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// At most 128 bytes of the body, more than which no CA reads.
    pub body: Vec<u8>,
    /// Whether there was more.
    pub truncated: bool,
}

/// Why there is no answer; texts are stable, since they are kept in a status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The host has no address.
    #[error(transparent)]
    Lookup(LookupError),
    /// No address took a connection, or none answered in time.
    #[error("{why}")]
    Connect {
        /// Last reason, such as `connection refused by 192.0.2.1:80`.
        why: String,
    },
    /// A redirect that no CA follows.
    #[error("redirect to {to}: {why}")]
    Redirect {
        /// Where it leads.
        to: String,
        /// Why it is not followed, in Boulder's words.
        why: String,
    },
    /// An answer that is no HTTP.
    #[error("{why}")]
    Malformed {
        /// What is wrong.
        why: String,
    },
}

impl Fetcher {
    /// Gets a URL and follows redirects by the rules of a public CA; takes at most 30 s for each hop.
    ///
    /// The first URL may name any port; a redirect only 80 or 443. Nothing is cached and no proxy is asked.
    pub async fn get(&self, url: &Url) -> Fetched {
        self.get_within(url, PATIENCE).await
    }

    async fn get_within(&self, url: &Url, patience: Patience) -> Fetched {
        let mut hops = Vec::new();
        let mut next = url.clone();
        loop {
            hops.push(Hop { url: next.to_string(), address: None, status: None });
            let answer = match self.ask(&next, &mut hops, patience).await {
                Ok(answer) => answer,
                Err(error) => return Fetched { hops, result: Err(error) },
            };
            let Some(location) = redirect::location(&answer) else {
                return Fetched { hops, result: Ok(answer.reply) };
            };
            let asked: Vec<&str> = hops.iter().map(|hop| hop.url.as_str()).collect();
            match redirect::target(&next, answer.reply.status, &location, &asked) {
                Ok(target) => next = target,
                Err(error) => return Fetched { hops, result: Err(error) },
            }
        }
    }

    /// Asks one URL; notes address and status in the last hop.
    async fn ask(
        &self,
        url: &Url,
        hops: &mut [Hop],
        patience: Patience,
    ) -> Result<Answer, FetchError> {
        let first_hop = hops.len() == 1;
        let addresses = self.addresses(url, first_hop).await?;
        let mut refusals = Vec::new();
        for address in addresses {
            if let Some(hop) = hops.last_mut() {
                hop.address = Some(address);
            }
            match connection::get(url, address, patience).await {
                Ok(answer) => {
                    if let Some(hop) = hops.last_mut() {
                        hop.status = Some(answer.reply.status);
                    }
                    return Ok(answer);
                }
                Err(NoAnswer::NotConnected(why)) => refusals.push(why),
                Err(NoAnswer::Silent(why)) => return Err(FetchError::Connect { why }),
                Err(NoAnswer::Malformed(why)) => return Err(FetchError::Malformed { why }),
            }
        }
        Err(FetchError::Connect { why: refusals.join("; ") })
    }

    /// The addresses to try: the first IPv6 address, and the first IPv4 address should it take no connection.
    ///
    /// After a redirect there is no second try: not every CA makes one.
    async fn addresses(&self, url: &Url, first_hop: bool) -> Result<Vec<SocketAddr>, FetchError> {
        let malformed = || FetchError::Malformed { why: format!("{url} has no host and port") };
        let port = url.port_or_known_default().ok_or_else(malformed)?;
        let (host, literal) = match url.host().ok_or_else(malformed)? {
            Host::Domain(name) => (name.trim_end_matches('.').to_owned(), None),
            Host::Ipv4(address) => (address.to_string(), Some(IpAddr::V4(address))),
            Host::Ipv6(address) => (address.to_string(), Some(IpAddr::V6(address))),
        };
        if let Some(address) = self.overrides.address(&host, port) {
            return Ok(vec![address]);
        }
        if let Some(address) = literal {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = self.resolver.addresses(&host).await.map_err(FetchError::Lookup)?;
        let six = found.iter().find(|address| address.is_ipv6());
        let four = found.iter().find(|address| address.is_ipv4());
        let tries = if first_hop { 2 } else { 1 };
        let in_order = six.into_iter().chain(four).take(tries);
        Ok(in_order.map(|address| SocketAddr::new(*address, port)).collect())
    }
}
