//! Akamai Edge DNS (API v2).

use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::rand;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::api::{Api, ApiRefusal, ApiReply, Connection, Explanation, Request};
pub use super::edge_grid::EdgeGrid;
use super::site::zone_of;
use super::text::{encoded, quoted, relative, unquoted};
use super::{Provider, TxtRecord};
use crate::dns::FindZone;
use crate::model::text::hex;
use crate::solvers::SolveError;

const RIGHTS: &str =
    "the API client needs READ-WRITE on DNS—Zone Record Management for the zone's group";
/// TTL of a new record set, in seconds.
const TTL: u32 = 300;

/// The zones of an Akamai account.
#[derive(Debug)]
pub struct Akamai {
    api: Api,
    login: EdgeGrid,
    zones: Arc<dyn FindZone>,
}

/// The TXT records at a name.
#[derive(Clone, Deserialize, Serialize)]
struct RecordSet {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    ttl: u32,
    rdata: Vec<String>,
}

/// Present record set at a name, and its path.
struct CurrentSet {
    path: String,
    set: Option<RecordSet>,
}

impl Akamai {
    /// Works with the zones of an account, through the API at that host or URL.
    pub fn new(
        login: EdgeGrid,
        service_consumer_domain: &str,
        zones: Arc<dyn FindZone>,
        connection: &Connection,
    ) -> Result<Self, SolveError> {
        let place = service_consumer_domain.trim().trim_end_matches('/');
        let base =
            if place.contains("://") { place.to_owned() } else { format!("https://{place}") };
        Ok(Self { api: Api::new(&base, connection, explain)?, login, zones })
    }

    async fn send(&self, request: Request) -> Result<ApiReply, ApiRefusal> {
        let sign = |request: &mut Request| {
            self.login.sign(request, &nonce(), Timestamp::now());
        };
        self.api.send_signed(request, &sign).await
    }

    async fn zone(&self, name: &str) -> Result<String, SolveError> {
        let zone = zone_of(&*self.zones, name).await.map_err(|error| SolveError {
            what: format!("edgedns: failed to determine hosted domain for \"{name}\""),
            ..error
        })?;
        Ok(relative(&zone).to_owned())
    }

    async fn read(&self, name: &str) -> Result<CurrentSet, SolveError> {
        let zone = self.zone(name).await?;
        let (zone, name) = (encoded(&zone), encoded(relative(name)));
        let path = format!("/config-dns/v2/zones/{zone}/names/{name}/types/TXT");
        let read = match self.send(self.api.request(Method::GET, &path)).await {
            Err(refusal) if refusal.is(StatusCode::NOT_FOUND) => {
                return Ok(CurrentSet { path, set: None });
            }
            read => read,
        };
        let set = read.and_then(|reply| reply.json());
        Ok(CurrentSet { path, set: Some(set.map_err(|r| solve_error(r, "retrieve"))?) })
    }

    /// Replaces an existing record set.
    async fn replace(&self, path: &str, set: &RecordSet) -> Result<(), SolveError> {
        let reply = self.send(self.api.request(Method::PUT, path).json(set)).await;
        reply.map(drop).map_err(|r| solve_error(r, "update"))
    }
}

#[async_trait]
impl Provider for Akamai {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        let CurrentSet { path, set } = self.read(&record.name).await?;
        let Some(mut set) = set else {
            let set = RecordSet {
                name: relative(&record.name).to_owned(),
                kind: "TXT".to_owned(),
                ttl: TTL,
                rdata: vec![quoted(&record.value)],
            };
            let reply = self.send(self.api.request(Method::POST, &path).json(&set)).await;
            return reply.map(drop).map_err(|r| solve_error(r, "create"));
        };
        if set.rdata.iter().any(|text| unquoted(text) == record.value) {
            return Ok(());
        }
        set.rdata.push(quoted(&record.value));
        self.replace(&path, &set).await
    }

    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError> {
        let CurrentSet { path, set } = self.read(&record.name).await?;
        let Some(mut set) = set else { return Ok(()) };
        let before = set.rdata.len();
        set.rdata.retain(|text| unquoted(text) != record.value);
        if set.rdata.len() == before {
            return Ok(());
        }
        if !set.rdata.is_empty() {
            return self.replace(&path, &set).await;
        }
        match self.send(self.api.request(Method::DELETE, &path)).await {
            Err(refusal) if refusal.is(StatusCode::NOT_FOUND) => Ok(()),
            reply => reply.map(drop).map_err(|r| solve_error(r, "delete")),
        }
    }

    async fn check(&self, name: &str) -> Result<(), SolveError> {
        let zone = self.zone(name).await?;
        let path = format!("/config-dns/v2/zones/{}", encoded(&zone));
        let reply = self.send(self.api.request(Method::GET, &path)).await;
        let what = format!("edgedns: failed to find the zone {zone} in this account");
        reply.map(drop).map_err(|refusal| refusal.into_error(what, RIGHTS))
    }
}

/// Returns a random text that is never used twice.
fn nonce() -> String {
    let mut bytes = [0; 16];
    // If the system has no randomness left, nothing works: TLS fails before this.
    rand::fill(&mut bytes).unwrap_or_default();
    hex(&bytes)
}

fn solve_error(refusal: ApiRefusal, deed: &str) -> SolveError {
    refusal.into_error(format!("edgedns: failed to {deed} TXT record"), RIGHTS)
}

/// Reads `{"type": "…", "title": "…", "detail": "…", "instance": "…"}` (RFC 9457).
fn explain(body: &[u8]) -> Option<Explanation> {
    #[derive(Deserialize)]
    struct Body {
        title: String,
        #[serde(default)]
        detail: String,
    }
    let Body { title, detail } = serde_json::from_slice(body).ok()?;
    let message = if detail.is_empty() { title.clone() } else { format!("{title}: {detail}") };
    Some(Explanation { code: title, message })
}
