//! How a cluster is reached: contexts, users and log-in plugins of a kubeconfig.

use std::fs;
use std::path::{Path, PathBuf};

use kubectl_acme::hints::store::lines;
use kubectl_acme::model::Kind;
use kubectl_acme::store::cluster::{ClusterStore, Connection};
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::{Scope, Store as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::connection;
use crate::support::cluster::Cluster;

/// The shared cluster's kubeconfig, changed.
fn changed(folder: &Path, change: impl FnOnce(&mut Value)) -> PathBuf {
    let text = fs::read_to_string(Cluster::shared().kubeconfig()).unwrap();
    let mut kubeconfig: Value = serde_yaml::from_str(&text).unwrap();
    change(&mut kubeconfig);
    let file = folder.join("kubeconfig");
    fs::write(&file, kubeconfig.to_string()).unwrap();
    file
}

/// Why a connection cannot be made.
async fn check(connection: &Connection, expected: &str) {
    let refused = ClusterStore::connect(connection).await.unwrap_err();
    assert_eq!(refused.to_string(), expected);
    assert!(!lines(&refused).is_empty());
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn flags_choose_context_and_namespace() {
    let folder = tempfile::tempdir().unwrap();
    let file = changed(folder.path(), |kubeconfig| {
        let mut other = kubeconfig["contexts"][0].clone();
        other["name"] = "other".into();
        other["context"]["namespace"] = "mail".into();
        kubeconfig["contexts"].as_array_mut().unwrap().push(other);
    });
    let plain = ClusterStore::connect(&connection(&file)).await.unwrap();
    assert_eq!((plain.context(), plain.namespace()), (Some("bed"), "default"));
    let other = Connection { context: Some("other".into()), ..connection(&file) };
    let store = ClusterStore::connect(&other).await.unwrap();
    assert_eq!((store.context(), store.namespace()), (Some("other"), "mail"));
    let named = Connection { namespace: Some("web".into()), ..other };
    let store = ClusterStore::connect(&named).await.unwrap();
    assert_eq!(store.namespace(), "web");
    assert_eq!(store.server(), plain.server());
    store.check_definitions().await.unwrap();

    let missing = Connection { context: Some("none".into()), ..connection(&file) };
    check(&missing, "cannot use the kubeconfig: it has no context none").await;
    let file = folder.path().join("nothing");
    let refused = ClusterStore::connect(&connection(&file)).await.unwrap_err().to_string();
    let expected = format!("cannot use the kubeconfig: {}: ", file.display());
    assert!(refused.starts_with(&expected), "{refused}");
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn an_administrator_may_act_as_somebody_else() {
    let acting = Connection {
        user: Some("ann".into()),
        groups: vec!["readers".into()],
        ..connection(&Cluster::shared().kubeconfig())
    };
    let store = ClusterStore::connect(&acting).await.unwrap();
    let refused = store.list(Kind::Order, &Scope::all()).await.unwrap_err().to_string();
    assert!(refused.contains("User \"ann\" cannot list"), "{refused}");
    let admins = Connection { groups: vec!["system:masters".into()], ..acting };
    let store = ClusterStore::connect(&admins).await.unwrap();
    assert!(store.list(Kind::Order, &Scope::all()).await.is_ok());
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_log_in_plugin_is_run_and_its_failure_is_told() {
    let namespace = Cluster::shared().namespace("plugin");
    let rules =
        r#"[{"apiGroups": ["acme.cert-manager.io"], "resources": ["orders"], "verbs": ["list"]}]"#;
    let account = namespace.service_account("reader", rules);
    let theirs = fs::read_to_string(account.kubeconfig()).unwrap();
    let theirs: Value = serde_yaml::from_str(&theirs).unwrap();
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": { "token": theirs["users"][0]["user"]["token"] },
    });
    let folder = tempfile::tempdir().unwrap();
    let answer = folder.path().join("answer");
    fs::write(&answer, credential.to_string()).unwrap();
    let file = changed(folder.path(), |kubeconfig| {
        kubeconfig["users"][0]["user"] = json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "cat",
            "args": [answer],
            "interactiveMode": "Never",
        } });
    });
    let store = ClusterStore::connect(&connection(&file)).await.unwrap();
    let scope = Scope::namespace(namespace.name());
    assert!(store.list(Kind::Order, &scope).await.unwrap().is_empty());
    fs::remove_file(&answer).unwrap();
    let refused = ClusterStore::connect(&connection(&file)).await.unwrap_err();
    let said = refused.to_string();
    assert!(said.starts_with("cannot log in to https://127.0.0.1:"), "{said}");
    assert!(matches!(refused, StoreError::Cluster(_)) && said.contains("cat"), "{said}");
}

/// An HTTP proxy that tells where it was asked to connect.
async fn proxy() -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (teller, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass(BufStream::new(client), teller.clone()));
        }
    });
    (port, told)
}

/// A client that goes away early is its own business.
async fn pass(
    mut client: BufStream<TcpStream>,
    teller: mpsc::UnboundedSender<String>,
) -> std::io::Result<()> {
    let mut asked = String::new();
    client.read_line(&mut asked).await?;
    let mut header = String::from("…");
    while !header.trim().is_empty() {
        header.clear();
        client.read_line(&mut header).await?;
    }
    let target = asked.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next());
    let target = target.unwrap_or_default().to_owned();
    let mut server = TcpStream::connect(&target).await?;
    teller.send(target).ok();
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    client.flush().await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_proxy_of_the_kubeconfig_is_used() {
    let (port, mut told) = proxy().await;
    let folder = tempfile::tempdir().unwrap();
    let file = changed(folder.path(), |kubeconfig| {
        let url = format!("http://127.0.0.1:{port}");
        kubeconfig["clusters"][0]["cluster"]["proxy-url"] = url.into();
    });
    let store = ClusterStore::connect(&connection(&file)).await.unwrap();
    store.check_definitions().await.unwrap();
    let server = store.server().strip_prefix("https://").unwrap().to_owned();
    assert_eq!(told.recv().await, Some(server));
}
