//! Requests to a CA that are not answered yet: since when, and whether the answer may be lost.
//!
//! When work ends, requests that only read are broken off after a second, and requests with an effect at the CA are
//! waited for: every wait is bounded, and nothing is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use reqwest::RequestBuilder;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::{AcmeError, Fault};
use super::transport::exchange;
use crate::http::exchange::{Reply, Transport};

/// Time after which an unanswered request is worth a report.
const LONG_SILENCE: Duration = Duration::from_secs(1);

/// Effect of a request at the CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// No effect: the request only reads, and the next one gets the same answer.
    None,
    /// A possible effect: an answer that is lost may cost an order.
    Some,
}

/// Requests under way at one CA.
pub(super) struct OpenRequests {
    asked: Mutex<BTreeMap<u64, OpenRequest>>,
    count: AtomicU64,
    has_answered: AtomicBool,
    no_reads: CancellationToken,
    carrier: Arc<dyn Transport>,
    now: OwnClock,
}

/// Function that returns the time.
pub(super) type OwnClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A request that is not answered yet.
#[derive(Clone, Debug)]
pub(super) struct OpenRequest {
    deed: &'static str,
    url: String,
    since: Instant,
}

/// Entry of one request under way; the entry is removed when this value is dropped.
struct Asking<'a> {
    all: &'a OpenRequests,
    number: u64,
}

impl OpenRequests {
    /// Makes an empty set; once the token is cancelled, reads end.
    pub(super) fn new(
        no_reads: CancellationToken,
        carrier: Arc<dyn Transport>,
        now: OwnClock,
    ) -> Self {
        let (count, has_answered) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { asked: Mutex::default(), count, has_answered, no_reads, carrier, now }
    }

    /// Sends a request, described by `deed`, and reads the answer, at most `limit` bytes.
    pub(super) async fn exchange(
        &self,
        (request, deed, effect): (RequestBuilder, &'static str, Effect),
        url: &str,
        limit: usize,
    ) -> Result<Reply, AcmeError> {
        let silence = OpenRequest { deed, url: url.to_owned(), since: Instant::now() };
        let _asking = self.begin(silence.clone());
        let exchange = exchange(&*self.carrier, (request, deed), url, limit);
        let mut reply = match effect {
            Effect::Some => exchange.await,
            Effect::None => self.while_read(silence, exchange).await,
        };
        if let Ok(reply) = &mut reply {
            reply.came = self.now();
            self.has_answered.store(true, Ordering::Relaxed);
        }
        reply
    }

    /// Awaits the preparation of a request, described by `deed`, unless reads are stopped.
    pub(super) async fn prepare<T>(
        &self,
        deed: &'static str,
        url: &str,
        wait: impl Future<Output = Result<T, AcmeError>>,
    ) -> Result<T, AcmeError> {
        let silence = OpenRequest { deed, url: url.to_owned(), since: Instant::now() };
        self.while_read(silence, wait).await
    }

    async fn while_read<T>(
        &self,
        silence: OpenRequest,
        wait: impl Future<Output = Result<T, AcmeError>>,
    ) -> Result<T, AcmeError> {
        tokio::select! {
            biased;
            () = self.no_reads.cancelled() => Err(silence.into()),
            done = wait => done,
        }
    }

    /// Time by the clock of the caller that waits for the moments that CAs name.
    pub(super) fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Returns whether any request was answered yet, errors included.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Returns the request that has been open longest.
    pub(super) fn oldest(&self) -> Option<OpenRequest> {
        self.asked.lock().values().next().cloned()
    }

    fn begin(&self, silence: OpenRequest) -> Asking<'_> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        self.asked.lock().insert(number, silence);
        Asking { all: self, number }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.all.asked.lock().remove(&self.number);
    }
}

impl OpenRequest {
    pub(super) fn length(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns whether the silence is worth a report; every answer takes a moment.
    pub(super) fn is_long(&self) -> bool {
        self.length() >= LONG_SILENCE
    }
}

/// Makes the error for a request that is no longer waited for, or would not be.
impl From<OpenRequest> for AcmeError {
    fn from(silence: OpenRequest) -> Self {
        let why = match silence.length().as_secs() {
            0 => "the work was ended before".to_owned(),
            seconds => format!("no answer for {seconds}s"),
        };
        Self::Transport { deed: silence.deed, url: silence.url, why, fault: Fault::Passing }
    }
}
