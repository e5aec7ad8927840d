//! GW: the HTTPRoute of a solver, its parents and their listeners.

use super::gateway_hops::{
    BrokenHop, NamedParent, broken_hop, described, kind, parents, shown, ungranted,
};
use super::open_path::{OpenPath, named, open_paths};
use crate::diagnosis::case::Case;
use crate::diagnosis::case::gateway_objects::{ListenerCase, RouteCase};
use crate::diagnosis::case::name::AddressProbe;
use crate::diagnosis::case::path::age;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade};
use crate::diagnosis::words::controller::{lacks_gateway_api, names_parent_twice};
use crate::model::common::{Condition, ConditionStatus, condition};
use crate::model::observation::CheckResult;
use crate::model::solver::{GatewaySolver, ParentReference};

/// Maximum time that the controller of a Gateway takes to report on a route.
const CONTROLLER_REPORT_MAX: jiff::SignedDuration = jiff::SignedDuration::from_mins(2);

pub(super) const RULES: &[FaultRule] =
    &[gateway_api_is_off, parent_is_named_twice, listener_waits_for_secret, route_is_not_attached];

/// Returns the names that are answered by an HTTPRoute, with the solver of each.
fn by_route<'a>(case: &'a Case) -> Vec<(OpenPath<'a>, &'a GatewaySolver)> {
    let of = |open: OpenPath<'a>| Some((open, open.wanted.solver.gateway_http_route.as_ref()?));
    open_paths(case).into_iter().filter_map(of).collect()
}

/// GW-01.
fn gateway_api_is_off(case: &Case, found: &mut Vec<Finding>) {
    for (open, _) in by_route(case) {
        let said = open.challenge.filter(|c| lacks_gateway_api(&c.status.reason));
        let (shown, detail) = if let Some(challenge) = said {
            let asked = format!("Challenge {}: status.reason", challenge.name());
            let reason = &challenge.status.reason;
            (open.stored(asked, reason), reason.clone())
        } else if open.path.has_gateway_api == Some(false) {
            let came = "the API server does not serve it";
            let asked = "HTTPRoute of gateway.networking.k8s.io/v1";
            (open.stored(asked, came), "the cluster has no definitions of Gateway API".to_owned())
        } else {
            continue;
        };
        found.push(open.finding(CauseId::Gw01, Grade::Certain, shown, detail));
    }
}

/// GW-04.
fn parent_is_named_twice(case: &Case, found: &mut Vec<Finding>) {
    for (open, solver) in by_route(case) {
        let parents = &solver.parent_refs;
        let key = |parent: &ParentReference| {
            let namespace = parent.namespace.clone();
            (
                kind(parent).to_owned(),
                namespace.unwrap_or_else(|| open.wanted.namespace.clone()),
                parent.name.clone(),
            )
        };
        let part = |parent: &ParentReference| (parent.section_name.clone(), parent.port);
        // Of two references to one parent each has to name another listener or port.
        let is_twin = |one: &ParentReference, other: &ParentReference| {
            let is_whole = part(one) == (None, None) || part(other) == (None, None);
            key(one) == key(other) && (part(one) == part(other) || is_whole)
        };
        let twin = parents.iter().enumerate().find_map(|(index, one)| {
            parents[index + 1..].iter().find(|other| is_twin(one, other)).map(|_| one)
        });
        let said = open.challenge.filter(|c| names_parent_twice(&c.status.reason));
        if twin.is_none() && said.is_none() {
            continue;
        }
        let all: Vec<String> = parents.iter().map(|p| shown(p, &open.wanted.namespace)).collect();
        let asked = format!("solver for {}: gatewayHTTPRoute.parentRefs", open.wanted.domain);
        let listed = open.stored(asked, all.join("; "));
        let refused = said.map(|challenge| {
            let asked = format!("Challenge {}: status.reason", challenge.name());
            open.stored(asked, &challenge.status.reason)
        });
        let detail = twin.map_or_else(
            || "the API server refuses its parents".to_owned(),
            |twin| shown(twin, &open.wanted.namespace),
        );
        let gateway = twin.or_else(|| parents.first()).map(|parent| parent.name.clone());
        let finding = open.finding(CauseId::Gw04, Grade::Certain, listed, detail);
        found.push(finding.shown_by(refused).with("GATEWAY", gateway.unwrap_or_default()));
    }
}

/// GW-03: no listener takes plain HTTP, and a listener for HTTPS has no certificate yet.
fn listener_waits_for_secret(case: &Case, found: &mut Vec<Finding>) {
    for (open, solver) in by_route(case) {
        let all = parents(&open, solver);
        let mut listeners = all.iter().flat_map(NamedParent::listeners);
        if listeners.any(|listener| listener.protocol == "HTTP") {
            continue;
        }
        for one in &all {
            let Some(found_parent) = one.found else { continue };
            let waits = |listener: &ListenerCase| {
                let mut states = found_parent.states().iter();
                let state = states.find(|state| state.name == listener.name)?;
                let refs = condition(&state.conditions, "ResolvedRefs")?;
                (refs.status == ConditionStatus::False).then_some(refs)
            };
            let waiting =
                one.listeners().into_iter().find_map(|listener| Some((listener, waits(listener)?)));
            let Some((listener, refs)) = waiting else { continue };
            let secrets = listener.tls.iter().flat_map(|tls| &tls.certificate_refs);
            let ungranted = secrets.clone().find_map(|secret| {
                let of = (found_parent.kind(), one.namespace);
                let namespace = secret.namespace.as_deref().filter(|own| *own != one.namespace)?;
                ungranted(&open, of, (("", "Secret"), (namespace, &secret.name)))
            });
            let secrets: Vec<&str> = secrets.map(|secret| secret.name.as_str()).collect();
            let name = found_parent.shown();
            let asked = format!("{name}: listener {}, condition ResolvedRefs", listener.name);
            let shown = open.stored(asked, describe_condition(refs));
            let which = format!("{name}: listener {}", listener.name);
            let what = format!("{}, Secret {}", described(listener), secrets.join(", "));
            let detail = match ungranted {
                Some(ungranted) => format!("{which} is {what}, and {ungranted}"),
                None => format!("{which} is {what}, which does not exist yet"),
            };
            let finding = open.finding(CauseId::Gw03, Grade::Certain, shown, detail);
            let finding = finding.shown_by([open.stored(which, what)]);
            found.push(finding.with("GATEWAY", &one.parent.name));
        }
    }
}

/// GW-02: by the parents' status of the route, else by what the parents' listeners take.
fn route_is_not_attached(case: &Case, found: &mut Vec<Finding>) {
    for (open, solver) in by_route(case) {
        let route = open.route();
        let (mut faults, is_attached) = match route {
            Some(route) => read_parent_statuses(&open, route),
            None => (Vec::new(), false),
        };
        if is_attached {
            continue;
        }
        let all = parents(&open, solver);
        let misfits: Vec<_> = all.iter().map(|one| (one, broken_hop(&open, one))).collect();
        // One parent that takes the route is enough, unless the parent's own status says otherwise.
        if let Some((one, _)) = misfits.iter().find(|(_, misfit)| misfit.is_none()) {
            if let Some(waiting) = all.iter().find_map(|one| waits_for_controller(&open, one)) {
                faults.push(waiting);
            } else if let (Some(route), true) = (route, faults.is_empty())
                && age(&route.metadata, case.at) > CONTROLLER_REPORT_MAX
                && route.status.parents.is_empty()
            {
                let name = named("HTTPRoute", &route.metadata);
                let came = format!("no status by {}", shown(one.parent, one.namespace));
                let why = format!("no Gateway controller has accepted {name}");
                faults.push((Grade::Likely, why, open.stored(format!("{name}: status"), came)));
            }
        } else {
            let misfits = misfits.into_iter().filter_map(|(_, misfit)| misfit);
            faults.extend(misfits.map(|BrokenHop { at, why }| {
                (Grade::Certain, format!("{at}: {why}"), open.stored(at, why))
            }));
        }
        let mut faults = faults.into_iter();
        let Some((grade, why, first)) = faults.next() else { continue };
        let rest: Vec<Evidence> = faults.map(|(_, _, shown)| shown).collect();
        found.push(open.finding(CauseId::Gw02, grade, first, why).shown_by(rest));
    }
}

type RouteFault = (Grade, String, Evidence);

/// Finds a Gateway whose class has no controller: its condition `Accepted` is still Unknown with reason `Pending`, which
/// the API server writes by default (Gateway API's definitions), and which no controller has replaced.
fn waits_for_controller(open: &OpenPath<'_>, one: &NamedParent<'_>) -> Option<RouteFault> {
    let gateway = one.found?.gateway()?;
    let accepted = condition(&gateway.status.conditions, "Accepted")?;
    let is_untouched = accepted.status == ConditionStatus::Unknown && accepted.reason == "Pending";
    // A new Gateway may still be taken up, unless nothing answers for the name.
    let name = open.case.names.iter().find(|name| name.shown() == open.wanted.domain);
    let looks = name.map(|name| &name.looks[..]).unwrap_or_default();
    let is_nothing =
        |look: &AddressProbe| matches!(look.observation.seen, CheckResult::Nothing { .. });
    let is_dead = !looks.is_empty() && looks.iter().all(is_nothing);
    if !is_untouched || !(is_dead || age(&gateway.metadata, open.case.at) > CONTROLLER_REPORT_MAX) {
        return None;
    }
    let name = named("Gateway", &gateway.metadata);
    let class = &gateway.spec.gateway_class_name;
    let why = format!("no controller has accepted {name}, of class {class}");
    let shown = open.stored(
        format!("{name}: condition Accepted"),
        format!("Unknown, {}", describe_condition(accepted)),
    );
    Some((Grade::Likely, why, shown))
}

/// Returns the faults that parents report of a route, and whether a parent has taken the route with all of its references.
fn read_parent_statuses(open: &OpenPath<'_>, route: &RouteCase) -> (Vec<RouteFault>, bool) {
    let name = named("HTTPRoute", &route.metadata);
    let mut faults = Vec::new();
    let mut is_attached = false;
    for parent in &route.status.parents {
        let by = shown(&parent.parent_ref, &route.metadata.namespace);
        let mut is_good = condition(&parent.conditions, "Accepted").is_some();
        for kind in ["Accepted", "ResolvedRefs"] {
            let Some(said) = condition(&parent.conditions, kind) else { continue };
            if said.status != ConditionStatus::False {
                continue;
            }
            is_good = false;
            let asked = format!("{name}: condition {kind} of {by}");
            let why = format!("{by} says {kind} False: {}", describe_condition(said));
            faults.push((Grade::Certain, why, open.stored(asked, describe_condition(said))));
        }
        is_attached |= is_good;
    }
    (faults, is_attached)
}

fn describe_condition(condition: &Condition) -> String {
    match condition.message.as_str() {
        "" => condition.reason.clone(),
        message => format!("{}: {message}", condition.reason),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::super::open_path::testing::{object, path_with};
    use super::super::tests::{self, check};
    use super::*;
    use crate::diagnosis::case::path::ClusterPathCase;
    use crate::model::cause::Symptom;
    use crate::model::{ChallengeType, Time};

    /// A route to the Gateway `web/edge` with these listeners.
    fn behind(listeners: Value, change: impl FnOnce(&mut Case, &mut ClusterPathCase)) -> Case {
        let solver = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}});
        path_with(solver, |case, path| {
            path.note("gateways", "web/edge");
            path.gateways = vec![object(json!({
                "metadata": {"namespace": "web", "name": "edge"}, "spec": {"listeners": listeners},
            }))];
            let parent = json!({"parentRef": {"name": "edge"}, "conditions": [{"type": "Accepted", "status": "True"}]});
            path.routes[0].status.parents = vec![object(parent)];
            change(case, path);
        })
    }

    /// Builds a case in which the Gateway has not reported on the route.
    fn unsaid(listener: Value) -> Case {
        behind(json!([listener]), |_, path| path.routes[0].status.parents.clear())
    }

    fn http(more: Value) -> Value {
        let mut listener = json!({"name": "http", "port": 80, "protocol": "HTTP"});
        for (name, value) in more.as_object().into_iter().flatten() {
            listener[name] = value.clone();
        }
        listener
    }

    #[test]
    fn a_gateway_that_no_controller_has_taken_up_is_named_where_nothing_answers() {
        let of = |status: &str, reason: &str, answers: bool| {
            behind(json!([http(json!({}))]), |case, path| {
                let mut look = tests::look("192.0.2.1:80", false);
                look.is_answer = answers;
                if !answers {
                    let symptom = Some(Symptom::ConnectionRefused);
                    look.observation.seen = CheckResult::Nothing { why: "refused".into(), symptom };
                }
                case.names = vec![tests::name("www.example.com", Some(ChallengeType::Http01))];
                case.names[0].looks = if reason == "New" { Vec::new() } else { vec![look] };
                let just_now: jiff::Timestamp = "2026-11-24T21:59:50Z".parse().unwrap();
                path.routes[0].status.parents.clear();
                path.routes[0].metadata.creation_timestamp = Some(Time::from(just_now));
                path.gateways[0].metadata.creation_timestamp = Some(Time::from(just_now));
                path.gateways[0].spec.gateway_class_name = "cilium".into();
                let reason = if reason == "New" { "Pending" } else { reason };
                path.gateways[0].status.conditions = vec![object(json!({
                    "type": "Accepted", "status": status, "reason": reason, "message": "Waiting for controller",
                }))];
            })
        };
        check(&of("Unknown", "Pending", false), &[CauseId::Gw02]);
        let found = super::super::judge(&of("Unknown", "Pending", false));
        assert!(found[0].facts["DETAIL"].ends_with("of class cilium"), "{found:?}");
        // Nobody has looked, and it may be taken up yet.
        check(&of("Unknown", "New", false), &[]);
        check(&of("True", "Accepted", true), &[]);
    }

    #[test]
    fn a_route_that_a_gateway_has_taken_is_well() {
        check(&behind(json!([http(json!({}))]), |_, _| {}), &[]);
        let names =
            json!({"hostname": "*.example.com", "allowedRoutes": {"namespaces": {"from": "All"}}});
        check(&behind(json!([http(names)]), |_, _| {}), &[]);
    }

    #[test]
    fn what_the_gateway_says_of_the_route_is_believed() {
        for (kind, reason) in
            [("Accepted", "NotAllowedByListeners"), ("ResolvedRefs", "BackendNotFound")]
        {
            let case = behind(json!([http(json!({}))]), |_, path| {
                let said = json!({"type": kind, "status": "False", "reason": reason});
                path.routes[0].status.parents[0].conditions = vec![object(said)];
            });
            check(&case, &[CauseId::Gw02]);
        }
        check(&unsaid(http(json!({}))), &[CauseId::Gw02]);
    }

    #[test]
    fn listeners_that_do_not_fit_are_named() {
        check(&unsaid(http(json!({"hostname": "other.example.com"}))), &[CauseId::Gw02]);
        check(&unsaid(http(json!({"protocol": "HTTPS"}))), &[CauseId::Gw02]);
        check(
            &unsaid(http(json!({"allowedRoutes": {"namespaces": {"from": "None"}}}))),
            &[CauseId::Gw02],
        );
        let elsewhere = behind(json!([http(json!({}))]), |_, path| {
            path.routes[0].status.parents.clear();
            path.gateways.clear();
        });
        check(&elsewhere, &[CauseId::Gw02]);
        let unread = behind(json!([]), |_, path| {
            path.routes[0].status.parents.clear();
            path.listed.remove("gateways/web/edge");
        });
        check(&unread, &[]);
        let is_covered = |name: &str| super::super::gateway_hops::covers("*.example.com", name);
        assert!(is_covered("www.example.com") && !is_covered("example.com"));
    }

    #[test]
    fn a_listener_without_its_secret_waits_for_the_challenge() {
        let tls = json!({"certificateRefs": [{"name": "www-tls"}]});
        let listener = http(json!({"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls}));
        let refs = |status: &str| json!({"type": "ResolvedRefs", "status": status, "reason": "InvalidCertificateRef"});
        let of = |listeners: Value, status: &str| {
            behind(listeners, |_, path| {
                path.routes[0].status.parents.clear();
                path.gateways[0].status.listeners =
                    vec![object(json!({"name": "https", "conditions": [refs(status)]}))];
            })
        };
        check(&of(json!([listener]), "False"), &[CauseId::Gw03]);
        check(&of(json!([listener]), "True"), &[CauseId::Gw02]);
    }

    #[test]
    fn no_gateway_api_is_told_by_the_controller_or_the_server() {
        let off = behind(json!([http(json!({}))]), |case, _| {
            let reason = "couldn't Present challenge web/www-1: gateway api is not enabled";
            reason.clone_into(&mut case.certificates[0].challenges[0].status.reason);
        });
        check(&off, &[CauseId::Gw01]);
        check(
            &behind(json!([http(json!({}))]), |_, path| path.has_gateway_api = Some(false)),
            &[CauseId::Gw01],
        );
    }

    #[test]
    fn one_parent_twice_is_told_with_both() {
        let of = |parents: Value| {
            path_with(json!({"gatewayHTTPRoute": {"parentRefs": parents}}), |_, _| {})
        };
        check(
            &of(json!([{"name": "edge"}, {"name": "edge", "namespace": "web"}])),
            &[CauseId::Gw04],
        );
        check(
            &of(
                json!([{"name": "edge", "sectionName": "a"}, {"name": "edge", "sectionName": "b"}]),
            ),
            &[],
        );
        check(&of(json!([{"name": "edge"}, {"name": "inner"}])), &[]);
    }
}
