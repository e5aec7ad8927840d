//! Cases 57 to 63 and 65 to 72: the scheduler, and a Challenge from admission to clean-up.

use serde_json::{Value, json};

use super::stage::{Manner, Stage, certificate, held, name, ready};
use crate::support::cluster::eventually;
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

const FINALIZER: &str = "acme.cert-manager.io/finalizer";
const SOLVER_KINDS: [&str; 3] = ["pods", "services", "ingresses"];

/// The Challenge for a host, once it looks like that.
fn challenge_for(stage: &Stage, host: &str, status: &Value) -> Value {
    stage.sees_one("challenges", &json!({"spec": {"dnsName": host}, "status": status}))
}

fn path(challenge: &Value) -> String {
    format!("challenge/{}", name(challenge))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn no_more_challenges_start_than_there_are_slots_and_one_of_a_name() {
    let mut stage = Stage::set("slots");
    stage.work(Manner { slots: 2, ..Manner::default() }).await;
    stage.apply(&[stage.issuer("acme", held())]);
    stage.sees("issuer/acme", &ready("True", "ACMEAccountRegistered", "…"));
    let hosts = ["a", "b", "c"].map(|label| stage.host(label));
    // One after the other: the oldest starts first.
    let mut started = Vec::new();
    for host in &hosts[..2] {
        let of_host = certificate(&format!("first-{}", started.len()), &[host], json!({}));
        stage.apply(&[of_host]);
        let runs = json!({"processing": true, "presented": true, "state": "pending"});
        let challenge = challenge_for(&stage, host, &runs);
        stage.hears(&path(&challenge), "Normal Started Challenge scheduled for processing");
        assert_eq!(challenge["metadata"]["finalizers"], json!([FINALIZER]));
        started.push(challenge);
    }
    stage.apply(&[certificate("second", &[&hosts[0]], json!({}))]);
    let locked = format!("Waiting for challenge {}/{}: …", stage.place(), name(&started[0]));
    let second = json!({"spec": {"dnsName": hosts[0]}, "status": {
        "reason": locked, "processing": null, "presented": null, "state": null,
    }});
    let locked = stage.sees_one("challenges", &second);
    stage.apply(&[certificate("third", &[&hosts[2]], json!({}))]);
    let queued = json!({
        "reason": "Waiting for a slot: 2 challenges are being processed", "processing": null,
        "presented": null, "state": null,
    });
    let queued = challenge_for(&stage, &hosts[2], &queued);
    for idle in [&locked, &queued] {
        assert_eq!(idle["metadata"]["finalizers"], Value::Null, "nothing happens before its turn");
    }
    let old = json!({"metadata": {"finalizers": ["finalizer.acme.cert-manager.io"]}});
    stage.patch(&path(&queued), &old);
    stage.kubectl.run(&["delete", "certificate", "first-1", "--cascade=foreground"]);
    let seen = challenge_for(&stage, &hosts[2], &json!({"processing": true, "presented": true}));
    assert_eq!(seen["metadata"]["finalizers"], json!([FINALIZER]), "in place of the old one");

    stage.let_go(&started[0]);
    stage.kubectl.wait_for("certificate/first-0", "Ready");
    let runs = json!({"processing": true, "presented": true});
    let next = challenge_for(&stage, &hosts[0], &runs);
    assert_eq!(name(&next), name(&locked), "its name is free");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_challenge_reads_its_own_authorization_where_nobody_else_does() {
    let mut stage = Stage::open("alone").await;
    stage.apply(&[stage.issuer("acme", held())]);
    let (host, other) = (stage.host("www"), stage.host("other"));
    stage.apply(&[certificate("web", &[&host, &other], json!({}))]);
    let challenge = challenge_for(&stage, &host, &json!({"presented": true, "reason": "…"}));
    let order = stage.sees_one("orders", &json!({"status": {"state": "pending"}}));

    // As if its Order had not read the authorizations.
    stage.rest().await;
    let mut read = order["status"]["authorizations"].clone();
    for authorization in read.as_array_mut().unwrap() {
        authorization.as_object_mut().unwrap().remove("initialState");
    }
    stage.patch(&format!("order/{}", name(&order)), &json!({"status": {"authorizations": read}}));
    stage.patch(&path(&challenge), &json!({"status": {"state": null}}));
    stage.proxy.forget();
    stage.work(Manner::default()).await;
    stage.sees(&path(&challenge), &json!({"status": {"state": "pending"}}));
    let counts = stage.proxy.counts();
    assert_eq!((counts.at(Endpoint::Authorization), counts.at(Endpoint::Challenge)), (1, 0));

    // While another one waits for its name, it does not wait for its Order either.
    stage.apply(&[certificate("rival", &[&host], json!({}))]);
    let rival = stage.sees_one("orders", &json!({"metadata": {"name": "rival-1-…"}}));
    let queued = format!("Waiting for challenge {}/{}: …", stage.place(), name(&challenge));
    challenge_for(&stage, &host, &json!({"reason": queued}));
    stage.let_go(&challenge);
    let done = json!({
        "state": "valid", "reason": "Successfully authorized domain", "presented": null,
        "processing": null, "presentedAt": "…",
    });
    stage.sees(&path(&challenge), &json!({"status": done, "metadata": {"finalizers": null}}));
    let verified =
        format!("Normal DomainVerified Domain \"{host}\" verified with \"HTTP-01\" validation");
    stage.hears(&path(&challenge), &verified);
    let uid = &challenge["metadata"]["uid"];
    for kind in SOLVER_KINDS {
        let objects = stage.kubectl.items(kind);
        let is_its = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"] == *uid;
        let stays = |object: &&Value| object["metadata"]["deletionTimestamp"].is_null();
        assert!(!objects.iter().filter(stays).any(is_its), "{kind} of {}", name(&rival));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn what_stands_in_the_way_of_a_challenge_is_said_and_waited_for() {
    let mut stage = Stage::set("obstacles");
    let (quota, shut) = (stage.host("quota"), stage.host("shut"));
    stage.work(Manner { closed: vec![shut.clone()], ..Manner::default() }).await;
    stage.apply(&[stage.issuer("acme", json!({}))]);
    stage.kubectl.run(&["create", "quota", "none", "--hard=pods=0"]);
    // The quota counts from when its status is written, by a controller that this cluster lacks.
    stage.patch("quota/none", &json!({"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}));
    stage.apply(&[certificate("quota", &[&quota], json!({}))]);
    let waits = json!({"presented": null, "state": "pending", "reason": "…exceeded quota…"});
    let challenge = challenge_for(&stage, &quota, &waits);
    let said = "Warning PresentError Error presenting challenge: …exceeded quota…";
    stage.hears(&path(&challenge), said);
    stage.kubectl.run(&["delete", "quota", "none"]);
    stage.kubectl.wait_for("certificate/quota", "Ready");

    stage.proxy.forget();
    stage.apply(&[certificate("shut", &[&shut], json!({}))]);
    let why = format!(
        "Waiting for HTTP-01 challenge propagation: failed to perform self check GET request \
         'http://{shut}/.well-known/acme-challenge/…': …"
    );
    let waits = json!({"presented": true, "state": "pending", "reason": why});
    challenge_for(&stage, &shut, &waits);
    assert_eq!(stage.proxy.counts().at(Endpoint::Challenge), 0, "the CA is told nothing");
    // Somebody who looks from elsewhere sees it.
    stage.rest().await;
    stage.work(Manner::default()).await;
    stage.kubectl.wait_for("certificate/shut", "Ready");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn what_the_ca_says_to_an_acceptance_is_kept_or_tried_again() {
    let stage = Stage::open("accepted").await;
    let host = stage.host("malformed");
    let malformed = Fault::problem(400, "malformed", "no such thing");
    stage.proxy.inject(malformed.at(Endpoint::Challenge).times(1));
    stage.apply(&[certificate("malformed", &[&host], json!({}))]);
    let why = "Error accepting challenge: 400 …malformed: …";
    challenge_for(&stage, &host, &json!({"state": "expired", "reason": why}));
    // cert-manager's Order would stay pending for ever.
    let ended = json!({"status": {"state": "errored", "reason": format!("…{host}: …")}});
    stage.sees_one("orders", &ended);
    stage.kubectl.run(&["delete", "certificate", "malformed", "--cascade=foreground"]);

    for (label, fault) in [
        ("forbidden", Fault::problem(403, "unauthorized", "wrong answer")),
        ("limited", Fault::problem(429, "rateLimited", "slow").header("Retry-After", "1")),
        ("broken", Fault::status(500)),
        ("dropped", Fault::drop_request()),
    ] {
        let host = stage.host(label);
        stage.proxy.forget();
        stage.proxy.inject(fault.at(Endpoint::Challenge).times(1));
        stage.apply(&[certificate(label, &[&host], json!({}))]);
        stage.kubectl.wait_for(&format!("certificate/{label}"), "Ready");
        assert_eq!(stage.proxy.counts().at(Endpoint::Challenge), 2, "{label}");
        let verified = format!("Normal DomainVerified Domain \"{host}\" verified with …");
        eventually(&format!("the event of {label}"), || {
            let events = stage.kubectl.items("events");
            let message = |event: &Value| {
                let text =
                    format!("Normal {} {}", event["reason"].as_str()?, event["message"].as_str()?);
                super::stage::fits(&verified.clone().into(), Some(&text.into())).then_some(())
            };
            events.iter().find_map(message)
        });
    }
}

/// A policy that forbids to delete Services in a namespace, and what binds it.
fn guard(place: &str) -> [Value; 2] {
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["services"],
    });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": place},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "not on Fridays"}],
        },
    });
    let labels = json!({"kubernetes.io/metadata.name": place});
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": place},
        "spec": {
            "policyName": place, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": labels}},
        },
    });
    [policy, binding]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_challenge_goes_only_after_its_answer_and_always_goes() {
    let stage = Stage::open("leaving").await;
    stage.apply(&[stage.issuer("acme", held())]);
    let host = stage.host("www");
    stage.apply(&[certificate("web", &[&host], json!({}))]);
    let first = challenge_for(&stage, &host, &json!({"presented": true}));
    stage.kubectl.run(&["delete", "challenge", name(&first), "--timeout=120s"]);
    // Its Order is not finished, and asks for another one of the same name.
    let uid = |challenge: &Value| challenge["metadata"]["uid"].clone();
    let second = eventually("the next Challenge", || {
        let challenge = stage.kubectl.items("challenges").first().cloned()?;
        let is_up = challenge["status"]["presented"] == true;
        (is_up && uid(&challenge) != uid(&first)).then_some(challenge)
    });
    assert_eq!(name(&second), name(&first));
    for kind in SOLVER_KINDS {
        let of_second = json!({"metadata": {"ownerReferences": [{"uid": uid(&second)}]}});
        stage.sees_one(kind, &of_second);
    }

    let guard = guard(stage.place());
    stage.apply(&guard);
    // The API server heeds a new policy a moment later.
    eventually("the policy", || {
        let service = name(&stage.kubectl.items("services")[0]).to_owned();
        let tried = stage.kubectl.try_run(&["delete", "service", &service, "--dry-run=server"]);
        tried.is_err().then_some(())
    });
    stage.kubectl.run(&["delete", "certificate", "web", "--wait=false"]);
    let said = "Warning CleanUpError Error cleaning up challenge: …not on Fridays";
    stage.hears(&path(&second), said);
    let stuck = stage.sees(&path(&second), &json!({"metadata": {"deletionTimestamp": "…"}}));
    let finalizers = stuck["metadata"]["finalizers"].as_array().unwrap();
    assert!(finalizers.contains(&FINALIZER.into()), "the answer is still up");
    // cert-manager would keep the slot.
    stage.sees(&path(&second), &json!({"status": {"processing": null}}));
    for object in &guard {
        let kind = object["kind"].as_str().unwrap();
        stage.kubectl.run(&["delete", kind, stage.place()]);
    }
    for kind in ["certificates", "certificaterequests", "orders", "challenges"] {
        stage.sees_none(kind);
    }
    for kind in SOLVER_KINDS {
        stage.sees_none(kind);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_wait_can_stand_in_for_the_self_check() {
    let mut stage = Stage::set("waits");
    let (blind, patient) = (stage.host("blind"), stage.host("patient"));
    let closed = vec![blind.clone(), patient.clone()];
    stage.work(Manner { closed, ..Manner::default() }).await;
    let solver = |wait: &str| {
        let ingress = json!({"ingress": {"ingressClassName": "bed"}});
        json!({"solvers": [{"http01": ingress, "waitInsteadOfSelfCheck": wait}]})
    };
    // Only our own look would find the door shut.
    stage.apply(&[stage.issuer("acme", held()), certificate("blind", &[&blind], json!({}))]);
    let challenge = challenge_for(&stage, &blind, &json!({"presented": true}));
    stage.let_go(&challenge);
    stage.kubectl.wait_for("certificate/blind", "Ready");
    stage.proxy.forget();
    stage.apply(&[certificate("patient", &[&patient], json!({}))]);
    let why = "Waiting until … before accepting HTTP-01 challenge without self-check";
    let waits = json!({"presented": true, "state": "pending", "reason": why});
    let challenge = challenge_for(&stage, &patient, &waits);
    stage.patch(&path(&challenge), &json!({"status": {"presentedAt": null}}));
    let again = json!({"presentedAt": "…", "reason": why});
    challenge_for(&stage, &patient, &again);
    assert_eq!(stage.proxy.counts().at(Endpoint::Challenge), 0, "it is not accepted before");
    stage.apply(&[stage.issuer("acme", solver("0s"))]);
    // Whether the CA finds the answer so soon is its own affair.
    eventually("the acceptance", || {
        (stage.proxy.counts().at(Endpoint::Challenge) == 1).then_some(())
    });
}
