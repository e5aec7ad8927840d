//! One request to the API server: built, sent, sent again if the server is busy, and read.
//!
//! No request waits for another one; Events and clean-up go between the writes that certificates wait for. One place in
//! sixteen left free for the latter showed no gain: the cost of a write is the API server's own time. Only 429, and a
//! 503 with Retry-After (an API server that has just started), are tried again here, eight times, after that time, as
//! client-go does; other failures are up to the caller. Every request ends after `--request-timeout`.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::access_request::AccessRequest;
use super::refusal;
use crate::http::headers;
use crate::model::{Key, Kind};
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;

/// Most repeats of a request for which the server was too busy.
const BUSY_RETRIES: u32 = 8;
/// Pause before a repeat if the server names none.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause that a server may ask for each time.
const LONGEST_BUSY_PAUSE: Duration = Duration::from_secs(30);

/// One request, before it is sent; without `Debug`, as Secrets pass through here.
#[derive(Clone)]
pub(super) struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    content_type: &'static str,
    accept: &'static str,
    body: Vec<u8>,
}

/// Media type of an answer.
const JSON: &str = "application/json";
/// Media type of an answer if names, labels and annotations of objects are enough.
const METADATA_ONLY: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

impl Call {
    /// Makes a request without a body.
    pub(super) fn new(method: Method, path: String) -> Self {
        let (query, body) = (Vec::new(), Vec::new());
        Self { method, path, query, content_type: JSON, accept: JSON, body }
    }

    /// Asks for the metadata of listed objects alone.
    pub(super) fn metadata_only(self) -> Self {
        Self { accept: METADATA_ONLY, ..self }
    }

    /// Adds a parameter.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Adds a body.
    pub(super) fn body(self, content_type: &'static str, body: &Value) -> Self {
        Self { content_type, body: body.to_string().into_bytes(), ..self }
    }

    fn request(&self) -> Result<Request<Body>, http::Error> {
        let mut uri = self.path.clone();
        if !self.query.is_empty() {
            let mut query = Serializer::new(String::new());
            query.extend_pairs(&self.query);
            uri = format!("{uri}?{}", query.finish());
        }
        let request = Request::builder().method(self.method.clone()).uri(uri);
        let request = request.header(http::header::CONTENT_TYPE, self.content_type);
        let request = request.header(http::header::ACCEPT, self.accept);
        request.body(Body::from(self.body.clone()))
    }
}

/// Path of a kind's objects; of all objects without a namespace.
pub(super) fn path(kind: Kind, namespace: &str) -> String {
    let root = if kind.group().is_empty() { "/api" } else { "/apis" };
    let version = kind.api_version();
    let plural = kind.plural();
    if namespace.is_empty() {
        format!("{root}/{version}/{plural}")
    } else {
        format!("{root}/{version}/namespaces/{namespace}/{plural}")
    }
}

/// The path of one object.
pub(super) fn path_of(key: &Key) -> String {
    format!("{}/{}", path(key.kind, &key.name.namespace), key.name.name)
}

/// Answer of the server; without `Debug`, too.
pub(super) struct ApiAnswer {
    /// Body of the answer.
    pub body: Value,
    /// Time of the server's clock.
    pub date: Option<Timestamp>,
}

/// Client of one API server.
#[derive(Clone)]
pub(super) struct Wire {
    /// kube's client, which logs in.
    pub client: Client,
    /// URL, for people.
    pub server: String,
    /// Longest time of one request.
    pub timeout: Duration,
}

impl Wire {
    /// Sends a request and reads the answer.
    pub(super) async fn call(
        &self,
        deed: &AccessRequest<'_>,
        call: Call,
    ) -> Result<ApiAnswer, StoreError> {
        match self.answer(deed, &call).await? {
            Ok(answer) => Ok(answer),
            Err(status) => Err(refusal::refused(&self.server, deed, &status)),
        }
    }

    /// Sends a request and reads the answer; a refusal is for the caller to judge.
    pub(super) async fn answer(
        &self,
        deed: &AccessRequest<'_>,
        call: &Call,
    ) -> Result<Result<ApiAnswer, Box<Status>>, StoreError> {
        let mut tries = 0;
        loop {
            let slow = |_| ClusterFault::Unreachable {
                server: self.server.clone(),
                why: format!("no answer within {} s", self.timeout.as_secs()),
            };
            let exchange = tokio::time::timeout(self.timeout, self.exchange(call));
            let exchanged = exchange.await.map_err(slow)?;
            let (status, patience, answer) =
                exchanged.map_err(|error| refusal::unanswered(&self.server, &error))?;
            let asks_for_patience = status == StatusCode::TOO_MANY_REQUESTS
                || (status == StatusCode::SERVICE_UNAVAILABLE && patience.is_some());
            if asks_for_patience && tries < BUSY_RETRIES {
                tries += 1;
                tracing::debug!(
                    ?patience,
                    tries,
                    verb = deed.verb,
                    "the API server asks for patience"
                );
                tokio::time::sleep(patience.unwrap_or(BUSY_PAUSE).min(LONGEST_BUSY_PAUSE)).await;
                continue;
            }
            if status.is_client_error() || status.is_server_error() {
                return Ok(Err(Box::new(refusal(status, &answer.body))));
            }
            if !answer.body.is_object() {
                let why = "it answers with what is no JSON object".to_owned();
                return Err(ClusterFault::Stranger { server: self.server.clone(), why }.into());
            }
            return Ok(Ok(answer));
        }
    }

    async fn exchange(
        &self,
        call: &Call,
    ) -> Result<(StatusCode, Option<Duration>, ApiAnswer), kube::Error> {
        let request = call.request().map_err(kube::Error::HttpError)?;
        let (head, body) = self.client.send(request).await?.into_parts();
        let date = headers::date(&head.headers);
        let patience = headers::retry_after(&head.headers, Timestamp::now());
        let bytes = body.collect().await?.to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).trim().to_owned()));
        Ok((head.status, patience, ApiAnswer { body, date }))
    }
}

/// Reads the Status of a refusal; not every refusal carries one.
fn refusal(code: StatusCode, body: &Value) -> Status {
    let mut status = match body {
        Value::Object(_) => serde_json::from_value(body.clone()).unwrap_or_default(),
        Value::String(text) => Status { message: text.clone(), ..Status::default() },
        _ => Status::default(),
    };
    if status.code == 0 {
        status.code = code.as_u16();
    }
    status
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::Router;
    use axum::routing::get;
    use http::HeaderMap;
    use http::header::RETRY_AFTER;
    use tokio::time::Instant;

    use super::*;

    /// Lists Orders on a server that refuses so many times with that status, and asks for 3 s of patience each time;
    /// tells what came of it, after how many requests and seconds.
    async fn check(refusals: u32, code: StatusCode) -> (Result<Value, String>, u32, u64) {
        let asked = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&asked);
        let answer = move || async move {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, "3".parse().unwrap())]);
            if counter.fetch_add(1, Ordering::Relaxed) < refusals {
                return (code, headers, "Too many requests, please try again later.");
            }
            (StatusCode::OK, HeaderMap::new(), "{}")
        };
        let router = Router::new().route(&path(Kind::Order, ""), get(answer));
        let client = Client::new(router, "default");
        let timeout = Duration::from_secs(30);
        let wire = Wire { client, server: "https://double".into(), timeout };
        let begun = Instant::now();
        let call = Call::new(Method::GET, path(Kind::Order, ""));
        let answer = wire.call(&AccessRequest::over("list", Kind::Order, ""), call).await;
        let answer = answer.map(|answer| answer.body).map_err(|error| error.to_string());
        (answer, asked.load(Ordering::Relaxed), begun.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_asks_for_patience_gets_it() {
        for code in [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE] {
            assert_eq!(check(2, code).await, (Ok(serde_json::json!({})), 3, 6));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn patience_ends() {
        let (answer, asked, seconds) = check(100, StatusCode::TOO_MANY_REQUESTS).await;
        let expected = "the cluster at https://double is too busy to list orders.acme.cert-manager.io: Too many \
                        requests, please try again later.";
        assert_eq!(answer.unwrap_err(), expected);
        assert_eq!((asked, seconds), (BUSY_RETRIES + 1, u64::from(BUSY_RETRIES) * 3));
    }

    #[tokio::test(start_paused = true)]
    async fn other_failures_are_for_the_caller_to_try_again() {
        let (answer, asked, _) = check(1, StatusCode::INTERNAL_SERVER_ERROR).await;
        assert!(answer.unwrap_err().starts_with("the cluster at https://double could not list"));
        assert_eq!(asked, 1);
    }
}
