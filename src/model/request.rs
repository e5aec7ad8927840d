//! CertificateRequest: one signing request to one issuer.

use serde::{Deserialize, Serialize};

use super::common::{Blob, Condition, Duration, IssuerRef, Other, Time, is_false};
use super::metadata::Resource;

/// `cert-manager.io/v1` CertificateRequest.
pub type CertificateRequest = Resource<CertificateRequestSpec, CertificateRequestStatus>;

/// Annotation: name of the Certificate that a request belongs to.
pub const CERTIFICATE_NAME: &str = "cert-manager.io/certificate-name";

/// Annotation: number of the issuance that a request belongs to, from 1.
pub const REVISION: &str = "cert-manager.io/certificate-revision";

impl CertificateRequest {
    /// Returns the number of the request's issuance; `None` if the annotation is missing or no positive number.
    pub fn revision(&self) -> Option<i64> {
        let text = self.metadata.annotations.get(REVISION)?;
        text.parse().ok().filter(|revision| *revision > 0)
    }
}

/// Spec of a CertificateRequest: the request to be signed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRequestSpec {
    /// Asked-for life time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// Issuer.
    pub issuer_ref: IssuerRef,
    /// Signing request, PEM.
    pub request: Blob,
    /// Whether a CA certificate is asked for.
    #[serde(default, rename = "isCA", skip_serializing_if = "is_false")]
    pub is_ca: bool,
    /// Key usages asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usages: Option<Vec<String>>,
    /// Requester; written by cert-manager's webhook, with `uid`, `groups`, `extra`.
    #[serde(flatten)]
    pub other: Other,
}

/// Status of a CertificateRequest: the progress of the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateRequestStatus {
    /// `Approved`, `Denied`, `InvalidRequest`, `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The chain, PEM, leaf first.
    #[serde(default, skip_serializing_if = "Blob::is_empty")]
    pub certificate: Blob,
    /// The CA's certificate, PEM; never set for ACME.
    #[serde(default, skip_serializing_if = "Blob::is_empty")]
    pub ca: Blob,
    /// Time at which the request failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_time: Option<Time>,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_a_positive_number() {
        for (text, expected) in [
            (Some("1"), Some(1)),
            (Some("12"), Some(12)),
            (Some("0"), None),
            (Some("-1"), None),
            (Some("one"), None),
            (None, None),
        ] {
            let mut request = CertificateRequest::default();
            let annotation = text.map(|text| (REVISION.to_owned(), text.to_owned()));
            request.metadata.annotations.extend(annotation);
            assert_eq!(request.revision(), expected, "{text:?}");
        }
    }
}
