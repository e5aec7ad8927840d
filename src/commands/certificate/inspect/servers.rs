//! Certificates that TLS servers present.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use super::{FoundCertificate, files};
use crate::acme::PrivateKey;
use crate::acme::inspection::Material;
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::fetch::trust::TrustingClient;
use crate::fetch::{Fetcher, served};
use crate::model::certificate_report::{
    CertificateSource, ReportedServer, RootsOrigin, SourceKind,
};

/// Client that reads the certificates of TLS servers.
#[derive(Debug)]
pub struct ServerInspector {
    /// Lookup of hosts, and connections.
    pub fetcher: Fetcher,
    /// Client that judges trust.
    pub client: TrustingClient,
    /// Origin of the trusted roots.
    pub roots: RootsOrigin,
    /// Server name (SNI) in place of the host.
    pub server_name: Option<String>,
    /// Time limit for one server.
    pub longest: Duration,
}

/// Builds a client that trusts the certificates of a file, or else the roots that this machine trusts.
///
/// # Errors
/// Fails when the file holds no certificate, or a signal interrupts.
pub async fn client(
    bundle: Option<&Path>,
    interrupted: &Interrupted,
) -> Result<(TrustingClient, RootsOrigin), Failure> {
    let Some(path) = bundle else {
        return Ok((TrustingClient::of_platform(), RootsOrigin::Platform));
    };
    let name = path.to_string_lossy();
    let found = files::read(&name, interrupted).await?;
    let client = TrustingClient::of(found.certificates)
        .map_err(|why| Failure::usage(format!("cannot use --ca-bundle {name}: {why}")))?;
    Ok((client, RootsOrigin::File))
}

impl ServerInspector {
    /// Reads the certificates that a server presents; sends only the handshake.
    ///
    /// # Errors
    /// Fails when the server presents nothing in time, or a certificate that cannot be read.
    pub async fn visit(
        &self,
        host: &str,
        port: u16,
        given: Option<&PrivateKey>,
        now: Timestamp,
    ) -> Result<FoundCertificate, Failure> {
        let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let place = format!("{shown}:{port}");
        let failed = |why: &dyn std::fmt::Display| {
            let what = format!("cannot show the certificate of {place}: {why}");
            Failure::new(FailureKind::Unexpected, what)
        };
        let wanted = self.server_name.as_deref().unwrap_or(host);
        let name = served::server_name(wanted).map_err(Failure::usage)?;
        let seen = self.fetcher.shown_by((host, port), &name, self.longest).await;
        let seen = seen.map_err(|error| failed(&error))?;
        let certificates = seen.certificates.iter().map(|der| der.to_vec()).collect();
        let found = Material { certificates, key: None };
        let source =
            CertificateSource { kind: SourceKind::Server, namespace: None, name: place.clone() };
        let mut found =
            FoundCertificate::read(source, found, given, now).map_err(|fault| failed(&fault))?;
        let verdict = self.client.judge(&seen.certificates, &name, now);
        let (protocol, handshake_fault) = match seen.protocol {
            Ok(protocol) => (Some(protocol), None),
            Err(why) => (None, Some(why)),
        };
        // A server that has signed the handshake holds the key.
        found.reported.key_matches = found.reported.key_matches.or(seen.holds_key);
        found.reported.server = Some(ReportedServer {
            address: seen.address.to_string(),
            server_name: wanted.to_owned(),
            protocol,
            handshake_fault,
            roots: self.roots,
            verified: verdict.fault.is_none(),
            distrust: verdict.fault.as_ref().map(|(kind, _)| *kind),
            verify_fault: verdict.fault.map(|(_, why)| why),
            fits_name: verdict.fits_name,
        });
        Ok(found)
    }
}
