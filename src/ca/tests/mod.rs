//! The CA over real loopback sockets: an independent client, then requests of every wrong shape.

mod client;
mod issue;
mod life;
mod refusals;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use url::Url;

use super::validation::Look;
use super::{Config, Server, serve};
use crate::fetch::{FetchError, Fetched, Hop, Reply};

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
        let answers = Answers::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let look = Arc::new(Here(listener.local_addr().unwrap()));
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
        self.answers.lock().unwrap().insert(token.to_owned(), key_authorization.to_owned());
    }
}

async fn answer(
    State(answers): State<Answers>,
    Path(token): Path<String>,
) -> Result<String, StatusCode> {
    answers.lock().unwrap().get(&token).cloned().ok_or(StatusCode::NOT_FOUND)
}

/// Takes every name to one web server.
#[derive(Debug)]
struct Here(SocketAddr);

#[async_trait]
impl Look for Here {
    async fn get(&self, url: &Url) -> Fetched {
        let asked = format!("http://{}{}", self.0, url.path());
        let hop = |status| Hop { url: url.to_string(), address: Some(self.0), status };
        match reqwest::get(asked).await {
            Ok(response) => {
                let status = response.status().as_u16();
                let body = response.bytes().await.unwrap().to_vec();
                let reply = Reply { status, body, truncated: false };
                Fetched { hops: vec![hop(Some(status))], result: Ok(reply) }
            }
            Err(error) => {
                let why = error.to_string();
                Fetched { hops: vec![hop(None)], result: Err(FetchError::Connect { why }) }
            }
        }
    }
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
