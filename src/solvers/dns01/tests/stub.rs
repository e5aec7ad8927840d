//! A server on loopback that stands in for a provider's API and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, Uri};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Seen {
    /// Method, path and query: `GET /zones?name=example.com`.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.method, self.uri)
    }

    /// One parameter of the query or the form, decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let query = self.uri.query().unwrap_or_default();
        [query, &self.body].into_iter().find_map(|text| {
            let mut pairs = url::form_urlencoded::parse(text.as_bytes());
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        })
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// An answer: status, one header, body.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) status: u16,
    pub(super) header: Option<(&'static str, &'static str)>,
    pub(super) body: String,
}

impl Told {
    #[expect(clippy::needless_pass_by_value, reason = "callers make it in its place")]
    pub(super) fn new(status: u16, body: impl ToString) -> Self {
        Self { status, header: None, body: body.to_string() }
    }
}

impl IntoResponse for Told {
    fn into_response(self) -> Response {
        let status = http::StatusCode::from_u16(self.status).unwrap();
        let mut response = (status, self.body).into_response();
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        response
    }
}

/// The state of a provider, and how its API shows it.
pub(super) trait Fake: Send + 'static {
    /// Answers a request.
    fn answer(&mut self, request: &Seen) -> Told;
    /// The texts at an absolute name, without quotes.
    fn values(&self, name: &str) -> Vec<String>;
}

struct Inside<F> {
    fake: F,
    seen: Vec<Seen>,
    /// Told first, whatever is asked.
    scripted: VecDeque<Told>,
}

/// The server; it ends with the test.
pub(super) struct Stub<F> {
    pub(super) url: String,
    inside: Arc<Mutex<Inside<F>>>,
}

impl<F: Fake> Stub<F> {
    pub(super) async fn serve(fake: F) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inside = Inside { fake, seen: Vec::new(), scripted: VecDeque::new() };
        let inside = Arc::new(Mutex::new(inside));
        let app = Router::new().fallback(answer::<F>).with_state(Arc::clone(&inside));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, inside }
    }

    fn lock(&self) -> MutexGuard<'_, Inside<F>> {
        self.inside.lock()
    }

    /// Tells this before anything else.
    pub(super) fn script(&self, told: impl IntoIterator<Item = Told>) {
        self.lock().scripted.extend(told);
    }

    /// Returns the requests since the last call.
    pub(super) fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.lock().seen)
    }

    /// The lines of what was asked since the last look.
    pub(super) fn lines(&self) -> Vec<String> {
        self.seen().iter().map(Seen::line).collect()
    }

    pub(super) fn values(&self, name: &str) -> Vec<String> {
        self.lock().fake.values(name)
    }

    /// Changes the state from outside.
    pub(super) fn change(&self, change: impl FnOnce(&mut F)) {
        change(&mut self.lock().fake);
    }
}

async fn answer<F: Fake>(
    State(inside): State<Arc<Mutex<Inside<F>>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Told {
    let body = String::from_utf8(body.to_vec()).unwrap();
    let seen = Seen { method, uri, headers, body };
    let mut inside = inside.lock();
    inside.seen.push(seen.clone());
    match inside.scripted.pop_front() {
        Some(told) => told,
        None => inside.fake.answer(&seen),
    }
}
