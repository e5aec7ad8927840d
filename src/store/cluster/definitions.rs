//! Definitions of the six kinds at the server.

use http::Method;
use serde_json::Value;

use super::access_request::{AccessRequest, RequestedResource};
use super::refusal;
use super::wire::{Call, Wire};
use crate::model::Kind;
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;

/// Checks that the six kinds are served.
pub(super) async fn check(wire: &Wire) -> Result<(), StoreError> {
    match unserved(wire).await?.first() {
        Some(unserved) => Err(undefined(wire, unserved.kind, &unserved.versions).into()),
        None => Ok(()),
    }
}

/// A kind of cert-manager that the server does not serve in the version that we use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnservedKind {
    /// The kind.
    pub kind: Kind,
    /// Versions of the kind's group that are served, whatever kinds they have.
    pub versions: Vec<String>,
}

/// Lists those of the six kinds that are not served.
pub(super) async fn unserved(wire: &Wire) -> Result<Vec<UnservedKind>, StoreError> {
    let mut all = Vec::new();
    for group in ["cert-manager.io", "acme.cert-manager.io"] {
        let resource = format!("resources of {group}/v1");
        let deed = AccessRequest::other("discover", &resource, "");
        let call = Call::new(Method::GET, format!("/apis/{group}/v1"));
        let served = match wire.answer(&deed, &call).await? {
            Ok(answer) => answer.body,
            Err(status) if status.code == 404 => Value::Null,
            Err(status) => return Err(refusal::refused(&wire.server, &deed, &status)),
        };
        let of_group = Kind::SIX.into_iter().filter(|kind| kind.group() == group);
        let lacking: Vec<Kind> = of_group.filter(|kind| !serves(&served, *kind)).collect();
        if lacking.is_empty() {
            continue;
        }
        let versions = versions(wire, group).await;
        let of = |kind| UnservedKind { kind, versions: versions.clone() };
        all.extend(lacking.into_iter().map(of));
    }
    Ok(all)
}

fn serves(resources: &Value, kind: Kind) -> bool {
    let plural = kind.plural();
    let listed = resources.get("resources").and_then(Value::as_array);
    listed.is_some_and(|all| all.iter().any(|resource| resource["name"] == plural.as_str()))
}

/// Adds to an error about an undefined kind which versions are served instead; returns other errors as they are.
pub(super) async fn explain(
    wire: &Wire,
    error: StoreError,
    deed: &AccessRequest<'_>,
) -> StoreError {
    match (&error, deed.kind) {
        (StoreError::Cluster(fault), RequestedResource::Kind(kind))
            if matches!(**fault, ClusterFault::Undefined { .. }) =>
        {
            undefined(wire, kind, &versions(wire, kind.group()).await).into()
        }
        _ => error,
    }
}

fn undefined(wire: &Wire, kind: Kind, versions: &[String]) -> ClusterFault {
    let why = if versions.is_empty() {
        format!("it has nothing of {}", kind.group())
    } else if versions.iter().any(|version| kind.api_version().ends_with(&format!("/{version}"))) {
        format!("of {} it has other resources", kind.api_version())
    } else {
        format!(
            "of {} it has only {}, which is older than this program reads",
            kind.group(),
            versions.join(", ")
        )
    };
    ClusterFault::Undefined {
        server: wire.server.clone(),
        resource: format!("{}.{}", kind.plural(), kind.api_version()),
        why,
    }
}

async fn versions(wire: &Wire, group: &str) -> Vec<String> {
    let deed = AccessRequest::other("discover", group, "");
    let call = Call::new(Method::GET, format!("/apis/{group}"));
    let Ok(Ok(answer)) = wire.answer(&deed, &call).await else { return Vec::new() };
    let versions = answer.body.get("versions").and_then(Value::as_array).cloned();
    let version = |entry: Value| entry["version"].as_str().map(str::to_owned);
    versions.unwrap_or_default().into_iter().filter_map(version).collect()
}
