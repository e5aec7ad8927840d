//! Certificates by somebody else's webhook, called directly: whom it is trusted by, and what it is told.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use kubectl_acme::dns::update::{Change, Protocol, Update, Updater};
use serde_json::{Value, json};

use crate::pebble::dns01::{RECORD, Site, THEIRS};
use crate::support::certificates::LocalCertificates;
use crate::support::dns::{DnsServer, Software, Updates};
use crate::support::terminal::Said;
use crate::support::tls_server::TlsServer;

/// The group of the webhook.
pub(crate) const GROUP: &str = "acme.webhook.example";

/// What a webhook updates, and what it was told.
#[derive(Clone)]
pub(crate) struct Desk(Arc<(Updater, Mutex<Vec<Value>>)>);

impl Desk {
    /// Publishes in the zones of a server that everybody may change.
    pub(crate) fn open(server: &DnsServer) -> Self {
        let updater = Updater::new(server.address(), Protocol::Tcp, None);
        Self(Arc::new((updater, Mutex::default())))
    }

    /// Where it listens, at an API server and by itself.
    pub(crate) fn router(&self) -> Router {
        let path = format!("/apis/{GROUP}/v1alpha1/ours");
        Router::new().route(&path, post(answer)).with_state(self.clone())
    }

    /// Fails unless it was told to publish and remove the two texts of an apex and its wildcard, one after the other.
    #[track_caller]
    pub(crate) fn was_told(&self, namespace: &str) {
        let told = self.0.1.lock().unwrap();
        let mut actions: Vec<&str> =
            told.iter().map(|request| request["action"].as_str().unwrap()).collect();
        actions.dedup(); // a step may be repeated
        assert_eq!(actions, ["Present", "CleanUp", "Present", "CleanUp"]);
        for request in told.iter() {
            assert_eq!(request["dnsName"], "example.com");
            assert_eq!(request["resourceNamespace"], namespace);
            assert_eq!(request["config"], config());
            assert_eq!(request["resolvedZone"], "example.com.");
        }
    }
}

fn config() -> Value {
    json!({"token": "dns"})
}

/// The solver that names it.
pub(crate) fn solver() -> Value {
    json!({"webhook": {"groupName": GROUP, "solverName": "ours", "config": config()}})
}

/// Publishes as it is told, as webhooks do that are made with cert-manager's library.
async fn answer(State(Desk(desk)): State<Desk>, Json(mut payload): Json<Value>) -> Json<Value> {
    let request = payload["request"].take();
    let text = |field: &str| request[field].as_str().unwrap();
    let change = match text("action") {
        "Present" => Change::Add { ttl: 0 },
        _ => Change::Remove,
    };
    let (zone, name) = (text("resolvedZone"), text("resolvedFQDN"));
    let update = Update { zone, name, text: text("key"), change };
    let response = match desk.0.send(&update).await {
        Ok(()) => json!({"uid": "", "success": true}),
        Err(error) => {
            json!({"uid": "", "success": false, "status": {"message": error.to_string()}})
        }
    };
    desk.1.lock().unwrap().push(request);
    payload["response"] = response;
    Json(payload)
}

/// Orders an apex and its wildcard by the webhook on that port.
fn order(site: &Site, server: &TlsServer) -> Said {
    let names = ["example.com", "*.example.com"];
    let manifests = site.manifests(&site.pebble.directory(), "hmac-sha256", &solver(), &names);
    let path = site.terminal.manifests(&manifests);
    let webhook = format!("--dns01-webhook={GROUP}=https://localhost:{}", server.port);
    site.terminal.drive(&["order", "-f", path.to_str().unwrap(), &webhook])
}

/// It must have ended because of the webhook, which was told nothing, with the next step.
#[track_caller]
fn is_refused(said: &Said, why: &str, hint: &str) {
    assert_eq!(said.code, Some(9), "{said:?}");
    assert!(said.stderr.contains(why), "{said:?}");
    assert!(said.stderr.contains(hint), "{said:?}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_webhook_is_trusted_for_the_roots_that_ssl_cert_file_names_and_for_no_others() {
    let mut site = Site::new(Software::Bind, Updates::Unsigned);
    let desk = Desk::open(&site.server);
    let server = TlsServer::start(desk.router());
    let trust = |site: &mut Site, name: &str, roots: &str| {
        let path = site.terminal.write(name, roots);
        site.terminal.set("SSL_CERT_FILE", path.display());
    };
    let url = format!("https://localhost:{}", server.port);

    let hint = "hint: SSL_CERT_FILE=FILE names the CAs that are trusted in place of this machine's";
    let of_that_name = LocalCertificates::generate().ca;
    for (root, why) in [(site.pebble.root_pem(), "UnknownIssuer"), (of_that_name, "BadSignature")] {
        trust(&mut site, "other.pem", &root);
        let said = order(&site, &server);
        let why = format!(
            "cannot call the webhook ours of {GROUP} at {url}: invalid peer certificate: {why}\n"
        );
        is_refused(&said, &why, hint);
    }
    trust(&mut site, "none.pem", "");
    let nobody = format!("cannot reach {url}: ");
    is_refused(&order(&site, &server), &nobody, "SSL_CERT_FILE");

    trust(&mut site, "roots.pem", &server.ca);
    let said = order(&site, &server);
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.pebble.log());
    desk.was_told("default");
    site.terminal.pair("web-tls").check(&site.pebble.root_pem());
    assert_eq!(site.server.texts(RECORD), [THEIRS]);
    assert_eq!(site.pebble.orders(), 1, "it goes on with the order that it had");
}
