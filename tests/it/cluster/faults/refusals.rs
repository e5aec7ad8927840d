//! What a cluster does not take when manifests are applied: then it has none of them. And `--dry-run=server`, which says so
//! beforehand.

use serde_json::{Value, json};

use super::site::{Site, documents, manifests};
use super::webhook::{Mood, Webhook};
use crate::support::cluster::{Arena, Cluster, eventually};

/// Applies manifests, with and without `--dry-run=server`; the cluster refuses them either way, and has none of them.
#[track_caller]
fn check(site: &Site<'_>, what: &str, manifests: &[Value], code: i32, says: &[&str]) {
    site.write("web.yaml", &documents(manifests));
    let before = site.applied();
    for dry_run in ["server", "none"] {
        // Others drive what they like in the shared cluster.
        let words = format!("order -f web.yaml --driver=cert-manager --dry-run={dry_run}");
        let said = site.run(&words);
        said.check(what, code, &[says, &["nothing was applied\n"]].concat());
        assert_eq!((said.result.as_str(), site.applied()), ("", before), "{what}");
    }
}

fn site() -> Site<'static> {
    Site::new(Cluster::shared(), "refusals")
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_namespace_that_is_not_there_or_is_going_is_named() {
    let site = site();
    let says = [
        "error: web.yaml:2:1: cannot write Issuer nowhere/pebble: there is no namespace nowhere\n",
        "error: web.yaml:4:1: cannot write Certificate nowhere/web: there is no namespace nowhere\nhint: kubectl create namespace nowhere\n",
    ];
    check(&site, "a missing namespace", &manifests("nowhere"), 2, &says);

    let kubectl = site.namespace.kubectl();
    let blocker = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "blocker", "finalizers": ["example.com/wait"]},
    });
    kubectl.apply(&blocker.to_string());
    kubectl.run(&["delete", "namespace", site.name(), "--wait=false"]);
    let says = [&*format!(
        "somebody has deleted namespace {}\nhint: wait until it is gone, then: ",
        site.name()
    )];
    check(&site, "a namespace on its way out", &manifests(site.name()), 2, &says);
    let patch = r#"{"metadata": {"finalizers": null}}"#;
    kubectl.run(&["patch", "configmap", "blocker", "--type=merge", "-p", patch]);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_namespace_for_the_lease_that_is_not_there_is_named() {
    let cluster = Arena::enter();
    let site = Site::new(&cluster, "leaseless");
    site.write("web.yaml", &documents(&manifests(site.name())));
    let says = [
        "error: cannot write the Lease cert-manager-controller: there is no namespace nowhere\n",
        "hint: kubectl create namespace nowhere\nhint: or name another one: --leader-election-namespace\n",
    ];
    for words in ["order -f web.yaml", "run"] {
        let said = site.run(&format!("{words} --leader-election-namespace=nowhere"));
        said.check(words, 2, &says);
    }
    assert_eq!(site.applied(), 0);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_webhook_that_refuses_or_fails_is_quoted() {
    for (mood, said) in [
        (
            Mood::Refuses,
            "admission webhook \"guard.example.com\" denied the request: not on Fridays\nhint: ",
        ),
        (Mood::Fails, "failed calling webhook \"guard.example.com\": "),
    ] {
        let (site, webhook) = (site(), Webhook::start(mood));
        webhook.guard(&site.namespace, "cert-manager.io", "certificates");
        check(&site, &format!("a webhook that {mood:?}"), &manifests(site.name()), 8, &[said]);
        assert_eq!(webhook.asked(), 2);
        Webhook::withdraw(&site.namespace);
    }
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_field_that_the_cluster_does_not_know_is_named() {
    let site = site();
    let mut objects = manifests(site.name());
    objects[1]["spec"]["zzzNovel"] = json!({"a": 1});
    let says = [
        "error: web.yaml:4:1: cannot write Certificate ",
        "/web: .spec.zzzNovel: field not declared in schema\n",
    ];
    check(&site, "an unknown field", &objects, 2, &says);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_field_that_another_manager_holds_is_named_until_it_is_taken_over() {
    let site = site();
    let (kubectl, mut objects) = (site.namespace.kubectl(), manifests(site.name()));
    let helm = site.write("helm.yaml", &objects[1].to_string());
    let helm = helm.to_str().unwrap();
    kubectl.run(&["apply", "--server-side", "--field-manager=helm", "-f", helm]);
    objects[1]["spec"]["dnsNames"] = json!(["other.example.com"]);
    let says = [
        "error: web.yaml:4:1: cannot apply Certificate ",
        "/web: .spec.dnsNames: conflict with \"helm\"\n",
        "hint: leave those fields out of the manifest, or take them over with --force-conflicts\n",
    ];
    check(&site, "a conflict", &objects, 12, &says);
    // What both say is no conflict.
    let words = "order -f helm.yaml -f web.yaml --driver=cert-manager --dry-run=server";
    site.run(words).check("the same object twice", 2, &["the same object stands at helm.yaml:1:"]);

    let force = "order -f web.yaml --driver=cert-manager --force-conflicts";
    let said = site.run(&format!("{force} --dry-run=server"));
    said.check("what would be taken over", 0, &[]);
    let expected = "issuer.cert-manager.io/pebble created (server dry run)\ncertificate.cert-manager.io/web configured (server dry run)\n";
    assert_eq!((said.result.as_str(), site.applied()), (expected, 1));
    // Nobody issues here: the wait is over at once.
    site.run(&format!("{force} --timeout=1s")).check("taking over", 124, &[]);
    let names = &kubectl.object("certificate/web")["spec"]["dnsNames"];
    assert_eq!(names, &json!(["other.example.com"]));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_dry_run_on_the_server_shows_what_would_become_of_manifests() {
    let site = site();
    site.write("web.yaml", &documents(&manifests(site.name())));
    let run = |format: &str| {
        let said =
            site.run(&format!("order -f web.yaml --dry-run=server --driver=cert-manager {format}"));
        said.check(format, 0, &[]);
        said.result
    };
    let lines = run("");
    assert_eq!(lines.matches(" created (server dry run)\n").count(), 2, "{lines}");
    assert_eq!(run("-o name"), "issuer.cert-manager.io/pebble\ncertificate.cert-manager.io/web\n");
    let list: Value = serde_json::from_str(&run("-o json")).unwrap();
    // A default of cert-manager's definitions, which only the server knows.
    assert_eq!(list["items"][0]["spec"]["acme"]["solvers"][0]["http01"]["ingress"], json!({}));
    assert!(list["items"][1]["metadata"]["uid"].is_string(), "{list}");
    assert_eq!(site.applied(), 0);

    site.namespace.kubectl().apply(&documents(&manifests(site.name())));
    let lines = run("");
    assert_eq!(lines.matches(" unchanged (server dry run)\n").count(), 2, "{lines}");
    let unknown = site.run("order -f missing.yaml --dry-run=server");
    unknown.check("a file that is not there", 2, &["missing.yaml"]);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn every_missing_permission_to_apply_is_named_before_the_first_write() {
    let site = site();
    site.write("web.yaml", &documents(&manifests(site.name())));
    let rules = "[{apiGroups: [cert-manager.io], resources: ['*'], verbs: [get]}, \
                  {apiGroups: [cert-manager.io], resources: [issuers], verbs: [create, patch]}]";
    let account = site.namespace.service_account("half", rules);
    eventually("the Role", || {
        account.try_run(&["auth", "can-i", "patch", "issuers.cert-manager.io"]).ok()
    });
    let said = site.run_as(account.kubeconfig(), "order -f web.yaml --driver=cert-manager");
    let place =
        format!("permissions are missing, and nothing was done: in namespace {}: ", site.name());
    said.check("half a Role", 8, &[&place, "certificates.cert-manager.io"]);
    assert_eq!(site.applied(), 0, "the Issuer, too, is left out");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn what_no_solver_answers_is_refused_before_cert_manager_hears_of_it() {
    let site = site();
    let mut narrow = manifests(site.name());
    narrow[0]["spec"]["acme"]["solvers"][0]["selector"] = json!({"dnsZones": ["example.org"]});
    let says = [
        "no configured challenge solvers can be used for this challenge (solvers of Issuer ",
        "hint: add a solver to Issuer ",
    ];
    check_unsolved(&site, &narrow, &says);

    let mut unkeyed = manifests(site.name());
    unkeyed[0]["spec"]["acme"]["solvers"][0] = json!({"dns01": {"rfc2136": {
        "nameserver": "127.0.0.1:53", "tsigKeyName": "k",
        "tsigSecretSecretRef": {"name": "tsig", "key": "key"},
    }}});
    let lacks =
        format!("lacks its Secret: secrets \"tsig\" not found in namespace \"{}\"", site.name());
    check_unsolved(
        &site,
        &unkeyed,
        &[&*lacks, "hint: add a manifest of Secret tsig, with the key key"],
    );
}

#[track_caller]
fn check_unsolved(site: &Site<'_>, manifests: &[Value], says: &[&str]) {
    site.write("web.yaml", &documents(manifests));
    let said = site.run("order -f web.yaml --driver=cert-manager --timeout=20s");
    said.check("order -f", 9, says);
    assert_eq!((said.result.as_str(), site.applied()), ("", 0));
}
