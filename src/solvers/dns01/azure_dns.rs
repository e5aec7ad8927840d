//! Azure DNS, public and private zones, through the resource manager.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Api, ApiRefusal, ApiReply, Connection, Explanation, Request};
use super::azure_login::AzureLogin;
pub use super::azure_login::{AzureCredentials, Cloud, ManagedIdentity};
use super::site::zone_of;
use super::text::{below, encoded, relative, same_name};
use super::{Edit, Provider, TxtRecord};
use crate::dns::FindZone;
use crate::model::provider_refusal::{ProviderFault, ProviderRefusal};
use crate::solvers::SolveError;

const RIGHTS: &str = "the identity needs the role DNS Zone Contributor on the zone (Private DNS Zone Contributor for a private one)";
/// TTL of a new record set, in seconds.
const TTL: u32 = 60;
/// Most tries of a change that other clients overtake.
const MAX_TRIES: usize = 5;

/// Kind of zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneType {
    /// Served to the world.
    Public,
    /// Served inside virtual networks.
    Private,
}

/// Settings of a solver for Azure, with the Secrets read.
#[derive(Debug)]
pub struct AzureDnsSettings {
    /// Identity at Azure.
    pub login: AzureCredentials,
    /// Azure cloud.
    pub cloud: Cloud,
    /// Subscription.
    pub subscription: String,
    /// Resource group.
    pub resource_group: String,
    /// Zone; may be empty.
    pub hosted_zone_name: String,
    /// Kind of zone.
    pub zone_type: ZoneType,
}

/// The zones of a resource group.
#[derive(Debug)]
pub struct AzureDns {
    api: Api,
    login: AzureLogin,
    group: String,
    hosted_zone_name: String,
    zone_type: ZoneType,
    zones: Arc<dyn FindZone>,
}

/// The TXT records at a name.
#[derive(Deserialize)]
struct AzureRecordSet {
    #[serde(default)]
    etag: String,
    properties: Properties,
}

/// Properties of a record set; public zones write some names in capitals.
#[derive(Deserialize)]
struct Properties {
    #[serde(alias = "TTL", default)]
    ttl: Option<u32>,
    #[serde(default)]
    metadata: Option<Value>,
    #[serde(alias = "TXTRecords", rename = "txtRecords", default)]
    texts: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    value: Vec<String>,
}

impl AzureDns {
    /// Works with the zones of a resource group.
    pub fn new(
        settings: AzureDnsSettings,
        zones: Arc<dyn FindZone>,
        connection: &Connection,
    ) -> Result<Self, SolveError> {
        let AzureDnsSettings {
            login,
            cloud,
            subscription,
            resource_group,
            hosted_zone_name,
            zone_type,
        } = settings;
        Ok(Self {
            api: Api::new(&cloud.manager, connection, explain)?,
            login: AzureLogin::new(login, cloud, connection),
            group: format!(
                "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network",
                encoded(&subscription),
                encoded(&resource_group)
            ),
            hosted_zone_name: relative(hosted_zone_name.trim()).to_owned(),
            zone_type,
            zones,
        })
    }

    async fn send(&self, request: Request) -> Result<Result<ApiReply, ApiRefusal>, SolveError> {
        let token = self.login.token().await?;
        let reply = self.api.send(request.bearer(&token)).await;
        if matches!(&reply, Err(refusal) if refusal.is(StatusCode::UNAUTHORIZED)) {
            self.login.clear().await;
        }
        Ok(reply)
    }

    async fn zone(&self, name: &str) -> Result<String, SolveError> {
        if !self.hosted_zone_name.is_empty() {
            return Ok(self.hosted_zone_name.clone());
        }
        Ok(relative(&zone_of(&*self.zones, name).await?).to_owned())
    }

    /// Returns the path of the TXT records at a name.
    fn path(&self, zone: &str, name: &str) -> Result<String, SolveError> {
        let (kind, version) = match self.zone_type {
            ZoneType::Public => ("dnsZones", "2018-05-01"),
            ZoneType::Private => ("privateDnsZones", "2020-06-01"),
        };
        let set = match below(name, zone) {
            Some(set) => set,
            None if same_name(name, zone) => "@",
            None => {
                let what = format!("Zone {zone} not found in AzureDNS for domain {name}");
                let (call, why) =
                    (format!("hostedZoneName {zone}"), "the name is not in that zone");
                return Err(SolveError::lasting(what, why)
                    .advised("hostedZoneName must be a parent of the name")
                    .refused(ProviderRefusal::new(ProviderFault::NoZone, call, why)));
            }
        };
        let (group, zone, set) = (&self.group, encoded(zone), encoded(set));
        Ok(format!("{group}/{kind}/{zone}/TXT/{set}?api-version={version}"))
    }

    /// Reads the record set at a name; `None` if there is no such record.
    async fn read(&self, zone: &str, name: &str) -> Result<Option<AzureRecordSet>, SolveError> {
        let request = self.api.request(Method::GET, &self.path(zone, name)?);
        let what = format!("failed to read TXT records of {name} in Azure DNS");
        let reply = match self.send(request).await? {
            Ok(reply) => reply,
            Err(refusal) if is_zone_missing(&refusal) => {
                return Err(solve_error(
                    refusal,
                    format!("Zone {zone} not found in AzureDNS for domain {name}"),
                )
                .advised("check subscriptionID, resourceGroupName and hostedZoneName"));
            }
            Err(refusal) if refusal.is(StatusCode::NOT_FOUND) => return Ok(None),
            Err(refusal) => return Err(solve_error(refusal, what)),
        };
        reply.json().map(Some).map_err(|refusal| solve_error(refusal, what))
    }

    /// Builds the request that adds or removes the text; `None` if the record set is right already.
    fn change(
        &self,
        path: &str,
        set: Option<&AzureRecordSet>,
        edit: Edit,
        value: &str,
    ) -> Option<Request> {
        let texts: &[Text] = set.map_or(&[], |set| &set.properties.texts);
        let is_ours = |text: &&Text| text.value.concat() == value;
        let is_there = texts.iter().any(|text| is_ours(&text));
        let mut wanted: Vec<Value> = match edit {
            Edit::Add if is_there => return None,
            Edit::Remove if !is_there => return None,
            Edit::Add | Edit::Remove => texts
                .iter()
                .filter(|text| !is_ours(text))
                .map(|t| json!({"value": t.value}))
                .collect(),
        };
        if matches!(edit, Edit::Add) {
            wanted.push(json!({"value": [value]}));
        }
        let method = if wanted.is_empty() { Method::DELETE } else { Method::PUT };
        let mut request = self.api.request(method, path);
        if !wanted.is_empty() {
            let (ttl, txt) = match self.zone_type {
                ZoneType::Public => ("TTL", "TXTRecords"),
                ZoneType::Private => ("ttl", "txtRecords"),
            };
            let seconds = set.and_then(|set| set.properties.ttl).unwrap_or(TTL);
            let mut properties = json!({ttl: seconds, txt: wanted});
            if let Some(metadata) = set.and_then(|set| set.properties.metadata.as_ref()) {
                properties["metadata"] = metadata.clone();
            }
            request = request.json(&json!({"properties": properties}));
        }
        Some(match set {
            Some(set) => request.header(IF_MATCH, &set.etag),
            None => request.header(IF_NONE_MATCH, "*"),
        })
    }

    /// Reads the record set and writes the change, anew if another client was quicker.
    async fn write(&self, record: &TxtRecord, edit: Edit) -> Result<(), SolveError> {
        let zone = self.zone(&record.name).await?;
        let path = self.path(&zone, &record.name)?;
        let what = || format!("failed to change TXT records of {} in Azure DNS", record.name);
        for last in (0..MAX_TRIES).map(|number| number + 1 == MAX_TRIES) {
            let set = self.read(&zone, &record.name).await?;
            let Some(request) = self.change(&path, set.as_ref(), edit, &record.value) else {
                return Ok(());
            };
            match self.send(request).await? {
                Err(refusal) if refusal.is(StatusCode::PRECONDITION_FAILED) && !last => {}
                reply => return reply.map(drop).map_err(|refusal| solve_error(refusal, what())),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Provider for AzureDns {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        self.write(record, Edit::Add).await
    }

    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError> {
        self.write(record, Edit::Remove).await
    }

    async fn check(&self, name: &str) -> Result<(), SolveError> {
        let zone = self.zone(name).await?;
        self.read(&zone, name).await.map(drop)
    }
}

/// Returns whether a zone, group or subscription is missing, not just a record: by the code or, if it is vague, by the path.
fn is_zone_missing(refusal: &ApiRefusal) -> bool {
    match refusal.code.as_str() {
        "ParentResourceNotFound" | "ResourceGroupNotFound" | "SubscriptionNotFound" => true,
        "ResourceNotFound" => !refusal.why.contains("/TXT/"),
        _ => false,
    }
}

fn solve_error(refusal: ApiRefusal, what: String) -> SolveError {
    refusal.into_error(what, RIGHTS)
}

/// Reads `{"error": {"code": "…", "message": "…"}}`, or the inner object alone, as some of Azure's services write it.
fn explain(body: &[u8]) -> Option<Explanation> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error").unwrap_or(&body);
    let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let code = text("code");
    let message = format!("{code}: {}", text("message"));
    Some(Explanation { code, message })
}
