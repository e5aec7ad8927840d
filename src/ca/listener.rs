//! How the CA speaks TLS, and how it sees that somebody does not.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// The first byte of a TLS handshake (RFC 8446 §5.1).
const HANDSHAKE: u8 = 0x16;
/// How long a client may take to its first byte.
const FIRST_BYTE: Duration = Duration::from_secs(10);

/// Tells whether a client begins with a TLS handshake.
pub(super) async fn begins_tls(stream: &TcpStream) -> bool {
    let mut first = [0];
    let seen = timeout(FIRST_BYTE, stream.peek(&mut first)).await;
    matches!(seen, Ok(Ok(1))) && first == [HANDSHAKE]
}

/// Shows that chain, and speaks these protocols (ALPN) only, the first one rather than others.
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
