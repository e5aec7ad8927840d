//! Deployments of cert-manager's controller in a cluster.

use serde_json::Value;

use super::{ClusterReader, cut, list, name_of, text};
use crate::diagnosis::case::control::ControllerCase;

/// Environment variables that send requests through a proxy.
const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"];
/// Environment variables that exempt names from the proxy.
const EXEMPTION_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

impl ClusterReader<'_> {
    /// Selects the Deployments of the controller, and adds the states of their unhealthy Pods.
    pub(crate) fn controllers(deployments: &[Value], pods: &[Value]) -> Vec<ControllerCase> {
        let is_controller = |object: &&Value| {
            let labels = object.pointer("/metadata/labels");
            let component = labels.and_then(|all| all["app.kubernetes.io/component"].as_str());
            component.is_none_or(|component| component == "controller")
        };
        deployments.iter().filter(is_controller).map(|it| read_controller(it, pods)).collect()
    }
}

fn read_controller(deployment: &Value, pods: &[Value]) -> ControllerCase {
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
    let exempt = named(&EXEMPTION_VARIABLES).flat_map(|one| text(one, "/value").split(','));
    let count = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_u64);
    let own = pods.iter().filter(|pod| text(pod, "/metadata/namespace") == name.namespace);
    ControllerCase {
        release: tag.or_else(|| label.and_then(Value::as_str)).unwrap_or_default().to_owned(),
        flags: flags.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        account: match text(template, "/serviceAccountName") {
            "" => "default".to_owned(),
            account => account.to_owned(),
        },
        proxies: named(&PROXY_VARIABLES).map(|one| text(one, "/name").to_owned()).collect(),
        exempt: exempt.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        wanted: count("/spec/replicas").unwrap_or(1),
        ready: count("/status/readyReplicas").unwrap_or(0),
        ailing: own.filter_map(describe_unhealthy).collect(),
        name,
    }
}

/// Describes why a Pod is unhealthy; `None` if it is healthy.
fn describe_unhealthy(pod: &Value) -> Option<String> {
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
