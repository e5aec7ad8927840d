//! Admission webhooks, which the API server calls before it accepts an object: cert-manager's own, and webhooks of
//! others that are called for the objects of an issuance.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::Value;

use super::{ClusterReader, MAX_READ, list, name_of, text};
use crate::diagnosis::case::control::AdmissionCase;
use crate::diagnosis::case::network_policy::LabelSelection;
use crate::model::ObjectName;
use crate::store::cluster::raw_objects::Resource;

/// Resources that each issuance creates, by group and plural.
const ISSUANCE_RESOURCES: [(&str, &str); 4] = [
    ("", "secrets"),
    ("cert-manager.io", "certificaterequests"),
    ("acme.cert-manager.io", "orders"),
    ("acme.cert-manager.io", "challenges"),
];

const SLICES: Resource = Resource {
    api_version: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    plural: "endpointslices.discovery.k8s.io",
};
const WEBHOOK_CONFIGURATIONS: [Resource; 2] = [
    Resource {
        api_version: "admissionregistration.k8s.io/v1",
        kind: "ValidatingWebhookConfiguration",
        plural: "validatingwebhookconfigurations.admissionregistration.k8s.io",
    },
    Resource {
        api_version: "admissionregistration.k8s.io/v1",
        kind: "MutatingWebhookConfiguration",
        plural: "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    },
];

impl ClusterReader<'_> {
    /// Lists the webhook configurations, each with its kind.
    pub(crate) async fn configurations(&self) -> Vec<(&'static str, Value)> {
        let listed = WEBHOOK_CONFIGURATIONS.map(|resource| async move {
            let listed = self.of(resource, "");
            let listed = self.read(resource.plural, listed.fitting("", "")).await;
            listed.unwrap_or_default().into_iter().map(move |one| (resource.kind, one))
        });
        join_all(listed).await.into_iter().flatten().collect()
    }

    /// Selects cert-manager's own webhooks of `configurations`, and webhooks of others that must admit an issuance in
    /// one of `namespaces`; each with the number of ready endpoints of its Service.
    pub(crate) async fn admission(
        &self,
        configurations: &[(&str, Value)],
        namespaces: &[Value],
    ) -> Vec<AdmissionCase> {
        let each = configurations.iter();
        let mut all: Vec<AdmissionCase> =
            each.flat_map(|(kind, one)| webhooks(kind, one, namespaces)).collect();
        // cert-manager's own come first: the number of Services that are read is bounded.
        all.sort_by_key(|of| !of.is_own());
        let mut services: Vec<&ObjectName> = Vec::new();
        for service in all.iter().filter_map(|of| of.service.as_ref()) {
            if !services.contains(&service) {
                services.push(service);
            }
        }
        let services: Vec<ObjectName> = services.into_iter().take(MAX_READ).cloned().collect();
        let endpoints = services.into_iter().map(|service| async move {
            let label = format!("kubernetes.io/service-name={}", service.name);
            let slices = self.of(SLICES, &service.namespace);
            let slices = self.read(SLICES.plural, slices.fitting(&label, "")).await;
            (service, slices.map(|slices| slices.iter().map(count_ready).sum::<usize>()))
        });
        let endpoints: BTreeMap<ObjectName, Option<usize>> =
            join_all(endpoints).await.into_iter().collect();
        for of in &mut all {
            of.endpoints = of.service.as_ref().and_then(|service| *endpoints.get(service)?);
        }
        all
    }
}

/// Counts the ready endpoints of a slice; an endpoint without the condition counts as ready.
fn count_ready(slice: &Value) -> usize {
    let endpoints = list(slice, "/endpoints").iter();
    endpoints.filter(|one| one["conditions"]["ready"].as_bool() != Some(false)).count()
}

/// Selects webhooks of one configuration: cert-manager's own, and those that must admit an issuance in `namespaces`.
fn webhooks(kind: &str, configuration: &Value, namespaces: &[Value]) -> Vec<AdmissionCase> {
    let case = |webhook: &Value| {
        let client = &webhook["clientConfig"];
        let service = client
            .get("service")
            .map(|service| ObjectName::new(text(service, "/namespace"), text(service, "/name")));
        let case = AdmissionCase {
            configuration: format!("{kind} {}", text(configuration, "/metadata/name")),
            webhook: text(webhook, "/name").to_owned(),
            service,
            has_bundle: !text(client, "/caBundle").is_empty(),
            fails_closed: text(webhook, "/failurePolicy") != "Ignore",
            ..AdmissionCase::default()
        };
        if case.is_own() {
            return Some(case);
        }
        let asked_about = guarded_resources(webhook);
        let of = |namespace: &&Value| is_selected(&webhook["namespaceSelector"], namespace);
        let guarded = namespaces.iter().filter(of).map(|it| name_of(it).name);
        let guarded: Vec<String> = guarded.collect();
        let is_needed = case.fails_closed && !asked_about.is_empty() && !guarded.is_empty();
        is_needed.then_some(AdmissionCase { asked_about, guarded, ..case })
    };
    list(configuration, "/webhooks").iter().filter_map(case).collect()
}

/// Plurals of [`ISSUANCE_RESOURCES`] whose creation calls a webhook. Empty for webhooks that select objects by labels
/// or expressions: those are not evaluated here.
fn guarded_resources(webhook: &Value) -> Vec<String> {
    let chooses = |field: &str| match &webhook[field] {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if chooses("objectSelector") || chooses("matchConditions") {
        return Vec::new();
    }
    let rules = list(webhook, "/rules");
    let has = |rule: &Value, field: &str, wanted: &[&str]| {
        let words = list(rule, field).iter().filter_map(Value::as_str);
        words.into_iter().any(|word| wanted.contains(&word))
    };
    let is_asked = |(group, plural): &(&str, &str)| {
        rules.iter().any(|rule| {
            has(rule, "/operations", &["*", "CREATE"])
                && has(rule, "/apiGroups", &["*", group])
                && has(rule, "/resources", &["*", "*/*", plural])
                && text(rule, "/scope") != "Cluster"
        })
    };
    ISSUANCE_RESOURCES
        .iter()
        .filter(|one| is_asked(one))
        .map(|(_, plural)| (*plural).to_owned())
        .collect()
}

/// Returns whether a label selector matches a Namespace; an empty selector matches every Namespace.
fn is_selected(selector: &Value, namespace: &Value) -> bool {
    let selection = serde_json::from_value::<Option<LabelSelection>>(selector.clone());
    let labels = namespace.pointer("/metadata/labels").cloned().unwrap_or_default();
    let labels = serde_json::from_value::<Option<BTreeMap<String, String>>>(labels);
    match (selection, labels) {
        (Ok(selection), Ok(labels)) => {
            selection.unwrap_or_default().fits(&labels.unwrap_or_default())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Webhooks of a configuration with this one, each as the resources and namespaces for which it is called.
    fn scopes(webhook: &Value) -> Vec<String> {
        let configuration = json!({"metadata": {"name": "policy"}, "webhooks": [webhook]});
        let labels = json!({"policies": "enforced", "kubernetes.io/metadata.name": "web"});
        let web = json!({"metadata": {"name": "web", "labels": labels}});
        let other = json!({"metadata": {"name": "other"}});
        let all = webhooks("ValidatingWebhookConfiguration", &configuration, &[web, other]);
        all.iter()
            .map(|of| format!("{} in {}", of.asked_about.join(", "), of.guarded.join(", ")))
            .collect()
    }

    #[test]
    fn the_webhooks_of_others_count_where_they_are_asked_about_an_issuance() {
        let of = |resources: Value, more: Value| {
            let rules = [json!({
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": resources,
            })];
            let mut webhook = json!({"name": "a.example.com", "rules": rules});
            for (name, value) in more.as_object().into_iter().flatten() {
                webhook[name] = value.clone();
            }
            scopes(&webhook)
        };
        assert_eq!(of(json!(["secrets"]), json!({})), ["secrets in web, other"]);
        assert_eq!(of(json!(["*"]), json!({})), ["secrets in web, other"]);
        assert!(of(json!(["pods", "secrets/status"]), json!({})).is_empty());
        let selector = json!({"namespaceSelector": {"matchLabels": {"policies": "enforced"}}});
        assert_eq!(of(json!(["secrets"]), selector), ["secrets in web"]);
        let excluding = json!({"namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["web"]},
        ]}});
        assert_eq!(of(json!(["secrets"]), excluding), ["secrets in other"]);
        for chooses in [
            json!({"objectSelector": {"matchLabels": {"a": "b"}}}),
            json!({"matchConditions": [{"name": "a", "expression": "false"}]}),
            json!({"rules": []}),
            json!({"failurePolicy": "Ignore"}),
        ] {
            assert!(of(json!(["secrets"]), chooses).is_empty());
        }
    }
}
