//! Faulty objects on the path to a solver in the cluster, which the status of a web server alone does not show.
//!
//! By its status alone, a 404 means an Ingress that is not served (HTTP-10), and a 5xx a Service without endpoints
//! (CTL-15), as a guess. If the objects of the path prove another cause, the finding names the other cause.

use std::net::IpAddr;

use super::open_path::{OpenPath, named, open_paths};
use super::pod;
use crate::diagnosis::case::Case;
use crate::diagnosis::case::name::{AddressProbe, NameCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, Grade};
use crate::diagnosis::words::http::is_mesh_denial;
use crate::model::observation::CheckResult;
use crate::model::reserved;

/// Returns the cause of a wrong answer at an address of `name`, with the observation of the path that decides the cause;
/// `guess` if no object says otherwise.
pub(super) fn judged(
    case: &Case,
    name: &NameCase,
    look: &AddressProbe,
    guess: (CauseId, Grade),
) -> (CauseId, Grade, Option<Evidence>) {
    let (cause, grade) = guess;
    // In a cluster Envoy stands before solvers; elsewhere any server may be an Envoy.
    let reply = look.web.as_ref().and_then(|web| web.challenge.reply());
    let server = reply.and_then(|reply| reply.header("server"));
    if case.in_cluster
        && let CheckResult::Reply { status: 403, body, .. } = &look.observation.seen
        && is_mesh_denial(body, server)
    {
        return (CauseId::Ctl14, Grade::Likely, None);
    }
    let is_by_status =
        grade == Grade::Possible && matches!(cause, CauseId::Http10 | CauseId::Ctl15);
    let open = open_paths(case).into_iter().find(|open| open.wanted.domain == name.shown());
    let Some(open) = open.filter(|_| {
        is_by_status
            || (grade != Grade::Certain && may_have_missed_solver(cause))
            || cause == CauseId::Http22
    }) else {
        return (cause, grade, None);
    };
    let is_of_edge = look
        .web
        .as_ref()
        .and_then(|web| web.challenge.reply())
        .is_some_and(|it| it.edge().is_some());
    if name.is_looked_for_in_dns
        && !is_of_edge
        && let Some((way_in, own)) = ways_in(&open)
        && leads_elsewhere(look.address.ip(), &resolve_names(&open, &own))
    {
        let shown = open.stored(format!("{way_in}: addresses"), own.join(", "));
        return (CauseId::Http03, Grade::Likely, Some(shown));
    }
    match (cause, pod::ready_endpoint(&open)) {
        // Envoy's own message: Envoy has not reached the Pod.
        (CauseId::Ctl15, Some(ready)) if is_kept_from_pod(look) => {
            (CauseId::Ctl14, Grade::Likely, Some(ready))
        }
        // The fault is in front of the solver.
        (CauseId::Ctl15, Some(ready)) => (CauseId::Http32, Grade::Possible, Some(ready)),
        _ => (cause, grade, None),
    }
}

/// Reports whether a cause leaves open where the wrong answer came from, so that the solver may not have been reached.
fn may_have_missed_solver(cause: CauseId) -> bool {
    matches!(
        cause,
        CauseId::Http04
            | CauseId::Http05
            | CauseId::Http14
            | CauseId::Http15
            | CauseId::Http16
            | CauseId::Http20
            | CauseId::Http22
            | CauseId::Http30
            | CauseId::Http31
            | CauseId::Http32
    )
}

/// Reports whether an answer is Envoy's for a back end that reset its connection, as one with a mesh's mutual TLS does.
fn is_kept_from_pod(look: &AddressProbe) -> bool {
    let CheckResult::Reply { status: 502..=504, body, .. } = &look.observation.seen else {
        return false;
    };
    body.starts_with("upstream connect error or disconnect/reset before headers")
        && (body.contains("connection termination") || body.contains("connection reset"))
}

/// Returns addresses, with each name replaced by its addresses if the name was looked up.
fn resolve_names<'a>(open: &OpenPath<'a>, own: &[&'a str]) -> Vec<String> {
    let known = |one: &str| match open.path.balancer_names.get(one) {
        Some(addresses) => addresses.iter().map(IpAddr::to_string).collect(),
        None => vec![one.to_owned()],
    };
    own.iter().flat_map(|one| known(one)).collect()
}

/// Returns the object by which requests enter the cluster, and its addresses; `None` if it has no address yet.
fn ways_in<'a>(open: &OpenPath<'a>) -> Option<(String, Vec<&'a str>)> {
    if let Some(ingress) = open.ingress() {
        let own = ingress.addresses();
        return (!own.is_empty()).then(|| (named("Ingress", &ingress.metadata), own));
    }
    let route = open.route()?;
    let parents = &route.spec.parent_refs;
    let gateway = open.path.gateways.iter().find(|gateway| {
        let of = &gateway.metadata;
        parents.iter().any(|parent| {
            let namespace = parent.namespace.as_deref().unwrap_or(&route.metadata.namespace);
            parent.name == of.name && namespace == of.namespace
        })
    })?;
    let own: Vec<&str> = gateway.status.addresses.iter().map(|one| one.value.as_str()).collect();
    (!own.is_empty()).then(|| (named("Gateway", &gateway.metadata), own))
}

/// Reports whether an address is none of `own`. Names without a lookup are not compared, nor are inner addresses with
/// an outer address: an address may be translated between the two.
fn leads_elsewhere(at: IpAddr, own: &[String]) -> bool {
    let parsed: Option<Vec<IpAddr>> = own.iter().map(|one| one.parse().ok()).collect();
    let Some(own) = parsed else { return false };
    let mut comparable = own.iter().filter(|one| one.is_ipv4() == at.is_ipv4()).peekable();
    let is_inner = |one: &IpAddr| reserved::block(*one).is_some();
    comparable.peek().is_some()
        && comparable.all(|one| *one != at && is_inner(one) == is_inner(&at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::open_path::testing::{object, path_with};
    use super::super::{judge, tests};
    use super::*;
    use crate::diagnosis::case::path::ClusterPathCase;
    use crate::diagnosis::case::web::{WebProbe, WebReply};
    use crate::diagnosis::finding::Finding;
    use crate::model::ChallengeType;
    use crate::model::cause::Symptom;

    /// Judges a case whose name leads to `at`, where a server answers with a status.
    fn found(
        at: &str,
        status: u16,
        http01: serde_json::Value,
        change: impl FnOnce(&mut ClusterPathCase),
    ) -> Vec<Finding> {
        let case = path_with(http01, |case, path| {
            let mut name = tests::name("www.example.com", Some(ChallengeType::Http01));
            let mut look = tests::look(at, false);
            let body = "odd".to_owned();
            look.observation.seen =
                CheckResult::Reply { status, body, truncated: false, is_declined: false };
            let symptom = if status == 404 { Symptom::NotFound } else { Symptom::ServerError };
            look.sighting = Some(symptom.into());
            name.pending = case.certificates[0].challenges.first().cloned();
            name.is_looked_for_in_dns = true;
            name.looks = vec![look];
            case.names = vec![name];
            change(path);
        });
        judge(&case)
    }

    fn by_ingress() -> serde_json::Value {
        json!({"ingress": {"ingressClassName": "edge"}})
    }

    #[track_caller]
    fn check(found: &[Finding], cause: CauseId, grade: Grade) {
        let shown: Vec<_> = found.iter().map(|it| (it.cause, it.grade, it.is_error())).collect();
        assert_eq!(shown, [(cause, grade, true)], "{found:#?}");
    }

    #[test]
    fn a_name_that_leads_past_the_ingress_is_told_before_any_class_or_pod_is_blamed() {
        for status in [404, 502] {
            let past = found("192.0.2.99:80", status, by_ingress(), |_| ());
            check(&past, CauseId::Http03, Grade::Likely);
            assert!(past[0].evidence.iter().any(|one| one.came == "192.0.2.1"), "{past:#?}");
        }
        // Somebody translates addresses, or the load balancer has a name.
        for own in [json!({"ip": "8.8.8.8"}), json!({"hostname": "lb.example.net"})] {
            let translated = found("192.0.2.99:80", 404, by_ingress(), |path| {
                path.ingresses[0].status = object(json!({"loadBalancer": {"ingress": [own]}}));
            });
            check(&translated, CauseId::Http10, Grade::Possible);
        }
    }

    #[test]
    fn a_warning_of_whoever_serves_the_ingress_is_told_in_its_own_words() {
        let warned = |component: &str| {
            found("192.0.2.1:80", 404, by_ingress(), |path| {
                path.warnings = vec![object(json!({
                    "involvedObject": {"kind": "Ingress", "uid": "ingress"}, "type": "Warning", "reason": "Sync",
                    "message": "googleapi: Error 403: Quota 'BACKEND_SERVICES' exceeded", "source": {"component": component},
                }))];
            })
        };
        let cloud = warned("loadbalancer-controller");
        check(&cloud, CauseId::Http40, Grade::Likely);
        assert!(cloud[0].evidence[0].came.contains("BACKEND_SERVICES"), "{cloud:#?}");
        // That one is about the site's own certificate.
        check(&warned("cert-manager-ingress-shim"), CauseId::Http10, Grade::Possible);
    }

    #[test]
    fn what_envoy_says_of_a_policy_is_no_login() {
        let of = |body: &str, server: &str| {
            let case = path_with(by_ingress(), |case, _| {
                let mut name = tests::name("www.example.com", Some(ChallengeType::Http01));
                let mut look = tests::look("192.0.2.1:80", false);
                let body = body.to_owned();
                look.observation.seen =
                    CheckResult::Reply { status: 403, body, truncated: false, is_declined: false };
                look.sighting = Some(Symptom::Forbidden.into());
                let page = format!("HTTP/1.1 403 Forbidden\r\nServer: {server}\r\n\r\n");
                let challenge = WebReply::read(page.as_bytes());
                let (beside, root) = (challenge.clone(), challenge.clone());
                let (proxied, again) = (None, Vec::new());
                look.web = Some(WebProbe { challenge, beside, root, proxied, again });
                name.looks = vec![look];
                case.names = vec![name];
            });
            judge(&case)
        };
        for (body, server) in
            [("RBAC: access denied", "istio-envoy"), ("Access denied\r\n", "envoy")]
        {
            check(&of(body, server), CauseId::Ctl14, Grade::Likely);
        }
        check(&of("Access denied\r\n", "nginx"), CauseId::Http16, Grade::Likely);
    }

    #[test]
    fn a_gateway_has_addresses_too() {
        let by_route = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}});
        let past = found("192.0.2.99:80", 404, by_route, |path| {
            path.routes[0].spec.parent_refs = vec![object(json!({"name": "edge"}))];
            path.gateways = vec![object(json!({
                "metadata": {"namespace": "web", "name": "edge"},
                "status": {"addresses": [{"type": "IPAddress", "value": "198.51.100.7"}]},
            }))];
        });
        assert!(past.iter().any(|it| it.cause == CauseId::Http03), "{past:#?}");
    }

    #[test]
    fn an_error_of_a_server_is_not_put_down_to_endpoints_that_are_ready() {
        let ready = found("192.0.2.1:80", 503, by_ingress(), |_| ());
        check(&ready, CauseId::Http32, Grade::Possible);
        let unread = found("192.0.2.1:80", 503, by_ingress(), |path| {
            path.listed.remove("endpointslices/web");
            path.endpoints.clear();
        });
        check(&unread, CauseId::Ctl15, Grade::Possible);
    }

    #[test]
    fn a_policy_that_lets_nobody_in_explains_the_error_in_front_of_it() {
        let policy = |from: serde_json::Value| {
            object(json!({
                "metadata": {"namespace": "web", "name": "shut"},
                "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": from},
            }))
        };
        let shut = |from: serde_json::Value, status| {
            found("192.0.2.1:80", status, by_ingress(), |path| path.policies = vec![policy(from)])
        };
        check(&shut(json!([]), 504), CauseId::Ctl14, Grade::Likely);
        let neighbours = json!([{"from": [{"podSelector": {}}]}]);
        check(&shut(neighbours, 504), CauseId::Ctl14, Grade::Likely);
    }
}
