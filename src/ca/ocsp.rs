//! OCSP responder (RFC 6960): the revocation status of a certificate by its serial number. The issuing key signs the
//! answers, and nonces are ignored: an answer may be cached for as long as the answer counts (RFC 5019), as at CAs.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use der::asn1::AnyRef;
use der::{Decode as _, Encode as _, Reader as _, SliceReader, Tag, TagNumber, Tagged as _};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use x509_parser::parse_x509_certificate;

use super::context::Ca;
use super::state::{Issued, Revocation, after};
use crate::model::text::hex;

/// Path of requests by POST.
pub(super) const PATH: &str = "/ocsp";
/// Path of requests by GET.
pub(super) const GET_PATH: &str = "/ocsp/{*request}";
/// Time for which an answer counts.
const ANSWER_VALIDITY: Duration = Duration::from_hours(24);
/// Most certificates in one request.
const MAX_CERTIFICATES: usize = 20;

/// Contents of object identifiers: the kind of response, and algorithms.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
const SHA1: &[u8] = &[0x2b, 0x0e, 3, 2, 0x1a];
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];

/// Response statuses without a statement on a certificate (§4.2.1).
const MALFORMED: u8 = 1;
const INTERNAL: u8 = 2;

/// One certificate of a request (CertID).
struct AskedSerial<'a> {
    /// The CertID as received, which the answer repeats.
    whole: Vec<u8>,
    hash: &'a [u8],
    issuer_name: &'a [u8],
    issuer_key: &'a [u8],
    serial: &'a [u8],
}

/// Answers a request in the body of a POST.
pub(super) async fn posted(State(ca): State<Arc<Ca>>, request: Bytes) -> Response {
    respond(&ca, &request)
}

/// Answers a request in the path of a GET.
pub(super) async fn got(State(ca): State<Arc<Ca>>, Path(request): Path<String>) -> Response {
    respond(&ca, &BASE64_STANDARD.decode(request).unwrap_or_default())
}

fn respond(ca: &Ca, request: &[u8]) -> Response {
    let der = match read_request(request) {
        Some(asked) => response(ca, &asked).unwrap_or_else(|| refusal(INTERNAL)),
        None => refusal(MALFORMED),
    };
    ([(CONTENT_TYPE, "application/ocsp-response")], der).into_response()
}

/// Reads the certificates of a request (§4.1.1).
fn read_request(request: &[u8]) -> Option<Vec<AskedSerial<'_>>> {
    let whole = AnyRef::from_der(request).ok().filter(|whole| whole.tag() == Tag::Sequence)?;
    let to_be_signed = elements(whole.value())?.into_iter().next()?;
    let fields = elements(to_be_signed.value())?;
    let list = fields.into_iter().find(|field| field.tag() == Tag::Sequence)?;
    let list = elements(list.value())?;
    let all = list.iter().map(|one| about(*elements(one.value())?.first()?));
    let all: Option<Vec<_>> = all.collect();
    all.filter(|all| (1..=MAX_CERTIFICATES).contains(&all.len()))
}

fn about(id: AnyRef<'_>) -> Option<AskedSerial<'_>> {
    let [algorithm, issuer_name, issuer_key, serial] = elements(id.value())?.try_into().ok()?;
    Some(AskedSerial {
        whole: id.to_der().ok()?,
        hash: elements(algorithm.value())?.first()?.value(),
        issuer_name: issuer_name.value(),
        issuer_key: issuer_key.value(),
        serial: serial.value(),
    })
}

/// Returns the elements in the content of another element.
fn elements(content: &[u8]) -> Option<Vec<AnyRef<'_>>> {
    let mut reader = SliceReader::new(content).ok()?;
    let mut all = Vec::new();
    while !reader.is_finished() {
        all.push(reader.decode().ok()?);
    }
    Some(all)
}

/// Builds the response with the known status of each certificate (§4.2.1).
fn response(ca: &Ca, asked: &[AskedSerial<'_>]) -> Option<Vec<u8>> {
    let (_, issuer) = parse_x509_certificate(ca.authority.issuer()).ok()?;
    let name = issuer.subject().as_raw();
    let key = &*issuer.public_key().subject_public_key.data;
    let now = ca.now();
    let answers: Vec<Vec<u8>> = asked
        .iter()
        .map(|one| {
            let hashed = |bytes: &[u8]| match one.hash {
                SHA1 => digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().to_vec(),
                SHA2 => digest(&SHA256, bytes).as_ref().to_vec(),
                _ => Vec::new(),
            };
            let is_ours = one.issuer_name == hashed(name) && one.issuer_key == hashed(key);
            let state = ca.state();
            let found = state.certificates.get(&hex(one.serial)).filter(|_| is_ours);
            let status = status(found);
            let next = element(context(0, true), &[time(after(now, ANSWER_VALIDITY))]);
            element(Tag::Sequence, &[one.whole.clone(), status, time(now), next])
        })
        .collect();
    let by = element(Tag::OctetString, &[digest(&SHA1_FOR_LEGACY_USE_ONLY, key).as_ref().into()]);
    let by = element(context(2, true), &[by]);
    let data = element(Tag::Sequence, &[by, time(now), element(Tag::Sequence, &answers)]);
    let signature = ca.authority.sign(&data).ok()?;
    let algorithm = element(Tag::ObjectIdentifier, &[ECDSA_WITH_SHA256.into()]);
    let algorithm = element(Tag::Sequence, &[algorithm]);
    let signature = element(Tag::BitString, &[vec![0], signature]);
    let basic = element(Tag::Sequence, &[data, algorithm, signature]);
    let sort = element(Tag::ObjectIdentifier, &[BASIC.into()]);
    let body = element(Tag::Sequence, &[sort, element(Tag::OctetString, &[basic])]);
    let body = element(context(0, true), &[body]);
    Some(element(Tag::Sequence, &[element(Tag::Enumerated, &[vec![0]]), body]))
}

/// Returns the status of a certificate: good, revoked or, for a certificate not issued here, unknown.
fn status(found: Option<&Issued>) -> Vec<u8> {
    let Some(found) = found else { return element(context(2, false), &[]) };
    match found.revoked {
        None => element(context(0, false), &[]),
        Some(Revocation { at, reason }) => {
            let why = element(context(0, true), &[element(Tag::Enumerated, &[vec![reason]])]);
            // Reason 0 is written as no reason (RFC 5280 §5.3.1).
            let why = if reason == 0 { Vec::new() } else { why };
            element(context(1, true), &[time(at), why])
        }
    }
}

fn refusal(status: u8) -> Vec<u8> {
    element(Tag::Sequence, &[element(Tag::Enumerated, &[vec![status]])])
}

fn context(number: u32, constructed: bool) -> Tag {
    TagNumber(number).context_specific(constructed)
}

fn time(at: Timestamp) -> Vec<u8> {
    let text = at.to_zoned(TimeZone::UTC).strftime("%Y%m%d%H%M%SZ").to_string();
    element(Tag::GeneralizedTime, &[text.into_bytes()])
}

fn element(tag: Tag, parts: &[Vec<u8>]) -> Vec<u8> {
    let content = parts.concat();
    AnyRef::new(tag, &content).and_then(|element| element.to_der()).unwrap_or_default()
}
