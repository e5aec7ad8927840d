//! Number of the CertificateRequest of `--csr`: a request under way or with a good certificate keeps the number, else the
//! next number is used. So the same command renews the certificate when the renewal is due, as with names.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::input::Input;
use crate::model::quick_order::request_name;
use crate::model::request::{CERTIFICATE_NAME, REVISION};
use crate::model::{CertificateRequest, Key, Kind, Record, Time};
use crate::objects::own_request::as_certificate;
use crate::store::local::Access;
use crate::store::resources::{Resources, typed};
use crate::store::{Scope, Store};

/// Number of CertificateRequests of one name that are kept: the newest.
const REQUESTS_KEPT: i64 = 2;

/// Returns the input with the number in the name and annotation of the CertificateRequest of `--csr`.
///
/// # Errors
/// Fails when the store fails.
pub async fn numbered(mut input: Input, context: &Context) -> Result<Input, Failure> {
    let store = context.store(Access::ReadOnly).await?;
    let of_kind = |record: &&mut Record| record.key.kind == Kind::CertificateRequest;
    let Some(record) = input.records.iter_mut().find(of_kind) else { return Ok(input) };
    let wanted = typed::<CertificateRequest>(record.clone())?;
    let last = earlier(&store, &wanted).await?.pop();
    let number = match last {
        None => 1,
        Some((number, last)) if goes_on(&last, &wanted, Timestamp::now()) => number,
        Some((number, _)) => number + 1,
    };
    let name = base_name(&wanted).to_owned();
    record.object["metadata"]["name"] = json!(request_name(&name, number));
    record.object["metadata"]["annotations"][REVISION] = json!(number.to_string());
    if let Some(renamed) = Record::new(record.object.clone()) {
        *record = renamed;
    }
    Ok(input)
}

/// Deletes all but the newest two CertificateRequests of `--csr`: a command that runs every day must not fill the store.
pub async fn forget_older(input: &Input, context: &Context) {
    if let Err(failure) = try_to_forget(input, context).await {
        tracing::debug!(why = %failure, "older CertificateRequests stay");
    }
}

async fn try_to_forget(input: &Input, context: &Context) -> Result<(), Failure> {
    let of_kind = |record: &&Record| record.key.kind == Kind::CertificateRequest;
    let Some(record) = input.records().iter().find(of_kind) else { return Ok(()) };
    let current = typed::<CertificateRequest>(record.clone())?;
    let store = context.store(Access::ReadWrite).await?;
    let newest = current.revision().unwrap_or_default();
    for (number, old) in earlier(&store, &current).await? {
        if number <= newest - REQUESTS_KEPT && !as_certificate(&old).is_being_issued() {
            store.delete(&Key::new(Kind::CertificateRequest, old.name())).await?;
        }
    }
    Ok(())
}

/// CertificateRequests that were made from a signing request for this name, with their numbers, newest last.
async fn earlier(
    store: &Arc<dyn Store>,
    wanted: &CertificateRequest,
) -> Result<Vec<(i64, CertificateRequest)>, Failure> {
    let requests =
        Resources::<CertificateRequest>::new(Arc::clone(store), Kind::CertificateRequest);
    let name = base_name(wanted);
    let mut found = Vec::new();
    for request in requests.list(&Scope::namespace(&wanted.metadata.namespace)).await? {
        let number = request.revision().filter(|number| {
            request.metadata.controller().is_none()
                && base_name(&request) == name
                && request.metadata.name == request_name(name, *number)
        });
        found.extend(number.map(|number| (number, request)));
    }
    found.sort_by_key(|(number, _)| *number);
    Ok(found)
}

fn base_name(request: &CertificateRequest) -> &str {
    request.metadata.annotations.get(CERTIFICATE_NAME).map_or("", String::as_str)
}

/// Returns whether a request has the wanted content, and is under way or has a certificate that is not due for renewal.
fn goes_on(last: &CertificateRequest, wanted: &CertificateRequest, now: Timestamp) -> bool {
    if last.spec.request != wanted.spec.request || last.spec.issuer_ref != wanted.spec.issuer_ref {
        return false;
    }
    let certificate = as_certificate(last);
    let renewal = certificate.status.renewal_time.map(Time::timestamp);
    certificate.is_being_issued() || renewal.is_some_and(|at| now < at)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use rcgen::{CertificateParams, KeyPair};

    use super::*;
    use crate::model::Blob;

    /// A CertificateRequest, issued for a certificate of 90 days that begins now, or not yet.
    fn request(is_issued: bool) -> CertificateRequest {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["www.example.com".to_owned()]).unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 4, 1);
        let status = if is_issued {
            let leaf = Blob(params.self_signed(&key).unwrap().pem().into_bytes());
            let ready = json!({"type": "Ready", "status": "True", "reason": "Issued"});
            json!({"certificate": leaf, "conditions": [ready]})
        } else {
            json!({})
        };
        serde_json::from_value(json!({
            "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest",
            "metadata": {"name": "web-csr-1", "namespace": "default"},
            "spec": {"request": Blob(pem.into_bytes()), "issuerRef": {"name": "acme"}},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn the_same_request_goes_on_until_its_certificate_is_due_for_renewal() {
        let begun: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let day = |day: i64| begun + SignedDuration::from_hours(24 * day);
        let (open, issued) = (request(false), request(true));
        assert!(goes_on(&open, &open, day(400)));
        for (at, expected) in [(1, true), (59, true), (61, false), (100, false)] {
            assert_eq!(goes_on(&issued, &issued, day(at)), expected, "day {at}");
        }
        assert!(!goes_on(&issued, &open, day(1)), "another key");
        let mut elsewhere = issued.clone();
        elsewhere.spec.issuer_ref.name = "staging".to_owned();
        assert!(!goes_on(&issued, &elsewhere, day(1)), "another CA");
    }
}
