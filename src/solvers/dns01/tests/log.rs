use std::io::{self, Write};
use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use serde_json::json;
use tracing::subscriber::set_default;

use super::super::api::Api;
use super::super::{Connection, Credential};
use super::stub::{Fake, Seen, Stub, Told};

/// The text of a DNS-01 record.
const DIGEST: &str = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0";

/// Answers everything with a token and a record.
struct Careless;

impl Fake for Careless {
    fn answer(&mut self, _: &Seen) -> Told {
        Told::new(
            200,
            json!({"access_token": "hush-answer", "data": DIGEST, "zone": "example.com"}),
        )
    }

    fn values(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the full log of one request that carries credentials wherever there is a place.
async fn logged(settle: fn(Api) -> Api) -> String {
    let stub = Stub::serve(Careless).await;
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = set_default(subscriber);
    let api = settle(Api::new(&stub.url, &Connection::hasty(), |_| None).unwrap());
    let body = json!({"client_secret": "hush-body", "data": DIGEST, "name": "www"});
    let request = api.request(Method::POST, "/records?api_key=hush-query&name=www").json(&body);
    api.send(request.bearer(&Credential::new("hush-header"))).await.unwrap();
    drop(guard);
    let text = String::from_utf8(lines.0.lock().clone()).unwrap();
    text.lines().filter(|line| line.contains("dns01::api")).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn requests_and_answers_are_logged_without_credentials_and_texts() {
    let text = logged(|api| api).await;
    assert!(!text.contains("hush") && !text.contains(DIGEST), "{text}");
    for shown in ["asks the API", "\"name\":\"www\"", "example.com", "status=200", "api_key=***"] {
        assert!(text.replace("\\\"", "\"").contains(shown), "{shown} is not in {text}");
    }
}

#[tokio::test]
async fn of_servers_that_give_credentials_only_the_request_is_told() {
    let text = logged(Api::confidential).await;
    assert!(!text.contains("hush") && !text.contains("example.com"), "{text}");
    assert!(text.contains("asked the API") && text.lines().count() == 1, "{text}");
}
