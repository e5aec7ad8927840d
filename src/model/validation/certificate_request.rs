//! Rules for CertificateRequests. Whether the signing request can be read is checked where keys and certificates are known.

use super::Validation;
use super::certificate::issuer_reference;
use crate::model::CertificateRequest;
use crate::model::field::FieldPath;

/// Checks a CertificateRequest.
pub fn certificate_request(request: &CertificateRequest) -> Validation {
    let mut verdict = Validation::default();
    let (spec, at) = (&request.spec, FieldPath::of("spec"));
    if spec.request.is_empty() {
        verdict.error_hint(
            at.key("request"),
            "must be specified",
            "it is a signing request in PEM, in base64 once more: base64 -w 0 FILE.csr",
        );
    }
    issuer_reference(&spec.issuer_ref, &at, &mut verdict);
    if spec.is_ca {
        verdict.warn(at.key("isCA"), "an ACME server signs no CA certificates");
    }
    verdict
}
