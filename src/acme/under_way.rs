//! What is asked of a CA and not answered yet: since when, and whether the answer may be lost.
//!
//! When work ends, what only reads is broken off after a second, and what has an effect at the CA is waited for: every
//! wait is bounded, and nothing is lost.

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
use crate::http::exchange::{Carrier, Reply};

/// What is not answered within this time is worth a word.
const LONG: Duration = Duration::from_secs(1);

/// Whether a request does something at the CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only reads: whoever asks again hears the same.
    None,
    /// It may: an answer that is lost may cost an order.
    Some,
}

/// Requests under way at one CA.
pub(super) struct UnderWay {
    asked: Mutex<BTreeMap<u64, Silence>>,
    count: AtomicU64,
    has_answered: AtomicBool,
    no_reads: CancellationToken,
    carrier: Arc<dyn Carrier>,
    now: OwnClock,
}

/// Tells the time.
pub(super) type OwnClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A request that is not answered yet.
#[derive(Clone, Debug)]
pub(super) struct Silence {
    deed: &'static str,
    url: String,
    since: Instant,
}

/// One of those requests; none any more once this is dropped.
struct Asking<'a> {
    all: &'a UnderWay,
    number: u64,
}

impl UnderWay {
    /// Nothing asked yet; once the token is cancelled, nothing is read any more.
    pub(super) fn new(
        no_reads: CancellationToken,
        carrier: Arc<dyn Carrier>,
        now: OwnClock,
    ) -> Self {
        let (count, has_answered) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { asked: Mutex::default(), count, has_answered, no_reads, carrier, now }
    }

    /// Sends a request, named by its deed, and reads the answer, up to `limit` bytes of it.
    pub(super) async fn exchange(
        &self,
        (request, deed, effect): (RequestBuilder, &'static str, Effect),
        url: &str,
        limit: usize,
    ) -> Result<Reply, AcmeError> {
        let silence = Silence { deed, url: url.to_owned(), since: Instant::now() };
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

    /// Waits for what comes before a request, named by its deed, while anything is read.
    pub(super) async fn prepare<T>(
        &self,
        deed: &'static str,
        url: &str,
        wait: impl Future<Output = Result<T, AcmeError>>,
    ) -> Result<T, AcmeError> {
        let silence = Silence { deed, url: url.to_owned(), since: Instant::now() };
        self.while_read(silence, wait).await
    }

    async fn while_read<T>(
        &self,
        silence: Silence,
        wait: impl Future<Output = Result<T, AcmeError>>,
    ) -> Result<T, AcmeError> {
        tokio::select! {
            biased;
            () = self.no_reads.cancelled() => Err(silence.into()),
            done = wait => done,
        }
    }

    /// The moment, by the clock of whoever waits for those that CAs name.
    pub(super) fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Tells whether anything was answered yet, be it by an error.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// What was asked longest ago.
    pub(super) fn oldest(&self) -> Option<Silence> {
        self.asked.lock().values().next().cloned()
    }

    fn begin(&self, silence: Silence) -> Asking<'_> {
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

impl Silence {
    pub(super) fn length(&self) -> Duration {
        self.since.elapsed()
    }

    /// Every answer takes a moment.
    pub(super) fn is_long(&self) -> bool {
        self.length() >= LONG
    }
}

/// It is not waited for any longer, or would not be.
impl From<Silence> for AcmeError {
    fn from(silence: Silence) -> Self {
        let why = match silence.length().as_secs() {
            0 => "the work was ended before".to_owned(),
            seconds => format!("no answer for {seconds}s"),
        };
        Self::Transport { deed: silence.deed, url: silence.url, why, fault: Fault::Passing }
    }
}
