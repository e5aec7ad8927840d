//! One TLS handshake as a public CA makes it for TLS-ALPN-01 (RFC 8737 §3): nothing is read after it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustls::AlertDescription;
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension, X509Extension};
use x509_parser::oid_registry::asn1_rs::{Oid, oid};
use x509_parser::prelude::FromDer as _;

use super::connection::{self, NoAnswer, Refusals, TimeLimits, tls_fault};
use super::outcome::FetchError;
use super::{CA_PATIENCE, Fetcher, tls};
use crate::model::Identifier;
use crate::model::cause::Symptom;
use crate::model::observation::{AcmeIdentifier, PresentedCertificate};
use crate::model::text::hex;

/// `acmeIdentifier` (RFC 8737 §6.1).
const ACME_IDENTIFIER: Oid<'static> = oid!(1.3.6.1.5.5.7.1.31);
/// Bytes before a SHA-256 digest: the head of an octet string of 32 bytes.
const OCTETS: [u8; 2] = [0x04, 0x20];

/// Outcome of one handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeOutcome {
    /// Address that answered or was tried last.
    pub address: Option<SocketAddr>,
    /// Protocol and certificate, or why there are none.
    pub result: Result<HandshakeAnswer, FetchError>,
}

/// Answer of a server to a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeAnswer {
    /// Protocol agreed on; empty for none.
    pub protocol: String,
    /// Facts of the server's own certificate that count.
    pub certificate: PresentedCertificate,
}

/// Makes the URL at which an identifier is validated.
///
/// # Errors
/// Fails if the identifier makes no URL.
pub fn url_of(identifier: &Identifier) -> Result<Url, url::ParseError> {
    Url::parse(&match identifier {
        Identifier::Dns(name) => format!("https://{}/", name.base()),
        Identifier::Ip(address) if address.is_ipv6() => format!("https://[{address}]/"),
        Identifier::Ip(address) => format!("https://{address}/"),
    })
}

impl Fetcher {
    /// Makes a handshake with a host on port 443 by `acme-tls/1`.
    pub async fn greet(&self, identifier: &Identifier) -> HandshakeOutcome {
        let none = |error| HandshakeOutcome { address: None, result: Err(error) };
        let url = match url_of(identifier) {
            Ok(url) => url,
            Err(error) => {
                return none(FetchError::Malformed { why: error.to_string(), symptom: None });
            }
        };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let addresses = match self.overrides.handshake(host) {
            Some(address) => vec![address],
            None => match self.addresses(&url).await {
                Ok(addresses) => addresses,
                Err(error) => return none(error),
            },
        };
        let name = identifier.server_name();
        let (mut last, mut refusals) = (None, Refusals::default());
        for address in addresses {
            last = Some(address);
            let result = match greet(&name, address, CA_PATIENCE).await {
                Ok(shown) => Ok(shown),
                Err(NoAnswer::NotConnected(why, symptom)) => {
                    refusals.add(why, symptom);
                    continue;
                }
                Err(error) => Err(error.into_error()),
            };
            return HandshakeOutcome { address: last, result };
        }
        HandshakeOutcome { address: last, result: Err(refusals.into_error()) }
    }
}

async fn greet(
    name: &str,
    address: SocketAddr,
    patience: TimeLimits,
) -> Result<HandshakeAnswer, NoAnswer> {
    let failed = |why: &dyn std::fmt::Display| connection::no_handshake(address, why);
    let name = ServerName::try_from(name.to_owned()).map_err(|error| failed(&error))?;
    let connector = TlsConnector::from(tls::acme_config().map_err(|error| failed(&error))?);
    let stream = connection::connect(address, patience).await?;
    let shaken = timeout(patience.answer, connector.connect(name, stream)).await;
    let shaken = shaken.map_err(|_| connection::late(address, patience))?;
    let stream = shaken.map_err(|error| match failed(&tls_fault(&error)) {
        // A server without a certificate for the name sends an alert; an alert about ALPN means another program.
        NoAnswer::Silent(why, _) if refuses_handshake(&error) => {
            NoAnswer::Silent(why, Some(Symptom::HungUp))
        }
        other => other,
    })?;
    let (_, session) = stream.get_ref();
    let protocol = session.alpn_protocol().unwrap_or_default();
    let shown = session.peer_certificates().and_then(<[_]>::first);
    let certificate = read(shown.map_or(&[], |certificate| certificate.as_ref()))
        .map_err(|what| NoAnswer::Malformed(format!("{address} {what}"), None))?;
    Ok(HandshakeAnswer { protocol: String::from_utf8_lossy(protocol).into_owned(), certificate })
}

/// Returns whether the server uses TLS, and ends the handshake by an alert that has nothing to do with protocols.
fn refuses_handshake(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::AlertReceived(alert)) = inner else { return false };
    *alert != AlertDescription::NoApplicationProtocol
}

/// Reads the facts of a certificate that count.
fn read(der: &[u8]) -> Result<PresentedCertificate, String> {
    if der.is_empty() {
        return Err("showed no certificate".to_owned());
    }
    let (_, certificate) = X509Certificate::from_der(der)
        .map_err(|_| "showed something that is no certificate".to_owned())?;
    let names = certificate.extensions().iter().filter_map(|extension| {
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
            _ => None,
        }
    });
    let is_own = certificate.subject().as_raw() == certificate.issuer().as_raw();
    let identifiers = certificate.extensions().iter().filter(|e| e.oid == ACME_IDENTIFIER);
    Ok(PresentedCertificate {
        subject: certificate.subject().to_string(),
        self_signed: is_own && certificate.verify_signature(None).is_ok(),
        names: names.flatten().map(name).collect(),
        acme_identifiers: identifiers.map(acme_identifier).collect(),
    })
}

fn acme_identifier(extension: &X509Extension<'_>) -> AcmeIdentifier {
    let digest = match extension.value.strip_prefix(&OCTETS) {
        Some(digest) if digest.len() == 32 => digest,
        _ => extension.value,
    };
    AcmeIdentifier { critical: extension.critical, digest: hex(digest) }
}

fn name(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => {
            match (<[u8; 4]>::try_from(*bytes), <[u8; 16]>::try_from(*bytes)) {
                (Ok(four), _) => IpAddr::from(four).to_string(),
                (_, Ok(sixteen)) => IpAddr::from(sixteen).to_string(),
                _ => "a malformed address".to_owned(),
            }
        }
        other => other.to_string(),
    }
}
