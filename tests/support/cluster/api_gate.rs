//! A gate before an API server: whoever goes through it can be stopped at any write, while everybody else goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Headers that belong to one connection only.
const HOP_BY_HOP: [HeaderName; 4] =
    [header::CONNECTION, header::CONTENT_LENGTH, header::HOST, header::TRANSFER_ENCODING];

/// One write of a process in one namespace, told by what it does and how often that has been done there before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// The method of the request.
    pub verb: String,
    /// Plural, with the subresource.
    pub resource: String,
    /// 1 for the first such write.
    pub nth: usize,
}

impl Step {
    /// Whether the scheduler lets a first Challenge start by it, in one write after the other.
    pub fn is_schedulers(&self) -> bool {
        self.resource == "challenges/status" && self.nth == 1
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if self.nth > 1 { write!(f, " ({})", self.nth) } else { Ok(()) }
    }
}

/// Where a namespace stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The API server never hears of the write.
    Before,
    /// The write is done, and who wrote never learns of it.
    After,
}

/// A running gate; what it holds back is gone when it goes.
#[derive(Debug)]
pub struct ApiGate {
    address: SocketAddr,
    shared: Arc<Shared>,
    folder: TempDir,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    client: reqwest::Client,
    state: Mutex<State>,
    is_open: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    /// Where each namespace stops.
    stops: BTreeMap<String, (Step, Moment)>,
    /// Namespaces that have stopped.
    stopped: BTreeSet<String>,
    /// Writes that have been let through and were not refused, events aside.
    writes: BTreeMap<String, Vec<Step>>,
    /// Where the first write of each sort fails, and the first watch of each kind has been forgotten.
    stumbles: BTreeSet<String>,
    /// Watches that have been forgotten.
    forgotten: BTreeSet<String>,
    /// Writes that have failed.
    failed: BTreeSet<Step>,
}

/// What becomes of a write.
enum Fate {
    Passes,
    IsLost,
    PassesUnheard,
    /// This answer, of which the API server knows nothing.
    Fails(StatusCode, &'static str),
}

/// What is applied before anything is driven, and who drives: whoever is refused there ends.
const BEFORE: [&str; 3] = ["certificates", "issuers", "leases"];

impl ApiGate {
    /// Opens a gate to the API server of a kubeconfig, with the client certificate that is in it.
    pub fn before(kubeconfig: &Path) -> Self {
        let config: Value = serde_yaml::from_slice(&fs::read(kubeconfig).unwrap()).unwrap();
        let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap();
        let pem = |pointer: &str| STANDARD.decode(text(pointer)).unwrap();
        let ca = pem("/clusters/0/cluster/certificate-authority-data");
        let mut identity = pem("/users/0/user/client-certificate-data");
        identity.extend(pem("/users/0/user/client-key-data"));
        // reqwest takes the process's provider; another test may have installed the same one.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let client = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(&ca).unwrap()])
            .identity(reqwest::Identity::from_pem(&identity).unwrap())
            .no_gzip()
            .no_proxy()
            .build()
            .unwrap();
        let server = text("/clusters/0/cluster/server").to_owned();
        let (is_open, _) = watch::channel(false);
        let shared = Arc::new(Shared { server, client, state: Mutex::default(), is_open });

        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.spawn(accept(listener, Arc::clone(&shared)));
        let folder = tempfile::Builder::new().prefix("gate-").tempdir().unwrap();
        let gate = Self { address, shared, folder, runtime: Some(runtime) };
        gate.write_kubeconfig();
        gate
    }

    fn write_kubeconfig(&self) {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "gate",
            "clusters": [{"name": "gate", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "gate", "user": {}}],
            "contexts": [{"name": "gate", "context": {"cluster": "gate", "user": "gate"}}],
        });
        fs::write(self.kubeconfig(), config.to_string()).unwrap();
    }

    /// The kubeconfig of whoever is to go through.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Lets no write in a namespace through any more, from this one on, but for events.
    pub fn stop(&self, namespace: &str, step: Step, moment: Moment) {
        self.shared.state().stops.insert(namespace.to_owned(), (step, moment));
    }

    /// Answers the first write of each sort in a namespace, what is applied aside, with 500, and the first watch of each kind there
    /// with 410.
    pub fn stumble(&self, namespace: &str) {
        self.shared.state().stumbles.insert(namespace.to_owned());
    }

    /// Sorts of writes that have failed, and watches that have been forgotten.
    pub fn stumbled(&self) -> (BTreeSet<Step>, BTreeSet<String>) {
        let state = self.shared.state();
        (state.failed.clone(), state.forgotten.clone())
    }

    /// Lets everything through from now on; whoever waits loses the connection.
    pub fn open(&self) {
        *self.shared.state() = State::default();
        self.shared.is_open.send_replace(true);
    }

    /// Says whether a namespace has stopped.
    pub fn has_stopped(&self, namespace: &str) -> bool {
        self.shared.state().stopped.contains(namespace)
    }

    /// Writes in a namespace so far, events and what the API server refused aside.
    pub fn writes(&self, namespace: &str) -> Vec<Step> {
        self.shared.state().writes.get(namespace).cloned().unwrap_or_default()
    }
}

impl Drop for ApiGate {
    fn drop(&mut self) {
        // A plain drop would block, which async tests may not.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl State {
    fn meet(&mut self, method: &Method, uri: &Uri) -> Fate {
        let path = uri.path();
        let is_watch = method == Method::GET && uri.query().is_some_and(|q| q.contains("watch="));
        let stumbles = |namespace: &String| path.contains(&format!("/namespaces/{namespace}/"));
        if is_watch && self.stumbles.iter().any(stumbles) && self.forgotten.insert(path.to_owned())
        {
            return Fate::Fails(StatusCode::GONE, "Expired");
        }
        let Some((namespace, resource)) = written(method, path) else { return Fate::Passes };
        if resource == "events" {
            return Fate::Passes;
        }
        let writes = self.writes.entry(namespace.clone()).or_default();
        let verb = method.as_str().to_owned();
        let alike = |step: &&Step| step.verb == verb && step.resource == resource;
        let nth = writes.iter().filter(alike).count() + 1;
        let write = Step { verb, resource, nth };
        writes.push(write.clone());
        if self.stumbles.contains(&namespace) && nth == 1 && !BEFORE.contains(&&*write.resource) {
            self.failed.insert(write);
            return Fate::Fails(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
        }
        if self.stopped.contains(&namespace) {
            // One that the scheduler cannot finish would hold up all other namespaces.
            return if write.is_schedulers() { Fate::Passes } else { Fate::IsLost };
        }
        match self.stops.get(&namespace) {
            Some((stop, moment)) if *stop == write => {
                let is_lost = *moment == Moment::Before;
                self.stopped.insert(namespace);
                if is_lost { Fate::IsLost } else { Fate::PassesUnheard }
            }
            _ => Fate::Passes,
        }
    }

    /// Counts a write less: how often somebody meets a conflict is another matter from run to run.
    fn was_refused(&mut self, method: &Method, uri: &Uri) {
        let Some((namespace, resource)) = written(method, uri.path()) else { return };
        let Some(writes) = self.writes.get_mut(&namespace) else { return };
        let alike = |step: &Step| step.verb == method.as_str() && step.resource == resource;
        if let Some(last) = writes.iter().rposition(alike) {
            writes.remove(last);
        }
    }
}

/// Namespace and resource of a write in a namespace.
fn written(method: &Method, path: &str) -> Option<(String, String)> {
    if method == Method::GET {
        return None;
    }
    let (_, inside) = path.split_once("/namespaces/")?;
    let mut words = inside.split('/');
    let (namespace, resource, _name) = (words.next()?, words.next()?, words.next());
    let resource = words.next().map_or_else(|| resource.to_owned(), |s| format!("{resource}/{s}"));
    Some((namespace.to_owned(), resource))
}

/// Why a connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the API server does not answer")]
struct Silent;

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, request: Request<Incoming>) -> Result<Response<reqwest::Body>, Silent> {
        let fate = self.state().meet(request.method(), request.uri());
        match fate {
            Fate::Passes => {
                let (method, uri) = (request.method().clone(), request.uri().clone());
                let answer = self.forward(request).await?;
                if !answer.status().is_success() {
                    self.state().was_refused(&method, &uri);
                }
                Ok(answer)
            }
            Fate::IsLost => Err(self.silence().await),
            Fate::PassesUnheard => {
                self.forward(request).await?;
                Err(self.silence().await)
            }
            Fate::Fails(code, reason) => {
                let status = json!({
                    "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code.as_u16(),
                    "reason": reason, "message": "the gate has stumbled",
                });
                let answer = Response::builder().status(code);
                let answer = answer.header(header::CONTENT_TYPE, "application/json");
                answer.body(status.to_string().into()).map_err(|_| Silent)
            }
        }
    }

    /// Lasts until the gate opens.
    async fn silence(&self) -> Silent {
        self.is_open.subscribe().wait_for(|is_open| *is_open).await.ok();
        Silent
    }

    async fn forward(&self, request: Request<Incoming>) -> Result<Response<reqwest::Body>, Silent> {
        let (mut head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Silent)?.to_bytes();
        for name in &HOP_BY_HOP {
            head.headers.remove(name);
        }
        let url = format!("{}{}", self.server, head.uri);
        let request = self.client.request(head.method, url).headers(head.headers);
        let reply = request.body(body).send().await.map_err(|_| Silent)?;
        let mut answer: Response<reqwest::Body> = reply.into();
        for name in &HOP_BY_HOP {
            answer.headers_mut().remove(name);
        }
        *answer.version_mut() = http::Version::HTTP_11;
        Ok(answer)
    }
}

/// Takes connections for ever, each in a task of its own.
async fn accept(listener: TcpListener, shared: Arc<Shared>) -> Result<Infallible, std::io::Error> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(|request| shared.serve(request));
            // Whoever is killed, or whose API server is, loses the connection: that is the point.
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
        });
    }
}
