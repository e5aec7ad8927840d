//! Identity at Azure: a client with its secret, a workload identity, or the machine's managed identity.

use http::{HeaderName, Method};

use super::api::{Api, ApiRefusal, Connection};
use super::credential::{Ambient, Credential, read_credential};
use super::text::encoded;
use super::token::{Token, TokenPlace, explain};
use crate::solvers::SolveError;

/// Server that gives machines the tokens of their identities.
const MACHINE_METADATA_URL: &str = "http://169.254.169.254";
const TOKEN_FAILURE: &str = "cannot get a token from Azure";

/// Addresses of one of Azure's clouds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cloud {
    /// Entra ID, which gives tokens.
    pub authority: String,
    /// The resource manager.
    pub manager: String,
    /// Audience of the tokens.
    pub audience: String,
}

impl Cloud {
    /// Returns the cloud of that name, as in the field `environment`; the public cloud if the name is empty.
    pub fn named(name: &str) -> Result<Self, SolveError> {
        let (authority, manager, audience) = match name.to_ascii_uppercase().as_str() {
            "" | "AZURECLOUD" | "AZUREPUBLICCLOUD" => {
                ("login.microsoftonline.com", "management.azure.com", "management.azure.com")
            }
            "AZUREUSGOVERNMENT" | "AZUREUSGOVERNMENTCLOUD" => (
                "login.microsoftonline.us",
                "management.usgovcloudapi.net",
                "management.core.usgovcloudapi.net",
            ),
            "AZURECHINACLOUD" => (
                "login.chinacloudapi.cn",
                "management.chinacloudapi.cn",
                "management.core.chinacloudapi.cn",
            ),
            _ => {
                return Err(SolveError::lasting("unknown cloud configuration name", name.to_owned()).advised("environment is one of AzurePublicCloud, AzureUSGovernmentCloud and AzureChinaCloud"));
            }
        };
        let url = |host: &str| format!("https://{host}");
        Ok(Self { authority: url(authority), manager: url(manager), audience: url(audience) })
    }
}

/// Identity at Azure.
#[derive(Clone, Debug)]
pub enum AzureCredentials {
    /// An application with a secret.
    Client {
        /// Tenant.
        tenant: String,
        /// Client.
        id: String,
        /// Secret.
        secret: Credential,
    },
    /// Surroundings of the process: a workload identity if there is one, else the machine's managed identity.
    Ambient {
        /// Variables of the process.
        ambient: Ambient,
        /// Managed identity, if there are several.
        identity: ManagedIdentity,
    },
}

/// Choice of a managed identity; all fields are empty if there is only one.
#[derive(Clone, Debug, Default)]
pub struct ManagedIdentity {
    /// Client id.
    pub client_id: String,
    /// Resource id.
    pub resource_id: String,
    /// Tenant id; only for workload identities.
    pub tenant_id: String,
}

/// Source of tokens for the resource manager.
#[derive(Debug)]
pub(super) struct AzureLogin {
    login: AzureCredentials,
    cloud: Cloud,
    connection: Connection,
    place: TokenPlace,
}

impl AzureLogin {
    pub(super) fn new(login: AzureCredentials, cloud: Cloud, connection: &Connection) -> Self {
        let mut owner = vec!["Azure", &cloud.authority, &cloud.audience];
        match &login {
            AzureCredentials::Client { tenant, id, secret } => {
                owner.extend([tenant, id, secret.expose()]);
            }
            AzureCredentials::Ambient { ambient, identity } => {
                owner.extend([&*identity.client_id, &identity.resource_id, &identity.tenant_id]);
                owner.extend(ambient.parts());
            }
        }
        let place = TokenPlace::of(owner);
        Self { login, cloud, connection: connection.clone(), place }
    }

    /// Returns a good token.
    pub(super) async fn token(&self) -> Result<Credential, SolveError> {
        self.place.token(self.fetch()).await
    }

    /// Forgets the token, so that the next call fetches another.
    pub(super) async fn clear(&self) {
        self.place.clear().await;
    }

    async fn fetch(&self) -> Result<Token, SolveError> {
        match &self.login {
            AzureCredentials::Client { tenant, id, secret } => {
                let authority = &self.cloud.authority;
                self.grant(authority, tenant, id, &[("client_secret", secret.expose())]).await
            }
            AzureCredentials::Ambient { ambient, identity } => {
                match ambient.variable("AZURE_FEDERATED_TOKEN_FILE") {
                    Some(file) => self.with_workload_identity(ambient, identity, file).await,
                    None => match app_service(ambient) {
                        Some(place) => self.with_app_service(place, identity).await,
                        None => self.with_managed_identity(ambient, identity).await,
                    },
                }
            }
        }
    }

    /// Gets a token by client credentials (RFC 6749 §4.4); `proof` is the secret or the assertion.
    async fn grant(
        &self,
        authority: &str,
        tenant: &str,
        id: &str,
        proof: &[(&str, &str)],
    ) -> Result<Token, SolveError> {
        let api = Api::new(authority, &self.connection, explain)?.confidential();
        let scope = format!("{}/.default", self.cloud.audience);
        let fields = [("grant_type", "client_credentials"), ("client_id", id), ("scope", &scope)];
        let path = format!("/{}/oauth2/v2.0/token", encoded(tenant));
        let request = api.request(Method::POST, &path).form(&[&fields, proof].concat());
        let reply = api.send(request).await.and_then(|reply| Token::read(&reply));
        reply.map_err(|r| {
            solve_error(r, "check tenantID, clientID and the client secret, which may have expired")
        })
    }

    async fn with_workload_identity(
        &self,
        ambient: &Ambient,
        identity: &ManagedIdentity,
        file: &str,
    ) -> Result<Token, SolveError> {
        let choose = |given: &str, variable: &str| {
            let fallback = || ambient.variable(variable).map(str::to_owned);
            let chosen = (!given.is_empty()).then(|| given.to_owned()).or_else(fallback);
            chosen.ok_or_else(|| {
                SolveError::lasting(
                    TOKEN_FAILURE.to_owned(),
                    format!("AZURE_FEDERATED_TOKEN_FILE is set, {variable} is not"),
                )
            })
        };
        let client = choose(&identity.client_id, "AZURE_CLIENT_ID")?;
        let tenant = choose(&identity.tenant_id, "AZURE_TENANT_ID")?;
        let authority = ambient.variable("AZURE_AUTHORITY_HOST").unwrap_or(&self.cloud.authority);
        let token = read_credential(file).await?;
        let proof = [
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("client_assertion", token.expose()),
        ];
        self.grant(authority, &tenant, &client, &proof).await
    }

    /// Gets a token for an app of App Service, Functions or Container Apps.
    async fn with_app_service(
        &self,
        (endpoint, secret): (&str, &str),
        identity: &ManagedIdentity,
    ) -> Result<Token, SolveError> {
        let api = Api::new(endpoint, &self.connection, explain)?.confidential();
        let which = which(identity, "mi_res_id");
        let audience = encoded(&self.cloud.audience);
        let path = format!("?api-version=2019-08-01&resource={audience}{which}");
        let flag = HeaderName::from_static("x-identity-header");
        let request = api.request(Method::GET, &path).secret_header(flag, secret);
        let reply = api.send(request).await.and_then(|reply| Token::read(&reply));
        reply.map_err(|r| {
            solve_error(r, "").advised(
                "has the app this identity? Without clientID its system-assigned one is used",
            )
        })
    }

    async fn with_managed_identity(
        &self,
        ambient: &Ambient,
        identity: &ManagedIdentity,
    ) -> Result<Token, SolveError> {
        let base =
            ambient.variable("AZURE_POD_IDENTITY_AUTHORITY_HOST").unwrap_or(MACHINE_METADATA_URL);
        let api = Api::new(base, &self.connection, explain)?.confidential();
        let which = which(identity, "msi_res_id");
        let path = format!(
            "/metadata/identity/oauth2/token?api-version=2018-02-01&resource={}{which}",
            encoded(&self.cloud.audience)
        );
        let flag = HeaderName::from_static("metadata");
        let request = api.request(Method::GET, &path).header(flag, "true");
        let reply = api.send(request).await.and_then(|reply| Token::read(&reply));
        reply.map_err(|r| solve_error(r, "").advised("without clientID the identity of the machine is used: is this a machine of Azure's with that identity?"))
    }
}

/// Returns App Service's address for tokens, and the value of the required header. `None` on Service Fabric, which names
/// more and pins a certificate, and on machines of Azure Arc, which name the address alone and answer with a file to read.
fn app_service(ambient: &Ambient) -> Option<(&str, &str)> {
    if ambient.variable("IDENTITY_SERVER_THUMBPRINT").is_some() {
        return None;
    }
    Some((ambient.variable("IDENTITY_ENDPOINT")?, ambient.variable("IDENTITY_HEADER")?))
}

/// Builds the query parameter that chooses the identity, if there are several; services differ in the name of the resource.
fn which(identity: &ManagedIdentity, resource: &str) -> String {
    if !identity.resource_id.is_empty() {
        return format!("&{resource}={}", encoded(&identity.resource_id));
    }
    if !identity.client_id.is_empty() {
        return format!("&client_id={}", encoded(&identity.client_id));
    }
    String::new()
}

fn solve_error(refusal: ApiRefusal, hint: &'static str) -> SolveError {
    let is_final = refusal.status.is_some_and(|status| status.is_client_error());
    let error = refusal.into_error(TOKEN_FAILURE.to_owned(), hint);
    if error.remedy.is_none() && is_final { error.advised(hint) } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cloud_has_its_own_addresses() {
        for (name, manager) in [
            ("", "https://management.azure.com"),
            ("AzurePublicCloud", "https://management.azure.com"),
            ("AzureUSGovernmentCloud", "https://management.usgovcloudapi.net"),
            ("AzureChinaCloud", "https://management.chinacloudapi.cn"),
        ] {
            assert_eq!(Cloud::named(name).unwrap().manager, manager, "{name}");
        }
        let error = Cloud::named("AzureGermanCloud").unwrap_err().to_string();
        assert_eq!(error, "unknown cloud configuration name: AzureGermanCloud");
    }
}
