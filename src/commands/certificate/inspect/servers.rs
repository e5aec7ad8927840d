//! Certificates that TLS servers show.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use super::{FoundCertificate, files};
use crate::acme::PrivateKey;
use crate::acme::inspection::Material;
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::fetch::Fetcher;
use crate::fetch::served;
use crate::fetch::trust::TrustingClient;
use crate::model::certificate_report::{
    CertificateSource, ReportedServer, RootsOrigin, SourceKind,
};

/// A client that looks at servers.
#[derive(Debug)]
pub struct ServerVisitor {
    /// Looks hosts up and makes the connections.
    pub fetcher: Fetcher,
    /// Whom it would trust.
    pub client: TrustingClient,
    /// Whose roots these are.
    pub roots: RootsOrigin,
    /// Name to ask for in place of the host.
    pub server_name: Option<String>,
    /// How long one look may take.
    pub longest: Duration,
}

/// Makes a client that trusts the certificates of a file, or whom this machine trusts.
///
/// # Errors
/// Fails when the file holds none, or a signal came.
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

impl ServerVisitor {
    /// Looks at what a server shows; nothing is sent but the handshake.
    ///
    /// # Errors
    /// Fails when it shows nothing in time, or something that cannot be read.
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
        // Whoever has signed the handshake holds the key.
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
