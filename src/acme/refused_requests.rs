//! Requests that a CA does not want before a moment: an equal request fails with the stored refusal until then, and no
//! request goes out.
//!
//! Several objects send equal requests: an Order and its Challenge read one authorization, Orders that share an order
//! read it, and a deleted object that is made again begins anew. Each knows only its own refusals, once written.

use std::collections::HashMap;

use aws_lc_rs::digest::{Context, SHA256};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::error::{AcmeError, Retry};

/// Most refusals that are kept, some kilobytes each; any further refusal is kept by its object alone.
const MAX_REFUSALS: usize = 10_000;

/// Refusals that hold until a moment, by request.
#[derive(Debug, Default)]
pub struct RefusedRequests(Mutex<HashMap<Fingerprint, (Timestamp, AcmeError)>>);

/// Identity of a request, without nonce and signature: SHA-256 of the key's thumbprint, the URL, and the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Makes the fingerprint of a request to a URL, signed by the key with that thumbprint; POST-as-GET has no payload.
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
    /// Keeps a refusal that names a moment, and only until that moment.
    pub(super) fn note(&self, request: Fingerprint, error: &AcmeError, now: Timestamp) {
        let Retry::At(until) = error.retry() else { return };
        let mut all = self.0.lock();
        all.retain(|_, (until, _)| now < *until);
        if all.len() < MAX_REFUSALS {
            all.insert(request, (until, error.clone()));
        }
    }

    /// Returns the refusal that still holds for a request.
    pub(super) fn of(&self, request: Fingerprint, now: Timestamp) -> Option<AcmeError> {
        let all = self.0.lock();
        let (_, error) = all.get(&request).filter(|(until, _)| now < *until)?;
        Some(error.clone())
    }
}
