use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::cloud_dns::GoogleCredentials;
use super::super::{Ambient, Credential, Provider as _};
use super::NAME;
use super::cloud_dns::{Project, provider};
use super::stub::{Seen, Stub, Told};
use crate::solvers::SolveError;
use crate::solvers::testing::advice;

const STS: &str = "https://sts.googleapis.com/v1/token";
const ACT_AS: &str = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/dns@p-1.iam.gserviceaccount.com:generateAccessToken";
const AUDIENCE: &str =
    "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/ci/providers/git";

/// A file of federation, with more of it.
fn federation(source: &Value, more: &Value) -> Value {
    let mut file = json!({
        "type": "external_account",
        "audience": AUDIENCE,
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": STS,
        "credential_source": source,
    });
    let Value::Object(more) = more else { return file };
    file.as_object_mut().unwrap().extend(more.clone());
    file
}

/// Looks at the zone with what a file says, and what was asked; Google's services are at the stub.
async fn check(stub: &Stub<Project>, file: &Value) -> (Result<(), SolveError>, Vec<Seen>) {
    let sts = ("CLOUDSDK_API_ENDPOINT_OVERRIDES_STS", stub.url.as_str());
    let iam = ("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS", stub.url.as_str());
    checked(stub, file, &[sts, iam]).await
}

async fn checked(
    stub: &Stub<Project>,
    file: &Value,
    more: &[(&str, &str)],
) -> (Result<(), SolveError>, Vec<Seen>) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("credentials.json");
    std::fs::write(&path, file.to_string()).unwrap();
    let own = [("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap())];
    let ambient: Ambient = own.iter().chain(more).copied().collect();
    let result = provider(stub, GoogleCredentials::Ambient(ambient), "z-1").check(NAME).await;
    (result, stub.seen())
}

/// The form of an exchange, in the order that it is sent.
fn form(seen: &Seen) -> Vec<(String, String)> {
    url::form_urlencoded::parse(seen.body.as_bytes()).into_owned().collect()
}

fn exchange(scope: &str) -> Vec<(String, String)> {
    [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("audience", AUDIENCE),
        ("scope", scope),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
        ("subject_token", "foreign"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

#[tokio::test]
async fn a_foreign_token_in_a_file_is_exchanged() {
    let stub = Stub::serve(Project::new()).await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "foreign\n").unwrap();
    let (result, seen) = check(&stub, &federation(&json!({"file": path}), &Value::Null)).await;
    result.unwrap();
    assert_eq!(seen[0].line(), "POST /v1/token");
    assert_eq!(form(&seen[0]), exchange("https://www.googleapis.com/auth/ndev.clouddns.readwrite"));
    assert_eq!(seen[1].header("authorization"), "Bearer bearer");
}

#[tokio::test]
async fn a_foreign_token_from_a_server_serves_to_act_as_a_service_account() {
    let stub = Stub::serve(Project::new()).await;
    let source = json!({
        "url": format!("{}/subject?audience=a%20b", stub.url),
        "headers": {"Authorization": "Bearer of-the-runner"},
        "format": {"type": "json", "subject_token_field_name": "value"},
    });
    let file = federation(&source, &json!({"service_account_impersonation_url": ACT_AS}));
    let (result, seen) = check(&stub, &file).await;
    result.unwrap();
    assert_eq!(seen[0].line(), "GET /subject?audience=a%20b");
    assert_eq!(seen[0].header("authorization"), "Bearer of-the-runner");
    assert_eq!(form(&seen[1]), exchange("https://www.googleapis.com/auth/cloud-platform"));
    let act_as =
        "POST /v1/projects/-/serviceAccounts/dns@p-1.iam.gserviceaccount.com:generateAccessToken";
    assert_eq!(
        (seen[2].line().as_str(), seen[2].header("authorization")),
        (act_as, "Bearer bearer")
    );
    let wanted = json!({"delegates": [], "lifetime": "3600s",
        "scope": ["https://www.googleapis.com/auth/ndev.clouddns.readwrite"]});
    assert_eq!(seen[2].json(), wanted);
    assert_eq!(seen[3].header("authorization"), "Bearer impersonated");
}

#[tokio::test]
async fn a_user_acts_as_a_service_account() {
    let stub = Stub::serve(Project::new()).await;
    let user = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": format!("{}/token", stub.url)});
    let file = json!({"type": "impersonated_service_account", "delegates": ["projects/-/serviceAccounts/between"],
        "service_account_impersonation_url": ACT_AS, "source_credentials": user});
    let (result, seen) = check(&stub, &file).await;
    result.unwrap();
    assert_eq!(
        seen[0].body,
        "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r"
    );
    assert_eq!(seen[1].json()["delegates"], json!(["projects/-/serviceAccounts/between"]));
    assert_eq!(seen[2].header("authorization"), "Bearer impersonated");
}

#[tokio::test]
async fn a_file_leads_to_google_alone() {
    let stub = Stub::serve(Project::new()).await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "foreign").unwrap();
    for url in [
        &format!("{}/v1/token", stub.url),
        "http://sts.googleapis.com/v1/token",
        "https://sts.googleapis.com.evil.example/v1/token",
        "https://evilgoogleapis.com/v1/token",
        "https://googleapis.com@evil.example/v1/token",
        "file:///etc/passwd",
    ] {
        let file = federation(&json!({"file": path}), &json!({"token_url": url}));
        let (result, seen) = checked(&stub, &file, &[]).await;
        let error = result.unwrap_err();
        let why = format!("{url} is no address of Google's (https, below googleapis.com)");
        assert_eq!(error.to_string(), format!("cannot get a token from Google: {why}"));
        assert!(error.needs_person && seen.is_empty());
    }
}

#[tokio::test]
async fn a_secret_leads_neither_to_files_nor_to_servers() {
    let stub = Stub::serve(Project::new()).await;
    for kind in ["external_account", "impersonated_service_account"] {
        let mut file = federation(&json!({"file": "/etc/hostname"}), &json!({"token_url": STS}));
        file["type"] = kind.into();
        let login = GoogleCredentials::Key(Credential::new(&file.to_string()));
        let error = provider(&stub, login, "z-1").check(NAME).await.unwrap_err();
        let why =
            format!("credentials of type {kind} are taken from files beside the process only");
        assert_eq!(error.why, why);
    }
    assert_eq!(stub.lines(), [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_used_or_is_refused_says_why() {
    let stub = Stub::serve(Project::new()).await;
    let aws = json!({"environment_id": "aws1", "url": "http://169.254.169.254/latest"});
    let neither = "credential_source names neither a file nor a URL";
    for (file, why) in [
        (federation(&aws, &Value::Null), format!("{neither}: AWS and programs are not read here")),
        (federation(&json!({}), &Value::Null), neither.to_owned()),
        (
            federation(&json!({"url": "http://tokens.example/t"}), &Value::Null),
            "the URL of credential_source is not https".to_owned(),
        ),
        (json!({"type": "external_account"}), "missing field `audience`".to_owned()),
    ] {
        let (result, _) = check(&stub, &file).await;
        let error = result.unwrap_err();
        assert_eq!(error.why, why);
        assert!(error.needs_person && error.remedy.is_some());
    }
    let subject = json!({"url": format!("{}/subject", stub.url)});
    let refusal =
        json!({"error": "invalid_grant", "error_description": "The pool knows no such issuer."});
    stub.script([Told::new(200, "foreign"), Told::new(400, refusal)]);
    let (result, _) = check(&stub, &federation(&subject, &Value::Null)).await;
    let error = result.unwrap_err();
    assert_eq!(error.why, "invalid_grant: The pool knows no such issuer.");
    assert!(error.needs_person && advice(&error).contains("audience"));
    let denied = json!({"error": {"code": 403, "message": "Permission 'iam.serviceAccounts.getAccessToken' denied"}});
    let token = json!({"access_token": "t", "expires_in": 3599});
    stub.script([Told::new(200, "foreign"), Told::new(200, token), Told::new(403, denied)]);
    let file = federation(&subject, &json!({"service_account_impersonation_url": ACT_AS}));
    let error = check(&stub, &file).await.0.unwrap_err();
    assert_eq!(error.why, "Permission 'iam.serviceAccounts.getAccessToken' denied");
    assert!(advice(&error).contains("Token Creator"));
}
