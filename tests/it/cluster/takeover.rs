//! Whoever drives may go while we wait: then the work is ours. On a real API server, beside cert-manager's own controllers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::ca::is_request_for;
use crate::support::cluster::{Arena, Bench, Kubectl, OUR_IMAGE, Peer, eventually};
use crate::support::program::Running;

/// A Lease that expires sooner than by default, and whose holder keeps it on a busy machine.
const QUICK: [&str; 3] = [
    "--leader-election-lease-duration=10s",
    "--leader-election-renew-deadline=8s",
    "--leader-election-retry-period=1s",
];
/// A command that soon takes over; nothing has changed for half as long again when it says so.
const SOON: [&str; 5] = ["order", "-f", "web.yaml", "--timeout=5m", "--patience=2s"];
/// The same, slower than any restart of an API server.
pub(super) const PATIENT: [&str; 3] = [
    "--leader-election-lease-duration=10m",
    "--leader-election-renew-deadline=9m",
    "--leader-election-retry-period=2s",
];
/// cert-manager that leaves challenges as they are, so that an issuance stands still after its one order.
const STUCK: &str = "--leave-out=challenges";

/// Starts cert-manager's controllers and waits until they drive.
fn peer(arena: &Arena, flags: &[&str]) -> Peer {
    let peer = arena.peer(&[&QUICK[..], flags].concat());
    peer.wait_until_at_work();
    peer
}

/// Starts an issuance and waits until its challenge is there.
fn begin(bench: &Bench<'_>) -> Running {
    let mut order = bench.start(&bench.namespace.kubectl(), &SOON);
    order.says("driver: cert-manager");
    wait_for_challenge(&bench.namespace.kubectl());
    order
}

/// Waits until an issuance stands still at its challenge. cert-manager may make a key too much and delete the one that it has named;
/// then it makes request and order anew, and whoever took over in between would have to.
fn wait_for_challenge(kubectl: &Kubectl) {
    let decoded = |text: &Value| STANDARD.decode(text.as_str()?).ok();
    eventually("the challenge of a request for the key that is named", || {
        let [certificate] = &kubectl.items("certificates")[..] else { return None };
        let named = &certificate["status"]["nextPrivateKeySecretName"];
        let secrets = kubectl.items("secrets");
        let key = secrets.iter().find(|secret| secret["metadata"]["name"] == *named)?;
        let key = decoded(&key["data"]["tls.key"])?;
        let [request] = &kubectl.items("certificaterequests")[..] else { return None };
        let is_for = is_request_for(&decoded(&request["spec"]["request"])?, &key);
        (is_for && kubectl.items("challenges").len() == 1).then_some(())
    });
}

/// Looks at the end of an issuance that was taken over.
#[track_caller]
fn finished(bench: &Bench<'_>, order: Running, why: &str) -> String {
    let said = order.ends(0);
    let expected = format!("driver: kubectl-acme ({why}");
    assert!(said.contains(&expected), "{expected}: {said}");
    // Whoever was there had made one.
    let ours = usize::from(why.starts_with("another kubectl-acme"));
    let orders = bench.orders();
    assert_eq!(orders.ours, ours, "the order that was there is finished: {orders:?}");
    assert_eq!(bench.pebble.issued(), 1, "{orders:?}");
    for kind in ["challenges", "pods", "services", "ingresses"] {
        let kubectl = bench.namespace.kubectl();
        eventually(&format!("the end of {kind}"), || kubectl.items(kind).is_empty().then_some(()));
    }
    said
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_frozen_cert_manager_is_taken_over_from_and_finds_nothing_to_do_when_it_wakes() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "frozen");
    let mut cert_manager = peer(&arena, &[STUCK]);
    let mut order = begin(&bench);
    order.says("nothing has changed for 3 s; driver: cert-manager (");
    order.says("read its log: kubectl logs --namespace cert-manager deployment/cert-manager");
    cert_manager.freeze();
    let orders = bench.orders();
    let said = finished(&bench, order, "cert-manager's Lease in kube-system expired, ");
    assert_eq!(said.matches("nothing has changed for").count(), 1, "{said}");
    assert_eq!(bench.orders(), orders, "while it stood still");
    cert_manager.thaw();
    let holder = "--output=jsonpath={.spec.holderIdentity}";
    let lease = ["get", "lease", "--namespace=kube-system", "cert-manager-controller", holder];
    eventually("cert-manager's turn, or its end", || {
        let is_back = arena.kubectl().run(&lease).contains("external-cert-manager-controller");
        (is_back || !cert_manager.is_running()).then_some(())
    });
    let certificate = bench.namespace.kubectl().object("certificate/web");
    assert_eq!(
        (&certificate["status"]["revision"], bench.orders()),
        (&json!(1), orders),
        "{}",
        cert_manager.log()
    );
    assert_eq!(bench.pebble.issued(), 1);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_lease_in_another_namespace_is_found_watched_and_taken_over_from() {
    let arena = Arena::enter();
    for namespace in ["cert-manager", "custom"] {
        let bench = Bench::new(&arena, "elsewhere");
        arena.kubectl().try_run(&["create", "namespace", namespace]).ok();
        let cert_manager = peer(&arena, &[STUCK, "--leader-election-namespace", namespace]);
        let mut order = begin(&bench);
        order.says(&format!("holds the Lease in {namespace})"));
        cert_manager.kill();
        finished(&bench, order, &format!("cert-manager's Lease in {namespace} expired, "));
    }
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cert_manager_without_a_lease_drives_as_long_as_its_pod_runs() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "pod");
    let kubectl = bench.namespace.kubectl();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "controller", "labels": {
            "app.kubernetes.io/name": "cert-manager", "app.kubernetes.io/component": "controller",
        }},
        "spec": {"containers": [{"name": "controller", "image": OUR_IMAGE, "args": ["ca", "--listen=127.0.0.1:0", "--root=/dev/null"]}]},
    });
    kubectl.apply(&pod.to_string());
    kubectl.wait_for("pod/controller", "Ready");
    let cert_manager = peer(&arena, &[STUCK, "--leader-elect=false"]);
    let mut order = begin(&bench);
    order.says(&format!("Pod {}/controller, which holds no Lease", bench.namespace.name()));
    cert_manager.kill();
    kubectl.run(&["delete", "pod", "controller", "--now"]);
    finished(&bench, order, &format!("Pod {}/controller no longer runs", bench.namespace.name()));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn another_run_of_ours_that_is_killed_is_taken_over_from() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "killed");
    let kubectl = bench.namespace.kubectl();
    // Its answers are where the CA does not look.
    let words = [&["run", "--http01-listen=127.0.0.1:0"][..], &QUICK].concat();
    let mut run = bench.start(&kubectl, &words);
    run.says("driver: kubectl-acme");
    run.says("by this process at 127.0.0.1:0, in place of solver Pods, Services, Ingresses and");
    let mut order = bench.start(&kubectl, &SOON);
    order.says("driver: kubectl-acme run (");
    wait_for_challenge(&kubectl);
    run.kill();
    finished(&bench, order, "another kubectl-acme's Lease in kube-system expired, ");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn an_api_server_that_goes_for_a_while_is_waited_for() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "away");
    let mut cert_manager = arena.peer(&PATIENT);
    cert_manager.wait_until_at_work();
    cert_manager.freeze();
    let mut order = bench.start(&bench.namespace.kubectl(), &SOON);
    order.says("driver: cert-manager (");
    // It waits once its manifests are applied; before that a server that is away ends it.
    order.says("waiting for its CertificateRequest");
    arena.stop_api_server();
    cert_manager.thaw();
    arena.start_api_server();
    let said = order.ends(0);
    assert!(!said.contains("driver: kubectl-acme"), "{said}");
    bench.only_others_order(1);
    cert_manager.stop();
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn nothing_is_taken_over_where_that_is_not_wished_for() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "patient");
    let words =
        ["order", "-f", "web.yaml", "--driver=cert-manager", "--patience=2s", "--timeout=15s"];
    let said = bench.start(&bench.namespace.kubectl(), &words).ends(124);
    assert!(
        said.contains(
            "without --driver=cert-manager this command checks whether cert-manager works here"
        ),
        "{said}"
    );
    assert_eq!(bench.pebble.orders(), 0);
}
