//! A namespace of the cluster, a CA with its faults, and our controllers: what is given and done there, and what is to be
//! seen of it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubectl_acme::dns::lookup::SystemResolver;
use kubectl_acme::engine::{ControllerParts, Engine, ProcessMemory, Rules};
use kubectl_acme::fetch::{Fetcher, Overrides};
use kubectl_acme::model::order_budget::Allowance;
use kubectl_acme::reconcile::request::Approval;
use kubectl_acme::reconcile::schedule::Limits;
use kubectl_acme::solvers::http01::cluster::ClusterSolver;
use kubectl_acme::solvers::http01::cluster::options::Options;
use kubectl_acme::store::cluster::{ClusterStore, Connection};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::cluster::{Cluster, Kubectl, Namespace, eventually};
use crate::support::name_server::nobody_to_ask;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::proxy::Proxy;
use crate::support::{bed, http};

/// How our controllers work.
pub(super) struct Manner {
    /// Who approves requests.
    pub(super) approval: Approval,
    /// How many challenges may be in flight.
    pub(super) slots: usize,
    /// Hosts whose self-checks find a closed port.
    pub(super) closed: Vec<String>,
    /// Hosts whose self-checks find another server on this machine.
    pub(super) elsewhere: Vec<(String, u16)>,
}

impl Default for Manner {
    fn default() -> Self {
        Self { approval: Approval::Ours, slots: 60, closed: Vec::new(), elsewhere: Vec::new() }
    }
}

/// Where a case is played.
pub(super) struct Stage {
    namespace: Namespace<'static>,
    engine: Option<Engine>,
    /// The CA.
    pub(super) pebble: Pebble,
    /// What stands before it, and spoils its answers.
    pub(super) proxy: Proxy,
    /// kubectl in the namespace.
    pub(super) kubectl: Kubectl,
}

impl Stage {
    /// A CA that refuses no nonce, and nobody at work yet.
    pub(super) fn set(name: &str) -> Self {
        Self::with(name, PebbleOptions::calm())
    }

    /// The same with another CA.
    pub(super) fn with(name: &str, options: PebbleOptions) -> Self {
        let http_port = Some(Cluster::shared().http_port());
        let pebble = Pebble::start(&PebbleOptions { http_port, ..options });
        let namespace = Cluster::shared().namespace(name);
        let (proxy, kubectl) = (pebble.proxy(), namespace.kubectl());
        Self { namespace, engine: None, pebble, proxy, kubectl }
    }

    /// The same with our controllers at work and an Issuer `acme` that is ready.
    pub(super) async fn open(name: &str) -> Self {
        let mut stage = Self::set(name);
        stage.work(Manner::default()).await;
        stage.apply(&[stage.issuer("acme", json!({}))]);
        stage.sees("issuer/acme", &ready("True", "ACMEAccountRegistered", "…"));
        stage
    }

    /// Starts our controllers in the namespace.
    pub(super) async fn work(&mut self, manner: Manner) {
        let cluster = Cluster::shared();
        let kubeconfig = Some(cluster.kubeconfig());
        let connection = Connection { kubeconfig, ..Connection::default() };
        let store = ClusterStore::connect(&connection).await.unwrap();
        let store = store.confined_to(self.namespace.name());
        let here = |port| (IpAddr::V4(Ipv4Addr::LOCALHOST), Some(port));
        let mut hosts = BTreeMap::from([("*".to_owned(), here(cluster.http_port()))]);
        hosts.extend(manner.closed.into_iter().map(|host| (host, here(bed::free_port()))));
        hosts.extend(manner.elsewhere.into_iter().map(|(host, port)| (host, here(port))));
        let rules = Rules {
            approval: manner.approval,
            memory: ProcessMemory::new(Allowance::Standing),
            cluster_resource_namespace: self.namespace.name().to_owned(),
            limits: Limits { max_in_flight: manner.slots },
            ..Rules::without_flags(true)
        };
        let equipment = ControllerParts::new(
            Arc::new(store.clone()),
            Arc::new(ClusterSolver::new(store, Options::default())),
            Fetcher {
                resolver: Arc::new(SystemResolver::new()),
                overrides: Overrides { hosts, ..Overrides::default() },
            },
            nobody_to_ask(),
        );
        self.engine = Some(Engine::start(ControllerParts { rules, ..equipment }));
    }

    /// Stops our controllers.
    pub(super) async fn rest(&mut self) {
        let engine = self.engine.take().expect("they work");
        engine.stop(&CancellationToken::new()).await.unwrap();
    }

    /// A host that no other test uses.
    pub(super) fn host(&self, label: &str) -> String {
        format!("{label}.{}.example.com", self.namespace.name())
    }

    /// Name of the namespace.
    pub(super) fn place(&self) -> &str {
        self.namespace.name()
    }

    /// An Issuer of the CA with one solver, through an Ingress; `more` replaces fields of `spec.acme`.
    pub(super) fn issuer(&self, name: &str, more: Value) -> Value {
        let acme = json!({
            "server": self.proxy.directory(),
            "caBundle": STANDARD.encode(self.pebble.tls_ca_pem()),
            "privateKeySecretRef": {"name": format!("{name}-account")},
            "solvers": [{"http01": {"ingress": {"ingressClassName": "bed"}}}],
        });
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": name},
            "spec": {"acme": merged(acme, more)},
        })
    }

    /// Applies objects together.
    pub(super) fn apply(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.kubectl.apply(&list.to_string());
    }

    /// Merges a patch into an object, or into its status where it names one.
    pub(super) fn patch(&self, object: &str, patch: &Value) {
        let part = if patch.get("status").is_some() { "status" } else { "" };
        let (patch, part) = (patch.to_string(), format!("--subresource={part}"));
        let mut words = vec!["patch", object, "--type=merge", "-p", &patch];
        words.extend((part != "--subresource=").then_some(part.as_str()));
        self.kubectl.run(&words);
    }

    /// Lets a held challenge go, once its answer is to be had: as if it was presented long ago.
    pub(super) fn let_go(&self, challenge: &Value) {
        let text = |field: &str| challenge["spec"][field].as_str().unwrap();
        let path = format!("/.well-known/acme-challenge/{}", text("token"));
        eventually(&format!("the answer for {}", text("dnsName")), || {
            http::get(Cluster::shared().http_port(), text("dnsName"), &path).ok()
        });
        let long_ago = json!({"status": {"presentedAt": "2020-01-01T00:00:00Z"}});
        self.patch(&format!("challenge/{}", name(challenge)), &long_ago);
    }

    /// Waits until an object looks like that; returns it.
    pub(super) fn sees(&self, object: &str, expected: &Value) -> Value {
        let mut last = Last(String::new());
        eventually(&format!("{object} as {expected}, beside {}", self.place()), || {
            match self.kubectl.try_run(&["get", object, "-o", "json"]) {
                Ok(text) => {
                    let found: Value = serde_json::from_str(&text).unwrap();
                    let fits = fits(expected, Some(&found));
                    last.0 = found.to_string();
                    fits.then_some(found)
                }
                Err(why) => {
                    last.0 = why;
                    None
                }
            }
        })
    }

    /// Waits for the only object of a kind that looks like that.
    pub(super) fn sees_one(&self, kind: &str, expected: &Value) -> Value {
        let mut last = Last(String::new());
        eventually(&format!("one of {kind} as {expected} in {}", self.place()), || {
            let mut items = self.kubectl.items(kind);
            last.0 = json!(items).to_string();
            items.retain(|item| fits(expected, Some(item)));
            (items.len() == 1).then(|| items.remove(0))
        })
    }

    /// Waits for an Event, `Type Reason Message`, about an object.
    pub(super) fn hears(&self, object: &str, expected: &str) {
        let mut last = Last(String::new());
        eventually(&format!("{expected} about {object} in {}", self.place()), || {
            let pattern = expected.to_owned().into();
            let heard = self.events(object);
            last.0 = heard.join("\n");
            heard.iter().any(|event| fits(&pattern, Some(&json!(event)))).then_some(())
        });
    }

    /// The Events about an object.
    pub(super) fn events(&self, object: &str) -> Vec<String> {
        let (kind, name) = object.split_once('/').unwrap();
        let is_about = |event: &&Value| {
            let about = &event["involvedObject"];
            let of_kind = about["kind"].as_str().unwrap_or_default().eq_ignore_ascii_case(kind);
            of_kind && about["name"] == name
        };
        let text = |event: &Value| {
            let part = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", part("type"), part("reason"), part("message"))
        };
        self.kubectl.items("events").iter().filter(is_about).map(text).collect()
    }

    /// Waits until nothing of a kind is left.
    pub(super) fn sees_none(&self, kind: &str) {
        eventually(&format!("the end of all {kind} in {}", self.place()), || {
            self.kubectl.items(kind).is_empty().then_some(())
        });
    }
}

/// What was seen last, shown when a test fails that waited for something else.
struct Last(String);

impl Drop for Last {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "shown beside the failed assertion")]
            {
                eprintln!("seen last: {}", self.0);
            }
        }
    }
}

/// A Certificate with Secret `NAME-tls`; `more` replaces fields of its spec.
pub(super) fn certificate(name: &str, names: &[&str], more: Value) -> Value {
    let spec = json!({
        "secretName": format!("{name}-tls"), "dnsNames": names,
        "issuerRef": {"name": "acme"}, "privateKey": {"algorithm": "ECDSA"},
    });
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": name},
        "spec": merged(spec, more),
    })
}

/// A CertificateRequest as one makes it by hand; `more` replaces fields of its spec.
pub(super) fn request(name: &str, signing_request: &str, more: Value) -> Value {
    let spec = json!({
        "request": STANDARD.encode(signing_request), "issuerRef": {"name": "acme"},
    });
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest", "metadata": {"name": name},
        "spec": merged(spec, more),
    })
}

/// A Secret with one entry.
pub(super) fn secret(name: &str, key: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {key: value},
    })
}

/// A signing request for these names and addresses, of a fresh key.
pub(super) fn signing_request(common_name: &str, names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut parameters = CertificateParams::new(names).unwrap();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    if !common_name.is_empty() {
        parameters.distinguished_name.push(DnType::CommonName, common_name);
    }
    parameters.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

/// An object whose condition Ready looks like that.
pub(super) fn ready(status: &str, reason: &str, message: &str) -> Value {
    let condition =
        json!({"type": "Ready", "status": status, "reason": reason, "message": message});
    json!({"status": {"conditions": [condition]}})
}

/// Solvers that hold their challenge for an hour once it is presented.
pub(super) fn held() -> Value {
    let ingress = json!({"ingress": {"ingressClassName": "bed"}});
    json!({"solvers": [{"http01": ingress, "waitInsteadOfSelfCheck": "1h"}]})
}

/// Name of an object.
pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn merged(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("fields are an object") };
    for (key, value) in more {
        base[key] = value;
    }
    base
}

/// Says whether a value looks as expected: an object has at least these fields, a list at least these entries, a text these
/// parts where `…` stands between them; null expects nothing, or nothing in it.
pub(super) fn fits(expected: &Value, seen: Option<&Value>) -> bool {
    match (expected, seen) {
        (Value::Null, None | Some(Value::Null | Value::Bool(false))) => true,
        (Value::Null, Some(Value::String(text)))
        | (Value::String(text), None | Some(Value::Null)) => text.is_empty(),
        (Value::Null, Some(Value::Array(items))) => items.is_empty(),
        (Value::Object(fields), _) => {
            fields.iter().all(|(key, expected)| fits(expected, seen.and_then(|seen| seen.get(key))))
        }
        (Value::Array(expected), Some(Value::Array(items))) => {
            expected.iter().all(|one| items.iter().any(|item| fits(one, Some(item))))
        }
        (Value::String(pattern), Some(Value::String(text))) => is_like(pattern, text),
        (expected, seen) => Some(expected) == seen,
    }
}

fn is_like(pattern: &str, text: &str) -> bool {
    let Some((first, others)) = pattern.split_once('…') else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let (middle, last) = others.rsplit_once('…').unwrap_or(("", others));
    for part in middle.split('…') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn what_is_seen_is_compared_with_what_is_named() {
    let seen = json!({"a": {"b": "one two"}, "list": [{"k": 1}, {"k": 2}], "empty": ""});
    for (expected, result) in [
        (json!({"a": {"b": "one…"}}), true),
        (json!({"a": {"b": "…two"}}), true),
        (json!({"a": {"b": "one"}}), false),
        (json!({"list": [{"k": 2}], "empty": null, "absent": null}), true),
        (json!({"list": [{"k": 3}]}), false),
        (json!({"absent": "…"}), false),
    ] {
        assert_eq!(fits(&expected, Some(&seen)), result, "{expected}");
    }
}
