//! What the server says when it refuses.
//!
//! Which guard refused (a quota, a LimitRange, PodSecurity, a policy) can be known only from the server's prose, and is
//! read here alone. Generated names are cut to their prefix, so that a reason stays the same from try to try.

use kube::core::Status;

/// How the resources begin that solvers make objects of.
const SOLVED: [&str; 4] = ["pods", "services", "ingresses.", "httproutes."];

/// What of a cluster keeps an object out although its maker has the permission, by the server's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Guard {
    /// A webhook or an admission policy, which answers with a code of its choice.
    Policy,
    /// A quota that is full.
    Quota,
    /// What a Pod may ask for, by a LimitRange or by a quota that wants it said.
    Limits,
    /// What a Pod may do in its namespace.
    PodSecurity,
    /// One of which the words tell no more.
    Unknown,
}

impl Guard {
    /// The guard that says so, if its words are known.
    pub(in crate::store) fn of(said: &str) -> Option<Self> {
        let says = |words: &str| said.contains(words);
        if said.starts_with("admission webhook") || says(" denied request: ") {
            Some(Self::Policy)
        } else if says("exceeded quota: ") {
            Some(Self::Quota)
        } else if says(" usage per ") || says(" ratio per ") || says(": must specify ") {
            Some(Self::Limits)
        } else if says("violates PodSecurity ") {
            Some(Self::PodSecurity)
        } else {
            None
        }
    }

    /// Whether it may let the same in later with nobody changing anything: a quota fills and empties.
    pub(in crate::store) fn passes(self) -> bool {
        self == Self::Quota
    }

    /// What helps to get an object or a resource past it.
    pub(in crate::store) fn hint(self, what: &str, namespace: &str) -> String {
        match self {
            Self::Quota => format!(
                "raise that quota, or delete what fills it: kubectl describe quota --namespace {namespace}"
            ),
            Self::Limits => format!(
                "ask for other amounts by podTemplate.spec.resources of the solver, or --acme-http01-solver-resource-limits-cpu \
                 and its like; what is wanted: kubectl describe limitrange,quota --namespace {namespace}"
            ),
            Self::PodSecurity => format!(
                "change podTemplate.spec.securityContext of the solver as that level wants it, or the level: \
                 kubectl get namespace {namespace} --show-labels"
            ),
            Self::Policy if SOLVED.iter().any(|solved| what.starts_with(solved)) => {
                "change the solver's templates as that guard wants it, or ask whoever set it to let in what has the label \
                 acme.cert-manager.io/http01-solver"
                    .to_owned()
            }
            Self::Policy | Self::Unknown => {
                "whoever looks after the cluster set this guard; kubectl would be refused as well"
                    .to_owned()
            }
        }
    }
}

/// Tells whether a refusal names that cause.
pub(super) fn has_cause(status: &Status, reason: &str) -> bool {
    let details = status.details.as_ref();
    details.is_some_and(|about| about.causes.iter().any(|cause| cause.reason == reason))
}

/// A field that the definitions do not have: applying it is refused as if the server itself had failed.
pub(super) fn undeclared(said: &str) -> Option<&str> {
    let fields = said.strip_prefix("failed to create typed patch object ")?.split_once("): ")?.1;
    fields.ends_with(": field not declared in schema").then_some(fields)
}

/// RBAC's words, against those of admission plugins, which answer with the same code.
pub(super) fn lacks_permission(said: &str) -> bool {
    said.contains("forbidden: User \"") && said.contains(" cannot ")
}

/// A path that nobody serves is answered without details.
pub(super) fn is_about_an_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|about| !about.kind.is_empty() && !about.name.is_empty())
}

/// Which manager holds which fields.
pub(super) fn held(status: &Status) -> Option<String> {
    let causes = &status.details.as_ref()?.causes;
    let conflicts = causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
    let fields: Vec<_> =
        conflicts.map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    (!fields.is_empty()).then(|| fields.join("; "))
}

/// The faults of a manifest, by field.
pub(super) fn causes(status: &Status) -> Option<String> {
    let causes = &status.details.as_ref()?.causes;
    let cause = |cause: &kube::core::response::StatusCause| match cause.field.as_str() {
        "" | "<nil>" => cause.message.clone(),
        field => format!("{field}: {}", cause.message),
    };
    let all: Vec<_> = causes.iter().map(cause).filter(|text| !text.is_empty()).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The server's words, in one line.
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

    /// The guard that speaks so, and how what helps begins.
    fn check(said: &str, what: &str, expected: Option<Guard>, helps: &str) {
        let guard = Guard::of(said);
        assert_eq!(guard, expected, "{said}");
        let hint = guard.unwrap_or(Guard::Unknown).hint(what, "web");
        assert!(hint.contains(helps), "{hint}");
    }

    #[test]
    fn a_guard_is_known_by_its_words() {
        let pods = "pods in namespace web";
        let quota = "exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0";
        let describe = "kubectl describe quota --namespace web";
        for what in [pods, "Secret web/tls"] {
            check(&format!("x is forbidden: {quota}"), what, Some(Guard::Quota), describe);
        }
        let resources = "podTemplate.spec.resources";
        for said in [
            "minimum cpu usage per Container is 100m, but request is 10m",
            "[maximum memory usage per Pod is 32Mi, but limit is 64Mi, cpu max limit to request ratio per Container is 2]",
            "failed quota: compute: must specify limits.cpu for: acmesolver",
        ] {
            check(&format!("x is forbidden: {said}"), pods, Some(Guard::Limits), resources);
        }
        let said = "x is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false";
        check(said, pods, Some(Guard::PodSecurity), "podTemplate.spec.securityContext");
        let asked = "whoever looks after the cluster";
        for said in [
            "admission webhook \"guard\" denied the request: exceeded quota: of Fridays",
            "x is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no",
        ] {
            check(
                said,
                "httproutes.gateway.networking.k8s.io",
                Some(Guard::Policy),
                "http01-solver",
            );
            check(said, "Order web/a", Some(Guard::Policy), asked);
        }
        check("x is forbidden: not yet ready to handle request", pods, None, asked);
    }
}
