//! The API server by HTTP, for what tests look at again and again: a kubectl for each look costs more than all that is tested.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, mpsc};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::super::bed::PATIENCE;

/// Singular and plural of the kinds that are looked at, and the API that serves them.
const RESOURCES: [(&str, &str, &str); 14] = [
    ("certificate", "certificates", "/apis/cert-manager.io/v1"),
    ("certificaterequest", "certificaterequests", "/apis/cert-manager.io/v1"),
    ("challenge", "challenges", "/apis/acme.cert-manager.io/v1"),
    ("clusterissuer", "clusterissuers", "/apis/cert-manager.io/v1"),
    ("crd", "crds", "/apis/apiextensions.k8s.io/v1"),
    ("event", "events", "/api/v1"),
    ("httproute", "httproutes", "/apis/gateway.networking.k8s.io/v1"),
    ("ingress", "ingresses", "/apis/networking.k8s.io/v1"),
    ("issuer", "issuers", "/apis/cert-manager.io/v1"),
    ("lease", "leases", "/apis/coordination.k8s.io/v1"),
    ("order", "orders", "/apis/acme.cert-manager.io/v1"),
    ("pod", "pods", "/api/v1"),
    ("secret", "secrets", "/api/v1"),
    ("service", "services", "/api/v1"),
];

/// Which of them have no namespace.
const OF_THE_CLUSTER: [&str; 2] = ["clusterissuers", "crds"];

/// The API server as one user sees it.
#[derive(Clone)]
pub(super) struct Api {
    client: reqwest::Client,
    server: String,
    authorization: Option<String>,
}

/// Where requests of tests run, which may be asynchronous themselves.
fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    });
    &RUNTIME
}

/// Waits for an answer on whatever thread.
pub(super) fn wait<T: Send + 'static>(answer: impl Future<Output = T> + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    runtime().spawn(async move { sender.send(answer.await) });
    receiver.recv().expect("the request ends")
}

/// The path of a kind, or of an object (`certificate/web`), as kubectl would understand the word; no namespace means all of them.
pub(super) fn path(what: &str, namespace: Option<&str>) -> Option<String> {
    let (kind, name) = what.split_once('/').map_or((what, None), |(kind, name)| (kind, Some(name)));
    let (_, plural, api) = RESOURCES.iter().find(|(one, many, _)| [one, many].contains(&&kind))?;
    let within = namespace.filter(|_| !OF_THE_CLUSTER.contains(plural));
    let within = within.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    let plural = if *plural == "crds" { "customresourcedefinitions" } else { plural };
    let name = name.map(|name| format!("/{name}")).unwrap_or_default();
    Some(format!("{api}{within}/{plural}{name}"))
}

impl Api {
    /// As the user of a kubeconfig; connections are kept.
    pub(super) fn of(kubeconfig: &Path) -> Self {
        static KNOWN: Mutex<BTreeMap<PathBuf, Api>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap();
        known.entry(kubeconfig.to_owned()).or_insert_with(|| Self::new(kubeconfig)).clone()
    }

    fn new(kubeconfig: &Path) -> Self {
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let config: Value = serde_json::from_str(&fs::read_to_string(kubeconfig).unwrap()).unwrap();
        let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str);
        let decode = |pointer: &str| text(pointer).map(|text| STANDARD.decode(text).unwrap());
        let ca = decode("/clusters/0/cluster/certificate-authority-data").unwrap();
        let mut client = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(&ca).unwrap()])
            .no_proxy();
        if let Some(key) = decode("/users/0/user/client-key-data") {
            let certificate = decode("/users/0/user/client-certificate-data").unwrap();
            let identity = reqwest::Identity::from_pem(&[key, certificate].concat()).unwrap();
            client = client.identity(identity);
        }
        Self {
            client: client.build().unwrap(),
            server: text("/clusters/0/cluster/server").unwrap().to_owned(),
            authorization: text("/users/0/user/token").map(|token| format!("Bearer {token}")),
        }
    }

    /// Asks for a path; a server that has just learned a kind asks for patience (429).
    pub(super) async fn get(&self, path: &str) -> Result<reqwest::Response, reqwest::Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut request = self.client.get(format!("{}{path}", self.server));
            if let Some(authorization) = &self.authorization {
                request = request.header("Authorization", authorization);
            }
            let answer = request.send().await?;
            if answer.status() != 429 || Instant::now() > deadline {
                return answer.error_for_status();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Reads an object or a list as kubectl prints them: the items of a list say what they are, and nobody which fields are whose.
    pub(super) async fn read(&self, path: &str) -> Result<Value, reqwest::Error> {
        let mut read: Value = self.get(path).await?.json().await?;
        let version = read["apiVersion"].clone();
        let kind = read["kind"].as_str().and_then(|kind| kind.strip_suffix("List"));
        let Some(kind) = kind.map(str::to_owned) else {
            hide_managers(&mut read);
            return Ok(read);
        };
        for item in read["items"].as_array_mut().into_iter().flatten() {
            item["apiVersion"] = version.clone();
            item["kind"] = kind.clone().into();
            hide_managers(item);
        }
        Ok(read)
    }
}

fn hide_managers(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
}
