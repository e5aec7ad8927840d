use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::akamai::{Akamai, EdgeGrid};
use super::super::{Connection, Credential, Provider as _};
use super::stub::{Fake, Seen, Stub, Told};
use super::{NAME, keeps_the_contract, record, zones};
use crate::solvers::testing::advice;

const ZONE: &str = "/config-dns/v2/zones/example.com";
const SET: &str =
    "/config-dns/v2/zones/example.com/names/_acme-challenge.www.example.com/types/TXT";

/// One zone with at most one set of TXT records.
struct Account(Option<Value>);

impl Account {
    fn new() -> Self {
        let name = NAME.trim_end_matches('.');
        Self(Some(json!({"name": name, "type": "TXT", "ttl": 600, "rdata": ["\"theirs\""]})))
    }
}

impl Fake for Account {
    fn answer(&mut self, request: &Seen) -> Told {
        let missing = json!({"type": "https://problems", "title": "Not Found",
            "detail": "it is not there", "instance": "never twice"});
        match (request.method.as_str(), request.uri.path(), &self.0) {
            ("GET", ZONE, _) => Told::new(200, "{}"),
            ("GET", SET, Some(set)) => Told::new(200, set),
            ("POST", SET, None) | ("PUT", SET, Some(_)) => {
                self.0 = Some(request.json());
                Told::new(200, &request.body)
            }
            ("DELETE", SET, Some(_)) => {
                self.0 = None;
                Told::new(204, "")
            }
            _ => Told::new(404, missing),
        }
    }

    fn values(&self, _: &str) -> Vec<String> {
        let texts = self.0.iter().flat_map(|set| set["rdata"].as_array().unwrap());
        texts.map(|text| text.as_str().unwrap().trim_matches('"').to_owned()).collect()
    }
}

async fn stub() -> (Stub<Account>, Akamai) {
    let stub = Stub::serve(Account::new()).await;
    let login = EdgeGrid {
        client_token: Credential::new("client\n"),
        client_secret: Credential::new("secret\n"),
        access_token: Credential::new("access\n"),
    };
    let provider = Akamai::new(login, &stub.url, zones(), &Connection::hasty()).unwrap();
    (stub, provider)
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let (stub, provider) = stub().await;
    keeps_the_contract(&provider, &stub).await;
}

#[tokio::test]
async fn the_requests_are_those_of_cert_manager() {
    let (stub, provider) = stub().await;
    provider.add(&record("one")).await.unwrap();
    provider.remove(&record("one")).await.unwrap();
    let seen = stub.seen();
    let lines: Vec<_> = seen.iter().map(Seen::line).collect();
    let (get, put) = (format!("GET {SET}"), format!("PUT {SET}"));
    assert_eq!(lines, [get.clone(), put.clone(), get.clone(), put]);
    let set = |rdata: Value| json!({"name": NAME.trim_end_matches('.'), "type": "TXT", "ttl": 600, "rdata": rdata});
    assert_eq!(seen[1].json(), set(json!(["\"theirs\"", "\"one\""])));
    assert_eq!(seen[3].json(), set(json!(["\"theirs\""])));
    stub.change(|account| account.0 = None);
    provider.add(&record("one")).await.unwrap();
    provider.remove(&record("one")).await.unwrap();
    let seen = stub.seen();
    let lines: Vec<_> = seen.iter().map(Seen::line).collect();
    assert_eq!(lines, [get.clone(), format!("POST {SET}"), get, format!("DELETE {SET}")]);
    assert_eq!(seen[1].json()["ttl"], 300);
}

#[tokio::test]
async fn every_try_is_signed_afresh() {
    let (stub, provider) = stub().await;
    stub.script([Told { header: Some(("retry-after", "0")), ..Told::new(429, "{}") }]);
    provider.check(NAME).await.unwrap();
    let seen = stub.seen();
    let nonce = |request: &Seen| -> String {
        let parts: Vec<_> = request.header("authorization").split(';').map(str::to_owned).collect();
        assert_eq!(parts[0], "EG1-HMAC-SHA256 client_token=client");
        assert_eq!(parts[1], "access_token=access");
        assert!(parts[4].starts_with("signature="));
        parts[3].clone()
    };
    assert_eq!(seen.iter().map(nonce).collect::<BTreeSet<_>>().len(), 2);
}

#[tokio::test]
async fn errors_are_told_in_cert_managers_words() {
    let (stub, provider) = stub().await;
    let denied = json!({"title": "Forbidden", "detail": "The signature does not match", "requestId": "never twice"});
    stub.script([Told::new(403, denied)]);
    let error = provider.add(&record("one")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "edgedns: failed to retrieve TXT record: Forbidden: The signature does not match"
    );
    assert!(error.needs_person && advice(&error).contains("READ-WRITE"));
    let missing = json!({"title": "Not Found", "detail": "no zone"});
    stub.script([Told::new(404, missing)]);
    let error = provider.check(NAME).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "edgedns: failed to find the zone example.com in this account: Not Found: no zone"
    );
    assert!(!format!("{provider:?}").contains("secret\""));
}
