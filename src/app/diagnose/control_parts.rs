//! cert-manager's own parts in a cluster: the Deployments of its controller, and the webhooks that the API server asks.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::Value;

use super::control::{Look, MOST_ASKED, cut, list, name_of, text};
use crate::diagnosis::control_case::{AdmissionCase, ControllerCase};
use crate::model::ObjectName;
use crate::store::cluster::raw_objects::Resource;

/// Labels of its webhook.
const WEBHOOK: &str = "app.kubernetes.io/component=webhook";
/// Variables that send requests through a proxy.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"];
/// Variables that exempt names from that.
const EXEMPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

const SLICES: Resource = Resource {
    api_version: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    plural: "endpointslices.discovery.k8s.io",
};
const CONFIGURATIONS: [Resource; 2] = [
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

impl Look<'_> {
    /// The Deployments of the controller, with what their Pods say.
    pub(super) fn controllers(deployments: &[Value], pods: &[Value]) -> Vec<ControllerCase> {
        let is_controller = |object: &&Value| {
            let labels = object.pointer("/metadata/labels");
            let component = labels.and_then(|all| all["app.kubernetes.io/component"].as_str());
            component.is_none_or(|component| component == "controller")
        };
        deployments.iter().filter(is_controller).map(|it| controller(it, pods)).collect()
    }

    /// cert-manager's own webhooks, as the API server knows them.
    pub(super) async fn admission(&self) -> Vec<AdmissionCase> {
        let [validating, mutating] = CONFIGURATIONS.map(|resource| async move {
            let listed = self.of(resource, "");
            let listed = self.read(resource.plural, listed.fitting(WEBHOOK, "")).await;
            let all = listed.unwrap_or_default();
            all.iter().flat_map(|one| webhooks(resource.kind, one)).collect::<Vec<_>>()
        });
        let (validating, mutating) = tokio::join!(validating, mutating);
        let mut all = [validating, mutating].concat();
        let services: BTreeSet<ObjectName> =
            all.iter().filter_map(|of| of.service.clone()).collect();
        let endpoints = services.into_iter().take(MOST_ASKED).map(|service| async move {
            let label = format!("kubernetes.io/service-name={}", service.name);
            let slices = self.of(SLICES, &service.namespace);
            let slices = self.read(SLICES.plural, slices.fitting(&label, "")).await;
            (service, slices.map(|slices| slices.iter().map(ready).sum::<usize>()))
        });
        let endpoints: BTreeMap<ObjectName, Option<usize>> =
            join_all(endpoints).await.into_iter().collect();
        for of in &mut all {
            of.endpoints = of.service.as_ref().and_then(|service| *endpoints.get(service)?);
        }
        all
    }
}

fn controller(deployment: &Value, pods: &[Value]) -> ControllerCase {
    let name = name_of(deployment);
    let template = &deployment["spec"]["template"]["spec"];
    let container = list(template, "/containers").first().unwrap_or(&Value::Null);
    let image = text(container, "/image");
    let tag = image.rsplit_once('/').map_or(image, |(_, rest)| rest);
    let tag = tag.split('@').next().and_then(|tag| tag.split_once(':')).map(|(_, tag)| tag);
    let label = deployment.pointer("/metadata/labels/app.kubernetes.io~1version");
    let words = list(container, "/args").iter().chain(list(container, "/command"));
    let flags = words.filter_map(Value::as_str).filter_map(|word| word.strip_prefix("--"));
    let flags = flags.map(|word| word.split_once('=').unwrap_or((word, "true")));
    let environment = list(container, "/env");
    let is_set = |one: &&Value| !text(one, "/value").is_empty() || one.get("valueFrom").is_some();
    let named = |names: &'static [&str]| {
        environment.iter().filter(is_set).filter(move |one| names.contains(&text(one, "/name")))
    };
    let exempt = named(&EXEMPTIONS).flat_map(|one| text(one, "/value").split(','));
    let count = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_u64);
    let own = pods.iter().filter(|pod| text(pod, "/metadata/namespace") == name.namespace);
    ControllerCase {
        release: tag.or_else(|| label.and_then(Value::as_str)).unwrap_or_default().to_owned(),
        flags: flags.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        account: match text(template, "/serviceAccountName") {
            "" => "default".to_owned(),
            account => account.to_owned(),
        },
        proxies: named(&PROXIES).map(|one| text(one, "/name").to_owned()).collect(),
        exempt: exempt.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        wanted: count("/spec/replicas").unwrap_or(1),
        ready: count("/status/readyReplicas").unwrap_or(0),
        ailing: own.filter_map(ailing).collect(),
        name,
    }
}

/// What a Pod says that is not well.
fn ailing(pod: &Value) -> Option<String> {
    let name = text(pod, "/metadata/name");
    let says = list(pod, "/status/containerStatuses").iter().find_map(|container| {
        let restarts = container["restartCount"].as_u64().unwrap_or(0);
        let waiting = text(container, "/state/waiting/reason");
        let ended = text(container, "/lastState/terminated/reason");
        match (waiting, ended) {
            ("" | "ContainerCreating" | "PodInitializing", _) => None,
            (waiting, "") => Some(format!("{waiting}, {restarts} restarts")),
            (waiting, ended) => Some(format!("{waiting} after {ended}, {restarts} restarts")),
        }
    });
    let unscheduled = list(pod, "/status/conditions").iter().find_map(|condition| {
        let is_it =
            text(condition, "/type") == "PodScheduled" && text(condition, "/status") == "False";
        is_it.then(|| text(condition, "/message").to_owned())
    });
    let says = says.or(unscheduled)?;
    Some(format!("Pod {name}: {}", cut(&says)))
}

/// How many endpoints of a slice are ready; one that does not say so is.
fn ready(slice: &Value) -> usize {
    let endpoints = list(slice, "/endpoints").iter();
    endpoints.filter(|one| one["conditions"]["ready"].as_bool() != Some(false)).count()
}

/// cert-manager's own webhooks in a configuration.
fn webhooks(kind: &str, configuration: &Value) -> Vec<AdmissionCase> {
    let own = list(configuration, "/webhooks").iter();
    let own = own.filter(|webhook| text(webhook, "/name") == "webhook.cert-manager.io");
    let case = |webhook: &Value| {
        let client = &webhook["clientConfig"];
        let service = client
            .get("service")
            .map(|service| ObjectName::new(text(service, "/namespace"), text(service, "/name")));
        AdmissionCase {
            configuration: format!("{kind} {}", text(configuration, "/metadata/name")),
            webhook: text(webhook, "/name").to_owned(),
            service,
            has_bundle: !text(client, "/caBundle").is_empty(),
            fails_closed: text(webhook, "/failurePolicy") != "Ignore",
            endpoints: None,
        }
    };
    own.map(case).collect()
}
