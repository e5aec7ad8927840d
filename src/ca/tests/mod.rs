//! The CA over real loopback sockets: an independent client, then requests of every wrong shape.

mod caa;
mod client;
mod hosts;
mod issue;
mod life;
mod management;
mod refusals;
mod strict;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use url::Url;

use super::context::Look;
use super::{Config, Server, serve};
use crate::dns::{LookupError, Resolve};
use crate::fetch::outcome::Fetched;
use crate::fetch::{Fetcher, Overrides};

/// Key authorizations by token, as a web server on a free port gives them.
type Answers = Arc<Mutex<BTreeMap<String, String>>>;

/// A CA, a web server that answers for every name, and a client that trusts the CA's root.
struct Bed {
    server: Server,
    answers: Answers,
    http: reqwest::Client,
}

impl Bed {
    async fn start(config: Config) -> Self {
        Self::resolving(config, Arc::new(NoNames)).await
    }

    async fn resolving(config: Config, resolver: Arc<dyn Resolve>) -> Self {
        let answers = Answers::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let look = fetcher("*", listener.local_addr().unwrap(), resolver);
        let router = Router::new()
            .route("/.well-known/acme-challenge/{token}", get(answer))
            .with_state(Arc::clone(&answers));
        tokio::spawn(axum::serve(listener, router).into_future());
        Self::looking(config, look, answers).await
    }

    async fn looking(config: Config, look: Arc<dyn Look>, answers: Answers) -> Self {
        // Several tests do this; the first one wins.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let server = serve(config, look).await.unwrap();
        let root = reqwest::Certificate::from_pem(server.tls_root_pem().as_bytes()).unwrap();
        let http = reqwest::Client::builder().tls_certs_only([root]).no_proxy().build().unwrap();
        Self { server, answers, http }
    }

    fn present(&self, token: &str, key_authorization: &str) {
        self.answers.lock().insert(token.to_owned(), key_authorization.to_owned());
    }
}

async fn answer(
    State(answers): State<Answers>,
    Path(token): Path<String>,
) -> Result<String, StatusCode> {
    answers.lock().get(&token).cloned().ok_or(StatusCode::NOT_FOUND)
}

/// Knows no name at all; not asked where connections are taken elsewhere.
#[derive(Debug)]
struct NoNames;

#[async_trait]
impl Resolve for NoNames {
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError> {
        Err(LookupError::NoSuchName { name: host.to_owned() })
    }
}

/// Looks as the product does; what is for port 80 of a host goes to that address.
fn fetcher(host: &str, address: SocketAddr, resolver: Arc<dyn Resolve>) -> Arc<Fetcher> {
    let hosts = [(host.to_owned(), (address.ip(), Some(address.port())))].into();
    Arc::new(Fetcher { resolver, overrides: Overrides { hosts, ..Overrides::default() } })
}

/// Looks for ever.
#[derive(Debug)]
struct Spellbound;

#[async_trait]
impl Look for Spellbound {
    async fn get(&self, _: &Url) -> Fetched {
        std::future::pending().await
    }
}
