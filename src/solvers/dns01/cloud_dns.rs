//! Google Cloud DNS (API v1).

use std::sync::Arc;

use async_trait::async_trait;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::api::{Api, ApiRefusal, ApiReply, Connection, Explanation, Request};
pub use super::google_login::GoogleCredentials;
use super::google_login::GoogleLogin;
use super::site::zone_of;
use super::text::{encoded, quoted, same_name, unquoted};
use super::{Edit, Provider, TxtRecord};
use crate::dns::FindZone;
use crate::model::provider_refusal::{ProviderFault, ProviderRefusal};
use crate::model::zone_look::ProviderZone;
use crate::solvers::SolveError;

/// URL of the API.
pub const ENDPOINT: &str = "https://dns.googleapis.com";

const RIGHTS: &str = "the service account needs dns.managedZones.list, dns.resourceRecordSets.list, .create, .update and .delete, \
    and dns.changes.create, .get and .list in the project, as the role DNS Administrator has them";
/// TTL of a new record set, in seconds.
const TTL: u32 = 60;
/// Most tries of a change that other clients overtake.
const MAX_TRIES: usize = 5;

/// The managed zones of a project.
#[derive(Debug)]
pub struct CloudDns {
    api: Api,
    login: GoogleLogin,
    project: String,
    hosted_zone_name: String,
    zones: Arc<dyn FindZone>,
}

#[derive(Deserialize)]
struct ManagedZones {
    #[serde(rename = "managedZones", default)]
    zones: Vec<ManagedZone>,
}

#[derive(Deserialize)]
struct ManagedZone {
    name: String,
    #[serde(default)]
    visibility: String,
    #[serde(rename = "nameServers", default)]
    name_servers: Vec<String>,
}

#[derive(Deserialize)]
struct RecordSets {
    #[serde(default)]
    rrsets: Vec<RecordSet>,
}

/// Record set; a deletion must contain the set exactly as read.
#[derive(Clone, Serialize, Deserialize)]
struct RecordSet {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    ttl: u32,
    #[serde(default)]
    rrdatas: Vec<String>,
}

#[derive(Deserialize)]
struct ZoneChanges {
    #[serde(default)]
    changes: Vec<ZoneChange>,
}

#[derive(Deserialize)]
struct ZoneChange {
    status: String,
    #[serde(default)]
    additions: Vec<RecordSet>,
}

impl RecordSet {
    fn has(&self, record: &TxtRecord) -> bool {
        same_name(&self.name, &record.name)
            && self.rrdatas.iter().any(|text| unquoted(text) == record.value)
    }
}

impl CloudDns {
    /// Works with the managed zones of a project, through the API at that URL; the name of a zone may be given.
    pub fn new(
        login: GoogleCredentials,
        project: &str,
        hosted_zone_name: &str,
        zones: Arc<dyn FindZone>,
        endpoint: &str,
        connection: &Connection,
    ) -> Result<Self, SolveError> {
        Ok(Self {
            api: Api::new(endpoint, connection, explain)?,
            login: GoogleLogin::new(login, connection),
            project: format!("/dns/v1/projects/{}/managedZones", encoded(project.trim())),
            hosted_zone_name: hosted_zone_name.trim().to_owned(),
            zones,
        })
    }

    async fn send(&self, request: Request) -> Result<Result<ApiReply, ApiRefusal>, SolveError> {
        let token = self.login.token().await?;
        let sent = self.api.send(request.bearer(&token)).await;
        if matches!(&sent, Err(refusal) if refusal.is(StatusCode::UNAUTHORIZED)) {
            self.login.clear().await;
        }
        Ok(sent)
    }

    async fn get<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        what: &str,
    ) -> Result<T, SolveError> {
        let sent = self.send(self.api.request(Method::GET, path)).await?;
        sent.and_then(|reply| reply.json()).map_err(|r| solve_error(r, what.to_owned()))
    }

    /// Returns the path of the managed zone that holds a name; of a public zone if there are several.
    async fn zone(&self, name: &str) -> Result<String, SolveError> {
        if !self.hosted_zone_name.is_empty() {
            return Ok(format!("{}/{}", self.project, encoded(&self.hosted_zone_name)));
        }
        let zone = zone_of(&*self.zones, name).await?;
        let path = format!("{}?dnsName={}", self.project, encoded(&zone));
        let found: ManagedZones = self.get(&path, "GoogleCloud API call failed").await?;
        let is_public = |zone: &&ManagedZone| zone.visibility == "public";
        let Some(found) = found.zones.iter().find(is_public).or_else(|| found.zones.first()) else {
            let what = format!("No matching GoogleCloud domain found for domain {zone}");
            let call = format!("GET {}{path}", self.api.base().trim_end_matches('/'));
            let why = "this project has no managed zone with that DNS name";
            return Err(SolveError::lasting(what, why)
                .advised("check project, or set hostedZoneName to the name of the managed zone")
                .refused(ProviderRefusal::new(ProviderFault::NoZone, call, why)));
        };
        Ok(format!("{}/{}", self.project, encoded(&found.name)))
    }

    /// Reads the TXT records at a name.
    async fn read(&self, zone: &str, name: &str) -> Result<Option<RecordSet>, SolveError> {
        let path = format!("{zone}/rrsets?name={}&type=TXT", encoded(name));
        let what = format!("failed to read TXT records of {name} in Cloud DNS");
        let found: RecordSets = self.get(&path, &what).await?;
        Ok(found.rrsets.into_iter().find(|set| set.kind == "TXT" && same_name(&set.name, name)))
    }

    /// Replaces the record set in one change, anew if another client was quicker.
    async fn write(&self, record: &TxtRecord, edit: Edit) -> Result<(), SolveError> {
        let zone = self.zone(&record.name).await?;
        for last in (0..MAX_TRIES).map(|number| number + 1 == MAX_TRIES) {
            let old = self.read(&zone, &record.name).await?;
            let Some(change) = change(old, record, edit) else { return Ok(()) };
            let request = self.api.request(Method::POST, &format!("{zone}/changes"));
            match self.send(request.json(&change)).await? {
                Err(refusal) if is_overtaken(&refusal) && !last => {}
                sent => {
                    let what =
                        || format!("failed to change TXT records of {} in Cloud DNS", record.name);
                    return sent.map(drop).map_err(|refusal| solve_error(refusal, what()));
                }
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Provider for CloudDns {
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

    async fn zones_of_name(&self, name: &str) -> Result<Vec<ProviderZone>, SolveError> {
        let zone = zone_of(&*self.zones, name).await?;
        let written = self.zone(name).await?;
        let path = format!("{}?dnsName={}", self.project, encoded(&zone));
        let found: ManagedZones = self.get(&path, "GoogleCloud API call failed").await?;
        let zones = found.zones.into_iter().map(|one| {
            let is_written = written == format!("{}/{}", self.project, encoded(&one.name));
            let (is_private, name) = (one.visibility == "private", zone.clone());
            let listed = ProviderZone {
                id: one.name,
                name,
                is_private,
                name_servers: Vec::new(),
                is_written,
            };
            listed.with_servers(one.name_servers.iter().map(String::as_str))
        });
        Ok(zones.collect())
    }

    async fn is_everywhere(&self, record: &TxtRecord) -> Result<bool, SolveError> {
        let zone = self.zone(&record.name).await?;
        let path =
            format!("{zone}/changes?maxResults=20&sortBy=changeSequence&sortOrder=descending");
        let what = "failed to query the changes of Cloud DNS";
        let ZoneChanges { changes } = self.get(&path, what).await?;
        let last = changes.iter().find(|change| change.additions.iter().any(|set| set.has(record)));
        Ok(last.is_none_or(|change| change.status != "pending"))
    }
}

/// Builds the change that adds or removes the text; `None` if the record set is right already.
fn change(old: Option<RecordSet>, record: &TxtRecord, edit: Edit) -> Option<Value> {
    let is_there = old.as_ref().is_some_and(|set| set.has(record));
    if is_there == matches!(edit, Edit::Add) {
        return None;
    }
    let mut new = old.clone().unwrap_or_else(|| RecordSet {
        name: record.name.clone(),
        kind: "TXT".to_owned(),
        ttl: TTL,
        rrdatas: Vec::new(),
    });
    match edit {
        Edit::Add => new.rrdatas.push(quoted(&record.value)),
        Edit::Remove => new.rrdatas.retain(|text| unquoted(text) != record.value),
    }
    let additions = if new.rrdatas.is_empty() { vec![] } else { vec![new] };
    Some(json!({"additions": additions, "deletions": old.into_iter().collect::<Vec<_>>()}))
}

/// Returns whether the record set has changed since it was read.
fn is_overtaken(refusal: &ApiRefusal) -> bool {
    refusal.is(StatusCode::PRECONDITION_FAILED) || refusal.is(StatusCode::CONFLICT)
}

fn solve_error(refusal: ApiRefusal, what: String) -> SolveError {
    refusal.into_error(what, RIGHTS)
}

/// Reads `{"error": {"code": 403, "message": "…", "errors": [{"reason": "forbidden"}]}}`.
fn explain(body: &[u8]) -> Option<Explanation> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error")?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let code = text(error.pointer("/errors/0/reason"));
    let message = text(error.get("message"));
    let message = if code.is_empty() { message } else { format!("{message}, {code}") };
    Some(Explanation { code, message })
}
