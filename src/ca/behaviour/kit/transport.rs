//! Rows 49 to 56: endless bodies, silence, a directory that moves, clocks, renewal information, and connections that end.

use axum::http::header::DATE;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;

use super::answers::{http_date, set};
use crate::ca::behaviour::rule::Effect::{Edits, Heads, IsSilent, Sends, Speaks};
use crate::ca::behaviour::rule::{Behaviour, RequestScene, SIGNED_RESOURCES, Trigger, Value};
use crate::ca::behaviour::sending::Sending;
use crate::ca::behaviour::wire::ConnectionBehaviour;

/// Resources of an issuance.
const RESOURCES: &[&str] = &[
    "directory",
    "newNonce",
    "newAccount",
    "newOrder",
    "order",
    "authorization",
    "challenge",
    "finalize",
    "certificate",
];
const MONTH_SECONDS: u64 = 30 * 24 * 60 * 60;

pub(super) const KIT: &[Behaviour] = &[
    Behaviour {
        row: 49,
        name: "endless-order",
        value: Value::None,
        does: "never ends the answer to a new order",
        reaction: "stop reading at a limit; the header names the order, which is read in place of another one",
        rules: &[Trigger::always(&["newOrder"], Sends(Sending::Endlessly))],
    },
    Behaviour {
        row: 49,
        name: "endless-chain",
        value: Value::None,
        does: "never ends a chain",
        reaction: "stop reading at a limit",
        rules: &[Trigger::always(&["certificate"], Sends(Sending::Endlessly))],
    },
    Behaviour {
        row: 50,
        name: "slow-bytes",
        value: Value::None,
        does: "sends an order, when it is read, byte by byte with long pauses",
        reaction: "a limit for the whole answer",
        rules: &[Trigger::always(&["order"], Sends(Sending::Slowly))],
    },
    Behaviour {
        row: 50,
        name: "silent",
        value: Value::None,
        does: "never answers when an order is read",
        reaction: "a limit for the answer",
        rules: &[Trigger::always(&["order"], IsSilent)],
    },
    Behaviour {
        row: 50,
        name: "store-locks-up",
        value: Value::Number(100),
        does: "answers no signed request any more once so many were under way at once",
        reaction: "few requests at once; end in bounded time, and say since when nothing is answered",
        rules: &[Trigger::always(SIGNED_RESOURCES, IsSilent)
            .only(|scene| scene.asked.most_at_once > scene.value)],
    },
    Behaviour {
        row: 51,
        name: "directory-moves",
        value: Value::Times(1),
        does: "gives places in the directory at which there is nothing, and later the right ones",
        reaction: "read the directory again, and go on",
        rules: &[Trigger::times(
            &["directory"],
            Edits(|scene, directory| {
                directory["newOrder"] = scene.url("/acme/older/new-order").into();
            }),
        )],
    },
    Behaviour {
        row: 52,
        name: "clock-behind",
        value: Value::Seconds(MONTH_SECONDS),
        does: "has a clock that is so many seconds behind, in Date and in every moment it names",
        reaction: "read moments by the Date of the answer",
        rules: &[
            Trigger::always(
                RESOURCES,
                Heads(|scene, head| set(head, DATE, &http_date(-off(scene)))),
            ),
            Trigger::always(RESOURCES, Edits(|scene, object| shift(object, -off(scene)))),
        ],
    },
    Behaviour {
        row: 52,
        name: "clock-ahead",
        value: Value::Seconds(MONTH_SECONDS),
        does: "has a clock that is so many seconds ahead, in Date and in every moment it names",
        reaction: "read moments by the Date of the answer",
        rules: &[
            Trigger::always(
                RESOURCES,
                Heads(|scene, head| set(head, DATE, &http_date(off(scene)))),
            ),
            Trigger::always(RESOURCES, Edits(|scene, object| shift(object, off(scene)))),
        ],
    },
    Behaviour {
        row: 55,
        name: "renewal-info-malformed",
        value: Value::None,
        does: "names a place for renewal information that is no URL",
        reaction: "renew by the lifetime; never later than at a third of it",
        rules: &[Trigger::always(
            &["directory"],
            Edits(|_, directory| directory["renewalInfo"] = "::no url::".into()),
        )],
    },
    Behaviour {
        row: 55,
        name: "renewal-info-404",
        value: Value::None,
        does: "names a place for renewal information at which there is none",
        reaction: "renew by the lifetime; never later than at a third of it",
        rules: &[Trigger::always(
            &["directory"],
            Edits(|scene, directory| {
                directory["renewalInfo"] = scene.url("/acme/renewal-info").into();
            }),
        )],
    },
    Behaviour {
        row: 56,
        name: "http2",
        value: Value::None,
        does: "speaks HTTP/2, and nothing else happens",
        reaction: "speak it, too",
        rules: &[Trigger::always(&[], Speaks(|_| ConnectionBehaviour::Http2))],
    },
    Behaviour {
        row: 56,
        name: "http2-goaway",
        value: Value::Number(4),
        does: "speaks HTTP/2; says GOAWAY after so many requests on a connection, and leaves the next unanswered",
        reaction: "read again at once; what had an effect as when an answer is lost",
        rules: &[Trigger::always(&[], Speaks(ConnectionBehaviour::GoAway))],
    },
    Behaviour {
        row: 56,
        name: "http2-reset",
        value: Value::Times(1),
        does: "speaks HTTP/2; resets the stream in the middle of an order that is read",
        reaction: "read again",
        rules: &[
            Trigger::always(&[], Speaks(|_| ConnectionBehaviour::Http2)),
            Trigger::times(&["order"], Sends(Sending::Half)),
        ],
    },
    Behaviour {
        row: 56,
        name: "connection-cut",
        value: Value::Times(1),
        does: "ends the connection in the middle of an order that is read",
        reaction: "read again",
        rules: &[Trigger::times(&["order"], Sends(Sending::Half))],
    },
];

fn off(scene: &RequestScene<'_>) -> i64 {
    i64::try_from(scene.value).unwrap_or(i64::MAX)
}

/// Shifts every moment in an object.
fn shift(value: &mut Json, seconds: i64) {
    match value {
        Json::String(text) => {
            let moment = text.parse::<Timestamp>().ok();
            let by = SignedDuration::from_secs(seconds);
            if let Some(Ok(shifted)) = moment.map(|moment| moment.saturating_add(by)) {
                *text = shifted.to_string();
            }
        }
        Json::Array(values) => values.iter_mut().for_each(|value| shift(value, seconds)),
        Json::Object(members) => members.values_mut().for_each(|value| shift(value, seconds)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}
