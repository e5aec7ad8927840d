//! Faults of the stages of an issuance, with cert-manager's own controllers at work.

use serde_json::{Value, json};

use super::control::Made;
use super::peer::{Scene, condition, look_in};
use super::rules;
use super::turns::at_a_site;
use crate::support::cluster::{Arena, check, eventually};
use crate::support::fault::Fault;
use crate::support::lab;
use crate::support::program;
use crate::support::traffic::Endpoint;

fn reason_has(words: &'static str) -> impl Fn(&Value) -> bool {
    move |object| object["status"]["reason"].as_str().is_some_and(|reason| reason.contains(words))
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cfg_05_a_solver_of_two_types_passes_the_api_server() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "nested", &["--leave-out=challenges"]);
    let two = json!([{
        "http01": {"ingress": {}},
        "dns01": {"rfc2136": {"nameserver": "127.0.0.1:53"}},
    }]);
    scene.apply(&[scene.issuer(|acme| acme["solvers"] = two), scene.certificate()]);
    scene.until("certificaterequests", |_| true);
    let first = scene.names_first("CFG-05");
    assert!(first["message"].as_str().unwrap().contains("solvers[0]"), "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cfg_07_class_and_its_field_stand_in_one_solver() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "classes", &[]);
    let both = json!([{"http01": {"ingress": {"class": "old", "ingressClassName": "new"}}}]);
    scene.apply(&[scene.issuer(|acme| acme["solvers"] = both), scene.certificate()]);
    scene.until("challenges", reason_has("cannot be set at the same time"));
    let first = scene.names_first("CFG-07");
    let seen = first["evidence"].to_string();
    assert!(seen.contains("class: old, ingressClassName: new"), "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn acc_10_a_controller_that_has_started_anew_has_no_client_yet() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "client", &[]);
    scene.apply(&[scene.issuer(|_| ())]);
    scene.until_issuer("True");
    let Scene { bench, peer } = scene;
    peer.stop();
    // What makes the clients does not come to it.
    let peer = arena.peer(&["--leave-out=issuers"]);
    peer.wait_until_at_work();
    let scene = Scene { bench, peer };
    scene.apply(&[scene.certificate()]);
    scene.until("orders", |_| true);
    let (_, report) = look_in(&scene.bench, 10, &["web", &at_a_site()]);
    let first = lab::names_first(&report, "ACC-10");
    assert!(first["evidence"].to_string().contains("True since"), "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ord_03_nobody_approves_the_request_or_somebody_denies_it() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "approver", &["--leave-out=certificaterequests-approver"]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    let request = scene.until("certificaterequests", |_| true);
    scene.until_issuer("True");
    let name = request["metadata"]["name"].as_str().unwrap();
    // An approver may take a moment.
    let (_, report) = look_in(&scene.bench, 2, &["web"]);
    let first = lab::names_first(&report, "ORD-03");
    assert!(first["fix"].to_string().contains(&format!("approve {name}")), "{first:#}");
    let kubectl = scene.bench.namespace.kubectl();
    check(&scene.bench.run(&kubectl, &["certificate", "deny", name]), 0);
    scene.until("certificates", |one| one["status"]["failedIssuanceAttempts"] == 1);
    let first = scene.names_first("ORD-03");
    assert!(first["evidence"].to_string().contains("Denied"), "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ord_08_the_challenge_that_failed_is_gone_and_the_ca_tells_no_more() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "forgotten", &[]);
    let refused = Fault::change(|authorization| {
        if authorization["challenges"][0]["status"] != "pending" {
            authorization["status"] = "invalid".into();
            authorization["challenges"][0]["status"] = "invalid".into();
        }
    });
    scene.bench.proxy().inject(refused.at(Endpoint::Authorization));
    let ended = Fault::change(|order| {
        if order["status"] == "ready" {
            order["status"] = "invalid".into();
        }
    });
    scene.bench.proxy().inject(ended.at(Endpoint::Order));
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until("certificates", |one| one["status"]["failedIssuanceAttempts"] == 1);
    scene.bench.namespace.kubectl().run(&["delete", "challenges", "--all"]);
    scene.bench.proxy().calm_down();
    let unknown = Fault::problem(404, "malformed", "No such authorization");
    scene.bench.proxy().inject(unknown.at(Endpoint::Authorization));
    let (_, report) = scene.diagnose(&["web"]);
    lab::names_first(&report, "ORD-08");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ord_10_two_certificates_have_one_secret() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "shared", &["--leave-out=challenges"]);
    let mut other = scene.certificate();
    other["metadata"]["name"] = "other".into();
    other["spec"]["dnsNames"] = json!(["other.example.com"]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate(), other]);
    scene.until_issuer("True");
    scene.until("orders", |_| true);
    let first = scene.names_first("ORD-10");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("web-tls, as ") && message.ends_with("/other"), "{first:#}");
}

/// Applies a policy to the namespace of `scene` by which the API server refuses what does not fit `validation`, and waits until it
/// refuses `probe`.
fn refuse(made: &mut Made<'_>, scene: &Scene<'_>, rule: &Value, validation: &Value, probe: &Value) {
    let namespace = scene.bench.namespace.name();
    let meta = json!({"name": format!("lab-{namespace}")});
    made.apply(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": meta,
        "spec": {
            "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, "validations": [validation],
        },
    }));
    made.apply(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": meta,
        "spec": {
            "policyName": meta["name"], "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}},
        },
    }));
    let file = scene.bench.folder().join("probe.json");
    std::fs::write(&file, probe.to_string()).unwrap();
    let create = ["create", "--dry-run=server", "-f", file.to_str().unwrap()];
    eventually("the policy to count", || {
        scene.bench.namespace.kubectl().try_run(&create).is_err().then_some(())
    });
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ord_17_a_policy_refuses_the_secret_and_the_step_that_is_not_taken_is_named() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let scene = Scene::new(&arena, "refused", &[]);
    // What the CA issued is never stored, and cert-manager writes of it in its log alone.
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["secrets"],
    });
    let validation = json!({
        "expression": "!object.metadata.name.startsWith('web-tls')", "message": "the frobnicator has no quux",
    });
    let probe =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-tls-probe"}});
    refuse(&mut made, &scene, &rule, &validation, &probe);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until("certificaterequests", |request| condition(request, "Ready") == Some("True"));
    let (output, report) = look_in(&scene.bench, 1, &["web"]);
    lab::names_none(&report, "an issuance that has just begun");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("web has been under way for "),
        "{output:?}"
    );
    let (output, report) = look_in(&scene.bench, 4, &["web"]);
    let first = lab::names_first(&report, "ORD-17");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("/web has made no progress since "), "{first:#}");
    assert_eq!((output.status.code(), &first["grade"]), (Some(10), &json!("likely")), "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ord_18_the_key_does_not_fit_and_has_to_be_kept() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "kept", &[]);
    let (key, chain) = key_pair();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "web-tls"},
        "stringData": {"tls.key": key, "tls.crt": chain},
    });
    let mut certificate = scene.certificate();
    certificate["spec"]["privateKey"] = json!({"algorithm": "RSA", "rotationPolicy": "Never"});
    scene.apply(&[secret, scene.issuer(|_| ()), certificate]);
    scene.until("events", |event| event["reason"] == "CannotRegenerateKey");
    let (output, report) = scene.diagnose(&["web"]);
    let first = lab::names_first(&report, "ORD-18");
    assert!(first["message"].as_str().unwrap().contains("spec.privateKey"), "{first:#}");
    assert_eq!(output.status.code(), Some(10), "{report:#}");
}

/// A new key by ECDSA, and a certificate that it has signed itself, as PEM.
fn key_pair() -> (String, String) {
    let pair = rcgen::generate_simple_self_signed(["web.example.com".to_owned()]).unwrap();
    (pair.signing_key.serialize_pem(), pair.cert.pem())
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ord_19_the_secret_is_immutable() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "fixed", &[]);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "web-tls"}, "immutable": true,
        "stringData": {"tls.key": "", "tls.crt": ""},
    });
    scene.apply(&[secret, scene.issuer(|_| ()), scene.certificate()]);
    scene.until("certificaterequests", |request| condition(request, "Ready") == Some("True"));
    let (output, report) = scene.diagnose(&["web"]);
    let first = lab::names_first(&report, "ORD-19");
    assert!(first["message"].as_str().unwrap().contains("/web-tls of Certificate"), "{first:#}");
    assert_eq!(output.status.code(), Some(10), "{report:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn http_13_a_policy_refuses_exact_paths_with_a_dot() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let scene = Scene::new(&arena, "exact", &[]);
    let rule = json!({
        "apiGroups": ["networking.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["ingresses"],
    });
    let validation = json!({
        "expression": "object.spec.rules.all(r, r.http.paths.all(p, p.pathType != 'Exact' || !p.path.contains('.')))",
        // The words of ingress-nginx with strict-validate-path-type.
        "messageExpression": "'ingress contains invalid paths: path ' + object.spec.rules[0].http.paths[0].path + ' cannot be used with pathType Exact'",
    });
    let probe = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "probe"},
        "spec": {"rules": [{"host": "probe.example.com", "http": {"paths": [{
            "path": "/.x", "pathType": "Exact", "backend": {"service": {"name": "x", "port": {"number": 80}}},
        }]}}]},
    });
    refuse(&mut made, &scene, &rule, &validation, &probe);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until("challenges", reason_has("pathType"));
    let (output, report) = scene.diagnose(&["web", &at_a_site()]);
    let first = lab::names_first(&report, "HTTP-13");
    assert!(first["message"].as_str().unwrap().contains("pathType Exact"), "{first:#}");
    assert_eq!(output.status.code(), Some(10), "{report:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn hyg_03_requests_of_a_certificate_pile_up() {
    let arena = Arena::enter();
    let mut scene = Scene::new(&arena, "pile", &[]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    let certificate = scene.until("certificates", |one| {
        condition(one, "Ready") == Some("True") && condition(one, "Issuing").is_none()
    });
    // A release that takes none away has left them.
    scene.peer.freeze();
    let request = scene.until("certificaterequests", |_| true);
    let old: Vec<Value> = (0..30)
        .map(|number| {
            let owner = json!([{
                "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "name": "web", "controller": true,
                "uid": certificate["metadata"]["uid"],
            }]);
            json!({
                "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest",
                "metadata": {"name": format!("old-{number}"), "ownerReferences": owner}, "spec": request["spec"],
            })
        })
        .collect();
    scene.apply(&old);
    let (output, report) = scene.diagnose(&["web"]);
    let first = lab::names_first(&report, "HYG-03");
    assert!(
        first["message"].as_str().unwrap().ends_with("has 31 CertificateRequests"),
        "{first:#}"
    );
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    scene.peer.thaw();
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn int_01_what_may_not_be_looked_at_is_neither_well_nor_ill() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let scene = Scene::new(&arena, "unseen", &["--leave-out=challenges"]);
    made.usual(&["--enable-gateway-api"]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until_issuer("True");
    scene.until("challenges", |_| true);
    let looker = scene.bench.namespace.service_account("looker", &rules());
    let site = at_a_site();
    let words = ["diagnose", "-o", "json", "web", &site, "--probe-image=kubectl-acme:test"];
    let output = scene.bench.run(&looker, &words);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = lab::names_first(&report, "INT-01");
    assert!(first["evidence"].to_string().contains("no permission to"), "{first:#}");
    assert!(
        report.to_string().contains("no Pod can be made: no permission to create pods"),
        "{report:#}"
    );
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    // Nothing is made without the flag either.
    let mut command = program::command();
    command.args(["diagnose", "web", &site, "--namespace", scene.bench.namespace.name()]);
    let page = command.env("KUBECONFIG", looker.kubeconfig()).output().unwrap();
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(page.starts_with("INT-01  warning"), "{page}");
    assert!(scene.bench.namespace.kubectl().items("pods").is_empty());
}
