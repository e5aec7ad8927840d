//! Google's tokens for foreign identities: a foreign token is exchanged (RFC 8693), and a service account impersonated.

use std::collections::BTreeMap;

use http::HeaderName;
use http::HeaderValue;
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::json;
use url::Url;

use super::api::{Api, ApiRefusal, Connection, Explanation};
use super::credential::{Ambient, Credential, read_credential};
use super::text::one_line;
use super::token::{Token, explain};
use crate::solvers::SolveError;

/// Scope of a token that is only a step to another token.
pub(super) const CLOUD_PLATFORM_SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Identity at another issuer, and the Google service that accepts the identity.
#[derive(Deserialize)]
pub(super) struct Federation {
    audience: String,
    subject_token_type: String,
    token_url: String,
    #[serde(default)]
    service_account_impersonation_url: String,
    credential_source: TokenSource,
}

/// Source of the foreign token.
#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenSource {
    file: String,
    url: String,
    headers: BTreeMap<String, Credential>,
    format: Format,
    environment_id: String,
    executable: Option<Value>,
}

/// Format of the foreign token.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Format {
    #[serde(rename = "type")]
    kind: String,
    subject_token_field_name: String,
}

/// Client of Google's services, with the surroundings of the process.
pub(super) struct Services<'a> {
    pub(super) connection: &'a Connection,
    pub(super) ambient: &'a Ambient,
}

impl Services<'_> {
    /// Gets a token for a file of type `external_account`.
    pub(super) async fn federated(&self, federation: &Federation) -> Result<Token, SolveError> {
        let subject = self.subject_token(&federation.credential_source).await?;
        let impersonated = &federation.service_account_impersonation_url;
        let scope = if impersonated.is_empty() { SCOPE } else { CLOUD_PLATFORM_SCOPE };
        let server = self.google(&federation.token_url, "STS")?;
        let api = Api::new(&server, self.connection, explain)?.confidential();
        let fields = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("audience", &federation.audience),
            ("scope", scope),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token_type", &federation.subject_token_type),
            ("subject_token", subject.expose()),
        ];
        let request = api.request(Method::POST, "").form(&fields);
        let reply = api.send(request).await.and_then(|reply| Token::read(&reply));
        let hint = "the pool may not know this identity, or its token has expired: look at audience and credential_source";
        let token = reply.map_err(|refusal| failed(refusal, hint))?;
        if impersonated.is_empty() {
            return Ok(token);
        }
        self.impersonate(impersonated, &[], &token).await
    }

    /// Gets a token of a service account, for an identity that may act as the account.
    pub(super) async fn impersonate(
        &self,
        url: &str,
        delegates: &[String],
        token: &Token,
    ) -> Result<Token, SolveError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Granted {
            access_token: Credential,
            expire_time: Timestamp,
        }
        let api =
            Api::new(&self.google(url, "IAMCREDENTIALS")?, self.connection, reason)?.confidential();
        let wanted = json!({"delegates": delegates, "scope": [SCOPE], "lifetime": "3600s"});
        let request = api.request(Method::POST, "").bearer(token.text()).json(&wanted);
        let reply = api.send(request).await.and_then(|reply| reply.json::<Granted>());
        let hint =
            "who acts as the service account needs the role Service Account Token Creator on it";
        let granted = reply.map_err(|refusal| failed(refusal, hint))?;
        Ok(Token::new(granted.access_token, granted.expire_time))
    }

    /// Returns the address of a Google service, as a file names the service; another server only if gcloud's own
    /// variable names the server. A file may come from anyone, and the data sent there is worth as much as a password.
    fn google(&self, url: &str, service: &str) -> Result<String, SolveError> {
        let refused = |why: &str| unusable(&format!("{} is {why}", one_line(url)));
        let read = Url::parse(url).map_err(|_| refused("no URL"))?;
        let variable = format!("CLOUDSDK_API_ENDPOINT_OVERRIDES_{service}");
        if let Some(base) = self.ambient.variable(&variable) {
            return Ok(format!("{}{}", base.trim_end_matches('/'), read.path()));
        }
        if !is_google(&read) {
            return Err(refused("no address of Google's (https, below googleapis.com)"));
        }
        Ok(url.to_owned())
    }

    async fn subject_token(&self, source: &TokenSource) -> Result<Credential, SolveError> {
        if !source.environment_id.is_empty() || source.executable.is_some() {
            return Err(unusable(
                "credential_source names neither a file nor a URL: AWS and programs are not read here",
            ));
        }
        let text = match (source.file.as_str(), source.url.as_str()) {
            ("", "") => return Err(unusable("credential_source names neither a file nor a URL")),
            (file, "") => read_credential(file).await?,
            (_, url) => self.fetch(url, &source.headers).await?,
        };
        if source.format.kind != "json" {
            return Ok(text);
        }
        let field = &source.format.subject_token_field_name;
        let body: Value = serde_json::from_str(text.expose())
            .map_err(|_| unusable("what credential_source leads to is not JSON"))?;
        match body[field].as_str() {
            Some(token) => Ok(Credential::new(token)),
            None => Err(unusable(&format!(
                "what credential_source leads to has no field {}",
                one_line(field)
            ))),
        }
    }

    /// Gets a token from a server, without TLS only on this machine and its link.
    async fn fetch(
        &self,
        url: &str,
        headers: &BTreeMap<String, Credential>,
    ) -> Result<Credential, SolveError> {
        let is_safe = |url: &Url| url.scheme() == "https" || Connection::is_near(url);
        let read = Url::parse(url).ok().filter(is_safe);
        let Some(read) = read else {
            return Err(unusable("the URL of credential_source is not https"));
        };
        let mut base = read.clone();
        base.set_query(None);
        let api = Api::new(base.as_str(), self.connection, explain)?.confidential();
        let query = read.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut request = api.request(Method::GET, &query);
        for (name, value) in headers {
            let name = HeaderName::try_from(name.as_str());
            let value = HeaderValue::from_str(value.expose());
            let (Ok(name), Ok(mut value)) = (name, value) else {
                return Err(unusable("credential_source has headers that cannot be sent"));
            };
            value.set_sensitive(true);
            request.headers.insert(name, value);
        }
        let reply = api
            .send(request)
            .await
            .map_err(|refusal| failed(refusal, "look at url and headers of credential_source"))?;
        Ok(Credential::from(String::from_utf8_lossy(&reply.body).into_owned()))
    }
}

/// Returns whether a URL is an address of Google's services.
pub(super) fn is_google(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    url.scheme() == "https" && (host == "googleapis.com" || host.ends_with(".googleapis.com"))
}

fn unusable(why: &str) -> SolveError {
    SolveError::lasting(TOKEN_FAILURE.to_owned(), why.to_owned())
        .advised("make the file anew: gcloud iam workload-identity-pools create-cred-config")
}

/// Reads `{"error": {"code": 403, "message": "…", "status": "PERMISSION_DENIED"}}`.
fn reason(body: &[u8]) -> Option<Explanation> {
    #[derive(Deserialize)]
    struct Body {
        error: Error,
    }
    #[derive(Deserialize)]
    struct Error {
        message: String,
        #[serde(default)]
        status: String,
    }
    let Body { error: Error { message, status } } = serde_json::from_slice(body).ok()?;
    Some(Explanation { code: status, message })
}

pub(crate) const SCOPE: &str = "https://www.googleapis.com/auth/ndev.clouddns.readwrite";

pub(crate) const TOKEN_FAILURE: &str = "cannot get a token from Google";

pub(crate) fn failed(refusal: ApiRefusal, hint: &'static str) -> SolveError {
    let is_final = refusal.status.is_some_and(|status| status.is_client_error());
    let error = refusal.into_error(TOKEN_FAILURE.to_owned(), hint);
    if error.remedy.is_none() && is_final { error.advised(hint) } else { error }
}
