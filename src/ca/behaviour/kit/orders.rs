//! Rows 14 to 22: progress and end of orders.

use axum::http::response::Parts;
use serde_json::{Value as Json, json};

use super::answers::{empty, page, problem, set, unheard_of, with_retry_after};
use super::state::{
    fail_order, forget_order, hold_validation, issue_to_a_stranger, miss_from_elsewhere, prove,
    refuse,
};
use crate::ca::behaviour::rule::Effect::{Answers, Arranges, Edits, Heads};
use crate::ca::behaviour::rule::{Behaviour, RequestScene, Trigger, Value};
use crate::ca::certificates::issuing_wait;
use crate::ca::state::Issuance;

/// Seconds longer than any client waits.
const FOR_EVER: u64 = 1_000_000;
const UNAUTHORIZED: &str = "urn:ietf:params:acme:error:unauthorized";
/// Status that no RFC defines.
const UNHEARD_OF: &str = "warming-up";

/// Validation that is held back when the client responds; a rule below then settles the challenge.
const VALIDATION: Trigger =
    Trigger::always(&["challenge"], Arranges(hold_validation)).only(|scene| !scene.asked.is_read());
const REFUSED: Trigger = Trigger::always(&["challenge"], Edits(|scene, _| refuse(scene)))
    .only(|scene| !scene.asked.is_read());
const MISSED: Trigger = Trigger::always(&["challenge"], Arranges(miss_from_elsewhere))
    .only(|scene| !scene.asked.is_read());

pub(super) const KIT: &[Behaviour] = &[
    Behaviour {
        row: 14,
        name: "finalize-says-ready",
        value: Value::Times(1),
        does: "issues, and answers finalize with the order as it was, ready",
        reaction: "poll; send no other signing request while the CA may be at work",
        rules: &[Trigger::times(
            &["finalize"],
            Edits(|_, order| {
                order["status"] = "ready".into();
                remove(order, "certificate");
            }),
        )],
    },
    Behaviour {
        row: 14,
        name: "certificate-503",
        value: Value::Times(1),
        does: "issues, and answers downloads of the chain with 503 and a page",
        reaction: "ask for the chain again; send no other signing request",
        rules: &[Trigger::times(&["certificate"], Answers(|_| page(503, "<html>busy</html>")))],
    },
    Behaviour {
        row: 14,
        name: "certificate-404",
        value: Value::Times(1),
        does: "issues, and answers downloads of the chain with 404: a replica lags",
        reaction: "ask for the chain again; a certificate that is issued is not lost",
        rules: &[Trigger::times(&["certificate"], Answers(unheard_of))],
    },
    Behaviour {
        row: 14,
        name: "certificate-202",
        value: Value::Times(1),
        does: "answers downloads of the chain with 202 and Retry-After: the certificate waits for cosigners",
        reaction: "ask for the chain again then",
        rules: &[Trigger::times(&["certificate"], Answers(|_| with_retry_after(empty(202), "1")))],
    },
    Behaviour {
        row: 15,
        name: "order-invalid-with-error",
        value: Value::None,
        does: "refuses every name; the order has an error with a subproblem for each",
        reaction: "a new order after a pause; show the error, name by name",
        rules: &[VALIDATION, REFUSED, Trigger::always(&["order"], Edits(explain))],
    },
    Behaviour {
        row: 16,
        name: "order-invalid-without-error",
        value: Value::None,
        does: "refuses every name; only the challenges say why",
        reaction: "read the authorizations for the reason",
        rules: &[VALIDATION, REFUSED],
    },
    Behaviour {
        row: 16,
        name: "unseen-from-elsewhere",
        value: Value::None,
        does: "sees the answer from its own place, and not from others of the world",
        reaction: "as for any invalid order",
        rules: &[VALIDATION, MISSED],
    },
    Behaviour {
        row: 17,
        name: "order-invalid-at-finalize",
        value: Value::None,
        does: "gives the order up just before it is finalized",
        reaction: "as for any invalid order",
        rules: &[Trigger::always(&["finalize"], Arranges(fail_order))],
    },
    Behaviour {
        row: 17,
        name: "finalize-fails-and-order-invalid",
        value: Value::None,
        does: "answers finalize with 500, and gives the order up without a word in it",
        reaction: "show what finalize was answered; no validation has failed",
        rules: &[
            Trigger::always(&["finalize"], Arranges(fail_order)),
            Trigger::once(
                &["finalize"],
                Answers(|_| problem(500, "serverInternal", "enrollment failed")),
            ),
        ],
    },
    Behaviour {
        row: 18,
        name: "order-ready-at-creation",
        value: Value::None,
        does: "has proof of all names already: the order is born ready",
        reaction: "finalize, and read no authorization",
        rules: &[Trigger::always(
            &["newOrder"],
            Edits(|scene, order| prove(scene, order, usize::MAX)),
        )],
    },
    Behaviour {
        row: 19,
        name: "order-valid-at-creation",
        value: Value::Times(1),
        does: "gives an order that is valid already, with a certificate for somebody else's key",
        reaction: "compare names and key; never store it; order again",
        rules: &[Trigger::times(
            &["newOrder"],
            Edits(|scene, order| {
                prove(scene, order, usize::MAX);
                issue_to_a_stranger(scene, order);
            }),
        )],
    },
    Behaviour {
        row: 20,
        name: "order-processing",
        value: Value::Seconds(FOR_EVER),
        does: "says that it still issues, for so many seconds after an order was finalized",
        reaction: "poll until a deadline of one's own, and go on later with the same order",
        rules: &[
            Trigger::always(&["finalize", "order"], Edits(processing)).only(is_processing),
            Trigger::always(&["finalize", "order"], Heads(wait)).only(is_processing),
        ],
    },
    Behaviour {
        row: 21,
        name: "order-404",
        value: Value::Times(1),
        does: "answers readings of an order that it has just made with 404: a replica lags",
        reaction: "read it again after a pause; order nothing else",
        rules: &[Trigger::times(&["order"], Answers(unheard_of))],
    },
    Behaviour {
        row: 21,
        name: "order-gone",
        value: Value::Times(1),
        does: "forgets an order when it is read: 404",
        reaction: "order again",
        rules: &[Trigger::times(&["order"], Arranges(forget_order))],
    },
    Behaviour {
        row: 21,
        name: "order-gone-empty",
        value: Value::Times(1),
        does: "forgets an order when it is read: 404 without a body",
        reaction: "order again",
        rules: &[
            Trigger::times(&["order"], Arranges(forget_order)),
            Trigger::times(&["order"], Answers(|_| empty(404))),
        ],
    },
    Behaviour {
        row: 22,
        name: "expires-number",
        value: Value::None,
        does: "says when an order and its authorizations end with a number in place of a text",
        reaction: "go on as if it had not said when",
        rules: &[Trigger::always(
            &["newOrder", "order", "authorization"],
            Edits(|_, object| object["expires"] = 1_800_000_000_u64.into()),
        )],
    },
    Behaviour {
        row: 22,
        name: "unknown-order-status",
        value: Value::Times(2),
        does: "gives an order a status that nobody knows",
        reaction: "not the end: poll",
        rules: &[Trigger::times(&["order"], Edits(|_, order| order["status"] = UNHEARD_OF.into()))],
    },
    Behaviour {
        row: 22,
        name: "unknown-authorization-status",
        value: Value::Times(1),
        does: "gives an authorization a status that nobody knows",
        reaction: "not the end: read it again",
        rules: &[Trigger::times(
            &["authorization"],
            Edits(|_, authorization| authorization["status"] = UNHEARD_OF.into()),
        )],
    },
    Behaviour {
        row: 22,
        name: "unknown-challenge-status",
        value: Value::Times(1),
        does: "gives the challenges of an authorization a status that nobody knows",
        reaction: "not the end: read it again",
        rules: &[Trigger::times(
            &["authorization"],
            Edits(|_, authorization| {
                for challenge in authorization["challenges"].as_array_mut().into_iter().flatten() {
                    challenge["status"] = UNHEARD_OF.into();
                }
            }),
        )],
    },
];

fn remove(object: &mut Json, member: &str) {
    if let Some(object) = object.as_object_mut() {
        object.remove(member);
    }
}

/// Gives an invalid order an error, with a subproblem for each name.
fn explain(_: &RequestScene<'_>, order: &mut Json) {
    if order["status"] != "invalid" {
        return;
    }
    let names = order["identifiers"].as_array().cloned().unwrap_or_default();
    let subproblems = names.into_iter().map(|identifier| {
        let detail = format!("{} shows another page", identifier["value"].as_str().unwrap_or(""));
        json!({"type": UNAUTHORIZED, "detail": detail, "status": 403, "identifier": identifier})
    });
    order["error"] = json!({
        "type": UNAUTHORIZED,
        "detail": "Some names could not be validated",
        "status": 403,
        "subproblems": subproblems.collect::<Vec<_>>(),
    });
}

/// Returns whether the order's certificate was issued fewer seconds ago than the value.
fn is_processing(scene: &RequestScene<'_>) -> bool {
    let state = scene.ca.state();
    let issued = scene.asked.id().and_then(|id| match &state.orders.get(&id)?.issuance {
        Issuance::Done(serial) => state.certificates.get(serial),
        Issuance::NotAsked | Issuance::UnderWay | Issuance::Failed => None,
    });
    let since = issued.map(|issued| scene.ca.now().duration_since(issued.at).as_secs());
    since.is_some_and(|seconds| u64::try_from(seconds).is_ok_and(|it| it < scene.value))
}

/// Shows a valid order as processing.
fn processing(_: &RequestScene<'_>, order: &mut Json) {
    order["status"] = "processing".into();
    remove(order, "certificate");
}

/// Adds the header that says when to ask for a processing order again.
fn wait(scene: &RequestScene<'_>, head: &mut Parts) {
    let (name, value) = issuing_wait(scene.ca);
    if head.status.is_success() {
        set(head, name, &value);
    }
}
