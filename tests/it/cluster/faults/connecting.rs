//! Servers that are not there, and logins that do not work.

use std::fs;
use std::net::TcpListener;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};

use super::site::{Site, documents, manifests};
use crate::support::bed::free_port;
use crate::support::cluster::Cluster;
use crate::support::pebble::{Pebble, PebbleOptions};

const AGAIN: &str =
    "hint: log in again as for kubectl, then check that kubectl auth whoami answers";
const VERSION: &str = "hint: check that kubectl version answers with the same context";

/// Runs `order -f` with a kubeconfig that was changed in one place, which is 8.
#[track_caller]
fn check(site: &Site<'_>, what: &str, change: impl FnOnce(&mut Value), says: &[&str]) {
    let kubeconfig = fs::read_to_string(Cluster::shared().kubeconfig()).unwrap();
    let mut kubeconfig: Value = serde_yaml::from_str(&kubeconfig).unwrap();
    change(&mut kubeconfig);
    let file = site.write("kubeconfig", &kubeconfig.to_string());
    site.run_as(&file, "order -f web.yaml --request-timeout=5s").check(what, 8, says);
}

fn site() -> Site<'static> {
    let site = Site::new(Cluster::shared(), "connecting");
    site.write("web.yaml", &documents(&manifests(site.name())));
    site
}

fn server(url: &str, authority: Option<&str>) -> Value {
    match authority {
        Some(pem) => {
            json!({"server": url, "certificate-authority-data": BASE64_STANDARD.encode(pem)})
        }
        None => json!({"server": url}),
    }
}

fn plugin(command: &str, arguments: &[&str]) -> Value {
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
        "command": command, "args": arguments, "installHint": "it comes with the cloud's tools",
    }})
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_server_that_cannot_be_reached_is_named() {
    let site = site();
    let pebble = Pebble::start(&PebbleOptions::calm());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://{}", silent.local_addr().unwrap());
    let closed = format!("https://127.0.0.1:{}", free_port());
    let stranger = pebble.directory();
    let stranger = stranger.trim_end_matches("/dir");
    let cluster = |with: Value| move |config: &mut Value| config["clusters"][0]["cluster"] = with;

    let says = [&format!("error: cannot reach the cluster at {closed}: "), "refused", VERSION];
    check(&site, "a closed port", cluster(server(&closed, None)), &says);
    let says =
        [&format!("error: cannot reach the cluster at {silent}: no answer within 5 s"), VERSION];
    check(&site, "a server that is silent", cluster(server(&silent, None)), &says);
    let nowhere = "https://no-such-host.invalid:6443";
    let says = [&format!("error: cannot reach the cluster at {nowhere}: dns error"), VERSION];
    check(&site, "a name that does not exist", cluster(server(nowhere, None)), &says);
    let says =
        ["invalid peer certificate: UnknownIssuer", "hint: compare certificate-authority-data"];
    let another_ca = |config: &mut Value| {
        let data = &mut config["clusters"][0]["cluster"]["certificate-authority-data"];
        *data = BASE64_STANDARD.encode(pebble.tls_ca_pem()).into();
    };
    check(&site, "another CA", another_ca, &says);
    let says = [
        &format!("error: what answers at {stranger} is no Kubernetes API server: "),
        "hint: kubectl config view --minify shows the URL",
    ];
    let other = cluster(server(stranger, Some(pebble.tls_ca_pem())));
    check(&site, "another server", other, &says);
    assert_eq!(site.applied(), 0);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_login_that_does_not_work_is_named() {
    let site = site();
    let user = |with: Value| move |config: &mut Value| config["users"][0]["user"] = with;
    let unauthorized = ["error: cannot log in to https://127.0.0.1:", ": Unauthorized", AGAIN];
    check(&site, "an expired token", user(json!({"token": "expired"})), &unauthorized);

    let missing = user(plugin("no-such-plugin", &[]));
    let says =
        ["cannot start log-in plugin no-such-plugin: No such file", "the cloud's tools", AGAIN];
    check(&site, "a plugin that is not installed", missing, &says);
    let failing =
        user(plugin("sh", &["-c", "echo token-of-ann; echo 'your session is over' >&2; exit 3"]));
    let says = ["log-in plugin sh ended with exit status: 3: your session is over", AGAIN];
    check(&site, "a plugin that fails", failing, &says);
    let chatty = user(plugin("echo", &["token-of-ann"]));
    let says = ["log-in plugin echo did not print an ExecCredential", AGAIN];
    check(&site, "a plugin that prints something else", chatty, &says);
    let credential = r#"{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "old"}}"#;
    let stale = user(plugin("echo", &[credential]));
    check(&site, "a plugin whose token has expired", stale, &unauthorized);

    let mut expired = CertificateParams::new([]).unwrap();
    expired.not_after = date_time_ymd(2020, 2, 1);
    let key = KeyPair::generate().unwrap();
    let expired = user(json!({
        "client-certificate-data": BASE64_STANDARD.encode(expired.self_signed(&key).unwrap().pem()),
        "client-key-data": BASE64_STANDARD.encode(key.serialize_pem()),
    }));
    let says = ["the client certificate of admin has expired on 2020-02-01T00:00:00Z", AGAIN];
    check(&site, "an expired certificate", expired, &says);

    let nobody = |config: &mut Value| config["users"] = json!([]);
    let says = [
        "error: cannot use the kubeconfig: its context bed names the user admin, which it does not have",
    ];
    check(&site, "a user that is not there", nobody, &says);

    let account = site.namespace.service_account("gone", "[]");
    site.namespace.kubectl().run(&["delete", "serviceaccount", "gone"]);
    site.run_as(account.kubeconfig(), "order -f web.yaml").check(
        "a revoked token",
        8,
        &unauthorized,
    );
    assert_eq!(site.applied(), 0);
}
