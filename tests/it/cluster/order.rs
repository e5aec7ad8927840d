//! `order -f` in a real cluster, driven by cert-manager or by this program, whoever holds the Lease; and what ends it there.

use std::thread;

use serde_json::{Value, json};

use crate::support::bed;
use crate::support::cluster::{Arena, Bench, Cluster, Kubectl, check, eventually};

fn holder(kubectl: &Kubectl) -> String {
    let lease = kubectl.try_run(&[
        "get",
        "lease",
        "--namespace=kube-system",
        "cert-manager-controller",
        "--output=jsonpath={.spec.holderIdentity}",
    ]);
    lease.unwrap_or_default()
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn whoever_holds_the_lease_drives() {
    let arena = Arena::enter();
    let alone = Bench::new(&arena, "alone");
    let kubectl = alone.namespace.kubectl();
    let talk = alone.order(&kubectl, &[], 0);
    assert!(talk.contains("driver: kubectl-acme\n"), "{talk}");
    assert!(kubectl.run(&["get", "certificate", "web"]).contains("True"));
    assert_eq!(holder(&kubectl), "", "the Lease is given back");
    for kind in ["pods", "services", "ingresses", "challenges"] {
        assert!(kubectl.standing(kind).is_empty(), "{kind} stay");
    }
    let again = alone.order(&kubectl, &[], 0);
    assert!(again.contains("nothing is due"), "{again}");
    assert_eq!(alone.pebble.orders(), 1);
    one_answer_by_hand(&alone);
    programs_are_not_run(&alone);

    let peer = arena.peer(&[]);
    peer.wait_until_at_work();
    let shared = Bench::new(&arena, "shared");
    let kubectl = shared.namespace.kubectl();
    let refused = shared.order(&kubectl, &["--driver=self"], 12);
    assert!(refused.contains("error: cannot drive this cluster: cert-manager ("), "{refused}");
    assert!(kubectl.items("certificates").is_empty(), "nothing is applied");
    for (driver, words) in
        [("self", "cert-manager ("), ("cert-manager", "cert-manager does, as --driver")]
    {
        let said = shared.run(&kubectl, &["run", &format!("--driver={driver}")]);
        let refused = check(&said, 12);
        let expected = format!("error: cannot drive this cluster: {words}");
        assert!(refused.contains(&expected), "{refused}");
    }
    solvers_of_ours_are_refused(&shared);
    let refused =
        check(&alone.run(&alone.namespace.kubectl(), &["challenge", "present", "one"]), 12);
    assert!(refused.contains("present the answer of challenge one: cert-manager ("), "{refused}");
    let talk = shared.order(&kubectl, &[], 0);
    assert!(talk.contains("driver: cert-manager ("), "{talk}");
    shared.only_others_order(1);
    peer.stop();
}

/// Manifests for a name by a solver that only this program has.
fn own_solver(bench: &Bench<'_>, name: &str, config: &Value) -> String {
    let mut issuer = bench.issuer("Issuer", "own", &json!({}));
    let webhook = json!({"groupName": "kubectl-acme", "solverName": name, "config": config});
    issuer["spec"]["acme"]["solvers"] = json!([{"dns01": {"webhook": webhook}}]);
    bench.write("own.yaml", &[issuer, bench.certificate("own", "Issuer", "own")]);
    format!(
        "Certificate {0}/own: own.{0}.example.com: the dns01 solver of Issuer {0}/own ",
        bench.namespace.name()
    )
}

/// cert-manager would call a webhook that is not there, for ever.
fn solvers_of_ours_are_refused(bench: &Bench<'_>) {
    let kubectl = bench.namespace.kubectl();
    let key = json!({"name": "hetzner", "key": "token"});
    let whose = own_solver(bench, "hetzner", &json!({"apiTokenSecretRef": key}));
    let why = format!(
        "error: {whose}is \"hetzner\" of kubectl-acme, which only kubectl-acme can serve, and cert-manager drives here: nothing \
         was applied\n"
    );
    for flags in [&[][..], &["--dry-run=server"]] {
        let words = [&["order", "-f", "own.yaml"], flags].concat();
        let refused = check(&bench.run(&kubectl, &words), 12);
        assert!(refused.contains(&why), "{refused}");
    }
    assert!(kubectl.items("issuers").iter().all(|issuer| issuer["metadata"]["name"] != "own"));
}

/// Whoever may write an Issuer would run programs here.
fn programs_are_not_run(bench: &Bench<'_>) {
    let kubectl = bench.namespace.kubectl();
    let whose = own_solver(bench, "exec", &json!({"command": ["touch"]}));
    let words = ["order", "-f", "own.yaml", "--dns01-allow-exec"];
    for rehearsal in [&[][..], &["--rehearse", "--out=out"]] {
        let refused = check(&bench.run(&kubectl, &[&words, rehearsal].concat()), 9);
        let why = format!(
            "error: {whose}cannot be used: in a cluster no program is run that an Issuer names: "
        );
        assert!(refused.contains(&why), "{refused}");
    }
    assert!(kubectl.items("issuers").iter().all(|issuer| issuer["metadata"]["name"] != "own"));
    one_answer_of_a_program(bench);
}

/// A Challenge that somebody has made for a program is looked at, and says why nobody will ever answer it.
fn one_answer_of_a_program(bench: &Bench<'_>) {
    let kubectl = bench.namespace.kubectl();
    let config = json!({"command": ["touch"]});
    let webhook = json!({"groupName": "kubectl-acme", "solverName": "exec", "config": config});
    let challenge = json!({
        "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge", "metadata": {"name": "program"},
        "spec": {
            "url": "https://ca.example/1", "authorizationURL": "https://ca.example/2", "dnsName": "program.example.com",
            "type": "DNS-01", "token": "token", "wildcard": false, "key": "text", "issuerRef": {"name": "pebble"},
            "solver": {"dns01": {"webhook": webhook}},
        },
    });
    kubectl.apply(&challenge.to_string());
    // Nobody answers there.
    let seen = bench.run(&kubectl, &["challenge", "check", "program", "--dns=127.0.0.1:9"]);
    let talk = check(&seen, 9);
    let why = "hint: correct the dns01 solver: cannot publish the record: in a cluster no program is run that an Issuer names: ";
    let way = "hint: with --local and --dns01-allow-exec this machine runs the program\n";
    assert!(talk.contains(why) && talk.contains(way), "{talk}");
    kubectl.run(&["delete", "challenge/program"]);
}

/// Puts up and takes down the answer of a Challenge that belongs to nothing.
fn one_answer_by_hand(bench: &Bench<'_>) {
    let kubectl = bench.namespace.kubectl();
    kubectl.apply(
        "apiVersion: acme.cert-manager.io/v1\nkind: Challenge\nmetadata: {name: one}\nspec:\n  \
         url: https://ca.example/1\n  authorizationURL: https://ca.example/2\n  dnsName: one.example.com\n  \
         type: HTTP-01\n  token: token\n  wildcard: false\n  key: token.thumbprint\n  \
         solver: {http01: {ingress: {}}}\n  issuerRef: {name: pebble}\n",
    );
    for (verb, count) in [("present", 1), ("cleanup", 0)] {
        let done = bench.run(&kubectl, &["challenge", verb, "one", "-o", "name"]);
        check(&done, 0);
        let shown = String::from_utf8_lossy(&done.stdout);
        assert_eq!(shown, "challenge.acme.cert-manager.io/one\n");
        for kind in ["pods", "services", "ingresses"] {
            assert_eq!(kubectl.standing(kind).len(), count, "{kind}");
        }
        let presented = kubectl.object("challenge/one")["status"]["presented"] == true;
        assert_eq!(presented, verb == "present");
    }
    assert_eq!(holder(&kubectl), "", "the Lease is given back");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn pairs_of_two_namespaces_are_not_written_to_one_folder() {
    let bench = Bench::new(Cluster::shared(), "folder");
    let mut manifests = vec![bench.issuer("ClusterIssuer", "folder", &json!({"ingress": {}}))];
    for namespace in [bench.namespace.name(), "default"] {
        let mut certificate = bench.certificate("folder", "ClusterIssuer", "folder");
        certificate["metadata"]["namespace"] = namespace.into();
        manifests.push(certificate);
    }
    bench.write("two.yaml", &manifests);
    let kubectl = bench.everywhere();
    for how in ["--rehearse", "--dry-run=server"] {
        let words = ["order", "-f", "two.yaml", "--out=out", how];
        let refused = check(&bench.run_anywhere(&kubectl, &words), 2);
        assert!(refused.contains("both would be written to the same folder"), "{refused}");
    }
    let words = ["order", "-f", "two.yaml", "--dry-run=server"];
    check(&bench.run_anywhere(&kubectl, &words), 0);
    assert!(bench.names("certificates,secrets").is_empty());
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_missing_permission_is_named_and_a_cluster_is_kubectls_to_delete_in() {
    let bench = Bench::new(Cluster::shared(), "reader");
    let rules = r#"[{"apiGroups": ["cert-manager.io"], "resources": ["certificates"], "verbs": ["get", "list"]}]"#;
    let reader = bench.namespace.service_account("reader", rules);
    check(&bench.run(&reader, &["get", "certificates"]), 0);
    let refused = check(&bench.run(&reader, &["get", "orders"]), 8);
    assert!(refused.contains("no permission to list orders.acme.cert-manager.io"), "{refused}");
    let refused = check(&bench.run(&bench.namespace.kubectl(), &["delete", "order/web"]), 2);
    assert!(refused.contains("hint: kubectl delete order/web"), "{refused}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_request_that_nobody_approves_is_named_when_time_is_up() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "unapproved");
    let kubectl = bench.namespace.kubectl();
    let words = ["order", "-f", "web.yaml", "--approve=false", "--timeout=25s"];
    let said = check(&bench.run(&kubectl, &words), 124);
    let name = bench.namespace.name();
    for words in [
        format!(
            "error: Certificate {name}/web is not done after 25s: it waits for the approval of CertificateRequest web-1\n"
        ),
        "hint: a policy or a person has to approve the request: kubectl-acme certificate approve web-1\n"
            .to_owned(),
    ] {
        assert!(said.contains(&words), "{words}: {said}");
    }
    assert_eq!(bench.pebble.orders(), 0);
    let said = bench.order(&kubectl, &[], 0);
    assert!(!said.contains("the approval of"), "it is given at once: {said}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_request_that_somebody_denies_is_named_with_the_reason() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "denied");
    let kubectl = bench.namespace.kubectl();
    let name = bench.namespace.name();
    let words = ["order", "-f", "web.yaml", "--approve=false", "--timeout=1m"];
    let said = thread::scope(|scope| {
        let order = scope.spawn(|| check(&bench.run(&kubectl, &words), 8));
        eventually("the request", || {
            (kubectl.items("certificaterequests").len() == 1).then_some(())
        });
        let denied = json!({"status": {"conditions": [{
            "type": "Denied", "status": "True", "reason": "policy.example.com", "message": "not on Fridays",
            "lastTransitionTime": "2026-11-20T10:00:00Z",
        }]}});
        let request = ["patch", "certificaterequest/web-1", "--subresource=status", "--type=merge"];
        kubectl.run(&[&request[..], &["-p", &denied.to_string()]].concat());
        order.join().unwrap()
    });
    for words in [
        format!(
            "error: Certificate {name}/web was not issued: CertificateRequest {name}/web-1 is denied: not on Fridays \
             (policy.example.com)\n"
        ),
        "hint: ask for an approval: a policy or a person approves".to_owned(),
        "certificate renew web".to_owned(),
    ] {
        assert!(said.contains(&words), "{words}: {said}");
    }
    assert_eq!(bench.pebble.orders(), 0);
    check(&bench.run(&kubectl, &["certificate", "renew", "web"]), 0);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_quota_that_stays_full_is_what_it_fails_for_at_last() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "full");
    let kubectl = bench.namespace.kubectl();
    kubectl.run(&["create", "quota", "none", "--hard=pods=0"]);
    // The quota counts from when its status is written, by a controller that this cluster may lack.
    let status = json!({"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}).to_string();
    let patch = ["patch", "quota/none", "--subresource=status", "--type=merge", "-p", &status];
    kubectl.run(&patch);
    eventually("the quota", || {
        let refused = kubectl.try_run(&["run", "probe", "--image=none", "--dry-run=server"]);
        refused.err().filter(|error| error.contains("exceeded quota"))
    });
    let words = ["order", "-f", "web.yaml", "--timeout=25s"];
    let said = check(&bench.run(&kubectl, &words), 9);
    assert!(said.contains("is not done after 25s: Challenge "), "{said}");
    assert!(said.contains("exceeded quota: none"), "{said}");
    assert!(said.contains("pods \"cm-acme-http-solver-…\" is forbidden"), "{said}");
    let hint = format!("kubectl describe quota --namespace {}", bench.namespace.name());
    assert!(said.contains(&hint), "{said}");
    let events = kubectl.items("events").into_iter();
    let refused = events.filter(|event| event["reason"] == "PresentError").collect::<Vec<_>>();
    assert!(refused.len() == 1 && refused[0]["count"].as_u64() > Some(1), "{refused:?}");
    kubectl.run(&["delete", "quota/none"]);
    bench.order(&kubectl, &[], 0);
    assert_eq!(bench.pebble.orders(), 1, "the order that was there is finished");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn what_is_deleted_meanwhile_leaves_nothing_behind() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "deleted");
    let kubectl = bench.namespace.kubectl();
    // Nobody sees the answer there.
    let nowhere = format!("--http01-resolve=*=127.0.0.1:{}", bed::free_port());
    let mut order = bench.start(&kubectl, &["order", "-f", "web.yaml", &nowhere]);
    order.says("Waiting for HTTP-01 challenge propagation");
    kubectl.run(&["delete", "certificate/web", "--wait=false"]);
    let said = order.ends(1);
    let gone =
        format!("Certificate {}/web was deleted while it was worked on", bench.namespace.name());
    assert!(said.contains(&gone) && !said.contains("is left"), "{said}");
    let left = || bench.names("challenges,pods,services,ingresses");
    eventually("the end of all that", || left().is_empty().then_some(()));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn run_sweeps_what_was_left_in_every_namespace() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "swept");
    let kubectl = bench.namespace.kubectl();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "left", "labels": {"kubectl-acme/probe": "uid"},
            "annotations": {"kubectl-acme/until": "1970-01-01T00:00:00Z"},
        },
        "spec": {"containers": [{"name": "main", "image": "registry.example/none:1"}]},
    });
    bench.write("left.yaml", &[pod]);
    let file = bench.folder().join("left.yaml");
    kubectl.run(&["create", "-f", file.to_str().unwrap(), "--field-manager=kubectl-acme"]);
    let mut run = bench.start(&kubectl, &["run"]);
    run.says(&format!("was killed: Pod {}/left\n", bench.namespace.name()));
    eventually("the end of the Pod", || {
        let pods = kubectl.items("pods");
        pods.iter().all(|pod| !pod["metadata"]["deletionTimestamp"].is_null()).then_some(())
    });
    whoever_drives_now_is_asked_by_a_dry_run(&bench);
}

/// While `run` drives, a solver of ours is served; what cannot be granted is refused without a word to anybody.
fn whoever_drives_now_is_asked_by_a_dry_run(bench: &Bench<'_>) {
    let kubectl = bench.namespace.kubectl();
    own_solver(bench, "manual", &json!({}));
    for (flags, expected, words) in [
        (&[][..], 0, ""),
        (&["--driver=cert-manager"], 12, "and cert-manager drives here: nothing was applied\n"),
        (&["--driver=self"], 12, "error: cannot drive this cluster: kubectl-acme run ("),
    ] {
        let command = [&["order", "-f", "own.yaml", "--dry-run=server"], flags].concat();
        let said = check(&bench.run(&kubectl, &command), expected);
        assert!(said.contains(words), "{said}");
    }
    assert!(kubectl.items("issuers").is_empty());
}
