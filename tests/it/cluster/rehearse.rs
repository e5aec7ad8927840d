//! Rehearsals in a real cluster: its solvers, our CA, and nothing left behind.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::support::bed;
use crate::support::cluster::{Arena, Cluster, Kubectl, Namespace, eventually};
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::program;

/// Marks the solver objects of a rehearsal.
const MARK: &str = "kubectl-acme/rehearsal";
/// The kinds of solver objects.
const KINDS: [&str; 4] = ["pods", "services", "ingresses", "httproutes"];

/// A namespace with a Gateway and a shop's Ingress, and a folder for manifests.
struct Site<'a> {
    cluster: &'a Cluster,
    namespace: Namespace<'a>,
    folder: tempfile::TempDir,
}

impl<'a> Site<'a> {
    fn new(cluster: &'a Cluster, name: &str) -> Self {
        let (namespace, folder) = (cluster.namespace(name), tempfile::tempdir().unwrap());
        let site = Self { cluster, namespace, folder };
        for object in [gateway(), site.shop()] {
            site.kubectl().apply(&object.to_string());
        }
        site
    }

    fn kubectl(&self) -> Kubectl {
        self.namespace.kubectl()
    }

    fn host(&self) -> String {
        format!("{}.example.com", self.namespace.name())
    }

    /// An Ingress of others for the same host.
    fn shop(&self) -> Value {
        let path = json!({
            "path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "shop", "port": {"number": 80}}},
        });
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "shop"},
            "spec": {"rules": [{"host": self.host(), "http": {"paths": [path]}}]},
        })
    }

    fn certificate(&self) -> Value {
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "web"},
            "spec": {
                "secretName": "web-tls", "dnsNames": [self.host()], "issuerRef": {"name": "acme"},
                "privateKey": {"algorithm": "ECDSA"},
            },
        })
    }

    /// Writes a manifest and returns its path.
    fn write(&self, objects: &[Value]) -> PathBuf {
        let path = self.folder.path().join("manifests.json");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        fs::write(&path, list.to_string()).unwrap();
        path
    }

    /// `order -f` as whoever logs in with that kubeconfig; the CA looks at that port.
    fn order(&self, as_whom: &Kubectl, manifests: &[Value], port: u16, flags: &[&str]) -> Command {
        let mut command = program::command();
        command
            .args(["order", "--namespace", self.namespace.name(), "-f"])
            .arg(self.write(manifests))
            .args(flags)
            .env("KUBECONFIG", as_whom.kubeconfig())
            .env("KUBECTL_ACME_HTTP01_RESOLVE", format!("*=127.0.0.1:{port}"))
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A rehearsal that works.
    fn rehearse(&self, manifests: &[Value], flags: &[&str]) -> String {
        let flags = [&["--rehearse", "--timeout=3m"], flags].concat();
        let mut order = self.order(&self.kubectl(), manifests, self.cluster.http_port(), &flags);
        check(&order.output().unwrap(), 0)
    }

    /// Starts a rehearsal that looks where nobody answers; returns when its objects are there, with their mark.
    fn stuck(&self, http01: &Value, flags: &[&str]) -> (Child, String) {
        let before = self.marks();
        let manifests = [unasked(http01), self.certificate()];
        let flags = [&["--rehearse"], flags].concat();
        let process =
            self.order(&self.kubectl(), &manifests, bed::free_port(), &flags).spawn().unwrap();
        let mark = eventually("the objects of a rehearsal", || {
            let new = self.marks().into_iter().find(|mark| !before.contains(mark))?;
            let found = self.marked(&new);
            (found.len() == 3 || found.len() == 2 && self.shop_leads_elsewhere()).then_some(new)
        });
        (process, mark)
    }

    /// The marks on all objects.
    fn marks(&self) -> Vec<String> {
        let of = |pod: Value| Some(pod["metadata"]["labels"][MARK].as_str()?.to_owned());
        self.kubectl().items("pods").into_iter().filter_map(of).collect()
    }

    /// The objects with that mark that are not on their way out.
    fn marked(&self, mark: &str) -> Vec<Value> {
        let all = KINDS.into_iter().flat_map(|kind| self.kubectl().items(kind));
        let has_it = |object: &Value| {
            let metadata = &object["metadata"];
            metadata["labels"][MARK] == mark && metadata["deletionTimestamp"].is_null()
        };
        all.filter(has_it).collect()
    }

    /// Says whether somebody put a path into the shop's Ingress.
    fn shop_leads_elsewhere(&self) -> bool {
        self.kubectl().object("ingress/shop")["spec"] != self.shop_as_applied()
    }

    fn shop_as_applied(&self) -> Value {
        let shop = self.kubectl().object("ingress/shop");
        let applied = "kubectl.kubernetes.io/last-applied-configuration";
        let applied = shop["metadata"]["annotations"][applied].as_str().unwrap();
        serde_json::from_str::<Value>(applied).unwrap()["spec"].clone()
    }

    /// Fails unless nothing of any solver is there, and nobody has written a resource of ours.
    fn is_untouched(&self) {
        eventually("the end of the solver objects", || {
            let own = |object: &Value| object["metadata"]["name"] == "shop";
            let gone = |kind: &str| self.kubectl().items(kind).iter().all(own);
            KINDS.into_iter().all(gone).then_some(())
        });
        assert!(!self.shop_leads_elsewhere());
        for kind in ["certificates", "certificaterequests", "orders", "challenges", "leases"] {
            assert!(self.kubectl().items(kind).is_empty(), "{kind}");
        }
    }
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

/// An Issuer whose CA nobody may ask.
fn unasked(http01: &Value) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme"},
        "spec": {"acme": {
            "server": "https://127.0.0.1:1/", "privateKeySecretRef": {"name": "account"},
            "solvers": [{"http01": http01}],
        }},
    })
}

/// An Issuer of a real CA.
fn issuer(pebble: &Pebble, http01: &Value) -> Value {
    let mut issuer = unasked(http01);
    issuer["spec"]["acme"]["server"] = pebble.directory().into();
    issuer["spec"]["acme"]["caBundle"] = BASE64_STANDARD.encode(pebble.tls_ca_pem()).into();
    issuer
}

fn through_ingress() -> Value {
    json!({"ingress": {}})
}

/// Every way to lead to a solver.
fn ways() -> [Value; 3] {
    let route = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}});
    [through_ingress(), route, json!({"ingress": {"name": "shop"}})]
}

fn pebble(cluster: &Cluster) -> Pebble {
    let http_port = Some(cluster.http_port());
    Pebble::start(&PebbleOptions { http_port, ..PebbleOptions::calm() })
}

/// Returns standard error after a look at the exit code.
#[track_caller]
fn check(output: &Output, expected: i32) -> String {
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(expected), "{talk}\n{result}");
    talk
}

fn signal(process: &Child, name: &str) {
    let id = process.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_rehearsal_takes_the_issuer_of_the_cluster_and_leaves_nothing() {
    let site = Site::new(Cluster::shared(), "rehearsal");
    for http01 in ways() {
        // Nobody answers there: it is not asked.
        site.kubectl().apply(&unasked(&http01).to_string());
        let before = site.kubectl().object("issuer/acme");
        let out = site.folder.path().join("out");
        let talk = site.rehearse(&[site.certificate()], &["--out", out.to_str().unwrap()]);
        assert!(talk.contains("rehearsal with the solvers of context bed; namespace "), "{talk}");
        let chain = fs::read_to_string(out.join("web-tls/tls.crt")).unwrap();
        assert_eq!(chain.matches("BEGIN CERTIFICATE").count(), 2);
        site.is_untouched();
        assert!(site.kubectl().items("secrets").is_empty());
        assert_eq!(site.kubectl().object("issuer/acme"), before);
        fs::remove_dir_all(out).unwrap();
    }
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cert_manager_issues_for_the_same_host_beside_a_rehearsal() {
    let cluster = Cluster::shared();
    let site = Site::new(cluster, "beside");
    let pebble = pebble(cluster);
    let proxy = pebble.proxy();
    let peer = site.namespace.peer(&[]);
    peer.wait_until_at_work();
    for (number, http01) in ways().into_iter().enumerate() {
        let mut real = issuer(&pebble, &http01);
        real["spec"]["acme"]["server"] = proxy.directory().into();
        site.kubectl().apply(&real.to_string());
        let (mut stuck, mark) = site.stuck(&http01, &["--timeout=10m"]);
        site.kubectl().apply(&site.certificate().to_string());
        site.rehearse(&[site.certificate()], &[]);
        site.kubectl().wait_for("certificate/web", "Ready");
        let kept = site.marked(&mark);
        assert!(kept.len() >= 2, "cert-manager lets them alone: {kept:?}");
        assert!(kept.iter().all(|o| o["metadata"]["ownerReferences"].is_null()), "{kept:?}");
        signal(&stuck, "INT");
        stuck.wait().unwrap();
        assert_eq!(site.marked(&mark), [] as [Value; 0]);
        site.kubectl().run(&["delete", "certificate/web", "secret/web-tls"]);
        let orders = proxy.orders();
        let is_spared = orders.ours == 0 && pebble.orders() == orders.total();
        assert!(is_spared && orders.others > number, "a rehearsal spends none: {orders:?}");
        assert_eq!(pebble.issued(), number + 1);
    }
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn an_interrupted_rehearsal_and_a_failed_one_leave_nothing() {
    let site = Site::new(Cluster::shared(), "ended");
    for http01 in ways() {
        let (stuck, _) = site.stuck(&http01, &["--timeout=10m"]);
        signal(&stuck, "INT");
        let talk = check(&stuck.wait_with_output().unwrap(), 130);
        assert!(talk.contains("error: interrupted; nothing is kept of a rehearsal"), "{talk}");
        site.is_untouched();
    }
    let manifests = [unasked(&through_ingress()), site.certificate()];
    let flags = ["--rehearse", "--timeout=15s"];
    let mut failing = site.order(&site.kubectl(), &manifests, bed::free_port(), &flags);
    let talk = check(&failing.output().unwrap(), 124);
    assert!(talk.contains("is not done after 15s"), "{talk}");
    site.is_untouched();
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_rehearsal_needs_leave_for_solver_objects_and_issuers_only() {
    let site = Site::new(Cluster::shared(), "narrow");
    site.kubectl().apply(&unasked(&through_ingress()).to_string());
    let objects = "[get, list, create, delete]";
    let rules = format!(
        "[{{apiGroups: [''], resources: [pods, services], verbs: {objects}}},
          {{apiGroups: [networking.k8s.io], resources: [ingresses], verbs: {objects}}},
          {{apiGroups: [cert-manager.io], resources: [issuers], verbs: [get]}}]"
    );
    let narrow = site.namespace.service_account("narrow", &rules);
    let port = site.cluster.http_port();
    let flags = ["--rehearse", "--timeout=3m"];
    let mut order = site.order(&narrow, &[site.certificate()], port, &flags);
    let talk = check(&order.output().unwrap(), 0);
    assert!(talk.contains("may not read Secret "), "{talk}");
    site.is_untouched();

    let none = site.namespace.service_account("none", "[]");
    let mut order = site.order(&none, &[site.certificate()], port, &flags);
    let talk = check(&order.output().unwrap(), 8);
    assert!(talk.contains("no permission to get issuers.cert-manager.io"), "{talk}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn what_a_killed_rehearsal_left_is_swept_and_nothing_else() {
    let cluster = Arena::enter();
    let pebble = pebble(&cluster);
    let site = Site::new(&cluster, "swept");
    let kubectl = site.kubectl();
    let (mut running, runs) = site.stuck(&through_ingress(), &["--timeout=30m"]);
    for (number, http01) in ways().into_iter().enumerate() {
        let (mut killed, left) = site.stuck(&http01, &["--timeout=30m"]);
        killed.kill().unwrap();
        killed.wait().unwrap();
        // As if its time were up.
        let selector = format!("--selector={MARK}={left}");
        let past = "kubectl-acme/until=2026-01-01T00:00:00Z";
        let kinds = KINDS.join(",");
        kubectl.run(&["annotate", &kinds, &selector, "--overwrite", past]);
        let theirs = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("theirs-{number}"), "labels": {MARK: left},
                "annotations": {"kubectl-acme/until": "2026-01-01T00:00:00Z"},
            },
            "spec": {"containers": [{"name": "main", "image": "registry.example/none:1"}]},
        });
        kubectl.apply(&theirs.to_string());

        let talk = if number == 0 {
            site.rehearse(&[unasked(&http01), site.certificate()], &[])
        } else {
            let issuer = issuer(&pebble, &http01);
            let manifests = [issuer, site.certificate()];
            let flags = ["--timeout=3m"];
            let mut order = site.order(&kubectl, &manifests, cluster.http_port(), &flags);
            check(&order.output().unwrap(), 0)
        };
        let said = "removed leftovers of a command that was killed: ";
        assert!(talk.contains(said), "{talk}");
        let names: Vec<_> =
            site.marked(&left).iter().map(|o| o["metadata"]["name"].clone()).collect();
        assert_eq!(names, [format!("theirs-{number}")], "{http01}");
        assert_eq!(site.marked(&runs).len(), 3, "another rehearsal goes on");
        assert!(!site.shop_leads_elsewhere());
    }
    signal(&running, "TERM");
    assert_eq!(running.wait().unwrap().code(), Some(143));
    assert!(site.marked(&runs).is_empty());
}
