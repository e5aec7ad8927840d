//! What a CA does not want to be asked before a moment: whoever asks the same meanwhile hears that refusal again, and no request goes
//! out.
//!
//! Several objects ask the same: an Order and its Challenge read one authorization, Orders that share an order read that, and what is
//! made again after it was deleted begins anew. Each keeps only what it was told itself, and only once that is written.

use std::collections::HashMap;

use aws_lc_rs::digest::{Context, SHA256};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::error::{AcmeError, Retry};

/// So many are kept at most, some kilobytes each; whatever is beyond is kept by its object alone.
const KEPT: usize = 10_000;

/// What CAs have refused until a moment, by request.
#[derive(Debug, Default)]
pub struct RefusedRequests(Mutex<HashMap<Fingerprint, (Timestamp, AcmeError)>>);

/// Tells one request from another, whatever its nonce and its signature are: SHA-256 of who asks, where, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of a request to a URL, signed by the key with that thumbprint; POST-as-GET has no payload.
    pub(super) fn of(thumbprint: &str, url: &str, payload: Option<&[u8]>) -> Self {
        let mut digest = Context::new(&SHA256);
        let sort = if payload.is_some() { "\0send\0" } else { "\0read\0" };
        let payload = payload.unwrap_or_default();
        for part in [thumbprint.as_bytes(), b"\0", url.as_bytes(), sort.as_bytes(), payload] {
            digest.update(part);
        }
        let mut octets = [0; 32];
        octets.copy_from_slice(digest.finish().as_ref());
        Self(octets)
    }
}

impl RefusedRequests {
    /// Keeps a refusal that names a moment, and no longer than until then.
    pub(super) fn note(&self, request: Fingerprint, error: &AcmeError, now: Timestamp) {
        let Retry::At(until) = error.retry() else { return };
        let mut all = self.0.lock();
        all.retain(|_, (until, _)| now < *until);
        if all.len() < KEPT {
            all.insert(request, (until, error.clone()));
        }
    }

    /// The refusal that still holds for a request.
    pub(super) fn of(&self, request: Fingerprint, now: Timestamp) -> Option<AcmeError> {
        let all = self.0.lock();
        let (_, error) = all.get(&request).filter(|(until, _)| now < *until)?;
        Some(error.clone())
    }
}
