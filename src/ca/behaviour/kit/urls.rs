//! Rows 43 to 45: URLs, redirects and content types.

use axum::http::header::{CONTENT_TYPE, LINK, LOCATION};
use axum::http::response::Parts;
use axum::http::{HeaderName, HeaderValue};
use serde_json::Value as Json;

use super::answers::{empty, page, set, with};
use crate::ca::behaviour::rule::Effect::{Answers, Edits, Heads};
use crate::ca::behaviour::rule::{Behaviour, SIGNED_RESOURCES, Trigger, Value};

const RESOURCES_WITH_URLS: &[&str] =
    &["directory", "newAccount", "newOrder", "order", "authorization", "challenge", "finalize"];

pub(super) const KIT: &[Behaviour] = &[
    Behaviour {
        row: 43,
        name: "location-over-http",
        value: Value::None,
        does: "gives an order's URL without TLS",
        reaction: "refuse: nothing is sent in clear",
        rules: &[Trigger::always(
            &["newOrder"],
            Heads(|_, head| change(head, &LOCATION, |url| url.replacen("https:", "http:", 1))),
        )],
    },
    Behaviour {
        row: 43,
        name: "finalize-over-http",
        value: Value::None,
        does: "gives an order's finalize URL without TLS",
        reaction: "refuse: nothing is sent in clear",
        rules: &[Trigger::always(
            &["newOrder", "order"],
            Edits(|_, order| in_clear(&mut order["finalize"])),
        )],
    },
    Behaviour {
        row: 43,
        name: "authorization-over-http",
        value: Value::None,
        does: "gives the URLs of authorizations without TLS",
        reaction: "refuse: nothing is sent in clear",
        rules: &[Trigger::always(
            &["newOrder", "order"],
            Edits(|_, order| {
                order["authorizations"].as_array_mut().into_iter().flatten().for_each(in_clear);
            }),
        )],
    },
    Behaviour {
        row: 44,
        name: "relative-urls",
        value: Value::None,
        does: "gives all URLs without scheme and host",
        reaction: "resolve them by the URL that was asked",
        rules: &[
            Trigger::always(
                RESOURCES_WITH_URLS,
                Edits(|scene, object| relative(&scene.url(""), object)),
            ),
            Trigger::always(
                RESOURCES_WITH_URLS,
                Heads(|scene, head| {
                    let base = scene.url("");
                    change(head, &LOCATION, |url| url.replacen(&base, "", 1));
                    change(head, &LINK, |link| link.replacen(&base, "", 1));
                }),
            ),
        ],
    },
    Behaviour {
        row: 44,
        name: "directory-redirects",
        value: Value::Times(2),
        does: "redirects readers of the directory",
        reaction: "follow a few",
        rules: &[Trigger::times(
            &["directory"],
            Answers(|_| with(empty(302), LOCATION, "/directory")),
        )],
    },
    Behaviour {
        row: 44,
        name: "post-redirects",
        value: Value::None,
        does: "redirects new orders",
        reaction: "never follow with a signed request",
        rules: &[Trigger::always(
            &["newOrder"],
            Answers(|scene| with(empty(307), LOCATION, &scene.url("/acme/elsewhere"))),
        )],
    },
    Behaviour {
        row: 45,
        name: "content-type-missing",
        value: Value::None,
        does: "sends no content types",
        reaction: "take what can be read",
        rules: &[Trigger::always(
            RESOURCES_WITH_URLS,
            Heads(|_, head| {
                head.headers.remove(CONTENT_TYPE);
            }),
        )],
    },
    Behaviour {
        row: 45,
        name: "content-type-wrong",
        value: Value::None,
        does: "sends everything as text/plain with a charset",
        reaction: "take what can be read",
        rules: &[Trigger::always(
            SIGNED_RESOURCES,
            Heads(|_, head| set(head, CONTENT_TYPE, "text/plain; charset=utf-8")),
        )],
    },
    Behaviour {
        row: 45,
        name: "certificate-page",
        value: Value::None,
        does: "gives a page of HTML with status 200 in place of a chain",
        reaction: "refuse: it is no certificate",
        rules: &[Trigger::always(
            &["certificate"],
            Answers(|_| page(200, "<html><body>Sign in to go on</body></html>")),
        )],
    },
];

/// Changes the values of a header that is there.
fn change(head: &mut Parts, name: &HeaderName, change: impl Fn(&str) -> String) {
    let values = head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let values: Vec<_> = values.map(change).collect();
    head.headers.remove(name);
    for value in values {
        if let Ok(value) = HeaderValue::from_str(&value) {
            head.headers.append(name, value);
        }
    }
}

fn in_clear(url: &mut Json) {
    if let Some(text) = url.as_str() {
        *url = text.replacen("https:", "http:", 1).into();
    }
}

/// Removes the base from every URL in an object.
fn relative(base: &str, value: &mut Json) {
    match value {
        Json::String(text) => {
            if let Some(rest) = text.strip_prefix(base) {
                *text = rest.to_owned();
            }
        }
        Json::Array(values) => values.iter_mut().for_each(|value| relative(base, value)),
        Json::Object(members) => members.values_mut().for_each(|value| relative(base, value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}
