//! HTTP-24, HTTP-25, HTTP-27, HTTP-39: load balancers of the cluster, their addresses and their nodes.

use std::net::IpAddr;

use serde_json::Value;

use super::http_answer::saw;
use super::open_path::{OpenPath, named, open_paths};
use super::path::namesakes;
use crate::diagnosis::case::Case;
use crate::diagnosis::case::name::{AddressProbe, LookUp};
use crate::diagnosis::case::path::age;
use crate::diagnosis::case::path_objects::{IngressCase, ServiceCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade, evidence_of_probe, stored};
use crate::model::Event;
use crate::model::observation::CheckResult;

/// Annotation in which GCE notes the health of back ends.
const BACKENDS: &str = "ingress.kubernetes.io/backends";

pub(super) const RULES: &[FaultRule] =
    &[address_is_another, backend_is_unhealthy, some_nodes_lead_nowhere, balancer_has_no_address];

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
        // An Ingress that a solver edits has other back ends as well.
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

/// HTTP-39: the name leads to no server that answers, and a load balancer of the cluster has no address.
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
            |look: &AddressProbe| matches!(look.observation.seen, CheckResult::Nothing { .. });
        let is_silent = name.looks.iter().all(has_nothing);
        let is_wrong = name.looks.iter().all(|look| !look.is_answer);
        // The balancer for the class of the solver's Ingress, which has no address either; any answer is another server's.
        let own = balancers.iter().filter(is_lacking).find(|it| is_wrong && serves(&open, it));
        // Not if the name leads to another balancer, which has its address.
        let any = balancers.iter().find(is_lacking);
        let any = any.filter(|_| is_silent && !balancers.iter().any(is_met));
        // Records that other programs make follow the address of the balancer.
        let is_nowhere = matches!(name.addresses, LookUp::NoName(_) | LookUp::NoRecord(_));
        let any = any.filter(|_| !is_nowhere);
        let Some(service) = own.or(any) else { continue };
        if name.looks.is_empty() && !is_nowhere {
            continue;
        }
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
        let look = name.looks.first();
        let finding = finding
            .shown_by(look.map(|it| evidence_of_probe(&it.observation, saw(&it.observation))));
        let finding = finding.failing(is_nowhere);
        found.push(finding.with("BALANCER", &of.name).with("BALANCER-NAMESPACE", &of.namespace));
    }
}

/// Reports whether a Service has the name of the controller that serves the solver's Ingress; that Ingress has no address.
fn serves(open: &OpenPath<'_>, service: &ServiceCase) -> bool {
    let Some(ingress) = open.ingress().filter(|ingress| ingress.addresses().is_empty()) else {
        return false;
    };
    let class = open.path.classes.iter().find(|it| ingress.class() == Some(&it.metadata.name));
    // `k8s.io/ingress-nginx`; the controller's chart gives its objects this name, too.
    let controller = class.and_then(|it| it.spec.controller.rsplit('/').next());
    let label = service.metadata.labels.get("app.kubernetes.io/name");
    controller.is_some_and(|name| label.is_some_and(|label| label == name))
}

/// HTTP-27: some of several addresses do not answer, and belong to a Service that only some nodes serve.
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
        let is_silent = |seen: &CheckResult| matches!(seen, CheckResult::Nothing { .. });
        let mut silent = name.looks.iter().filter(|look| is_silent(&look.observation.seen));
        let answers = name.looks.iter().any(|look| !is_silent(&look.observation.seen));
        let (Some(look), true) = (silent.next(), answers) else { continue };
        let CheckResult::Nothing { why, .. } = &look.observation.seen else { continue };
        let balancer = named("Service", &service.metadata);
        let policy = stored(format!("{balancer}: spec.externalTrafficPolicy"), case.at, "Local");
        let detail = format!("{} does not answer, others do", look.address.ip());
        let shown = evidence_of_probe(&look.observation, why);
        let finding = open.finding(CauseId::Http27, Grade::Likely, shown, detail);
        found.push(finding.shown_by([policy]).with("NODE-ADDRESS", look.address.ip().to_string()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::open_path::testing::{object, path_with};
    use super::super::tests::check;
    use super::*;
    use crate::model::cause::Symptom;
    use crate::model::observation::{Observation, Vantage};

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
                    let other = CheckResult::Reply {
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

    fn look(address: &str, seen: CheckResult) -> AddressProbe {
        let observation = Observation {
            vantage: Vantage::ThisMachine,
            at: "2026-11-24T22:00:00Z".parse().unwrap(),
            url: "http://www.example.com/x".into(),
            hops: Vec::new(),
            seen,
        };
        AddressProbe {
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
                let silent = CheckResult::Nothing {
                    why: "no answer".into(),
                    symptom: Some(Symptom::Unreachable),
                };
                case.names[0].looks =
                    vec![AddressProbe { is_answer: answers, ..look("192.0.2.1:80", silent) }];
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
                let silent = CheckResult::Nothing { why: "refused".into(), symptom: None };
                let reply = CheckResult::Reply {
                    status: 200,
                    body: "t.k".into(),
                    truncated: false,
                    is_declined: false,
                };
                let name = &mut case.names[0];
                name.addresses =
                    LookUp::Found(vec!["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()]);
                let good = AddressProbe { is_answer: true, ..look("192.0.2.1:80", reply) };
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
