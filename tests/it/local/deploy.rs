//! What `deploy/` hands out: images, the Deployment, krew's manifest.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::program;
use serde_json::Value;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(HERE).join("deploy").join(path)).unwrap()
}

/// The documents of a manifest in `deploy/`.
fn documents(path: &str) -> Vec<Value> {
    let text = file(path);
    text.split("\n---\n").map(|document| serde_yaml::from_str(document).unwrap()).collect()
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap()
}

/// Words that our program takes; `--help` keeps it from doing anything.
fn is_understood(words: &[&str]) {
    let output = program::command().args(words).arg("--help").output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_images_start_the_program_with_words_that_it_knows() {
    let text = file("Containerfile");
    let lines = |word: &str| -> Vec<Vec<String>> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (entries, commands) = (lines("ENTRYPOINT "), lines("CMD "));
    assert_eq!((entries.len(), commands.len()), (2, 1));
    for entry in entries.iter().chain(&commands) {
        let words: Vec<&str> = entry.iter().map(String::as_str).collect();
        let words = words.strip_prefix(&["/usr/local/bin/kubectl-acme"]).unwrap_or(&words);
        is_understood(words);
    }
    assert!(text.contains("\nUSER 65532:65532\n"));
}

#[test]
fn every_image_that_is_fetched_can_be_named_by_its_digest() {
    let text = file("Containerfile");
    let lines = |word: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix(word)).map(str::to_owned).collect()
    };
    let stages: Vec<_> = lines("FROM ");
    let made = stages.iter().filter_map(|stage| stage.split_once(" AS ")).map(|(_, name)| name);
    let made: Vec<_> = made.chain(["scratch"]).collect();
    let fetched = stages.iter().map(|stage| stage.split(' ').next().unwrap());
    let fetched: Vec<_> = fetched.filter(|image| !made.contains(image)).collect();
    assert_eq!(fetched, ["${RUST}"]);
    assert_eq!(lines("ARG "), ["RUST=rust:1-bookworm"]);
}

/// Every rule about Leases in a file of Roles.
fn lease_rules(path: &str) -> Vec<Value> {
    let rules = documents(path).into_iter().filter_map(|role| role["rules"].as_array().cloned());
    let about_leases =
        |rule: &Value| rule["resources"].as_array().unwrap().contains(&"leases".into());
    rules.flatten().filter(about_leases).collect()
}

#[test]
fn the_lease_is_permitted_by_name_where_a_name_can_be_given() {
    for path in ["rbac/run.yaml", "rbac/one-shot.yaml", "rbac/order.yaml"] {
        let rules = lease_rules(path);
        assert!(!rules.is_empty(), "{path}");
        for rule in rules {
            if rule["verbs"] == serde_json::json!(["create"]) {
                assert!(
                    file(path)
                        .contains("# Names cannot be given for objects that are not there yet")
                );
                continue;
            }
            assert_eq!(
                rule["resourceNames"],
                serde_json::json!(["cert-manager-controller"]),
                "{path}"
            );
        }
    }
    assert!(
        lease_rules("rbac/order.yaml")
            .iter()
            .all(|rule| rule["verbs"] == serde_json::json!(["get"]))
    );
}

#[test]
fn the_images_are_built_from_all_that_the_program_includes() {
    let text = file("Containerfile");
    let copied: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("COPY ")).collect();
    let sources = fs::read_to_string(Path::new(HERE).join("src/permissions/recipes.rs")).unwrap();
    let included = sources.split("include_str!(\"../../").skip(1);
    let included: Vec<_> = included.map(|rest| rest.split_once('"').unwrap().0).collect();
    assert_eq!(included.len(), 4);
    for path in included {
        let folder = Path::new(path).parent().unwrap().display();
        assert!(copied.contains(&&*format!("{folder} {folder}")), "{path}: {copied:?}");
    }
}

#[test]
fn the_deployment_starts_the_program_with_words_that_it_knows() {
    let documents = documents("run.yaml");
    let deployment = of_kind(&documents, "Deployment");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let words = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    is_understood(&words.collect::<Vec<_>>());
    assert_eq!(container["resources"]["limits"]["memory"], "512Mi");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(container["image"], format!("kubectl-acme:{version}"));
    assert!(file("Containerfile").contains(&format!("-t kubectl-acme:{version} ")));
}

/// Makes krew's manifest of an archive with that name, in which the files are.
fn render(name: &str, files: &[&str]) -> (Output, String) {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        fs::write(folder.path().join(file), file).unwrap();
    }
    let archive = folder.path().join(name);
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).arg("-C").arg(folder.path()).args(files);
    assert!(tar.status().unwrap().success());
    let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let output = Command::new(Path::new(HERE).join("deploy/krew/render"))
        .args(["0.1.0", "https://example.com", "https://example.com/v0.1.0"])
        .arg(&archive)
        .output()
        .unwrap();
    (output, sum.split(' ').next().unwrap().to_owned())
}

#[test]
fn krew_is_told_where_a_release_is_and_what_is_in_it() {
    let (output, sum) = render("kubectl-acme-linux-amd64.tar.gz", &["kubectl-acme", "LICENSE"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest: Value = serde_yaml::from_str(&String::from_utf8(output.stdout).unwrap()).unwrap();
    assert_eq!(manifest["metadata"]["name"], "acme");
    assert_eq!(manifest["spec"]["version"], "v0.1.0");
    assert_eq!(
        manifest["spec"]["platforms"][0],
        serde_json::json!({
            "selector": { "matchLabels": { "os": "linux", "arch": "amd64" } },
            "uri": "https://example.com/v0.1.0/kubectl-acme-linux-amd64.tar.gz",
            "sha256": sum,
            "bin": "kubectl-acme",
        })
    );
}

#[test]
fn krew_is_told_of_no_archive_that_it_could_not_use() {
    for (name, files, complaint) in [
        (
            "acme.tar.gz",
            &["kubectl-acme", "LICENSE"][..],
            "it is not named kubectl-acme-OS-ARCH.tar.gz",
        ),
        ("kubectl-acme-linux-arm64.tar.gz", &["kubectl-acme"], "LICENSE is not in it"),
    ] {
        let (output, _) = render(name, files);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(talk.contains(complaint), "{talk}");
        assert!(output.stdout.is_empty());
    }
}

mod cluster {
    use super::*;
    use crate::support::cluster::Cluster;

    #[test]
    #[ignore = "needs a cluster: run by just cluster"]
    fn a_cluster_takes_the_deployment_and_its_pods() {
        let kubectl = Cluster::shared().kubectl();
        let folder = Path::new(HERE).join("deploy");
        for manifest in ["rbac/run.yaml", "run.yaml"] {
            // The namespace is in the second one: a person applies both, and again.
            let manifest = folder.join(manifest);
            kubectl.run(&["apply", "--server-side", "-f", manifest.to_str().unwrap()]);
        }
        let documents = documents("run.yaml");
        let mut pod = of_kind(&documents, "Deployment")["spec"]["template"].clone();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = "replica".into();
        pod["metadata"]["namespace"] = "kubectl-acme".into();
        // The namespace admits restricted Pods only.
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("pod.json");
        fs::write(&manifest, pod.to_string()).unwrap();
        kubectl.run(&["create", "--dry-run=server", "-f", manifest.to_str().unwrap()]);
    }
}
