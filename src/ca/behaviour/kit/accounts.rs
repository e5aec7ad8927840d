//! Rows 31 to 42: accounts, and refusals with their reasons.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LINK, LOCATION};
use axum::http::response::Parts;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value as Json, json};

use super::answers::{document, problem, with};
use super::state::{deactivate_account, forget_account};
use crate::ca::behaviour::rule::Effect::{Answers, Arranges, Edits, Heads, Sends};
use crate::ca::behaviour::rule::{Behaviour, RequestScene, SIGNED_RESOURCES, Trigger, Value};
use crate::ca::behaviour::sending::Sending;

pub(super) const KIT: &[Behaviour] = &[
    Behaviour {
        row: 31,
        name: "account-forgotten",
        value: Value::Times(1),
        does: "has forgotten the account when it orders: accountDoesNotExist",
        reaction: "look the account up by its key, register anew if it is gone, and go on",
        rules: &[Trigger::times(&["newOrder"], Arranges(forget_account))],
    },
    Behaviour {
        row: 32,
        name: "account-deactivated",
        value: Value::None,
        does: "has deactivated the account when it orders: unauthorized",
        reaction: "stop",
        rules: &[Trigger::always(&["newOrder"], Arranges(deactivate_account))],
    },
    Behaviour {
        row: 32,
        name: "key-change-501",
        value: Value::None,
        does: "lists keyChange in its directory, and has it not: 501",
        reaction: "say so; the account keeps its key, and orders go on",
        rules: &[Trigger::always(
            &["keyChange"],
            Answers(|_| {
                problem(501, "rejectedIdentifier", "The requested operation is not implemented")
            }),
        )],
    },
    Behaviour {
        row: 32,
        name: "key-change-500",
        value: Value::None,
        does: "fails at every change of an account key",
        reaction: "keep both keys, and let the change be given up",
        rules: &[Trigger::always(
            &["keyChange"],
            Answers(|_| problem(500, "serverInternal", "Error changing the key")),
        )],
    },
    Behaviour {
        row: 32,
        name: "deactivation-ignored",
        value: Value::None,
        does: "answers the deactivation of an account with 200 and the account as it was",
        reaction: "believe the answer: the account is valid",
        rules: &[Trigger::always(&["account"], Answers(account_as_it_was)).only(|scene| {
            let wish = scene.asked.payload();
            wish.is_some_and(|wish| wish["status"] == "deactivated")
        })],
    },
    Behaviour {
        row: 32,
        name: "account-unreadable",
        value: Value::None,
        does: "refuses to show an account: it wants the key in place of its URL",
        reaction: "do without what an account says",
        rules: &[Trigger::always(
            &["account"],
            Answers(|_| problem(400, "incorrectResponse", "JWS MUST contain 'jwk' field")),
        )
        .only(|scene| scene.asked.is_read())],
    },
    Behaviour {
        row: 33,
        name: "new-account-200",
        value: Value::None,
        does: "answers a registration with 200 in place of 201",
        reaction: "the account is there: go on",
        rules: &[Trigger::always(&["newAccount"], Heads(|_, head| head.status = StatusCode::OK))],
    },
    Behaviour {
        row: 34,
        name: "new-account-without-body",
        value: Value::None,
        does: "answers a registration without a body",
        reaction: "take the account's URL from the header: go on",
        rules: &[Trigger::always(&["newAccount"], Sends(Sending::HeadAlone))],
    },
    Behaviour {
        row: 34,
        name: "new-account-without-location",
        value: Value::None,
        does: "answers a registration without the account's URL",
        reaction: "stop: nothing can be signed without it",
        rules: &[Trigger::always(&["newAccount"], Heads(without_location))],
    },
    Behaviour {
        row: 34,
        name: "contact-null",
        value: Value::None,
        does: "answers for an account without contacts with a list that holds null",
        reaction: "the account has no contact: go on",
        rules: &[Trigger::always(
            &["newAccount", "account"],
            Edits(|_, account| account["contact"] = json!([null])),
        )],
    },
    Behaviour {
        row: 34,
        name: "orders-bare",
        value: Value::None,
        does: "lists the orders of an account as an array without the object around it",
        reaction: "read the list all the same",
        rules: &[Trigger::always(&["orders"], Edits(|_, list| *list = list["orders"].take()))],
    },
    Behaviour {
        row: 35,
        name: "user-action-required",
        value: Value::None,
        does: "takes no new order before somebody agrees to changed terms",
        reaction: "stop, and show the page to agree at, and the terms",
        rules: &[Trigger::always(&["newOrder"], Answers(changed_terms))],
    },
    Behaviour {
        row: 36,
        name: "external-account-required",
        value: Value::None,
        does: "takes no registration without an external account",
        reaction: "stop, and say where its keys go",
        rules: &[
            Trigger::always(
                &["directory"],
                Edits(|_, directory| directory["meta"]["externalAccountRequired"] = true.into()),
            ),
            Trigger::always(
                &["newAccount"],
                Answers(|_| {
                    let detail = "This CA requires an external account binding";
                    problem(403, "externalAccountRequired", detail)
                }),
            ),
        ],
    },
    Behaviour {
        row: 37,
        name: "rejected-identifier",
        value: Value::None,
        does: "refuses every name of a new order by policy, with a subproblem for each",
        reaction: "stop for those names, and report each",
        rules: &[Trigger::always(
            &["newOrder"],
            Answers(|scene| {
                for_each_name(scene, "rejectedIdentifier", "is on a list of high risk")
            }),
        )],
    },
    Behaviour {
        row: 37,
        name: "compound",
        value: Value::None,
        does: "refuses a new order for several reasons, one of them about a sort of name that nobody knows",
        reaction: "stop, and report each",
        rules: &[Trigger::always(&["newOrder"], Answers(several))],
    },
    Behaviour {
        row: 37,
        name: "caa-at-finalize",
        value: Value::None,
        does: "refuses finalize for CAA records, with a subproblem",
        reaction: "stop, and report the name",
        rules: &[Trigger::always(
            &["finalize"],
            Answers(|_| {
                document(&json!({
                    "type": "urn:ietf:params:acme:error:caa",
                    "detail": "Error finalizing order :: Rechecking CAA failed",
                    "status": 403,
                    "subproblems": [{
                        "type": "urn:ietf:params:acme:error:caa",
                        "detail": "CAA record for www.example.com prevents issuance",
                        "status": 403,
                        "identifier": {"type": "dns", "value": "www.example.com"},
                    }],
                }))
            }),
        )],
    },
    Behaviour {
        row: 38,
        name: "bad-csr",
        value: Value::None,
        does: "refuses the signing request",
        reaction: "stop",
        rules: &[Trigger::always(
            &["finalize"],
            Answers(|_| {
                problem(400, "badCSR", "Error finalizing order :: CSR is not to be signed")
            }),
        )],
    },
    Behaviour {
        row: 38,
        name: "bad-public-key",
        value: Value::None,
        does: "refuses the account's key",
        reaction: "stop; another key only if the user's policy says so",
        rules: &[Trigger::always(
            &["newAccount"],
            Answers(|_| problem(400, "badPublicKey", "this key is known to others")),
        )],
    },
    Behaviour {
        row: 39,
        name: "bad-signature-algorithm",
        value: Value::None,
        does: "takes signatures by RS256 only",
        reaction: "another key for a new account, else stop and list what is taken",
        rules: &[Trigger::always(
            SIGNED_RESOURCES,
            Answers(|_| {
                document(&json!({
                    "type": "urn:ietf:params:acme:error:badSignatureAlgorithm",
                    "detail": "JWS signature algorithm is not taken here",
                    "status": 400,
                    "algorithms": ["RS256"],
                }))
            }),
        )
        .only(|scene| scene.asked.header().is_some_and(|header| header["alg"] != "RS256"))],
    },
    Behaviour {
        row: 40,
        name: "invalid-profile",
        value: Value::None,
        does: "refuses the profile of a new order, which it advertises",
        reaction: "stop, and name the profile",
        rules: &[Trigger::always(
            &["newOrder"],
            Answers(|_| problem(400, "invalidProfile", "profile is not for this account")),
        )],
    },
    Behaviour {
        row: 40,
        name: "profiles-not-advertised",
        value: Value::None,
        does: "advertises no profiles",
        reaction: "stop where one is asked for; send no order",
        rules: &[Trigger::always(
            &["directory"],
            Edits(|_, directory| {
                if let Some(meta) = directory["meta"].as_object_mut() {
                    meta.remove("profiles");
                }
            }),
        )],
    },
    Behaviour {
        row: 40,
        name: "meta-malformed",
        value: Value::None,
        does: "has members of other types in the meta of its directory",
        reaction: "go on as if they were absent",
        rules: &[Trigger::always(
            &["directory"],
            Edits(|_, directory| {
                directory["meta"] = json!({
                    "externalAccountRequired": "false",
                    "caaIdentities": "ca.example",
                    "profiles": ["classic"],
                    "website": 7,
                });
            }),
        )],
    },
    Behaviour {
        row: 41,
        name: "already-replaced",
        value: Value::Times(1),
        does: "says of a new order that the certificate it replaces is replaced already",
        reaction: "order again without naming what it replaces",
        rules: &[Trigger::times(
            &["newOrder"],
            Answers(|_| {
                let detail = "certificate already has a replacement order";
                problem(409, "alreadyReplaced", detail)
            }),
        )],
    },
    Behaviour {
        row: 42,
        name: "new-order-without-location",
        value: Value::Times(1),
        does: "makes an order, and does not say where it is",
        reaction: "ask once more: the same order comes back; then stop",
        rules: &[Trigger::times(&["newOrder"], Heads(without_location))],
    },
    Behaviour {
        row: 42,
        name: "new-order-unreadable",
        value: Value::None,
        does: "makes an order, says where it is, and nothing more",
        reaction: "read the order there; order nothing else",
        rules: &[Trigger::always(&["newOrder"], Sends(Sending::HeadAlone))],
    },
];

/// Answers with the unchanged account, for a request that is ignored.
fn account_as_it_was(_: &RequestScene<'_>) -> Response {
    let account = json!({"status": "valid", "contact": []});
    ([(CONTENT_TYPE, "application/json")], account.to_string()).into_response()
}

fn without_location(_: &RequestScene<'_>, head: &mut Parts) {
    head.headers.remove(LOCATION);
}

fn changed_terms(scene: &RequestScene<'_>) -> Response {
    let terms = scene.url("/terms");
    let refused = document(&json!({
        "type": "urn:ietf:params:acme:error:userActionRequired",
        "detail": "Terms of service have changed",
        "status": 403,
        "instance": scene.url("/terms/agree"),
    }));
    with(refused, LINK, &format!("<{terms}>;rel=\"terms-of-service\""))
}

/// Refuses each name of the order.
fn for_each_name(scene: &RequestScene<'_>, kind: &str, why: &str) -> Response {
    let kind = format!("urn:ietf:params:acme:error:{kind}");
    let wish = scene.asked.payload().unwrap_or_default();
    let names = wish["identifiers"].as_array().cloned().unwrap_or_default();
    let subproblems = names.into_iter().map(|identifier| {
        let detail = format!("{} {why}", identifier["value"].as_str().unwrap_or_default());
        json!({"type": kind, "detail": detail, "status": 400, "identifier": identifier})
    });
    let subproblems: Vec<Json> = subproblems.collect();
    document(&json!({
        "type": kind,
        "detail": "Error creating new order :: some names are refused",
        "status": 400,
        "subproblems": subproblems,
    }))
}

fn several(_: &RequestScene<'_>) -> Response {
    document(&json!({
        "type": "urn:ietf:params:acme:error:compound",
        "detail": "several things are wrong",
        "status": 400,
        "subproblems": [
            {
                "type": "urn:ietf:params:acme:error:dns",
                "detail": "www.example.com has no name servers",
                "identifier": {"type": "dns", "value": "www.example.com"},
            },
            {
                "type": "urn:ietf:params:acme:error:unsupportedIdentifier",
                "detail": "smoke signals are not taken",
                "identifier": {"type": "smoke", "value": {"puffs": 3}},
            },
        ],
    }))
}
