use serde_json::json;

use super::super::digitalocean::DigitalOcean;
use super::super::{Connection, Credential, Provider as _, TxtRecord};
use super::stub::{Fake, Seen, Stub, Told};
use super::{NAME, keeps_the_contract, record, zones};
use crate::solvers::testing::advice;

/// One zone with TXT records; names are relative to it.
struct Account {
    records: Vec<(u64, String, String)>,
    next: u64,
    page: usize,
}

impl Account {
    fn new() -> Self {
        let theirs = (1, "_acme-challenge.www".to_owned(), "theirs".to_owned());
        Self { records: vec![theirs], next: 2, page: 200 }
    }
}

impl Fake for Account {
    fn answer(&mut self, request: &Seen) -> Told {
        let all = "/v2/domains/example.com/records";
        let missing = json!({"id": "not_found", "message": "The resource you were accessing could not be found."});
        match (request.method.as_str(), request.uri.path()) {
            ("GET", path) if path == all => {
                let name = request.parameter("name").unwrap();
                let full = |name: &str| match name {
                    "@" => "example.com".to_owned(),
                    _ => format!("{name}.example.com"),
                };
                let found = self.records.iter().filter(|r| full(&r.1) == name);
                let found: Vec<_> = found.collect();
                let number: usize = request.parameter("page").unwrap().parse().unwrap();
                let shown = found.iter().skip((number - 1) * self.page).take(self.page);
                let shown: Vec<_> = shown
                    .map(|(id, name, data)| json!({"id": id, "type": "TXT", "name": name, "data": data}))
                    .collect();
                let pages = if number * self.page < found.len() {
                    json!({"next": "more"})
                } else {
                    json!({})
                };
                Told::new(200, json!({"domain_records": shown, "links": {"pages": pages}}))
            }
            ("POST", path) if path == all => {
                let new = request.json();
                let name = match new["name"].as_str().unwrap() {
                    "example.com." => "@".to_owned(),
                    name => name.trim_end_matches(".example.com.").to_owned(),
                };
                let id = self.next;
                self.records.push((id, name, new["data"].as_str().unwrap().to_owned()));
                self.next += 1;
                Told::new(201, json!({"domain_record": {"id": id}}))
            }
            ("DELETE", path) => {
                let id: u64 = path.rsplit('/').next().unwrap().parse().unwrap();
                let before = self.records.len();
                self.records.retain(|r| r.0 != id);
                if self.records.len() == before {
                    Told::new(404, missing)
                } else {
                    Told::new(204, "")
                }
            }
            _ => Told::new(404, missing),
        }
    }

    fn values(&self, name: &str) -> Vec<String> {
        let at = self.records.iter().filter(|r| format!("{}.example.com.", r.1) == name);
        at.map(|r| r.2.clone()).collect()
    }
}

async fn stub() -> (Stub<Account>, DigitalOcean) {
    let stub = Stub::serve(Account::new()).await;
    let token = Credential::new("token\n");
    let provider = DigitalOcean::new(token, zones(), &stub.url, &Connection::hasty()).unwrap();
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
    let seen = stub.seen();
    let lines: Vec<_> = seen.iter().map(Seen::line).collect();
    let all = "/v2/domains/example.com/records";
    let listed =
        format!("GET {all}?type=TXT&name=_acme-challenge.www.example.com&page=1&per_page=200");
    assert_eq!(lines, [listed.clone(), format!("POST {all}")]);
    let wanted = json!({"type": "TXT", "name": NAME, "data": "one", "ttl": 60});
    assert_eq!(seen[1].json(), wanted);
    assert!(seen.iter().all(|request| request.header("authorization") == "Bearer token"));
    provider.remove(&record("one")).await.unwrap();
    assert_eq!(stub.lines(), [listed, format!("DELETE {all}/2")]);
}

#[tokio::test]
async fn a_record_at_the_apex_of_its_zone_is_known_again() {
    let (stub, provider) = stub().await;
    let record = TxtRecord { name: "example.com.".to_owned(), ..record("one") };
    provider.add(&record).await.unwrap();
    provider.add(&record).await.unwrap();
    let count =
        |lines: &[String], method: &str| lines.iter().filter(|l| l.starts_with(method)).count();
    assert_eq!(count(&stub.lines(), "POST"), 1, "it is not added twice");
    provider.remove(&record).await.unwrap();
    assert_eq!(count(&stub.lines(), "DELETE"), 1);
}

#[tokio::test]
async fn every_page_is_read() {
    let (stub, provider) = stub().await;
    stub.change(|account| account.page = 1);
    provider.add(&record("one")).await.unwrap();
    stub.lines();
    provider.remove(&record("one")).await.unwrap();
    let lines = stub.lines();
    assert!(lines[1].contains("&page=2&") && lines[2].starts_with("DELETE "), "{lines:?}");
}

#[tokio::test]
async fn errors_name_the_request_and_quote_the_api() {
    let (stub, provider) = stub().await;
    let body = json!({"id": "Unauthorized", "message": "Unable to authenticate you", "request_id": "never twice"});
    stub.script([Told::new(401, body)]);
    let error = provider.check(NAME).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "while querying the DigitalOcean API for GET \"/v2/domains/example.com/records\
            ?type=TXT&name=_acme-challenge.www.example.com&page=1&per_page=200\": Unable to authenticate you"
    );
    assert!(error.needs_person && advice(&error).contains("domain:create"));
}

#[tokio::test]
async fn a_name_without_a_zone_is_said_to_have_none() {
    let (_stub, provider) = stub().await;
    let error = provider.check("_acme-challenge.example.net.").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Could not determine the zone for \"_acme-challenge.example.net.\": no such host _acme-challenge.example.net."
    );
}
