//! Makes the certificates that prove control, and shows them from one table in memory to clients that ask by `acme-tls/1`,
//! and nothing to other clients. A header of the PROXY protocol before the handshake is read.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::aws_lc_rs::digest;
use parking_lot::{Mutex, MutexGuard};
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, Error, KeyPair, SanType,
};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::model::names::ACME_TLS;
use crate::model::{Answer, Identifier};
use crate::serve::{self, ConnectionSlots, ConnectionTimeouts, opening};
use crate::solvers::{SolveError, sockets};

/// Time for which an answer is still shown after its clean-up: the CA's remote perspectives may
/// come late, when the authorization is valid already.
const CLEAN_UP_GRACE: Duration = Duration::from_secs(10);
/// Longest wait for a client to close the connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// TLS-ALPN-01 listener; stops when dropped.
#[derive(Debug)]
pub struct Listener {
    addresses: Vec<SocketAddr>,
    table: Arc<CertificateTable>,
    /// Server tasks, which end with the listener.
    _servers: JoinSet<()>,
}

impl Listener {
    /// Serves these sockets.
    pub(super) fn serve(sockets: Vec<TcpListener>) -> Result<Self, SolveError> {
        let table = Arc::new(CertificateTable::default());
        let acceptor = acceptor(&table).map_err(|error| fault("cannot speak TLS", &error))?;
        let places = ConnectionSlots::default();
        let mut addresses = Vec::new();
        let mut servers = JoinSet::new();
        for socket in sockets {
            addresses.push(sockets::address(&socket)?);
            let acceptor = acceptor.clone();
            let serve = move |stream| answer(stream, acceptor.clone());
            // The server ends when it is dropped.
            let stop = CancellationToken::new();
            servers.spawn(serve::accept_all(socket, places.clone(), stop, serve));
        }
        Ok(Self { addresses, table, _servers: servers })
    }

    /// Returns the listening addresses, each with its real port.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub(super) fn put(&self, answer: &Answer) -> Result<(), SolveError> {
        if self.stands(answer) {
            return Ok(());
        }
        let shown = showing(answer).map_err(|error| {
            fault(
                &format!("cannot make the certificate that answers for {}", answer.identifier),
                &error,
            )
        })?;
        let entry = ShownCertificate { answer: answer.clone(), shown, until: None };
        let mut entries = self.table.current();
        let entries = entries.entry(answer.identifier.server_name()).or_default();
        entries.retain(|entry| entry.answer != *answer);
        entries.push(entry);
        Ok(())
    }

    pub(super) fn retire(&self, answer: &Answer) {
        let until = Instant::now() + CLEAN_UP_GRACE;
        let mut entries = self.table.current();
        let entries = entries.get_mut(&answer.identifier.server_name());
        for entry in entries.into_iter().flatten().filter(|entry| entry.answer == *answer) {
            entry.until.get_or_insert(until);
        }
    }

    pub(super) fn stands(&self, answer: &Answer) -> bool {
        let entries = self.table.current();
        let mut entries = entries.get(&answer.identifier.server_name()).into_iter().flatten();
        entries.any(|entry| entry.until.is_none() && entry.answer == *answer)
    }
}

fn fault(what: &str, why: &dyn fmt::Display) -> SolveError {
    SolveError::passing(what.to_owned(), why.to_string())
}

fn acceptor(table: &Arc<CertificateTable>) -> Result<TlsAcceptor, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let shown: Arc<dyn ResolvesServerCert> = Arc::clone(table) as _;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(shown);
    // No other protocol is offered here (RFC 8737 §4).
    config.alpn_protocols = vec![ACME_TLS.to_vec()];
    // A handshake that resumes an older one would show no certificate.
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves one handshake, after an optional header of a proxy, and nothing after the handshake.
async fn answer(stream: TcpStream, acceptor: TlsAcceptor) {
    let Some((opening, stream)) =
        opening::read(stream, ConnectionTimeouts::ONE_REQUEST.header).await
    else {
        return;
    };
    debug!(proxied = ?opening.proxied, speech = ?opening.speech, "connection to the TLS-ALPN-01 listener");
    let Some(mut stream) = serve::handshake(stream, &acceptor).await else { return };
    let mut rest = [0; 16];
    let farewell = async {
        stream.shutdown().await?;
        stream.read(&mut rest).await
    };
    // A client that has the certificate has everything.
    drop(timeout(CLOSE_TIMEOUT, farewell).await);
}

/// Certificates by the name that a client asks for.
#[derive(Default)]
struct CertificateTable(Mutex<HashMap<String, Vec<ShownCertificate>>>);

struct ShownCertificate {
    answer: Answer,
    shown: Arc<CertifiedKey>,
    /// Time from which the certificate is not shown any more; `None` while it is up.
    until: Option<Instant>,
}

impl CertificateTable {
    /// Locks the table, without the certificates whose time is over.
    fn current(&self) -> MutexGuard<'_, HashMap<String, Vec<ShownCertificate>>> {
        let mut table = self.0.lock();
        let now = Instant::now();
        table.retain(|_, entries| {
            entries.retain(|entry| entry.until.is_none_or(|until| now < until));
            !entries.is_empty()
        });
        table
    }

    /// Returns the newest certificate that is up for a name, else the newest that was up.
    fn find(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let table = self.current();
        let entries = table.get(&name.to_ascii_lowercase())?;
        let is_up = |entry: &&ShownCertificate| entry.until.is_none();
        let found = entries.iter().rev().find(is_up).or_else(|| entries.last())?;
        Some(Arc::clone(&found.shown))
    }
}

impl fmt::Debug for CertificateTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} names)", self.current().len())
    }
}

impl ResolvesServerCert for CertificateTable {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?;
        let asks = hello.alpn().is_some_and(|mut protocols| protocols.any(|p| p == ACME_TLS));
        let found = self.find(name).filter(|_| asks);
        debug!(name, answered = found.is_some(), "handshake on the TLS-ALPN-01 listener");
        found
    }
}

/// Makes the certificate that proves control (RFC 8737 §3): self-signed, with the identifier as its only name, and the digest of the key authorization in the
/// critical extension `acmeIdentifier`.
fn showing(answer: &Answer) -> Result<Arc<CertifiedKey>, Unmade> {
    let mut parameters = CertificateParams::default();
    parameters.subject_alt_names = vec![match &answer.identifier {
        Identifier::Dns(name) => SanType::DnsName(name.base().to_owned().try_into()?),
        Identifier::Ip(address) => SanType::IpAddress(*address),
    }];
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "ACME challenge");
    let digest = digest::digest(&digest::SHA256, answer.key_authorization.as_bytes());
    parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
    let pair = KeyPair::generate()?;
    let certificate = parameters.self_signed(&pair)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pair.serialize_der()));
    let key = any_supported_type(&key).map_err(|error| Unmade(error.to_string()))?;
    Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
}

/// Reason why there is no certificate.
#[derive(Debug)]
struct Unmade(String);

impl fmt::Display for Unmade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Unmade {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}
