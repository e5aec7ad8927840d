//! Identity at Google: a service account by its key, or the surroundings of the process.
//!
//! A key from a Secret gets its tokens from Google alone, whatever its `token_uri`: otherwise
//! anyone who may write a Secret could make this program call any server in its reach.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderName, Method};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use url::{Host, Url};

use super::api::{Api, Connection};
use super::credential::{Ambient, Credential, read_credential};
use super::google_federation::{
    CLOUD_PLATFORM_SCOPE, Federation, SCOPE, Services, failed, is_google,
};
use super::text::{encoded, one_line};
use super::token::{Token, TokenPlace, explain};
use crate::solvers::SolveError;

/// Server that gives machines the tokens of their service accounts.
const METADATA_HOST: &str = "169.254.169.254";
/// URL of users' tokens, and of tokens of service accounts whose key names no URL.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
/// Lifetime of an assertion in seconds; the longest that Google takes.
const ASSERTION_SECONDS: i64 = 3600;

/// Identity at Google.
#[derive(Clone, Debug)]
pub enum GoogleCredentials {
    /// A service account's key, the JSON file that Google gives out.
    Key(Credential),
    /// Surroundings of the process: a key file, gcloud's own credentials, else the machine's service account.
    Ambient(Ambient),
}

/// Source of a key.
#[derive(Clone, Copy)]
enum KeySource<'a> {
    Secret,
    File(&'a str, &'a Ambient),
}

impl KeySource<'_> {
    fn unusable(self, why: &str) -> SolveError {
        let (what, hint) = match self {
            Self::Secret => (
                "cannot use the Google service account key".to_owned(),
                "the Secret must hold the JSON file of a service account key, unchanged".to_owned(),
            ),
            Self::File(path, _) => (
                format!("cannot use the Google credentials in {path}"),
                "GOOGLE_APPLICATION_CREDENTIALS must lead to the JSON file of a service account key, of \
                 `gcloud auth application-default login` or of workload identity federation; or give the solver a key by serviceAccountSecretRef"
                    .to_owned(),
            ),
        };
        SolveError::lasting(what, why.to_owned()).advised(hint)
    }
}

/// File of credentials, as far as its fields are used.
#[derive(Deserialize)]
struct KeyFile {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    client_email: String,
    #[serde(default)]
    private_key: Credential,
    #[serde(default)]
    private_key_id: String,
    #[serde(default)]
    token_uri: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: Credential,
    #[serde(default)]
    refresh_token: Credential,
}

/// Service account, and the identity that acts as the account.
#[derive(Deserialize)]
struct Impersonation {
    #[serde(rename = "service_account_impersonation_url")]
    url: String,
    #[serde(default)]
    delegates: Vec<String>,
    source_credentials: KeyFile,
}

/// Source of tokens for Cloud DNS.
#[derive(Debug)]
pub(super) struct GoogleLogin {
    login: GoogleCredentials,
    connection: Connection,
    place: TokenPlace,
}

impl GoogleLogin {
    pub(super) fn new(login: GoogleCredentials, connection: &Connection) -> Self {
        let mut owner = vec!["Google"];
        match &login {
            GoogleCredentials::Key(key) => owner.push(key.expose()),
            GoogleCredentials::Ambient(ambient) => owner.extend(ambient.parts()),
        }
        let place = TokenPlace::of(owner);
        Self { login, connection: connection.clone(), place }
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
        let ambient = match &self.login {
            GoogleCredentials::Key(key) => return self.by_text(key, KeySource::Secret).await,
            GoogleCredentials::Ambient(ambient) => ambient,
        };
        if let Some(path) = ambient.variable("GOOGLE_APPLICATION_CREDENTIALS") {
            return self
                .by_text(&read_credential(path).await?, KeySource::File(path, ambient))
                .await;
        }
        let config = match ambient.variable("CLOUDSDK_CONFIG") {
            Some(folder) => Some(folder.to_owned()),
            None => ambient.variable("HOME").map(|home| format!("{home}/.config/gcloud")),
        };
        if let Some(folder) = config {
            let path = format!("{folder}/application_default_credentials.json");
            if let Ok(file) = read_credential(&path).await {
                return self.by_text(&file, KeySource::File(&path, ambient)).await;
            }
        }
        self.by_machine(ambient).await
    }

    /// Gets a token by the content of a file. Federation and impersonation are only for files beside the process:
    /// otherwise anyone who may write a Secret could make this program read its own files and call servers.
    async fn by_text(&self, text: &Credential, source: KeySource<'_>) -> Result<Token, SolveError> {
        let unreadable = || source.unusable("it is not the JSON of a service account key");
        let file: KeyFile = serde_json::from_str(text.expose()).map_err(|_| unreadable())?;
        let KeySource::File(_, ambient) = source else {
            return self.by_file(&file, source, SCOPE).await;
        };
        let services = Services { connection: &self.connection, ambient };
        match file.kind.as_str() {
            "external_account" => {
                let federation: Federation = serde_json::from_str(text.expose())
                    .map_err(|error| source.unusable(&lacking(&error)))?;
                services.federated(&federation).await
            }
            "impersonated_service_account" => {
                let impersonation: Impersonation = serde_json::from_str(text.expose())
                    .map_err(|error| source.unusable(&lacking(&error)))?;
                let Impersonation { url, delegates, source_credentials } = impersonation;
                let first = self.by_file(&source_credentials, source, CLOUD_PLATFORM_SCOPE).await?;
                services.impersonate(&url, &delegates, &first).await
            }
            _ => self.by_file(&file, source, SCOPE).await,
        }
    }

    async fn by_file(
        &self,
        file: &KeyFile,
        source: KeySource<'_>,
        scope: &str,
    ) -> Result<Token, SolveError> {
        let server = token_service(file, source)?;
        match file.kind.as_str() {
            "service_account" | "" => {
                let assertion = assertion(file, scope, source, Timestamp::now())?;
                let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                let fields = [("grant_type", grant), ("assertion", assertion.expose())];
                self.grant(server, &fields).await
            }
            "authorized_user" => {
                let fields = [
                    ("grant_type", "refresh_token"),
                    ("client_id", file.client_id.as_str()),
                    ("client_secret", file.client_secret.expose()),
                    ("refresh_token", file.refresh_token.expose()),
                ];
                self.grant(server, &fields).await
            }
            "external_account" | "impersonated_service_account" => {
                let kind = &file.kind;
                let why = match source {
                    KeySource::Secret => "taken from files beside the process only",
                    KeySource::File(..) => "no source of others",
                };
                Err(source.unusable(&format!("credentials of type {kind} are {why}")))
            }
            other => {
                let why = format!("credentials of type {} are not known here", one_line(other));
                Err(source.unusable(&why))
            }
        }
    }

    async fn grant(&self, server: &str, fields: &[(&str, &str)]) -> Result<Token, SolveError> {
        let api = Api::new(server, &self.connection, explain)?.confidential();
        let request = api.request(Method::POST, "").form(fields);
        let reply = api.send(request).await.and_then(|reply| Token::read(&reply));
        reply.map_err(|r| {
            failed(r, "the key may have been deleted, or its service account disabled")
        })
    }

    async fn by_machine(&self, ambient: &Ambient) -> Result<Token, SolveError> {
        let host = ambient.variable("GCE_METADATA_HOST").unwrap_or(METADATA_HOST);
        let api = Api::new(&format!("http://{host}"), &self.connection, explain)?.confidential();
        let path = format!(
            "/computeMetadata/v1/instance/service-accounts/default/token?scopes={}",
            encoded(SCOPE)
        );
        let flag = HeaderName::from_static("metadata-flavor");
        let request = api.request(Method::GET, &path).header(flag, "Google");
        let reply = api.send(request).await.and_then(|reply| Token::read(&reply));
        let hint = "give the solver a key by serviceAccountSecretRef, or set GOOGLE_APPLICATION_CREDENTIALS";
        reply.map_err(|r| failed(r, hint).advised(hint))
    }
}

/// Describes the field that a file lacks, without the position.
fn lacking(error: &serde_json::Error) -> String {
    error.to_string().split(" at line").next().unwrap_or_default().to_owned()
}

fn audience(file: &KeyFile) -> &str {
    if file.token_uri.is_empty() { TOKEN_URL } else { &file.token_uri }
}

/// Returns the URL from which a file gets its tokens. Anyone who may write a Secret could make this program call any server
/// in its reach and read the answer in a status: a URL in a Secret must be Google's, whose tokens alone are good there. A
/// file beside the process may name any URL, as with Google's own libraries, but none without TLS across a network.
fn token_service<'a>(file: &'a KeyFile, source: KeySource<'_>) -> Result<&'a str, SolveError> {
    let text = audience(file);
    let Ok(url) = Url::parse(text) else {
        return Err(source.unusable("its token_uri is no URL"));
    };
    // Keys of the first years name the old address.
    let is_old = url.scheme() == "https" && url.host() == Some(Host::Domain("accounts.google.com"));
    match source {
        KeySource::Secret if !is_google(&url) && !is_old => Err(source
            .unusable("its token_uri is no address of Google's (https, below googleapis.com)")),
        KeySource::File(..) if url.scheme() != "https" && !Connection::is_near(&url) => {
            Err(source.unusable("its token_uri is not https"))
        }
        KeySource::Secret | KeySource::File(..) => Ok(text),
    }
}

/// Builds a statement of the service account's identity, signed by the account's key (RFC 7523 §3).
fn assertion(
    file: &KeyFile,
    scope: &str,
    source: KeySource<'_>,
    now: Timestamp,
) -> Result<Credential, SolveError> {
    let unusable = |why: &str| source.unusable(why);
    let block = pem::parse(file.private_key.expose())
        .map_err(|_| unusable("its private_key is not PEM"))?;
    let key = KeyPair::from_pkcs8(block.contents())
        .map_err(|_| unusable("its private_key is not an RSA key in PKCS #8"))?;
    let issued = now.as_second();
    let header = json!({"alg": "RS256", "typ": "JWT", "kid": file.private_key_id});
    let claims = json!({
        "iss": file.client_email,
        "scope": scope,
        "aud": audience(file),
        "iat": issued,
        "exp": issued + ASSERTION_SECONDS,
    });
    let [header, claims] =
        [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string().as_bytes()));
    let signed = format!("{header}.{claims}");
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| unusable("its private_key cannot sign"))?;
    Ok(Credential::new(&format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a key in a Secret, and one in a file beside the process, may have its tokens from there.
    #[track_caller]
    fn check(token_uri: &str, in_a_secret: bool, in_a_file: bool) {
        let file = json!({"type": "service_account", "token_uri": token_uri});
        let file: KeyFile = serde_json::from_value(file).unwrap();
        let ambient = Ambient::default();
        let seen = [KeySource::Secret, KeySource::File("key.json", &ambient)]
            .map(|source| token_service(&file, source).is_ok());
        assert_eq!(seen, [in_a_secret, in_a_file], "{token_uri}");
    }

    #[test]
    fn a_key_in_a_secret_has_its_tokens_from_google_alone() {
        check("", true, true);
        check("https://oauth2.googleapis.com/token", true, true);
        check("https://oauth2.mtls.googleapis.com/token", true, true);
        check("https://www.googleapis.com/oauth2/v4/token", true, true);
        check("https://accounts.google.com/o/oauth2/token", true, true);
        for elsewhere in [
            "https://tokens.example/token",
            "https://googleapis.com.example/token",
            "https://notgoogleapis.com/token",
            "https://oauth2.googleapis.com@tokens.example/token",
            "https://accounts.google.com.example/token",
            "https://10.0.0.1/token",
        ] {
            check(elsewhere, false, true);
        }
    }

    #[test]
    fn no_assertion_crosses_a_network_in_the_clear() {
        check("http://oauth2.googleapis.com/token", false, false);
        check("http://tokens.example/token", false, false);
        check("http://169.254.169.254/token", false, true);
        check("http://127.0.0.1:8080/token", false, true);
        check("oauth2.googleapis.com/token", false, false);
        check("file:///etc/passwd", false, false);
    }
}
