//! Messages of a server that refuses.
//!
//! The guard that refused (a quota, a LimitRange, PodSecurity, a policy) shows only in the server's prose, which is
//! read here alone. Generated names are cut to their prefix, so that a reason stays equal from try to try.

use kube::core::Status;

use crate::model::cause::Guard;

/// Returns the guard that refuses, if the server's words are known.
pub fn guard_that_says(said: &str) -> Option<Guard> {
    let says = |words: &str| said.contains(words);
    if said.starts_with("admission webhook") || says(" denied request: ") {
        Some(Guard::Policy)
    } else if says("exceeded quota: ") {
        Some(Guard::Quota)
    } else if says(" usage per ") || says(" ratio per ") || says(": must specify ") {
        Some(Guard::Limits)
    } else if says("violates PodSecurity ") {
        Some(Guard::PodSecurity)
    } else {
        None
    }
}

/// Returns whether an API server has refused an object for another reason than a missing permission: by a guard of the
/// cluster, or by a plugin of the server itself, such as that of priority classes.
pub fn is_refused_by_admission(said: &str) -> bool {
    guard_that_says(said).is_some()
        || (said.contains("\" is forbidden: ") && !said.contains("\" is forbidden: User \""))
}

/// Returns whether a refusal names that cause.
pub(super) fn has_cause(status: &Status, reason: &str) -> bool {
    let details = status.details.as_ref();
    details.is_some_and(|about| about.causes.iter().any(|cause| cause.reason == reason))
}

/// Returns a field that the definitions do not have: applying it is refused as if the server itself had failed.
pub(super) fn undeclared(said: &str) -> Option<&str> {
    let fields = said.strip_prefix("failed to create typed patch object ")?.split_once("): ")?.1;
    fields.ends_with(": field not declared in schema").then_some(fields)
}

/// Returns whether the words are RBAC's, not those of admission plugins, which answer with the same code.
pub(super) fn lacks_permission(said: &str) -> bool {
    said.contains("forbidden: User \"") && said.contains(" cannot ")
}

/// Returns whether a refusal is about an object; a path without a resource is answered without details.
pub(super) fn is_about_an_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|about| !about.kind.is_empty() && !about.name.is_empty())
}

/// Fields that other managers hold, with the managers.
pub(super) fn held(status: &Status) -> Option<String> {
    let causes = &status.details.as_ref()?.causes;
    let conflicts = causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
    let fields: Vec<_> =
        conflicts.map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    (!fields.is_empty()).then(|| fields.join("; "))
}

/// Faults of a manifest, by field.
pub(super) fn causes(status: &Status) -> Option<String> {
    let causes = &status.details.as_ref()?.causes;
    let cause = |cause: &kube::core::response::StatusCause| match cause.field.as_str() {
        "" | "<nil>" => cause.message.clone(),
        field => format!("{field}: {}", cause.message),
    };
    let all: Vec<_> = causes.iter().map(cause).filter(|text| !text.is_empty()).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Message of the server, in one line.
pub(super) fn said(status: &Status) -> String {
    let said = status.message.trim();
    match said {
        "" if status.reason.is_empty() => format!("HTTP status {}", status.code),
        "" => status.reason.clone(),
        // A proxy's page of HTML would drown the line.
        long => long.lines().next().unwrap_or_default().chars().take(500).collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::store::cluster::server_messages::*;

    #[track_caller]
    fn check(said: &str, expected: Option<Guard>) {
        assert_eq!(guard_that_says(said), expected, "{said}");
    }

    #[test]
    fn a_guard_is_known_by_its_words() {
        check(
            "x is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0",
            Some(Guard::Quota),
        );
        for said in [
            "minimum cpu usage per Container is 100m, but request is 10m",
            "[maximum memory usage per Pod is 32Mi, but limit is 64Mi, cpu max limit to request ratio per Container is 2]",
            "failed quota: compute: must specify limits.cpu for: acmesolver",
        ] {
            check(&format!("x is forbidden: {said}"), Some(Guard::Limits));
        }
        check(
            "x is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false",
            Some(Guard::PodSecurity),
        );
        for said in [
            "admission webhook \"guard\" denied the request: exceeded quota: of Fridays",
            "x is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no",
        ] {
            check(said, Some(Guard::Policy));
        }
        check("x is forbidden: not yet ready to handle request", None);
    }
}
