//! HTTP-01 in a real cluster: solver objects come, lead to the answer, and go.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kubectl_acme::dns::lookup::SystemResolver;
use kubectl_acme::engine::{ControllerParts, Engine};
use kubectl_acme::fetch::{Fetcher, Overrides};
use kubectl_acme::hints::solver::lines;
use kubectl_acme::model::{Answer, Challenge};
use kubectl_acme::solvers::SolveError;
use kubectl_acme::solvers::Solver as _;
use kubectl_acme::solvers::http01::cluster::ClusterSolver;
use kubectl_acme::solvers::http01::cluster::options::{IMAGE, Options};
use kubectl_acme::store::cluster::{ClusterStore, Connection};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::bed::{self, PATIENCE, Server};
use crate::support::cluster::{Arena, Cluster, Kubectl, Namespace, OUR_SOLVER, eventually};
use crate::support::http;
use crate::support::name_server::nobody_to_ask;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::program;

/// What helps against an error, in words.
fn advice(error: &SolveError) -> String {
    error.remedy.as_deref().map(lines).unwrap_or_default().join("; ")
}

/// The kinds of solver objects.
const KINDS: [&str; 4] = ["pods", "services", "ingresses", "httproutes"];

/// A Challenge in a namespace of its own.
struct Bed {
    namespace: Namespace<'static>,
    challenge: Challenge,
    answer: Answer,
}

impl Bed {
    /// Applies a Challenge with that HTTP-01 solver, and a Gateway.
    fn new(http01: &Value) -> Self {
        let namespace = Cluster::shared().namespace("solver");
        namespace.kubectl().apply(&gateway().to_string());
        let challenge = apply_challenge(&namespace, "one", http01);
        let answer = Answer::of(&challenge).unwrap();
        Self { namespace, challenge, answer }
    }

    fn kubectl(&self) -> Kubectl {
        self.namespace.kubectl()
    }

    async fn solver(&self, options: Options) -> ClusterSolver {
        ClusterSolver::new(store(&Cluster::shared().kubeconfig()).await, options)
    }

    /// A solver that a new process would have.
    async fn fresh(&self) -> ClusterSolver {
        self.solver(Options::default()).await
    }

    async fn present(&self, solver: &ClusterSolver) {
        solver.present(&self.challenge, &self.answer).await.unwrap();
        assert!(solver.stands(&self.challenge, &self.answer));
    }

    /// What the way in gives for the Challenge.
    fn look(&self) -> std::io::Result<String> {
        look(&self.challenge)
    }

    /// How many solver objects of each kind there are that are not on their way out.
    fn counts(&self) -> [usize; 4] {
        let stays = |object: &&Value| object["metadata"]["deletionTimestamp"].is_null();
        KINDS.map(|kind| self.kubectl().items(kind).iter().filter(stays).count())
    }
}

fn look(challenge: &Challenge) -> std::io::Result<String> {
    let path = format!("/.well-known/acme-challenge/{}", challenge.spec.token);
    http::get(Cluster::shared().http_port(), &challenge.spec.dns_name, &path)
}

/// Applies a Challenge whose name, token and host are told apart by `name`; returns it as the server holds it.
fn apply_challenge(namespace: &Namespace<'_>, name: &str, http01: &Value) -> Challenge {
    let host = format!("{}.example.com", namespace.name());
    let challenge = json!({
        "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge", "metadata": {"name": name},
        "spec": {
            "url": "https://ca.example/chall/1", "authorizationURL": "https://ca.example/authz/1",
            "dnsName": host, "type": "HTTP-01", "token": format!("-token-{name}"), "wildcard": false,
            "key": format!("-token-{name}.thumbprint"), "solver": {"http01": http01},
            "issuerRef": {"name": "acme"},
        },
    });
    let kubectl = namespace.kubectl();
    kubectl.apply(&challenge.to_string());
    serde_json::from_value(kubectl.object(&format!("challenge/{name}"))).unwrap()
}

fn gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge"},
        "spec": {
            "gatewayClassName": "bed",
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        },
    })
}

async fn store(kubeconfig: &Path) -> ClusterStore {
    let kubeconfig = Some(kubeconfig.to_owned());
    ClusterStore::connect(&Connection { kubeconfig, ..Connection::default() }).await.unwrap()
}

fn through_ingress() -> Value {
    json!({"ingress": {"ingressClassName": "bed"}})
}

fn through_route() -> Value {
    json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}], "labels": {"team": "web"}}})
}

/// Presents, repeats that, reads the answer as a CA would, and cleans up: exactly these objects come, and all go.
async fn check(http01: Value, options: Options, expected: [usize; 4]) {
    let bed = Bed::new(&http01);
    let solver = bed.solver(options).await;
    assert!(!solver.stands(&bed.challenge, &bed.answer), "nothing is up at first");
    solver.clean_up(&bed.challenge, &bed.answer).await.expect("nothing to clean up is fine");
    bed.present(&solver).await;
    bed.present(&solver).await;
    assert_eq!(bed.counts(), expected);
    let read = eventually("the answer", || bed.look().ok());
    assert_eq!(read, bed.challenge.spec.key);

    solver.clean_up(&bed.challenge, &bed.answer).await.unwrap();
    assert!(!solver.stands(&bed.challenge, &bed.answer));
    assert_eq!(bed.counts(), [0; 4]);
    solver.clean_up(&bed.challenge, &bed.answer).await.expect("clean-up is safe to repeat");
    eventually("the end of the Pod", || bed.kubectl().items("pods").is_empty().then_some(()));
    assert!(bed.look().is_err());
}

/// A CA that looks where the cluster serves.
fn pebble() -> Pebble {
    let http_port = Some(Cluster::shared().http_port());
    Pebble::start(&PebbleOptions { http_port, ..PebbleOptions::calm() })
}

/// Applies a Certificate with its Issuer and a Gateway; returns the name it is for.
fn apply_certificate(namespace: &Namespace<'_>, pebble: &Pebble, http01: &Value) -> String {
    let host = format!("{}.example.com", namespace.name());
    for object in [gateway(), issuer(pebble, http01), certificate(&host)] {
        namespace.kubectl().apply(&object.to_string());
    }
    host
}

fn issuer(pebble: &Pebble, http01: &Value) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "pebble"},
        "spec": {"acme": {
            "server": pebble.directory(), "caBundle": STANDARD.encode(pebble.tls_ca_pem()),
            "privateKeySecretRef": {"name": "account"}, "solvers": [{"http01": http01}],
        }},
    })
}

fn certificate(host: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "web"},
        "spec": {"secretName": "web-tls", "dnsNames": [host], "issuerRef": {"name": "pebble"}},
    })
}

/// Issues one certificate from Pebble by our controllers with this HTTP-01 solver; nothing of the solver may stay.
async fn check_issuance(http01: Value) {
    let cluster = Cluster::shared();
    let pebble = pebble();
    let namespace = cluster.namespace("chain");
    let kubectl = namespace.kubectl();
    let store = store(&cluster.kubeconfig()).await.confined_to(namespace.name());
    let everything = (IpAddr::V4(Ipv4Addr::LOCALHOST), Some(cluster.http_port()));
    let overrides =
        Overrides { hosts: [("*".to_owned(), everything)].into(), ..Overrides::default() };
    let engine = Engine::start(ControllerParts::new(
        Arc::new(store.clone()),
        Arc::new(ClusterSolver::new(store, Options::default())),
        Fetcher { resolver: Arc::new(SystemResolver::new()), overrides },
        nobody_to_ask(),
    ));
    let host = apply_certificate(&namespace, &pebble, &http01);
    kubectl.wait_for("certificate/web", "Ready");
    let secret = kubectl.object("secret/web-tls");
    let chain = STANDARD.decode(secret["data"]["tls.crt"].as_str().unwrap()).unwrap();
    let (_, leaf) = x509_parser::pem::parse_x509_pem(&chain).unwrap();
    let leaf = leaf.parse_x509().unwrap();
    let names = leaf.subject_alternative_name().unwrap().unwrap();
    assert_eq!(names.value.general_names[0].to_string(), format!("DNSName({host})"));
    assert_eq!(pebble.orders(), 1);
    eventually("the end of the solver", || {
        let gone = |kind: &str| kubectl.items(kind).is_empty();
        (KINDS.into_iter().all(gone) && gone("challenges")).then_some(())
    });
    engine.stop(&CancellationToken::new()).await.unwrap();
}

fn ours() -> Options {
    Options { image: format!("{OUR_SOLVER}:test"), ..Options::default() }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn an_ingress_leads_to_cert_managers_solver_and_to_ours() {
    assert_eq!(Options::default().image, IMAGE);
    check(through_ingress(), Options::default(), [1, 1, 1, 0]).await;
    check(through_ingress(), ours(), [1, 1, 1, 0]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_route_leads_to_cert_managers_solver_and_to_ours() {
    check(through_route(), Options::default(), [1, 1, 0, 1]).await;
    check(through_route(), ours(), [1, 1, 0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn objects_of_a_rehearsal_are_made_and_removed_without_an_owner() {
    let rehearsal = Options { rehearsal: Some(Timestamp::MAX), ..Options::default() };
    check(through_ingress(), rehearsal.clone(), [1, 1, 1, 0]).await;
    check(through_route(), rehearsal, [1, 1, 0, 1]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn an_edited_ingress_keeps_the_paths_of_others() {
    let solver = json!({"ingress": {"name": "shop"}});
    let bed = Bed::new(&solver);
    let kubectl = bed.kubectl();
    let host = bed.challenge.spec.dns_name.clone();
    let theirs = json!({
        "path": "/", "pathType": "Prefix",
        "backend": {"service": {"name": "shop", "port": {"number": 80}}},
    });
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "shop", "annotations": {"example.com/theirs": "yes"}},
        "spec": {"ingressClassName": "bed", "rules": [
            {"host": "mail.example.com", "http": {"paths": [theirs]}},
            {"host": host, "http": {"paths": [theirs]}},
        ]},
    });
    let missing = bed.fresh().await.present(&bed.challenge, &bed.answer).await.unwrap_err();
    assert!(missing.needs_person && missing.why == "ingress shop not found", "{missing}");
    kubectl.apply(&ingress.to_string());
    let before = kubectl.object("ingress/shop")["spec"].clone();

    let second = apply_challenge(&bed.namespace, "two", &solver);
    let answer = Answer::of(&second).unwrap();
    let (one, two) = (bed.fresh().await, bed.fresh().await);
    // Both write the same Ingress at once.
    let both =
        tokio::join!(one.present(&bed.challenge, &bed.answer), two.present(&second, &answer));
    both.0.unwrap();
    both.1.unwrap();
    assert_eq!(bed.counts(), [2, 2, 1, 0]);
    eventually("the first answer", || bed.look().ok());
    assert_eq!(eventually("the second answer", || look(&second).ok()), second.spec.key);

    one.clean_up(&bed.challenge, &bed.answer).await.unwrap();
    assert_eq!(bed.counts(), [1, 1, 1, 0]);
    assert_eq!(look(&second).ok().as_ref(), Some(&second.spec.key), "the other stays");
    two.clean_up(&second, &answer).await.unwrap();
    let after = kubectl.object("ingress/shop");
    assert_eq!(after["spec"], before);
    assert_eq!(after["metadata"]["annotations"]["example.com/theirs"], "yes");
}

/// Does it twice at least, and again until the solver objects are as wanted.
async fn settled(bed: &Bed, wanted: impl Fn([usize; 4]) -> bool, deed: impl AsyncFn()) {
    let deadline = Instant::now() + PATIENCE;
    deed().await;
    loop {
        deed().await;
        let counts = bed.counts();
        if wanted(counts) {
            return;
        }
        assert!(Instant::now() < deadline, "there are {counts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_process_killed_at_any_moment_leaves_nothing_after_the_next_one() {
    for http01 in [through_ingress(), through_route()] {
        let bed = Bed::new(&http01);
        for milliseconds in [0, 3, 6, 10, 15, 25, 50, 100] {
            let killed = bed.fresh().await;
            let life = Duration::from_millis(milliseconds);
            let present = killed.present(&bed.challenge, &bed.answer);
            tokio::time::timeout(life, present).await.ok();
            let next = bed.fresh().await;
            // What the killed one had sent may arrive late; a repeat settles it.
            let is_one_of_each =
                |counts: [usize; 4]| (counts[0], counts[1], counts[2] + counts[3]) == (1, 1, 1);
            settled(&bed, is_one_of_each, async || bed.present(&next).await).await;

            let killed = bed.fresh().await;
            let clean_up = killed.clean_up(&bed.challenge, &bed.answer);
            tokio::time::timeout(life, clean_up).await.ok();
            let next = bed.fresh().await;
            let clean_up = async || next.clean_up(&bed.challenge, &bed.answer).await.unwrap();
            settled(&bed, |counts| counts == [0; 4], clean_up).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn objects_of_a_new_challenge_are_made_and_removed_without_a_look_at_others() {
    for (http01, each) in [(through_ingress(), [1, 1, 1, 0]), (through_route(), [1, 1, 0, 1])] {
        let bed = Bed::new(&http01);
        bed.present(&bed.fresh().await).await;
        // Wrong here, so that it shows what is done without a look.
        let solver = bed.fresh().await;
        solver.nothing_stands(&bed.challenge);
        bed.present(&solver).await;
        assert_eq!(bed.counts(), each.map(|count| 2 * count));
        solver.clean_up(&bed.challenge, &bed.answer).await.unwrap();
        assert_eq!(bed.counts(), each, "its own are gone");

        solver.nothing_stands(&bed.challenge);
        bed.present(&solver).await;
        bed.present(&solver).await;
        assert_eq!(bed.counts(), each, "a repeat looks");
        solver.clean_up(&bed.challenge, &bed.answer).await.unwrap();
        assert_eq!(bed.counts(), [0; 4], "and from then on all count");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn what_is_lost_comes_back_and_what_is_too_much_goes() {
    let bed = Bed::new(&through_ingress());
    let kubectl = bed.kubectl();
    let solver = bed.fresh().await;
    bed.present(&solver).await;
    let first = kubectl.items("ingresses")[0].clone();
    // A second one for the same Challenge, as cert-manager's race makes it; and one that only looks like it.
    let mut copy = first.clone();
    let metadata = copy["metadata"].as_object_mut().unwrap();
    metadata
        .retain(|field, _| ["labels", "ownerReferences", "namespace"].contains(&field.as_str()));
    copy["metadata"]["name"] = "a-second-one".into();
    kubectl.apply(&copy.to_string());
    copy["metadata"]["name"] = "of-somebody-else".into();
    copy["metadata"]["ownerReferences"] = json!([]);
    kubectl.apply(&copy.to_string());
    kubectl.run(&["delete", "pods", "--all", "--wait=false"]);
    assert_eq!(bed.counts(), [0, 1, 3, 0]);

    bed.present(&solver).await;
    assert_eq!(bed.counts(), [1, 1, 2, 0]);
    kubectl.object("ingress/of-somebody-else");
    // A new Service needs a new Ingress.
    kubectl.run(&["delete", "services", "--all"]);
    bed.present(&solver).await;
    assert_eq!(bed.counts(), [1, 1, 2, 0]);
    kubectl.run(&["delete", "ingress", "of-somebody-else"]);
    let service = kubectl.items("services")[0]["metadata"]["name"].clone();
    let backend = &kubectl.items("ingresses")[0]["spec"]["rules"][0]["http"]["paths"][0]["backend"];
    assert_eq!(backend["service"]["name"], service);
    eventually("the answer", || bed.look().ok());

    solver.clean_up(&bed.challenge, &bed.answer).await.unwrap();
    assert_eq!(bed.counts(), [0; 4]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn objects_of_cert_manager_are_taken_over_and_removed() {
    let pebble = pebble();
    for (http01, entrance) in [(through_ingress(), "ingresses"), (through_route(), "httproutes")] {
        let namespace = Cluster::shared().namespace("takeover");
        let kubectl = namespace.kubectl();
        // Its Pod never starts, so that it waits with all its objects in place.
        let image = "--acme-http01-solver-image=registry.example/none:1";
        let peer = namespace.peer(&["--leader-elect=false", image]);
        apply_certificate(&namespace, &pebble, &http01);
        eventually("its solver", || kubectl.items(entrance).first().cloned());
        let pod = eventually("its Pod", || kubectl.items("pods").first().cloned());
        let service = kubectl.items("services")[0].clone();
        peer.kill();

        let challenge = kubectl.items("challenges")[0].clone();
        let challenge: Challenge = serde_json::from_value(challenge).unwrap();
        let answer = Answer::of(&challenge).unwrap();
        let bed = Bed { namespace, challenge, answer };
        let solver = bed.fresh().await;
        bed.present(&solver).await;
        let counts = bed.counts();
        assert_eq!((counts[0], counts[1], counts[2] + counts[3]), (1, 1, 1), "{entrance}");
        assert_eq!(kubectl.items("pods")[0]["metadata"]["uid"], pod["metadata"]["uid"]);
        assert_eq!(kubectl.items("services")[0]["metadata"]["uid"], service["metadata"]["uid"]);
        solver.clean_up(&bed.challenge, &bed.answer).await.unwrap();
        assert_eq!(bed.counts(), [0; 4], "{entrance}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_missing_permission_is_named() {
    let bed = Bed::new(&through_ingress());
    let rules = "[{apiGroups: [''], resources: [services], verbs: [list, create, delete]}]";
    let account = bed.namespace.service_account("narrow", rules);
    let solver = ClusterSolver::new(store(account.kubeconfig()).await, Options::default());
    let refused = solver.present(&bed.challenge, &bed.answer).await.unwrap_err();
    let place = bed.namespace.name();
    let expected = format!(
        "cannot make the solver objects of challenge {place}/one: no permission to list pods in \
         namespace {place}: "
    );
    assert!(refused.needs_person && refused.to_string().starts_with(&expected), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn what_the_server_refuses_is_quoted_and_the_rest_goes() {
    let labels = json!({"metadata": {"labels": {"team": "no label!"}}});
    let bed = Bed::new(&json!({"ingress": {"ingressTemplate": labels}}));
    let solver = bed.fresh().await;
    let refused = solver.present(&bed.challenge, &bed.answer).await.unwrap_err();
    let place = bed.namespace.name();
    let expected =
        format!("the cluster refuses to create ingresses.networking.k8s.io in namespace {place}: ");
    assert!(refused.needs_person && refused.why.starts_with(&expected), "{refused}");
    assert!(refused.why.contains("no label!"), "{refused}");
    assert_eq!(bed.counts(), [1, 1, 0, 0]);
    solver.clean_up(&bed.challenge, &bed.answer).await.unwrap();
    assert_eq!(bed.counts(), [0; 4]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_full_quota_is_waited_for() {
    let bed = Bed::new(&through_ingress());
    bed.kubectl().run(&["create", "quota", "none", "--hard=pods=0"]);
    // The quota counts from when its status is written, by a controller that this cluster lacks.
    let patch = r#"{"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}"#;
    let deed = ["patch", "quota/none", "--subresource=status", "--type=merge", "-p", patch];
    bed.kubectl().run(&deed);
    let solver = bed.fresh().await;
    let refused = eventually("the quota", || {
        let present = solver.present(&bed.challenge, &bed.answer);
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(present)).err()
    });
    assert!(!refused.needs_person && refused.why.contains("exceeded quota"), "{refused}");
    assert!(advice(&refused).contains("describe quota"), "{refused:?}");
    bed.kubectl().run(&["delete", "quota", "none"]);
    eventually("the end of the quota", || {
        let present = solver.present(&bed.challenge, &bed.answer);
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(present)).ok()
    });
    solver.clean_up(&bed.challenge, &bed.answer).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_guard_of_pods_says_the_same_at_each_try_and_what_helps() {
    let limits = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "least"},
        "spec": {"limits": [{"type": "Container", "min": {"cpu": "200m"}}]},
    });
    for (guard, says, helps) in [
        ("limits", "minimum cpu usage per Container is 200m", "podTemplate.spec.resources"),
        ("level", "violates PodSecurity \"restricted:latest\"", "podTemplate.spec.securityContext"),
    ] {
        let loose = json!({"spec": {"securityContext": {"runAsNonRoot": false}}});
        let bed = Bed::new(&json!({"ingress": {"ingressClassName": "bed", "podTemplate": loose}}));
        if guard == "limits" {
            bed.kubectl().apply(&limits.to_string());
        } else {
            let level = "pod-security.kubernetes.io/enforce=restricted";
            bed.kubectl().run(&["label", "namespace", bed.namespace.name(), level]);
        }
        let solver = bed.fresh().await;
        let mut told = eventually("the guard", || {
            let present = solver.present(&bed.challenge, &bed.answer);
            let refused =
                tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(present));
            refused.err().map(|refused| vec![refused]).or_else(|| {
                bed.kubectl().run(&["delete", "pods", "--all", "--wait=false"]);
                None
            })
        });
        for _ in 0..2 {
            let solver = bed.fresh().await;
            told.push(solver.present(&bed.challenge, &bed.answer).await.unwrap_err());
        }
        for refused in &told {
            assert_eq!(refused.to_string(), told[0].to_string());
            assert!(refused.why.contains(says), "{refused}");
            assert!(refused.why.contains("pods \"cm-acme-http-solver-…\""), "{refused}");
            assert!(refused.needs_person, "{refused}");
            assert!(advice(refused).contains(helps), "{refused:?}");
        }
    }
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_command_killed_while_its_solver_stands_leaves_nothing_after_the_next_one() {
    let cluster = Arena::enter();
    let options = PebbleOptions { http_port: Some(cluster.http_port()), ..PebbleOptions::calm() };
    let pebble = Pebble::start(&options);
    let namespace = cluster.namespace("killed");
    let kubectl = namespace.kubectl();
    let folder = tempfile::tempdir().unwrap();
    let manifests = folder.path().join("manifests.json");
    let host = format!("{}.example.com", namespace.name());
    let objects = [issuer(&pebble, &through_ingress()), certificate(&host)];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    std::fs::write(&manifests, list.to_string()).unwrap();
    let order = |port: u16| {
        let mut command = program::command();
        command
            .args(["order", "--namespace", namespace.name(), "--timeout=5m", "--kubeconfig"])
            .arg(cluster.kubeconfig())
            .arg(format!("--http01-resolve=*=127.0.0.1:{port}"))
            .arg("-f")
            .arg(&manifests)
            .env_remove("KUBECONFIG");
        command
    };
    // Its self-check looks where nobody answers, so that it waits with all its objects in place.
    let stuck = Server::start(&order(bed::free_port()), &folder.path().join("stuck.log"));
    let standing = || KINDS.map(|kind| kubectl.items(kind).len());
    eventually("the solver", || (standing() == [1, 1, 1, 0]).then_some(()));
    drop(stuck);
    assert_eq!(standing(), [1, 1, 1, 0]);

    let next = order(cluster.http_port()).output().unwrap();
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stderr));
    kubectl.wait_for("certificate/web", "Ready");
    assert_eq!((pebble.accounts(), pebble.orders()), (1, 1));
    eventually("the end of the solver", || {
        let gone = |kind: &str| kubectl.items(kind).is_empty();
        (KINDS.into_iter().all(gone) && gone("challenges")).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn our_controllers_issue_through_an_ingress() {
    check_issuance(through_ingress()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn our_controllers_issue_through_an_http_route() {
    check_issuance(through_route()).await;
}
