//! DigitalOcean's DNS (API v2).

use std::sync::Arc;

use async_trait::async_trait;
use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::api::{Api, ApiRefusal, ApiReply, Connection, Explanation, Request};
use super::credential::Credential;
use super::site::zone_of;
use super::text::{absolute, encoded, relative, same_name, unquoted};
use super::{Provider, TxtRecord};
use crate::dns::FindZone;
use crate::solvers::SolveError;

/// URL of the API.
pub const ENDPOINT: &str = "https://api.digitalocean.com";

const RIGHTS: &str = "the API token needs the scopes domain:read, domain:create and domain:delete";
/// TTL in seconds.
const TTL: u32 = 60;
/// Records in one page; the most that the API takes.
const PAGE_SIZE: usize = 200;

/// A DigitalOcean account.
#[derive(Debug)]
pub struct DigitalOcean {
    api: Api,
    token: Credential,
    zones: Arc<dyn FindZone>,
}

#[derive(Deserialize)]
struct RecordPage {
    domain_records: Vec<DigitalOceanRecord>,
    #[serde(default)]
    links: Links,
}

#[derive(Default, Deserialize)]
struct Links {
    #[serde(default)]
    pages: Pages,
}

#[derive(Default, Deserialize)]
struct Pages {
    next: Option<String>,
}

#[derive(Deserialize)]
struct DigitalOceanRecord {
    id: u64,
    /// Name relative to the zone; `@` is the zone itself.
    name: String,
    data: String,
}

#[derive(Serialize)]
struct NewRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    data: &'a str,
    ttl: u32,
}

impl DigitalOcean {
    /// Works with the zones of an account, through the API at that URL.
    pub fn new(
        token: Credential,
        zones: Arc<dyn FindZone>,
        endpoint: &str,
        connection: &Connection,
    ) -> Result<Self, SolveError> {
        Ok(Self { api: Api::new(endpoint, connection, explain)?, token, zones })
    }

    async fn send(&self, request: Request) -> Result<ApiReply, (ApiRefusal, String)> {
        let deed = format!("{} \"{}\"", request.method, request.target());
        let what = format!("while querying the DigitalOcean API for {deed}");
        self.api.send(request.bearer(&self.token)).await.map_err(|refusal| (refusal, what))
    }

    /// Reads the TXT records at a name, page by page.
    async fn records(&self, zone: &str, name: &str) -> Result<Vec<DigitalOceanRecord>, SolveError> {
        let mut records = Vec::new();
        for number in 1.. {
            let request = self.api.request(
                Method::GET,
                &format!(
                    "/v2/domains/{}/records?type=TXT&name={}&page={number}&per_page={PAGE_SIZE}",
                    encoded(zone),
                    encoded(relative(name)),
                ),
            );
            let deed =
                format!("while querying the DigitalOcean API for GET \"{}\"", request.target());
            let reply = self.send(request).await.map_err(solve_error)?;
            let page: RecordPage = reply.json().map_err(|refusal| solve_error((refusal, deed)))?;
            let is_there = |r: &DigitalOceanRecord| {
                let is_apex = r.name == "@" && same_name(zone, name);
                is_apex
                    || same_name(&r.name, name)
                    || same_name(&format!("{}.{zone}", r.name), name)
            };
            records.extend(page.domain_records.into_iter().filter(is_there));
            if page.links.pages.next.is_none() {
                break;
            }
        }
        Ok(records)
    }

    /// Returns the zone without its final dot, and the ids of the records that have this text.
    async fn ours(&self, record: &TxtRecord) -> Result<(String, Vec<u64>), SolveError> {
        let zone = relative(&zone_of(&*self.zones, &record.name).await?).to_owned();
        let records = self.records(&zone, &record.name).await?;
        let is_ours = |r: &DigitalOceanRecord| unquoted(&r.data) == record.value;
        Ok((zone, records.into_iter().filter(is_ours).map(|r| r.id).collect()))
    }
}

#[async_trait]
impl Provider for DigitalOcean {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        let (zone, ours) = self.ours(record).await?;
        if !ours.is_empty() {
            return Ok(());
        }
        let name = absolute(&record.name);
        let new = NewRecord { kind: "TXT", name: &name, data: &record.value, ttl: TTL };
        let path = format!("/v2/domains/{}/records", encoded(&zone));
        let sent = self.send(self.api.request(Method::POST, &path).json(&new)).await;
        sent.map(drop).map_err(solve_error)
    }

    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError> {
        let (zone, ours) = self.ours(record).await?;
        for id in ours {
            let path = format!("/v2/domains/{}/records/{id}", encoded(&zone));
            match self.send(self.api.request(Method::DELETE, &path)).await {
                Err((refusal, _)) if refusal.is(StatusCode::NOT_FOUND) => {}
                sent => drop(sent.map_err(solve_error)?),
            }
        }
        Ok(())
    }

    async fn check(&self, name: &str) -> Result<(), SolveError> {
        let zone = zone_of(&*self.zones, name).await?;
        self.records(relative(&zone), name).await.map(drop)
    }
}

fn solve_error((refusal, what): (ApiRefusal, String)) -> SolveError {
    refusal.into_error(what, RIGHTS)
}

/// Reads `{"id": "unauthorized", "message": "…", "request_id": "…"}`.
fn explain(body: &[u8]) -> Option<Explanation> {
    #[derive(Deserialize)]
    struct Body {
        id: String,
        message: String,
    }
    let Body { id, message } = serde_json::from_slice(body).ok()?;
    Some(Explanation { code: id, message })
}
