//! One TLS handshake that takes any certificate: no data is sent but the handshake.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, ProtocolVersion, SignatureScheme};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;

use super::connection::{self, NoAnswer, Refusals, TimeLimits, tls_fault};
use super::outcome::FetchError;
use super::{Fetcher, tls};
use crate::model::cause::Symptom;

/// Certificates that a server showed, and the outcome of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedChain {
    /// Address and port that answered.
    pub address: SocketAddr,
    /// Certificates, DER, in the order in which they were sent.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Whether the server has shown that it holds the key; `None` without a proof, or if it cannot be checked.
    pub holds_key: Option<bool>,
    /// Version of TLS agreed on, or why the handshake did not come to its end.
    pub protocol: Result<String, String>,
}

/// Makes the name for a handshake from a host or an address.
///
/// # Errors
/// Fails if the text is neither.
pub fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    let plain = name.trim_end_matches('.').to_owned();
    ServerName::try_from(plain).map_err(|_| format!("\"{name}\" is no name of a server"))
}

impl Fetcher {
    /// Makes a handshake with a host for that name, and returns the certificates that the host shows, within `longest`.
    ///
    /// # Errors
    /// Fails if the host has no address, or shows no certificate in time.
    pub async fn shown_by(
        &self,
        (host, port): (&str, u16),
        name: &ServerName<'static>,
        longest: Duration,
    ) -> Result<ServedChain, FetchError> {
        let malformed = |why: String| FetchError::Malformed { why, symptom: None };
        let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let url = Url::parse(&format!("https://{shown}:{port}/"))
            .map_err(|why| malformed(format!("\"{host}\" is no host: {why}")))?;
        // A silent address leaves time for the other address.
        let patience = TimeLimits { connect: longest / 2, answer: longest };
        let looking = async {
            let mut refusals = Refusals::default();
            for address in self.addresses(&url).await? {
                match shake(name, address, patience).await {
                    Ok(served) => return Ok(served),
                    Err(NoAnswer::NotConnected(why, symptom)) => refusals.add(why, symptom),
                    Err(error) => return Err(error.into_error()),
                }
            }
            Err(refusals.into_error())
        };
        timeout(longest, looking).await.unwrap_or_else(|_| {
            let why = format!("it showed no certificate within {} s", longest.as_secs_f64());
            Err(FetchError::Connect { why, symptom: Some(Symptom::NoReply) })
        })
    }
}

async fn shake(
    name: &ServerName<'static>,
    address: SocketAddr,
    patience: TimeLimits,
) -> Result<ServedChain, NoAnswer> {
    let failed = |why: &dyn std::fmt::Display| connection::no_handshake(address, why);
    let provider = Arc::new(aws_lc_rs::default_provider());
    let witness = Arc::new(Witness { provider: Arc::clone(&provider), seen: Mutex::default() });
    let config = tls::with_verifier(provider, witness.clone(), &[]);
    let connector = TlsConnector::from(config.map_err(|error| failed(&error))?);
    let stream: TcpStream = connection::connect(address, patience).await?;
    let shaken = connector.connect(name.clone(), stream).await;
    let Testimony { certificates, holds_key } = std::mem::take(&mut *witness.seen.lock());
    let protocol = match shaken {
        Ok(stream) => Ok(version(stream.get_ref().1.protocol_version())),
        // A server that wants a certificate of ours refuses after it has shown its own.
        Err(error) if !certificates.is_empty() => Err(tls_fault(&error)),
        Err(error) => return Err(failed(&tls_fault(&error))),
    };
    Ok(ServedChain { address, certificates, holds_key, protocol })
}

/// Writes the version as people do.
fn version(version: Option<ProtocolVersion>) -> String {
    match version {
        Some(ProtocolVersion::TLSv1_3) => "TLS 1.3".to_owned(),
        Some(ProtocolVersion::TLSv1_2) => "TLS 1.2".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Observations of a handshake.
#[derive(Debug, Default)]
struct Testimony {
    certificates: Vec<CertificateDer<'static>>,
    holds_key: Option<bool>,
}

/// Verifier that takes any certificate, and notes the certificates and whether their key was used.
#[derive(Debug)]
struct Witness {
    provider: Arc<CryptoProvider>,
    seen: Mutex<Testimony>,
}

impl Witness {
    /// Notes whether a signature of the server is by the key of its certificate; the handshake goes on either way.
    fn note(&self, verified: &Result<HandshakeSignatureValid, Error>) -> HandshakeSignatureValid {
        self.seen.lock().holds_key = match verified {
            Ok(_) => Some(true),
            Err(Error::InvalidCertificate(CertificateError::BadSignature)) => Some(false),
            Err(_) => None,
        };
        HandshakeSignatureValid::assertion()
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = std::iter::once(end_entity).chain(intermediates);
        self.seen.lock().certificates =
            shown.map(|certificate| certificate.clone().into_owned()).collect();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        Ok(self.note(&verify_tls12_signature(message, certificate, signature, known)))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        Ok(self.note(&verify_tls13_signature(message, certificate, signature, known)))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use async_trait::async_trait;
    use jiff::Timestamp;
    use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::server::WebPkiClientVerifier;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::dns::{LookupError, Resolve};
    use crate::fetch::Overrides;
    use crate::fetch::trust::{TrustVerdict, TrustingClient};

    /// Says that every host is on loopback.
    #[derive(Debug)]
    struct Loopback;

    #[async_trait]
    impl Resolve for Loopback {
        async fn addresses(&self, _host: &str) -> Result<Vec<IpAddr>, LookupError> {
            Ok(vec!["::1".parse().unwrap(), "127.0.0.1".parse().unwrap()])
        }
    }

    /// Serves TLS with a certificate of its own, and answers no request.
    async fn serve(made: &CertifiedKey<KeyPair>, wants_certificate: bool) -> SocketAddr {
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let chain = vec![made.cert.der().clone()];
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap();
        let config = if wants_certificate {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(made.cert.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            config.with_no_client_auth()
        };
        let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that leaves is none of ours to tell.
                acceptor.accept(stream).await.ok();
            }
        });
        address
    }

    async fn look(port: u16, longest: Duration) -> Result<ServedChain, FetchError> {
        let fetcher = Fetcher { resolver: Arc::new(Loopback), overrides: Overrides::default() };
        let name = server_name("www.example.com").unwrap();
        fetcher.shown_by(("www.example.com", port), &name, longest).await
    }

    const TEST_TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn whatever_a_server_shows_is_brought_and_its_key_was_used() {
        let made = generate_simple_self_signed(["other.example.net".to_owned()]).unwrap();
        let server = serve(&made, false).await;
        let seen = look(server.port(), TEST_TIMEOUT).await.unwrap();
        assert_eq!(seen.certificates, [made.cert.der().clone()]);
        assert_eq!((seen.address, seen.holds_key), (server, Some(true)));
        assert_eq!(seen.protocol.as_deref(), Ok("TLS 1.2"));
    }

    #[tokio::test]
    async fn a_server_that_wants_a_certificate_of_ours_has_shown_its_own() {
        let made = generate_simple_self_signed(["www.example.com".to_owned()]).unwrap();
        let server = serve(&made, true).await;
        let seen = look(server.port(), TEST_TIMEOUT).await.unwrap();
        assert_eq!(seen.certificates.len(), 1);
        assert!(seen.protocol.is_err(), "{:?}", seen.protocol);
    }

    #[tokio::test]
    async fn whoever_shows_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let silent = look(port, Duration::from_millis(200)).await.unwrap_err();
        assert_eq!(silent.to_string(), "it showed no certificate within 0.2 s");
        drop(listener);
        let gone = look(port, TEST_TIMEOUT).await.unwrap_err().to_string();
        assert!(gone.ends_with(&format!("connection refused by 127.0.0.1:{port}")), "{gone}");
    }

    #[test]
    fn names_of_servers_are_hosts_and_addresses() {
        for name in ["www.example.com", "www.example.com.", "192.0.2.1", "2001:db8::1"] {
            assert!(server_name(name).is_ok(), "{name}");
        }
        assert_eq!(server_name("a b").unwrap_err(), "\"a b\" is no name of a server");
    }

    #[test]
    fn a_chain_is_judged_for_roots_a_name_and_a_moment() {
        let made = generate_simple_self_signed(["www.example.com".to_owned()]).unwrap();
        let other = generate_simple_self_signed(["www.example.com".to_owned()]).unwrap();
        let judge = |root: &CertifiedKey<KeyPair>, name: &str, now: &str| {
            let client = TrustingClient::of([root.cert.der().to_vec()]).unwrap();
            let now: Timestamp = now.parse().unwrap();
            let verdict =
                client.judge(&[made.cert.der().clone()], &server_name(name).unwrap(), now);
            let TrustVerdict { fault, fits_name } = verdict;
            (fault.map(|(_, why)| why).unwrap_or_default(), fits_name)
        };
        let now = "2026-11-24T12:00:00Z";
        let said = |fault: &str, fits_name| (fault.to_owned(), fits_name);
        assert_eq!(judge(&made, "www.example.com", now), said("", true));
        assert_eq!(judge(&made, "example.com", now), said("it is for another name", false));
        // Its root has the same name.
        let stranger = said("its signature is not of the key that is trusted here", true);
        assert_eq!(judge(&other, "www.example.com", now), stranger);
        let over = judge(&made, "www.example.com", "9000-01-01T00:00:00Z");
        assert_eq!(over, said("it has expired", true));
        assert!(TrustingClient::of([]).is_err() && TrustingClient::of([vec![0]]).is_err());
    }
}
