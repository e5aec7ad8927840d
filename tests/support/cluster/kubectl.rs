//! kubectl, as a user has it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::super::bed::program;
use super::api::{self, Api};
use super::eventually;
use super::site::LESS_COLLECTION;

/// kubectl with one user's kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubectl {
    kubeconfig: PathBuf,
    namespace: Option<String>,
}

impl Kubectl {
    pub(super) fn new(kubeconfig: PathBuf, namespace: Option<String>) -> Self {
        Self { kubeconfig, namespace }
    }

    /// The kubeconfig of its user.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs it and returns what it printed; fails the test when it fails.
    pub fn run(&self, arguments: &[&str]) -> String {
        self.try_run(arguments)
            .unwrap_or_else(|error| panic!("kubectl {}: {error}", arguments.join(" ")))
    }

    /// Runs it and returns what it printed, or what it complained about.
    pub fn try_run(&self, arguments: &[&str]) -> Result<String, String> {
        self.feed(arguments, "")
    }

    /// Applies a manifest.
    pub fn apply(&self, manifest: &str) {
        self.feed(&["apply", "-f", "-"], manifest)
            .unwrap_or_else(|error| panic!("kubectl apply: {error}\n{manifest}"));
    }

    /// Applies a manifest server-side, with kubectl's own name for the manager.
    pub fn apply_server_side(&self, manifest: &str) {
        self.feed(&["apply", "--server-side", "-f", "-"], manifest)
            .unwrap_or_else(|error| panic!("kubectl apply: {error}\n{manifest}"));
    }

    /// Returns an object or a list, such as `certificate/web` or `pods`.
    pub fn object(&self, what: &str) -> Value {
        self.read(what, Some(self.namespace.as_deref().unwrap_or("default")))
    }

    /// Returns the items of a kind.
    pub fn items(&self, kind: &str) -> Vec<Value> {
        self.object(kind)["items"].as_array().cloned().unwrap_or_default()
    }

    /// The items of a kind in all namespaces.
    pub fn everywhere(&self, kind: &str) -> Vec<Value> {
        self.read(kind, None)["items"].as_array().cloned().unwrap_or_default()
    }

    fn read(&self, what: &str, namespace: Option<&str>) -> Value {
        let path = api::path(what, namespace).unwrap_or_else(|| panic!("no path for {what}"));
        let api = Api::of(&self.kubeconfig);
        let read = api::wait(async move { api.read(&path).await });
        read.unwrap_or_else(|error| panic!("reading {what}: {error:?}"))
    }

    /// The items of a kind that are not being deleted: a Pod goes only when its kubelet has ended it.
    pub fn standing(&self, kind: &str) -> Vec<Value> {
        let mut items = self.items(kind);
        items.retain(|item| item["metadata"]["deletionTimestamp"].is_null());
        items
    }

    /// Waits until a condition of an object is true.
    pub fn wait_for(&self, object: &str, condition: &str) {
        let condition = format!("--for=condition={condition}");
        let mut complaint = String::new();
        // It refuses to wait for what is not there yet, and stops when the API server does.
        eventually(&format!("{object} {condition}"), || {
            let result = self.try_run(&["wait", object, &condition, "--timeout=20s"]);
            result.map_err(|error| complaint = error).ok()
        });
    }

    fn feed(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = Command::new(program("kubectl"));
        command.arg("--kubeconfig").arg(&self.kubeconfig).env_remove("KUBECONFIG");
        command.env("GOGC", LESS_COLLECTION);
        if let Some(namespace) = &self.namespace {
            command.args(["--namespace", namespace]);
        }
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl starts");
        // A kubectl that does not read its input closes it.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        let output = child.wait_with_output().unwrap();
        if output.status.success() {
            return Ok(String::from_utf8(output.stdout).unwrap());
        }
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
