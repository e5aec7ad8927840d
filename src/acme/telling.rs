//! Log of the requests to a CA: each request with its kind and outcome; at level debug also request and answer in full,
//! without signatures and secrets.

use http::header::{LOCATION, RETRY_AFTER};
use serde_json::json;
use tokio::time::Instant;
use tracing::{Level, debug, enabled, info};

use super::error::AcmeError;
use super::jws::{Identity, Signer};
use crate::http::exchange::Reply;
use crate::http::headers::text;
use crate::model::masked;

/// Kind of a request, in the words of RFC 8555, and its URL.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedUrl<'a> {
    /// Kind, such as `newOrder`.
    pub(super) what: &'static str,
    /// URL.
    pub(super) url: &'a str,
}

/// Logs a signed request: the signer and the payload.
pub(super) fn signing(
    asked: NamedUrl<'_>,
    signer: &Signer,
    identity: Identity<'_>,
    payload: Option<&[u8]>,
) {
    if !enabled!(Level::DEBUG) {
        return;
    }
    let NamedUrl { what, url } = asked;
    let header = match identity {
        Identity::Key => json!({ "thumbprint": signer.jwk().thumbprint(), "url": url }),
        Identity::Account(account) => json!({ "kid": account, "url": url }),
    };
    let payload = payload.map(masked::body).unwrap_or_default();
    debug!(what, %header, payload, "asks the CA");
}

/// Request that is logged once it is answered.
pub(super) struct RequestLog<'a> {
    method: &'static str,
    asked: NamedUrl<'a>,
    began: Instant,
}

impl<'a> RequestLog<'a> {
    /// Starts the measurement of a request.
    pub(super) fn begin(method: &'static str, asked: NamedUrl<'a>) -> Self {
        Self { method, asked, began: Instant::now() }
    }

    /// Logs the answer, or why there is none.
    pub(super) fn end(self, answered: Result<Reply, AcmeError>) -> Result<Reply, AcmeError> {
        let Self { method, asked: NamedUrl { what, url }, began } = self;
        let (url, took) = (masked::url(url), format!("{}ms", began.elapsed().as_millis()));
        match &answered {
            Ok(reply) => {
                let status = reply.status.as_u16();
                info!(method, what, status, took, url, "asked the CA");
                if enabled!(Level::DEBUG) {
                    let [location, retry_after] =
                        [LOCATION, RETRY_AFTER].map(|name| text(&reply.headers, &name));
                    let body = masked::body(&reply.body);
                    debug!(what, status, location, retry_after, body, "the CA answers");
                }
            }
            Err(error) => info!(method, what, took, url, %error, "asked the CA in vain"),
        }
        answered
    }
}
