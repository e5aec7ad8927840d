//! Whether a client would trust what a server shows.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{Error, RootCertStore};
use rustls_platform_verifier::Verifier;

use crate::http::exchange::distrust;

/// A client that trusts some roots.
#[derive(Clone, Debug)]
pub struct TrustingClient {
    /// What verifies, or why nothing can be verified.
    verifier: Result<Arc<dyn ServerCertVerifier>, String>,
}

/// What a client makes of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustVerdict {
    /// Why it does not take it, if it does not.
    pub fault: Option<String>,
    /// Whether the certificate is for the name, whoever signed it.
    pub fits_name: bool,
}

impl TrustingClient {
    /// A client that trusts whom this machine trusts; nobody, where it has no roots.
    pub fn of_platform() -> Self {
        let verifier = Verifier::new(Arc::new(aws_lc_rs::default_provider()));
        Self {
            verifier: match verifier {
                Ok(verifier) => Ok(Arc::new(verifier)),
                Err(why) => Err(format!("the roots of this machine cannot be read: {why}")),
            },
        }
    }

    /// A client that trusts these certificates alone, DER.
    ///
    /// # Errors
    /// Fails when there is none, or one cannot be a root.
    pub fn of(certificates: impl IntoIterator<Item = Vec<u8>>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for der in certificates {
            roots.add(CertificateDer::from(der)).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().map_err(|error| error.to_string())?;
        Ok(Self { verifier: Ok(verifier) })
    }

    /// Judges a chain that was shown for a name.
    pub fn judge(
        &self,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: Timestamp,
    ) -> TrustVerdict {
        let Some((leaf, above)) = chain.split_first() else {
            let fault = Some("no certificate was shown".to_owned());
            return TrustVerdict { fault, fits_name: false };
        };
        let since = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
        let now = UnixTime::since_unix_epoch(since);
        let fits = |leaf: &CertificateDer<'_>| {
            let parsed = ParsedCertificate::try_from(leaf)?;
            verify_server_name(&parsed, name)
        };
        let fault = match &self.verifier {
            Err(why) => Some(why.clone()),
            Ok(verifier) => match verifier.verify_server_cert(leaf, above, name, &[], now) {
                Ok(_) => None,
                Err(Error::InvalidCertificate(why)) => Some(distrust(&why)),
                Err(error) => Some(error.to_string()),
            },
        };
        TrustVerdict { fault, fits_name: fits(leaf).is_ok() }
    }
}
