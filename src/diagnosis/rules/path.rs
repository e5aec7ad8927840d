//! HTTP-10, HTTP-12, HTTP-13, HTTP-24 … HTTP-27: the Ingress of a solver, who serves it, and at which address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::SignedDuration;
use serde_json::Value;

use super::http_answer::saw;
use super::open_path::{OpenPath, named, open_paths};
use super::rule::FaultRule;
use crate::diagnosis::case::Case;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Finding, Grade, seen, stored};
use crate::diagnosis::foreign::{IngressRefusal, ingress_refusal};
use crate::diagnosis::name_case::{AddressLook, LookUp};
use crate::diagnosis::path_case::age;
use crate::diagnosis::path_objects::{
    IngressCase, IngressClassCase, OpenShiftRouteCase, ServiceCase,
};
use crate::model::common::condition;
use crate::model::observation::Seen;
use crate::model::{ConditionStatus, Event};

/// How long a controller may take to note the address of an Ingress.
const TAKEN: SignedDuration = SignedDuration::from_mins(2);
/// Where GCE notes the health of back ends.
const BACKENDS: &str = "ingress.kubernetes.io/backends";

pub(super) const RULES: &[FaultRule] = &[
    ingress_is_refused,
    router_rejects,
    controller_reports_fault,
    class_is_missing,
    nobody_takes_ingress,
    address_is_another,
    backend_is_unhealthy,
    some_nodes_lead_nowhere,
    balancer_has_no_address,
];

/// HTTP-12, HTTP-13, HTTP-25, HTTP-26: whoever serves the Ingress says why it does not.
fn ingress_is_refused(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(ingress) = open.ingress() else { continue };
        let name = named("Ingress", &ingress.metadata);
        for event in open.warnings(&ingress.metadata) {
            let (cause, grade) = match ingress_refusal(&event.message) {
                Some(IngressRefusal::HostTaken) => (CauseId::Http12, Grade::Certain),
                Some(IngressRefusal::PathType) => (CauseId::Http13, Grade::Likely),
                Some(IngressRefusal::ServiceType) => (CauseId::Http26, Grade::Certain),
                Some(IngressRefusal::Unhealthy) => (CauseId::Http25, Grade::Likely),
                None => continue,
            };
            let came = format!("{}: {}", event.reason, event.message);
            let shown = open.stored(format!("event about {name}"), &came);
            let more = detail_of(&open, ingress, cause);
            found.push(open.finding(cause, grade, shown, &event.message).shown_by(more));
        }
    }
}

/// HTTP-12, HTTP-40: a router of OpenShift does not admit the Route that was made of the Ingress.
fn router_rejects(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(ingress) = open.ingress() else { continue };
        let is_of =
            |route: &&OpenShiftRouteCase| route.metadata.is_controlled_by(&ingress.metadata.uid);
        for route in open.path.openshift_routes.iter().filter(is_of) {
            let words = route.status.ingress.iter();
            let rejected = words.filter_map(|router| condition(&router.conditions, "Admitted"));
            let mut rejected = rejected.filter(|it| it.status == ConditionStatus::False);
            let Some(rejected) = rejected.next() else { continue };
            let cause = match rejected.reason.as_str() {
                "HostAlreadyClaimed" => CauseId::Http12,
                _ => CauseId::Http40,
            };
            let name = named("Route", &route.metadata);
            let came = format!("False: {}: {}", rejected.reason, rejected.message);
            let shown = open.stored(format!("{name}: condition Admitted"), came);
            found.push(open.finding(cause, Grade::Certain, shown, &rejected.message));
        }
    }
}

/// HTTP-40: whoever serves the objects of the path has warned of one, in words that no other cause knows.
fn controller_reports_fault(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let looks = case.names.iter().filter(|name| name.shown() == open.wanted.domain);
        let Some(look) = looks.flat_map(|name| &name.looks).find(|look| !look.is_answer) else {
            continue;
        };
        let ingress = open.ingress().map(|it| ("Ingress", &it.metadata));
        let route = open.route().map(|it| ("HTTPRoute", &it.metadata));
        let service = open.own(&open.path.services, |service| &service.metadata);
        let service = service.map(|it| ("Service", &it.metadata));
        for (kind, of) in [ingress, route, service].into_iter().flatten() {
            let since = open.challenge.and_then(|challenge| challenge.status.presented_at);
            let is_of_server = |event: &&Event| {
                let is_past = event.last_timestamp.zip(since).is_some_and(|(at, since)| at < since);
                !is_past && !is_beside(event) && ingress_refusal(&event.message).is_none()
            };
            let warnings = open.warnings(of).filter(is_of_server);
            let Some(event) = warnings.max_by_key(|event| event.last_timestamp) else { continue };
            let came = format!("{}: {}", event.reason, event.message);
            let name = named(kind, of);
            let shown = open.stored(format!("event about {name}"), &came);
            let detail = format!("{name} has the warning {came}");
            let seen = seen(&look.observation, saw(&look.observation));
            found
                .push(open.finding(CauseId::Http40, Grade::Likely, shown, detail).shown_by([seen]));
        }
    }
}

/// Tells whether a Warning is by somebody who does not serve the object: cert-manager warns of annotations for Certificates, policy
/// engines of what they would not have admitted, and others of records in DNS.
fn is_beside(event: &Event) -> bool {
    let by = event.source.component.as_str();
    let by = if by.is_empty() { event.reporting_component.as_str() } else { by };
    event.reason == "PolicyViolation"
        || ["cert-manager", "kyverno", "gatekeeper", "external-dns"]
            .iter()
            .any(|it| by.starts_with(it))
}

/// What belongs to a refusal: the other Ingresses of the host, the type of the path, the type of the Service.
fn detail_of(
    open: &OpenPath<'_>,
    ingress: &IngressCase,
    cause: CauseId,
) -> Vec<crate::diagnosis::finding::Evidence> {
    let name = named("Ingress", &ingress.metadata);
    match cause {
        CauseId::Http12 => {
            let others = namesakes(open, ingress);
            let all = others.map(|other| {
                let class = other.class().unwrap_or("none");
                let came = format!("has the host {}, too; its class: {class}", open.wanted.domain);
                open.stored(named("Ingress", &other.metadata), came)
            });
            all.collect()
        }
        CauseId::Http13 => {
            let paths = ingress.spec.rules.iter().flat_map(|rule| &rule.http.paths);
            let types: BTreeSet<&str> = paths.map(|path| path.path_type.as_str()).collect();
            let types: Vec<&str> = types.into_iter().collect();
            vec![open.stored(format!("{name}: pathType"), types.join(", "))]
        }
        CauseId::Http26 => {
            let service = open.own(&open.path.services, |service| &service.metadata);
            let kind = service.map(|service| {
                let name = named("Service", &service.metadata);
                open.stored(format!("{name}: spec.type"), &service.spec.kind)
            });
            kind.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Other Ingresses of the same host.
fn namesakes<'a>(
    open: &OpenPath<'a>,
    ingress: &'a IngressCase,
) -> impl Iterator<Item = &'a IngressCase> {
    let domain = &open.wanted.domain;
    open.path
        .ingresses
        .iter()
        .filter(move |other| other.metadata.uid != ingress.metadata.uid && other.has_host(domain))
}

/// HTTP-10: the class that the solver names is not there, or it names none and none is the default.
fn class_is_missing(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(solver) = &open.wanted.solver.ingress else { continue };
        let path = open.path;
        let is_served = open.ingress().is_some_and(|ingress| !ingress.addresses().is_empty());
        if is_served || open.edited_ingress().is_some() || !path.has_listed("ingressclasses", "") {
            continue;
        }
        let Some(class) = &solver.ingress_class_name else { continue };
        let names: Vec<&str> = path.classes.iter().map(|c| c.metadata.name.as_str()).collect();
        if names.contains(&class.as_str()) {
            continue;
        }
        // Some controllers go by the name alone.
        let (grade, there) = match names.as_slice() {
            [] => (Grade::Likely, "there are none".to_owned()),
            [only] => (Grade::Certain, format!("there is {only} alone")),
            names => (Grade::Certain, format!("there are {}", names.join(", "))),
        };
        let asked = open.ingress().map_or_else(
            || format!("solver for {}: http01.ingress.ingressClassName", open.wanted.domain),
            |ingress| format!("{}: spec.ingressClassName", named("Ingress", &ingress.metadata)),
        );
        let more = open.stored("IngressClasses", &there);
        let detail = format!("the class {class} does not exist; {there}");
        // Before there is a Challenge something else stands in the way, and this comes after it.
        let is_ahead = open.challenge.is_none()
            && case.certificates.iter().any(|of| of.is_open() && of.wants(&open.wanted.domain));
        let grade = if is_ahead { Grade::Possible } else { grade };
        let finding = open.finding(CauseId::Http10, grade, open.stored(asked, class), detail);
        found.push(with_class(&open, finding).shown_by([more]));
    }
}

/// HTTP-10: the Ingress is there for a while and has no address.
fn nobody_takes_ingress(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(ingress) = open.ingress() else { continue };
        let age = age(&ingress.metadata, case.at);
        if !ingress.addresses().is_empty() || age < TAKEN {
            continue;
        }
        let class = ingress.class();
        let is_default = || open.path.classes.iter().any(IngressClassCase::is_default);
        let knows_classes = open.path.has_listed("ingressclasses", "");
        let others = open.path.addressed.get(class.unwrap_or_default()).copied().unwrap_or(0);
        let (grade, why) = match class {
            None if knows_classes && !is_default() => {
                (Grade::Likely, "it names no class, and no class is the default".to_owned())
            }
            None => continue,
            // Whoever serves that class notes addresses.
            Some(class) if others > 0 => {
                (Grade::Likely, format!("others of the class {class} have one, {others} of them"))
            }
            Some(class) => (Grade::Possible, format!("none of the class {class} has one")),
        };
        let name = named("Ingress", &ingress.metadata);
        let asked = format!("{name}: status.loadBalancer");
        let shown = open.stored(asked, format!("no address since {} min", age.as_mins()));
        let class = open.stored(format!("{name}: class"), class.unwrap_or("none"));
        let detail = format!("{name} has no address: {why}");
        let finding = open.finding(CauseId::Http10, grade, shown, detail);
        found.push(with_class(&open, finding).shown_by([class]));
    }
}

/// The class to name, where there is no choice.
fn with_class(open: &OpenPath<'_>, finding: Finding) -> Finding {
    match open.path.classes.as_slice() {
        [only] => finding.with("CLASS", &only.metadata.name),
        _ => finding,
    }
}

/// HTTP-24: the solver's Ingress is served at another address than the site's.
fn address_is_another(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        if open.edited_ingress().is_some() {
            continue;
        }
        let Some(ingress) = open.ingress() else { continue };
        let own = ingress.addresses();
        let mut sites = namesakes(&open, ingress).filter(|site| !site.addresses().is_empty());
        let Some(site) = sites.find(|site| !site.addresses().iter().any(|a| own.contains(a)))
        else {
            continue;
        };
        if own.is_empty() {
            continue;
        }
        let of = |ingress: &IngressCase| {
            let name = named("Ingress", &ingress.metadata);
            let came = format!(
                "{}, {} min old",
                ingress.addresses().join(", "),
                age(&ingress.metadata, case.at).as_mins()
            );
            open.stored(format!("{name}: status.loadBalancer"), came)
        };
        let detail = format!(
            "{} is at {}, and {} at {}",
            named("Ingress", &ingress.metadata),
            own.join(", "),
            named("Ingress", &site.metadata),
            site.addresses().join(", ")
        );
        let finding = open.finding(CauseId::Http24, Grade::Likely, of(ingress), detail);
        found.push(finding.shown_by([of(site)]));
    }
}

/// HTTP-25: the load balancer has noted on the solver's own Ingress that the back end is not well.
fn backend_is_unhealthy(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        // One that is edited has other back ends as well.
        let Some(ingress) = open.ingress().filter(|_| open.edited_ingress().is_none()) else {
            continue;
        };
        let Some(noted) = ingress.metadata.annotations.get(BACKENDS) else { continue };
        let Ok(Value::Object(backends)) = serde_json::from_str(noted) else { continue };
        let mut ill = backends.iter().filter(|(_, health)| **health == "UNHEALTHY");
        let Some((backend, _)) = ill.next() else { continue };
        let name = named("Ingress", &ingress.metadata);
        let shown = open.stored(format!("{name}: annotation {BACKENDS}"), noted);
        let detail = format!("back end {backend} of {name} is UNHEALTHY");
        found.push(open.finding(CauseId::Http25, Grade::Likely, shown, detail));
    }
}

/// HTTP-39: nothing answers where the name leads, and a load balancer of the cluster has not got an address.
fn balancer_has_no_address(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(name) = case.names.iter().find(|name| name.shown() == open.wanted.domain) else {
            continue;
        };
        let met: Vec<String> =
            name.looks.iter().map(|look| look.address.ip().to_string()).collect();
        let is_met =
            |of: &ServiceCase| of.status.addresses().iter().any(|it| met.iter().any(|ip| ip == it));
        let balancers = &open.path.balancers;
        let is_lacking = |service: &&ServiceCase| service.status.addresses().is_empty();
        let has_nothing =
            |look: &AddressLook| matches!(look.observation.seen, Seen::Nothing { .. });
        let is_silent = name.looks.iter().all(has_nothing);
        let is_wrong = name.looks.iter().all(|look| !look.is_answer);
        // The one that serves the class of the solver's Ingress, which has no address either; whoever answers is another.
        let own = balancers.iter().filter(is_lacking).find(|it| is_wrong && serves(&open, it));
        // The name leads to another one, which has its address.
        let any = balancers.iter().find(is_lacking);
        let any = any.filter(|_| is_silent && !balancers.iter().any(is_met));
        let (Some(service), Some(look)) = (own.or(any), name.looks.first()) else { continue };
        let of = &service.metadata;
        let balancer = named("Service", of);
        let is_about = |event: &&Event| {
            let about = &event.involved_object;
            about.kind == "Service" && about.namespace == of.namespace && about.name == of.name
        };
        let warning = open.path.warnings.iter().find(is_about);
        let is_sure = warning.is_some() || own.is_some();
        let grade = if is_sure { Grade::Likely } else { Grade::Possible };
        let why = warning.map(|event| format!("{}: {}", event.reason, event.message));
        let shown = open.stored(format!("{balancer}: status.loadBalancer"), "no address");
        let said = why.as_ref().map(|why| open.stored(format!("event about {balancer}"), why));
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let detail = format!("{balancer} of type LoadBalancer has no address{why}");
        let finding = open.finding(CauseId::Http39, grade, shown, detail).shown_by(said);
        let finding = finding.shown_by([seen(&look.observation, saw(&look.observation))]);
        found.push(finding.with("BALANCER", &of.name).with("BALANCER-NAMESPACE", &of.namespace));
    }
}

/// Tells whether a Service is that of the controller that serves the solver's Ingress, which has no address: they have one name.
fn serves(open: &OpenPath<'_>, service: &ServiceCase) -> bool {
    let Some(ingress) = open.ingress().filter(|ingress| ingress.addresses().is_empty()) else {
        return false;
    };
    let class = open.path.classes.iter().find(|it| ingress.class() == Some(&it.metadata.name));
    // `k8s.io/ingress-nginx`, as its chart names its objects, too.
    let controller = class.and_then(|it| it.spec.controller.rsplit('/').next());
    let label = service.metadata.labels.get("app.kubernetes.io/name");
    controller.is_some_and(|name| label.is_some_and(|label| label == name))
}

/// HTTP-27: of several addresses some do not answer, and they are of a Service that only some nodes serve.
fn some_nodes_lead_nowhere(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(name) = case.names.iter().find(|name| name.shown() == open.wanted.domain) else {
            continue;
        };
        let LookUp::Found(addresses) = &name.addresses else { continue };
        let is_of = |address: &&str| {
            address.parse::<IpAddr>().is_ok_and(|address| addresses.contains(&address))
        };
        let local = open.path.balancers.iter().find(|service| {
            service.spec.external_traffic_policy == "Local"
                && service.status.addresses().iter().any(&is_of)
        });
        let Some(service) = local else { continue };
        let is_silent = |seen: &Seen| matches!(seen, Seen::Nothing { .. });
        let mut silent = name.looks.iter().filter(|look| is_silent(&look.observation.seen));
        let answers = name.looks.iter().any(|look| !is_silent(&look.observation.seen));
        let (Some(look), true) = (silent.next(), answers) else { continue };
        let Seen::Nothing { why, .. } = &look.observation.seen else { continue };
        let balancer = named("Service", &service.metadata);
        let policy = stored(format!("{balancer}: spec.externalTrafficPolicy"), case.at, "Local");
        let detail = format!("{} does not answer, others do", look.address.ip());
        let shown = seen(&look.observation, why);
        let finding = open.finding(CauseId::Http27, Grade::Likely, shown, detail);
        found.push(finding.shown_by([policy]).with("NODE-ADDRESS", look.address.ip().to_string()));
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::super::open_path::testing::{object, path_with};
    use super::super::tests::check;
    use super::*;
    use crate::diagnosis::path_case::ClusterPathCase;
    use crate::model::cause::Symptom;
    use crate::model::observation::{Observation, Vantage};

    fn by_class(class: Value, change: impl FnOnce(&mut Case, &mut ClusterPathCase)) -> Case {
        path_with(json!({"ingress": class}), |case, path| {
            // Nobody has given it an address.
            path.ingresses[0].status = object(json!({}));
            path.ingresses[0].spec.ingress_class_name =
                class["ingressClassName"].as_str().map(str::to_owned);
            change(case, path);
        })
    }

    #[test]
    fn a_class_that_nobody_serves_is_named() {
        let absent = || json!({"ingressClassName": "absent"});
        check(&by_class(absent(), |_, _| {}), &[CauseId::Http10]);
        check(&by_class(absent(), |_, path| path.ingresses.clear()), &[CauseId::Ctl10]);
        let unread = by_class(absent(), |_, path| {
            path.ingresses[0].metadata.creation_timestamp = None;
            path.listed.remove("ingressclasses/");
        });
        check(&unread, &[]);
        // Somebody serves it all the same.
        let served = path_with(json!({"ingress": absent()}), |_, _| {});
        check(&served, &[]);
    }

    #[test]
    fn an_ingress_without_an_address_is_one_that_nobody_takes() {
        let edge = || json!({"ingressClassName": "edge"});
        let with_others = by_class(edge(), |_, path| {
            path.addressed = [("edge".to_owned(), 3)].into();
        });
        check(&with_others, &[CauseId::Http10]);
        assert_eq!(super::super::judge(&with_others)[0].grade, Grade::Likely);
        let alone = by_class(edge(), |_, _| {});
        assert_eq!(super::super::judge(&alone)[0].grade, Grade::Possible);
        let young = by_class(edge(), |case, _| case.at = "2026-11-24T21:51:00Z".parse().unwrap());
        check(&young, &[]);
        check(&by_class(json!({}), |_, _| {}), &[CauseId::Http10]);
        let default = by_class(json!({}), |_, path| {
            path.classes[0].metadata.annotations =
                [("ingressclass.kubernetes.io/is-default-class".into(), "true".into())].into();
        });
        check(&default, &[]);
    }

    fn told(message: &str) -> Case {
        path_with(json!({"ingress": {"ingressClassName": "edge"}}), |_, path| {
            path.warnings = vec![object(json!({
                "involvedObject": {"kind": "Ingress", "uid": "ingress"}, "type": "Warning", "reason": "Rejected",
                "message": message,
            }))];
        })
    }

    #[test]
    fn what_an_ingress_controller_says_decides_the_cause() {
        check(&told("All hosts are taken by other resources"), &[CauseId::Http12]);
        let expected =
            "service \"web/x\" is type \"ClusterIP\", expected \"NodePort\" or \"LoadBalancer\"";
        check(&told(expected), &[CauseId::Http26]);
        check(&told("some backend is UNHEALTHY"), &[CauseId::Http25]);
        check(
            &told("spec.rules[0].http.paths[0]: pathType Exact is not taken"),
            &[CauseId::Http13],
        );
        check(&told("certificate is about to expire"), &[]);
    }

    #[test]
    fn a_route_that_no_router_admits_is_told_by_its_reason() {
        let of = |reason: &str, owner: &str| {
            path_with(json!({"ingress": {"ingressClassName": "edge"}}), |_, path| {
                let owner = json!({"apiVersion": "v1", "kind": "Ingress", "name": owner, "uid": owner, "controller": true});
                let admitted = json!({
                    "type": "Admitted", "status": "False", "reason": reason, "message": "somebody else has it",
                });
                path.openshift_routes = vec![object(json!({
                    "metadata": {"namespace": "web", "name": "ingress-x", "ownerReferences": [owner]},
                    "status": {"ingress": [{"conditions": [admitted]}]},
                }))];
            })
        };
        check(&of("HostAlreadyClaimed", "ingress"), &[CauseId::Http12]);
        check(&of("ExtendedValidationFailed", "ingress"), &[CauseId::Http40]);
        check(&of("HostAlreadyClaimed", "another"), &[]);
    }

    #[test]
    fn the_balancer_of_the_classs_controller_is_known_by_its_name() {
        let of = |label: &str, has_address: bool| {
            let mut case = path_with(
                json!({"ingress": {"ingressClassName": "edge"}}),
                |case, path| {
                    let mut name = super::super::tests::name(
                        "www.example.com",
                        Some(crate::model::ChallengeType::Http01),
                    );
                    let other = Seen::Reply {
                        status: 404,
                        body: String::new(),
                        truncated: false,
                        is_declined: false,
                    };
                    name.looks = vec![look("192.0.2.9:80", other)];
                    case.names = vec![name];
                    if !has_address {
                        path.ingresses[0].status = object(json!({}));
                    }
                    path.classes[0].spec.controller = "k8s.io/ingress-nginx".into();
                    path.balancers = vec![object(json!({
                        "metadata": {"namespace": "edge", "name": "edge", "labels": {"app.kubernetes.io/name": label}},
                        "spec": {"type": "LoadBalancer"},
                    }))];
                },
            );
            case.at = "2026-11-24T21:51:00Z".parse().unwrap();
            let found = super::super::judge(&case);
            found.iter().any(|it| it.cause == CauseId::Http39 && it.grade == Grade::Likely)
        };
        assert!(of("ingress-nginx", false));
        assert!(!of("traefik", false) && !of("ingress-nginx", true));
    }

    fn beside(address: &str) -> Case {
        path_with(json!({"ingress": {"ingressClassName": "edge"}}), |_, path| {
            path.ingresses.push(object(json!({
                "metadata": {"namespace": "shop", "name": "site", "uid": "site"},
                "spec": {"rules": [{"host": "www.example.com"}]},
                "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
            })));
        })
    }

    #[test]
    fn a_second_address_is_told_by_both_ingresses() {
        check(&beside("192.0.2.1"), &[]);
        check(&beside("198.51.100.7"), &[CauseId::Http24]);
    }

    #[test]
    fn the_health_that_gce_notes_is_read() {
        let noted = |health: &str| {
            path_with(json!({"ingress": {"ingressClassName": "edge"}}), |_, path| {
                let noted = json!({"k8s1-a-web-service-8089": health}).to_string();
                path.ingresses[0].metadata.annotations.insert(BACKENDS.into(), noted);
            })
        };
        check(&noted("HEALTHY"), &[]);
        check(&noted("UNHEALTHY"), &[CauseId::Http25]);
    }

    fn look(address: &str, seen: Seen) -> AddressLook {
        let observation = Observation {
            vantage: Vantage::ThisMachine,
            at: "2026-11-24T22:00:00Z".parse().unwrap(),
            url: "http://www.example.com/x".into(),
            hops: Vec::new(),
            seen,
        };
        AddressLook {
            address: address.parse().unwrap(),
            observation,
            expected: "t.k".into(),
            is_expected: true,
            is_answer: false,
            sighting: None,
            disagreement: None,
            web: None,
            arrivals: Vec::new(),
        }
    }

    #[test]
    fn a_balancer_without_an_address_explains_that_nobody_answers() {
        let of = |answers: bool, addresses: Value, message: Option<&str>| {
            path_with(json!({"ingress": {"ingressClassName": "edge"}}), |case, path| {
                let silent =
                    Seen::Nothing { why: "no answer".into(), symptom: Some(Symptom::Unreachable) };
                case.names[0].looks =
                    vec![AddressLook { is_answer: answers, ..look("192.0.2.1:80", silent) }];
                path.balancers = vec![object(json!({
                    "metadata": {"namespace": "edge", "name": "ingress"},
                    "spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": addresses}},
                }))];
                path.warnings.extend(message.map(|message| object(json!({
                    "metadata": {"namespace": "edge", "name": "e"}, "type": "Warning", "reason": "AllocationFailed",
                    "message": message,
                    "involvedObject": {"kind": "Service", "namespace": "edge", "name": "ingress"},
                }))));
            })
        };
        let grade = |case: &Case| {
            let found = super::super::judge(case);
            let found = found.iter().find(|finding| finding.cause == CauseId::Http39);
            found.map(|finding| (finding.grade, finding.facts["DETAIL"].clone()))
        };
        let (likely, detail) = grade(&of(false, json!([]), Some("pool is empty"))).unwrap();
        assert_eq!(likely, Grade::Likely);
        assert!(detail.ends_with("has no address (AllocationFailed: pool is empty)"), "{detail}");
        assert_eq!(grade(&of(false, json!([]), None)).unwrap().0, Grade::Possible);
        assert!(grade(&of(true, json!([]), Some("pool is empty"))).is_none());
        assert!(grade(&of(false, json!([{"ip": "192.0.2.1"}]), Some("pool is empty"))).is_none());
        let mut other = of(false, json!([]), Some("pool is empty"));
        other.cluster_path.as_mut().unwrap().balancers.push(object(json!({
            "metadata": {"namespace": "edge", "name": "public"}, "spec": {"type": "LoadBalancer"},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        })));
        assert!(grade(&other).is_none());
    }

    #[test]
    fn nodes_that_do_not_answer_are_those_of_a_local_policy() {
        let of = |policy: &str| {
            path_with(json!({"ingress": {"ingressClassName": "edge"}}), |case, path| {
                let silent = Seen::Nothing { why: "refused".into(), symptom: None };
                let reply = Seen::Reply {
                    status: 200,
                    body: "t.k".into(),
                    truncated: false,
                    is_declined: false,
                };
                let name = &mut case.names[0];
                name.addresses =
                    LookUp::Found(vec!["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()]);
                let good = AddressLook { is_answer: true, ..look("192.0.2.1:80", reply) };
                name.looks = vec![good, look("192.0.2.2:80", silent)];
                path.balancers = vec![object(json!({
                    "metadata": {"namespace": "edge", "name": "ingress"},
                    "spec": {"type": "LoadBalancer", "externalTrafficPolicy": policy},
                    "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]}},
                }))];
            })
        };
        let has = |case: &Case| {
            super::super::judge(case).iter().any(|finding| finding.cause == CauseId::Http27)
        };
        assert!(has(&of("Local")) && !has(&of("Cluster")));
    }
}
