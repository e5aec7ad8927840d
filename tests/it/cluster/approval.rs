//! `certificate approve` and `certificate deny` beside cert-manager, whose own approver is switched off.

use serde_json::{Value, json};

use crate::support::cluster::{Arena, Bench, check, eventually};

/// What somebody may who reads, and writes the status of requests.
fn reader() -> Value {
    json!([
        {"apiGroups": ["cert-manager.io", "acme.cert-manager.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["cert-manager.io"], "resources": ["certificaterequests/status"], "verbs": ["patch"]},
    ])
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cert_manager_issues_what_somebody_approves_who_may() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "approval");
    let peer = arena.peer(&["--leave-out=certificaterequests-approver"]);
    peer.wait_until_at_work();
    let kubectl = bench.namespace.kubectl();
    let objects = [
        bench.issuer("Issuer", "pebble", &json!({"ingress": {}})),
        bench.certificate("web", "Issuer", "pebble"),
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    kubectl.apply(&list.to_string());
    let request = eventually("the request", || kubectl.items("certificaterequests").pop());
    let name = request["metadata"]["name"].as_str().unwrap();
    let may_read = bench.namespace.service_account("reader", &reader().to_string());
    let said = check(&bench.run(&may_read, &["certificate", "approve", "web"]), 8);
    let right = format!("issuers.cert-manager.io/{}.pebble", bench.namespace.name());
    for words in [
        format!("nothing was done: approve signers.cert-manager.io {right:?}\n"),
        format!("resources: [signers], verbs: [approve], resourceNames: [{right:?}]"),
    ] {
        assert!(said.contains(&words), "{words}: {said}");
    }
    let nobody = bench.namespace.service_account("looker", &json!([reader()[0]]).to_string());
    let said = check(&bench.run(&nobody, &["certificate", "deny", name]), 8);
    assert!(said.contains("patch certificaterequests.cert-manager.io/status"), "{said}");
    let stored = kubectl.object(&format!("certificaterequest/{name}"));
    assert!(
        !stored.to_string().contains("Approved") && !stored.to_string().contains("Denied"),
        "{stored:#}"
    );

    let mut rules = reader();
    rules.as_array_mut().unwrap().push(json!({
        "apiGroups": ["cert-manager.io"], "resources": ["signers"], "verbs": ["approve"], "resourceNames": [right],
    }));
    let approver = bench.namespace.service_account("approver", &rules.to_string());
    let output = bench.run(&approver, &["certificate", "approve", "web"]);
    check(&output, 0);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("Approved CertificateRequest '{}/{name}'\n", bench.namespace.name()));
    kubectl.wait_for("certificate/web", "Ready");
    let said = check(&bench.run(&approver, &["certificate", "approve", name]), 1);
    assert!(said.contains("is already approved"), "{said}");
}
