//! Rows 23 to 30: authorizations and challenges.

use axum::http::header::RETRY_AFTER;
use serde_json::{Value as Json, json};

use super::answers::set;
use super::state::{accept, deactivate, hold_validation, look_again, prove, refuse};
use crate::ca::behaviour::definition::{Behaviour, Value};
use crate::ca::behaviour::rule::Effect::{Arranges, Edits, Heads};
use crate::ca::behaviour::rule::{RequestScene, Trigger};

/// Deactivates an authorization when it is read.
const ENDED: Trigger = Trigger::times(&["authorization"], Arranges(deactivate));

pub(super) const KIT: &[Behaviour] = &[
    Behaviour {
        row: 23,
        name: "one-authorization-valid",
        value: Value::None,
        does: "has proof of the first name of an order already",
        reaction: "answer the challenges of the others only",
        rules: &[Trigger::always(&["newOrder"], Edits(|scene, order| prove(scene, order, 1)))],
    },
    Behaviour {
        row: 24,
        name: "authorization-deactivated",
        value: Value::Times(1),
        does: "has deactivated an authorization when it is read",
        reaction: "order again at once, once",
        rules: &[ENDED],
    },
    Behaviour {
        row: 24,
        name: "authorization-expired",
        value: Value::Times(1),
        does: "has an authorization expired when it is read",
        reaction: "order again at once, once",
        rules: &[
            ENDED,
            Trigger::always(&["authorization"], Edits(|_, object| ended_as(object, "expired"))),
        ],
    },
    Behaviour {
        row: 24,
        name: "authorization-revoked",
        value: Value::Times(1),
        does: "has revoked an authorization when it is read",
        reaction: "order again at once, once",
        rules: &[
            ENDED,
            Trigger::always(&["authorization"], Edits(|_, object| ended_as(object, "revoked"))),
        ],
    },
    Behaviour {
        row: 25,
        name: "authorization-of-another-name",
        value: Value::None,
        does: "gives an authorization for a name that was not ordered",
        reaction: "stop, and name both",
        rules: &[Trigger::always(
            &["authorization"],
            Edits(|_, authorization| {
                authorization["identifier"]["value"] = "other.example".into();
            }),
        )],
    },
    Behaviour {
        row: 25,
        name: "authorization-missing",
        value: Value::None,
        does: "lists no authorization for the last name of an order",
        reaction: "stop, and name what is missing",
        rules: &[Trigger::always(
            &["newOrder", "order"],
            Edits(|_, order| {
                if let Some(list) = order["authorizations"].as_array_mut() {
                    list.pop();
                }
            }),
        )],
    },
    Behaviour {
        row: 25,
        name: "authorization-twice",
        value: Value::Number(1),
        does: "lists the first authorization of an order so many times more",
        reaction: "read it once",
        rules: &[Trigger::always(
            &["newOrder", "order"],
            Edits(|scene, order| lengthen(scene, order, |first, _| first.to_owned())),
        )],
    },
    Behaviour {
        row: 25,
        name: "authorization-surplus",
        value: Value::Number(1),
        does: "lists so many authorizations more than an order has names",
        reaction: "stop, and read none beyond the number of names",
        rules: &[Trigger::always(
            &["newOrder", "order"],
            Edits(|scene, order| lengthen(scene, order, |first, n| format!("{first}?more={n}"))),
        )],
    },
    Behaviour {
        row: 26,
        name: "http-01-not-offered",
        value: Value::None,
        does: "offers no HTTP-01",
        reaction: "take another solver, else stop and list what is offered",
        rules: &[Trigger::always(
            &["authorization"],
            Edits(|_, authorization| {
                if let Some(list) = authorization["challenges"].as_array_mut() {
                    list.retain(|challenge| challenge["type"] != "http-01");
                }
            }),
        )],
    },
    Behaviour {
        row: 27,
        name: "unknown-challenge-type",
        value: Value::None,
        does: "offers a challenge of a type that nobody knows, without a token",
        reaction: "ignore it",
        rules: &[Trigger::always(
            &["authorization"],
            Edits(|_, authorization| {
                if let Some(list) = authorization["challenges"].as_array_mut() {
                    list.insert(0, json!({"type": "smoke-01", "status": "pending", "url": null}));
                }
            }),
        )],
    },
    Behaviour {
        row: 28,
        name: "token-with-path",
        value: Value::None,
        does: "gives tokens that lead out of a folder",
        reaction: "refuse: a token becomes a path and a DNS value",
        rules: &[Trigger::always(
            &["authorization"],
            Edits(|_, object| each(object, "token", "../../../../tmp/harm")),
        )],
    },
    Behaviour {
        row: 28,
        name: "empty-token",
        value: Value::None,
        does: "gives tokens without a character",
        reaction: "refuse",
        rules: &[Trigger::always(&["authorization"], Edits(|_, object| each(object, "token", "")))],
    },
    Behaviour {
        row: 29,
        name: "challenge-processing",
        value: Value::None,
        does: "shows challenges as processing when they are seen first, and settles them later",
        reaction: "do not accept them; poll",
        rules: &[
            Trigger::always(&["authorization"], Edits(|_, object| seen_as(object, "processing"))),
            Trigger::once(&["order"], Arranges(accept)).only(|scene| scene.asked.nth >= 2),
        ],
    },
    Behaviour {
        row: 29,
        name: "challenge-valid",
        value: Value::None,
        does: "shows challenges as valid when they are seen first, their authorization as pending",
        reaction: "do not accept them; poll",
        rules: &[
            Trigger::always(&["authorization"], Edits(|_, object| seen_as(object, "valid"))),
            Trigger::once(&["order"], Arranges(accept)).only(|scene| scene.asked.nth >= 2),
        ],
    },
    Behaviour {
        row: 29,
        name: "challenge-invalid",
        value: Value::None,
        does: "shows challenges as invalid when they are seen first, their authorization as pending",
        reaction: "do not accept them; poll, and show the end",
        rules: &[
            Trigger::always(&["authorization"], Edits(|_, object| seen_as(object, "invalid"))),
            Trigger::once(&["order"], Arranges(refuse)).only(|scene| scene.asked.nth >= 2),
        ],
    },
    Behaviour {
        row: 30,
        name: "challenge-pending-with-error",
        value: Value::None,
        does: "keeps a challenge pending with an error and Retry-After, and looks again later",
        reaction: "leave the answer up, and poll",
        rules: &[
            Trigger::always(&["challenge"], Arranges(hold_validation))
                .only(|scene| !scene.asked.is_read()),
            Trigger::always(&["authorization"], Edits(|_, object| each_open(object))),
            Trigger::always(&["challenge"], Edits(|_, challenge| not_yet(challenge))),
            Trigger::always(
                &["authorization", "challenge"],
                Heads(|_, head| set(head, RETRY_AFTER, "1")),
            ),
            Trigger::once(&["order", "authorization"], Arranges(look_again))
                .only(|scene| scene.asked.nth >= 2),
        ],
    },
];

fn each(authorization: &mut Json, member: &str, value: &str) {
    for challenge in authorization["challenges"].as_array_mut().into_iter().flatten() {
        challenge[member] = value.into();
    }
}

fn each_open(authorization: &mut Json) {
    for challenge in authorization["challenges"].as_array_mut().into_iter().flatten() {
        not_yet(challenge);
    }
}

fn not_yet(challenge: &mut Json) {
    if challenge["status"] == "pending" {
        challenge["error"] = json!({
            "type": "urn:ietf:params:acme:error:connection",
            "detail": "Connection refused; looking again soon",
            "status": 400,
        });
    }
}

fn ended_as(authorization: &mut Json, word: &str) {
    if authorization["status"] == "deactivated" {
        authorization["status"] = word.into();
    }
}

/// Gives the challenges of a pending authorization another state.
fn seen_as(authorization: &mut Json, word: &str) {
    if authorization["status"] == "pending" {
        each(authorization, "status", word);
    }
}

fn lengthen(scene: &RequestScene<'_>, order: &mut Json, more: fn(&str, u64) -> String) {
    if let Some(list) = order["authorizations"].as_array_mut()
        && let Some(first) = list.first().and_then(Json::as_str).map(str::to_owned)
    {
        list.extend((0..scene.value).map(|number| more(&first, number).into()));
    }
}
