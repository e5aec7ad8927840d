//! The CAs this process speaks with.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::authority::{Authority, Counts, Requests};
use super::error::AcmeError;
use super::plain::PlainReply;
use super::telling::NamedUrl;
use super::transport::TlsOptions;
use super::under_way::{OwnClock, Silence, UnderWay};
use super::{AccountKey, Directory, RefusedRequests, Session};
use crate::http::client::Resolver;
use crate::http::exchange::{Carrier, Network, Reply};
use crate::model::request_rates::RequestRates;

/// The CAs this process speaks with. Issuers of one server share its connections, directory and nonces, as long as
/// they trust it alike.
pub struct Clients {
    resolver: Option<Resolver>,
    carrier: Arc<dyn Carrier>,
    now: OwnClock,
    /// Cancelled once nobody waits for reads any more.
    no_reads: CancellationToken,
    /// Those with which nobody has a session go when another one comes.
    pub(super) authorities: Mutex<HashMap<(String, TlsOptions), Arc<Authority>>>,
    counts: Arc<Counts>,
    refused: Arc<RefusedRequests>,
    /// Rates of every CA whose own are not known.
    rates: Option<&'static RequestRates>,
}

impl Clients {
    /// No CA yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with hosts looked up by that resolver instead of the system's, if there is one.
    pub fn with_resolver(resolver: Option<Resolver>) -> Self {
        Self { resolver, ..Self::default() }
    }

    /// The same, with everything carried by that in place of the network.
    #[must_use]
    pub fn carried_by(self, carrier: Arc<dyn Carrier>) -> Self {
        Self { carrier, ..self }
    }

    /// The same, by the clock of whoever waits for the moments that CAs name: a pause that another clock measures may be over at once.
    #[must_use]
    pub fn by_clock(self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), ..self }
    }

    /// The same, which ask for nothing that was refused before until a moment that is to come.
    #[must_use]
    pub fn remembering(self, refused: Arc<RefusedRequests>) -> Self {
        Self { refused, ..self }
    }

    /// The same, with these rates for every CA whose own are not known.
    #[must_use]
    pub fn with_rates(self, rates: Option<&'static RequestRates>) -> Self {
        Self { rates, ..self }
    }

    /// An account at the CA with that directory URL; without its URL it is registered, or looked up by its key.
    ///
    /// # Errors
    /// Fails when the URL is none, or the CA bundle holds no certificate; asks nobody.
    pub fn session(
        &self,
        server: &str,
        tls: &TlsOptions,
        key: AccountKey,
        account: Option<String>,
    ) -> Result<Session, AcmeError> {
        Ok(Session::new(self.authority(server, tls)?, key, account))
    }

    /// What the CA with that directory URL says of itself; no account is needed.
    ///
    /// # Errors
    /// Fails when the URL is none, the CA bundle holds no certificate, or no directory is there.
    pub async fn directory(
        &self,
        server: &str,
        tls: &TlsOptions,
    ) -> Result<Arc<Directory>, AcmeError> {
        self.authority(server, tls)?.directory().await
    }

    /// One GET of a URL of the CA with that directory URL, and what comes of it, whatever it is: no account is needed, and no
    /// redirect is followed.
    ///
    /// # Errors
    /// Fails when a URL is none, the CA bundle holds no certificate, or nothing comes.
    pub async fn plain(
        &self,
        server: &str,
        tls: &TlsOptions,
        url: &str,
    ) -> Result<PlainReply, AcmeError> {
        let asked = NamedUrl { what: "page", url };
        self.reply(server, tls, asked).await.map(PlainReply::from)
    }

    /// The same, with the whole answer.
    pub(super) async fn reply(
        &self,
        server: &str,
        tls: &TlsOptions,
        asked: NamedUrl<'_>,
    ) -> Result<Reply, AcmeError> {
        self.authority(server, tls)?.plain(asked).await
    }

    /// What all of them were asked.
    pub fn requests(&self) -> Requests {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Requests {
            directory: count(&self.counts.directory),
            nonces: count(&self.counts.nonces),
            signed: count(&self.counts.signed),
            refused_nonces: count(&self.counts.refused_nonces),
        }
    }

    /// What that server has been asked longest ago and not answered, if that is a while, as the fault that it would be.
    pub fn silence(&self, server: &str) -> Option<AcmeError> {
        let authorities = self.authorities.lock();
        let of_server = authorities.iter().filter(|((url, _), _)| url == server);
        let oldest = of_server.filter_map(|(_, authority)| authority.under_way.oldest());
        oldest.max_by_key(Silence::length).filter(Silence::is_long).map(AcmeError::from)
    }

    /// Tells whether that server has answered anything, an error included.
    pub fn has_answered(&self, server: &str) -> bool {
        let authorities = self.authorities.lock();
        let mut of_server = authorities.iter().filter(|((url, _), _)| url == server);
        of_server.any(|(_, authority)| authority.under_way.has_answered())
    }

    /// Breaks reads off, those under way and those to come: nothing is lost with their answers. What has an effect at the CA
    /// is sent, and its answer waited for.
    pub fn stop_reading(&self) {
        self.no_reads.cancel();
    }

    pub(super) fn authority(
        &self,
        server: &str,
        tls: &TlsOptions,
    ) -> Result<Arc<Authority>, AcmeError> {
        let key = (server.to_owned(), tls.clone());
        let mut authorities = self.authorities.lock();
        if let Some(authority) = authorities.get(&key) {
            return Ok(Arc::clone(authority));
        }
        let shared = (Arc::clone(&self.counts), Arc::clone(&self.refused));
        let under_way =
            UnderWay::new(self.no_reads.clone(), Arc::clone(&self.carrier), Arc::clone(&self.now));
        let rates = RequestRates::of_server(server).or(self.rates);
        let authority =
            Authority::new(server, tls, self.resolver.as_ref(), shared, under_way, rates)?;
        let authority = Arc::new(authority);
        authorities.retain(|_, known| Arc::strong_count(known) > 1);
        authorities.insert(key, Arc::clone(&authority));
        Ok(authority)
    }
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            resolver: None,
            carrier: Arc::new(Network),
            now: Arc::new(Timestamp::now),
            no_reads: CancellationToken::new(),
            authorities: Mutex::default(),
            counts: Arc::default(),
            refused: Arc::default(),
            rates: None,
        }
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clients({:?})", self.requests())
    }
}
