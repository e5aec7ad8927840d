//! Definitions that are missing, or too old.

use std::fs;

use serde_json::{Value, json};

use super::site::{Site, documents, manifests, manifests_of};
use crate::support::cluster::{Arena, Kubectl, eventually};
use crate::support::pebble::{Pebble, PebbleOptions};

const INSTALL: &str = "hint: install cert-manager's definitions of version 1.0 or newer, or ours: kubectl acme crds | kubectl apply -f -";

/// All definitions, as they can be applied again.
pub(crate) fn definitions(kubectl: &Kubectl) -> Vec<Value> {
    let mut all = kubectl.items("crds");
    for definition in &mut all {
        definition.as_object_mut().unwrap().remove("status");
        let name = definition["metadata"]["name"].clone();
        definition["metadata"] =
            json!({"name": name, "annotations": definition["metadata"]["annotations"]});
    }
    all
}

fn group(definition: &Value) -> &str {
    definition["spec"]["group"].as_str().unwrap_or_default()
}

/// Removes definitions; returns when the server no longer serves them.
pub(crate) fn remove(kubectl: &Kubectl, definitions: &[Value]) {
    let names =
        definitions.iter().map(|definition| definition["metadata"]["name"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    kubectl.run(&[&["delete", "crd", "--wait=false"], &names[..]].concat());
    // The server tries again after five minutes when its storage was just changing, and at once when it is written to.
    for number in 0..100 {
        let wait = [&["wait", "--for=delete", "--timeout=3s", "crd"], &names[..]].concat();
        if kubectl.try_run(&wait).is_ok() {
            wait_until_unserved(kubectl, definitions);
            return;
        }
        let mark = format!("example.com/again={number}");
        for name in &names {
            kubectl.try_run(&["annotate", "--overwrite", "crd", name, &mark]).ok();
        }
    }
    panic!("the server keeps {names:?}");
}

/// Waits until the server no longer tells of them: others clear that away, a moment later.
fn wait_until_unserved(kubectl: &Kubectl, definitions: &[Value]) {
    for definition in definitions {
        let (group, plural) = (group(definition), &definition["spec"]["names"]["plural"]);
        for version in definition["spec"]["versions"].as_array().unwrap() {
            let path = format!("/apis/{group}/{}", version["name"].as_str().unwrap());
            eventually(&format!("the end of {plural} in {path}"), || {
                let served = kubectl.try_run(&["get", "--raw", &path]).unwrap_or_default();
                (!served.contains(&format!("\"name\":{plural}"))).then_some(())
            });
        }
        eventually(&format!("the end of {group}, unless others are left"), || {
            let is_left = kubectl.items("crds").iter().any(|other| self::group(other) == group);
            let group = format!("/apis/{group}");
            (is_left || kubectl.try_run(&["get", "--raw", &group]).is_err()).then_some(())
        });
    }
}

/// Lets the Challenges go that other tests have left unfinished: their definition would be held by them.
pub(crate) fn release_challenges(kubectl: &Kubectl) {
    let names = "jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{\"\\n\"}{end}";
    for line in kubectl.run(&["get", "challenges", "--all-namespaces", "-o", names]).lines() {
        let (namespace, name) = line.split_once(' ').unwrap();
        let bare = r#"{"metadata": {"finalizers": null}}"#;
        kubectl.run(&["patch", "challenge", name, "-n", namespace, "--type=merge", "-p", bare]);
    }
}

/// Applies definitions; returns when the server serves them.
pub(crate) fn install(kubectl: &Kubectl, definitions: &[Value]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("crds.yaml");
    fs::write(&file, documents(definitions)).unwrap();
    kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", file.to_str().unwrap()]);
    kubectl.run(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=180s"]);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn definitions_that_are_missing_or_old_are_named() {
    let cluster = Arena::enter();
    let (site, kubectl) = (Site::new(&cluster, "definitions"), cluster.kubectl());
    release_challenges(&kubectl);
    let all = definitions(&kubectl);
    let of = |name: &str| -> Vec<Value> {
        all.iter().filter(|definition| group(definition) == name).cloned().collect()
    };
    let (certificates, orders, gateways) =
        (of("cert-manager.io"), of("acme.cert-manager.io"), of("gateway.networking.k8s.io"));
    let options = PebbleOptions { http_port: Some(cluster.http_port()), ..PebbleOptions::calm() };
    let pebble = Pebble::start(&options);
    let check = |what: &str, words: &str, code: i32, says: &[&str]| {
        site.run(words).check(what, code, says);
    };

    remove(&kubectl, &gateways);
    let mut objects = manifests_of(&pebble, site.name());
    let route = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}});
    objects[0]["spec"]["acme"]["solvers"][0]["http01"] = route;
    site.write("route.yaml", &documents(&objects));
    let says = [
        "does not serve httproutes.gateway.networking.k8s.io: ",
        "hint: install the Gateway API's definitions, or answer by an Ingress",
    ];
    check("no Gateway API", "order -f route.yaml --timeout=3m", 9, &says);
    let here = site.namespace.kubectl();
    let order = here.run(&["get", "orders", "--output=jsonpath={.items[0].metadata.name}"]);
    // What is not served cannot have been made, so that the challenge can go.
    check("its end", &format!("order delete {order} -n {}", site.name()), 0, &[]);
    assert!(here.items("challenges").is_empty());
    here.run(&["delete", "certificates,issuers", "--all"]);

    site.write("web.yaml", &documents(&manifests(site.name())));
    let order = "order -f web.yaml --timeout=3m";
    remove(&kubectl, &orders);
    let says = [".acme.cert-manager.io/v1: it has nothing of acme.cert-manager.io\n", INSTALL];
    check("half of the definitions", order, 8, &says);
    check("half of the definitions", &format!("get orders -n {}", site.name()), 8, &says);
    assert_eq!(site.applied(), 0, "nothing is applied that could not be issued");

    remove(&kubectl, &certificates);
    let says = [
        "does not serve certificates.cert-manager.io/v1: it has nothing of cert-manager.io",
        INSTALL,
    ];
    check("no definitions", order, 8, &says);
    check("no definitions", "order -f web.yaml --dry-run=server", 8, &says);
    check("no definitions", &format!("get certificates -n {}", site.name()), 8, &says);

    let mut old = certificates.clone();
    for definition in &mut old {
        definition["spec"]["versions"][0]["name"] = "v1alpha2".into();
    }
    install(&kubectl, &old);
    let says = ["it has only v1alpha2, which is older than this program reads", INSTALL];
    check("old definitions", order, 8, &says);
    remove(&kubectl, &old);
    install(&kubectl, &all);
}
