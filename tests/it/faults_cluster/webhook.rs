//! An admission webhook of a cluster that refuses everything it is asked about, or fails.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::certificates::LocalCertificates;
use crate::support::cluster::{Namespace, eventually};

/// What it does when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// It refuses.
    Refuses,
    /// It breaks down.
    Fails,
}

/// A webhook that listens until it goes.
pub(super) struct Webhook {
    port: u16,
    ca: String,
    asked: Arc<AtomicUsize>,
    runtime: Option<Runtime>,
}

impl Webhook {
    /// Starts it on 127.0.0.1.
    pub(super) fn start(mood: Mood) -> Self {
        let certificates = LocalCertificates::generate();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let router = Router::new().route("/", post(answer)).with_state((mood, Arc::clone(&asked)));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let acceptor = certificates.acceptor();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = TowerToHyperService::new(router);
                    let connection = hyper::server::conn::http1::Builder::new();
                    connection.serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { port, ca: certificates.ca, asked, runtime: Some(runtime) }
    }

    /// Lets it guard the making of one resource in a namespace; returns when the API server heeds it.
    pub(super) fn guard(&self, namespace: &Namespace<'_>, group: &str, resource: &str) {
        let kubectl = namespace.kubectl();
        let name = namespace.name();
        let rule = |group: &str, resource: &str| {
            json!({
                "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource],
                "operations": ["CREATE"],
            })
        };
        let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": name}});
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "guard.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": "Fail", "namespaceSelector": selector,
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{}/", self.port),
                    "caBundle": BASE64_STANDARD.encode(&self.ca),
                },
                // The configmap tells when the API server has heard of it.
                "rules": [rule(group, resource), rule("", "configmaps")],
            }],
        });
        kubectl.apply(&configuration.to_string());
        eventually("the webhook", || {
            kubectl.try_run(&["create", "configmap", "probe", "--dry-run=server"]).err()
        });
        self.asked.store(0, Ordering::Relaxed);
    }

    /// Takes the guard of a namespace away.
    pub(super) fn withdraw(namespace: &Namespace<'_>) {
        let name = namespace.name();
        namespace.kubectl().run(&["delete", "validatingwebhookconfiguration", name]);
    }

    /// How often it was asked since it guards.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn answer(
    State((mood, asked)): State<(Mood, Arc<AtomicUsize>)>,
    Json(review): Json<Value>,
) -> Result<Json<Value>, StatusCode> {
    asked.fetch_add(1, Ordering::Relaxed);
    if mood == Mood::Fails {
        return Err(StatusCode::INTERNAL_SERVER_ERROR);
    }
    let status = json!({"code": 403, "message": "not on Fridays"});
    let response = json!({"uid": review["request"]["uid"], "allowed": false, "status": status});
    Ok(Json(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    })))
}
