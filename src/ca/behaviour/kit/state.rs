//! Changes that behaviours make in the CA's memory.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rcgen::KeyPair;
use serde_json::{Value as Json, json};

use super::super::super::certificates::issue;
use super::super::super::issuance::SubjectKey;
use super::super::super::orders;
use super::super::super::refusal::{Kind, Refusal};
use super::super::super::state::{Authorization, Id, Issuance, Method, Status, Validation};
use super::super::super::validation::{conclude, probe, validate};
use super::super::rule::RequestScene;

/// Returns the number at the end of a URL.
pub(super) fn id_in(url: &Json) -> Option<Id> {
    url.as_str()?.rsplit('/').next()?.parse().ok()
}

/// Returns the account that sends the request.
pub(super) fn account(scene: &RequestScene<'_>) -> Option<Id> {
    id_in(&scene.asked.header()?["kid"])
}

/// Returns a name of a new order that failed at least as many validations within an hour as the value, and the end of
/// that hour for the first failure (Let's Encrypt's "authorization failures per identifier per account").
pub(super) fn failed_too_often(scene: &RequestScene<'_>) -> Option<(String, Timestamp)> {
    let (account, payload) = (account(scene)?, scene.asked.payload()?);
    let names = payload["identifiers"].as_array()?.iter().filter_map(|it| it["value"].as_str());
    let hour = SignedDuration::from_hours(1);
    let since = Timestamp::now() - hour;
    let state = scene.ca.state();
    names.into_iter().find_map(|name| {
        let own = state.authorizations.values().filter(|authorization| {
            authorization.account == account
                && authorization.status == Status::Invalid
                && authorization.identifier.to_string() == name
        });
        let mut failed: Vec<Timestamp> = own
            .filter_map(|it| Some(it.validation.as_ref()?.at))
            .filter(|at| *at > since)
            .collect();
        failed.sort_unstable();
        let is_over = u64::try_from(failed.len()).is_ok_and(|count| count >= scene.value);
        is_over.then(|| Some((name.to_owned(), *failed.first()? + hour)))?
    })
}

/// Marks the authorization as being validated, so that the CA does not validate it.
pub(super) fn hold_validation(scene: &RequestScene<'_>) {
    if let Some(id) = scene.asked.id()
        && let Some(authorization) = scene.ca.state().authorizations.get_mut(&id)
    {
        authorization.being_validated = true;
    }
}

/// Holds validation back until the client has responded as often as the value, and lets the CA validate afterwards.
pub(super) fn hold_first(scene: &RequestScene<'_>) {
    if let Some(id) = scene.asked.id()
        && let Some(authorization) = scene.ca.state().authorizations.get_mut(&id)
    {
        authorization.being_validated = scene.asked.nth < scene.value;
    }
}

/// Refuses the authorization of a challenge, or of every challenge of an order.
pub(super) fn refuse(scene: &RequestScene<'_>) {
    let why = "Invalid response from http://www.example.com/: 404";
    settle(scene, Some((Kind::Unauthorized, why)));
}

/// Refuses the authorization because the CA itself has failed.
pub(super) fn fail_to_look(scene: &RequestScene<'_>) {
    settle(scene, Some((Kind::ServerInternal, "The resolver of the CA has stopped")));
}

/// Refuses the authorization by an error type that is meant for refusals of orders.
pub(super) fn reject_name(scene: &RequestScene<'_>) {
    let why = "The server will not issue certificates for the identifier";
    settle(scene, Some((Kind::RejectedIdentifier, why)));
}

/// Takes every name of an order as proven, or the name of a challenge.
pub(super) fn accept(scene: &RequestScene<'_>) {
    settle(scene, None);
}

fn settle(scene: &RequestScene<'_>, refused: Option<(Kind, &str)>) {
    let Some(id) = scene.asked.id() else { return };
    let mut state = scene.ca.state();
    let authorizations = match state.orders.get(&id) {
        Some(order) => order.authorizations.clone(),
        None => vec![id],
    };
    for id in authorizations {
        if let Some(authorization) = state.authorizations.get_mut(&id) {
            end(authorization, refused);
        }
    }
}

fn end(authorization: &mut Authorization, refused: Option<(Kind, &str)>) {
    authorization.status = if refused.is_some() { Status::Invalid } else { Status::Valid };
    authorization.being_validated = false;
    authorization.validation = Some(Validation {
        method: Method::Http01,
        at: Timestamp::now(),
        hops: Vec::new(),
        refusal: refused.map(|(kind, why)| Refusal::new(kind, why)),
    });
}

/// Validates at last, as a CA that tries again by itself.
pub(super) fn look_again(scene: &RequestScene<'_>) {
    let state = scene.ca.state();
    let open = state.authorizations.iter().filter(|(_, a)| a.status == Status::Pending);
    for (id, authorization) in open {
        let account = state.accounts.get(&authorization.account);
        let thumbprint = account.map(|account| account.key.thumbprint()).unwrap_or_default();
        scene.ca.spawn(validate(Arc::clone(scene.ca), *id, Method::Http01, thumbprint));
    }
}

/// Validates from the CA's own place, and then reports in Boulder's words that other places of the world failed to connect.
pub(super) fn miss_from_elsewhere(scene: &RequestScene<'_>) {
    let Some(id) = scene.asked.id() else { return };
    let state = scene.ca.state();
    let account = state.authorizations.get(&id).and_then(|a| state.accounts.get(&a.account));
    let thumbprint = account.map(|account| account.key.thumbprint()).unwrap_or_default();
    let ca = Arc::clone(scene.ca);
    scene.ca.spawn(async move {
        let Some(mut seen) = probe(&ca, id, Method::Http01, thumbprint).await else { return };
        if let (None, Some(hop)) = (&seen.refusal, seen.hops.last()) {
            let address = hop.address.map(|at| at.ip().to_string()).unwrap_or_default();
            let why = format!(
                "During secondary validation: {address}: Fetching {}: Timeout during connect (likely firewall problem)",
                hop.url
            );
            seen.refusal = Some(Refusal::new(Kind::Connection, why));
        }
        conclude(&ca, id, seen);
    });
}

/// Deactivates an authorization.
pub(super) fn deactivate(scene: &RequestScene<'_>) {
    if let Some(id) = scene.asked.id()
        && let Some(authorization) = scene.ca.state().authorizations.get_mut(&id)
    {
        authorization.status = Status::Deactivated;
    }
}

/// Forgets an order.
pub(super) fn forget_order(scene: &RequestScene<'_>) {
    if let Some(id) = scene.asked.id() {
        scene.ca.state().orders.remove(&id);
    }
}

/// Fails an order that was to be finalized.
pub(super) fn fail_order(scene: &RequestScene<'_>) {
    if let Some(id) = scene.asked.id()
        && let Some(order) = scene.ca.state().orders.get_mut(&id)
    {
        order.issuance = Issuance::Failed;
    }
}

/// Forgets the account that sends the request.
pub(super) fn forget_account(scene: &RequestScene<'_>) {
    if let Some(id) = account(scene) {
        scene.ca.state().accounts.remove(&id);
    }
}

/// Deactivates the account that sends the request.
pub(super) fn deactivate_account(scene: &RequestScene<'_>) {
    if let Some(id) = account(scene)
        && let Some(account) = scene.ca.state().accounts.get_mut(&id)
    {
        account.deactivated = true;
    }
}

/// Takes the first `most` names of a new order as proven.
pub(super) fn prove(scene: &RequestScene<'_>, order: &mut Json, most: usize) {
    let urls = order["authorizations"].as_array().cloned().unwrap_or_default();
    for id in urls.iter().take(most).filter_map(id_in) {
        if let Some(authorization) = scene.ca.state().authorizations.get_mut(&id) {
            end(authorization, None);
        }
    }
    show(scene, order);
}

/// Issues a new order's certificate for a key that the client does not have.
pub(super) fn issue_to_a_stranger(scene: &RequestScene<'_>, order: &mut Json) {
    let (Some(id), Ok(key)) = (id_in(&order["finalize"]), KeyPair::generate()) else { return };
    let octets = key.public_key_raw().to_vec();
    let key = SubjectKey { octets, algorithm: &rcgen::PKCS_ECDSA_P256_SHA256 };
    issue(scene.ca, &mut scene.ca.state(), id, &key, Timestamp::now());
    show(scene, order);
}

/// Shows an order in its present state.
fn show(scene: &RequestScene<'_>, order: &mut Json) {
    let state = scene.ca.state();
    if let Some(id) = id_in(&order["finalize"])
        && let Some(known) = state.orders.get(&id)
    {
        *order = orders::view(scene.ca, &scene.asked.base, &state, (id, known));
    }
}

/// Refuses a challenge, and shows the challenge as refused.
pub(super) fn refuse_and_show(scene: &RequestScene<'_>, challenge: &mut Json) {
    refuse(scene);
    challenge["status"] = "invalid".into();
    challenge["error"] = json!({
        "type": "urn:ietf:params:acme:error:unauthorized",
        "detail": "Invalid response from http://www.example.com/: 404",
        "status": 403,
    });
}
