//! A load balancer whose nodes do not all lead to the Ingress controller.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::json;

use super::path::{Stuck, is_running, make_class, through, wait_for_answer};
use crate::support::cluster::{Cluster, eventually};
use crate::support::full_port::FullPort;
use crate::support::lab;
use crate::support::name_server::NameServer;

/// A node that leads to the Ingress controller, which listens at a port of this machine.
fn node(address: &str, port: u16) {
    let listener = TcpListener::bind(address).unwrap_or_else(|why| {
        panic!("cannot listen at {address}: {why}; be root, or sysctl net.ipv4.ip_unprivileged_port_start=53")
    });
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let (mut from, mut to) = (stream.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || io::copy(&mut from, &mut to).ok());
            thread::spawn(move || io::copy(&mut server, &mut stream).ok());
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster and port 80: run by just cluster"]
async fn http_27_some_nodes_of_a_local_policy_are_silent() {
    let mut stuck = Stuck::ordered("path-nodes", &through("path-nodes"), &[], is_running);
    make_class(&stuck, "path-nodes");
    stuck.port = Cluster::shared().http_port();
    wait_for_answer(&stuck);
    node("127.86.90.1:80", stuck.port);
    let _silent = FullPort::open("127.86.90.2:80");
    let dns = NameServer::start(stuck.bench.folder().join("dns.log"));
    eventually("the name server", || dns.look().ok());
    dns.add_a(&stuck.host(), &["127.86.90.1", "127.86.90.2"]);
    let kubectl = stuck.kubectl();
    let of = |policy: &str| {
        let balancer = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge"},
            "spec": {
                "type": "LoadBalancer", "externalTrafficPolicy": policy, "selector": {"app": "edge"},
                "ports": [{"name": "http", "port": 80}],
            },
        });
        kubectl.apply(&balancer.to_string());
        // No cloud gives addresses to load balancers here.
        let addresses = json!([{"ip": "127.86.90.1"}, {"ip": "127.86.90.2"}]);
        stuck.patch_status("service/edge", &json!({"loadBalancer": {"ingress": addresses}}));
        let asked = format!("--dns={}", dns.address());
        stuck.diagnose_by(&asked, 0, &["certificate/web"]).1
    };
    let report = of("Local");
    let first = lab::names_first(&report, "HTTP-27");
    assert!(first["message"].as_str().unwrap().contains("127.86.90.2"), "{first:#}");
    let evidence = first["evidence"].to_string();
    assert!(evidence.contains("/edge: spec.externalTrafficPolicy"), "{first:#}");
    // With the other policy each node leads everywhere: then it is something else.
    let report = of("Cluster");
    let causes: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["cause"].as_str().unwrap())
        .collect();
    assert!(!causes.is_empty() && !causes.contains(&"HTTP-27"), "{report:#}");
}
