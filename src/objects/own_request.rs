//! CertificateRequests that no Certificate has made: the key is elsewhere. A request is shown as a Certificate with the same
//! terms and state, so that the code that checks, follows and reports Certificates serves requests too.

use std::sync::Arc;

use jiff::Timestamp;

use crate::acme::csr::{self, SigningRequest};
use crate::context::failure::Failure;
use crate::controllers::facts::{of_issued, of_request};
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::verdict::{Verdict, verdict};
use crate::hints::invocation;
use crate::model::certificate::{ISSUING, READY};
use crate::model::common::{Other, condition, is_true};
use crate::model::validation::object_name_fault;
use crate::model::{
    Certificate, CertificateRequest, CertificateRequestSpec, CertificateSpec, CertificateStatus,
    Condition, ConditionStatus, Key, Kind, ObjectName, Record, Time,
};
use crate::reconcile::facts::{LeafFacts, annotation};
use crate::reconcile::renewal::{Life, without_suggestion};
use crate::reconcile::request::stray_common_name;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::resources::typed;

/// Builds the Certificate with the terms and the state of a request: without a Secret, and with revision 1 once issued.
pub fn as_certificate(request: &CertificateRequest) -> Certificate {
    let CertificateRequest { metadata, spec, status, .. } = request;
    let names = of_request(&spec.request.0).map(|facts| facts.names).unwrap_or_default();
    let spec = CertificateSpec {
        ip_addresses: names.addresses(),
        common_name: names.common_name,
        dns_names: names.dns_names,
        uris: names.uris,
        email_addresses: names.email_addresses,
        duration: spec.duration,
        is_ca: spec.is_ca,
        usages: spec.usages.clone(),
        issuer_ref: spec.issuer_ref.clone(),
        ..CertificateSpec::default()
    };
    let ready = condition(&status.conditions, READY).cloned().unwrap_or_default();
    let is_issued = ready.status == ConditionStatus::True;
    let has_failed = ["Failed", "Denied"].contains(&&*ready.reason)
        || ["Denied", "InvalidRequest"].iter().any(|it| is_true(&status.conditions, it));
    let of_kind = |kind: &str, is: bool| Condition {
        kind: kind.to_owned(),
        status: if is { ConditionStatus::True } else { ConditionStatus::False },
        observed_generation: metadata.generation,
        ..ready.clone()
    };
    let leaf = of_issued(&status.certificate).and_then(Result::ok);
    let failed_at =
        status.failure_time.or(ready.last_transition_time).or(metadata.creation_timestamp);
    let status = CertificateStatus {
        conditions: vec![of_kind(READY, is_issued), of_kind(ISSUING, !is_issued && !has_failed)],
        last_failure_time: failed_at.filter(|_| has_failed),
        not_before: leaf.as_ref().map(|leaf| Time::new(leaf.not_before)),
        not_after: leaf.as_ref().map(|leaf| Time::new(leaf.not_after)),
        renewal_time: leaf.as_ref().map(|leaf| Time::new(without_suggestion(&spec, life(leaf)))),
        revision: is_issued.then_some(1),
        ..CertificateStatus::default()
    };
    Certificate {
        api_version: request.api_version.clone(),
        kind: Kind::CertificateRequest.as_str().to_owned(),
        metadata: metadata.clone(),
        spec,
        status,
    }
}

fn life(leaf: &LeafFacts) -> Life<'static> {
    Life { start: leaf.not_before, end: leaf.not_after, asked: None, suggestion: None }
}

/// Returns the terms of a Certificate or a CertificateRequest, as a Certificate.
///
/// # Errors
/// Fails if the object cannot be read.
pub fn certificate_of(record: &Record) -> Result<Certificate, StoreError> {
    match record.key.kind {
        Kind::CertificateRequest => typed(record.clone()).map(|request| as_certificate(&request)),
        _ => typed(record.clone()),
    }
}

/// Checks that the signing request of a CertificateRequest can be read, asks for what ACME CAs certify, and is the stored one
/// of that name, if any: cert-manager's webhook refuses to change it.
///
/// # Errors
/// Fails if one of these conditions does not hold, and if the store fails.
pub async fn check(record: &Record, store: &Arc<dyn Store>) -> Result<(), Failure> {
    let key = &record.key;
    let request = typed::<CertificateRequest>(record.clone())?;
    read(&request.spec.request.0)
        .map_err(|(why, hint)| Failure::usage(format!("{key}: spec.request: {why}")).hint(hint))?;
    let Some(there) = store.get(key).await? else { return Ok(()) };
    let there = typed::<CertificateRequest>(there)?;
    let asked = |spec: &CertificateRequestSpec| CertificateRequestSpec {
        other: Other::default(),
        ..spec.clone()
    };
    if asked(&there.spec) == asked(&request.spec) {
        return Ok(());
    }
    let message = format!("{key} exists with another spec, and cannot be changed");
    Err(Failure::usage(message).hint(another_request_hint(key, store.in_cluster())))
}

/// Returns the hint for making another request.
fn another_request_hint(key: &Key, in_cluster: bool) -> String {
    let Key { name: ObjectName { namespace, name }, .. } = key;
    let what = format!("delete certificaterequest/{name}");
    let delete = if in_cluster {
        format!("kubectl {what} --namespace {namespace}")
    } else {
        invocation::current().like_in(namespace, &what)
    };
    format!("give the request another name, or {delete}, and apply it again")
}

/// Reads a signing request, PEM or DER, for an ACME CA.
///
/// # Errors
/// Fails, with reason and hint, if the request cannot be read, is not signed by its key, or asks for what no such CA certifies.
pub fn read(bytes: &[u8]) -> Result<SigningRequest, (String, &'static str)> {
    let request = csr::read(bytes)
        .map_err(|error| (error.why(), "a PKCS#10 signing request is needed, PEM or DER"))?;
    if request.names.identifiers().is_empty() {
        let why = "it names neither a DNS name nor an address in subjectAltName".to_owned();
        let hint = "openssl req -new -key KEY -subj / -addext subjectAltName=DNS:www.example.com";
        return Err((why, hint));
    }
    match stray_common_name(&request.names) {
        Some(why) => Err((why, "repeat that name in subjectAltName, or leave it out: -subj /")),
        None => Ok(request),
    }
}

/// Returns the failure of a request that failed or expired: a CertificateRequest is tried once, and never renewed.
pub fn spent(chain: &Chain, now: Timestamp) -> Option<Failure> {
    let key = chain.key();
    let with_hint = |failure: Failure| {
        let how = another_request_hint(&key, chain.in_cluster);
        failure.hint(format!("a CertificateRequest is tried once: {how}"))
    };
    let status = &chain.certificate.status;
    match verdict(chain, &Obstacles::new(), Some(0)) {
        Verdict::Failed(failed) => Some(with_hint(failed.into())),
        Verdict::Issued | Verdict::Waiting(_) => {
            let end = status.not_after.filter(|end| end.timestamp() <= now)?;
            Some(with_hint(Failure::usage(format!("{key}: its certificate expired at {end}"))))
        }
    }
}

/// Returns the name of the folder below `--out`: that of the Secret. A CertificateRequest has no Secret; its folder is named
/// like the Certificate of its annotation, which is the same for the next request, or like the request.
pub fn folder(certificate: &Certificate) -> &str {
    let Certificate { metadata, spec, .. } = certificate;
    if !spec.secret_name.is_empty() {
        return &spec.secret_name;
    }
    let named = metadata.annotations.get(annotation::CERTIFICATE_NAME);
    // Names of objects cannot lead out of a folder; an annotation can.
    let named = named.filter(|name| object_name_fault(name).is_none());
    named.unwrap_or(&metadata.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(annotations: &Value, conditions: &Value) -> CertificateRequest {
        serde_json::from_value(json!({
            "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest",
            "metadata": {"name": "web-1", "namespace": "default", "annotations": annotations},
            "spec": {"request": "", "issuerRef": {"name": "acme"}},
            "status": {"conditions": conditions, "failureTime": "2026-11-25T10:00:00Z"},
        }))
        .unwrap()
    }

    #[test]
    fn how_far_a_request_is_reads_as_that_of_a_certificate() {
        let ready = |status: &str, reason: &str| json!({"type": "Ready", "status": status, "reason": reason});
        for (conditions, (is_open, has_failed, revision)) in [
            (json!([]), (true, false, None)),
            (json!([ready("False", "Pending")]), (true, false, None)),
            (json!([ready("False", "Failed")]), (false, true, None)),
            (json!([ready("False", "Denied")]), (false, true, None)),
            (json!([{"type": "Denied", "status": "True"}]), (false, true, None)),
            (json!([{"type": "InvalidRequest", "status": "True"}]), (false, true, None)),
            (json!([ready("True", "Issued")]), (false, false, Some(1))),
        ] {
            let certificate = as_certificate(&request(&json!({}), &conditions));
            assert_eq!(certificate.is_being_issued(), is_open, "{conditions}");
            let status = certificate.status;
            assert_eq!(status.last_failure_time.is_some(), has_failed, "{conditions}");
            assert_eq!(status.revision, revision, "{conditions}");
        }
    }

    #[test]
    fn no_annotation_leads_out_of_the_folder() {
        for (named, expected) in
            [("www", "www"), ("../../etc", "web-1"), ("", "web-1"), ("a/b", "web-1")]
        {
            let annotations = json!({annotation::CERTIFICATE_NAME: named});
            let certificate = as_certificate(&request(&annotations, &json!([])));
            assert_eq!(folder(&certificate), expected);
        }
    }
}
