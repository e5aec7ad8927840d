//! An admission webhook of a cluster that refuses everything it is asked about, or fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::support::cluster::{Namespace, eventually};
use crate::support::tls_server::TlsServer;

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
    server: TlsServer,
    asked: Arc<AtomicUsize>,
}

impl Webhook {
    /// Starts it on 127.0.0.1.
    pub(super) fn start(mood: Mood) -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let router = Router::new().route("/", post(answer)).with_state((mood, Arc::clone(&asked)));
        Self { server: TlsServer::start(router), asked }
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
                    "url": format!("https://127.0.0.1:{}/", self.server.port),
                    "caBundle": BASE64_STANDARD.encode(&self.server.ca),
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
