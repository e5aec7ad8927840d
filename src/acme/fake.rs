//! CA for tests: checks every signature and nonce, keeps a log, and answers as the script of the test says.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::serve::Listener;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Request that was received.
#[derive(Clone, Debug)]
pub(super) struct ReceivedRequest {
    /// Method and path, such as `POST /order`.
    pub(super) what: String,
    /// Number of earlier requests with that method and path.
    pub(super) before: usize,
    /// The signed header; null for an unsigned request.
    pub(super) protected: Value,
    /// The payload; null for POST-as-GET.
    pub(super) payload: Value,
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct FakeReply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: FakeBody,
}

/// A body.
#[derive(Clone, Debug)]
pub(super) enum FakeBody {
    Text(String),
    /// Breaks off.
    Cut,
    /// Never ends.
    Endless,
}

impl FakeReply {
    pub(super) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, headers: Vec::new(), body: FakeBody::Text(body.into()) }
    }

    pub(super) fn with(mut self, header: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }

    pub(super) fn problem(status: u16, kind: &str) -> Self {
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        Self::new(status, json!({"type": kind, "detail": "no", "status": status}).to_string())
    }

    pub(super) fn cut() -> Self {
        Self { status: 200, headers: Vec::new(), body: FakeBody::Cut }
    }

    pub(super) fn endless() -> Self {
        Self { status: 200, headers: Vec::new(), body: FakeBody::Endless }
    }

    /// Leaves the nonce out of the answer.
    pub(super) fn without_nonce(self) -> Self {
        self.with("replay-nonce", "")
    }
}

type Script = dyn Fn(&ReceivedRequest) -> Option<FakeReply> + Send + Sync;

/// The CA, until it is dropped with its runtime.
pub(super) struct FakeCa {
    /// URL of the directory.
    pub(super) url: String,
    inner: Arc<Inner>,
}

struct Inner {
    script: Box<Script>,
    log: Mutex<Vec<ReceivedRequest>>,
    nonces: Mutex<(usize, HashSet<String>)>,
    keys: Mutex<HashMap<String, Value>>,
    base: String,
}

impl FakeCa {
    /// Listens on loopback; what the script does not answer is answered as a good CA would.
    pub(super) async fn start(
        script: impl Fn(&ReceivedRequest) -> Option<FakeReply> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        Self::serve(listener, base, Box::new(script))
    }

    /// Listens on loopback with TLS, for the name `localhost`, with that certificate and key.
    pub(super) async fn start_tls(certificate: &rcgen::Certificate, key: &rcgen::KeyPair) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://localhost:{}", tcp.local_addr().unwrap().port());
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let key = rustls_pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::serve(TlsListener { tcp, acceptor }, base, Box::new(|_| None))
    }

    fn serve<L: Listener<Addr = SocketAddr>>(
        listener: L,
        base: String,
        script: Box<Script>,
    ) -> Self {
        let inner = Arc::new(Inner {
            script,
            log: Mutex::default(),
            nonces: Mutex::default(),
            keys: Mutex::default(),
            base,
        });
        let url = format!("{}/dir", inner.base);
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, inner }
    }

    /// An absolute URL.
    pub(super) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.inner.base)
    }

    /// Returns all requests received.
    pub(super) fn log(&self) -> Vec<ReceivedRequest> {
        self.inner.log.lock().clone()
    }

    /// Returns the number of requests with that method and path.
    pub(super) fn count(&self, what: &str) -> usize {
        self.log().iter().filter(|heard| heard.what == what).count()
    }
}

impl Inner {
    fn nonce(&self) -> String {
        let mut nonces = self.nonces.lock();
        nonces.0 += 1;
        let nonce = format!("nonce-{}", nonces.0);
        nonces.1.insert(nonce.clone());
        nonce
    }

    fn default_answer(heard: &ReceivedRequest) -> FakeReply {
        let order = |status: &str| {
            json!({"status": status, "identifiers": [{"type": "dns", "value": "a.example"}],
                   "authorizations": ["/authz/1"], "finalize": "/order/1/finalize", "certificate": "/cert/1"})
            .to_string()
        };
        let challenge =
            json!({"type": "http-01", "url": "/chall/1", "token": "token_1", "status": "pending"});
        match heard.what.as_str() {
            "GET /dir" => FakeReply::new(
                200,
                json!({"newNonce": "/nonce", "newAccount": "/account", "newOrder": "/order",
                       "renewalInfo": "/renewal"})
                .to_string(),
            ),
            "HEAD /nonce" => FakeReply::new(200, ""),
            "POST /account" => FakeReply::new(201, r#"{"status":"valid"}"#).with("location", "/acct/1"),
            "POST /acct/1" => FakeReply::new(200, json!({"status": "valid", "contact": heard.payload["contact"]}).to_string()),
            "POST /order" => FakeReply::new(201, order("pending")).with("location", "/order/1"),
            "POST /order/1" => FakeReply::new(200, order("ready")),
            "POST /order/1/finalize" => FakeReply::new(200, order("valid")).with("location", "/order/1"),
            "POST /authz/1" => FakeReply::new(
                200,
                json!({"status": "pending", "identifier": {"type": "dns", "value": "a.example"},
                       "challenges": [challenge]})
                .to_string(),
            ),
            "POST /chall/1" => FakeReply::new(200, challenge.to_string()),
            "POST /cert/1" => FakeReply::new(200, "-----BEGIN CERTIFICATE-----\n")
                .with("link", r#"</cert/2>;rel="alternate", </cert/1>;rel="alternate", </cert/2>;rel="alternate""#),
            _ => FakeReply::new(404, ""),
        }
    }

    /// Reads a signed request; answers the test's request with the reason if it is not as RFC 8555 wants it.
    fn verified(
        &self,
        url: &str,
        content_type: &str,
        body: &[u8],
    ) -> Result<(Value, Value), FakeReply> {
        let wrong = |why: &str| {
            FakeReply::new(400, json!({"type": "urn:x:malformed", "detail": why}).to_string())
        };
        if content_type != "application/jose+json" {
            return Err(wrong("content type"));
        }
        let jws: Value = serde_json::from_slice(body).map_err(|_| wrong("no JSON"))?;
        let part = |name: &str| jws[name].as_str().unwrap_or_default();
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong("no base64url"));
        let protected: Value =
            serde_json::from_slice(&decode(part("protected"))?).map_err(|_| wrong("no header"))?;
        let jwk = match protected["kid"].as_str() {
            None => {
                let key = protected["jwk"].clone();
                self.keys.lock().insert(format!("{}/acct/1", self.base), key.clone());
                key
            }
            Some(kid) => self.keys.lock().get(kid).cloned().ok_or_else(|| wrong("kid"))?,
        };
        let mut point = vec![4];
        for coordinate in ["x", "y"] {
            point.extend(decode(jwk[coordinate].as_str().unwrap_or_default())?);
        }
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(
                format!("{}.{}", part("protected"), part("payload")).as_bytes(),
                &decode(part("signature"))?,
            )
            .map_err(|_| wrong("signature"))?;
        if protected["url"] != url {
            return Err(wrong("url"));
        }
        let payload = decode(part("payload"))?;
        let payload = serde_json::from_slice(&payload).unwrap_or(Value::Null);
        Ok((protected, payload))
    }
}

async fn answer(State(ca): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let what = format!("{} {}", parts.method, parts.uri.path());
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let agent = parts.headers.get("user-agent").and_then(|v| v.to_str().ok()).unwrap_or_default();
    assert!(agent.starts_with("kubectl-acme/"), "RFC 8555 §6.1");
    let mut heard =
        ReceivedRequest { what, before: 0, protected: Value::Null, payload: Value::Null };
    let mut said = None;
    if parts.method == "POST" {
        let kind = parts.headers.get("content-type").and_then(|v| v.to_str().ok());
        let url = format!("{}{}", ca.base, parts.uri.path());
        match ca.verified(&url, kind.unwrap_or_default(), &body) {
            Ok((protected, payload)) => (heard.protected, heard.payload) = (protected, payload),
            Err(wrong) => said = Some(wrong),
        }
    }
    {
        let mut log = ca.log.lock();
        heard.before = log.iter().filter(|earlier| earlier.what == heard.what).count();
        log.push(heard.clone());
    }
    let mut said = said.or_else(|| (ca.script)(&heard));
    if said.is_none() && parts.method == "POST" {
        let nonce = heard.protected["nonce"].as_str().unwrap_or_default();
        if !ca.nonces.lock().1.remove(nonce) {
            said = Some(FakeReply::problem(400, "badNonce"));
        }
    }
    let mut said = said.unwrap_or_else(|| Inner::default_answer(&heard));
    let carries_nonce = parts.method == "POST" || heard.what.ends_with(" /nonce");
    if carries_nonce && said.headers.iter().all(|(name, _)| *name != "replay-nonce") {
        said = said.with("replay-nonce", ca.nonce());
    }
    let mut response = Response::builder().status(said.status);
    for (name, value) in said.headers.into_iter().filter(|(_, value)| !value.is_empty()) {
        response = response.header(name, value);
    }
    let body = match said.body {
        FakeBody::Text(text) => Body::from(text),
        // The head goes out with what comes before a pause.
        FakeBody::Cut => Body::from_stream(stream::iter([0, 20]).then(async |pause| {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if pause == 0 {
                Ok(Bytes::from_static(b"{"))
            } else {
                Err(std::io::Error::other("cut"))
            }
        })),
        FakeBody::Endless => Body::from_stream(stream::repeat_with(|| {
            Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 4096]))
        })),
    };
    response.body(body).unwrap()
}

struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
