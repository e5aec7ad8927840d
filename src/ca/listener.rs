//! TLS over TCP for axum; a slow handshake holds nobody else up.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// Longest a client may take for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Pause after a failed accept, such as when the process is out of file descriptors.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Connections with their handshake done.
#[derive(Debug)]
pub(super) struct TlsListener {
    connections: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl TlsListener {
    /// Accepts connections in the background until told to stop.
    pub(super) fn start(
        listener: TcpListener,
        (chain, key): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
        stop: CancellationToken,
    ) -> io::Result<Self> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let address = listener.local_addr()?;
        let (sender, connections) = mpsc::channel(1);
        tokio::spawn(async move {
            let accept_all = accept_all(&listener, &acceptor, &sender);
            stop.run_until_cancelled(accept_all).await;
        });
        Ok(Self { connections, address })
    }
}

async fn accept_all(
    listener: &TcpListener,
    acceptor: &TlsAcceptor,
    sender: &mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(AFTER_ERROR).await;
                continue;
            }
        };
        // Answers are small and come in two writes: Nagle's algorithm would hold back the second.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%address, %error, "cannot send small packets at once");
        }
        let handshake = timeout(HANDSHAKE, acceptor.accept(stream));
        let sender = sender.clone();
        tokio::spawn(async move {
            match handshake.await {
                Ok(Ok(stream)) => {
                    if sender.send((stream, address)).await.is_err() {
                        tracing::debug!(%address, "a connection came too late, the server stops");
                    }
                }
                Ok(Err(error)) => tracing::debug!(%address, %error, "no TLS handshake"),
                Err(_) => tracing::debug!(%address, "the TLS handshake took too long"),
            }
        });
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            None => pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
