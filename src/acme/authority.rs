//! One CA, shared by all its accounts: connections, directory, nonces, and what was asked.

use std::collections::HashMap;
use std::fmt;
use std::iter::Sum;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::LOCATION;
use http::{HeaderMap, HeaderName, Method};
use jiff::{SignedDuration, Timestamp};
use reqwest::Client;
use tokio::time::Instant;
use url::Url;

use super::http::{JSON_LIMIT, Reply, TlsOptions, client, exchange};
use super::nonces::Nonces;
use super::wire::{self, Origin};
use super::{AccountKey, AcmeError, Directory, Fault, Session, headers};

pub(super) const REPLAY_NONCE: HeaderName = HeaderName::from_static("replay-nonce");
/// How long a directory is believed.
const DAY: Duration = Duration::from_secs(24 * 3600);
const REDIRECTS: usize = 5;

/// What the CA was asked, counted since start; refused nonces and what they cost stand apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Directory reads.
    pub directory: u64,
    /// Nonces fetched by themselves.
    pub nonces: u64,
    /// Signed requests that were answered otherwise than by badNonce.
    pub signed: u64,
    /// Signed requests answered by badNonce.
    pub refused_nonces: u64,
}

impl Sum for Requests {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            directory: sum.directory + one.directory,
            nonces: sum.nonces + one.nonces,
            signed: sum.signed + one.signed,
            refused_nonces: sum.refused_nonces + one.refused_nonces,
        })
    }
}

/// The CAs this process speaks with. Issuers of one server share its connections, directory and nonces, as long as
/// they trust it alike.
#[derive(Default)]
pub struct Clients {
    authorities: Mutex<HashMap<(String, TlsOptions), Arc<Authority>>>,
}

impl Clients {
    /// No CA yet.
    pub fn new() -> Self {
        Self::default()
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

    /// What all of them were asked.
    pub fn requests(&self) -> Requests {
        let authorities = self.authorities.lock().unwrap_or_else(PoisonError::into_inner);
        authorities.values().map(|authority| authority.requests()).sum()
    }

    fn authority(&self, server: &str, tls: &TlsOptions) -> Result<Arc<Authority>, AcmeError> {
        let key = (server.to_owned(), tls.clone());
        let mut authorities = self.authorities.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(authority) = authorities.get(&key) {
            return Ok(Arc::clone(authority));
        }
        let authority = Arc::new(Authority::new(server, tls)?);
        authorities.insert(key, Arc::clone(&authority));
        Ok(authority)
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clients({:?})", self.requests())
    }
}

/// One CA.
pub(super) struct Authority {
    pub(super) server: Url,
    pub(super) http: Client,
    pub(super) nonces: Nonces,
    directory: tokio::sync::Mutex<Option<(Instant, Arc<Directory>)>>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    directory: AtomicU64,
    nonces: AtomicU64,
    signed: AtomicU64,
    refused_nonces: AtomicU64,
}

/// A request that counts.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    Signed,
    RefusedNonce,
}

impl Authority {
    fn new(server: &str, tls: &TlsOptions) -> Result<Self, AcmeError> {
        let bad = |why: String| AcmeError::Transport {
            deed: "read",
            url: server.to_owned(),
            why,
            fault: Fault::NoSuchHost,
        };
        let url = Url::parse(server).map_err(|e| bad(format!("it is no URL: {e}")))?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(bad("it is no https URL".to_owned()));
        }
        Ok(Self {
            http: client(&url, tls)?,
            server: url,
            nonces: Nonces::new(),
            directory: tokio::sync::Mutex::default(),
            counts: Counts::default(),
        })
    }

    /// Reads URLs in an answer from there.
    pub(super) fn origin<'a>(&self, url: &'a Url) -> Origin<'a> {
        Origin { url, plain: self.server.scheme() == "http" }
    }

    /// The directory; read by one request while others wait for it.
    pub(super) async fn directory(&self) -> Result<Arc<Directory>, AcmeError> {
        let mut kept = self.directory.lock().await;
        if let Some((read, directory)) = kept.as_ref()
            && read.elapsed() < DAY
        {
            return Ok(Arc::clone(directory));
        }
        let reply = self.read_directory().await?;
        let directory = wire::directory(self.origin(&reply.url), &reply.body)
            .map_err(|why| protocol(&reply.url, why))?;
        let directory = Arc::new(directory);
        *kept = Some((Instant::now(), Arc::clone(&directory)));
        Ok(directory)
    }

    /// Has the directory read again: its URLs no longer lead anywhere.
    pub(super) async fn forget_directory(&self) {
        *self.directory.lock().await = None;
    }

    async fn read_directory(&self) -> Result<Reply, AcmeError> {
        let mut url = self.server.to_string();
        for _ in 0..=REDIRECTS {
            self.counts.directory.fetch_add(1, Ordering::Relaxed);
            let reply = exchange(self.http.get(&url), "read", &url, JSON_LIMIT).await?;
            match reply.status {
                200..=299 => return Ok(reply),
                301 | 302 | 303 | 307 | 308 => {
                    let target = headers::text(&reply.headers, &LOCATION)
                        .ok_or_else(|| protocol(&reply.url, "it redirects to nowhere"))?;
                    url = self
                        .origin(&reply.url)
                        .absolute(target)
                        .map_err(|why| protocol(&reply.url, why))?;
                }
                _ => return Err(refused(&reply)),
            }
        }
        Err(protocol(&self.server, format!("it redirects more than {REDIRECTS} times")))
    }

    /// A nonce from the pool, else a fetched one.
    pub(super) async fn nonce(&self) -> Result<String, AcmeError> {
        self.nonces.take(self.fetch_nonce()).await
    }

    /// Asks for a nonce by HEAD; some gateways refuse that, so then by GET (RFC 8555 §7.2).
    async fn fetch_nonce(&self) -> Result<String, AcmeError> {
        let url = self.directory().await?.new_nonce.clone();
        let mut last = None;
        for method in [Method::HEAD, Method::GET] {
            self.counts.nonces.fetch_add(1, Ordering::Relaxed);
            let request = self.http.request(method, &url);
            let reply = exchange(request, "take a nonce from", &url, JSON_LIMIT).await?;
            match (reply.status, nonce_of(&reply.headers)) {
                (200..=299, Some(nonce)) => return Ok(nonce),
                // A limit holds for GET as well.
                (429 | 503, _) => return Err(refused(&reply)),
                _ => last = Some(reply),
            }
        }
        match last {
            Some(reply) if reply.status >= 400 => {
                self.forget_directory().await;
                Err(refused(&reply))
            }
            Some(_) | None => Err(AcmeError::Protocol {
                url,
                why: "it carries no Replay-Nonce header".to_owned(),
            }),
        }
    }

    /// Counts a request.
    pub(super) fn count(&self, asked: Asked) {
        let counter = match asked {
            Asked::Signed => &self.counts.signed,
            Asked::RefusedNonce => &self.counts.refused_nonces,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn requests(&self) -> Requests {
        Requests {
            directory: self.counts.directory.load(Ordering::Relaxed),
            nonces: self.counts.nonces.load(Ordering::Relaxed),
            signed: self.counts.signed.load(Ordering::Relaxed),
            refused_nonces: self.counts.refused_nonces.load(Ordering::Relaxed),
        }
    }
}

/// The nonce in an answer, if it is one (RFC 8555 §6.5.1): one outside base64url could not be sent back.
pub(super) fn nonce_of(headers: &HeaderMap) -> Option<String> {
    let nonce = headers::text(headers, &REPLAY_NONCE)?;
    let base64url = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (!nonce.is_empty() && nonce.bytes().all(base64url)).then(|| nonce.to_owned())
}

/// The error that an answer of status 400 and above is.
pub(super) fn refused(reply: &Reply) -> AcmeError {
    let now = Timestamp::now();
    // Asked for no pause at all, or for one in the past, we still leave the CA a second.
    let soonest = now.saturating_add(SignedDuration::from_secs(1)).unwrap_or(now);
    let mut problem = wire::problem(reply.status, &reply.body);
    if problem.instance.is_none() && problem.short_kind() == "userActionRequired" {
        problem.instance = headers::links(&reply.headers, "terms-of-service").into_iter().next();
    }
    AcmeError::Refused {
        problem: Box::new(problem),
        retry_after: headers::retry_after(&reply.headers, now).map(|at| at.max(soonest)),
        location: headers::text(&reply.headers, &LOCATION).map(str::to_owned),
    }
}

/// The error that an answer is which no CA should give.
pub(super) fn protocol(url: &Url, why: impl Into<String>) -> AcmeError {
    AcmeError::Protocol { url: url.to_string(), why: why.into() }
}
