//! TLS of the CA, and detection of clients without TLS.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// The first byte of a TLS handshake (RFC 8446 §5.1).
const HANDSHAKE_BYTE: u8 = 0x16;
/// Longest wait for a client's first byte.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns whether a client begins with a TLS handshake.
pub(super) async fn begins_tls(stream: &TcpStream) -> bool {
    let mut first = [0];
    let seen = timeout(FIRST_BYTE_TIMEOUT, stream.peek(&mut first)).await;
    matches!(seen, Ok(Ok(1))) && first == [HANDSHAKE_BYTE]
}

/// Builds an acceptor with this certificate chain and only these protocols (ALPN), the first protocol preferred.
pub(super) fn acceptor(
    (chain, key): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    protocols: &[&[u8]],
) -> io::Result<TlsAcceptor> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(io::Error::other)?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}
