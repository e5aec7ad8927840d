use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::super::cloudflare::{Cloudflare, CloudflareLogin};
use super::super::{Connection, Credential, Provider as _};
use super::stub::{Fake, Seen, Stub, Told};
use super::{NAME, keeps_the_contract, record};
use crate::solvers::testing::advice;

/// One zone with TXT records; the API of our day shows them in quotes.
struct Account {
    records: Vec<(u32, String, String)>,
    next: u32,
    quotes: bool,
    page: usize,
}

impl Account {
    fn new() -> Self {
        let theirs = (1, NAME.trim_end_matches('.').to_owned(), "theirs".to_owned());
        Self { records: vec![theirs], next: 2, quotes: true, page: 100 }
    }
}

impl Fake for Account {
    fn answer(&mut self, request: &Seen) -> Told {
        let path = request.uri.path();
        let good = |result, pages| {
            Told::new(
                200,
                json!({"success": true, "result": result, "errors": [],
                "result_info": {"total_pages": pages}}),
            )
        };
        match (request.method.as_str(), path.trim_start_matches("/client/v4")) {
            ("GET", "/zones") => match request.parameter("name").as_deref() {
                Some("example.com") => good(json!([{"id": "z1", "name": "example.com"}]), 1),
                _ => good(json!([]), 0),
            },
            ("GET", "/zones/z1/dns_records") => {
                let name = request.parameter("name").unwrap();
                let found: Vec<_> = self.records.iter().filter(|r| r.1 == name).collect();
                let number: usize = request.parameter("page").map_or(1, |n| n.parse().unwrap());
                let shown = found.iter().skip((number - 1) * self.page).take(self.page);
                let shown: Vec<_> = shown
                    .map(|(id, name, text)| {
                        let content = if self.quotes { format!("\"{text}\"") } else { text.clone() };
                        json!({"id": format!("r{id}"), "name": name, "type": "TXT", "content": content})
                    })
                    .collect();
                good(json!(shown), found.len().div_ceil(self.page))
            }
            ("POST", "/zones/z1/dns_records") => {
                let new = request.json();
                let text = |key: &str| new[key].as_str().unwrap().to_owned();
                self.records.push((self.next, text("name"), text("content")));
                self.next += 1;
                good(json!([{"id": "new"}]), 1)
            }
            ("DELETE", path) => {
                let id: u32 = path.trim_start_matches("/zones/z1/dns_records/r").parse().unwrap();
                self.records.retain(|r| r.0 != id);
                good(json!([]), 1)
            }
            _ => Told::new(
                404,
                json!({"success": false, "errors": [{"code": 7003, "message": "no route"}]}),
            ),
        }
    }

    fn values(&self, name: &str) -> Vec<String> {
        let at = self.records.iter().filter(|r| r.1 == name.trim_end_matches('.'));
        at.map(|r| r.2.clone()).collect()
    }
}

async fn stub() -> (Stub<Account>, Cloudflare) {
    let stub = Stub::serve(Account::new()).await;
    let endpoint = format!("{}/client/v4", stub.url);
    let login = CloudflareLogin::Token(Credential::new("token\n"));
    let provider = Cloudflare::new(login, &endpoint, &Connection::hasty()).unwrap();
    (stub, provider)
}

/// The error of an addition when the API tells that first.
async fn refused(status: u16, body: &str) -> (String, bool, String) {
    let (stub, provider) = stub().await;
    stub.script([Told::new(status, body)]);
    let error = provider.add(&record("one")).await.unwrap_err();
    (error.to_string(), error.needs_person, advice(&error))
}

#[tokio::test]
async fn it_keeps_the_contract_with_and_without_quotes() {
    for quotes in [true, false] {
        let (stub, provider) = stub().await;
        stub.change(|account| account.quotes = quotes);
        keeps_the_contract(&provider, &stub).await;
    }
}

#[tokio::test]
async fn the_requests_are_those_of_cert_manager() {
    let (stub, provider) = stub().await;
    provider.add(&record("one")).await.unwrap();
    let seen = stub.seen();
    let lines: Vec<_> = seen.iter().map(Seen::line).collect();
    let records = "/client/v4/zones/z1/dns_records";
    let listed =
        format!("GET {records}?per_page=100&type=TXT&name=_acme-challenge.www.example.com");
    let zone = [
        "GET /client/v4/zones?name=_acme-challenge.www.example.com",
        "GET /client/v4/zones?name=www.example.com",
        "GET /client/v4/zones?name=example.com",
        &listed,
    ];
    assert_eq!(lines[..4], zone);
    assert_eq!(lines[4..], [format!("POST {records}")]);
    let wanted = json!({"type": "TXT", "name": "_acme-challenge.www.example.com", "content": "one", "ttl": 60});
    assert_eq!(seen[4].json(), wanted);
    assert_eq!(seen[4].header("content-type"), "application/json");
    assert!(seen.iter().all(|request| request.header("authorization") == "Bearer token"));
    provider.remove(&record("one")).await.unwrap();
    let lines = stub.lines();
    assert_eq!(lines[..4], zone);
    assert_eq!(lines[4..], [format!("DELETE {records}/r2")]);
    provider.check(NAME).await.unwrap();
    assert_eq!(stub.lines(), zone);
}

#[tokio::test]
async fn an_api_key_goes_with_its_address() {
    let (stub, _) = stub().await;
    let login =
        CloudflareLogin::Key { email: "me@example.com".to_owned(), key: Credential::new("key") };
    let endpoint = format!("{}/client/v4", stub.url);
    let provider = Cloudflare::new(login, &endpoint, &Connection::hasty()).unwrap();
    provider.check(NAME).await.unwrap();
    for request in stub.seen() {
        assert_eq!(request.header("x-auth-email"), "me@example.com");
        assert_eq!(request.header("x-auth-key"), "key");
        assert_eq!(request.header("authorization"), "");
    }
    assert!(!format!("{provider:?}").contains("\"key\""), "{provider:?}");
}

#[tokio::test]
async fn every_page_is_read() {
    let (stub, provider) = stub().await;
    stub.change(|account| account.page = 1);
    for value in ["one", "two"] {
        provider.add(&record(value)).await.unwrap();
    }
    stub.lines();
    provider.remove(&record("two")).await.unwrap();
    let lines = stub.lines();
    assert!(lines[4].ends_with("&page=2") && lines[5].ends_with("&page=3"), "{lines:?}");
    assert_eq!(stub.values(NAME), ["theirs", "one"]);
}

#[tokio::test]
async fn errors_are_told_in_cert_managers_words() {
    let what = "while attempting to find Zones for domain _acme-challenge.www.example.com.: \
        while querying the Cloudflare API for GET \"/zones?name=_acme-challenge.www.example.com\": ";
    let body = r#"{"success": false, "errors": [{"code": 6003, "message": "Invalid request headers",
        "error_chain": [{"code": 6111, "message": "Invalid format for Authorization header"}]}]}"#;
    let (said, person, hint) = refused(400, body).await;
    let why =
        "Error: 6003: Invalid request headers<- 6111: Invalid format for Authorization header";
    assert_eq!((said, person, hint), (format!("{what}{why}"), true, String::new()));
    let body =
        r#"{"success": false, "errors": [{"code": 9109, "message": "Invalid access token"}]}"#;
    let (said, person, hint) = refused(403, body).await;
    assert_eq!((said, person), (format!("{what}Error: 9109: Invalid access token"), true));
    assert!(hint.contains("Zone - DNS - Edit"));
    let (said, person, _) = refused(502, "<html>bad gateway</html>").await;
    assert_eq!((said, person), (format!("{what}HTTP 502 Bad Gateway"), false));
    let (said, person, _) = refused(200, "nonsense").await;
    assert_eq!(
        (said, person),
        (format!("{what}its answer is not the JSON that was expected"), false)
    );
}

#[tokio::test]
async fn a_zone_that_is_not_there_is_said_before_anything_is_written() {
    let (stub, provider) = stub().await;
    let error = provider.check("_acme-challenge.example.net.").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Found no Zones for domain _acme-challenge.example.net.: neither for itself nor for any of its parents"
    );
    assert!(error.needs_person && advice(&error).contains("Zone - Zone - Read"));
    assert_eq!(stub.lines().len(), 2, "a top-level domain is nobody's zone");
}

#[tokio::test]
async fn a_credential_with_a_line_break_inside_is_refused_at_once() {
    let login = CloudflareLogin::Token(Credential::new("to\nken"));
    let error = Cloudflare::new(login, "http://127.0.0.1:1", &Connection::hasty()).unwrap_err();
    assert!(advice(&error).contains("line break"), "{error}");
    assert!(!error.to_string().contains("ken\n") && error.needs_person);
}

#[tokio::test]
async fn what_somebody_did_in_between_is_as_good() {
    let (stub, provider) = stub().await;
    let zone = Told::new(200, json!({"result": [{"id": "z1"}]}));
    let none = Told::new(200, json!({"result": []}));
    let error = |code: u32| json!({"success": false, "errors": [{"code": code, "message": "m"}]});
    stub.script([zone.clone(), none, Told::new(400, error(81058))]);
    provider.add(&record("one")).await.expect("an identical record is there");
    let found =
        json!({"result": [{"id": "r9", "name": NAME.trim_end_matches('.'), "content": "one"}]});
    stub.script([zone, Told::new(200, found), Told::new(404, error(81044))]);
    provider.remove(&record("one")).await.expect("the record is gone");
}

#[tokio::test]
async fn a_request_for_patience_is_heeded_within_bounds() {
    let (stub, provider) = stub().await;
    let busy = |pause| Told { header: Some(("retry-after", pause)), ..Told::new(429, "{}") };
    stub.script([busy("0"), Told::new(503, ""), busy("0")]);
    provider.check(NAME).await.expect("the fourth try is answered");
    for (pause, kept) in [("300", 300), ("3600", 3600), ("18446744073709551615", 3600)] {
        stub.script([busy(pause)]);
        let kept = SignedDuration::from_secs(kept);
        let earliest = Timestamp::now() + kept;
        let error = provider.check(NAME).await.unwrap_err();
        assert!(error.to_string().ends_with("HTTP 429 Too Many Requests"), "{error}");
        assert!(!error.needs_person, "later it is good again");
        let until = error.until.expect("it says when");
        assert!((earliest..=Timestamp::now() + kept).contains(&until), "{pause}: {until}");
    }
    stub.lines();
    stub.script([busy("0"), busy("0"), busy("0"), busy("0")]);
    let error = provider.check(NAME).await.unwrap_err();
    assert_eq!(error.until, None, "so short a pause is ours to lengthen");
    assert_eq!(stub.lines().len(), 4);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_no_fault_of_the_person() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let login = CloudflareLogin::Token(Credential::new("token"));
    let provider = Cloudflare::new(login, &closed, &Connection::hasty()).unwrap();
    let error = provider.check(NAME).await.unwrap_err();
    assert!(!error.needs_person && error.to_string().ends_with(": Connection refused"), "{error}");
}
