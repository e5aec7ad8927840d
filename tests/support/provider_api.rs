//! Stand-ins for the APIs of DNS providers: a proxy (HTTP CONNECT) that plays every host itself, with certificates of a CA of its
//! own. Programs are led there by the environment, so that they ask the true addresses.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{Method, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use super::certificates::LocalCertificates;
use super::terminal::Terminal;

/// Hosts that are played.
const HOSTS: [&str; 7] = [
    "api.cloudflare.com",
    "route53.amazonaws.com",
    "login.microsoftonline.com",
    "management.azure.com",
    "oauth2.googleapis.com",
    "dns.googleapis.com",
    "api.digitalocean.com",
];
/// Longest head of a CONNECT request that is read.
const LONGEST: usize = 8 << 10;

/// A request as an API saw it.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    /// Host.
    pub host: String,
    /// Method, path and query: `GET /zones?name=example.com`.
    pub line: String,
    /// Body.
    pub body: String,
}

/// Status and body of an answer.
pub type ApiAnswer = (u16, String);

/// What an API answers.
type Answering = dyn Fn(&ApiRequest) -> ApiAnswer + Send + Sync;

/// The stand-ins, until they go.
pub struct ProviderApis {
    port: u16,
    ca: String,
    asked: Arc<Mutex<Vec<ApiRequest>>>,
    runtime: Option<Runtime>,
}

impl ProviderApis {
    /// Starts them, with that answer to every request.
    pub fn start(answer: impl Fn(&ApiRequest) -> ApiAnswer + Send + Sync + 'static) -> Self {
        let certificates = LocalCertificates::for_names(&HOSTS);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build().unwrap();
        let (asked, answer) = (Arc::<Mutex<Vec<ApiRequest>>>::default(), Arc::new(answer));
        let (acceptor, noted) = (certificates.acceptor(), Arc::clone(&asked));
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((mut stream, _)) = listener.accept().await {
                let (acceptor, noted) = (acceptor.clone(), Arc::clone(&noted));
                let answer: Arc<Answering> = Arc::clone(&answer) as _;
                tokio::spawn(async move {
                    let Some(host) = connect(&mut stream).await else { return };
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = TowerToHyperService::new(router(host, noted, answer));
                    let connection = hyper::server::conn::http1::Builder::new();
                    connection.serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { port, ca: certificates.ca, asked, runtime: Some(runtime) }
    }

    /// Leads whoever sits there to the stand-ins, and to nobody else's CA.
    pub fn lead(&self, terminal: &mut Terminal) {
        let roots = terminal.write("roots-of-providers.pem", &self.ca);
        terminal.set("SSL_CERT_FILE", roots.display());
        terminal.set("HTTPS_PROXY", format!("http://127.0.0.1:{}", self.port));
        terminal.set("NO_PROXY", "localhost,127.0.0.1");
    }

    /// What was asked since the last look.
    pub fn asked(&self) -> Vec<ApiRequest> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Drop for ProviderApis {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Reads `CONNECT host:443 HTTP/1.1` to its end, and agrees.
async fn connect(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let (host, _) = head.strip_prefix("CONNECT ")?.split_once(':')?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
    Some(host.to_owned())
}

fn router(host: String, noted: Arc<Mutex<Vec<ApiRequest>>>, answer: Arc<Answering>) -> Router {
    Router::new().fallback(move |method: Method, uri: Uri, body: Bytes| {
        let body = String::from_utf8_lossy(&body).into_owned();
        let request = ApiRequest { host: host.clone(), line: format!("{method} {uri}"), body };
        noted.lock().unwrap().push(request.clone());
        let (status, body) = answer(&request);
        async move { (StatusCode::from_u16(status).unwrap(), body) }
    })
}
