//! cert-manager's webhook protocol: another program publishes the record that one object describes.
//!
//! A webhook that `--dns01-webhook` names goes before the API server's, because the user asked for
//! it. Payloads carry `apiVersion` and `kind`; servers take payloads with or without these fields.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{Level, debug, enabled};

use super::api::{Api, Connection, Explanation};
use super::site::{Site, Webhooks, zone_of};
use super::text::one_line;
use super::{Provider, TxtRecord};
use crate::dns::{FindZone, Resolve};
use crate::model::validation::{object_name_fault, path_segment_fault};
use crate::model::{masked, solver};
use crate::solvers::SolveError;
use crate::solvers::remedy::Remedy;

/// Returns the path of a solver, at an API server and at the webhook itself.
///
/// # Errors
/// Fails if the names would lead elsewhere: otherwise anyone who writes an Issuer could choose any path.
pub fn path(group: &str, solver: &str) -> Result<String, SolveError> {
    let wrong = |field: &str, name: &str, why: &str| {
        SolveError::lasting(
            "cannot call the webhook",
            format!("webhook.{field} is \"{}\", which is not a valid name: {why}", one_line(name)),
        )
        .advised(format!("mend {field} in the solver of the issuer"))
    };
    if let Some(why) = object_name_fault(group) {
        return Err(wrong("groupName", group, why));
    }
    if let Some(why) = path_segment_fault(solver) {
        return Err(wrong("solverName", solver, why));
    }
    Ok(format!("/apis/{group}/v1alpha1/{solver}"))
}

/// Webhooks that are called directly (`--dns01-webhook GROUP=URL`); groups without a URL go to the other client, if any.
#[derive(Debug)]
pub struct DirectWebhooks {
    /// URL of each group.
    pub urls: BTreeMap<String, String>,
    /// Resolver for the webhooks' hosts.
    pub resolver: Arc<dyn Resolve>,
    /// Client for the other groups.
    pub others: Option<Arc<dyn Webhooks>>,
}

#[async_trait]
impl Webhooks for DirectWebhooks {
    async fn call(&self, group: &str, solver: &str, payload: &Value) -> Result<Value, SolveError> {
        let path = path(group, solver)?;
        let what = || format!("cannot call the webhook {solver} of {group}");
        let Some(url) = self.urls.get(group) else {
            let Some(others) = &self.others else {
                return Err(SolveError::lasting(
                    what(),
                    "there is no API server here that knows where it is",
                )
                .advised(Remedy::WebhookAddress { group: group.to_owned() }));
            };
            return others.call(group, solver, payload).await;
        };
        let api = Api::new(url, &Connection::new(&self.resolver), explain)?.confidential();
        let request = api.request(Method::POST, &path).json(payload);
        let answered = api.send(request).await.and_then(|reply| reply.json());
        answered.map_err(|refusal| {
            refusal.into_error(format!("{} at {url}", what()), "it refuses who we are")
        })
    }
}

/// Reads Kubernetes' own object for errors.
fn explain(body: &[u8]) -> Option<Explanation> {
    #[derive(Deserialize)]
    struct Status {
        message: String,
        #[serde(default)]
        reason: String,
    }
    let Status { message, reason } = serde_json::from_slice(body).ok()?;
    Some(Explanation { code: reason, message })
}

/// Solver that another program implements.
#[derive(Debug)]
pub struct Webhook {
    group: String,
    solver: String,
    config: Option<Value>,
    namespace: String,
    ambient: bool,
    zones: Arc<dyn FindZone>,
    webhooks: Arc<dyn Webhooks>,
}

impl Webhook {
    /// Takes the values that every call contains.
    pub(super) fn of(fields: &solver::Webhook, site: &Site<'_>) -> Self {
        Self {
            group: fields.group_name.clone(),
            solver: fields.solver_name.clone(),
            config: fields.config.clone(),
            namespace: site.namespace.to_owned(),
            ambient: site.ambient,
            zones: Arc::clone(site.zones),
            webhooks: Arc::clone(site.webhooks),
        }
    }

    async fn call(&self, action: &str, record: &TxtRecord) -> Result<(), SolveError> {
        let zone = zone_of(&*self.zones, &record.name).await?;
        let mut request = json!({
            "uid": "",
            "action": action,
            "type": "dns-01",
            "dnsName": record.domain,
            "key": record.value,
            "resourceNamespace": self.namespace,
            "resolvedFQDN": record.name,
            "resolvedZone": zone,
            "allowAmbientCredentials": self.ambient,
        });
        if let Some(config) = &self.config {
            request["config"] = config.clone();
        }
        let payload = json!({
            "apiVersion": "webhook.acme.cert-manager.io/v1alpha1",
            "kind": "ChallengePayload",
            "request": request,
        });
        let (group, solver) = (&self.group, &self.solver);
        if enabled!(Level::DEBUG) {
            let payload = masked::document(payload.clone());
            debug!(group, solver, %payload, "calls the webhook");
        }
        let answered = self.webhooks.call(group, solver, &payload).await?;
        if enabled!(Level::DEBUG) {
            let body = masked::document(answered.clone());
            debug!(group, solver, %body, "the webhook answers");
        }
        let failed = |why: &str| {
            SolveError::passing(
                format!("the webhook {} of {} fails", self.solver, self.group),
                why.to_owned(),
            )
        };
        let response = &answered["response"];
        if response["success"] == true {
            return Ok(());
        }
        let said = response["status"]["message"].as_str();
        Err(failed(&one_line(
            said.unwrap_or("invalid payload response, did not succeed but no result provided"),
        )))
    }
}

#[async_trait]
impl Provider for Webhook {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        self.call("Present", record).await
    }

    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError> {
        self.call("CleanUp", record).await
    }

    /// Succeeds: the protocol has no read request.
    async fn check(&self, _: &str) -> Result<(), SolveError> {
        Ok(())
    }
}
