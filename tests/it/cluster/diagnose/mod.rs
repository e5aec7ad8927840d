//! `diagnose` on a real API server.

mod belonging;
mod control;
mod gateway;
mod inside;
mod looking;
mod nodes;
mod path;
mod peer;
mod stages;
mod tree;
mod turns;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::process::Output;
use std::thread;

use serde_json::{Value, json};

use crate::support::cluster::{Kubectl, Namespace};
use crate::support::program;

/// The rules of `deploy/rbac/look.yaml`.
pub(super) fn rules() -> String {
    let text = include_str!("../../../../deploy/rbac/look.yaml");
    let role: Value = serde_yaml::from_str(text.split("\n---\n").next().unwrap()).unwrap();
    role["rules"].to_string()
}

pub(super) fn diagnose(
    namespace: &Namespace<'_>,
    as_whom: &Kubectl,
    words: &[&str],
) -> (Output, Value) {
    let mut command = program::command();
    command.args(["diagnose", "--namespace", namespace.name(), "-o", "json"]).args(words);
    let output = command.env("KUBECONFIG", as_whom.kubeconfig()).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output, report)
}

pub(super) fn certificate(name: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": name},
        "spec": {
            "secretName": format!("{name}-tls"), "dnsNames": [format!("{name}.example.com")],
            "issuerRef": {"name": "absent"},
        },
    })
}

/// A proxy that lets nothing through, by its port.
fn refusing_proxy() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // What is asked matters not, that it was heard does.
            if stream.read(&mut [0; 4096]).is_err() {
                continue;
            }
            let answer = "HTTP/1.1 403 Forbidden\r\nVia: 1.1 proxy\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    port
}
