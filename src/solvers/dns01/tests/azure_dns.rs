use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::azure_dns::{
    AzureCredentials, AzureDns, AzureDnsSettings, Cloud, ManagedIdentity, ZoneType,
};
use super::super::{Ambient, Connection, Credential, Provider as _};
use super::stub::{Fake, Seen, Stub, Told};
use super::{NAME, keeps_the_contract, record, zones};
use crate::solvers::testing::advice;

const ZONES: &str = "/subscriptions/s-1/resourceGroups/dns/providers/Microsoft.Network";

/// Record sets of one zone by their path, each with the number of its version. Also the services that give tokens.
struct Group {
    sets: BTreeMap<String, (u32, Value)>,
    /// Number of times that another client is quicker.
    rivals: u32,
}

impl Group {
    fn with(kind: &str, txt: &str) -> Self {
        let set = json!({"properties": {"TTL": 300, "metadata": {"owner": "them"}, txt: [{"value": ["the", "irs"]}]}});
        let path = format!("{ZONES}/{kind}/example.com/TXT/_acme-challenge.www");
        Self { sets: BTreeMap::from([(path, (1, set))]), rivals: 0 }
    }

    fn write(&mut self, request: &Seen) -> Told {
        let path = request.uri.path();
        let now = self.sets.get(path).map(|set| set.0);
        if self.rivals > 0 {
            self.rivals -= 1;
            self.sets.entry(path.to_owned()).and_modify(|set| set.0 += 1);
        }
        let matches = match (request.header("if-match"), request.header("if-none-match"), now) {
            ("", "*", None) => true,
            (etag, "", Some(_)) => etag == format!("etag-{}", self.sets[path].0),
            _ => false,
        };
        if !matches {
            let body =
                json!({"code": "PreconditionFailed", "message": "The condition was not met."});
            return Told::new(412, body);
        }
        if request.method == "DELETE" {
            self.sets.remove(path);
        } else {
            self.sets.insert(path.to_owned(), (now.unwrap_or_default() + 1, request.json()));
        }
        Told::new(200, "{}")
    }
}

impl Fake for Group {
    fn answer(&mut self, request: &Seen) -> Told {
        let path = request.uri.path();
        match request.method.as_str() {
            "POST" => Told::new(200, json!({"access_token": "bearer", "expires_in": 3599})),
            "GET" if path == "/metadata/identity/oauth2/token" => {
                Told::new(200, json!({"access_token": "bearer", "expires_in": "86399"}))
            }
            "GET" if !path.contains("/example.com/") => Told::new(
                404,
                json!({"error": {"code": "ParentResourceNotFound", "message": "no parent"}}),
            ),
            "GET" => match self.sets.get(path) {
                Some((version, set)) => {
                    let mut set = set.clone();
                    set["etag"] = format!("etag-{version}").into();
                    Told::new(200, set)
                }
                None => Told::new(404, json!({"code": "NotFound", "message": "no record"})),
            },
            _ => self.write(request),
        }
    }

    fn values(&self, name: &str) -> Vec<String> {
        let set = name.trim_end_matches(".example.com.");
        let sets = self.sets.iter().filter(|(path, _)| path.ends_with(&format!("/TXT/{set}")));
        let texts = sets.flat_map(|(_, (_, set))| {
            let properties = &set["properties"];
            let texts = properties.get("TXTRecords").or_else(|| properties.get("txtRecords"));
            texts.unwrap().as_array().unwrap().clone()
        });
        let join = |text: Value| -> String {
            text["value"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect()
        };
        texts.map(join).collect()
    }
}

fn client() -> AzureCredentials {
    let secret = Credential::new("p&ss\n");
    AzureCredentials::Client { tenant: "t-1".to_owned(), id: "c-1".to_owned(), secret }
}

fn provider(
    stub: &Stub<Group>,
    login: AzureCredentials,
    zone: &str,
    zone_type: ZoneType,
) -> AzureDns {
    let cloud = Cloud {
        authority: stub.url.clone(),
        manager: stub.url.clone(),
        audience: "https://management.azure.com".to_owned(),
    };
    let settings = AzureDnsSettings {
        login,
        cloud,
        subscription: "s-1".to_owned(),
        resource_group: "dns".to_owned(),
        hosted_zone_name: zone.to_owned(),
        zone_type,
    };
    AzureDns::new(settings, zones(), &Connection::hasty()).unwrap()
}

async fn public() -> Stub<Group> {
    Stub::serve(Group::with("dnsZones", "TXTRecords")).await
}

#[tokio::test]
async fn it_keeps_the_contract_in_zones_of_both_types() {
    let stub = public().await;
    keeps_the_contract(&provider(&stub, client(), "", ZoneType::Public), &stub).await;
    let stub = Stub::serve(Group::with("privateDnsZones", "txtRecords")).await;
    keeps_the_contract(&provider(&stub, client(), "example.com", ZoneType::Private), &stub).await;
}

#[tokio::test]
async fn the_requests_are_those_of_the_resource_manager() {
    let stub = public().await;
    let provider = provider(&stub, client(), "", ZoneType::Public);
    provider.add(&record("one")).await.unwrap();
    provider.remove(&record("one")).await.unwrap();
    let seen = stub.seen();
    let lines: Vec<_> = seen.iter().map(Seen::line).collect();
    let set =
        format!("{ZONES}/dnsZones/example.com/TXT/_acme-challenge.www?api-version=2018-05-01");
    let (get, put) = (format!("GET {set}"), format!("PUT {set}"));
    assert_eq!(lines, ["POST /t-1/oauth2/v2.0/token", &get, &put, &get, &put]);
    assert_eq!(
        seen[0].body,
        "grant_type=client_credentials&client_id=c-1&scope=https%3A%2F%2Fmanagement.azure.com%2F.default&client_secret=p%26ss"
    );
    assert!(seen[1..].iter().all(|request| request.header("authorization") == "Bearer bearer"));
    assert_eq!(seen[2].header("if-match"), "etag-1");
    let wanted = json!({"properties": {"TTL": 300, "metadata": {"owner": "them"},
        "TXTRecords": [{"value": ["the", "irs"]}, {"value": ["one"]}]}});
    assert_eq!(seen[2].json(), wanted);
    let wanted = json!({"properties": {"TTL": 300, "metadata": {"owner": "them"},
        "TXTRecords": [{"value": ["the", "irs"]}]}});
    assert_eq!(seen[4].json(), wanted);
}

#[tokio::test]
async fn a_set_of_our_own_is_made_and_deleted_with_care() {
    let stub = public().await;
    stub.change(|group| group.sets.clear());
    let provider = provider(&stub, client(), "example.com.", ZoneType::Public);
    provider.add(&record("one")).await.unwrap();
    provider.remove(&record("one")).await.unwrap();
    let seen = stub.seen();
    assert_eq!((seen[2].method.as_str(), seen[2].header("if-none-match")), ("PUT", "*"));
    let wanted = json!({"properties": {"TTL": 60, "TXTRecords": [{"value": ["one"]}]}});
    assert_eq!(seen[2].json(), wanted);
    assert_eq!((seen[4].method.as_str(), seen[4].header("if-match")), ("DELETE", "etag-1"));
}

#[tokio::test]
async fn somebody_who_is_quicker_loses_nothing() {
    let stub = public().await;
    let provider = provider(&stub, client(), "", ZoneType::Public);
    stub.change(|group| group.rivals = 3);
    provider.add(&record("one")).await.unwrap();
    assert_eq!(stub.values(NAME), ["theirs", "one"]);
    stub.change(|group| group.rivals = 99);
    let error = provider.add(&record("two")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "failed to change TXT records of {NAME} in Azure DNS: PreconditionFailed: The condition was not met."
        )
    );
    assert!(!error.needs_person);
}

#[tokio::test]
async fn ambient_identities_are_found_where_azure_puts_them() {
    let stub = public().await;
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "jwt\n").unwrap();
    let workload = [
        ("AZURE_FEDERATED_TOKEN_FILE", file.to_str().unwrap()),
        ("AZURE_CLIENT_ID", "c-env"),
        ("AZURE_TENANT_ID", "t-env"),
        ("AZURE_AUTHORITY_HOST", &format!("{}/", stub.url)),
    ];
    let machine = [("AZURE_POD_IDENTITY_AUTHORITY_HOST", stub.url.as_str())];
    let (client_id, resource_id) = ("c-2".to_owned(), "/subscriptions/x".to_owned());
    let identity = |client: &str, resource: &str| ManagedIdentity {
        client_id: client.to_owned(),
        resource_id: resource.to_owned(),
        ..ManagedIdentity::default()
    };
    let metadata = "GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com";
    let assertion = "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=jwt";
    for (ambient, identity, line, client) in [
        (Ambient::from_iter(workload), identity("", ""), "POST /t-env/oauth2/v2.0/token", "c-env"),
        (Ambient::from_iter(workload), identity("c-2", ""), "POST /t-env/oauth2/v2.0/token", "c-2"),
        (Ambient::from_iter(machine), identity("", ""), metadata, ""),
        (
            Ambient::from_iter(machine),
            identity(&client_id, ""),
            &format!("{metadata}&client_id=c-2"),
            "",
        ),
        (
            Ambient::from_iter(machine),
            identity("", &resource_id),
            &format!("{metadata}&msi_res_id=%2Fsubscriptions%2Fx"),
            "",
        ),
    ] {
        let login = AzureCredentials::Ambient { ambient, identity };
        provider(&stub, login, "", ZoneType::Public).check(NAME).await.unwrap();
        let seen = stub.seen();
        assert_eq!(seen[0].line(), line);
        if client.is_empty() {
            assert_eq!(seen[0].header("metadata"), "true");
        } else {
            assert!(seen[0].body.contains(&format!("client_id={client}&")), "{}", seen[0].body);
            assert!(seen[0].body.ends_with(assertion), "{}", seen[0].body);
        }
        assert_eq!(seen[1].header("authorization"), "Bearer bearer");
    }
    let lacking = Ambient::from_iter([("AZURE_FEDERATED_TOKEN_FILE", "/nowhere")]);
    let login = AzureCredentials::Ambient { ambient: lacking, identity: identity("", "") };
    let error = provider(&stub, login, "", ZoneType::Public).check(NAME).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot get a token from Azure: AZURE_FEDERATED_TOKEN_FILE is set, AZURE_CLIENT_ID is not"
    );
}

#[tokio::test]
async fn apps_get_their_tokens_where_app_service_puts_them() {
    let stub = public().await;
    let endpoint = format!("{}/msi/token", stub.url);
    let app = [("IDENTITY_ENDPOINT", endpoint.as_str()), ("IDENTITY_HEADER", "hush")];
    let asked = "GET /msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fmanagement.azure.com";
    for (client, resource, more) in [
        ("", "", ""),
        ("c-2", "", "&client_id=c-2"),
        ("", "/subscriptions/x", "&mi_res_id=%2Fsubscriptions%2Fx"),
    ] {
        let identity = ManagedIdentity {
            client_id: client.to_owned(),
            resource_id: resource.to_owned(),
            ..ManagedIdentity::default()
        };
        let end = (jiff::Timestamp::now().as_second() + 3600).to_string();
        let token =
            json!({"access_token": "of-the-app", "expires_on": end, "token_type": "Bearer"});
        stub.script([Told::new(200, token)]);
        let login = AzureCredentials::Ambient { ambient: Ambient::from_iter(app), identity };
        let provider = provider(&stub, login, "", ZoneType::Public);
        provider.check(NAME).await.unwrap();
        provider.check(NAME).await.unwrap();
        let seen = stub.seen();
        assert_eq!(seen[0].line(), format!("{asked}{more}"));
        assert_eq!(seen[0].header("x-identity-header"), "hush");
        let bearers =
            seen[1..].iter().filter(|seen| seen.header("authorization") == "Bearer of-the-app");
        assert_eq!(bearers.count(), seen.len() - 1, "one token serves until it ends");
    }
    // Service Fabric wants its certificate pinned, which is not done here: the machine is asked.
    let fabric = app.into_iter().chain([("IDENTITY_SERVER_THUMBPRINT", "00")]);
    let fabric = fabric.chain([("AZURE_POD_IDENTITY_AUTHORITY_HOST", stub.url.as_str())]);
    let login = AzureCredentials::Ambient {
        ambient: fabric.collect(),
        identity: ManagedIdentity::default(),
    };
    provider(&stub, login, "", ZoneType::Public).check(NAME).await.unwrap();
    assert!(stub.lines()[0].starts_with("GET /metadata/identity/oauth2/token?"));
}

#[tokio::test]
async fn errors_say_which_zone_and_quote_azure() {
    let stub = public().await;
    let missing = provider(&stub, client(), "other.com", ZoneType::Public);
    let error = missing.check(NAME).await.unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "Zone other.com not found in AzureDNS for domain {NAME}: the name is not in that zone"
        )
    );
    let missing = provider(&stub, client(), "www.example.com", ZoneType::Public);
    let error = missing.check(NAME).await.unwrap_err();
    let expected = "ParentResourceNotFound: no parent";
    let zone = format!("Zone www.example.com not found in AzureDNS for domain {NAME}: ");
    assert_eq!(error.to_string(), format!("{zone}{expected}"));
    assert!(error.needs_person && advice(&error).contains("resourceGroupName"));
    let provider = provider(&stub, client(), "", ZoneType::Public);
    let denied =
        json!({"error": {"code": "AuthorizationFailed", "message": "The client 'c-1' may not"}});
    stub.script([Told::new(403, denied)]);
    let error = provider.add(&record("one")).await.unwrap_err();
    assert!(
        error.to_string().ends_with("AuthorizationFailed: The client 'c-1' may not"),
        "{error}"
    );
    assert!(error.needs_person && advice(&error).contains("DNS Zone Contributor"));
}

#[tokio::test]
async fn a_wrong_secret_is_told_in_entras_words() {
    let stub = public().await;
    let provider = provider(&stub, client(), "", ZoneType::Public);
    let body = json!({"error": "invalid_client",
        "error_description": "AADSTS7000215: Invalid client secret provided. Trace ID: 1 Timestamp: 2026"});
    stub.script([Told::new(401, body)]);
    let error = provider.check(NAME).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot get a token from Azure: invalid_client: AADSTS7000215: Invalid client secret provided."
    );
    assert!(error.needs_person && advice(&error).contains("clientID"));
    assert!(!format!("{provider:?}").contains("p&ss"));
}

#[tokio::test]
async fn a_token_that_was_withdrawn_is_fetched_anew() {
    let stub = public().await;
    let provider = provider(&stub, client(), "", ZoneType::Public);
    provider.check(NAME).await.unwrap();
    stub.script([Told::new(
        401,
        json!({"error": {"code": "ExpiredAuthenticationToken", "message": "m"}}),
    )]);
    provider.check(NAME).await.unwrap_err();
    provider.check(NAME).await.unwrap();
    let asked = stub.lines().iter().filter(|line| line.starts_with("POST ")).count();
    assert_eq!(asked, 2);
}
