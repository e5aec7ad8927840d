//! `kubectl acme` as people have it: kubectl finds the program in PATH, and TAB offers what the cluster holds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubectl_acme::model::{Kind, Record};
use kubectl_acme::store::cluster::{ClusterStore, Connection};
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Part, Store};
use serde_json::{Value, json};

use crate::support::bed;
use crate::support::cluster::{Cluster, Namespace, eventually};
use crate::support::program;

/// Moments of recordings whose objects are put into both stores: failed, waiting, held back, and issued ones.
const MOMENTS: [&str; 4] =
    ["01-http01-single/issued", "06-no-solver-matches", "12-cluster-issuer", "21-same-name-twice"];
/// Long after all objects are made, so that their ages are equal to the day.
const NOW: &str = "2036-01-01T00:00:00Z";

/// A person with our program and its helper in PATH, and objects in a namespace and in a state folder.
struct Desk {
    namespace: Namespace<'static>,
    folder: tempfile::TempDir,
    names: Vec<(Kind, String)>,
}

impl Desk {
    async fn new() -> Self {
        let namespace = Cluster::shared().namespace("plugin");
        let folder = tempfile::tempdir().unwrap();
        let mut desk = Self { namespace, folder, names: Vec::new() };
        let programs = desk.path("bin");
        fs::create_dir(&programs).unwrap();
        symlink(program::PATH, programs.join("kubectl-acme")).unwrap();
        let helper =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("completions/kubectl_complete-acme");
        bed::copy_program(helper, &programs.join("kubectl_complete-acme"));
        desk.fill().await;
        desk.write_kubeconfigs();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts the recorded objects into the cluster and into a local store.
    async fn fill(&mut self) {
        let kubeconfig = Some(Cluster::shared().kubeconfig());
        let connection = Connection { kubeconfig, ..Connection::default() };
        let cluster = ClusterStore::connect(&connection).await.unwrap();
        let local = LocalStore::open(&self.path("state"), Access::ReadWrite).unwrap();
        for object in recorded(self.namespace.name()) {
            let record = Record::new(object).unwrap();
            self.names.push((record.key.kind, record.key.name.name.clone()));
            put(&cluster, &record).await;
            put(&local, &record).await;
        }
    }

    /// A kubeconfig in two files, neither of which is enough; the context has our namespace.
    fn write_kubeconfigs(&self) {
        let text = fs::read_to_string(Cluster::shared().kubeconfig()).unwrap();
        let mut places: Value = serde_yaml::from_str(&text).unwrap();
        let users = json!({"apiVersion": "v1", "kind": "Config", "users": places["users"]});
        places["users"] = json!([]);
        places["contexts"][0]["context"]["namespace"] = self.namespace.name().into();
        let mut other = places["contexts"][0].clone();
        other["name"] = "other".into();
        other["context"]["namespace"] = "default".into();
        places["contexts"].as_array_mut().unwrap().push(other);
        fs::write(self.path("places"), places.to_string()).unwrap();
        fs::write(self.path("users"), users.to_string()).unwrap();
    }

    fn command(&self, program: &Path) -> Command {
        let bed = bed::program("kubectl").parent().map(Path::to_owned).unwrap();
        let path = [self.path("bin"), bed, "/usr/bin".into(), "/bin".into()];
        let kubeconfig = [self.path("places"), self.path("users")];
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("KUBECONFIG", std::env::join_paths(kubeconfig).unwrap())
            .env("HOME", self.folder.path())
            .env("KUBECTL_ACME_NOW", NOW)
            .current_dir(self.folder.path());
        command
    }

    /// Runs kubectl with these words.
    fn kubectl(&self, words: &[&str]) -> Output {
        self.command(&bed::program("kubectl")).args(words).output().unwrap()
    }

    /// Runs `kubectl acme` and returns what it prints.
    #[track_caller]
    fn acme(&self, words: &[&str]) -> String {
        said(&self.kubectl(&[&["acme"], words].concat()), 0)
    }

    /// Name of the first object of a kind.
    fn first(&self, kind: Kind) -> &str {
        &self.names.iter().find(|(of, _)| *of == kind).unwrap().1
    }
}

/// Returns standard output after a look at the exit code.
#[track_caller]
fn said(output: &Output, code: i32) -> String {
    let talk = String::from_utf8_lossy(&output.stderr);
    let result = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(code), "{talk}\n{result}");
    result
}

/// The recorded objects, moved into a namespace; what is in none gets the namespace's name.
fn recorded(namespace: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    for moment in MOMENTS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pairs").join(moment);
        let mut files = files(&root);
        files.sort();
        for file in files {
            let object: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
            objects.extend(moved(object, moment, namespace));
        }
    }
    objects
}

/// Files with objects of one moment, the last one where the folder has several.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = || fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    match entries().filter(|path| path.is_dir()).max() {
        Some(moment) => files(&moment),
        None => entries().filter(|path| path.to_string_lossy().ends_with(".object.json")).collect(),
    }
}

fn moved(mut object: Value, moment: &str, namespace: &str) -> Option<Value> {
    let kind = Kind::parse(object["kind"].as_str()?).filter(|kind| Kind::SIX.contains(kind))?;
    let old = &object["metadata"];
    // The same name may be in several recordings.
    let name = format!("r{}-{}", &moment[..2], old["name"].as_str()?);
    let mut metadata = json!({"name": name, "namespace": namespace, "labels": old["labels"]});
    if !kind.is_namespaced() {
        metadata = json!({"name": format!("{namespace}-{name}")});
    }
    object["metadata"] = metadata;
    Some(object)
}

async fn put(store: &dyn Store, record: &Record) {
    let made = store.create(record.clone()).await.unwrap();
    let mut whole = made.object;
    whole["status"] = record.object["status"].clone();
    store.replace(Record::new(whole).unwrap(), Part::Status).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn kubectl_finds_the_plugin_and_hands_everything_on() {
    let desk = Desk::new().await;
    let listed = desk.kubectl(&["plugin", "list"]);
    let plugins = said(&listed, 0);
    let ours = desk.path("bin/kubectl-acme").display().to_string();
    assert!(plugins.contains(&ours) && !plugins.contains("warning"), "{plugins}");
    assert_eq!(String::from_utf8_lossy(&listed.stderr), "");

    let (order, place) = (desk.first(Kind::Order), desk.namespace.name());
    let table = desk.acme(&["order", "get"]);
    assert!(table.starts_with("NAME ") && table.contains(order), "{table}");
    assert_eq!(desk.acme(&["order", "get", "-n", place]), table);
    assert!(!desk.acme(&["order", "get", "--context", "other"]).contains(order));
    let everywhere = desk.acme(&["get", "orders", "-A"]);
    assert!(everywhere.starts_with("NAMESPACE "), "{everywhere}");
    assert!(everywhere.lines().any(|line| line.starts_with(place)), "{everywhere}");
    let listed: Value =
        serde_json::from_str(&desk.acme(&["get", "certificates", "-o", "json"])).unwrap();
    assert_eq!(listed["kind"], "List");
    assert_eq!(listed["items"][0]["metadata"]["namespace"], place);

    let help = desk.acme(&["get", "--help"]);
    assert!(help.contains("Usage: kubectl acme get "), "{help}");
    let misused = desk.kubectl(&["acme", "get"]);
    said(&misused, 2);
    let usage = String::from_utf8_lossy(&misused.stderr);
    assert!(usage.contains("Usage: kubectl acme get "), "{usage}");
    let alone = desk.command(&desk.path("bin/kubectl-acme")).args(["get", "-h"]).output().unwrap();
    assert!(said(&alone, 0).contains("acme get "));

    // kubectl takes no name that it would not take itself.
    let stranger = desk.kubectl(&["acme", "get", "orders", "--as", "ann"]);
    said(&stranger, 8);
    let refused = String::from_utf8_lossy(&stranger.stderr);
    assert!(refused.contains("no permission to list orders.acme.cert-manager.io"), "{refused}");
    let question = "kubectl --as ann auth can-i list orders.acme.cert-manager.io";
    assert!(refused.contains(question), "{refused}");
    let admin = ["order", "get", "--as=ann", "--as-group=system:masters"];
    assert_eq!(desk.acme(&admin), table);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn kubectl_offers_commands_and_names() {
    let desk = Desk::new().await;
    let complete =
        |words: &[&str]| said(&desk.kubectl(&[&["__complete", "acme"], words].concat()), 0);
    let commands = complete(&["ord"]);
    assert!(commands.starts_with("order\t"), "{commands}");
    let (order, place) = (desk.first(Kind::Order), desk.namespace.name());
    // The first words come from the context, the others from flags before and behind the command.
    for words in [
        &["order", "get", ""][..],
        &["get", "order", "r"],
        &["describe", "order/"],
        &["order", "get", "-n", place, "--context=other", ""],
        &["--as=ann", "--as-group=system:masters", "order", "get", ""],
    ] {
        // On a busy machine the names may come too late for whoever waits at TAB.
        let offered = eventually("names to be offered", || {
            let offered = complete(words);
            offered.contains(order).then_some(offered)
        });
        assert!(offered.trim_end().ends_with(":4"), "no file names: {offered}");
    }
    let spaces = || complete(&["order", "get", "-n", place]).contains(place).then_some(());
    eventually("namespaces to be offered", spaces);
    assert_eq!(complete(&["get", "order", "--context=o"]).lines().next(), Some("other"));
    assert_eq!(complete(&["order", "-f", ""]).lines().next(), Some(":0"));
    let elsewhere = complete(&["order", "get", "--context", "other", ""]);
    assert!(!elsewhere.contains(order), "{elsewhere}");
    let unknown = complete(&["order", "get", "--context", "none", ""]);
    assert_eq!(unknown.lines().next(), Some(":4"), "silent about whatever goes wrong: {unknown}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn both_stores_print_the_same_tables() {
    let desk = Desk::new().await;
    let local = format!("--local={}", desk.path("state").display());
    let place = desk.namespace.name();
    let issuer = desk.first(Kind::ClusterIssuer);
    let mut listings: Vec<Vec<&str>> = vec![
        vec!["get", "certificates,certificaterequests,orders,challenges,issuers"],
        vec!["get", "clusterissuer", issuer],
        vec!["order", "get"],
        vec!["challenge", "get"],
    ];
    let plurals = Kind::SIX.map(Kind::plural);
    listings.extend(
        plurals.iter().filter(|kind| *kind != "clusterissuers").map(|kind| vec!["get", kind]),
    );
    for listing in &listings {
        let formats: [&[&str]; 4] = [&[], &["-o", "wide"], &["-o", "name"], &["--show-labels"]];
        for format in formats {
            let words = [&listing[..], format].concat();
            let in_cluster = desk.acme(&words);
            let here = desk.acme(&[&words[..], &["-n", place, &local]].concat());
            assert_eq!(in_cluster, here, "{words:?}");
            assert!(in_cluster.lines().count() > 1 || format.contains(&"name"), "{words:?}");
        }
    }
}

/// What a kubelet would do for a Pod: it puts the account's files where every Pod has them, which here needs a file system of
/// the process's own.
const POD: &str = r#"
mount -t tmpfs none /run && mkdir -p "$PLACE" && cp account/* "$PLACE" && exec kubectl-acme "$@"
"#;

impl Desk {
    /// Writes the files that a Pod of a service account gets; that account may list Orders.
    fn write_account(&self) {
        let rules = r#"[{"apiGroups": ["acme.cert-manager.io"], "resources": ["orders"], "verbs": ["list"]}]"#;
        let account = self.namespace.service_account("pod", rules);
        let text = fs::read_to_string(account.kubeconfig()).unwrap();
        let config: Value = serde_yaml::from_str(&text).unwrap();
        let token = config["users"][0]["user"]["token"].as_str().unwrap();
        let ca = config["clusters"][0]["cluster"]["certificate-authority-data"].as_str().unwrap();
        fs::create_dir(self.path("account")).unwrap();
        for (name, content) in [
            ("token", token.as_bytes()),
            ("ca.crt", &STANDARD.decode(ca).unwrap()),
            ("namespace", self.namespace.name().as_bytes()),
        ] {
            fs::write(self.path("account").join(name), content).unwrap();
        }
    }

    /// Runs our program with the environment of a Pod.
    fn in_pod(&self, words: &[&str]) -> Output {
        let places = fs::read_to_string(self.path("places")).unwrap();
        let places: Value = serde_json::from_str(&places).unwrap();
        let server = places["clusters"][0]["cluster"]["server"].as_str().unwrap();
        let (host, port) = server.strip_prefix("https://").unwrap().split_once(':').unwrap();
        let mut command = self.command(Path::new("/usr/bin/unshare"));
        command
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", POD, "pod"])
            .args(words)
            .env("PLACE", "/run/secrets/kubernetes.io/serviceaccount")
            .env("KUBERNETES_SERVICE_HOST", host)
            .env("KUBERNETES_SERVICE_PORT", port)
            .env_remove("KUBECONFIG");
        command.output().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_pod_finds_its_cluster_by_its_service_account() {
    let desk = Desk::new().await;
    desk.write_account();
    let table = said(&desk.in_pod(&["get", "orders"]), 0);
    assert_eq!(table, desk.acme(&["get", "orders"]), "the namespace is the Pod's own");
    let refused = desk.in_pod(&["get", "certificates"]);
    said(&refused, 8);
    let talk = String::from_utf8_lossy(&refused.stderr);
    assert!(talk.contains("no permission to list certificates.cert-manager.io"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_pod_without_its_service_account_is_told() {
    let desk = Desk::new().await;
    let mut command = desk.command(&desk.path("bin/kubectl-acme"));
    // As in a Pod with automountServiceAccountToken: false.
    command.env_remove("KUBECONFIG").env("KUBERNETES_SERVICE_HOST", "127.0.0.1");
    let output = command.env("KUBERNETES_SERVICE_PORT", "6443").args(["get", "orders"]).output();
    let output = output.unwrap();
    said(&output, 2);
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(talk.contains("the service account of this Pod cannot be used"), "{talk}");
}
