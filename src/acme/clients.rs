//! Clients of the CAs that this process uses.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::authority::{Authority, Counts, Requests};
use super::error::AcmeError;
use super::telling::NamedUrl;
use super::transport::TlsOptions;
use super::under_way::{OpenRequest, OpenRequests, OwnClock};
use super::{AccountKey, Directory, RefusedRequests, Session};
use crate::http::client::Resolver;
use crate::http::exchange::{Network, Reply, Transport};
use crate::http::headers::{date, text};
use crate::model::observation::PlainAnswer;
use crate::model::request_rates::RequestRates;

/// Most characters of the body of a plain reply that are kept.
const BODY_START_CHARS: usize = 120;
/// Most characters of a header or a URL of a plain reply that are kept.
const MAX_TEXT_CHARS: usize = 300;
/// Most URLs of a plain reply's JSON object that are kept.
const MAX_URLS: usize = 12;

/// Clients of the CAs that this process uses. Issuers of one server share its connections, directory and nonces if
/// they trust the server alike.
pub struct Clients {
    resolver: Option<Resolver>,
    carrier: Arc<dyn Transport>,
    now: OwnClock,
    /// Cancelled once reads are stopped.
    no_reads: CancellationToken,
    /// CAs by server and trust. A CA without a session is removed when another CA is added.
    pub(super) authorities: Mutex<HashMap<(String, TlsOptions), Arc<Authority>>>,
    counts: Arc<Counts>,
    refused: Arc<RefusedRequests>,
    /// Request rates for each CA whose own rates are not known.
    rates: Option<&'static RequestRates>,
}

impl Clients {
    /// Makes the clients, of no CA yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the clients; `resolver`, if given, looks up hosts instead of the system's resolver.
    pub fn with_resolver(resolver: Option<Resolver>) -> Self {
        Self { resolver, ..Self::default() }
    }

    /// Sets the carrier of all requests, in place of the network.
    #[must_use]
    pub fn carried_by(self, carrier: Arc<dyn Transport>) -> Self {
        Self { carrier, ..self }
    }

    /// Sets the clock for the moments that CAs name: the waiting caller's. A pause by another clock may be over at once.
    #[must_use]
    pub fn by_clock(self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), ..self }
    }

    /// Sets the memory of refused requests: none of them is sent again before the moment that the CA named.
    #[must_use]
    pub fn remembering(self, refused: Arc<RefusedRequests>) -> Self {
        Self { refused, ..self }
    }

    /// Sets the request rates for each CA whose own rates are not known.
    #[must_use]
    pub fn with_rates(self, rates: Option<&'static RequestRates>) -> Self {
        Self { rates, ..self }
    }

    /// Opens a session at the CA with that directory URL; without a URL the account is registered or looked up by key.
    ///
    /// # Errors
    /// Fails if the URL is invalid, or the CA bundle holds no certificate; sends no request.
    pub fn session(
        &self,
        server: &str,
        tls: &TlsOptions,
        key: AccountKey,
        account: Option<String>,
    ) -> Result<Session, AcmeError> {
        Ok(Session::new(self.authority(server, tls)?, key, account))
    }

    /// Reads the directory of the CA with that directory URL; no account is needed.
    ///
    /// # Errors
    /// Fails if the URL is invalid, the CA bundle holds no certificate, or no directory is there.
    pub async fn directory(
        &self,
        server: &str,
        tls: &TlsOptions,
    ) -> Result<Arc<Directory>, AcmeError> {
        self.authority(server, tls)?.directory().await
    }

    /// Sends one GET of a URL of the CA with that directory URL and returns the answer, whatever its status. No account
    /// is needed, and no redirect is followed.
    ///
    /// # Errors
    /// Fails if a URL is invalid, the CA bundle holds no certificate, or no answer comes.
    pub async fn plain(
        &self,
        server: &str,
        tls: &TlsOptions,
        url: &str,
    ) -> Result<PlainReply, AcmeError> {
        let asked = NamedUrl { what: "page", url };
        self.reply(server, tls, asked).await.map(PlainReply::from)
    }

    /// Sends one GET like [`Self::plain`] and returns the whole answer.
    pub(super) async fn reply(
        &self,
        server: &str,
        tls: &TlsOptions,
        asked: NamedUrl<'_>,
    ) -> Result<Reply, AcmeError> {
        self.authority(server, tls)?.plain(asked).await
    }

    /// Returns the numbers of requests to all CAs.
    pub fn requests(&self) -> Requests {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Requests {
            directory: count(&self.counts.directory),
            nonces: count(&self.counts.nonces),
            signed: count(&self.counts.signed),
            refused_nonces: count(&self.counts.refused_nonces),
        }
    }

    /// Returns the longest unanswered request to that server as an error, if it has been open for a while.
    pub fn silence(&self, server: &str) -> Option<AcmeError> {
        let authorities = self.authorities.lock();
        let of_server = authorities.iter().filter(|((url, _), _)| url == server);
        let oldest = of_server.filter_map(|(_, authority)| authority.under_way.oldest());
        oldest.max_by_key(OpenRequest::length).filter(OpenRequest::is_long).map(AcmeError::from)
    }

    /// Returns whether that server has answered any request, errors included.
    pub fn has_answered(&self, server: &str) -> bool {
        let authorities = self.authorities.lock();
        let mut of_server = authorities.iter().filter(|((url, _), _)| url == server);
        of_server.any(|(_, authority)| authority.under_way.has_answered())
    }

    /// Stops reads, under way and to come: nothing is lost with their answers. Requests with an effect at the CA are
    /// still sent, and their answers waited for.
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
        let under_way = OpenRequests::new(
            self.no_reads.clone(),
            Arc::clone(&self.carrier),
            Arc::clone(&self.now),
        );
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

/// Reply to one GET of a URL of a CA, as it came: shows which server answers there.
#[derive(Clone, Debug)]
pub struct PlainReply {
    /// Facts of the reply.
    pub answer: PlainAnswer,
    /// The body.
    pub body: Vec<u8>,
}

impl From<Reply> for PlainReply {
    fn from(reply: Reply) -> Self {
        let bounded = |text: &str| text.chars().take(MAX_TEXT_CHARS).collect::<String>();
        let header = |name| bounded(text(&reply.headers, &name).unwrap_or_default());
        let members = match serde_json::from_slice(&reply.body) {
            Ok(Value::Object(members)) => members,
            _ => serde_json::Map::new(),
        };
        let urls = members.into_iter().filter_map(|(name, value)| match value {
            Value::String(url) if url.contains("://") => Some((bounded(&name), bounded(&url))),
            _ => None,
        });
        let answer = PlainAnswer {
            status: reply.status.as_u16(),
            date: date(&reply.headers),
            came: reply.came,
            content_type: header(CONTENT_TYPE),
            location: header(LOCATION),
            retry_after: header(RETRY_AFTER),
            start: String::from_utf8_lossy(&reply.body).chars().take(BODY_START_CHARS).collect(),
            members: urls.take(MAX_URLS).collect(),
        };
        Self { answer, body: reply.body }
    }
}
