//! CTL, GW-01 and HTTP-33: controllers in a cluster, their flags, and obstacles to their work.

use std::collections::{BTreeMap, BTreeSet};

use super::controller::{idle, is_watched};
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::control::{ControllerCase, UndefinedCase};
use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, stored};
use crate::diagnosis::words::controller::{self, ControllerLack};
use crate::diagnosis::words::foreign;
use crate::model::common::is_true;
use crate::model::release::Release;
use crate::model::{ChallengeType, Key, Kind};

pub(super) const RULES: &[FaultRule] = &[
    controller_ails,
    two_controllers_lead,
    namespace_ends,
    right_is_missing,
    definitions_are_missing,
    definitions_are_old,
    controller_is_slow,
    gateway_api_is_off,
    look_goes_through_a_proxy,
];

/// Minimum number of waiting certificates that are a crowd.
const MIN_CROWD: usize = 50;
/// Default of the controller's flag `kube-api-qps`, in requests per second.
const DEFAULT_QPS: &str = "20";

/// Returns the messages of others about open Certificates: reasons of Challenges and Orders, and Events about any of the
/// Certificate's objects. Each comes with the Certificate's issuer, if the issuer's kind is ours.
pub(super) fn messages_of_others(case: &Case) -> Vec<(Option<Key>, Evidence)> {
    let mut all = Vec::new();
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let issuer = issuer_key(&of.certificate);
        for challenge in
            of.current_challenges().filter(|challenge| !challenge.status.reason.is_empty())
        {
            let asked = format!("Challenge {}: status.reason", challenge.name());
            let shown = stored(asked, case.at, &challenge.status.reason);
            all.push((issuer.clone(), shown));
        }
        if let Some(order) = of.order().filter(|order| !order.status.reason.is_empty()) {
            let asked = format!("Order {}: status.reason", order.name());
            all.push((issuer.clone(), stored(asked, case.at, &order.status.reason)));
        }
        for warning in &case.control.warnings {
            if concerns(of, &warning.about) {
                let asked = format!("Event {} of {}", warning.reason, warning.about);
                let at = warning.at.unwrap_or(case.at);
                all.push((issuer.clone(), stored(asked, at, &warning.message)));
            }
        }
    }
    all
}

/// Reports whether an object is a Certificate, or hangs below the Certificate.
pub(super) fn concerns(of: &CertificateCase, about: &str) -> bool {
    about == format!("Certificate {}", of.certificate.name())
        || of.requests.iter().any(|it| about == format!("CertificateRequest {}", it.name()))
        || of.order().is_some_and(|it| about == format!("Order {}", it.name()))
        || of.current_challenges().any(|it| about == format!("Challenge {}", it.name()))
}

/// Returns cert-manager's controllers if cert-manager works on the objects; else none.
fn active_controllers(case: &Case) -> &[ControllerCase] {
    if case.driver == DriverCase::CertManager { &case.control.controllers } else { &[] }
}

fn deployment(controller: &ControllerCase, field: &str) -> String {
    format!("Deployment {}: {field}", controller.name)
}

/// CTL-01, with the state of the controller's Pods.
fn controller_ails(case: &Case, found: &mut Vec<Finding>) {
    let are_none_ready = case.control.controllers.iter().all(|of| of.ready == 0);
    if case.driver == DriverCase::KubectlAcme || !are_none_ready {
        return;
    }
    let ail = case.control.controllers.iter().filter(|of| of.wanted == 0 || !of.ailing.is_empty());
    let shown: Vec<Evidence> = ail
        .map(|of| {
            let count = format!("{} of {} Pods ready", of.ready, of.wanted);
            let came = std::iter::once(count).chain(of.ailing.clone()).collect::<Vec<_>>();
            stored(deployment(of, "status"), case.at, came.join("; "))
        })
        .collect();
    found.extend(shown.into_iter().filter_map(|shown| idle(case, shown)));
}

/// CTL-02: two controllers lead, each on all namespaces, with a Lease of its own.
fn two_controllers_lead(case: &Case, found: &mut Vec<Finding>) {
    let is_held = |of: &&ControllerCase| {
        case.control.leases.iter().any(|lease| lease.namespace == of.lease_namespace())
    };
    let is_everywhere = |of: &&ControllerCase| of.flag("namespace").is_none_or(str::is_empty);
    let ready = case.control.controllers.iter().filter(|of| of.ready > 0 && of.is_told_by_flags());
    let leading: Vec<&ControllerCase> = ready.filter(is_held).filter(is_everywhere).collect();
    let places: BTreeSet<&str> = leading.iter().map(|of| of.lease_namespace()).collect();
    let [first, others @ ..] = &leading[..] else { return };
    if places.len() < 2 {
        return;
    }
    let shown = |of: &ControllerCase| {
        let place = of.lease_namespace();
        let holder = case.control.leases.iter().find(|lease| lease.namespace == place);
        let holder = holder.map(|lease| lease.holder.as_str()).unwrap_or_default();
        let came = format!("{} Pods ready; the Lease in {place} is held by {holder}", of.ready);
        stored(deployment(of, "leader election"), case.at, came)
    };
    let names: Vec<String> = leading.iter().map(|of| of.name.to_string()).collect();
    found.push(
        Finding::new(CauseId::Ctl02, Grade::Certain, "cert-manager", shown(first))
            .shown_by(others.iter().map(|of| shown(of)))
            .with("CONTROLLERS", names.join(" and ")),
    );
}

/// CTL-06: nothing new can be made in a namespace that is being deleted.
fn namespace_ends(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let name = of.certificate.name();
        let Some(holds) = case.control.ending.get(&name.namespace) else { continue };
        let asked = format!("Namespace {}: status", name.namespace);
        let shown = stored(asked, case.at, format!("Terminating; {holds}"));
        let detail = format!("namespace {} is being deleted", name.namespace);
        found.push(
            Finding::new(CauseId::Ctl06, Grade::Certain, format!("Certificate {name}"), shown)
                .with("DETAIL", detail),
        );
    }
}

/// CTL-07: the API server has denied the controller a request, or says that it would.
fn right_is_missing(case: &Case, found: &mut Vec<Finding>) {
    let groups: Vec<&str> = case.control.dns_webhooks.iter().map(|of| of.group.as_str()).collect();
    let mut push = |what: String, user: &str, shown: Evidence| {
        found.push(
            Finding::new(CauseId::Ctl07, Grade::Certain, user, shown)
                .with("WHO", user)
                .with("WHAT", what),
        );
    };
    for (_, shown) in messages_of_others(case) {
        let Some(right) = controller::missing_right(&shown.came) else { continue };
        // The rules for webhooks report the webhooks' permissions.
        if groups.contains(&right.group) || (right.resource == "secrets" && !groups.is_empty()) {
            continue;
        }
        let what = format!("{} {}", right.verb, right.resource);
        let user = right.user.to_owned();
        push(what, &user, shown);
    }
    // Controllers need no permissions in namespaces that they do not watch.
    for of in case.control.lacking.iter().filter(|of| is_watched(case, &of.namespace)) {
        let asked = format!("{} {} in namespace {}", of.verb, of.resource, of.namespace);
        let shown = stored(format!("SubjectAccessReview of {}", of.account), case.at, {
            format!("{asked}: not allowed")
        });
        push(format!("{} {}", of.verb, of.resource), &of.account, shown);
    }
}

/// CTL-09: the API server does not know kinds of cert-manager.
fn definitions_are_missing(case: &Case, found: &mut Vec<Finding>) {
    let undefined = &case.control.undefined;
    let mut groups: BTreeMap<&str, Vec<&UndefinedCase>> = BTreeMap::new();
    for one in undefined {
        groups.entry(&one.api_version).or_default().push(one);
    }
    let mut shown = Vec::new();
    let mut details = Vec::new();
    for (version, kinds) in groups {
        let plurals: Vec<&str> = kinds.iter().map(|one| one.plural.as_str()).collect();
        let plurals = plurals.join(", ");
        let (group, short) = version.split_once('/').unwrap_or((version, ""));
        let served = &kinds[0].served;
        let came = match &served[..] {
            [] => format!("no version of {group}"),
            served if served.iter().any(|one| one == short) => format!("no {plurals}"),
            served => format!("only {} of {group}", served.join(", ")),
        };
        details.push(format!("{plurals} of {version}"));
        shown.push(stored(format!("resources of {version} at the API server"), case.at, came));
    }
    let mut shown = shown.into_iter();
    let Some(first) = shown.next() else { return };
    // A question about a domain alone may have nothing to do with a cluster that never had cert-manager.
    let is_whole = undefined.len() == Kind::SIX.len();
    let is_aside = is_whole && !case.names.is_empty() && case.certificates.is_empty();
    let grade = if is_aside { Grade::Possible } else { Grade::Certain };
    found.push(
        Finding::new(CauseId::Ctl09, grade, "cert-manager", first)
            .shown_by(shown)
            .with("DETAIL", format!("the API server does not serve {}", details.join("; "))),
    );
}

/// CTL-09: definitions of another release than the controller's.
fn definitions_are_old(case: &Case, found: &mut Vec<Finding>) {
    let releases = case.control.controllers.iter().filter_map(|of| Release::parse(&of.release));
    let Some(controller) = releases.max() else { return };
    let old: Vec<String> = case
        .control
        .definitions
        .iter()
        .filter(|(_, label)| Release::parse(label).is_some_and(|of| of.line() < controller.line()))
        .map(|(name, label)| format!("{name} {label}"))
        .collect();
    let [first, ..] = &old[..] else { return };
    let shown = stored("label app.kubernetes.io/version of the definitions", case.at, first);
    let others = old[1..].iter().map(|one| stored(format!("definition {one}"), case.at, one));
    // A release may have changed no definition.
    let is_felt = case.control.dropped.iter().any(|of| of.is_undefined);
    let grade = if is_felt { Grade::Certain } else { Grade::Possible };
    found.push(
        Finding::new(CauseId::Ctl09, grade, "cert-manager", shown)
            .shown_by(others)
            .with("DETAIL", format!("{first}, but the controller is {controller}")),
    );
}

/// CTL-16: many Certificates wait for the controller itself, without a fault of their own.
fn controller_is_slow(case: &Case, found: &mut Vec<Finding>) {
    let [controller] = active_controllers(case) else { return };
    let waits = |of: &&CertificateCase| {
        let issuer = issuer_key(&of.certificate);
        let issuer = issuer.and_then(|key| case.issuer(&key)?.issuer.as_ref());
        let is_ready = issuer.is_some_and(|it| is_true(&it.status.conditions, "Ready"));
        of.is_open() && is_ready && of.next_try.is_none() && of.order().is_none()
    };
    let count = case.certificates.iter().filter(waits).count();
    if count < MIN_CROWD {
        return;
    }
    let asked = format!("{} Certificates that have to be issued", case.certificates.len());
    let shown = stored(asked, case.at, format!("{count} have no Order yet, and a ready issuer"));
    let rate = controller.flag("kube-api-qps").unwrap_or(DEFAULT_QPS);
    let flags = stored(deployment(controller, "kube-api-qps"), case.at, rate);
    found.push(
        Finding::new(CauseId::Ctl16, Grade::Likely, "cert-manager", shown)
            .shown_by([flags])
            .with("DETAIL", format!("{count} Certificates wait for it")),
    );
}

/// GW-01: by the controller's messages, and before any message by the controller's flags.
fn gateway_api_is_off(case: &Case, found: &mut Vec<Finding>) {
    let mut push = |issuer: &Key, grade, shown| {
        let subject = issuer.to_string();
        found.push(
            Finding::new(CauseId::Gw01, grade, subject.clone(), shown).with("ISSUER", subject),
        );
    };
    for (issuer, shown) in messages_of_others(case) {
        if let Some(issuer) = issuer
            && controller::controller_lack(&shown.came) == Some(ControllerLack::GatewayApi)
        {
            push(&issuer, Grade::Certain, shown);
        }
    }
    let [controller] = active_controllers(case) else { return };
    let is_on = controller.flag("enable-gateway-api").is_some_and(|value| value != "false");
    if is_on || !controller.is_told_by_flags() {
        return;
    }
    for of in &case.issuers {
        let acme = of.issuer.as_ref().and_then(|issuer| issuer.spec.acme.as_ref());
        let mut solvers = acme.into_iter().flat_map(|acme| &acme.solvers);
        let is_by_route = solvers.any(|solver| {
            solver.http01.as_ref().is_some_and(|http01| http01.gateway_http_route.is_some())
        });
        let is_wanted = case.certificates.iter().any(|certificate| {
            certificate.is_open() && issuer_key(&certificate.certificate).as_ref() == Some(&of.key)
        });
        if is_by_route && is_wanted {
            let came = "enable-gateway-api is not set";
            push(&of.key, Grade::Likely, stored(deployment(controller, "args"), case.at, came));
        }
    }
}

/// HTTP-33: the controller's self-check goes through a proxy, and gets another answer than this machine.
fn look_goes_through_a_proxy(case: &Case, found: &mut Vec<Finding>) {
    let [controller] = active_controllers(case) else { return };
    let proxy = controller.proxies.iter().find(|name| name.eq_ignore_ascii_case("HTTP_PROXY"));
    let Some(proxy) = proxy else { return };
    for name in case.names.iter().filter(|name| name.kind == Some(ChallengeType::Http01)) {
        if is_exempt(&name.name, &controller.exempt) {
            continue;
        }
        let Some(pending) = name.pending.as_ref().filter(|it| !it.status.reason.is_empty()) else {
            continue;
        };
        let is_up = !name.looks.is_empty() && name.looks.iter().all(|look| look.is_answer);
        if foreign::sighting(pending, &pending.status.reason).is_none() || !is_up {
            continue;
        }
        let asked = format!("Challenge {}: status.reason", pending.name());
        let shown = stored(asked, case.at, &pending.status.reason);
        let came = format!("{proxy} is set, and {} is not exempt", name.name);
        let variables = stored(deployment(controller, "env"), case.at, came);
        let looks = name.looks.iter();
        let looks = looks.map(|look| {
            crate::diagnosis::finding::evidence_of_probe(&look.observation, "the answer, from here")
        });
        found.push(
            Finding::new(CauseId::Http33, Grade::Likely, name.shown(), shown)
                .shown_by([variables])
                .shown_by(looks)
                .with("DOMAIN", name.shown()),
        );
    }
}

/// Reports whether `NO_PROXY` exempts a name, as Go reads the variable.
fn is_exempt(name: &str, exempt: &[String]) -> bool {
    exempt.iter().any(|one| {
        let bare = one.trim_start_matches('*').trim_start_matches('.');
        one == "*" || name == bare || (!bare.is_empty() && name.ends_with(&format!(".{bare}")))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::tests::{check, with};
    use super::*;
    use crate::diagnosis::case::DueReason;
    use crate::diagnosis::case::control::{
        AdmissionCase, ControlCase, DroppedCase, LackingCase, LeaseCase, WarningCase,
    };
    use crate::model::ObjectName;

    /// A case in a cluster where cert-manager works, changed.
    pub(in crate::diagnosis::rules) fn cluster(change: impl FnOnce(&mut Case)) -> Case {
        with(|case| {
            case.in_cluster = true;
            case.driver = DriverCase::CertManager;
            case.control.controllers = vec![controller("cert-manager")];
            change(case);
        })
    }

    /// A controller that is well, in that namespace.
    fn controller(namespace: &str) -> ControllerCase {
        ControllerCase {
            name: ObjectName::new(namespace, "cert-manager"),
            release: "v1.21.2".into(),
            account: "cert-manager".into(),
            wanted: 1,
            ready: 1,
            ..ControllerCase::default()
        }
    }

    /// A Challenge that says so, of the Order of the one Certificate.
    pub(in crate::diagnosis::rules) fn says(case: &mut Case, reason: &str) {
        let of = &mut case.certificates[0];
        let owned = |kind: &str, uid: &str| json!([{"apiVersion": "x", "kind": kind, "name": uid, "uid": uid, "controller": true}]);
        let metadata = json!({"namespace": "web", "name": "r", "uid": "r", "ownerReferences": owned("Certificate", "c")});
        let spec = json!({"issuerRef": {"name": "acme"}, "request": ""});
        let request = json!({"metadata": metadata, "spec": spec});
        let metadata = json!({"namespace": "web", "name": "o", "uid": "o", "ownerReferences": owned("CertificateRequest", "r")});
        let order = json!({
            "metadata": metadata, "spec": {"issuerRef": {"name": "acme"}, "request": ""}, "status": {"state": "pending", "url": "u"},
        });
        let metadata = json!({"namespace": "web", "name": "h", "uid": "h", "ownerReferences": owned("Order", "o")});
        let challenge = json!({
            "metadata": metadata,
            "spec": {
                "dnsName": "www.example.com", "token": "t", "key": "t.k", "type": "HTTP-01", "authorizationURL": "a", "url": "u",
                "issuerRef": {"name": "acme"}, "solver": {},
            },
            "status": {"reason": reason, "processing": true, "state": "pending"},
        });
        of.requests = vec![serde_json::from_value(request).unwrap()];
        of.orders = vec![serde_json::from_value(order).unwrap()];
        of.challenges = vec![serde_json::from_value(challenge).unwrap()];
    }

    #[test]
    fn a_cluster_that_is_well_has_no_fault() {
        check(&cluster(|_| ()), &[]);
        let all = ControlCase {
            leases: vec![lease("kube-system")],
            admission: vec![admission()],
            definitions: [("issuers.cert-manager.io".to_owned(), "v1.21.0".to_owned())].into(),
            ..ControlCase::default()
        };
        check(
            &cluster(|case| {
                let controllers = std::mem::take(&mut case.control.controllers);
                case.control = ControlCase { controllers, ..all };
            }),
            &[],
        );
    }

    fn lease(namespace: &str) -> LeaseCase {
        LeaseCase { namespace: namespace.into(), holder: "pod".into(), is_ours: false }
    }

    pub(in crate::diagnosis::rules) fn admission() -> AdmissionCase {
        AdmissionCase {
            configuration: "ValidatingWebhookConfiguration cert-manager-webhook".into(),
            webhook: "webhook.cert-manager.io".into(),
            service: Some(ObjectName::new("cert-manager", "cert-manager-webhook")),
            has_bundle: true,
            fails_closed: true,
            endpoints: Some(1),
            ..AdmissionCase::default()
        }
    }

    #[test]
    fn a_controller_of_one_other_namespace_does_not_work_here_and_needs_no_rights() {
        let of = |namespace: &str| {
            cluster(|case| {
                let flags = &mut case.control.controllers[0].flags;
                flags.insert("namespace".into(), namespace.into());
                case.certificates[0].due =
                    Some(DueReason { reason: "DoesNotExist".into(), message: String::new() });
                case.control.lacking = vec![LackingCase {
                    account: "system:serviceaccount:a:b".into(),
                    verb: "update".into(),
                    resource: "certificates".into(),
                    namespace: "web".into(),
                }];
            })
        };
        check(&of("team-a"), &[CauseId::Ctl01]);
        let found = crate::diagnosis::rules::judge(&of("team-a"));
        assert_eq!(found[0].evidence[0].came, "namespace=team-a");
        check(&of("web"), &[CauseId::Ctl07]);
    }

    #[test]
    fn a_controller_that_crashes_says_why_nobody_works() {
        let case = cluster(|case| {
            case.driver = DriverCase::Nobody;
            case.control.controllers[0].ready = 0;
            case.control.controllers[0].ailing = vec!["Pod a: CrashLoopBackOff".into()];
        });
        check(&case, &[CauseId::Ctl01]);
        let found = crate::diagnosis::rules::judge(&case);
        assert!(found[0].evidence.iter().any(|one| one.came.contains("CrashLoopBackOff")));
    }

    #[test]
    fn two_that_lead_are_told_from_two_that_share() {
        let two = |place: &str, confined: Option<&str>| {
            cluster(|case| {
                let mut second = controller("other");
                second.flags.insert("leader-election-namespace".into(), place.into());
                second.flags.extend(confined.map(|it| ("namespace".to_owned(), it.to_owned())));
                case.control.controllers.push(second);
                case.control.leases = vec![lease("kube-system"), lease("other")];
            })
        };
        check(&two("other", None), &[CauseId::Ctl02]);
        check(&two("kube-system", None), &[]);
        check(&two("other", Some("team")), &[]);
    }

    #[test]
    fn a_namespace_that_ends_is_told() {
        let of = |name: &str| {
            cluster(|case| drop(case.control.ending.insert(name.into(), "finalizers".into())))
        };
        check(&of("web"), &[CauseId::Ctl06]);
        check(&of("mail"), &[]);
    }

    #[test]
    fn rights_are_missing_by_review_and_by_refusal() {
        let lacking = LackingCase {
            account: "system:serviceaccount:cert-manager:cert-manager".into(),
            verb: "create".into(),
            resource: "orders.acme.cert-manager.io".into(),
            namespace: "web".into(),
        };
        check(&cluster(|case| case.control.lacking = vec![lacking]), &[CauseId::Ctl07]);
        let said = "services is forbidden: User \"system:serviceaccount:a:b\" cannot create resource \"services\" in API group \"\" \
                    in the namespace \"web\"";
        check(&cluster(|case| says(case, said)), &[CauseId::Ctl07]);
        let warned = |about: &str| {
            cluster(|case| {
                case.control.warnings = vec![WarningCase {
                    about: about.into(),
                    name: ObjectName::new("web", "www"),
                    reason: "Failed".into(),
                    message: said.into(),
                    ..WarningCase::default()
                }];
            })
        };
        check(&warned("Certificate web/www"), &[CauseId::Ctl07]);
        check(&warned("Certificate web/other"), &[]);
    }

    #[test]
    fn definitions_of_an_older_line_may_be_the_cause_and_are_where_fields_are_lost() {
        let of = |label: &str, dropped: Vec<DroppedCase>| {
            cluster(|case| {
                let name = "issuers.cert-manager.io".to_owned();
                case.control.definitions = [(name, label.to_owned())].into();
                case.control.dropped = dropped;
            })
        };
        let old = of("v1.17.0", Vec::new());
        check(&old, &[CauseId::Ctl09]);
        assert!(!crate::diagnosis::rules::judge(&old)[0].is_error());
        check(&of("v1.21.0", Vec::new()), &[]);
        check(&of("unknown", Vec::new()), &[]);
    }

    #[test]
    fn a_crowd_that_waits_for_the_controller_is_told() {
        let crowd = |count: usize| {
            cluster(|case| case.certificates = vec![case.certificates[0].clone(); count])
        };
        check(&crowd(MIN_CROWD), &[CauseId::Ctl16]);
        check(&crowd(MIN_CROWD - 1), &[]);
    }

    #[test]
    fn gateway_api_is_off_by_word_and_by_flags() {
        let by_route = |case: &mut Case| {
            let issuer = case.issuers[0].issuer.as_mut().unwrap();
            let solver = json!([{"http01": {"gatewayHTTPRoute": {"parentRefs": []}}}]);
            issuer.spec.acme.as_mut().unwrap().solvers = serde_json::from_value(solver).unwrap();
        };
        check(&cluster(by_route), &[CauseId::Gw01]);
        let with_flag = |name: &str| {
            cluster(|case| {
                by_route(case);
                case.control.controllers[0].flags.insert(name.into(), "true".into());
            })
        };
        check(&with_flag("enable-gateway-api"), &[]);
        check(&with_flag("config"), &[]);
        let said = "couldn't Present challenge web/h: gateway api is not enabled";
        check(&cluster(|case| says(case, said)), &[CauseId::Gw01]);
    }

    #[test]
    fn no_proxy_is_read_as_go_reads_it() {
        let exempt = [".example.com".to_owned(), "*.example.net".into(), "host".into()];
        for (name, expected) in [
            ("www.example.com", true),
            ("example.com", true),
            ("a.example.net", true),
            ("host", true),
            ("example.org", false),
            ("notexample.com", false),
        ] {
            assert_eq!(is_exempt(name, &exempt), expected, "{name}");
        }
    }

    #[test]
    fn a_look_through_a_proxy_is_blamed_where_we_see_the_answer() {
        let of = |exempt: &[&str], is_answer: bool| {
            cluster(|case| {
                says(case, "wrong status code '403', expected '200'");
                case.control.controllers[0].proxies = vec!["HTTP_PROXY".into()];
                let exempt = exempt.iter().map(|one| (*one).to_owned());
                case.control.controllers[0].exempt = exempt.collect();
                let name = &mut case.names[0];
                name.pending = Some(case.certificates[0].challenges[0].clone());
                let observation = crate::model::observation::Observation {
                    url: "http://www.example.com/".into(),
                    vantage: crate::model::observation::Vantage::ThisMachine,
                    hops: Vec::new(),
                    at: case.at,
                    seen: crate::model::observation::CheckResult::NoLook {
                        why: String::new(),
                        symptom: None,
                    },
                };
                name.looks = vec![crate::diagnosis::case::name::AddressProbe {
                    address: "192.0.2.1:80".parse().unwrap(),
                    observation,
                    expected: String::new(),
                    is_expected: true,
                    is_answer,
                    sighting: None,
                    disagreement: None,
                    web: None,
                    arrivals: Vec::new(),
                }];
            })
        };
        let has = |case: &Case| {
            crate::diagnosis::rules::judge(case).iter().any(|it| it.cause == CauseId::Http33)
        };
        assert!(has(&of(&[], true)));
        assert!(!has(&of(&["example.com"], true)));
        assert!(!has(&of(&[], false)));
    }
}
