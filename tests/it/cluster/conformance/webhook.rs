//! What cert-manager's webhook forbids to change (section 1.11 of the reference), as policies of the API server: nothing that we
//! do runs against them.

use serde_json::{Value, json};

use super::stage::{Manner, Stage, certificate, held, name};
use crate::support::cluster::eventually;

/// A field of the status that may be set, and not changed.
fn set_once(field: &str) -> Value {
    let old = format!("!has(oldObject.status) || !has(oldObject.status.{field})");
    let kept = format!("object.status.{field} == oldObject.status.{field}");
    let expression = format!("{old} || has(object.status) && has(object.status.{field}) && {kept}");
    json!({"expression": expression, "message": format!("{field}: field is immutable once set")})
}

/// What may be read of an authorization, and not changed then.
fn authorizations() -> Value {
    let (old, new) = ("oldObject.status.authorizations", "object.status.authorizations");
    let kept = |field: &str| {
        format!(
            "(!has({old}[i].{field}) || has({new}[i].{field}) && {new}[i].{field} == {old}[i].{field})"
        )
    };
    let all = ["url", "identifier", "wildcard", "initialState"].map(kept).join(" && ");
    let expression = format!(
        "!has(oldObject.status) || !has({old}) || has({new}) && size({new}) == size({old}) && \
         [0, 1, 2, 3].all(i, i >= size({old}) || {all})"
    );
    json!({"expression": expression, "message": "authorizations: field is immutable once set"})
}

/// A policy for one resource in a namespace, and what binds it.
fn policy(place: &str, group: &str, resource: &str, validations: &[Value]) -> [Value; 2] {
    let policy_name = format!("{place}-{resource}");
    let rule = json!({
        "apiGroups": [group], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": [resource, format!("{resource}/status")],
    });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy_name},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": validations},
    });
    let labels = json!({"kubernetes.io/metadata.name": place});
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy_name},
        "spec": {
            "policyName": policy_name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": labels}},
        },
    });
    [policy, binding]
}

/// The policies, once the API server heeds all of them.
fn guard(stage: &Stage) -> Vec<Value> {
    let same = |field: &str| json!({"expression": format!("object.{field} == oldObject.{field}")});
    let mut of_orders = vec![same("spec.request"), authorizations()];
    of_orders.extend(["url", "finalizeURL", "certificate"].map(set_once));
    let place = stage.place();
    let guards = [
        policy(place, "acme.cert-manager.io", "orders", &of_orders),
        policy(place, "acme.cert-manager.io", "challenges", &[same("spec")]),
        policy(place, "cert-manager.io", "certificaterequests", &[same("spec")]),
    ]
    .concat();
    stage.apply(&guards);
    let url = json!({"status": {"url": "https://ca.example/other"}}).to_string();
    let spec = json!({"spec": {"issuerRef": {"name": "other"}}}).to_string();
    for (kind, patch, part) in [
        ("orders", &url, "--subresource=status"),
        ("challenges", &spec, "--subresource="),
        ("certificaterequests", &spec, "--subresource="),
    ] {
        let object = format!("{kind}/{}", name(&stage.kubectl.items(kind)[0]));
        let words = ["patch", &object, "--type=merge", "-p", patch, part, "--dry-run=server"];
        eventually("the policy", || stage.kubectl.try_run(&words).is_err().then_some(()));
    }
    guards
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn nothing_is_changed_that_cert_managers_webhook_keeps() {
    let mut stage = Stage::open("webhook").await;
    stage.apply(&[stage.issuer("acme", held())]);
    let host = stage.host("www");
    stage.apply(&[certificate("one", &[&host], json!({}))]);
    stage.sees_one("challenges", &json!({"status": {"presented": true}}));
    stage.apply(&[certificate("two", &[&host], json!({}))]);
    let both = eventually("both Orders", || {
        let orders = stage.kubectl.items("orders");
        let is_read =
            |order: &Value| order["status"]["authorizations"][0]["initialState"] == "pending";
        (orders.len() == 2 && orders.iter().all(is_read)).then_some(orders)
    });
    let [one, two] = ["one-1-", "two-1-"]
        .map(|begin| both.iter().find(|order| name(order).starts_with(begin)).unwrap());

    // As if the CA had given the same order to both, as Boulder does.
    stage.rest().await;
    stage.patch(&format!("order/{}", name(two)), &json!({"status": one["status"]}));
    let guards = guard(&stage);
    stage.work(Manner::default()).await;
    let waits = json!({"metadata": {"name": "two-1-…"}, "status": {"reason": "…one-1-…"}});
    stage.sees_one("orders", &waits);
    let challenge = stage.sees_one("challenges", &json!({"status": {"presented": true}}));
    stage.let_go(&challenge);
    stage.kubectl.wait_for("certificate/one", "Ready");
    // The other one may not forget the CA's order: it makes way for a new Order.
    let uid = &two["metadata"]["uid"];
    let challenge = eventually("the challenge of another Order", || {
        let challenges = stage.kubectl.items("challenges");
        let is_new = |challenge: &&Value| {
            let owner = &challenge["metadata"]["ownerReferences"][0];
            let of_two = owner["name"].as_str().is_some_and(|name| name.starts_with("two-1-"));
            of_two && owner["uid"] != *uid && challenge["status"]["presented"] == true
        };
        challenges.iter().find(is_new).cloned()
    });
    stage.let_go(&challenge);
    stage.kubectl.wait_for("certificate/two", "Ready");
    for object in &guards {
        stage.kubectl.run(&["delete", object["kind"].as_str().unwrap(), name(object)]);
    }
}
