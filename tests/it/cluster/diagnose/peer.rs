//! Faults that happen while cert-manager's own controllers work: the same causes are named as where this program works.

use std::process::Output;

use jiff::{SignedDuration, Timestamp};
use kubectl_acme::model::Blob;
use serde_json::{Value, json};

use crate::support::bed::free_port;
use crate::support::cluster::{Arena, Bench, Peer, eventually};
use crate::support::fault::Fault;
use crate::support::lab;
use crate::support::terminal::openssl;
use crate::support::traffic::Endpoint;

/// A namespace in which cert-manager works on what a test applies.
pub(super) struct Scene<'c> {
    pub(super) bench: Bench<'c>,
    pub(super) peer: Peer,
}

impl<'c> Scene<'c> {
    /// Starts cert-manager's controllers with these flags and waits until they drive.
    pub(super) fn new(arena: &'c Arena, name: &str, flags: &[&str]) -> Self {
        Self::through(arena, name, arena.http_port(), flags)
    }

    /// The same, where their self-checks meet another server.
    pub(super) fn through(arena: &'c Arena, name: &str, gate: u16, flags: &[&str]) -> Self {
        let bench = Bench::new(arena, name);
        let peer = arena.peer_through(gate, flags);
        peer.wait_until_at_work();
        Self { bench, peer }
    }

    pub(super) fn apply(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.bench.namespace.kubectl().apply(&list.to_string());
    }

    /// The issuer of the bench, changed.
    pub(super) fn issuer(&self, change: impl FnOnce(&mut Value)) -> Value {
        let mut issuer = self.bench.issuer("Issuer", "pebble", &json!({"ingress": {}}));
        change(&mut issuer["spec"]["acme"]);
        issuer
    }

    pub(super) fn certificate(&self) -> Value {
        self.bench.certificate("web", "Issuer", "pebble")
    }

    /// Waits until the first object of a kind is as it has to be.
    pub(super) fn until(&self, kind: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually(&format!("{kind} of {}", self.bench.namespace.name()), || {
            self.bench.namespace.kubectl().items(kind).into_iter().find(&is)
        })
    }

    /// Waits until the condition Ready of the issuer has that status.
    pub(super) fn until_issuer(&self, status: &str) {
        self.until("issuers", |issuer| condition(issuer, "Ready") == Some(status));
    }

    /// Looks with flags of a test beside.
    pub(super) fn diagnose(&self, words: &[&str]) -> (Output, Value) {
        look(&self.bench, words)
    }

    #[track_caller]
    pub(super) fn names_first(&self, cause: &str) -> Value {
        let (output, report) = self.diagnose(&["web"]);
        let first = lab::names_first(&report, cause).clone();
        assert_eq!(output.status.code(), Some(10), "{report:#}");
        first
    }
}

/// What `diagnose` says in the namespace of a bench.
pub(super) fn look(bench: &Bench<'_>, words: &[&str]) -> (Output, Value) {
    look_in(bench, 0, words)
}

/// The same some minutes from now.
pub(super) fn look_in(bench: &Bench<'_>, minutes: i64, words: &[&str]) -> (Output, Value) {
    let words = [&["diagnose", "-o", "json"], words].concat();
    let mut command = bench.command(&bench.namespace.kubectl(), &words);
    if minutes != 0 {
        let later = Timestamp::now() + SignedDuration::from_mins(minutes);
        command.env("KUBECTL_ACME_NOW", format!("{later:.0}"));
    }
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout);
    (output.clone(), report.unwrap_or_else(|_| panic!("{output:?}")))
}

pub(super) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v str> {
    let mut all = object["status"]["conditions"].as_array()?.iter();
    all.find(|condition| condition["type"] == kind)?["status"].as_str()
}

pub(super) fn has_reason(object: &Value) -> bool {
    object["status"]["reason"].as_str().is_some_and(|reason| !reason.is_empty())
}

/// The guide's item "any issue regarding the Issuer configuration" (CFG-01).
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_a_request_waits_for_an_issuer_that_is_not_there() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "absent", &[]);
    scene.apply(&[scene.certificate()]);
    scene.until("certificaterequests", |request| condition(request, "Ready").is_some());
    let first = scene.names_first("CFG-01");
    assert_eq!(first["grade"], "certain");
}

/// The guide's item `secrets "acme-key" already exists` (ACC-02).
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_the_secret_of_the_account_already_exists() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "leftover", &[]);
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pebble-account"}});
    scene.apply(&[secret]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until_issuer("False");
    let first = scene.names_first("ACC-02");
    assert!(first["explains"].as_array().unwrap().contains(&json!("CFG-02")), "{first:#}");
}

/// The guide's "error messages regarding accounts or network issues with your issuer" (ENV-03).
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_the_issuer_does_not_reach_the_ca() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "nowhere", &[]);
    let nowhere = format!("https://127.0.0.1:{}/dir", free_port());
    scene.apply(&[scene.issuer(|acme| acme["server"] = nowhere.into()), scene.certificate()]);
    scene.until_issuer("False");
    scene.names_first("ENV-03");
}

/// The guide's item "invalid contact domain" (ACC-01).
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_the_ca_refuses_the_email_of_the_issuer() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "contact", &[]);
    let detail = "contact email has forbidden domain \"example.com\"";
    let fault = Fault::problem(400, "invalidContact", detail).at(Endpoint::NewAccount);
    scene.bench.proxy().inject(fault);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until_issuer("False");
    scene.names_first("ACC-01");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cfg_04_cert_manager_finds_no_solver_for_the_name() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "unfit", &[]);
    let other = json!({"dnsZones": ["example.net"]});
    scene
        .apply(&[scene.issuer(|acme| acme["solvers"][0]["selector"] = other), scene.certificate()]);
    scene.until("orders", |order| order["status"]["state"] == "pending");
    scene.names_first("CFG-04");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn http_05_nobody_answers_the_self_check() {
    let arena = Arena::enter();
    let nobody = free_port();
    let scene = Scene::through(&arena, "silent", nobody, &[]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until("challenges", |challenge| {
        challenge["status"]["presented"] == true && has_reason(challenge)
    });
    let (_, report) = scene.diagnose(&["web", &format!("--http01-resolve=*=127.0.0.1:{nobody}")]);
    lab::names_first(&report, "HTTP-05");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn acc_05_the_account_key_is_replaced_while_cert_manager_checks_the_answer() {
    let arena = Arena::enter();
    let scene = Scene::through(&arena, "rekeyed", free_port(), &[]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    let is_checked =
        |challenge: &Value| challenge["status"]["presented"] == true && has_reason(challenge);
    scene.until("challenges", is_checked);
    let kubectl = scene.bench.namespace.kubectl();
    let secret = kubectl.object("secret/pebble-account");
    let key = Blob(openssl(&["genrsa", "-traditional", "2048"]).into_bytes());
    let patch = json!({"data": {"tls.key": key}}).to_string();
    kubectl.run(&["patch", "secret", "pebble-account", "--type=merge", "-p", &patch]);
    assert_ne!(kubectl.object("secret/pebble-account")["data"], secret["data"]);
    let (_, report) = look_in(&scene.bench, 5, &["web"]);
    let first = lab::names_first(&report, "ACC-05");
    assert_eq!(first["grade"], "certain", "{first:#}");
    assert!(first["evidence"].to_string().contains("/pebble-account"), "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn caa_01_the_ca_refuses_for_caa_and_cert_manager_keeps_a_part_of_it() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "caa", &[]);
    let refused = Fault::change(|authorization| {
        if authorization["challenges"][0]["status"] != "pending"
            || authorization["status"] == "valid"
        {
            let problem = json!({
                "type": "urn:ietf:params:acme:error:caa", "status": 403,
                "detail": "CAA record for example.com prevents issuance",
            });
            authorization["status"] = "invalid".into();
            for challenge in authorization["challenges"].as_array_mut().unwrap() {
                challenge["status"] = "invalid".into();
                challenge["error"] = problem.clone();
            }
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
    scene.names_first("CAA-01");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn lim_01_the_limit_of_the_exact_set_is_reached() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "limit", &[]);
    let detail = "too many certificates (5) already issued for this exact set of identifiers in the last 168h0m0s, retry after \
                  2027-01-01 00:00:00 UTC";
    let fault = Fault::problem(429, "rateLimited", detail).at(Endpoint::NewOrder);
    scene.bench.proxy().inject(fault);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until("orders", |order| order["status"]["state"] == "errored");
    scene.names_first("LIM-01");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn prv_01_the_credentials_for_dns_are_not_where_cert_manager_looks() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "credentials", &[]);
    let rfc2136 = json!({
        "nameserver": "127.0.0.1:53", "tsigKeyName": "key", "tsigAlgorithm": "HMACSHA256",
        "tsigSecretSecretRef": {"name": "absent", "key": "secret"},
    });
    let solver = json!({"dns01": {"rfc2136": rfc2136}});
    scene.apply(&[scene.issuer(|acme| acme["solvers"] = json!([solver])), scene.certificate()]);
    scene.until_issuer("False");
    scene.names_first("PRV-01");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn prv_04_credentials_of_the_machine_are_not_for_an_issuer() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "ambient", &[]);
    let solver = json!({"dns01": {"route53": {"region": "eu-west-1"}}});
    scene.apply(&[scene.issuer(|acme| acme["solvers"] = json!([solver])), scene.certificate()]);
    scene.until("challenges", has_reason);
    scene.names_first("PRV-04");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn gw_01_the_controller_runs_without_gateway_api() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "route", &["--enable-gateway-api=false"]);
    let route = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "public"}]}});
    scene.apply(&[
        scene.issuer(|acme| acme["solvers"] = json!([{"http01": route}])),
        scene.certificate(),
    ]);
    scene.until("challenges", has_reason);
    let first = scene.names_first("GW-01");
    assert_eq!(first["grade"], "certain", "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ord_14_a_key_of_that_size_is_never_made() {
    let arena = Arena::enter();
    let scene = Scene::new(&arena, "key", &[]);
    let mut certificate = scene.certificate();
    certificate["spec"]["privateKey"] = json!({"algorithm": "RSA", "size": 1024});
    scene.apply(&[scene.issuer(|_| ()), certificate]);
    scene.until_issuer("True");
    scene.until("certificates", |one| condition(one, "Issuing") == Some("True"));
    scene.names_first("ORD-14");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ord_11_somebody_else_writes_the_secret() {
    let arena = Arena::enter();
    let mut scene = Scene::new(&arena, "overwritten", &[]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    // It is ready a moment before the issuance has ended.
    scene.until("certificates", |one| {
        condition(one, "Ready") == Some("True") && condition(one, "Issuing").is_none()
    });
    let (output, report) = scene.diagnose(&["issuer/pebble"]);
    lab::names_none(&report, "cert-manager drives, and its issuer is ready");
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let (_, report) = scene.diagnose(&["web"]);
    let causes: Vec<&Value> =
        report["findings"].as_array().unwrap().iter().map(|it| &it["cause"]).collect();
    assert_eq!(causes, [&json!("ORD-01")], "{report:#}");
    // Frozen, so that the state in between stays.
    scene.peer.freeze();
    let kubectl = scene.bench.namespace.kubectl();
    let other = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "web-tls"},
        "data": {"tls.crt": "YW4gb2xkIG9uZQ==", "tls.key": "YW4gb2xkIG9uZQ=="},
    });
    let file = scene.bench.folder().join("secret.json");
    std::fs::write(&file, other.to_string()).unwrap();
    let apply =
        ["apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller", "-f"];
    kubectl.run(&[&apply[..], &[file.to_str().unwrap()]].concat());
    let first = scene.names_first("ORD-11");
    assert!(first["message"].as_str().unwrap().contains("argocd-controller"), "{first:#}");
    scene.peer.thaw();
}
