//! Providers of clouds, built from a solver's fields, its Secrets and, if allowed, the surroundings of the process.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::akamai::{self, EdgeGrid};
use super::azure_dns::{self, Cloud, ManagedIdentity, ZoneType};
use super::cloudflare::{self, CloudflareLogin};
use super::site::Site;
use super::{Ambient, Connection, Credential, Provider, cloud_dns, digitalocean, route53};
use crate::model::SecretKeySelector;
use crate::model::provider_refusal::{ProviderFault, ProviderRefusal};
use crate::model::solver::{
    Akamai, AzureDns, CloudDns, Cloudflare, DigitalOcean, Dns01Solver, Route53,
};
use crate::solvers::SolveError;

/// Audience that AWS wants in tokens of ServiceAccounts.
const AWS_AUDIENCE: &str = "sts.amazonaws.com";
const AMBIENT: &str = "name credentials in the solver, use a ClusterIssuer, or allow Issuers what surrounds the process with \
    --issuer-ambient-credentials";

/// Builds the provider that a solver names; `None` if the solver names no cloud.
pub(super) async fn provider(
    solver: &Dns01Solver,
    site: &Site<'_>,
) -> Result<Option<Arc<dyn Provider>>, SolveError> {
    let connection = site.connection();
    let provider: Arc<dyn Provider> = if let Some(fields) = &solver.akamai {
        Arc::new(akamai(fields, site, &connection).await?)
    } else if let Some(fields) = &solver.azure_dns {
        Arc::new(azure_dns(fields, site, &connection).await?)
    } else if let Some(fields) = &solver.cloud_dns {
        Arc::new(cloud_dns(fields, site, &connection).await?)
    } else if let Some(fields) = &solver.cloudflare {
        Arc::new(cloudflare(fields, site, &connection).await?)
    } else if let Some(fields) = &solver.digitalocean {
        Arc::new(digitalocean(fields, site, &connection).await?)
    } else if let Some(fields) = &solver.route53 {
        Arc::new(route53(fields, site, &connection).await?)
    } else {
        return Ok(None);
    };
    Ok(Some(provider))
}

async fn akamai(
    fields: &Akamai,
    site: &Site<'_>,
    connection: &Connection,
) -> Result<akamai::Akamai, SolveError> {
    let login = EdgeGrid {
        client_token: credential(&fields.client_token_secret_ref, site).await?,
        client_secret: credential(&fields.client_secret_secret_ref, site).await?,
        access_token: credential(&fields.access_token_secret_ref, site).await?,
    };
    let domain = &fields.service_consumer_domain;
    akamai::Akamai::new(login, domain, Arc::clone(site.zones), connection)
}

async fn azure_dns(
    fields: &AzureDns,
    site: &Site<'_>,
    connection: &Connection,
) -> Result<azure_dns::AzureDns, SolveError> {
    let login = azure_login(fields, site).await?;
    let settings = azure_dns::AzureDnsSettings {
        login,
        cloud: Cloud::named(&fields.environment)?,
        subscription: fields.subscription_id.clone(),
        resource_group: fields.resource_group_name.clone(),
        hosted_zone_name: fields.hosted_zone_name.clone(),
        zone_type: match fields.zone_type.as_str() {
            "AzurePrivateZone" => ZoneType::Private,
            _ => ZoneType::Public,
        },
    };
    azure_dns::AzureDns::new(settings, Arc::clone(site.zones), connection)
}

async fn azure_login(
    fields: &AzureDns,
    site: &Site<'_>,
) -> Result<azure_dns::AzureCredentials, SolveError> {
    let unusable = |why: &str, hint: &'static str| unusable("azuredns", why, hint);
    if !fields.client_id.is_empty() {
        let Some(selector) = &fields.client_secret_secret_ref else {
            return Err(unusable(
                "clientID is set, clientSecretSecretRef is not",
                "set both or none",
            ));
        };
        if fields.tenant_id.is_empty() {
            return Err(unusable("clientID is set, tenantID is not", "set tenantID"));
        }
        return Ok(azure_dns::AzureCredentials::Client {
            tenant: fields.tenant_id.clone(),
            id: fields.client_id.clone(),
            secret: credential(selector, site).await?,
        });
    }
    if !site.ambient {
        let why = "ClientID is not set but neither `--cluster-issuer-ambient-credentials` nor \
            `--issuer-ambient-credentials` are set. These are necessary to enable Azure Managed Identities";
        return Err(unusable(why, AMBIENT));
    }
    let text = |key: &str| {
        let value = fields.managed_identity.as_ref().and_then(|identity| identity.get(key));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let identity = ManagedIdentity {
        client_id: text("clientID"),
        resource_id: text("resourceID"),
        tenant_id: text("tenantID"),
    };
    Ok(azure_dns::AzureCredentials::Ambient { ambient: Ambient::of_process(), identity })
}

async fn cloud_dns(
    fields: &CloudDns,
    site: &Site<'_>,
    connection: &Connection,
) -> Result<cloud_dns::CloudDns, SolveError> {
    let (login, endpoint) = match &fields.service_account_secret_ref {
        Some(selector) => {
            let login = cloud_dns::GoogleCredentials::Key(credential(selector, site).await?);
            (login, cloud_dns::ENDPOINT.to_owned())
        }
        None if site.ambient => {
            let ambient = Ambient::of_process();
            let given = ambient.variable("CLOUDSDK_API_ENDPOINT_OVERRIDES_DNS");
            let endpoint = given.unwrap_or(cloud_dns::ENDPOINT).to_owned();
            (cloud_dns::GoogleCredentials::Ambient(ambient), endpoint)
        }
        None => {
            let why = "empty credentials; perhaps you meant to enable ambient credentials?";
            return Err(unusable("clouddns", why, AMBIENT));
        }
    };
    let zones = Arc::clone(site.zones);
    let CloudDns { project, hosted_zone_name, .. } = fields;
    cloud_dns::CloudDns::new(login, project, hosted_zone_name, zones, &endpoint, connection)
}

async fn cloudflare(
    fields: &Cloudflare,
    site: &Site<'_>,
    connection: &Connection,
) -> Result<cloudflare::Cloudflare, SolveError> {
    let unusable = |why: &str| {
        let refusal = ProviderRefusal::new(ProviderFault::Credentials, "dns01.cloudflare", why);
        unusable("cloudflare", why, "set apiTokenSecretRef, and nothing else").refused(refusal)
    };
    let login = match (&fields.api_token_secret_ref, &fields.api_key_secret_ref) {
        (Some(_), Some(_)) => {
            return Err(unusable("API key and API token secret references are both present"));
        }
        (Some(token), None) => CloudflareLogin::Token(credential(token, site).await?),
        (None, Some(_)) if fields.email.is_empty() => {
            return Err(unusable("apiKeySecretRef is set, email is not"));
        }
        (None, Some(key)) => {
            CloudflareLogin::Key { email: fields.email.clone(), key: credential(key, site).await? }
        }
        (None, None) => {
            let why = "no Cloudflare credential has been given (can be either an API key or an API token)";
            return Err(unusable(why));
        }
    };
    cloudflare::Cloudflare::new(login, cloudflare::ENDPOINT, connection)
}

async fn digitalocean(
    fields: &DigitalOcean,
    site: &Site<'_>,
    connection: &Connection,
) -> Result<digitalocean::DigitalOcean, SolveError> {
    let token = credential(&fields.token_secret_ref, site).await?;
    let zones = Arc::clone(site.zones);
    digitalocean::DigitalOcean::new(token, zones, digitalocean::ENDPOINT, connection)
}

async fn route53(
    fields: &Route53,
    site: &Site<'_>,
    connection: &Connection,
) -> Result<route53::Route53, SolveError> {
    let login = route53_login(fields, site).await?;
    let ambient = match &login {
        route53::AwsLogin::Ambient(ambient) => Some(ambient),
        route53::AwsLogin::Keys { .. } | route53::AwsLogin::WebIdentity { .. } => None,
    };
    let endpoints = route53::Endpoints::new(&fields.region, ambient)?;
    let settings = route53::Route53Settings {
        login,
        role: fields.role.trim().to_owned(),
        hosted_zone_id: fields.hosted_zone_id.clone(),
        endpoints,
    };
    route53::Route53::new(settings, Arc::clone(site.zones), connection).map_err(|error| {
        let is_empty = error.why.starts_with("empty credentials");
        if is_empty { error.advised(AMBIENT) } else { error }
    })
}

/// Field `auth` of Route 53, which names a ServiceAccount.
#[derive(Deserialize)]
struct Auth {
    kubernetes: KubernetesAuth,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KubernetesAuth {
    service_account_ref: ServiceAccountRef,
}

#[derive(Deserialize)]
struct ServiceAccountRef {
    name: String,
    #[serde(default)]
    audiences: Vec<String>,
}

async fn route53_login(fields: &Route53, site: &Site<'_>) -> Result<route53::AwsLogin, SolveError> {
    if let Some(auth) = &fields.auth {
        let auth: Auth = serde_json::from_value(auth.clone()).map_err(|_| {
            let hint = "set auth.kubernetes.serviceAccountRef.name";
            unusable("route53", "auth names no ServiceAccount", hint)
        })?;
        let ServiceAccountRef { name, mut audiences } = auth.kubernetes.service_account_ref;
        if audiences.is_empty() {
            audiences.push(AWS_AUDIENCE.to_owned());
        }
        let namespace = site.namespace;
        let token = site.credentials.service_account_token(namespace, &name, &audiences).await?;
        let owner = format!("{namespace}/{name} for {}", audiences.join(","));
        return Ok(route53::AwsLogin::WebIdentity { owner, token: Credential::new(&token) });
    }
    let id = match &fields.access_key_id_secret_ref {
        Some(selector) if fields.access_key_id.is_empty() => credential(selector, site).await?,
        _ => Credential::new(&fields.access_key_id),
    };
    let selector = &fields.secret_access_key_secret_ref;
    let secret = if selector.name.is_empty() {
        Credential::default()
    } else {
        credential(selector, site).await?
    };
    if id.is_empty() && secret.is_empty() && site.ambient {
        return Ok(route53::AwsLogin::Ambient(Ambient::of_process()));
    }
    Ok(route53::AwsLogin::Keys { id, secret })
}

/// Reads the value of a key of a Secret; the value must not be empty.
async fn credential(
    selector: &SecretKeySelector,
    site: &Site<'_>,
) -> Result<Credential, SolveError> {
    let credential = Credential::new(&site.secret(selector).await?);
    if credential.is_empty() {
        let SecretKeySelector { name, key } = selector;
        return Err(SolveError::lasting(
            format!("cannot read the credentials in Secret \"{name}\""),
            format!("the value of \"{key}\" is empty"),
        )
        .advised(format!("put the credential into the key \"{key}\" of the Secret")));
    }
    Ok(credential)
}

fn unusable(provider: &str, why: &str, hint: &'static str) -> SolveError {
    SolveError::lasting(format!("unable to construct {provider} provider"), why.to_owned())
        .advised(hint)
}
