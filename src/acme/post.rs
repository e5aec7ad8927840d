//! One signed request: nonce, sign, send, and again while the nonce is refused.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use tokio::time::Instant;

use super::AccountKey;
use super::authority::{Authority, CountedRequest, nonce_of, protocol};
use super::error::{AcmeError, Fault, Retry};
use super::jws::{Identity, Signer, json};
use super::nonces::NonceUse;
use super::refusal::refused;
use super::refused_requests::Fingerprint;
use super::telling::{NamedUrl, RequestLog, signing};
use super::under_way::Effect;
use crate::http::exchange::Reply;
use crate::http::headers::text;
use crate::model::request_rates::Endpoint;

/// Most attempts of one request while its nonces are refused: at a CA that refuses every other nonce, only one request
/// in a million fails.
pub(super) const MAX_ATTEMPTS: u32 = 20;
/// Number of attempts that are sent at once; later attempts follow growing pauses.
const IMMEDIATE_ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// Longest time until a break after which a read is repeated at once; waiting for a slow CA is up to the caller.
const QUICK_FAILURE_MAX: Duration = Duration::from_secs(2);
const ACCEPTED: &str = "application/pem-certificate-chain, application/json;q=0.9, */*;q=0.1";

/// Payload of a request.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    /// No payload: POST-as-GET (RFC 8555 §6.3).
    Read,
    /// JSON.
    Send(&'a [u8]),
}

impl<'a> Payload<'a> {
    fn body(self) -> Option<&'a [u8]> {
        match self {
            Self::Read => None,
            Self::Send(body) => Some(body),
        }
    }
}

/// Sends a request until its nonce is taken (RFC 8555 §6.5); at most `limit` bytes of the answer are read. A request
/// that the CA does not want before a moment is refused here until then.
pub(super) async fn post(
    authority: &Authority,
    key: &AccountKey,
    identity: Identity<'_>,
    asked: NamedUrl<'_>,
    payload: Payload<'_>,
    limit: usize,
) -> Result<Reply, AcmeError> {
    let url = asked.url;
    admissible(authority, url)?;
    let request = Fingerprint::of(key.thumbprint(), url, payload.body());
    let refusal = || authority.refused.of(request, authority.under_way.now());
    if let Some(refusal) = refusal() {
        return Err(refusal);
    }
    // Nonces are taken within a place: no more of them are needed than there are places, and answers bring them back.
    let place = authority.place().await?;
    let signer = key.signer();
    let mut fresh = None;
    let mut pause = FIRST_PAUSE;
    let mut attempt = 0;
    loop {
        attempt += 1;
        authority.pace.turn(Endpoint::named(asked.what)).await;
        let (nonce, pooled) = match fresh.take() {
            Some(nonce) => (nonce, false),
            None => (authority.nonce().await?, true),
        };
        // An equal request may have been refused while this request waited.
        if let Some(refusal) = refusal() {
            authority.nonces.put(nonce);
            return Err(refusal);
        }
        let started = Instant::now();
        let sent = send_once(authority, signer, identity, asked, payload, limit, &nonce).await;
        place.ended(&sent);
        let reply = match sent {
            Ok(reply) => reply,
            // Reading has no effect at the CA: a connection that broke under way is worth a second try, an answer that is too long is not.
            Err(error) => match (payload, &error, error.retry()) {
                (Payload::Read, AcmeError::Transport { .. }, Retry::Backoff)
                    if attempt == 1 && started.elapsed() < QUICK_FAILURE_MAX =>
                {
                    continue;
                }
                _ => return Err(error),
            },
        };
        let status = reply.status.as_u16();
        let given = nonce_of(&reply.headers);
        // A problem document is a refusal, whatever the status of the answer.
        let is_refusal = status >= 400 || is_problem(&reply);
        let error = is_refusal.then(|| {
            let account = match identity {
                Identity::Account(account) => Some(account),
                Identity::Key => None,
            };
            authority.named.judge(refused(&reply), url, account)
        });
        let bad_nonce = error.as_ref().is_some_and(is_bad_nonce);
        authority.count(if bad_nonce {
            CountedRequest::RefusedNonce
        } else {
            CountedRequest::Signed
        });
        if pooled {
            let verdict = if bad_nonce { NonceUse::Refused } else { NonceUse::Taken };
            authority.nonces.judged(verdict);
        }
        if bad_nonce && attempt < MAX_ATTEMPTS {
            // The retry has to use the nonce of the refusal, if it brought one.
            fresh = given;
            if attempt >= IMMEDIATE_ATTEMPTS {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            continue;
        }
        if let Some(nonce) = given {
            authority.nonces.put(nonce);
        }
        return match error {
            Some(error) => {
                authority.refused.note(request, &error, reply.came);
                Err(error)
            }
            None if status >= 300 => {
                Err(protocol(&reply.url, format!("status {status} to a signed request")))
            }
            None => Ok(reply),
        };
    }
}

/// Makes the error for a key that does not sign, which takes a broken crypto library.
pub(super) fn unsigned(url: &str) -> AcmeError {
    AcmeError::Transport {
        deed: "sign a request to",
        url: url.to_owned(),
        why: "the crypto library failed".to_owned(),
        fault: Fault::Passing,
    }
}

/// Checks a URL from the store by the rules for a URL from an answer.
fn admissible(authority: &Authority, url: &str) -> Result<(), AcmeError> {
    let why = match authority.origin(&authority.server).absolute(url) {
        Ok(absolute) if absolute == url => return Ok(()),
        Ok(_) => "it is no absolute URL".to_owned(),
        Err(why) => why,
    };
    Err(AcmeError::Transport { deed: "ask", url: url.to_owned(), why, fault: Fault::Unusable })
}

async fn send_once(
    authority: &Authority,
    signer: &Signer,
    identity: Identity<'_>,
    asked: NamedUrl<'_>,
    payload: Payload<'_>,
    limit: usize,
    nonce: &str,
) -> Result<Reply, AcmeError> {
    let url = asked.url;
    let body = payload.body();
    let (deed, effect) = match payload {
        Payload::Read => ("read", Effect::None),
        Payload::Send(_) => ("post to", Effect::Some),
    };
    let jws = signer.request(identity, nonce, url, body).map_err(|_| unsigned(url))?;
    let request = authority
        .http
        .post(url)
        .header(CONTENT_TYPE, "application/jose+json")
        .header(ACCEPT, ACCEPTED)
        .body(json(&jws));
    signing(asked, signer, identity, body);
    let telling = RequestLog::begin("POST", asked);
    telling.end(authority.under_way.exchange((request, deed, effect), url, limit).await)
}

/// Returns whether an answer is declared as a problem document.
fn is_problem(reply: &Reply) -> bool {
    let kind = text(&reply.headers, &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    kind.starts_with("application/problem+json")
}

/// Returns whether an error is badNonce, by the last part of the problem's type: namespaces and statuses differ.
fn is_bad_nonce(error: &AcmeError) -> bool {
    error.problem().is_some_and(|problem| problem.short_kind() == "badNonce")
}
