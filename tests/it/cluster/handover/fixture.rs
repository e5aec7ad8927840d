//! What is in a cluster at one moment, by namespace.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::cluster::Cluster;

/// Kinds of which [`Scene::lacks`] tells.
const ENDS: [&str; 6] = ["certificates", "challenges", "secrets", "pods", "services", "ingresses"];
/// Other kinds that an issuance makes.
const WAYS: [&str; 3] = ["certificaterequests", "orders", "events"];

/// All objects of an issuance in all namespaces.
pub(crate) struct Scene(BTreeMap<String, Vec<Value>>);

impl Scene {
    /// Looks at everything.
    pub(crate) fn look(cluster: &Cluster) -> Self {
        Self::of(cluster, &[&ENDS[..], &WAYS].concat())
    }

    /// Looks at what tells whether an issuance has ended.
    pub(crate) fn glance(cluster: &Cluster) -> Self {
        Self::of(cluster, &ENDS)
    }

    fn of(cluster: &Cluster, kinds: &[&str]) -> Self {
        let kubectl = cluster.kubectl();
        let mut scene = BTreeMap::<String, Vec<Value>>::new();
        for object in kinds.iter().flat_map(|kind| kubectl.everywhere(kind)) {
            let namespace = text_of(&object, "/metadata/namespace").to_owned();
            scene.entry(namespace).or_default().push(object);
        }
        Self(scene)
    }

    /// Objects of a kind in a namespace.
    pub(crate) fn all<'a>(
        &'a self,
        namespace: &str,
        kind: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        let all = self.0.get(namespace).map_or(&[][..], Vec::as_slice);
        all.iter().filter(move |object| object["kind"] == kind)
    }

    /// Whether the URL of an order is written down in a namespace.
    pub(crate) fn knows_order(&self, namespace: &str) -> bool {
        self.all(namespace, "Order").any(|order| !text_of(order, "/status/url").is_empty())
    }

    /// Whether there is a request whose Certificate names a key that is gone: cert-manager deletes one that is too much, the named
    /// one too, and makes that anew.
    pub(crate) fn lacks_key(&self, namespace: &str) -> bool {
        let named = self
            .all(namespace, "Certificate")
            .map(|certificate| text_of(certificate, "/status/nextPrivateKeySecretName"))
            .find(|name| !name.is_empty());
        let has = |name| {
            self.all(namespace, "Secret").any(|secret| text_of(secret, "/metadata/name") == name)
        };
        let is_issuing = self.all(namespace, "Certificate").any(|c| has_condition(c, "Issuing"));
        is_issuing
            && named.is_some_and(|name| !has(name))
            && self.all(namespace, "CertificateRequest").next().is_some()
    }

    /// Events in a namespace, in words, and how often each was told.
    pub(crate) fn told(&self, namespace: &str) -> BTreeMap<String, u64> {
        let mut told = BTreeMap::new();
        for event in self.all(namespace, "Event") {
            let text = |pointer| text_of(event, pointer);
            let about = format!(
                "{} {}: {} {}",
                text("/involvedObject/kind"),
                text("/involvedObject/name"),
                text("/reason"),
                text("/message")
            );
            *told.entry(about).or_default() += event["count"].as_u64().unwrap_or(1);
        }
        told
    }

    /// What is missing until the Certificate of a namespace is issued and all that led there is tidied up.
    pub(crate) fn lacks(&self, namespace: &str) -> Option<String> {
        let Some(certificate) = self.all(namespace, "Certificate").next() else {
            return Some("no Certificate".to_owned());
        };
        let is_true = |kind: &str| has_condition(certificate, kind);
        if !is_true("Ready") || is_true("Issuing") {
            return Some(format!("the Certificate is not ready: {}", certificate["status"]));
        }
        if !text_of(certificate, "/status/nextPrivateKeySecretName").is_empty() {
            return Some("the next private key is still named".to_owned());
        }
        for kind in ["Challenge", "Pod", "Service", "Ingress"] {
            if let Some(left) = self.all(namespace, kind).next() {
                let (metadata, status) = (&left["metadata"], &left["status"]);
                return Some(format!("a {kind} is left: {metadata} {status}"));
            }
        }
        let names: Vec<&str> =
            self.all(namespace, "Secret").map(|s| text_of(s, "/metadata/name")).collect();
        (names != ["account", "web-tls"]).then(|| format!("Secrets are {names:?}"))
    }
}

/// Whether a condition of an object is true.
fn has_condition(object: &Value, kind: &str) -> bool {
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().any(|c| c["type"] == kind && c["status"] == "True")
}

/// A text in an object, or none.
pub(crate) fn text_of<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
