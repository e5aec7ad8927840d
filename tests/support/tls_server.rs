//! A webhook of a cluster: a router behind TLS, as API servers call it.

use std::net::{Ipv4Addr, TcpListener};

use axum::Router;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::runtime::Runtime;

use super::certificates::LocalCertificates;

/// A server on 127.0.0.1 that listens until it goes.
pub struct TlsServer {
    /// Its port.
    pub port: u16,
    /// What its clients must trust, PEM.
    pub ca: String,
    runtime: Option<Runtime>,
}

impl TlsServer {
    /// Starts it, on a thread of its own.
    pub fn start(router: Router) -> Self {
        let certificates = LocalCertificates::generate();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let acceptor = certificates.acceptor();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = TowerToHyperService::new(router);
                    let connection = hyper::server::conn::http1::Builder::new();
                    connection.serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { port, ca: certificates.ca, runtime: Some(runtime) }
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
