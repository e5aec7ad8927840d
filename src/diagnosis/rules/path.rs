//! HTTP-10, HTTP-12, HTTP-13, HTTP-25, HTTP-26, HTTP-40: the Ingress of a solver, its controller, and their warnings.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::http_answer::saw;
use super::open_path::{OpenPath, named, open_paths};
use crate::diagnosis::case::Case;
use crate::diagnosis::case::path::age;
use crate::diagnosis::case::path_objects::{IngressCase, IngressClassCase, OpenShiftRouteCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade, evidence_of_probe};
use crate::diagnosis::words::foreign::{IngressRefusal, ingress_refusal};
use crate::model::common::condition;
use crate::model::{ConditionStatus, Event};

/// Maximum time that a controller takes to note the address of an Ingress.
const ADDRESS_REPORT_MAX: SignedDuration = SignedDuration::from_mins(2);

pub(super) const RULES: &[FaultRule] = &[
    ingress_is_refused,
    router_rejects,
    controller_reports_fault,
    class_is_missing,
    classes_share_the_default,
    nobody_takes_ingress,
];

/// HTTP-12, HTTP-13, HTTP-25, HTTP-26: the Ingress controller says why it does not serve the Ingress.
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

/// HTTP-40: a controller of the path has warned about an object of the path, in words that no other cause knows.
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
            let seen = evidence_of_probe(&look.observation, saw(&look.observation));
            found
                .push(open.finding(CauseId::Http40, Grade::Likely, shown, detail).shown_by([seen]));
        }
    }
}

/// Reports whether a Warning is from a program that does not serve the object: cert-manager warns about annotations for
/// Certificates, policy engines about objects that they would not have admitted, and others about records in DNS.
fn is_beside(event: &Event) -> bool {
    let by = event.source.component.as_str();
    let by = if by.is_empty() { event.reporting_component.as_str() } else { by };
    event.reason == "PolicyViolation"
        || ["cert-manager", "kyverno", "gatekeeper", "external-dns"]
            .iter()
            .any(|it| by.starts_with(it))
}

/// Returns evidence for a refusal: the other Ingresses of the host, the type of the path, or the type of the Service.
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

/// Returns the other Ingresses of the host.
pub(super) fn namesakes<'a>(
    open: &OpenPath<'a>,
    ingress: &'a IngressCase,
) -> impl Iterator<Item = &'a IngressCase> {
    let domain = &open.wanted.domain;
    open.path
        .ingresses
        .iter()
        .filter(move |other| other.metadata.uid != ingress.metadata.uid && other.has_host(domain))
}

/// HTTP-10: the class that the solver names does not exist.
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
        // Some controllers go by the name of the class alone.
        let (grade, there) = match names.as_slice() {
            [] => (Grade::Likely, "there are none".to_owned()),
            [only] => (Grade::Certain, format!("there is only {only}")),
            names => (Grade::Certain, format!("there are {}", names.join(", "))),
        };
        let asked = open.ingress().map_or_else(
            || format!("solver for {}: http01.ingress.ingressClassName", open.wanted.domain),
            |ingress| format!("{}: spec.ingressClassName", named("Ingress", &ingress.metadata)),
        );
        let more = open.stored("IngressClasses", &there);
        let detail = format!("the class {class} does not exist; {there}");
        // Before there is a Challenge, another obstacle comes first, and this fault comes later.
        let is_ahead = open.challenge.is_none()
            && case.certificates.iter().any(|of| of.is_open() && of.wants(&open.wanted.domain));
        let grade = if is_ahead { Grade::Possible } else { grade };
        let finding = open.finding(CauseId::Http10, grade, open.stored(asked, class), detail);
        found.push(with_class(&open, finding).shown_by([more]));
    }
}

/// HTTP-10: the solver names no class, several classes are the default, and the host's other Ingresses have another class.
fn classes_share_the_default(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(solver) = &open.wanted.solver.ingress else { continue };
        let is_named = solver.class.is_some() || solver.ingress_class_name.is_some();
        if is_named || open.edited_ingress().is_some() {
            continue;
        }
        let defaults = open.path.classes.iter().filter(|class| class.is_default());
        let defaults: Vec<&str> = defaults.map(|class| class.metadata.name.as_str()).collect();
        let Some(ingress) = open.ingress().filter(|_| defaults.len() > 1) else { continue };
        let Some(given) = ingress.class() else { continue };
        let sites: Vec<&str> = namesakes(&open, ingress).filter_map(IngressCase::class).collect();
        let Some(site) = sites.first().filter(|_| !sites.contains(&given)) else { continue };
        let defaults = defaults.join(", ");
        let came = format!("{defaults}: the API server gave the Ingress {given}");
        let shown = open.stored("IngressClasses that are the default", &came);
        let detail = format!(
            "{} names no class and got {given}, one of the defaults {defaults}; the site has {site}",
            named("Ingress", &ingress.metadata)
        );
        found.push(open.finding(CauseId::Http10, Grade::Likely, shown, detail));
    }
}

/// HTTP-10: the Ingress has existed for a while, and has no address.
fn nobody_takes_ingress(case: &Case, found: &mut Vec<Finding>) {
    for open in open_paths(case) {
        let Some(ingress) = open.ingress() else { continue };
        let age = age(&ingress.metadata, case.at);
        if !ingress.addresses().is_empty() || age < ADDRESS_REPORT_MAX {
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
            // The controller of this class notes addresses.
            Some(class) if others > 0 => {
                (Grade::Likely, format!("{others} others of the class {class} have one"))
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

/// Adds the class to name, if there is only one class.
fn with_class(open: &OpenPath<'_>, finding: Finding) -> Finding {
    match open.path.classes.as_slice() {
        [only] => finding.with("CLASS", &only.metadata.name),
        _ => finding,
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::super::open_path::testing::{object, path_with};
    use super::super::tests::check;
    use super::*;
    use crate::diagnosis::case::path::ClusterPathCase;

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
    fn two_classes_that_are_the_default_are_named_where_the_site_has_the_other() {
        let of = |defaults: usize, site: &str| {
            path_with(json!({"ingress": {}}), |_, path| {
                let class = |name: &str, is_default: bool| {
                    let annotations = json!({"ingressclass.kubernetes.io/is-default-class": is_default.to_string()});
                    object(json!({"metadata": {"name": name, "annotations": annotations}}))
                };
                path.classes = vec![class("edge", true), class("inner", defaults > 1)];
                path.ingresses.push(object(json!({
                    "metadata": {"namespace": "web", "name": "shop", "uid": "shop"},
                    "spec": {"ingressClassName": site, "rules": [{"host": "www.example.com"}]},
                    "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
                })));
            })
        };
        check(&of(2, "inner"), &[CauseId::Http10]);
        check(&of(2, "edge"), &[]);
        check(&of(1, "inner"), &[]);
    }

    #[test]
    fn an_annotation_that_contradicts_the_issuer_is_named() {
        let of = |class: Value, annotated: bool| {
            path_with(class, |case, _| {
                let annotations = &mut case.certificates[0].certificate.metadata.annotations;
                if annotated {
                    let key = "acme.cert-manager.io/http01-override-ingress-class";
                    annotations.insert(key.into(), "inner".into());
                }
            })
        };
        let both = json!({"ingress": {"class": "inner", "ingressClassName": "edge"}});
        let found = of(both, true);
        check(&found, &[CauseId::Cfg07]);
        let evidence = &super::super::judge(&found)[0].evidence;
        assert!(evidence.iter().any(|one| one.came.ends_with("override-ingress-class: inner")));
        check(&of(json!({"ingress": {"ingressClassName": "edge"}}), true), &[]);
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
}
