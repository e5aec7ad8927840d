//! Cloudflare's DNS (API v4).

use async_trait::async_trait;
use http::{HeaderName, Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::api::{Api, ApiRefusal, ApiReply, Connection, Explanation, Request};
use super::credential::Credential;
use super::text::{encoded, relative, same_name, unquoted};
use super::{Provider, TxtRecord};
use crate::model::provider_refusal::{ProviderFault, ProviderRefusal};
use crate::solvers::SolveError;

/// URL of the API.
pub const ENDPOINT: &str = "https://api.cloudflare.com/client/v4";

const RIGHTS: &str =
    "the API token needs the permissions Zone - DNS - Edit and Zone - Zone - Read for the zone";
/// TTL in seconds; the shortest that the API takes.
const TTL: u32 = 60;
/// Records in one page.
const PAGE_SIZE: usize = 100;
/// Codes of "An identical record already exists", in both wordings of the API.
const EXISTS_CODES: [&str; 2] = ["81057", "81058"];

/// Identity at Cloudflare.
#[derive(Debug)]
pub enum CloudflareLogin {
    /// API token.
    Token(Credential),
    /// Global API key of the account with that e-mail address.
    Key {
        /// E-mail address.
        email: String,
        /// Key.
        key: Credential,
    },
}

/// A Cloudflare account.
#[derive(Debug)]
pub struct Cloudflare {
    api: Api,
    login: CloudflareLogin,
}

/// Frame of every good answer.
#[derive(Deserialize)]
struct Envelope<T> {
    result: Vec<T>,
    #[serde(default)]
    result_info: Option<PageInfo>,
}

#[derive(Deserialize)]
struct PageInfo {
    #[serde(default)]
    total_pages: usize,
}

#[derive(Deserialize)]
struct CloudflareZone {
    id: String,
}

#[derive(Deserialize)]
struct CloudflareRecord {
    id: String,
    name: String,
    content: String,
}

#[derive(Serialize)]
struct NewRecord<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    content: &'a str,
    ttl: u32,
}

impl Cloudflare {
    /// Works with the zones of an account, through the API at that URL.
    pub fn new(
        login: CloudflareLogin,
        endpoint: &str,
        connection: &Connection,
    ) -> Result<Self, SolveError> {
        let (secret, field) = match &login {
            CloudflareLogin::Token(token) => (token, "API token"),
            CloudflareLogin::Key { key, .. } => (key, "API key"),
        };
        if secret.expose().contains(|c: char| !c.is_ascii_graphic()) {
            let why = format!("it has characters that no {field} has");
            let call = format!("the {field}");
            return Err(SolveError::lasting(format!("the Cloudflare {field} is invalid"), &*why)
                .advised(format!("does the {field} contain a line break or a blank?"))
                .refused(ProviderRefusal::new(ProviderFault::Credentials, call, why)));
        }
        Ok(Self { api: Api::new(endpoint, connection, explain)?, login })
    }

    async fn send(&self, request: Request, path: &str) -> Result<ApiReply, (ApiRefusal, String)> {
        let what =
            format!("while querying the Cloudflare API for {} \"{path}\"", request.method.as_str());
        let request = match &self.login {
            CloudflareLogin::Token(token) => request.bearer(token),
            CloudflareLogin::Key { email, key } => request
                .header(HeaderName::from_static("x-auth-email"), email)
                .secret_header(HeaderName::from_static("x-auth-key"), key.expose()),
        };
        self.api.send(request).await.map_err(|refusal| (refusal, what))
    }

    async fn get<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Envelope<T>, SolveError> {
        let reply =
            self.send(self.api.request(Method::GET, path), path).await.map_err(solve_error)?;
        let unread = |refusal: ApiRefusal| {
            solve_error((refusal, format!("while querying the Cloudflare API for GET \"{path}\"")))
        };
        reply.json().map_err(unread)
    }

    /// Returns the id of the zone that holds a name: the zone of the name itself, or of the nearest parent with a zone.
    async fn zone(&self, name: &str) -> Result<String, SolveError> {
        let mut candidate = relative(name);
        while candidate.contains('.') {
            let path = format!("/zones?name={}", encoded(candidate));
            let page: Envelope<CloudflareZone> = self.get(&path).await.map_err(|error| {
                error.within(format!("while attempting to find Zones for domain {name}"))
            })?;
            if let Some(zone) = page.result.into_iter().next() {
                return Ok(zone.id);
            }
            candidate = candidate.split_once('.').map_or("", |(_, parent)| parent);
        }
        let what = format!("Found no Zones for domain {name}");
        let call = format!("GET {}/zones?name=…", self.api.base().trim_end_matches('/'));
        let why = "neither for itself nor for any of its parents";
        Err(SolveError::lasting(&*what, why)
            .advised(format!("check that the zone is in this account; {RIGHTS}"))
            .refused(ProviderRefusal::new(ProviderFault::NoZone, call, what)))
    }

    /// Reads the TXT records at a name, page by page.
    async fn records(&self, zone: &str, name: &str) -> Result<Vec<CloudflareRecord>, SolveError> {
        let first = format!(
            "/zones/{zone}/dns_records?per_page={PAGE_SIZE}&type=TXT&name={}",
            encoded(relative(name))
        );
        let mut records = Vec::new();
        let mut number = 1;
        loop {
            let path = if number == 1 { first.clone() } else { format!("{first}&page={number}") };
            let page: Envelope<CloudflareRecord> = self.get(&path).await?;
            records.extend(page.result.into_iter().filter(|r| same_name(&r.name, name)));
            if number >= page.result_info.map_or(1, |info| info.total_pages) {
                return Ok(records);
            }
            number += 1;
        }
    }

    /// Returns the ids of the records that have this text.
    async fn ours(&self, zone: &str, record: &TxtRecord) -> Result<Vec<String>, SolveError> {
        let records = self.records(zone, &record.name).await?;
        let is_ours = |r: &CloudflareRecord| unquoted(&r.content) == record.value;
        Ok(records.into_iter().filter(is_ours).map(|r| r.id).collect())
    }
}

#[async_trait]
impl Provider for Cloudflare {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        let zone = self.zone(&record.name).await?;
        if !self.ours(&zone, record).await?.is_empty() {
            return Ok(());
        }
        let path = format!("/zones/{zone}/dns_records");
        let name = relative(&record.name);
        let new = NewRecord { kind: "TXT", name, content: &record.value, ttl: TTL };
        match self.send(self.api.request(Method::POST, &path).json(&new), &path).await {
            Err((refusal, _)) if EXISTS_CODES.contains(&refusal.code.as_str()) => Ok(()),
            sent => sent.map(drop).map_err(solve_error),
        }
    }

    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError> {
        let zone = self.zone(&record.name).await?;
        for id in self.ours(&zone, record).await? {
            let path = format!("/zones/{zone}/dns_records/{id}");
            match self.send(self.api.request(Method::DELETE, &path), &path).await {
                Err((refusal, _)) if refusal.is(StatusCode::NOT_FOUND) => {}
                sent => drop(sent.map_err(solve_error)?),
            }
        }
        Ok(())
    }

    async fn check(&self, name: &str) -> Result<(), SolveError> {
        let zone = self.zone(name).await?;
        self.records(&zone, name).await.map(drop)
    }
}

fn solve_error((refusal, what): (ApiRefusal, String)) -> SolveError {
    refusal.into_error(what, RIGHTS)
}

/// Reads `{"errors": [{"code": 6003, "message": "…", "error_chain": […]}]}` into cert-manager's words.
fn explain(body: &[u8]) -> Option<Explanation> {
    #[derive(Deserialize)]
    struct Body {
        errors: Vec<Fault>,
    }
    #[derive(Deserialize)]
    struct Fault {
        code: u64,
        message: String,
        #[serde(default)]
        error_chain: Vec<Self>,
    }
    let Body { errors } = serde_json::from_slice(body).ok()?;
    let say = |fault: &Fault| {
        let chain = fault.error_chain.iter().map(|f| format!("<- {}: {}", f.code, f.message));
        format!("Error: {}: {}{}", fault.code, fault.message, chain.collect::<String>())
    };
    let code = errors.first()?.code.to_string();
    Some(Explanation { code, message: errors.iter().map(say).collect::<Vec<_>>().join(" ") })
}
