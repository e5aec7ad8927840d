use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::cloud_dns::{CloudDns, GoogleCredentials};
use super::super::{Ambient, Connection, Credential, Provider as _};
use super::stub::{Fake, Seen, Stub, Told};
use super::{NAME, keeps_the_contract, record, zones};
use crate::solvers::testing::advice;

const ZONES: &str = "/dns/v1/projects/p-1/managedZones";

/// One managed zone with at most one set of TXT records, and the changes made; also the services that give tokens.
pub(super) struct Project {
    set: Option<Value>,
    changes: Vec<Value>,
    /// Number of times that another client is quicker.
    rivals: u32,
    status: &'static str,
}

impl Project {
    pub(super) fn new() -> Self {
        let set = json!({"name": NAME, "type": "TXT", "ttl": 300, "rrdatas": ["\"theirs\""], "kind": "dns#resourceRecordSet"});
        Self { set: Some(set), changes: Vec::new(), rivals: 0, status: "done" }
    }

    fn change(&mut self, wanted: &Value) -> Told {
        if self.rivals > 0 {
            self.rivals -= 1;
            let error = json!({"code": 412, "message": "Precondition not met for 'entity.change.deletions[0]'",
                "errors": [{"reason": "conditionNotMet"}]});
            return Told::new(412, json!({"error": error}));
        }
        let deleted = wanted["deletions"].get(0);
        let facts = |set: &Value| ["name", "type", "ttl", "rrdatas"].map(|key| set[key].clone());
        assert_eq!(
            deleted.map(facts),
            self.set.as_ref().map(facts),
            "what is deleted is what is there"
        );
        self.set = wanted["additions"].get(0).cloned();
        let mut change = wanted.clone();
        change["status"] = self.status.into();
        self.changes.insert(0, change.clone());
        Told::new(200, change)
    }
}

impl Fake for Project {
    fn answer(&mut self, request: &Seen) -> Told {
        let path = request.uri.path();
        let token = || Told::new(200, json!({"access_token": "bearer", "expires_in": 3599}));
        match (request.method.as_str(), path.strip_prefix(ZONES)) {
            ("POST", None) if path == "/token" || path == "/v1/token" => token(),
            ("POST", None) if path.ends_with(":generateAccessToken") => {
                let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
                Told::new(
                    200,
                    json!({"accessToken": "impersonated", "expireTime": end.to_string()}),
                )
            }
            ("GET", None) if path == "/subject" => Told::new(200, json!({"value": "foreign"})),
            ("GET", None) if path.ends_with("/service-accounts/default/token") => token(),
            ("GET", Some("")) => {
                let is_ours = request.parameter("dnsName").as_deref() == Some("example.com.");
                let zones = json!([{"name": "inside", "visibility": "private"}, {"name": "z-1", "visibility": "public", "nameServers": ["ns-cloud-a1.googledomains.com."]}]);
                Told::new(200, if is_ours { json!({"managedZones": zones}) } else { json!({}) })
            }
            ("GET", Some("/z-1/rrsets")) => Told::new(200, json!({"rrsets": self.set.as_slice()})),
            ("GET", Some("/z-1/changes")) => {
                for change in &mut self.changes {
                    change["status"] = self.status.into();
                }
                Told::new(200, json!({"changes": self.changes}))
            }
            ("POST", Some("/z-1/changes")) => self.change(&request.json()),
            _ => Told::new(
                404,
                json!({"error": {"message": "not found", "errors": [{"reason": "notFound"}]}}),
            ),
        }
    }

    fn values(&self, _: &str) -> Vec<String> {
        let texts = self.set.iter().flat_map(|set| set["rrdatas"].as_array().unwrap());
        texts.map(|text| text.as_str().unwrap().trim_matches('"').to_owned()).collect()
    }
}

/// A service account's key file whose tokens come from that server, and its public half.
fn key_file(stub: &Stub<Project>) -> (String, Vec<u8>) {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    let file = json!({
        "type": "service_account",
        "client_email": "dns@p-1.iam.gserviceaccount.com",
        "private_key_id": "k-1",
        "private_key": pair.serialize_pem(),
        "token_uri": format!("{}/token", stub.url),
    });
    (file.to_string(), pair.public_key_raw().to_vec())
}

pub(super) fn provider(stub: &Stub<Project>, login: GoogleCredentials, zone: &str) -> CloudDns {
    CloudDns::new(login, "p-1", zone, zones(), &stub.url, &Connection::hasty()).unwrap()
}

/// A provider with that key file beside the process, which stays as long as the folder.
fn beside(stub: &Stub<Project>, file: &str) -> (CloudDns, TempDir) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("key.json");
    std::fs::write(&path, file).unwrap();
    let variables = [("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap())];
    let provider = provider(stub, GoogleCredentials::Ambient(Ambient::from_iter(variables)), "z-1");
    (provider, folder)
}

/// A provider whose machine gives it tokens.
fn on_a_machine(stub: &Stub<Project>) -> CloudDns {
    let host = stub.url.trim_start_matches("http://");
    provider(
        stub,
        GoogleCredentials::Ambient(Ambient::from_iter([("GCE_METADATA_HOST", host)])),
        "",
    )
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let stub = Stub::serve(Project::new()).await;
    keeps_the_contract(&on_a_machine(&stub), &stub).await;
}

#[tokio::test]
async fn zones_of_one_name_are_told_with_their_servers() {
    let stub = Stub::serve(Project::new()).await;
    let zones = on_a_machine(&stub).zones_of_name(NAME).await.unwrap();
    let zones = zones.iter().map(|zone| {
        (zone.id.as_str(), zone.is_private, zone.is_written, zone.name_servers.concat())
    });
    let expected = [
        ("inside", true, false, String::new()),
        ("z-1", false, true, "ns-cloud-a1.googledomains.com.".to_owned()),
    ];
    assert_eq!(zones.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_requests_are_those_of_cert_manager() {
    let stub = Stub::serve(Project::new()).await;
    let provider = on_a_machine(&stub);
    provider.add(&record("one")).await.unwrap();
    let seen = stub.seen();
    let lines: Vec<_> = seen.iter().map(Seen::line).collect();
    let token = "GET /computeMetadata/v1/instance/service-accounts/default/token\
        ?scopes=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fndev.clouddns.readwrite";
    let wanted = [
        token,
        &format!("GET {ZONES}?dnsName=example.com."),
        &format!("GET {ZONES}/z-1/rrsets?name=_acme-challenge.www.example.com.&type=TXT"),
        &format!("POST {ZONES}/z-1/changes"),
    ];
    assert_eq!(lines, wanted);
    assert_eq!(seen[0].header("metadata-flavor"), "Google");
}

#[tokio::test]
async fn a_key_signs_an_assertion_that_google_can_verify() {
    let stub = Stub::serve(Project::new()).await;
    let (file, public) = key_file(&stub);
    let (provider, _folder) = beside(&stub, &file);
    provider.check(NAME).await.unwrap();
    provider.check(NAME).await.unwrap();
    let seen = stub.seen();
    assert_eq!(seen.len(), 3, "one token serves both");
    let grant = seen[0].parameter("grant_type");
    assert_eq!(grant.as_deref(), Some("urn:ietf:params:oauth:grant-type:jwt-bearer"));
    let assertion = seen[0].parameter("assertion").unwrap();
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public)
        .verify(signed.as_bytes(), &signature)
        .expect("the signature is good");
    let part = |index: usize| -> Value {
        let part = signed.split('.').nth(index).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    assert_eq!(part(0), json!({"alg": "RS256", "typ": "JWT", "kid": "k-1"}));
    let claims = part(1);
    assert_eq!(claims["iss"], "dns@p-1.iam.gserviceaccount.com");
    assert_eq!(claims["aud"], format!("{}/token", stub.url));
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/ndev.clouddns.readwrite");
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    assert_eq!(seen[1].header("authorization"), "Bearer bearer");
}

#[tokio::test]
async fn others_texts_are_replaced_with_ours_in_one_change() {
    let stub = Stub::serve(Project::new()).await;
    let provider = on_a_machine(&stub);
    provider.add(&record("one")).await.unwrap();
    let set = |texts: Value| json!({"name": NAME, "type": "TXT", "ttl": 300, "rrdatas": texts});
    let wanted = json!({
        "additions": [set(json!(["\"theirs\"", "\"one\""]))],
        "deletions": [set(json!(["\"theirs\""]))],
    });
    assert_eq!(stub.seen().pop().unwrap().json(), wanted);
    stub.change(|project| project.set = None);
    provider.add(&record("one")).await.unwrap();
    let own = json!({"name": NAME, "type": "TXT", "ttl": 60, "rrdatas": ["\"one\""]});
    let wanted = json!({"additions": [own], "deletions": []});
    assert_eq!(stub.seen().pop().unwrap().json(), wanted);
    provider.remove(&record("one")).await.unwrap();
    let wanted = json!({"additions": [], "deletions": [own]});
    assert_eq!(stub.seen().pop().unwrap().json(), wanted);
}

#[tokio::test]
async fn somebody_who_is_quicker_loses_nothing() {
    let stub = Stub::serve(Project::new()).await;
    let provider = on_a_machine(&stub);
    stub.change(|project| project.rivals = 3);
    provider.add(&record("one")).await.unwrap();
    assert_eq!(stub.values(NAME), ["theirs", "one"]);
    stub.change(|project| project.rivals = 99);
    let error = provider.remove(&record("one")).await.unwrap_err();
    assert!(error.to_string().ends_with("deletions[0]', conditionNotMet"), "{error}");
    assert!(!error.needs_person);
}

#[tokio::test]
async fn a_change_is_followed_until_it_is_everywhere() {
    let stub = Stub::serve(Project::new()).await;
    let provider = on_a_machine(&stub);
    stub.change(|project| project.status = "pending");
    assert!(provider.is_everywhere(&record("one")).await.unwrap(), "nothing is known of it");
    provider.add(&record("one")).await.unwrap();
    assert!(!on_a_machine(&stub).is_everywhere(&record("one")).await.unwrap());
    stub.change(|project| project.status = "done");
    assert!(provider.is_everywhere(&record("one")).await.unwrap());
}

#[tokio::test]
async fn a_secret_leads_nobody_but_google_to_an_assertion() {
    let stub = Stub::serve(Project::new()).await;
    let (file, _) = key_file(&stub);
    let theirs = provider(&stub, GoogleCredentials::Key(Credential::new(&file)), "z-1");
    let error = theirs.check(NAME).await.unwrap_err();
    let why = "its token_uri is no address of Google's (https, below googleapis.com)";
    assert_eq!(error.to_string(), format!("cannot use the Google service account key: {why}"));
    assert!(error.needs_person);
    assert_eq!(stub.lines(), [""; 0], "nobody hears of it");
}

#[tokio::test]
async fn a_token_service_that_sends_elsewhere_is_not_followed_nor_quoted_at_length() {
    let stub = Stub::serve(Project::new()).await;
    let (provider, _folder) = beside(&stub, &key_file(&stub).0);
    let header = Some(("location", "/elsewhere"));
    stub.script([Told { header, ..Told::new(307, "") }]);
    let error = provider.check(NAME).await.unwrap_err().to_string();
    assert_eq!(error, "cannot get a token from Google: HTTP 307 Temporary Redirect");
    assert_eq!(stub.lines(), ["POST /token"]);
    let long = json!({"error": "e".repeat(1000), "error_description": "d".repeat(100_000)});
    stub.script([Told::new(400, long)]);
    let error = provider.check(NAME).await.unwrap_err().to_string();
    assert!(error.len() < 400, "{error}");
}

#[tokio::test]
async fn a_user_may_be_known_by_the_folder_of_gcloud() {
    let stub = Stub::serve(Project::new()).await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("application_default_credentials.json");
    let user = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": format!("{}/token", stub.url)});
    std::fs::write(&path, user.to_string()).unwrap();
    let by_folder = [("CLOUDSDK_CONFIG", folder.path().to_str().unwrap())];
    provider(&stub, GoogleCredentials::Ambient(Ambient::from_iter(by_folder)), "z-1")
        .check(NAME)
        .await
        .unwrap();
    assert_eq!(
        stub.seen()[0].body,
        "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r"
    );
}

#[tokio::test]
async fn a_file_that_is_of_no_use_is_named() {
    let stub = Stub::serve(Project::new()).await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("credentials.json");
    let path = path.to_str().unwrap();
    for kind in ["external_account_authorized_user", "gdch_service_account"] {
        std::fs::write(path, json!({"type": kind}).to_string()).unwrap();
        let variables = [("GOOGLE_APPLICATION_CREDENTIALS", path)];
        let ambient = GoogleCredentials::Ambient(Ambient::from_iter(variables));
        let error = provider(&stub, ambient, "").check(NAME).await.unwrap_err();
        let why = format!("credentials of type {kind} are not known here");
        let expected = format!("cannot use the Google credentials in {path}: {why}");
        assert_eq!(error.to_string(), expected);
        let hint = advice(&error);
        assert!(hint.starts_with("GOOGLE_APPLICATION_CREDENTIALS must"), "{hint}");
    }
}

#[tokio::test]
async fn errors_say_which_zone_and_quote_google() {
    let stub = Stub::serve(Project::new()).await;
    let ours = on_a_machine(&stub);
    stub.script([
        Told::new(200, json!({"access_token": "b", "expires_in": 3599})),
        Told::new(200, "{}"),
    ]);
    let error = ours.check(NAME).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "No matching GoogleCloud domain found for domain example.com.: this project has no managed zone with that DNS name"
    );
    assert!(error.needs_person);
    let denied = json!({"error": {"code": 403, "message": "Forbidden", "errors": [{"reason": "forbidden"}]}});
    stub.script([Told::new(403, denied)]);
    let error = ours.check(NAME).await.unwrap_err();
    assert_eq!(error.to_string(), "GoogleCloud API call failed: Forbidden, forbidden");
    assert!(advice(&error).contains("DNS Administrator"));
    let gone = json!({"error": "invalid_grant", "error_description": "Invalid JWT Signature."});
    stub.script([Told::new(400, gone)]);
    let (keyed, _folder) = beside(&stub, &key_file(&stub).0);
    let error = keyed.check(NAME).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot get a token from Google: invalid_grant: Invalid JWT Signature."
    );
    assert!(error.needs_person && advice(&error).contains("deleted"));
}

#[tokio::test]
async fn what_is_no_key_is_said_to_be_none() {
    let stub = Stub::serve(Project::new()).await;
    for (file, why) in [
        ("hello", "it is not the JSON of a service account key"),
        ("{}", "its private_key is not PEM"),
        (
            r#"{"type": "gdch_service_account"}"#,
            "credentials of type gdch_service_account are not known here",
        ),
        (
            r#"{"private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}"#,
            "its private_key is not an RSA key in PKCS #8",
        ),
    ] {
        let provider = provider(&stub, GoogleCredentials::Key(Credential::new(file)), "z-1");
        let error = provider.check(NAME).await.unwrap_err();
        assert_eq!(error.to_string(), format!("cannot use the Google service account key: {why}"));
        assert!(error.needs_person);
    }
    assert_eq!(stub.lines(), [""; 0]);
}
