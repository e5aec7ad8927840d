//! Requests to the APIs of providers: one place for time-outs, rate limits and errors.

use std::fmt;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use reqwest::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tracing::{Level, debug, enabled, info};
use url::Url;

pub(super) use super::connection::Connection;
use super::connection::{EXCHANGE_TIMEOUT, NO_ROOTS_HINT};
use super::credential::Credential;
use super::text::one_line;
use crate::http::exchange::{self, Reply, Unanswered, causes};
use crate::http::headers::retry_after;
use crate::model::masked;
use crate::solvers::SolveError;

/// Largest answer read, in bytes.
const MAX_REPLY_BYTES: usize = 8 << 20;
/// Longest pause within one call that a provider may ask for; for longer pauses the whole step is repeated later.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Longest time without requests that a provider may ask for.
const MAX_ABSENCE: Duration = Duration::from_hours(1);

/// Content of an error's body.
#[derive(Debug, Default)]
pub(super) struct Explanation {
    /// The provider's code for the error, such as `InvalidChangeBatch`.
    pub(super) code: String,
    /// The text for people.
    pub(super) message: String,
}

/// Function that reads the body of an error.
pub(super) type Explain = fn(&[u8]) -> Option<Explanation>;

/// One server of a provider.
pub(super) struct Api {
    base: Url,
    client: Client,
    pause: Duration,
    repeats: u32,
    explain: Explain,
    bodies: Bodies,
}

/// Whether a log may show the bodies of requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bodies {
    Shown,
    /// Bodies hold credentials, or the caller logs them.
    Hidden,
}

/// A request, before it is signed.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// A good answer, read to its end.
#[derive(Debug)]
pub(super) struct ApiReply {
    /// The body.
    pub(super) body: Vec<u8>,
}

/// Reason why there is no good answer.
#[derive(Debug)]
pub(super) struct ApiRefusal {
    /// HTTP status; `None` if there is no answer, or none that can be read.
    pub(super) status: Option<StatusCode>,
    /// The provider's code for the error; may be empty.
    pub(super) code: String,
    /// Reason in one line, equal for equal causes.
    pub(super) why: String,
    /// Time of the next allowed request, if the provider names a time.
    pub(super) until: Option<Timestamp>,
    /// Method and URL of the request.
    pub(super) call: String,
    /// Whether no answer came at all.
    pub(super) is_silence: bool,
}

impl Api {
    /// Creates a client for the server at that URL, which may have a path that all requests begin with.
    pub(super) fn new(
        base: &str,
        connection: &Connection,
        explain: Explain,
    ) -> Result<Self, SolveError> {
        let unusable = |why: String, hint: Option<String>| {
            SolveError::lasting(format!("cannot reach {}", one_line(base)), why).with_remedy(hint)
        };
        // `auth.example.com:8443` reads as a URL, too, of a scheme of that name.
        let is_http = |url: &Url| ["http", "https"].contains(&url.scheme()) && url.has_host();
        let Some(url) = Url::parse(base).ok().filter(is_http) else {
            let host = base.split_once("://").map_or(base, |(_, host)| host);
            let hint = format!("write https://{}", one_line(host));
            return Err(unusable("it is not an http or https URL".to_owned(), Some(hint)));
        };
        let client = connection
            .client(&url)
            .map_err(|error| unusable(innermost(&error), Some(NO_ROOTS_HINT.to_owned())))?;
        let Connection { pause, repeats, .. } = *connection;
        Ok(Self { base: url, client, pause, repeats, explain, bodies: Bodies::Shown })
    }

    /// Hides the bodies from every log, because they hold credentials.
    pub(super) fn confidential(self) -> Self {
        Self { bodies: Bodies::Hidden, ..self }
    }

    /// Returns the URL that all requests begin with.
    pub(super) fn base(&self) -> &str {
        self.base.as_str()
    }

    /// Begins a request; the path begins with `/` and may have a query, both encoded.
    pub(super) fn request(&self, method: Method, path: &str) -> Request {
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url.set_query(query);
        Request { method, url, headers: HeaderMap::new(), body: Vec::new() }
    }

    /// Sends a request that carries its credentials already.
    pub(super) async fn send(&self, request: Request) -> Result<ApiReply, ApiRefusal> {
        self.send_signed(request, &|_| {}).await
    }

    /// Sends a request, signed afresh for every try; waits and repeats the request if the provider asks for patience.
    pub(super) async fn send_signed(
        &self,
        request: Request,
        sign: &(dyn Fn(&mut Request) + Send + Sync),
    ) -> Result<ApiReply, ApiRefusal> {
        let call = format!("{} {}", request.method, masked::url(request.url.as_str()));
        let mut repeats = 0;
        loop {
            let mut signed = request.clone();
            sign(&mut signed);
            let reply = match self.exchange(signed).await {
                Ok(reply) => reply,
                Err(refusal) => return Err(ApiRefusal { call, ..refusal }),
            };
            if reply.status.is_success() {
                return Ok(ApiReply { body: reply.body });
            }
            let refusal = self.refusal(reply.status, &reply.body);
            let refusal = ApiRefusal { call: call.clone(), ..refusal };
            let asked = retry_after(&reply.headers, Timestamp::now());
            let pause = asked.unwrap_or_else(|| self.pause * 2_u32.pow(repeats));
            if !refusal.asks_for_patience() {
                return Err(refusal);
            }
            if repeats >= self.repeats || pause > MAX_PAUSE {
                let asked = asked.filter(|pause| *pause > MAX_PAUSE);
                let until = asked.map(|pause| Timestamp::now() + pause.min(MAX_ABSENCE));
                return Err(ApiRefusal { until, ..refusal });
            }
            repeats += 1;
            tokio::time::sleep(pause).await;
        }
    }

    /// Sends a request once, and logs the exchange.
    async fn exchange(&self, request: Request) -> Result<Reply, ApiRefusal> {
        let Request { method, url, headers, body } = request;
        let (verb, shown) = (method.clone(), masked::url(url.as_str()));
        let is_shown = self.bodies == Bodies::Shown && enabled!(Level::DEBUG);
        if is_shown {
            debug!(method = %verb, url = shown, payload = masked::body(&body), "asks the API");
        }
        let began = Instant::now();
        let sending = self.client.request(method, url).headers(headers).body(body);
        let answered = exchange::send(sending, MAX_REPLY_BYTES).await.map_err(ApiRefusal::silence);
        let took = format!("{}ms", began.elapsed().as_millis());
        match &answered {
            Ok(reply) => {
                let status = reply.status.as_u16();
                info!(method = %verb, status, took, url = shown, "asked the API");
                if is_shown {
                    debug!(status, body = masked::body(&reply.body), "the API answers");
                }
            }
            Err(refusal) => {
                let why = &refusal.why;
                info!(method = %verb, took, url = shown, why, "asked the API in vain");
            }
        }
        answered
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> ApiRefusal {
        let Explanation { code, message } = (self.explain)(body).unwrap_or_default();
        let (code, message) = (one_line(&code), one_line(&message));
        let why = if message.is_empty() { format!("HTTP {status}") } else { message };
        ApiRefusal { status: Some(status), code, ..ApiRefusal::unread(&why) }
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Api({})", self.base)
    }
}

impl Request {
    /// Adds a header; a header that cannot be sent is left out, since all names and values of this program can be sent.
    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }

    /// Adds a header that holds a credential.
    pub(super) fn secret_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(mut value) = HeaderValue::from_str(value) {
            value.set_sensitive(true);
            self.headers.insert(name, value);
        }
        self
    }

    /// Adds a bearer token (RFC 6750 §2.1).
    pub(super) fn bearer(self, token: &Credential) -> Self {
        self.secret_header(AUTHORIZATION, &format!("Bearer {}", token.expose()))
    }

    /// Sets a JSON body.
    pub(super) fn json(self, body: &impl Serialize) -> Self {
        // All bodies here are maps of texts and numbers, which can always be written.
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self { body, ..self }.header(CONTENT_TYPE, "application/json")
    }

    /// Sets a form-encoded body.
    pub(super) fn form(self, fields: &[(&str, &str)]) -> Self {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        let body = form.extend_pairs(fields).finish().into_bytes();
        Self { body, ..self }.header(CONTENT_TYPE, "application/x-www-form-urlencoded")
    }

    /// Returns path and query, as signatures and errors name them.
    pub(super) fn target(&self) -> String {
        match self.url.query() {
            Some(query) => format!("{}?{query}", self.url.path()),
            None => self.url.path().to_owned(),
        }
    }
}

impl ApiReply {
    /// Reads a JSON body.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiRefusal> {
        serde_json::from_slice(&self.body)
            .map_err(|_| ApiRefusal::unread("its answer is not the JSON that was expected"))
    }
}

impl ApiRefusal {
    /// Builds the refusal if no answer came, or none that was read to its end.
    fn silence(why: Unanswered) -> Self {
        let is_silence = !matches!(why, Unanswered::TooLarge);
        let why = match why {
            Unanswered::NotConnected => "no connection within the time allowed".to_owned(),
            Unanswered::TimedOut => format!("no answer within {} s", EXCHANGE_TIMEOUT.as_secs()),
            Unanswered::TooLarge => {
                format!("its answer is larger than {} MiB", MAX_REPLY_BYTES >> 20)
            }
            Unanswered::Broken(error) => innermost(&error),
        };
        Self { is_silence, ..Self::unread(&why) }
    }

    /// Builds the refusal for an answer that cannot be understood.
    pub(super) fn unread(why: &str) -> Self {
        let (code, call) = (String::new(), String::new());
        Self { status: None, code, why: why.to_owned(), until: None, call, is_silence: false }
    }

    /// Returns whether the provider answered with that status.
    pub(super) fn is(&self, status: StatusCode) -> bool {
        self.status == Some(status)
    }

    /// Returns whether the credentials are wrong or lack a permission.
    pub(super) fn is_denial(&self) -> bool {
        self.is(StatusCode::UNAUTHORIZED) || self.is(StatusCode::FORBIDDEN)
    }

    /// Returns whether the server's certificate is not good, which only a person can mend.
    fn is_about_trust(&self) -> bool {
        self.status.is_none() && self.why.contains("invalid peer certificate")
    }

    /// Returns a hint against the refusal, except for credentials.
    fn hint(&self) -> Option<String> {
        // A bad signature comes from another root of the same name.
        let is_unknown = ["UnknownIssuer", "BadSignature"].iter().any(|w| self.why.ends_with(w));
        (self.is_about_trust() && is_unknown).then(|| {
            "SSL_CERT_FILE=FILE names the CAs that are trusted in place of this machine's"
                .to_owned()
        })
    }

    /// Returns whether the same request is worth repeating in a moment.
    fn asks_for_patience(&self) -> bool {
        self.is(StatusCode::TOO_MANY_REQUESTS)
            || self.is(StatusCode::SERVICE_UNAVAILABLE)
            || self.code.starts_with("Throttling")
            // Route 53 works on one change of a zone at a time.
            || self.code == "PriorRequestNotComplete"
    }

    /// Returns whether the cause may pass by itself: no answer, a server's fault, too many requests, another client's change.
    fn passes(&self) -> bool {
        let Some(status) = self.status else { return !self.is_about_trust() };
        status.is_server_error()
            || [StatusCode::REQUEST_TIMEOUT, StatusCode::CONFLICT, StatusCode::PRECONDITION_FAILED]
                .contains(&status)
            || self.asks_for_patience()
    }

    /// Builds the error of an action that failed by this refusal; the hint is for credentials that lack the permission.
    pub(super) fn into_error(self, what: String, hint: &str) -> SolveError {
        let remedy = self.hint().or_else(|| self.is_denial().then(|| hint.to_owned()));
        SolveError::new(what, self.why.clone(), !self.passes())
            .with_remedy(remedy)
            .refused(self.fact())
            .until(self.until)
    }
}

/// Returns the innermost cause of an error, without the system's error number, and without the time of the verification.
fn innermost(error: &reqwest::Error) -> String {
    let text = causes(error).last().map(ToString::to_string).unwrap_or_default();
    let text = text.split(" (os error").next().unwrap_or_default();
    one_line(text.split(": verification time").next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solvers::testing::advice;

    #[test]
    fn a_request_prints_no_credential() {
        let api = Api::new("https://api.example/v1/", &Connection::hasty(), |_| None).unwrap();
        let request =
            api.request(Method::GET, "/zones?name=a%2Fb").bearer(&Credential::new("hush"));
        assert_eq!(request.url.as_str(), "https://api.example/v1/zones?name=a%2Fb");
        assert_eq!(request.target(), "/v1/zones?name=a%2Fb");
        assert!(!format!("{:?} {api:?}", request.headers).contains("hush"));
    }

    #[test]
    fn a_server_is_named_by_an_http_url() {
        for (base, hint) in [
            ("api.example", "write https://api.example"),
            ("auth.example.com:8443", "write https://auth.example.com:8443"),
            ("localhost:8443", "write https://localhost:8443"),
            ("ftp://auth.example.com", "write https://auth.example.com"),
        ] {
            let error = Api::new(base, &Connection::hasty(), |_| None).unwrap_err();
            let expected = format!("cannot reach {base}: it is not an http or https URL");
            assert_eq!(error.to_string(), expected);
            assert_eq!((error.needs_person, advice(&error)), (true, hint.to_owned()));
        }
    }
}
