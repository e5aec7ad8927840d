//! Amazon's Route 53 (API 2013-04-01).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use parking_lot::{Mutex, MutexGuard};

use super::api::{Api, ApiRefusal, ApiReply, Connection, Request};
pub use super::aws::AwsLogin;
use super::aws::AwsSigner;
pub use super::aws::Endpoints;
use super::aws::xml::{self, explain};
use super::site::zone_of;
use super::text::{absolute, below, encoded, quoted, relative, same_name};
use super::{Provider, TxtRecord};
use crate::dns::FindZone;
use crate::model::provider_refusal::{ProviderFault, ProviderRefusal};
use crate::model::zone_look::ProviderZone;
use crate::solvers::SolveError;

const VERSION: &str = "/2013-04-01";
const RIGHTS: &str = "the identity needs route53:ChangeResourceRecordSets and route53:ListResourceRecordSets on the hosted zone, \
    route53:ListHostedZonesByName, and route53:GetChange";
/// TTL in seconds.
const TTL: u32 = 10;
const ZONE_FAILURE: &str = "failed to determine Route 53 hosted zone ID";
const CHANGE_FAILURE: &str = "failed to change Route 53 record set";
const STATUS_FAILURE: &str = "failed to query Route 53 change status";

/// Settings of a solver for Route 53, with the Secrets read.
#[derive(Debug)]
pub struct Route53Settings {
    /// Identity at AWS.
    pub login: AwsLogin,
    /// ARN of a role to assume; may be empty.
    pub role: String,
    /// Id of the hosted zone; may be empty.
    pub hosted_zone_id: String,
    /// Addresses of the services.
    pub endpoints: Endpoints,
}

/// The hosted zones of an AWS account.
#[derive(Debug)]
pub struct Route53 {
    api: Api,
    signer: AwsSigner,
    hosted_zone_id: String,
    zones: Arc<dyn FindZone>,
}

/// Server, name and text of a change.
type ChangedText = [String; 3];

/// Ids of the process's changes under way, kept here because providers are built anew for every step.
static CHANGES: Mutex<BTreeMap<ChangedText, String>> = Mutex::new(BTreeMap::new());

fn changes() -> MutexGuard<'static, BTreeMap<ChangedText, String>> {
    CHANGES.lock()
}

impl Route53 {
    /// Works with the hosted zones of an account.
    pub fn new(
        settings: Route53Settings,
        zones: Arc<dyn FindZone>,
        connection: &Connection,
    ) -> Result<Self, SolveError> {
        let Route53Settings { login, role, hosted_zone_id, endpoints } = settings;
        let (id, secret) = match &login {
            AwsLogin::Keys { id, secret } => (!id.is_empty(), !secret.is_empty()),
            AwsLogin::WebIdentity { .. } if role.is_empty() => {
                return Err(unusable("role must be set when web identity token is set"));
            }
            AwsLogin::Ambient(_) | AwsLogin::WebIdentity { .. } => (true, true),
        };
        if !id && !secret {
            let why = "empty credentials; perhaps you meant to enable ambient credentials?";
            return Err(unusable(why));
        }
        if !id || !secret {
            return Err(unusable("only one of access and secret key was provided"));
        }
        Ok(Self {
            api: Api::new(&endpoints.route53, connection, explain)?,
            signer: AwsSigner::new(login, &role, "route53", &endpoints, connection)?,
            hosted_zone_id: hosted_zone_id.trim().trim_start_matches("/hostedzone/").to_owned(),
            zones,
        })
    }

    async fn send(
        &self,
        request: Request,
        what: &str,
    ) -> Result<Result<ApiReply, ApiRefusal>, SolveError> {
        self.signer.send(&self.api, request, what).await
    }

    async fn get(&self, path: &str, what: &str) -> Result<String, SolveError> {
        let request = self.api.request(Method::GET, &format!("{VERSION}{path}"));
        let reply = self.send(request, what).await?.map_err(|r| solve_error(r, what))?;
        Ok(String::from_utf8_lossy(&reply.body).into_owned())
    }

    /// Returns the id of the public hosted zone that holds a name; of the nearest zone if there are several.
    async fn zone(&self, name: &str) -> Result<String, SolveError> {
        if !self.hosted_zone_id.is_empty() {
            return Ok(self.hosted_zone_id.clone());
        }
        let zone = zone_of(&*self.zones, name).await?;
        let path = format!("/hostedzonesbyname?dnsname={}", encoded(relative(&zone)));
        let list = self.get(&path, ZONE_FAILURE).await?;
        let public = xml::all(&list, "HostedZone").filter_map(|entry| {
            let is_private = xml::first(entry, "PrivateZone").is_some_and(|text| text == "true");
            let found = (xml::first(entry, "Name")?, xml::first(entry, "Id")?);
            let holds = below(name, &found.0).is_some() || same_name(name, &found.0);
            (!is_private && holds).then_some(found)
        });
        // Of several with one name, the first, as AWS lists them.
        let nearest = public.reduce(|a, b| if b.0.len() > a.0.len() { b } else { a });
        let Some((_, id)) = nearest else {
            let why = format!("zone {zone} not found in Route 53 for domain {name}");
            let call = format!("GET {}{VERSION}{path}", self.api.base().trim_end_matches('/'));
            let hint = format!(
                "check that this account has a public hosted zone {zone}, or set hostedZoneID"
            );
            let refusal = ProviderRefusal::new(ProviderFault::NoZone, call, &*why)
                .knowing(xml::all(&list, "Name").map(str::to_owned));
            return Err(SolveError::lasting(ZONE_FAILURE, why).advised(hint).refused(refusal));
        };
        Ok(id.trim_start_matches("/hostedzone/").to_owned())
    }

    /// Returns the name servers of a hosted zone; a private zone has none.
    async fn name_servers(&self, id: &str) -> Vec<String> {
        let path = format!("/hostedzone/{}", encoded(id));
        // Credentials that may list zones need not be allowed to read a zone.
        let read = self.get(&path, ZONE_FAILURE).await.unwrap_or_default();
        xml::all(&read, "NameServer").map(str::to_owned).collect()
    }

    fn key(&self, record: &TxtRecord) -> ChangedText {
        [self.api.base(), &record.name, &record.value].map(str::to_owned)
    }

    /// Sends one change. Every text is a record set of its own, so that other texts at the name stay as they are.
    async fn change(
        &self,
        action: &str,
        record: &TxtRecord,
    ) -> Result<Result<ApiReply, ApiRefusal>, SolveError> {
        let zone = self.zone(&record.name).await?;
        let (name, text) = (xml::escaped(&record.name), xml::escaped(&quoted(&record.value)));
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
            <ChangeBatch><Comment>Managed by cert-manager</Comment><Changes><Change>\
            <Action>{action}</Action><ResourceRecordSet>\
            <Name>{name}</Name><Type>TXT</Type><SetIdentifier>{text}</SetIdentifier>\
            <MultiValueAnswer>true</MultiValueAnswer><TTL>{TTL}</TTL>\
            <ResourceRecords><ResourceRecord><Value>{text}</Value></ResourceRecord></ResourceRecords>\
            </ResourceRecordSet></Change></Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
        );
        let path = format!("{VERSION}/hostedzone/{}/rrset", encoded(&zone));
        let mut request = self.api.request(Method::POST, &path).header(CONTENT_TYPE, "text/xml");
        request.body = body.into_bytes();
        self.send(request, CHANGE_FAILURE).await
    }
}

#[async_trait]
impl Provider for Route53 {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        let reply =
            self.change("UPSERT", record).await?.map_err(|r| solve_error(r, CHANGE_FAILURE))?;
        if let Some(id) = xml::first(&String::from_utf8_lossy(&reply.body), "Id") {
            let id = id.trim_start_matches("/change/").to_owned();
            changes().insert(self.key(record), id);
        }
        Ok(())
    }

    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError> {
        changes().remove(&self.key(record));
        match self.change("DELETE", record).await? {
            // AWS reports a missing record set by this code.
            Err(refusal) if refusal.code == "InvalidChangeBatch" => Ok(()),
            sent => sent.map(drop).map_err(|r| solve_error(r, CHANGE_FAILURE)),
        }
    }

    async fn check(&self, name: &str) -> Result<(), SolveError> {
        let zone = self.zone(name).await?;
        let path = format!(
            "{VERSION}/hostedzone/{}/rrset?name={}&type=TXT&maxitems=1",
            encoded(&zone),
            encoded(name)
        );
        match self.send(self.api.request(Method::GET, &path), ZONE_FAILURE).await? {
            // Credentials that may change records need not be allowed to list them, and the signature was good.
            Err(refusal) if refusal.is(StatusCode::FORBIDDEN) && refusal.code == "AccessDenied" => {
                Ok(())
            }
            sent => sent.map(drop).map_err(|r| solve_error(r, ZONE_FAILURE)),
        }
    }

    async fn zones_of_name(&self, name: &str) -> Result<Vec<ProviderZone>, SolveError> {
        let zone = zone_of(&*self.zones, name).await?;
        let written = self.zone(name).await?;
        let path = format!("/hostedzonesbyname?dnsname={}", encoded(relative(&zone)));
        let list = self.get(&path, ZONE_FAILURE).await?;
        let mut found = Vec::new();
        for entry in xml::all(&list, "HostedZone") {
            let (Some(name), Some(id)) = (xml::first(entry, "Name"), xml::first(entry, "Id"))
            else {
                continue;
            };
            let id = id.trim_start_matches("/hostedzone/").to_owned();
            if !same_name(&name, &zone) {
                continue;
            }
            let is_private = xml::first(entry, "PrivateZone").is_some_and(|text| text == "true");
            let servers = if is_private { Vec::new() } else { self.name_servers(&id).await };
            let (is_written, name_servers) = (id == written, Vec::new());
            let one =
                ProviderZone { id, name: absolute(&name), is_private, name_servers, is_written };
            found.push(one.with_servers(servers.iter().map(String::as_str)));
        }
        Ok(found)
    }

    async fn is_everywhere(&self, record: &TxtRecord) -> Result<bool, SolveError> {
        let key = self.key(record);
        let Some(id) = changes().get(&key).cloned() else { return Ok(true) };
        let reply = self.get(&format!("/change/{}", encoded(&id)), STATUS_FAILURE).await?;
        if xml::first(&reply, "Status").as_deref() != Some("INSYNC") {
            return Ok(false);
        }
        changes().remove(&key);
        Ok(true)
    }
}

fn unusable(why: &str) -> SolveError {
    SolveError::lasting("unable to construct route53 provider", why.to_owned())
}

fn solve_error(refusal: ApiRefusal, what: &str) -> SolveError {
    refusal.into_error(what.to_owned(), RIGHTS)
}
