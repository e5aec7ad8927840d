//! Certificate of a ready order (RFC 8555 §7.4, §7.4.2): finalize, and the two chains.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_TYPE, LINK, LOCATION};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::sleep;

use super::context::Ca;
use super::issuance::{Chain, Leaf, Lifetime, SubjectKey};
use super::orders::{order_url, view};
use super::refusal::{Kind, Refusal};
use super::reply::{answer, retry_after_header};
use super::request::{Signed, absent_if_null};
use super::state::{self, Id, Issuance, Issued, Status};
use super::{caa, plain, signing_request};

/// Retry-After that Boulder sends while it issues, in seconds.
const ISSUING_RETRY_AFTER: u32 = 3;

/// Payload of finalize.
#[derive(Deserialize)]
struct FinalizeRequest {
    #[serde(default, deserialize_with = "absent_if_null")]
    csr: String,
}

/// Takes a signing request; issues at once or a little later. A refused request leaves the order ready.
pub(super) async fn finalize(
    State(ca): State<Arc<Ca>>,
    Path(id): Path<Id>,
    signed: Signed,
) -> Result<Response, Refusal> {
    let account = signed.account()?;
    let wish: FinalizeRequest = signed.payload()?;
    let now = ca.now();
    let (key, outdated) = {
        let state = ca.state();
        let order = ready(&state, id, account, now)?;
        let request = BASE64_URL_SAFE_NO_PAD
            .decode(&wish.csr)
            .map_err(|_| Refusal::malformed("Error unmarshaling finalize order request"))?;
        let account_key = state.accounts.get(&account).map(|account| &account.key);
        let key = signing_request::check(&request, &order.identifiers, account_key)?;
        (key, caa::outdated(&state, order, now))
    };
    caa::check_again(&ca, &outdated, account).await?;
    let mut state = ca.state();
    // Another request may have been quicker in the meantime.
    ready(&state, id, account, now)?;
    let mut wait = None;
    if let Some(delay) = ca.config.finalize_delay {
        record(&mut state, id, Issuance::UnderWay);
        wait = Some(issuing_wait(&ca));
        ca.spawn(issue_later(Arc::clone(&ca), id, key, delay));
    } else {
        issue(&ca, &mut state, id, &key, now);
    }
    let order = state.order(id, account, now)?;
    let location = (LOCATION, order_url(&signed.base, id));
    let view = view(&ca, &signed.base, &state, (id, order));
    Ok(answer(Json(view), wait.into_iter().chain([location])))
}

/// Returns the header that tells a client when to ask again for a processing order.
pub(super) fn issuing_wait(ca: &Ca) -> (HeaderName, String) {
    retry_after_header(ca, ca.config.retry_after.unwrap_or(ISSUING_RETRY_AFTER))
}

/// Returns an order that waits for its signing request.
fn ready(
    state: &state::State,
    id: Id,
    account: Id,
    now: Timestamp,
) -> Result<&state::Order, Refusal> {
    let order = state.order(id, account, now)?;
    let status = state.order_status(order);
    if status == Status::Ready {
        return Ok(order);
    }
    let detail =
        format!("Order's status (\"{}\") is not acceptable for finalization", status.word());
    Err(Refusal::new(Kind::OrderNotReady, detail))
}

/// Sends the usual chain.
pub(super) async fn certificate(
    State(ca): State<Arc<Ca>>,
    Path(serial): Path<String>,
    signed: Signed,
) -> Result<Response, Refusal> {
    download(&ca, &serial, Chain::Usual, &signed)
}

/// Sends the chain of a number: 0 is the usual chain, 1 the alternate.
pub(super) async fn certificate_chain(
    State(ca): State<Arc<Ca>>,
    Path((serial, number)): Path<(String, u8)>,
    signed: Signed,
) -> Result<Response, Refusal> {
    let chain = match number {
        0 => Chain::Usual,
        1 => Chain::Alternate,
        2.. => return Err(Refusal::not_found("Certificate not found")),
    };
    download(&ca, &serial, chain, &signed)
}

fn download(ca: &Ca, serial: &str, chain: Chain, signed: &Signed) -> Result<Response, Refusal> {
    let account = signed.account()?;
    signed.must_be_read()?;
    let state = ca.state();
    let Some(certificate) = state.certificates.get(serial) else {
        return Err(Refusal::not_found("Certificate not found"));
    };
    if certificate.account != account {
        let detail = "Account in use did not issue specified certificate";
        return Err(Refusal::new(Kind::Unauthorized, detail));
    }
    let other = match chain {
        Chain::Usual => 1,
        Chain::Alternate => 0,
    };
    let other = signed.base.url(&format!("/acme/certificate/{serial}/{other}"));
    let text = ca.authority.chain(&certificate.der, chain);
    let mut response = answer(text, [(LINK, format!("<{other}>;rel=\"alternate\""))]);
    let content_type = HeaderValue::from_static("application/pem-certificate-chain");
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    Ok(response)
}

async fn issue_later(ca: Arc<Ca>, id: Id, key: SubjectKey, delay: std::time::Duration) {
    sleep(delay).await;
    let mut state = ca.state();
    issue(&ca, &mut state, id, &key, ca.now());
}

/// Signs the certificate of an order and stores it.
pub(super) fn issue(ca: &Ca, state: &mut state::State, id: Id, key: &SubjectKey, now: Timestamp) {
    let Some(order) = state.orders.get(&id) else {
        return;
    };
    let lifetime = match (order.not_after, ca.profile(order.profile.as_deref())) {
        (Some(moment), _) => Lifetime::Until(moment),
        (None, Some(profile)) => Lifetime::Of(profile),
        (None, None) => Lifetime::For(std::time::Duration::ZERO),
    };
    let account = state.accounts.get(&order.account);
    let revocation = plain::urls(ca, account.map_or(&ca.base, |account| &account.base));
    let leaf = Leaf { identifiers: &order.identifiers, key, lifetime, revocation: &revocation };
    let issuance = match ca.authority.issue(&leaf, now) {
        Ok(signed) => {
            let issued = Issued {
                account: order.account,
                identifiers: order.identifiers.clone(),
                der: signed.der,
                at: now,
                revoked: None,
                renewal_info: None,
            };
            state.certificates.insert(signed.serial.clone(), issued);
            Issuance::Done(signed.serial)
        }
        Err(error) => {
            tracing::error!(%error, order = id, "cannot issue");
            Issuance::Failed
        }
    };
    record(state, id, issuance);
}

fn record(state: &mut state::State, id: Id, issuance: Issuance) {
    if let Some(order) = state.orders.get_mut(&id) {
        order.issuance = issuance;
    }
}
