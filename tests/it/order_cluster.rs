//! `order -f` in a real cluster, driven by cert-manager or by this program, whoever holds the Lease.

use std::fs;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::support::cluster::{Cluster, Kubectl, Namespace};
use super::support::pebble::{Pebble, PebbleOptions};

/// A namespace with a manifest for one name, and what runs this program there.
struct Site<'a> {
    cluster: &'a Cluster,
    namespace: Namespace<'a>,
    folder: tempfile::TempDir,
}

impl<'a> Site<'a> {
    fn new(cluster: &'a Cluster, pebble: &Pebble, name: &str) -> Self {
        let (namespace, folder) = (cluster.namespace(name), tempfile::tempdir().unwrap());
        let manifest = format!(
            "apiVersion: cert-manager.io/v1\nkind: Issuer\nmetadata: {{name: pebble}}\nspec:\n  acme:\n    \
             server: {}\n    caBundle: {}\n    privateKeySecretRef: {{name: account}}\n    \
             solvers: [{{http01: {{ingress: {{}}}}}}]\n---\napiVersion: cert-manager.io/v1\nkind: Certificate\n\
             metadata: {{name: web}}\nspec:\n  secretName: web-tls\n  dnsNames: [{}.example.com]\n  \
             issuerRef: {{name: pebble}}\n",
            pebble.directory(),
            BASE64_STANDARD.encode(pebble.tls_ca_pem()),
            namespace.name(),
        );
        fs::write(folder.path().join("web.yaml"), manifest).unwrap();
        Self { cluster, namespace, folder }
    }

    /// Runs a command as whoever the kubeconfig of `as_whom` logs in as.
    fn run(&self, as_whom: &Kubectl, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kubectl-acme"))
            .args(words)
            .args(["--namespace", self.namespace.name()])
            .env_clear()
            .env("KUBECONFIG", as_whom.kubeconfig())
            .env("KUBECTL_ACME_HTTP01_RESOLVE", format!("*=127.0.0.1:{}", self.cluster.http_port()))
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// Issues, and returns what was said.
    fn order(&self, flags: &[&str], expected: i32) -> String {
        let words = [&["order", "-f", "web.yaml", "--timeout=3m"], flags].concat();
        check(&self.run(&self.namespace.kubectl(), &words), expected)
    }
}

/// Returns standard error after a look at the exit code.
#[track_caller]
fn check(output: &Output, expected: i32) -> String {
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(expected), "{talk}\n{result}");
    talk
}

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
    let cluster = Cluster::start(&[]);
    let options = PebbleOptions { http_port: Some(cluster.http_port()), ..PebbleOptions::calm() };
    let pebble = Pebble::start(&options);

    let alone = Site::new(&cluster, &pebble, "alone");
    let kubectl = alone.namespace.kubectl();
    let talk = alone.order(&[], 0);
    assert!(talk.contains("driver: kubectl-acme\n"), "{talk}");
    assert!(kubectl.run(&["get", "certificate", "web"]).contains("True"));
    assert_eq!(holder(&kubectl), "", "the Lease is given back");
    for kind in ["pods", "services", "ingresses", "challenges"] {
        assert!(kubectl.items(kind).is_empty(), "{kind} stay");
    }
    let again = alone.order(&[], 0);
    assert!(again.contains("nothing is due"), "{again}");
    assert_eq!(pebble.orders(), 1);

    let peer = cluster.peer(&[]);
    peer.wait_until_at_work();
    let shared = Site::new(&cluster, &pebble, "shared");
    let refused = shared.order(&["--driver=self"], 12);
    assert!(refused.contains("error: cannot drive this cluster: cert-manager ("), "{refused}");
    assert!(shared.namespace.kubectl().items("certificates").is_empty(), "nothing is applied");
    let talk = shared.order(&[], 0);
    assert!(talk.contains("driver: cert-manager ("), "{talk}");
    assert_eq!(pebble.orders(), 2, "cert-manager's, and no other");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_missing_permission_is_named_and_a_cluster_is_kubectls_to_delete_in() {
    let cluster = Cluster::shared();
    let options = PebbleOptions { http_port: Some(cluster.http_port()), ..PebbleOptions::calm() };
    let pebble = Pebble::start(&options);
    let site = Site::new(cluster, &pebble, "reader");
    let rules = r#"[{"apiGroups": ["cert-manager.io"], "resources": ["certificates"], "verbs": ["get", "list"]}]"#;
    let reader = site.namespace.service_account("reader", rules);
    check(&site.run(&reader, &["get", "certificates"]), 0);
    let refused = check(&site.run(&reader, &["get", "orders"]), 8);
    assert!(refused.contains("no permission to list orders.acme.cert-manager.io"), "{refused}");
    let refused = check(&site.run(&site.namespace.kubectl(), &["delete", "order/web"]), 2);
    assert!(refused.contains("hint: kubectl delete order/web"), "{refused}");
}
