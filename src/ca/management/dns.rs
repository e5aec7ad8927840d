//! Changes of the records for the CA's own lookups.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde_json::Value;

use super::body::{BadRequest, bad_request, member, object, text};
use crate::ca::context::Ca;
use crate::ca::records::{RecordChange, Records};
use crate::model::caa::CaaProperty;

/// Applies the change that a request's body describes.
type Apply = fn(&Records, &Value) -> Result<(), BadRequest>;

/// Paths, each with its change.
pub(super) const CHANGES: &[(&str, Apply)] = &[
    ("/set-default-ipv4", |records, body| default(body).map(|it| records.set_default_v4(it))),
    ("/set-default-ipv6", |records, body| default(body).map(|it| records.set_default_v6(it))),
    ("/add-a", |records, body| {
        add(records, body, "addresses", |it| address(it).map(RecordChange::AddV4))
    }),
    ("/clear-a", |records, body| one(records, body, RecordChange::ClearV4)),
    ("/add-aaaa", |records, body| {
        add(records, body, "addresses", |it| address(it).map(RecordChange::AddV6))
    }),
    ("/clear-aaaa", |records, body| one(records, body, RecordChange::ClearV6)),
    ("/add-caa", |records, body| {
        add(records, body, "policies", |it| policy(it).map(RecordChange::AddCaa))
    }),
    ("/clear-caa", |records, body| one(records, body, RecordChange::ClearCaa)),
    ("/set-cname", |records, body| {
        one(records, body, RecordChange::SetAlias(text(body, "target")?.to_owned()))
    }),
    ("/clear-cname", |records, body| one(records, body, RecordChange::ClearAlias)),
    ("/set-txt", |records, body| {
        one(records, body, RecordChange::AddText(text(body, "value")?.to_owned()))
    }),
    ("/clear-txt", |records, body| one(records, body, RecordChange::ClearTexts)),
    ("/set-servfail", |records, body| one(records, body, RecordChange::Fail)),
    ("/clear-servfail", |records, body| one(records, body, RecordChange::Answer)),
];

/// Applies the change of the request's path.
pub(super) async fn change(
    State(ca): State<Arc<Ca>>,
    uri: Uri,
    body: Bytes,
) -> Result<StatusCode, BadRequest> {
    let found = CHANGES.iter().find(|(path, _)| *path == uri.path());
    let (Some((_, apply)), Some(records)) = (found, &ca.config.records) else {
        return Err((StatusCode::NOT_FOUND, "no records can be set\n".to_owned()));
    };
    apply(records, &object(&body)?)?;
    Ok(StatusCode::OK)
}

fn one(records: &Records, body: &Value, change: RecordChange) -> Result<(), BadRequest> {
    records.change(host(body)?, change);
    Ok(())
}

/// Adds a record for each value of a list, or none if a value cannot be read.
fn add(
    records: &Records,
    body: &Value,
    list: &str,
    read: impl Fn(&Value) -> Option<RecordChange>,
) -> Result<(), BadRequest> {
    let unreadable =
        || bad_request(&format!("\"{list}\" is missing, or one of them cannot be read"));
    let values = member(body, list).and_then(Value::as_array).filter(|list| !list.is_empty());
    let changes: Option<Vec<_>> = values.ok_or_else(unreadable)?.iter().map(read).collect();
    let host = host(body)?;
    for change in changes.ok_or_else(unreadable)? {
        records.change(host, change);
    }
    Ok(())
}

fn host(body: &Value) -> Result<&str, BadRequest> {
    Some(text(body, "host")?)
        .filter(|host| !host.trim_end_matches('.').is_empty())
        .ok_or_else(|| bad_request("\"host\" is empty"))
}

fn address<T: FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}

fn policy(value: &Value) -> Option<CaaProperty> {
    let text = |name| member(value, name)?.as_str();
    Some(CaaProperty::new(0, text("tag")?, text("value")?))
}

/// Returns a default address; `None` if the text is empty.
fn default<T: FromStr>(body: &Value) -> Result<Option<T>, BadRequest> {
    match text(body, "ip")? {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| bad_request("\"ip\" is no such address")),
    }
}
