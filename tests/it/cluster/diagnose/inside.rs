//! `diagnose --probe-image`: what a Pod sees, beside what is seen from here.

use std::process::Command;

use serde_json::Value;

use super::path::page_at;
use super::peer::{Scene, has_reason, look_in};
use crate::support::bed::free_port;
use crate::support::cluster::{Arena, Cluster, OUR_IMAGE, eventually};
use crate::support::lab;

/// Our image, as a stand-in for one that is published.
fn image() -> String {
    format!("--probe-image={OUR_IMAGE}:test")
}

/// A name whose answer is up, and that cert-manager's self-checks do not reach.
fn unreached<'c>(arena: &'c Arena, name: &str) -> Scene<'c> {
    let scene = Scene::through(arena, name, free_port(), &[]);
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until("challenges", |one| one["status"]["presented"] == true && has_reason(one));
    scene
}

/// Pods that look, and are not on their way out.
fn probe_pods(scene: &Scene<'_>) -> Vec<Value> {
    let is_ours = |pod: &Value| pod["metadata"]["labels"]["kubectl-acme/probe"].is_string();
    let pods = scene.bench.namespace.kubectl().standing("pods");
    pods.into_iter().filter(is_ours).collect()
}

/// What stands in for a node again, as it is usually.
struct Restored<'c>(&'c Cluster);

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        self.0.stop_stand_in();
        self.0.start_stand_in();
    }
}

/// The guide's item "check if your cluster can see it too, from inside a Pod" (HTTP-08).
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_http01_is_seen_from_the_internet_and_not_from_a_pod() {
    let arena = Arena::enter();
    let scene = unreached(&arena, "hairpin");
    // Later, so that what the self-check says is no matter of the first minute.
    let first = |words: &[&str]| {
        let report = eventually("the answer of the solver, from here", || {
            let (_, report) = look_in(&scene.bench, 5, words);
            (report["findings"][0]["cause"] == "HTTP-08").then_some(report)
        });
        lab::names_first(&report, "HTTP-08");
        report
    };
    let report = first(&["web"]);
    assert_eq!(report["findings"][0]["grade"], "likely", "{report:#}");
    assert!(report["findings"][0]["evidence"].to_string().contains("status.reason"), "{report:#}");

    arena.stop_stand_in();
    let _restored = Restored(&arena);
    arena.start_stand_in_astray(([127, 0, 0, 1], free_port()).into());
    let report = first(&["web", &image()]);
    let finding = &report["findings"][0];
    assert_eq!(finding["grade"], "certain", "{report:#}");
    assert!(finding["evidence"][0]["vantage"]["pod"]["name"].is_string(), "{report:#}");
    let sees = report["views"][0]["sees"].as_array().unwrap();
    let wrong: Vec<&Value> = sees.iter().map(|row| &row["isWrong"]).collect();
    assert_eq!(wrong, [&Value::Bool(false), &Value::Bool(true)], "{report:#}");
    let words = ["diagnose", "web", &image()];
    let page = scene.bench.run(&scene.bench.namespace.kubectl(), &words);
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(page.contains("Different views of the answer for web."), "{page}");
    assert!(page.contains("inside the cluster (Pod kubectl-acme-probe-"), "{page}");
    assert!(probe_pods(&scene).is_empty());
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn http_09_the_name_leads_to_another_server_inside_the_cluster() {
    let arena = Arena::enter();
    let scene = unreached(&arena, "split");
    arena.stop_stand_in();
    let _restored = Restored(&arena);
    let inner = page_at("127.86.91.1:0", "404 Not Found");
    arena.start_stand_in_astray(inner);
    let report = eventually("the answer of the solver, from here", || {
        let (_, report) = look_in(&scene.bench, 5, &["web", &image()]);
        (report["findings"][0]["cause"] == "HTTP-09").then_some(report)
    });
    let first = lab::names_first(&report, "HTTP-09");
    assert_eq!(first["grade"], "certain", "{report:#}");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("127.86.91.1") && message.contains("127.0.0.1"), "{first:#}");
    assert!(message.contains("from inside the cluster"), "{first:#}");
    assert!(first["evidence"][0]["vantage"]["pod"]["name"].is_string(), "{report:#}");
    assert!(probe_pods(&scene).is_empty());
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_pod_that_sees_the_answer_clears_the_cluster() {
    let arena = Arena::enter();
    let scene = unreached(&arena, "inner");
    let report = eventually("the answer of the solver", || {
        let (_, report) = look_in(&scene.bench, 5, &["web", &image()]);
        report["findings"].as_array().unwrap().is_empty().then_some(report)
    });
    lab::names_none(&report, "an answer that is seen from here and from a Pod");
    assert!(report["views"].as_array().unwrap().is_empty(), "{report:#}");
    assert!(probe_pods(&scene).is_empty());
    // A domain has no Challenge: the Pod looks from the namespace that is asked for.
    let host = scene.certificate()["spec"]["dnsNames"][0].as_str().unwrap().to_owned();
    let domain = format!("other.{host}");
    let (_, report) = look_in(&scene.bench, 0, &[&domain, &image()]);
    assert!(report["unseen"].as_array().unwrap().is_empty(), "{report:#}");
    assert!(probe_pods(&scene).is_empty());
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn an_interrupted_look_takes_its_pod_away() {
    let arena = Arena::enter();
    let scene = unreached(&arena, "interrupted");
    // Nobody runs the Pod.
    arena.stop_stand_in();
    let _restored = Restored(&arena);
    let kubectl = scene.bench.namespace.kubectl();
    let running = scene.bench.start(&kubectl, &["diagnose", "web", &image()]);
    eventually("the Pod", || (probe_pods(&scene).len() == 1).then_some(()));
    running.interrupt();
    running.ends(130);
    assert!(probe_pods(&scene).is_empty());
    let mut command = scene.bench.command(&kubectl, &["diagnose", "web", "--local", &image()]);
    command.env_remove("KUBECONFIG");
    assert_eq!(usage(&mut command), Some(2));
}

fn usage(command: &mut Command) -> Option<i32> {
    command.output().unwrap().status.code()
}
