//! Trust of a client in the certificates that a server shows.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use rustls_platform_verifier::Verifier;
use x509_parser::extensions::ParsedExtension;
use x509_parser::oid_registry::OID_PKIX_ACCESS_DESCRIPTOR_CA_ISSUERS;

use crate::http::exchange::distrust;
use crate::model::certificate_report::Distrust;

/// A client that trusts certain roots.
#[derive(Clone, Debug)]
pub struct TrustingClient {
    /// Verifier, or the reason why nothing can be verified.
    verifier: Result<Arc<dyn ServerCertVerifier>, String>,
    /// Certificates (DER) that are also trusted as a server's own: those of a file, one of which may be the server's.
    own: Vec<Vec<u8>>,
}

/// Judgement of a client about a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustVerdict {
    /// Reason why the client does not take the chain; `None` if it does.
    pub fault: Option<(Distrust, String)>,
    /// Whether the certificate is for the name, whatever its signer.
    pub fits_name: bool,
}

impl TrustingClient {
    /// Makes a client that trusts the roots of this machine; no chain is taken if there are no roots.
    pub fn of_platform() -> Self {
        let verifier = Verifier::new(Arc::new(aws_lc_rs::default_provider()));
        Self {
            verifier: match verifier {
                Ok(verifier) => Ok(Arc::new(verifier)),
                Err(why) => Err(format!("the roots of this machine cannot be read: {why}")),
            },
            own: Vec::new(),
        }
    }

    /// Makes a client that trusts these certificates (DER) alone.
    ///
    /// # Errors
    /// Fails if there is no certificate, or one cannot be a root.
    pub fn of(certificates: impl IntoIterator<Item = Vec<u8>>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        let own: Vec<Vec<u8>> = certificates.into_iter().collect();
        for der in &own {
            let added = roots.add(CertificateDer::from(der.as_slice()));
            added.map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().map_err(|error| error.to_string())?;
        Ok(Self { verifier: Ok(verifier), own })
    }

    /// Judges a chain that was shown for a name.
    pub fn judge(
        &self,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: Timestamp,
    ) -> TrustVerdict {
        let Some((leaf, above)) = chain.split_first() else {
            let fault = Some((Distrust::Untrusted, "no certificate was shown".to_owned()));
            return TrustVerdict { fault, fits_name: false };
        };
        let since = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
        let moment = now;
        let now = UnixTime::since_unix_epoch(since);
        let fits = |leaf: &CertificateDer<'_>| {
            let parsed = ParsedCertificate::try_from(leaf)?;
            verify_server_name(&parsed, name)
        };
        let fits_name = fits(leaf).is_ok();
        let fault = match &self.verifier {
            Err(why) => Some((Distrust::NoRoots, why.clone())),
            Ok(verifier) => match verifier.verify_server_cert(leaf, above, name, &[], now) {
                Ok(_) => None,
                Err(Error::InvalidCertificate(_))
                    if self.own.iter().any(|own| own.as_slice() == leaf.as_ref()) =>
                {
                    own_fault(leaf, fits_name, moment)
                }
                Err(Error::InvalidCertificate(why)) => Some(self.fault(&why, leaf, above)),
                Err(error) => Some((Distrust::Untrusted, error.to_string())),
            },
        };
        TrustVerdict { fault, fits_name }
    }

    /// Classifies the error of a verifier about a certificate.
    fn fault(
        &self,
        why: &CertificateError,
        leaf: &CertificateDer<'_>,
        above: &[CertificateDer<'_>],
    ) -> (Distrust, String) {
        let kind = match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Distrust::Expired
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Distrust::OtherName
            }
            _ if is_self_issued(leaf) => Distrust::Untrusted,
            // A certificate by a root of the file itself would be trusted, and issuers of public CAs can be fetched.
            CertificateError::UnknownIssuer
                if above.is_empty() && (!self.own.is_empty() || names_its_issuer(leaf)) =>
            {
                let why = "its server does not show the certificate that it is signed with";
                return (Distrust::Incomplete, why.to_owned());
            }
            _ => Distrust::Untrusted,
        };
        (kind, distrust(why))
    }
}

/// Returns whether a certificate states where its issuer's can be fetched (RFC 5280 section 4.2.2.1), as public CAs' do.
fn names_its_issuer(der: &CertificateDer<'_>) -> bool {
    let Ok((_, read)) = x509_parser::parse_x509_certificate(der) else { return false };
    read.iter_extensions().any(|extension| {
        matches!(extension.parsed_extension(), ParsedExtension::AuthorityInfoAccess(access)
            if access.accessdescs.iter().any(|one| one.access_method == OID_PKIX_ACCESS_DESCRIPTOR_CA_ISSUERS))
    })
}

/// Judges a certificate that is trusted as it is, as curl and browsers do; `None` if good for its name and that moment.
fn own_fault(
    der: &CertificateDer<'_>,
    fits_name: bool,
    moment: Timestamp,
) -> Option<(Distrust, String)> {
    let (_, read) = x509_parser::parse_x509_certificate(der).ok()?;
    let (validity, now) = (read.validity(), moment.as_second());
    let (kind, why) = if !fits_name {
        (Distrust::OtherName, CertificateError::NotValidForName)
    } else if now > validity.not_after.timestamp() {
        (Distrust::Expired, CertificateError::Expired)
    } else if now < validity.not_before.timestamp() {
        (Distrust::Untrusted, CertificateError::NotValidYet)
    } else {
        return None;
    };
    Some((kind, distrust(&why)))
}

/// Returns whether a certificate names itself as its issuer.
fn is_self_issued(der: &CertificateDer<'_>) -> bool {
    x509_parser::parse_x509_certificate(der)
        .is_ok_and(|(_, read)| read.subject().as_raw() == read.issuer().as_raw())
}
