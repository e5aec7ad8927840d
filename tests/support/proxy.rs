//! A proxy between an ACME client and a CA: counts requests, and injects faults where a test asks for them.
//!
//! Pebble builds its URLs from the `Host` header, which is passed through: so every later request of a client that
//! began here comes through here.

use std::convert::Infallible;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderName, Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::certificates::LocalCertificates;
use super::fault::{Deed, Fault};
use super::traffic::{Counts, Endpoint, Exchange, Orders};

/// Headers that belong to one connection only.
const HOP_BY_HOP: [HeaderName; 3] =
    [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING];

/// A running proxy; ends when it goes.
#[derive(Debug)]
pub struct Proxy {
    directory: String,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    upstream: String,
    client: reqwest::Client,
    state: Mutex<State>,
    is_open: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    faults: Vec<Fault>,
    exchanges: Vec<Exchange>,
    held: usize,
    names_orders: bool,
}

impl State {
    /// What the first fault that meets such a request does to it.
    fn deed_for(&mut self, endpoint: Endpoint) -> Option<Deed> {
        let mut deeds = self.faults.iter_mut().filter_map(|fault| fault.meet(endpoint));
        deeds.next()
    }
}

/// Why a connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("dropped by a fault")]
struct Dropped;

impl Proxy {
    /// Starts one before `https://localhost:PORT`, with a listener that shows the same certificate.
    pub fn start(upstream: u16, directory: &str, certificates: &LocalCertificates) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let directory = format!("https://localhost:{port}{directory}");
        Self::between(listener, certificates, &directory, upstream, &certificates.ca)
    }

    /// Starts one that listens there and shows that certificate, before `https://localhost:PORT`, whose certificate `trusted` has
    /// signed. The CA has to build its URLs so that they lead here.
    pub fn between(
        listener: TcpListener,
        certificates: &LocalCertificates,
        directory: &str,
        upstream: u16,
        trusted: &str,
    ) -> Self {
        // reqwest takes the process's provider; another test may have installed the same one.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let ca = reqwest::Certificate::from_pem(trusted.as_bytes()).unwrap();
        let client = reqwest::Client::builder()
            .tls_certs_only([ca])
            .http1_only()
            .no_gzip()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        let shared = Arc::new(Shared {
            upstream: format!("https://localhost:{upstream}"),
            client,
            state: Mutex::default(),
            is_open: watch::channel(false).0,
        });

        listener.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.spawn(accept(listener, certificates.acceptor(), Arc::clone(&shared)));
        Self { directory: directory.to_owned(), shared, runtime: Some(runtime) }
    }

    /// URL of the directory, through this proxy.
    pub fn directory(&self) -> String {
        self.directory.clone()
    }

    /// Adds a fault behind those that were added before.
    pub fn inject(&self, fault: Fault) {
        self.shared.state().faults.push(fault);
    }

    /// From now on answers to finalize name the order in `Location`, which Boulder does and Pebble does not.
    pub fn name_orders(&self) {
        self.shared.state().names_orders = true;
    }

    /// Every exchange so far, in the order in which they ended.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.state().exchanges.clone()
    }

    /// How many requests of which kind there were since the start or the last [`Proxy::forget`].
    pub fn counts(&self) -> Counts {
        Counts::of(&self.shared.state().exchanges)
    }

    /// Orders that the CA took, by who asked for them.
    pub fn orders(&self) -> Orders {
        Orders::of(&self.shared.state().exchanges)
    }

    /// How many requests it keeps from the CA, or has kept.
    pub fn held(&self) -> usize {
        self.shared.state().held
    }

    /// Lets every new request pass from now on.
    pub fn calm_down(&self) {
        self.shared.state().faults.clear();
    }

    /// The same, also for the requests that it holds.
    pub fn release(&self) {
        self.calm_down();
        self.shared.is_open.send_replace(true);
    }

    /// Forgets faults and exchanges.
    pub fn forget(&self) {
        *self.shared.state() = State::default();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // A plain drop would block, which async tests may not.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request, or fails to when a fault says so; notes either.
    async fn serve(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Dropped> {
        let endpoint = Endpoint::of(request.uri().path());
        let line = format!("{} {}", request.method(), request.uri().path());
        let agent = request.headers().get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default().to_owned();
        let started = Instant::now();
        let deed = self.state().deed_for(endpoint);
        let faulty = deed.is_some();
        let answer = match deed {
            None => Ok(self.forward(request).await),
            Some(Deed::Answer { status, headers, body }) => Ok(injected(status, &headers, body)),
            Some(Deed::DropRequest) => Err(Dropped),
            Some(Deed::DropAnswer) => {
                self.forward(request).await;
                Err(Dropped)
            }
            Some(Deed::Hold) => {
                self.state().held += 1;
                self.is_open.subscribe().wait_for(|is_open| *is_open).await.ok();
                Ok(self.forward(request).await)
            }
            Some(Deed::Change { headers, change }) => {
                let (answer, nonce_refused) = self.forward(request).await;
                Ok((changed(answer, &headers, change).await, nonce_refused))
            }
            Some(Deed::Delay(by)) => {
                tokio::time::sleep(by).await;
                Ok(self.forward(request).await)
            }
        };
        let (status, nonce_refused) = match &answer {
            Ok((answer, nonce_refused)) => (Some(answer.status().as_u16()), *nonce_refused),
            Err(Dropped) => (None, false),
        };
        let finished = Instant::now();
        let request = line;
        let exchange =
            Exchange { endpoint, request, agent, status, nonce_refused, faulty, started, finished };
        self.state().exchanges.push(exchange);
        answer.map(|(answer, _)| answer)
    }

    /// Asks the CA; returns its answer and whether it refused the nonce.
    async fn forward(&self, request: Request<Incoming>) -> (Response<Full<Bytes>>, bool) {
        match self.ask(request).await {
            Ok(answer) => answer,
            Err(error) => injected(502, &[], format!("the CA does not answer: {error}")),
        }
    }

    async fn ask(
        &self,
        request: Request<Incoming>,
    ) -> Result<(Response<Full<Bytes>>, bool), Box<dyn std::error::Error + Send + Sync>> {
        let (mut head, body) = request.into_parts();
        let order = self.order_finalized(&head);
        let body = body.collect().await?.to_bytes();
        for name in &HOP_BY_HOP {
            head.headers.remove(name);
        }
        let url = format!("{}{}", self.upstream, head.uri);
        let reply =
            self.client.request(head.method, url).headers(head.headers).body(body).send().await?;
        let mut answer = Response::builder().status(reply.status());
        for (name, value) in reply.headers().iter().filter(|(n, _)| !HOP_BY_HOP.contains(n)) {
            answer = answer.header(name, value);
        }
        if let Some(order) = order {
            answer = answer.header(header::LOCATION, order);
        }
        let body = reply.bytes().await?;
        let nonce_refused = String::from_utf8_lossy(&body).contains("acme:error:badNonce");
        Ok((answer.body(Full::new(body))?, nonce_refused))
    }

    /// The address of the order that Pebble is asked to finalize, if answers are to name it.
    fn order_finalized(&self, head: &http::request::Parts) -> Option<String> {
        let id = head.uri.path().strip_prefix("/finalize-order/")?;
        let host = head.headers.get(header::HOST)?.to_str().ok()?;
        self.state().names_orders.then(|| format!("https://{host}/my-order/{id}"))
    }
}

/// The same answer with other JSON, and with these headers in place of its own; what is no success stays as it is.
async fn changed(
    answer: Response<Full<Bytes>>,
    headers: &[(String, String)],
    change: fn(&mut Value),
) -> Response<Full<Bytes>> {
    if !answer.status().is_success() {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let Ok(body) = body.collect().await;
    let mut json = serde_json::from_slice(&body.to_bytes()).expect("an answer in JSON");
    change(&mut json);
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a test gives valid headers");
        head.headers.insert(name, value.parse().expect("a test gives valid headers"));
    }
    Response::from_parts(head, Full::from(json.to_string()))
}

fn injected(
    status: u16,
    headers: &[(String, String)],
    body: String,
) -> (Response<Full<Bytes>>, bool) {
    let mut answer = Response::builder().status(status);
    for (name, value) in headers {
        answer = answer.header(name, value);
    }
    (answer.body(Full::from(body)).expect("a test gives valid headers"), false)
}

/// Takes connections for ever, each in a task of its own.
async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    shared: Arc<Shared>,
) -> Result<Infallible, std::io::Error> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let stream = acceptor.accept(stream).await?;
            let service = service_fn(|request| shared.serve(request));
            // An error ends the connection without an answer: that is how a fault drops it.
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await
                .ok();
            Ok::<_, std::io::Error>(())
        });
    }
}
