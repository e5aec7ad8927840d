//! DNS-01 webhooks that issuers name: whether the API server reaches them, their served resources, and permissions.

use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::timeout;

use super::{ClusterReader, ControlSubjects, PODS, list};
use crate::diagnosis::case::control::{ControllerCase, DnsWebhookCase, WebhookApi};
use crate::evidence::patience::PROBE_TIMEOUT;
use crate::model::own_solver::GROUP;
use crate::model::solver::Webhook;
use crate::model::{Key, Kind, ObjectName};
use crate::store::cluster::permissions::Permission;
use crate::store::cluster::raw_objects::Resource;

/// Version of the API in which cert-manager calls webhooks.
const WEBHOOK_API_VERSION: &str = "v1alpha1";

const API_SERVICES: Resource = Resource {
    api_version: "apiregistration.k8s.io/v1",
    kind: "APIService",
    plural: "apiservices.apiregistration.k8s.io",
};
const SERVICES: Resource = Resource { api_version: "v1", kind: "Service", plural: "services" };

impl ClusterReader<'_> {
    /// Reads the state of every DNS-01 webhook that an issuer names, except those that this program itself implements.
    pub(crate) async fn dns_webhooks(
        &self,
        around: &ControlSubjects,
        controllers: &[ControllerCase],
    ) -> Vec<DnsWebhookCase> {
        let caller = match controllers {
            [one] => Some(ObjectName::new(&one.name.namespace, &one.account)),
            _ => None,
        };
        let others = around.webhooks.iter().filter(|(_, webhook)| webhook.group_name != GROUP);
        let asked = others.map(|(issuer, webhook)| self.webhook(issuer, webhook, caller.as_ref()));
        join_all(asked).await
    }

    async fn webhook(
        &self,
        issuer: &Key,
        webhook: &Webhook,
        caller: Option<&ObjectName>,
    ) -> DnsWebhookCase {
        let Webhook { group_name: group, solver_name: solver, config } = webhook;
        let services = self.of(API_SERVICES, "");
        let name = format!("{WEBHOOK_API_VERSION}.{group}");
        let read = self.read(API_SERVICES.plural, services.get(&name)).await;
        let (api, service) = match &read {
            None => (WebhookApi::Unknown, None),
            Some(None) => (WebhookApi::Absent, None),
            Some(Some(found)) => read_api_service(found),
        };
        let is_available = api == WebhookApi::Available;
        let served = async {
            let served = timeout(PROBE_TIMEOUT, self.cluster.served(group, WEBHOOK_API_VERSION));
            if is_available { served.await.ok()?.ok() } else { None }
        };
        let may_call = async {
            let wanted = Permission::new("create", format!("{solver}.{group}"), "");
            let asked = self.cluster.account_may(caller?, &wanted);
            timeout(PROBE_TIMEOUT, asked).await.ok().flatten()
        };
        let account = async {
            let service = service.as_ref()?;
            let read = self.of(SERVICES, &service.namespace);
            let read = self.read("services", read.get(&service.name)).await.flatten()?;
            let selector = read["spec"]["selector"].as_object()?.iter();
            let labels = selector
                .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
            let labels: Vec<String> = labels.collect();
            let pods = self.of(PODS, &service.namespace);
            let pods = self.read("pods", pods.fitting(&labels.join(","), "")).await?;
            let account = pods.first()?["spec"]["serviceAccountName"].as_str()?;
            Some(ObjectName::new(&service.namespace, account))
        };
        let (served, may_call, account) = tokio::join!(served, may_call, account);
        let place = match issuer.kind {
            Kind::ClusterIssuer => self.by.cluster_resource_namespace.as_str(),
            _ => &issuer.name.namespace,
        };
        let mut secrets = Vec::new();
        if let Some(config) = config {
            find_secrets(config, place, &mut secrets);
        }
        let closed = secrets.into_iter().map(|secret| async {
            let wanted = Permission::on("get", &Key::new(Kind::Secret, secret.clone()));
            let asked = self.cluster.account_may(account.as_ref()?, &wanted);
            let may = timeout(PROBE_TIMEOUT, asked).await.ok().flatten();
            (may == Some(false)).then_some(secret)
        });
        let closed_secrets = join_all(closed).await.into_iter().flatten().collect();
        let shown = |account: &ObjectName| {
            format!("system:serviceaccount:{}:{}", account.namespace, account.name)
        };
        DnsWebhookCase {
            issuer: issuer.clone(),
            group: group.clone(),
            solver: solver.clone(),
            api,
            served,
            caller: caller.map(shown),
            may_call,
            account,
            closed_secrets,
        }
    }
}

/// Reads the availability of an APIService, and the Service behind it.
fn read_api_service(found: &Value) -> (WebhookApi, Option<ObjectName>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let service = &found["spec"]["service"];
    let service = ObjectName::new(text(&service["namespace"]), text(&service["name"]));
    let mut conditions = list(found, "/status/conditions").iter();
    let api = match conditions.find(|condition| condition["type"] == "Available") {
        None => WebhookApi::Unknown,
        Some(condition) if condition["status"] == "True" => WebhookApi::Available,
        Some(condition) => WebhookApi::Unavailable {
            reason: text(&condition["reason"]),
            message: text(&condition["message"]),
            service: service.clone(),
        },
    };
    (api, Some(service).filter(|service| !service.name.is_empty()))
}

/// Adds the Secrets that a webhook's configuration names in the usual form: `…SecretRef: {name: …}`.
fn find_secrets(config: &Value, namespace: &str, found: &mut Vec<ObjectName>) {
    let Some(fields) = config.as_object() else { return };
    for (field, value) in fields {
        let name = value["name"].as_str().filter(|_| field.ends_with("ecretRef"));
        match name {
            Some(name) => found.push(ObjectName::new(namespace, name)),
            None => find_secrets(value, namespace, found),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_found_in_what_a_webhook_is_told() {
        let config = json!({
            "apiKeySecretRef": {"name": "a", "key": "k"}, "deep": {"passwordSecretRef": {"name": "b"}},
            "endpoint": "c",
        });
        let mut found = Vec::new();
        find_secrets(&config, "web", &mut found);
        assert_eq!(found, [ObjectName::new("web", "a"), ObjectName::new("web", "b")]);
    }

    #[test]
    fn an_api_that_says_nothing_yet_is_neither_well_nor_ill() {
        let service = json!({"namespace": "dns", "name": "hook"});
        let of = |status: &str| {
            let conditions = json!([{"type": "Available", "status": status, "reason": "R"}]);
            json!({"spec": {"service": service}, "status": {"conditions": conditions}})
        };
        assert_eq!(read_api_service(&of("True")).0, WebhookApi::Available);
        assert!(matches!(read_api_service(&of("False")).0, WebhookApi::Unavailable { .. }));
        let (api, behind) = read_api_service(&json!({"spec": {"service": service}}));
        assert_eq!((api, behind), (WebhookApi::Unknown, Some(ObjectName::new("dns", "hook"))));
    }
}
