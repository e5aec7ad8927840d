//! Cases 73, 76, 77 and 80: the objects that answer HTTP-01, and our own look at the answer.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use serde_json::{Value, json};

use super::stage::{Manner, Stage, certificate, name};
use crate::support::cluster::Cluster;
use crate::support::http;

/// An Issuer's solver that holds its challenges.
fn solver(http01: &Value) -> Value {
    json!({"solvers": [{"http01": http01, "waitInsteadOfSelfCheck": "1h"}]})
}

/// Presents the challenge of one name by that solver; exactly one object of the kind comes, and looks like that.
fn check(stage: &Stage, http01: &Value, names: &Value, kind: &str, expected: &Value) {
    stage.apply(&[stage.issuer("acme", solver(http01))]);
    stage.apply(&[certificate("web", &[], names.clone())]);
    stage.sees_one("challenges", &json!({"status": {"presented": true}}));
    stage.sees_one(kind, expected);
    stage.kubectl.run(&["delete", "certificate", "web", "--cascade=foreground"]);
    stage.sees_none("challenges");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn objects_are_shaped_by_name_and_solver() {
    let stage = Stage::open("shapes").await;
    let host = stage.host("www");
    let named = json!({"dnsNames": [host]});
    let address = json!({"dnsNames": null, "ipAddresses": ["10.0.0.1"]});
    let rule = |host: Value| {
        let path = json!({"path": "/.well-known/acme-challenge/…", "pathType": "Exact"});
        json!([{"host": host, "http": {"paths": [path]}}])
    };
    let class = json!({"ingress": {"class": "nginx"}});
    let annotated = json!({
        "metadata": {"annotations": {"kubernetes.io/ingress.class": "nginx"}},
        "spec": {"ingressClassName": null, "rules": rule(host.clone().into())},
    });
    check(&stage, &class, &named, "ingresses", &annotated);
    let class = json!({"ingress": {"ingressClassName": "nginx"}});
    let field = json!({"spec": {"ingressClassName": "nginx", "rules": rule(Value::Null)}});
    check(&stage, &class, &address, "ingresses", &field);
    let gateway = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}});
    let route =
        |hosts: Value| json!({"spec": {"hostnames": hosts, "parentRefs": [{"name": "edge"}]}});
    check(&stage, &gateway, &named, "httproutes", &route(json!([host])));
    check(&stage, &gateway, &address, "httproutes", &route(Value::Null));

    let plain = json!({"spec": {"securityContext": {"runAsNonRoot": true}}});
    check(&stage, &class, &named, "pods", &plain);
    let template = json!({"spec": {"securityContext": {"runAsUser": 1001}}});
    let templated = json!({"ingress": {"podTemplate": template}});
    let context = json!({"runAsUser": 1001, "runAsNonRoot": null, "seccompProfile": null});
    check(&stage, &templated, &named, "pods", &json!({"spec": {"securityContext": context}}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn an_ipv6_address_stands_in_brackets() {
    let mut stage = Stage::set("brackets");
    let closed = ["::1", "[::1]"].map(str::to_owned).to_vec();
    stage.work(Manner { closed, ..Manner::default() }).await;
    stage.apply(&[stage.issuer("acme", json!({}))]);
    stage.apply(&[certificate("web", &[], json!({"dnsNames": null, "ipAddresses": ["::1"]}))]);
    let why = "Waiting for HTTP-01 challenge propagation: failed to perform self check GET request \
               'http://[::1]/.well-known/acme-challenge/…': …";
    let challenge = json!({"spec": {"dnsName": "::1"}, "status": {"reason": why}});
    stage.sees_one("challenges", &challenge);
}

/// A server that gives what the cluster serves, with a line break behind it.
fn with_line_break() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            // A client that goes away early is its own business.
            client.and_then(pass).ok();
        }
    });
    port
}

fn pass(mut client: TcpStream) -> std::io::Result<()> {
    let mut asked = [0; 4096];
    let length = client.read(&mut asked)?;
    let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
    let path = asked.split(' ').nth(1).unwrap_or_default();
    let lines = asked.lines().filter_map(|line| line.split_once(": "));
    let mut hosts = lines.filter(|(key, _)| key.eq_ignore_ascii_case("host")).map(|(_, host)| host);
    let host = hosts.next().unwrap_or_default();
    let body = http::get(Cluster::shared().http_port(), host, path)? + "\n";
    let length = body.len();
    write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_line_break_behind_the_answer_is_forgiven_as_the_ca_does() {
    let mut stage = Stage::set("breaks");
    let host = stage.host("www");
    let elsewhere = vec![(host.clone(), with_line_break())];
    stage.work(Manner { elsewhere, ..Manner::default() }).await;
    stage.apply(&[stage.issuer("acme", json!({})), certificate("web", &[&host], json!({}))]);
    stage.kubectl.wait_for("certificate/web", "Ready");
    let order = stage.sees_one("orders", &json!({"status": {"state": "valid"}}));
    assert!(name(&order).starts_with("web-1-"));
}
