//! Whose turn it is: nobody works, others go first, or what is to go cannot.

use serde_json::{Value, json};

use super::control::Made;
use super::path::default_page;
use super::peer::{Scene, has_reason, look, look_in};
use crate::cluster::faults::definitions::{definitions, install, release_challenges, remove};
use crate::support::bed::free_port;
use crate::support::cluster::{Arena, Bench, eventually};
use crate::support::lab;

/// Where names are led that nobody answers for yet: to a web server without the page.
pub(super) fn at_a_site() -> String {
    format!("--http01-resolve=*=127.0.0.1:{}", default_page("404 Not Found"))
}

/// Takes away what other tests have left: it would wait for its turn, too.
pub(super) fn clear(arena: &Arena) {
    let kubectl = arena.kubectl();
    release_challenges(&kubectl);
    let kinds = "certificates,certificaterequests,orders,challenges";
    kubectl.run(&["delete", kinds, "--all", "--all-namespaces", "--wait=false"]);
    eventually("the end of what others have left", || {
        release_challenges(&kubectl);
        kubectl.everywhere("challenges").is_empty().then_some(())
    });
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ctl_01_nobody_works_or_somebody_has_let_the_lease_run_out() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "idle");
    let kubectl = bench.namespace.kubectl();
    kubectl.run(&["apply", "-f", bench.folder().join("web.yaml").to_str().unwrap()]);
    let (output, report) = look(&bench, &["web"]);
    let first = lab::names_first(&report, "CTL-01");
    assert!(
        first["message"].as_str().unwrap().contains("No controller works on Certificate"),
        "{first:#}"
    );
    assert_eq!(output.status.code(), Some(10), "{report:#}");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "cert-manager-controller", "namespace": "kube-system"},
        "spec": {"holderIdentity": "node-a-cert-manager", "leaseDurationSeconds": 1},
    });
    arena.kubectl().apply(&lease.to_string());
    let report = eventually("the end of the Lease", || {
        let (_, report) = look(&bench, &["web"]);
        (report["findings"][0]["cause"] == "CTL-01").then_some(report)
    });
    let first = lab::names_first(&report, "CTL-01");
    let seen = first["evidence"].to_string();
    assert!(
        seen.contains("node-a-cert-manager held the Lease, and renewed it last at "),
        "{first:#}"
    );
}

/// The guide's "a cap on the maximum number of simultaneous challenges" (CTL-04).
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_names_that_never_succeed_keep_all_slots() {
    let arena = Arena::enter();
    clear(&arena);
    let mut made = Made::new(&arena);
    let slots = "--max-concurrent-challenges=2";
    let scene = Scene::through(&arena, "slots", free_port(), &[slots]);
    made.usual(&[slots]);
    let mut two = scene.certificate();
    let host = two["spec"]["dnsNames"][0].as_str().unwrap().to_owned();
    two["metadata"]["name"] = "two".into();
    two["spec"]["secretName"] = "two-tls".into();
    two["spec"]["dnsNames"] = json!([format!("a.{host}"), format!("b.{host}")]);
    scene.apply(&[scene.issuer(|_| ()), two]);
    let kubectl = scene.bench.namespace.kubectl();
    eventually("two challenges that do not succeed", || {
        let all = kubectl.items("challenges");
        let stuck = all.iter().filter(|it| it["status"]["presented"] == true && has_reason(it));
        (stuck.count() == 2).then_some(())
    });
    scene.apply(&[scene.certificate()]);
    scene.until("challenges", |challenge| challenge["spec"]["dnsName"] == host.as_str());
    let (_, report) = scene.diagnose(&["web", &at_a_site()]);
    let first = lab::names_first(&report, "CTL-04");
    assert_eq!(first["message"], format!("{host} waits for a slot: all 2 are taken"), "{first:#}");
    let seen = first["evidence"].to_string();
    assert!(seen.contains(&format!("for a.{host}")) && seen.contains("self check"), "{first:#}");
}

/// The guide's "disallows two challenges for the same DNS name" (CTL-05).
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_two_challenges_of_one_name_are_not_completed_at_once() {
    let arena = Arena::enter();
    clear(&arena);
    let scene = Scene::through(&arena, "first", free_port(), &[]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    let holder =
        scene.until("challenges", |it| it["status"]["presented"] == true && has_reason(it));
    let second = arena.namespace("second");
    let objects = [scene.issuer(|_| ()), scene.certificate()];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    second.kubectl().apply(&list.to_string());
    eventually("the second challenge", || second.kubectl().items("challenges").pop());
    let (_, report) = scene.diagnose(&["web", "--namespace", second.name(), &at_a_site()]);
    let first = lab::names_first(&report, "CTL-05");
    let name = format!("Challenge {}/{}", scene.bench.namespace.name(), name_of(&holder));
    assert!(first["message"].as_str().unwrap().contains(&name), "{first:#}");
    assert!(first["evidence"].to_string().contains("self check"), "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ctl_06_the_issuer_goes_before_its_challenges() {
    let arena = Arena::enter();
    clear(&arena);
    let scene = Scene::new(&arena, "finalizer", &[]);
    let bench = &scene.bench;
    let mut issuer = bench.issuer("ClusterIssuer", "lab-gone", &json!({"ingress": {}}));
    // Nobody takes the record down there either.
    let rfc2136 = json!({"nameserver": format!("127.0.0.1:{}", free_port())});
    issuer["spec"]["acme"]["solvers"] = json!([{"dns01": {"rfc2136": rfc2136}}]);
    scene.apply(&[issuer, bench.certificate("web", "ClusterIssuer", "lab-gone")]);
    let challenge = scene.until("challenges", |it| {
        it["metadata"]["finalizers"].is_array()
            && it["status"]["processing"] == true
            && has_reason(it)
    });
    arena.kubectl().run(&["delete", "clusterissuer", "lab-gone"]);
    arena.kubectl().run(&["delete", "secret", "lab-gone-account", "--namespace=kube-system"]);
    bench.namespace.kubectl().run(&["delete", "certificate", "web"]);
    scene.until("challenges", |it| it["metadata"]["deletionTimestamp"].is_string());
    let name = name_of(&challenge);
    // Whoever asks for all is told as well: no Certificate is left to ask about.
    for words in [&[&*format!("challenge/{name}")][..], &[]] {
        let (output, report) = look_in(bench, 10, words);
        let first = lab::names_first(&report, "CTL-06");
        let seen = first["evidence"].to_string();
        assert!(seen.contains("ClusterIssuer lab-gone") && seen.contains("not exist"), "{first:#}");
        assert!(first["fix"].to_string().contains(name), "{first:#}");
        assert_eq!(output.status.code(), Some(10), "{report:#}");
    }
}

/// The guide's item "Installing the CRDs" (CTL-09): the API server does not know the kinds.
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_the_definitions_are_not_installed() {
    let arena = Arena::enter();
    clear(&arena);
    let kubectl = arena.kubectl();
    let bench = Bench::new(&arena, "undefined");
    bench.namespace.kubectl().run(&[
        "apply",
        "-f",
        bench.folder().join("web.yaml").to_str().unwrap(),
    ]);
    let all = definitions(&kubectl);
    let of = |group: &str| -> Vec<Value> {
        all.iter().filter(|one| one["spec"]["group"] == group).cloned().collect()
    };
    let check = |words: &[&str], lacks: &str| {
        let (output, report) = look(&bench, words);
        let first = lab::names_first(&report, "CTL-09");
        let message = first["message"].as_str().unwrap();
        assert!(message.contains(lacks), "{words:?}: {first:#}");
        assert_eq!(output.status.code(), Some(10), "{words:?}: {report:#}");
    };
    let site = at_a_site();
    let domain = ["www.example.com", &site];
    let orders = of("acme.cert-manager.io");
    remove(&kubectl, &orders);
    for words in [&["certificate/web"][..], &["-A"], &domain, &["-f", "web.yaml"]] {
        check(words, "does not serve orders, challenges of acme.cert-manager.io/v1");
    }
    let others = of("cert-manager.io");
    remove(&kubectl, &others);
    for words in [&["certificate/web"][..], &["-A"], &["-f", "web.yaml"]] {
        check(words, "certificates, ");
    }
    // A domain need not have to do with a cluster that has nothing of cert-manager.
    let (output, report) = look(&bench, &domain);
    lab::names_first(&report, "CTL-09");
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    install(&kubectl, &all);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ctl_16_a_hundred_certificates_wait_for_the_controller_itself() {
    let arena = Arena::enter();
    clear(&arena);
    let mut made = Made::new(&arena);
    let mut scene = Scene::new(&arena, "crowd", &["--leave-out=challenges"]);
    made.usual(&["--enable-gateway-api"]);
    scene.apply(&[scene.issuer(|_| ())]);
    scene.until_issuer("True");
    let one = scene.certificate();
    let host = one["spec"]["dnsNames"][0].as_str().unwrap().to_owned();
    let all: Vec<Value> = (0..100)
        .map(|number| {
            let mut certificate = one.clone();
            certificate["metadata"]["name"] = format!("c{number}").into();
            certificate["spec"]["secretName"] = format!("c{number}-tls").into();
            certificate["spec"]["dnsNames"] = json!([format!("c{number}.{host}")]);
            certificate
        })
        .collect();
    scene.apply(&all);
    scene.until("orders", |_| true);
    // So that it stays as it is while it is looked at.
    scene.peer.freeze();
    let (output, report) = scene.diagnose(&[&at_a_site(), "--fail-on=warning"]);
    let first = lab::names_first(&report, "CTL-16");
    assert!(first["message"].as_str().unwrap().contains("Certificates wait for it"), "{first:#}");
    assert_eq!(output.status.code(), Some(11), "{report:#}");
    scene.peer.thaw();
}
