//! Rows 23 to 30: authorizations and challenges.

use axum::http::header::RETRY_AFTER;
use serde_json::{Value as Json, json};

use super::answers::{problem, restate, set, unheard_of};
use super::state::{
    accept, deactivate, fail_to_look, hold_first, hold_validation, look_again, prove, refuse,
    refuse_and_show, reject_name,
};
use crate::ca::behaviour::rule::Effect::{Answers, Arranges, Edits, Heads};
use crate::ca::behaviour::rule::{Behaviour, RequestScene, Trigger, Value};

/// Deactivates an authorization when the client reads the authorization.
const DEACTIVATED_WHEN_READ: Trigger = Trigger::times(&["authorization"], Arranges(deactivate));

/// Validates only when the client responds, and the first validations are in vain.
const VALIDATES_PER_RESPONSE: Trigger =
    on_answer(Trigger::always(&["challenge"], Arranges(hold_first)));
/// Does not validate when the client responds.
const VALIDATES_NEVER: Trigger =
    on_answer(Trigger::always(&["challenge"], Arranges(hold_validation)));

const fn on_answer(trigger: Trigger) -> Trigger {
    trigger.only(|scene| !scene.asked.is_read())
}

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
        name: "authorization-404",
        value: Value::Times(1),
        does: "answers readings of an authorization that it has just made with 404: a replica lags",
        reaction: "read it again after a pause; order nothing else",
        rules: &[Trigger::times(&["authorization"], Answers(unheard_of))],
    },
    Behaviour {
        row: 24,
        name: "challenge-404",
        value: Value::Times(1),
        does: "answers acceptances of a challenge that it has just made with 404: a replica lags",
        reaction: "accept it again after a pause",
        rules: &[Trigger::times(&["challenge"], Answers(unheard_of))],
    },
    Behaviour {
        row: 24,
        name: "authorization-deactivated",
        value: Value::Times(1),
        does: "has deactivated an authorization when it is read",
        reaction: "order again at once, once",
        rules: &[DEACTIVATED_WHEN_READ],
    },
    Behaviour {
        row: 24,
        name: "authorization-expired",
        value: Value::Times(1),
        does: "has an authorization expired when it is read",
        reaction: "order again at once, once",
        rules: &[
            DEACTIVATED_WHEN_READ,
            Trigger::always(
                &["authorization"],
                Edits(|_, object| restate(object, "deactivated", "expired")),
            ),
        ],
    },
    Behaviour {
        row: 24,
        name: "authorization-revoked",
        value: Value::Times(1),
        does: "has revoked an authorization when it is read",
        reaction: "order again at once, once",
        rules: &[
            DEACTIVATED_WHEN_READ,
            Trigger::always(
                &["authorization"],
                Edits(|_, object| restate(object, "deactivated", "revoked")),
            ),
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
            Trigger::always(
                &["authorization"],
                Edits(|_, object| show_challenges_as(object, "processing")),
            ),
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
            Trigger::always(
                &["authorization"],
                Edits(|_, object| show_challenges_as(object, "valid")),
            ),
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
            Trigger::always(
                &["authorization"],
                Edits(|_, object| show_challenges_as(object, "invalid")),
            ),
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
            VALIDATES_NEVER,
            Trigger::always(&["authorization"], Edits(|_, object| add_retry_errors(object))),
            Trigger::always(&["challenge"], Edits(|_, challenge| add_retry_error(challenge))),
            Trigger::always(
                &["authorization", "challenge"],
                Heads(|_, head| set(head, RETRY_AFTER, "1")),
            ),
            Trigger::once(&["order", "authorization"], Arranges(look_again))
                .only(|scene| scene.asked.nth >= 2),
        ],
    },
    Behaviour {
        row: 30,
        name: "challenge-looks-per-answer",
        value: Value::Times(2),
        does: "looks once for each answer, in vain so many times; the challenge stays pending with an error that has no status",
        reaction: "give the answer again after a pause, a few times; show the error",
        rules: &[
            VALIDATES_PER_RESPONSE,
            Trigger::always(&["authorization"], Edits(|_, object| add_bare_errors(object))),
            Trigger::always(&["challenge"], Edits(|_, challenge| add_bare_error(challenge))),
        ],
    },
    Behaviour {
        row: 30,
        name: "challenge-looks-in-silence",
        value: Value::Times(2),
        does: "looks once for each answer, in vain so many times; the challenge stays pending, and nothing says why",
        reaction: "give the answer again after a longer pause, a few times",
        rules: &[VALIDATES_PER_RESPONSE],
    },
    Behaviour {
        row: 30,
        name: "challenge-answer-refused",
        value: Value::Times(2),
        does: "looks while it is given the answer, and refuses that with what it met, so many times",
        reaction: "give the answer again after a pause, a few times; it is a failed validation",
        rules: &[on_answer(Trigger::times(
            &["challenge"],
            Answers(|_| problem(400, "incorrectResponse", "What was served is not the answer")),
        ))],
    },
    Behaviour {
        row: 30,
        name: "challenge-invalid-alone",
        value: Value::None,
        does: "refuses every challenge; authorization and order stay pending",
        reaction: "stop after some seconds, and show the challenge's error",
        rules: &[
            VALIDATES_NEVER,
            on_answer(Trigger::always(&["challenge"], Edits(refuse_and_show))),
            Trigger::always(
                &["authorization", "order"],
                Edits(|_, object| restate(object, "invalid", "pending")),
            ),
        ],
    },
    Behaviour {
        row: 30,
        name: "authorization-invalid-alone",
        value: Value::None,
        does: "refuses every name; the order stays pending",
        reaction: "stop after some seconds, and show the challenge's error",
        rules: &[
            VALIDATES_NEVER,
            on_answer(Trigger::always(&["challenge"], Edits(|scene, _| refuse(scene)))),
            Trigger::always(&["order"], Edits(|_, object| restate(object, "invalid", "pending"))),
        ],
    },
    Behaviour {
        row: 30,
        name: "validation-server-internal",
        value: Value::None,
        does: "fails itself when it is to look, and says so in the challenge",
        reaction: "say that the CA has failed; order again later",
        rules: &[
            VALIDATES_NEVER,
            on_answer(Trigger::always(&["challenge"], Edits(|scene, _| fail_to_look(scene)))),
        ],
    },
    Behaviour {
        row: 30,
        name: "validation-rejected-identifier",
        value: Value::None,
        does: "sees another answer, and calls that rejectedIdentifier in the challenge",
        reaction: "take it for a failed validation, and not for a rule of the CA",
        rules: &[
            VALIDATES_NEVER,
            on_answer(Trigger::always(&["challenge"], Edits(|scene, _| reject_name(scene)))),
        ],
    },
    Behaviour {
        row: 30,
        name: "challenge-error-without-status",
        value: Value::None,
        does: "refuses every name; the errors of challenges have no status",
        reaction: "show them without one",
        rules: &[
            VALIDATES_NEVER,
            on_answer(Trigger::always(&["challenge"], Edits(|scene, _| refuse(scene)))),
            Trigger::always(&["authorization"], Edits(|_, object| each_without_status(object))),
        ],
    },
];

fn challenges(authorization: &mut Json) -> impl Iterator<Item = &mut Json> {
    authorization["challenges"].as_array_mut().into_iter().flatten()
}

fn each(authorization: &mut Json, member: &str, value: &str) {
    challenges(authorization).for_each(|challenge| challenge[member] = value.into());
}

fn add_retry_errors(authorization: &mut Json) {
    challenges(authorization).for_each(add_retry_error);
}

fn add_retry_error(challenge: &mut Json) {
    if challenge["status"] == "pending" {
        challenge["error"] = json!({
            "type": "urn:ietf:params:acme:error:connection",
            "detail": "Connection refused; looking again soon",
            "status": 400,
        });
    }
}

fn add_bare_errors(authorization: &mut Json) {
    challenges(authorization).for_each(add_bare_error);
}

fn add_bare_error(challenge: &mut Json) {
    if challenge["status"] == "pending" {
        challenge["error"] = json!({
            "type": "urn:ietf:params:acme:error:connection",
            "detail": "The server could not connect to validation target",
        });
    }
}

fn each_without_status(authorization: &mut Json) {
    for challenge in challenges(authorization) {
        if let Some(error) = challenge["error"].as_object_mut() {
            error.remove("status");
        }
    }
}

/// Gives the challenges of a pending authorization another status.
fn show_challenges_as(authorization: &mut Json, word: &str) {
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
