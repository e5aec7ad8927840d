//! Answers of a server in trouble: a proxy stands before it.

use std::fs;
use std::net::TcpListener;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use url::Url;

use super::site::Site;
use crate::support::certificates::LocalCertificates;
use crate::support::cluster::Cluster;
use crate::support::fault::Fault;
use crate::support::proxy::Proxy;

/// A site whose server is behind a proxy; only bearers of a token get through.
fn behind_proxy() -> (Site<'static>, Proxy) {
    let site = Site::new(Cluster::shared(), "answers");
    let rules = "[{apiGroups: [cert-manager.io], resources: [certificates], verbs: [get, list]}]";
    let account = site.namespace.service_account("reader", rules);
    let kubeconfig = fs::read_to_string(account.kubeconfig()).unwrap();
    let mut kubeconfig: Value = serde_yaml::from_str(&kubeconfig).unwrap();
    let cluster = kubeconfig["clusters"][0]["cluster"].take();
    let url: Url = cluster["server"].as_str().unwrap().parse().unwrap();
    let authority = cluster["certificate-authority-data"].as_str().unwrap();
    let authority = String::from_utf8(BASE64_STANDARD.decode(authority).unwrap()).unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let front = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let certificates = LocalCertificates::generate();
    let proxy = Proxy::between(listener, &certificates, &front, url.port().unwrap(), &authority);
    kubeconfig["clusters"][0]["cluster"] = json!({"server": front, "certificate-authority-data": BASE64_STANDARD.encode(&certificates.ca)});
    site.write("kubeconfig", &kubeconfig.to_string());
    (site, proxy)
}

fn failure(code: u16, message: &str) -> Fault {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": message,
    });
    Fault::status(code).header("Content-Type", "application/json").body(&status.to_string())
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_server_in_trouble_is_quoted_and_one_that_asks_for_patience_gets_it() {
    let (site, proxy) = behind_proxy();
    let list =
        format!("could not list certificates.cert-manager.io in namespace {}: ", site.name());
    let page = "<html><head>502 Bad Gateway</head>\n<body>nginx</body></html>";
    for (what, fault, code, says) in [
        ("nothing", Fault::status(500).times(0), 0, "No resources found"),
        ("haste", Fault::status(429).header("Retry-After", "1").times(2), 0, "No resources found"),
        (
            "a full disk",
            failure(500, "etcdserver: mvcc: database space exceeded"),
            8,
            &*format!("{list}etcdserver: mvcc: database space exceeded\nhint: try again later"),
        ),
        ("a start", failure(503, "apiserver not ready"), 8, &format!("{list}apiserver not ready")),
        (
            "a page",
            Fault::status(502).body(page),
            8,
            &format!("{list}<html><head>502 Bad Gateway</head>\n"),
        ),
        (
            "a greeting",
            Fault::status(200).body("<html>log in</html>"),
            8,
            "is no Kubernetes API server: ",
        ),
        (
            "a lost connection",
            Fault::drop_request(),
            8,
            "error: cannot reach the cluster at https://localhost:",
        ),
        ("a forgotten list", failure(410, "too old").times(2), 0, "No resources found"),
    ] {
        proxy.forget();
        proxy.inject(fault);
        let words = format!("get certificates -n {}", site.name());
        let kubeconfig = site.write("unused", "").with_file_name("kubeconfig");
        site.run_as(&kubeconfig, &words).check(what, code, &[says]);
    }
}
