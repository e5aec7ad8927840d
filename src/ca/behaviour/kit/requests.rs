//! Rows 1 to 13: nonces, limits, and lost answers.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Method, StatusCode, response};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;

use super::answers::{
    empty, http_date, http_date_of_old, page, problem, set, with_retry_after, within_seconds,
};
use super::state::failed_too_often;
use crate::ca::behaviour::rule::Effect::{Answers, Heads, Replaces, Sends};
use crate::ca::behaviour::rule::{Behaviour, RequestScene, SIGNED_RESOURCES, Trigger, Value};
use crate::ca::behaviour::sending::Sending;
use crate::ca::reply::REPLAY_NONCE;

const RATE_LIMITED_DETAIL: &str = "too many new orders recently";
const GATEWAY_PAGE: &str = "<html><head><title>503 Service Temporarily Unavailable</title></head>\
    <body><h1>503 Service Temporarily Unavailable</h1><hr>gateway</body></html>";

pub(super) const KIT: &[Behaviour] = &[
    Behaviour {
        row: 1,
        name: "bad-nonce-once",
        value: Value::Times(1),
        does: "refuses the nonce of a new order, with a fresh one in the answer",
        reaction: "send the same request at once, with the nonce of the refusal",
        rules: &[Trigger::times(&["newOrder"], Answers(bad_nonce))],
    },
    Behaviour {
        row: 2,
        name: "bad-nonce-without-nonce",
        value: Value::Times(1),
        does: "refuses the nonce of a new order, without a fresh one in the answer",
        reaction: "fetch a nonce, then send the same request",
        rules: &[
            Trigger::times(&["newOrder"], Answers(bad_nonce)),
            Trigger::times(
                &["newOrder"],
                Heads(|_, head| {
                    head.headers.remove(&REPLAY_NONCE);
                }),
            ),
        ],
    },
    Behaviour {
        row: 3,
        name: "bad-nonce-storm",
        value: Value::None,
        does: "refuses every nonce",
        reaction: "a bounded number of tries with growing pauses, then the time limit",
        rules: &[Trigger::always(SIGNED_RESOURCES, Answers(bad_nonce))],
    },
    Behaviour {
        row: 4,
        name: "bad-nonce-of-old",
        value: Value::Times(1),
        does: "refuses a nonce with status 403 and the error namespace of the drafts (urn:acme:)",
        reaction: "as for any badNonce: the last word of the type counts",
        rules: &[Trigger::times(
            &["newOrder"],
            Answers(|_| {
                let body = r#"{"type":"urn:acme:error:badNonce","detail":"JWS has an invalid anti-replay nonce"}"#;
                let content_type = [(CONTENT_TYPE, "application/problem+json")];
                (StatusCode::FORBIDDEN, content_type, body).into_response()
            }),
        )],
    },
    Behaviour {
        row: 5,
        name: "new-nonce-204",
        value: Value::None,
        does: "answers HEAD newNonce with 204",
        reaction: "take the nonce of any good answer",
        rules: &[Trigger::always(
            &["newNonce"],
            Heads(|_, head| head.status = StatusCode::NO_CONTENT),
        )],
    },
    Behaviour {
        row: 5,
        name: "new-nonce-without-head",
        value: Value::None,
        does: "answers HEAD newNonce with 405 and no nonce",
        reaction: "ask with GET",
        rules: &[
            Trigger::always(&["newNonce"], Answers(|_| empty(405)))
                .only(|scene| scene.asked.method == Method::HEAD),
            Trigger::always(
                &["newNonce"],
                Heads(|_, head| {
                    head.headers.remove(&REPLAY_NONCE);
                }),
            )
            .only(|scene| scene.asked.method == Method::HEAD),
        ],
    },
    Behaviour {
        row: 5,
        name: "new-nonce-429",
        value: Value::Seconds(1),
        does: "gives no nonce for so many seconds: 429 with Retry-After",
        reaction: "wait until then",
        rules: &[
            Trigger::always(
                &["newNonce"],
                Answers(|scene| answer_rate_limited(scene, &scene.value.to_string())),
            )
            .only(within_seconds),
            Trigger::always(
                &["newNonce"],
                Heads(|_, head| {
                    if head.status == StatusCode::TOO_MANY_REQUESTS {
                        head.headers.remove(&REPLAY_NONCE);
                    }
                }),
            ),
        ],
    },
    Behaviour {
        row: 6,
        name: "new-order-429",
        value: Value::Seconds(1),
        does: "takes no new order for so many seconds: 429 with Retry-After",
        reaction: "ask again then, and never before",
        rules: &[Trigger::always(
            &["newOrder"],
            Answers(|scene| answer_rate_limited(scene, &scene.value.to_string())),
        )
        .only(within_seconds)],
    },
    Behaviour {
        row: 6,
        name: "failed-validations-limit",
        value: Value::Number(5),
        does: "takes no new order for a name that failed so many validations within an hour: 429 with Retry-After",
        reaction: "find out why they failed; ask again then, and never before",
        rules: &[Trigger::always(&["newOrder"], Answers(too_many_failures))
            .only(|scene| failed_too_often(scene).is_some())],
    },
    Behaviour {
        row: 6,
        name: "new-nonce-ceiling",
        value: Value::Number(20),
        does: "answers newNonce with 503 and Retry-After, asked more than so often a second",
        reaction: "use the nonces that answers bring; keep below what the CA publishes",
        rules: &[
            Trigger::always(&["newNonce"], Answers(too_busy)).only(is_above_ceiling),
            Trigger::always(&["newNonce"], Heads(without_nonce)),
        ],
    },
    Behaviour {
        row: 6,
        name: "request-ceiling",
        value: Value::Number(250),
        does: "answers more than so many signed requests a second with 503 and Retry-After",
        reaction: "keep below what the CA publishes",
        rules: &[
            Trigger::always(SIGNED_RESOURCES, Answers(too_busy)).only(is_above_ceiling),
            Trigger::always(SIGNED_RESOURCES, Heads(without_nonce)),
        ],
    },
    Behaviour {
        row: 7,
        name: "new-order-429-date",
        value: Value::Seconds(2),
        does: "takes no new order once: 429 with Retry-After as a date, so many seconds ahead",
        reaction: "ask again then; a date too far ahead is reported, not waited for",
        rules: &[Trigger::once(
            &["newOrder"],
            Answers(|scene| {
                let seconds = i64::try_from(scene.value).unwrap_or(i64::MAX);
                answer_rate_limited(scene, &http_date(seconds))
            }),
        )],
    },
    Behaviour {
        row: 7,
        name: "new-order-429-rfc850",
        value: Value::Seconds(2),
        does: "takes no new order once: 429 with Retry-After as a date of the oldest form, so many seconds ahead",
        reaction: "ask again then",
        rules: &[Trigger::once(
            &["newOrder"],
            Answers(|scene| {
                let seconds = i64::try_from(scene.value).unwrap_or(i64::MAX);
                answer_rate_limited(scene, &http_date_of_old(seconds))
            }),
        )],
    },
    Behaviour {
        row: 7,
        name: "new-order-429-past",
        value: Value::Times(1),
        does: "takes no new order: 429 with Retry-After as a date an hour ago",
        reaction: "ask again after a pause of one's own, of a second at least",
        rules: &[Trigger::times(
            &["newOrder"],
            Answers(|scene| answer_rate_limited(scene, &http_date(-3600))),
        )],
    },
    Behaviour {
        row: 7,
        name: "new-order-429-unreadable",
        value: Value::Times(1),
        does: "takes no new order: 429 with a Retry-After that says nothing",
        reaction: "ask again after a pause of one's own, of a second at least",
        rules: &[Trigger::times(
            &["newOrder"],
            Answers(|scene| answer_rate_limited(scene, "soon")),
        )],
    },
    Behaviour {
        row: 7,
        name: "poll-retry-after-zero",
        value: Value::None,
        does: "answers every reading of an order with Retry-After: 0",
        reaction: "poll at one's own pace",
        rules: &[Trigger::always(&["order"], Heads(|_, head| set(head, RETRY_AFTER, "0")))],
    },
    Behaviour {
        row: 7,
        name: "poll-retry-after-past",
        value: Value::None,
        does: "answers every reading of an order with a Retry-After that is over",
        reaction: "poll at one's own pace",
        rules: &[Trigger::always(
            &["order"],
            Heads(|_, head| set(head, RETRY_AFTER, &http_date(-3600))),
        )],
    },
    Behaviour {
        row: 8,
        name: "new-order-paused",
        value: Value::None,
        does: "takes no new order: 429 without Retry-After, with a page that ends the pause",
        reaction: "stop, and show the page",
        rules: &[Trigger::always(
            &["newOrder"],
            Answers(|_| {
                problem(
                    429,
                    "rateLimited",
                    "Your account is temporarily prevented from requesting certificates for www.example.com. \
                     Please visit: https://portal.example/unpause?jwt=abc",
                )
            }),
        )],
    },
    Behaviour {
        row: 9,
        name: "gateway-page",
        value: Value::Times(1),
        does: "answers a new order with 503 and a page of HTML",
        reaction: "judge by the status, and try again",
        rules: &[Trigger::times(&["newOrder"], Answers(|_| page(503, GATEWAY_PAGE)))],
    },
    Behaviour {
        row: 10,
        name: "new-order-lost",
        value: Value::Status(500),
        does: "makes the order, and answers with 500, 502 or 504 once",
        reaction: "send the same request: the same order comes back",
        rules: &[Trigger::once(&["newOrder"], Replaces(answer_failure))],
    },
    Behaviour {
        row: 11,
        name: "finalize-lost",
        value: Value::Status(500),
        does: "issues, and answers finalize with 500 once",
        reaction: "read the order; finalize again only if it is still ready",
        rules: &[Trigger::once(&["finalize"], Replaces(answer_failure))],
    },
    Behaviour {
        row: 11,
        name: "finalize-reset",
        value: Value::Times(1),
        does: "issues, and ends the connection without an answer",
        reaction: "read the order; finalize again only if it is still ready",
        rules: &[Trigger::times(&["finalize"], Sends(Sending::Nothing))],
    },
    Behaviour {
        row: 12,
        name: "challenge-lost",
        value: Value::Status(500),
        does: "takes the acceptance of a challenge, and answers with 500 once",
        reaction: "read the authorization; accept again only if it is still pending",
        rules: &[Trigger::once(&["challenge"], Replaces(answer_failure))],
    },
    Behaviour {
        row: 12,
        name: "challenge-reset",
        value: Value::Times(1),
        does: "takes the acceptance of a challenge, and ends the connection without an answer",
        reaction: "read the authorization; accept again only if it is still pending",
        rules: &[Trigger::times(&["challenge"], Sends(Sending::Nothing))],
    },
    Behaviour {
        row: 13,
        name: "finalize-not-ready",
        value: Value::Times(1),
        does: "refuses finalize with 403 orderNotReady although the order is ready",
        reaction: "read the order, and go on by its state",
        rules: &[Trigger::times(
            &["finalize"],
            Answers(|_| {
                problem(403, "orderNotReady", "Order's status is not acceptable for finalization")
            }),
        )],
    },
];

fn bad_nonce(_: &RequestScene<'_>) -> Response {
    problem(400, "badNonce", "JWS has an invalid anti-replay nonce")
}

fn answer_rate_limited(_: &RequestScene<'_>, retry_after: &str) -> Response {
    with_retry_after(problem(429, "rateLimited", RATE_LIMITED_DETAIL), retry_after)
}

/// Answers as the load balancer before a CA, which knows no nonces.
fn too_busy(_: &RequestScene<'_>) -> Response {
    with_retry_after(page(503, GATEWAY_PAGE), "1")
}

fn is_above_ceiling(scene: &RequestScene<'_>) -> bool {
    scene.asked.in_last_second > scene.value + scene.value / 2
}

fn without_nonce(_: &RequestScene<'_>, head: &mut response::Parts) {
    if head.status == StatusCode::SERVICE_UNAVAILABLE {
        head.headers.remove(&REPLAY_NONCE);
    }
}

fn too_many_failures(scene: &RequestScene<'_>) -> Response {
    let (name, until) = failed_too_often(scene).unwrap_or_default();
    let seconds = until.duration_since(Timestamp::now()).as_secs().max(1);
    let detail = format!(
        "too many failed authorizations ({}) for \"{name}\" in the last 1h0m0s, retry after {}",
        scene.value,
        until.strftime("%Y-%m-%d %H:%M:%S UTC"),
    );
    with_retry_after(problem(429, "rateLimited", &detail), &seconds.to_string())
}

fn answer_failure(scene: &RequestScene<'_>) -> Response {
    let status = u16::try_from(scene.value).unwrap_or(500);
    problem(status, "serverInternal", "Error creating new order")
}
