//! CTL-10 … CTL-13, CTL-15 and HYG-02: objects of solvers that are refused, removed, not at work, or left over.

use jiff::SignedDuration;

use super::open_path::{OpenPath, named, open_paths};
use crate::diagnosis::case::Case;
use crate::diagnosis::case::path::age;
use crate::diagnosis::case::path_objects::{ContainerStatusCase, PodCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, stored};
use crate::diagnosis::words::facts;
use crate::diagnosis::words::foreign::{IngressRefusal, ingress_refusal};
use crate::model::cause::{Cause, Guard};
use crate::model::common::{ConditionStatus, condition};
use crate::model::{Event, Metadata};

/// Maximum time that a Pod takes to start.
const POD_START_MAX: SignedDuration = SignedDuration::from_mins(2);
/// Maximum time that the cluster takes to remove an object without an owner.
const GARBAGE_COLLECTION_MAX: SignedDuration = SignedDuration::from_mins(5);
/// Number of restarts or Warnings from which a Pod has a fault.
const MIN_RESTARTS: u32 = 3;
/// Label of the objects of a rehearsal, which have no owner.
const REHEARSAL_LABEL: &str = "kubectl-acme/rehearsal";
/// Maximum number of leftover objects that are reported.
const MAX_LEFTOVERS: usize = 20;
/// Labels and annotations in which Argo CD notes the application of an object.
const ARGO_CD_MARKS: [&str; 2] = ["argocd.argoproj.io/instance", "argocd.argoproj.io/tracking-id"];
/// Label of an EndpointSlice that names its Service.
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

pub(super) const RULES: &[FaultRule] = &[
    objects_are_refused,
    objects_are_gone,
    pod_cannot_start,
    service_has_no_endpoint,
    objects_are_left,
];

/// CTL-11, CTL-13, HTTP-12, HTTP-13: a guard of the cluster keeps an object out.
fn objects_are_refused(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(challenge) = open.challenge else { continue };
        let reason = &challenge.status.reason;
        let Some(Cause::Denied(guard)) = facts::cause(challenge) else { continue };
        let cause = match (guard, ingress_refusal(reason)) {
            (Guard::Quota | Guard::Limits, _) => CauseId::Ctl11,
            (_, Some(IngressRefusal::PathType)) => CauseId::Http13,
            (_, Some(IngressRefusal::HostTaken)) => CauseId::Http12,
            (Guard::Policy | Guard::PodSecurity | Guard::Unknown, _) => CauseId::Ctl13,
        };
        let shown = open.stored(format!("Challenge {}: status.reason", challenge.name()), reason);
        found.push(open.finding(cause, Grade::Certain, shown, reason));
    }
}

/// CTL-10: objects that were put up for a Challenge are no longer there.
fn objects_are_gone(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(challenge) = open.presented() else { continue };
        let path = open.path;
        let of = &open.wanted.namespace;
        let is_listed = |plural: &str| path.has_listed(plural, of);
        let is_gone = |plural: &str, is_there: bool| is_listed(plural) && !is_there;
        let services = || open.own(&path.services, |service| &service.metadata);
        let mut gone: Vec<String> = Vec::new();
        let by_route = open.wanted.solver.gateway_http_route.is_some();
        if by_route && is_gone("httproutes", open.own(&path.routes, |r| &r.metadata).is_some()) {
            gone.push("HTTPRoute".to_owned());
        }
        if !by_route && is_listed("ingresses") {
            match (open.edited_ingress(), open.ingress()) {
                (None, None) => gone.push("Ingress".to_owned()),
                (Some(name), Some(ingress)) if !has_token(ingress, &challenge.spec.token) => {
                    gone.push(format!("path in Ingress {of}/{name}"));
                }
                _ => {}
            }
        }
        if is_gone("services", services().is_some()) {
            gone.push("Service".to_owned());
        }
        if is_gone("pods", open.pod().is_some()) {
            gone.push("Pod".to_owned());
        }
        if gone.is_empty() {
            continue;
        }
        let what = format!("the solver's {}", gone.join(", "));
        let asked = format!("objects of Challenge {}", challenge.name());
        let shown = open.stored(
            asked,
            format!("status.presented is true, but {what} in namespace {of} does not exist"),
        );
        let tracked = path.ingresses.iter().map(|ingress| &ingress.metadata).find(|metadata| {
            let has = |name: &&str| {
                metadata.labels.contains_key(*name) || metadata.annotations.contains_key(*name)
            };
            metadata.namespace == *of && ARGO_CD_MARKS.iter().any(has)
        });
        let more = tracked.map(|metadata| {
            open.stored(named("Ingress", metadata), "is tracked by Argo CD, as its metadata says")
        });
        found.push(open.finding(CauseId::Ctl10, Grade::Likely, shown, what).shown_by(more));
    }
}

fn has_token(ingress: &crate::diagnosis::case::path_objects::IngressCase, token: &str) -> bool {
    let rules = ingress.spec.rules.iter().flat_map(|rule| &rule.http.paths);
    rules.into_iter().any(|path| !token.is_empty() && path.path.rsplit('/').next() == Some(token))
}

/// Returns the reason why a Pod does not start; `None` if it has started, or may still start. `warned` is the most
/// frequent Warning about the Pod.
fn start_fault(
    pod: &PodCase,
    age: SignedDuration,
    warned: Option<&Event>,
) -> Option<(Grade, String)> {
    if let Some((status, waiting)) = pod.status.container_statuses.iter().find_map(|status| {
        let waiting = status.state.waiting.as_ref()?;
        // Every start passes through these two states.
        let is_stuck = !["", "ContainerCreating", "PodInitializing"].contains(&&*waiting.reason);
        is_stuck.then_some((status, waiting))
    }) {
        let said = join_words(&waiting.reason, &waiting.message);
        return Some((Grade::Certain, format!("container {} waits: {said}", status.name)));
    }
    let ends = |status: &&ContainerStatusCase| status.restart_count >= MIN_RESTARTS;
    if let Some(status) =
        pod.status.container_statuses.iter().find(ends).filter(|_| !pod.is_ready())
    {
        let ended = status.last_state.terminated.as_ref();
        let why = ended.map(|e| format!(", last {} with exit code {}", e.reason, e.exit_code));
        let why = why.unwrap_or_default();
        let (name, count) = (&status.name, status.restart_count);
        return Some((Grade::Certain, format!("container {name} was started {count} times{why}")));
    }
    let is_false = |kind: &str| {
        condition(&pod.status.conditions, kind).filter(|c| c.status == ConditionStatus::False)
    };
    if let Some(scheduled) = is_false("PodScheduled") {
        let said = join_words(&scheduled.reason, &scheduled.message);
        return Some((Grade::Certain, format!("no node accepts it: {said}")));
    }
    match pod.status.phase.as_str() {
        phase @ ("Failed" | "Succeeded") => {
            let why = join_words(&pod.status.reason, "");
            Some((Grade::Certain, format!("it has ended: {}", join_words(phase, &why))))
        }
        // A node has taken the Pod, but a thing that its first container needs (network, volume, Secret) is missing.
        "Pending" | "" => match warned {
            Some(warned) if age > POD_START_MAX || warned.count >= Some(MIN_RESTARTS) => {
                let said = join_words(&warned.reason, &warned.message);
                Some((Grade::Certain, format!("its containers wait: {said}")))
            }
            _ if age > POD_START_MAX => {
                Some((Grade::Likely, format!("it is Pending for {} min", age.as_mins())))
            }
            _ => None,
        },
        _ => None,
    }
}

fn join_words(word: &str, sentence: &str) -> String {
    match (word, sentence) {
        ("", sentence) => sentence.to_owned(),
        (word, "") => word.to_owned(),
        (word, sentence) => format!("{word}: {sentence}"),
    }
}

/// CTL-12.
fn pod_cannot_start(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(pod) = open.pod() else { continue };
        let warned = open.warnings(&pod.metadata).max_by_key(|event| event.count);
        let Some((grade, why)) = start_fault(pod, age(&pod.metadata, case.at), warned) else {
            continue;
        };
        let name = named("Pod", &pod.metadata);
        let shown = open.stored(format!("{name}: status"), &why);
        let images = pod.spec.containers.iter().map(|container| {
            open.stored(format!("{name}: image of {}", container.name), &container.image)
        });
        let told = open.warnings(&pod.metadata).map(|event| {
            open.stored(format!("event about {name}"), join_words(&event.reason, &event.message))
        });
        let more: Vec<_> = images.chain(told).collect();
        found.push(
            open.finding(CauseId::Ctl12, grade, shown, format!("{name}: {why}")).shown_by(more),
        );
    }
}

/// CTL-15: the Service has no endpoint, although there is a Pod that has not failed to start.
fn service_has_no_endpoint(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let path = open.path;
        let Some(service) = open.own(&path.services, |service| &service.metadata) else { continue };
        let of = &service.metadata;
        if !path.has_listed("endpointslices", &of.namespace) {
            continue;
        }
        if has_endpoint(&open, of) {
            continue;
        }
        let Some(pod) = open.pod() else { continue };
        let age = age(&pod.metadata, case.at);
        let labels = &pod.metadata.labels;
        let odd =
            service.spec.selector.iter().find(|(name, value)| labels.get(*name) != Some(value));
        let (grade, why) = match odd {
            Some((label, value)) => {
                let has = labels.get(label).map_or("none", String::as_str);
                (Grade::Certain, format!("it selects {label}={value}, and the Pod has {has}"))
            }
            // A Pod that does not start has a cause of its own, or may still start.
            None if start_fault(pod, age, None).is_some() || age < POD_START_MAX => continue,
            None if !pod.is_ready() => (Grade::Likely, "the Pod is not ready".to_owned()),
            None => (Grade::Likely, "the Pod is ready, but no EndpointSlice has it".to_owned()),
        };
        let name = named("Service", of);
        let shown = open.stored(format!("endpoints of {name}"), format!("none is ready: {why}"));
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let more =
            open.stored(format!("{}: labels", named("Pod", &pod.metadata)), labels.join(", "));
        let finding = open.finding(CauseId::Ctl15, grade, shown, format!("{name}: {why}"));
        found.push(finding.shown_by([more]));
    }
}

/// Reports whether an endpoint of a Service is ready, or does not say whether it is ready.
fn has_endpoint(open: &OpenPath<'_>, service: &Metadata) -> bool {
    let own = open.path.endpoints.iter().filter(|slice| {
        slice.metadata.namespace == service.namespace
            && slice.metadata.labels.get(SERVICE_NAME_LABEL) == Some(&service.name)
    });
    let mut endpoints = own.flat_map(|slice| slice.endpoints.iter().flatten());
    endpoints.any(|endpoint| endpoint.conditions.ready != Some(false))
}

/// Returns evidence that the solver's Service has a ready endpoint; `None` if it has none, or was not read.
pub(super) fn ready_endpoint(open: &OpenPath<'_>) -> Option<Evidence> {
    let service = &open.own(&open.path.services, |service| &service.metadata)?.metadata;
    let is_ready = has_endpoint(open, service);
    let asked = format!("endpoints of {}", named("Service", service));
    is_ready.then(|| open.stored(asked, "one is ready"))
}

/// HYG-02, GW-05: objects of solvers whose Challenge is gone.
fn objects_are_left(case: &Case, found: &mut Vec<Finding>) {
    let Some(path) = &case.cluster_path else { return };
    let is_left = |of: &Metadata| {
        path.has_listed("challenges", &of.namespace)
            && !of.labels.contains_key(REHEARSAL_LABEL)
            && !of.controller().is_some_and(|owner| path.challenges.contains_key(&owner.uid))
            && age(of, case.at) > GARBAGE_COLLECTION_MAX
    };
    let mut left: Vec<(&str, &Metadata, Option<&str>)> = Vec::new();
    for ingress in &path.ingresses {
        let label = "acme.cert-manager.io/http01-solver";
        if ingress.metadata.labels.get(label).is_some_and(|value| value == "true") {
            let mut domains = path.wanted.iter().map(|wanted| wanted.domain.as_str());
            let of_host = domains.find(|domain| ingress.has_host(domain));
            left.push(("Ingress", &ingress.metadata, of_host));
        }
    }
    left.extend(path.routes.iter().map(|route| {
        let mut domains = path.wanted.iter().map(|wanted| wanted.domain.as_str());
        let of_host = domains.find(|domain| route.spec.hostnames.iter().any(|host| host == domain));
        ("HTTPRoute", &route.metadata, of_host)
    }));
    left.extend(path.services.iter().map(|service| ("Service", &service.metadata, None)));
    left.extend(path.pods.iter().map(|pod| ("Pod", &pod.metadata, None)));
    left.retain(|(_, metadata, _)| is_left(metadata));
    for (kind, of, domain) in left.into_iter().take(MAX_LEFTOVERS) {
        let name = named(kind, of);
        let owner = of.controller();
        let owner = owner.map_or_else(
            || "it has no owner".to_owned(),
            |owner| format!("its owner {} {} does not exist", owner.kind, owner.name),
        );
        let came = format!("{owner}, and it is {} min old", age(of, case.at).as_mins());
        let (cause, word) = match kind {
            "HTTPRoute" => (CauseId::Gw05, "ROUTE"),
            "Ingress" => (CauseId::Hyg02, "INGRESS"),
            _ => (CauseId::Hyg02, "OBJECT"),
        };
        let shown = stored(&name, case.at, &came);
        let subject = domain.map_or_else(|| name.clone(), str::to_owned);
        found.push(
            Finding::new(cause, Grade::Certain, subject, shown)
                .with("WHAT", &name)
                .with("WHY", came)
                .with(word, &of.name)
                .with("NAMESPACE", &of.namespace),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::judge;
    use super::super::open_path::testing::{object, own, path_with};
    use super::super::tests::check;
    use crate::diagnosis::case::Case;
    use crate::diagnosis::case::path::ClusterPathCase;
    use crate::diagnosis::catalogue::id::CauseId;

    fn by_ingress(change: impl FnOnce(&mut Case, &mut ClusterPathCase)) -> Case {
        path_with(json!({"ingress": {"ingressClassName": "edge"}}), change)
    }

    #[test]
    fn a_solver_at_work_has_no_fault() {
        check(&by_ingress(|_, _| {}), &[]);
    }

    #[test]
    fn whoever_refuses_an_object_decides_the_cause() {
        for (reason, cause) in [
            ("pods \"x\" is forbidden: exceeded quota: none, requested: pods=1", CauseId::Ctl11),
            (
                "couldn't Present challenge web/www-1: admission webhook \"guard\" denied the request: no",
                CauseId::Ctl13,
            ),
            (
                "couldn't Present challenge web/www-1: admission webhook \"validate.nginx\" denied the request: ingress \
                 contains invalid paths: path /.well-known cannot be used with pathType Exact",
                CauseId::Http13,
            ),
            (
                "admission webhook \"validate.nginx\" denied the request: host \"www.example.com\" and path \"/\" is already \
                 defined in ingress web/site",
                CauseId::Http12,
            ),
            (
                "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": a",
                CauseId::Ctl13,
            ),
        ] {
            let case = by_ingress(|case, path| {
                let status = &mut case.certificates[0].challenges[0].status;
                reason.clone_into(&mut status.reason);
                status.presented = false;
                path.challenges.insert("challenge".into(), false);
                (path.pods, path.services, path.ingresses) = Default::default();
            });
            check(&case, &[cause]);
        }
    }

    #[test]
    fn what_was_up_and_is_gone_was_removed() {
        check(&by_ingress(|_, path| path.ingresses.clear()), &[CauseId::Ctl10]);
        check(&by_ingress(|_, path| path.pods.clear()), &[CauseId::Ctl10]);
        // What could not be listed may be there.
        let unread = by_ingress(|_, path| {
            path.pods.clear();
            path.listed.remove("pods/web");
        });
        check(&unread, &[]);
        // It was taken down while it was read.
        let over = by_ingress(|_, path| {
            path.pods.clear();
            path.challenges.insert("challenge".into(), false);
        });
        check(&over, &[]);
        let edited = |has_path: bool| {
            path_with(json!({"ingress": {"name": "ingress"}}), |_, path| {
                if !has_path {
                    path.ingresses[0].spec.rules.clear();
                }
            })
        };
        check(&edited(true), &[]);
        check(&edited(false), &[CauseId::Ctl10]);
    }

    #[track_caller]
    fn check_pod(status: Value, expected: &[CauseId]) {
        let case = by_ingress(|_, path| {
            path.pods[0].status = object(status);
            path.endpoints[0].endpoints = None;
        });
        check(&case, expected);
    }

    #[test]
    fn a_pod_that_does_not_start_says_why() {
        let waits = |reason: &str| {
            json!({"phase": "Pending", "containerStatuses": [{
                "name": "acmesolver", "state": {"waiting": {"reason": reason, "message": "no"}},
            }]})
        };
        for reason in ["ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError"] {
            check_pod(waits(reason), &[CauseId::Ctl12]);
        }
        let unscheduled =
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        check_pod(json!({"phase": "Pending", "conditions": [unscheduled]}), &[CauseId::Ctl12]);
        check_pod(json!({"phase": "Failed", "reason": "Evicted"}), &[CauseId::Ctl12]);
        let crashes = json!([{
            "name": "acmesolver", "restartCount": 5, "lastState": {"terminated": {"reason": "Error", "exitCode": 1}},
        }]);
        check_pod(json!({"phase": "Running", "containerStatuses": crashes}), &[CauseId::Ctl12]);
        check_pod(waits("ContainerCreating"), &[CauseId::Ctl12]);
        let young = by_ingress(|case, path| {
            path.pods[0].status = object(waits("ContainerCreating"));
            path.endpoints[0].endpoints = None;
            case.at = "2026-11-24T21:50:30Z".parse().unwrap();
        });
        check(&young, &[]);
        // The node says why, again and again.
        let warned = |count: u32| {
            by_ingress(|case, path| {
                path.pods[0].status = object(waits("ContainerCreating"));
                path.endpoints[0].endpoints = None;
                path.warnings = vec![object(json!({
                    "involvedObject": {"kind": "Pod", "namespace": "web", "name": "pod", "uid": "pod"},
                    "reason": "FailedCreatePodSandBox", "message": "failed to assign an IP address to container",
                    "type": "Warning", "count": count,
                }))];
                case.at = "2026-11-24T21:50:30Z".parse().unwrap();
            })
        };
        check(&warned(1), &[]);
        check(&warned(3), &[CauseId::Ctl12]);
        let shown = judge(&warned(3)).swap_remove(0).evidence;
        assert!(shown.iter().any(|it| it.came.contains("failed to assign an IP address")));
    }

    #[test]
    fn a_service_that_leads_nowhere_is_told_with_what_it_selects() {
        let odd = by_ingress(|_, path| {
            let label = "acme.cert-manager.io/http-token".to_owned();
            path.pods[0].metadata.labels.insert(label, "2".into());
            path.endpoints[0].endpoints = None;
        });
        check(&odd, &[CauseId::Ctl15]);
        check(&by_ingress(|_, path| path.endpoints.clear()), &[CauseId::Ctl15]);
        check_pod(json!({"phase": "Running"}), &[CauseId::Ctl15]);
    }

    #[test]
    fn what_has_lost_its_challenge_is_left_over() {
        let orphan = |age: &str| {
            let owner = json!([{"apiVersion": "v1", "kind": "Challenge", "name": "old", "uid": "old", "controller": true}]);
            own("old", json!({"ownerReferences": owner, "creationTimestamp": age}))
        };
        let of = |age: &str| {
            by_ingress(|_, path| {
                path.pods
                    .push(object(json!({"metadata": orphan(age), "status": {"phase": "Running"}})));
            })
        };
        check(&of("2026-11-24T21:00:00Z"), &[CauseId::Hyg02]);
        check(&of("2026-11-24T21:58:00Z"), &[]);
        let route = by_ingress(|_, path| {
            path.routes.push(object(json!({"metadata": orphan("2026-11-24T21:00:00Z")})));
        });
        check(&route, &[CauseId::Gw05]);
        let unknown = by_ingress(|_, path| {
            path.routes.push(object(json!({"metadata": orphan("2026-11-24T21:00:00Z")})));
            path.listed.remove("challenges/web");
        });
        check(&unknown, &[]);
    }
}
