//! Orders (RFC 8555 §7.4): creation and reading. [`super::certificates`] has finalize and download.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::authorizations::retry_after;
use super::base_url::BaseUrl;
use super::chance::Choice;
use super::context::Ca;
use super::identifiers::{self, RequestedIdentifier};
use super::issuance::latest_end;
use super::nonces::random_text;
use super::refusal::{Kind, Refusal, identifier_json};
use super::renewal;
use super::reply::answer;
use super::request::{Signed, absent_if_null};
use super::state::{self, Authorization, Id, Issuance, Order, Status, after, rfc3339};

/// Payload of newOrder.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewOrder {
    #[serde(default, deserialize_with = "absent_if_null")]
    identifiers: Vec<RequestedIdentifier>,
    profile: Option<String>,
    not_before: Option<String>,
    not_after: Option<String>,
    /// Certificate that the order is to replace (RFC 9773 §5).
    replaces: Option<String>,
}

/// Makes an order, or returns the account's present order for the same request.
pub(super) async fn new_order(
    State(ca): State<Arc<Ca>>,
    signed: Signed,
) -> Result<Response, Refusal> {
    let account = signed.account()?;
    let now = ca.now();
    let order = wished_order(&ca, account, &signed.payload()?, now)?;
    let mut state = ca.state();
    state.forget_expired(now);
    let same = state.same_order(&order, now).filter(|id| {
        ca.config.reuse_orders
            && ca.chance.happens(ca.config.reuse_percent, (Choice::OrderReuse, *id))
    });
    let id = if let Some(id) = same {
        id
    } else {
        renewal::check_replacement(&state, &order)?;
        add(&ca, &mut state, order, now)?
    };
    let view = view(&ca, &signed.base, &state, (id, state.order(id, account, now)?));
    Ok(answer((StatusCode::CREATED, Json(view)), [(LOCATION, order_url(&signed.base, id))]))
}

/// Reads an order.
pub(super) async fn order(
    State(ca): State<Arc<Ca>>,
    Path(id): Path<Id>,
    signed: Signed,
) -> Result<Response, Refusal> {
    let account = signed.account()?;
    signed.must_be_read()?;
    let state = ca.state();
    let order = state.order(id, account, ca.now())?;
    let wait = retry_after(&ca, state.is_moving(order));
    let location = (LOCATION, order_url(&signed.base, id));
    let view = view(&ca, &signed.base, &state, (id, order));
    Ok(answer(Json(view), wait.into_iter().chain([location])))
}

/// Returns the URL of an order.
pub(super) fn order_url(base: &BaseUrl, id: Id) -> String {
    base.url(&format!("/acme/order/{id}"))
}

/// Returns the order object (§7.1.3). An invalid order has no error of its own, as at Boulder: the challenge has the error.
pub(super) fn view(
    ca: &Ca,
    base: &BaseUrl,
    state: &state::State,
    (id, order): (Id, &Order),
) -> Value {
    let authorization_url = |id: &Id| base.url(&format!("/acme/authorization/{id}"));
    let mut identifiers: Vec<_> = order.identifiers.iter().map(identifier_json).collect();
    let mut authorizations: Vec<_> = order.authorizations.iter().map(authorization_url).collect();
    if ca.config.shuffled {
        ca.chance.shuffle(&mut identifiers, (Choice::Identifiers, id));
        ca.chance.shuffle(&mut authorizations, (Choice::Authorizations, id));
    }
    let mut view = json!({
        "status": state.order_status(order),
        "expires": rfc3339(order.expires),
        "identifiers": identifiers,
        "authorizations": authorizations,
        "finalize": base.url(&format!("/acme/finalize/{id}")),
    });
    if let Some(profile) = &order.profile {
        view["profile"] = profile.as_str().into();
    }
    if let Some(not_after) = order.not_after {
        view["notAfter"] = rfc3339(not_after).into();
    }
    if let Some(id) = &order.replaces {
        view["replaces"] = id.as_str().into();
    }
    if let Issuance::Done(serial) = &order.issuance {
        view["certificate"] = base.url(&format!("/acme/certificate/{serial}")).into();
    }
    view
}

/// Returns the requested order, fully checked and without authorizations.
fn wished_order(ca: &Ca, account: Id, wish: &NewOrder, now: Timestamp) -> Result<Order, Refusal> {
    let identifiers = identifiers::check(&wish.identifiers, &ca.config.blocked)?;
    let Some(profile) = ca.profile(wish.profile.as_deref()) else {
        let name = wish.profile.as_deref().unwrap_or_default();
        let detail = format!("profile name \"{name}\" not recognized");
        return Err(Refusal::new(Kind::InvalidProfile, detail));
    };
    if wish.not_before.is_some() {
        return Err(Refusal::malformed("NotBefore is not supported"));
    }
    let latest = latest_end(profile, now);
    let not_after = wish.not_after.as_deref().map(|text| not_after(text, now, latest));
    Ok(Order {
        account,
        identifiers,
        profile: wish.profile.clone(),
        not_after: not_after.transpose()?,
        expires: after(now, ca.config.order_lifetime),
        authorizations: Vec::new(),
        issuance: Issuance::NotAsked,
        replaces: wish.replaces.clone(),
    })
}

/// Reads a requested end, which must lie in the future and within the limit of the profile.
fn not_after(text: &str, now: Timestamp, latest: Timestamp) -> Result<Timestamp, Refusal> {
    let wished: Timestamp = text
        .parse()
        .map_err(|_| Refusal::malformed(format!("NotAfter \"{text}\" is no RFC 3339 time")))?;
    if wished <= now || wished > latest {
        let detail = format!(
            "NotAfter must lie between now and {}, which is as long as the profile allows",
            rfc3339(latest)
        );
        return Err(Refusal::malformed(detail));
    }
    Ok(wished)
}

/// Stores a new order, with an authorization for each identifier.
fn add(ca: &Ca, state: &mut state::State, order: Order, now: Timestamp) -> Result<Id, Refusal> {
    let mut order = order;
    let orders = Id::try_from(state.orders.len()).unwrap_or_default();
    for identifier in order.identifiers.clone() {
        let profile = order.profile.as_deref();
        let reusable = state
            .reusable_authorization(order.account, &identifier, profile, order.expires)
            .filter(|reusable| {
                // The choice differs from order to order.
                let chosen = (Choice::AuthorizationReuse, reusable ^ orders.rotate_left(32));
                ca.config.reuse_authorizations && ca.chance.happens(ca.config.reuse_percent, chosen)
            });
        let id = match reusable {
            Some(id) => id,
            None => add_authorization(ca, state, &order, identifier)?,
        };
        order.authorizations.push(id);
    }
    let id = state.next_id();
    tracing::debug!(order = id, names = order.identifiers.len(), at = %now, "order made");
    state.orders.insert(id, order);
    Ok(id)
}

fn add_authorization(
    ca: &Ca,
    state: &mut state::State,
    order: &Order,
    identifier: crate::model::Identifier,
) -> Result<Id, Refusal> {
    let authorization = Authorization {
        account: order.account,
        identifier,
        profile: order.profile.clone(),
        token: random_text::<32>(&ca.surroundings).map_err(|error| Refusal::internal(&error))?,
        expires: order.expires,
        status: Status::Pending,
        being_validated: false,
        validation: None,
    };
    let id = state.next_id();
    state.authorizations.insert(id, authorization);
    Ok(id)
}
