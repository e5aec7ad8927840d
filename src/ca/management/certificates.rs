//! Roots, the status of certificates, and changes of their status.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_TYPE, LINK};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::body::{BadRequest, bad_request, member, object, text};
use crate::ca::context::Ca;
use crate::ca::issuance::Chain;
use crate::ca::reply::answer;
use crate::ca::state::{Issued, Revocation};
use crate::model::text::hex;

const PEM_CHAIN_TYPE: &str = "application/pem-certificate-chain";

/// Sends the root of a chain: 0 is the usual chain, 1 the alternate.
pub(super) async fn root(
    State(ca): State<Arc<Ca>>,
    Path(number): Path<String>,
) -> Result<Response, StatusCode> {
    let (chain, other) = chain(&number)?;
    let root = match chain {
        Chain::Usual => ca.authority.root(),
        Chain::Alternate => ca.authority.alternate_root(),
    };
    Ok(certificate(root, &format!("/roots/{other}")))
}

/// Sends the intermediate of a chain.
pub(super) async fn intermediate(
    State(ca): State<Arc<Ca>>,
    Path(number): Path<String>,
) -> Result<Response, StatusCode> {
    let (chain, other) = chain(&number)?;
    Ok(certificate(&ca.authority.intermediate(chain), &format!("/intermediates/{other}")))
}

/// Returns the chain of a number, and the number of the other chain.
fn chain(number: &str) -> Result<(Chain, u8), StatusCode> {
    match number {
        "0" => Ok((Chain::Usual, 1)),
        "1" => Ok((Chain::Alternate, 0)),
        _ => Err(StatusCode::NOT_FOUND),
    }
}

fn certificate(pem: &str, alternate: &str) -> Response {
    let link = format!("<{alternate}>;rel=\"alternate\"");
    let mut response = answer(pem.replace("\r\n", "\n"), [(LINK, link)]);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PEM_CHAIN_TYPE));
    response
}

/// Sends the status of the certificate with this serial number in hexadecimal.
pub(super) async fn status(
    State(ca): State<Arc<Ca>>,
    Path(serial): Path<String>,
) -> Result<Json<Value>, StatusCode> {
    let number = serial_number(&serial).ok_or(StatusCode::BAD_REQUEST)?;
    let state = ca.state();
    let issued = state.certificates.get(&number).ok_or(StatusCode::NOT_FOUND)?;
    Ok(Json(view(&number, issued)))
}

fn view(serial: &str, issued: &Issued) -> Value {
    let pem = pem::encode(&pem::Pem::new("CERTIFICATE", &issued.der[..])).replace("\r\n", "\n");
    let status = if issued.revoked.is_some() { "Revoked" } else { "Valid" };
    let mut view = json!({"Status": status, "Serial": serial, "Certificate": pem});
    if let Some(Revocation { at, reason }) = issued.revoked {
        view["Reason"] = reason.into();
        view["RevokedAt"] = at.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string().into();
    }
    view
}

/// Revokes a certificate, as a CA does after a mistake: `{"serial": HEX, "reason": NUMBER}`.
pub(super) async fn revoke(
    State(ca): State<Arc<Ca>>,
    body: Bytes,
) -> Result<Json<Value>, BadRequest> {
    let wish = object(&body)?;
    let serial = text(&wish, "serial")?;
    let serial = serial_number(serial).ok_or_else(|| bad_request("\"serial\" is no number"))?;
    let reason = match member(&wish, "reason") {
        None | Some(Value::Null) => Some(0),
        Some(reason) => reason.as_u64().and_then(|reason| u8::try_from(reason).ok()),
    };
    // Numbers of reasons (RFC 5280 §5.3.1).
    let reason = reason.filter(|reason| *reason <= 10 && *reason != 7);
    let reason = reason.ok_or_else(|| bad_request("\"reason\" is not the number of a reason"))?;
    let at = ca.now();
    let mut state = ca.state();
    let issued = state.certificates.get_mut(&serial).ok_or_else(no_such_certificate)?;
    issued.revoked = Some(Revocation { at, reason });
    Ok(Json(view(&serial, issued)))
}

/// Sets the text that answers requests for renewal information of one certificate, good or bad:
/// `{"certificate": PEM, "ariResponse": TEXT}`. An empty text restores the usual answer.
pub(super) async fn set_renewal_info(
    State(ca): State<Arc<Ca>>,
    body: Bytes,
) -> Result<StatusCode, BadRequest> {
    let wish = object(&body)?;
    let pem = pem::parse(text(&wish, "certificate")?)
        .map_err(|_| bad_request("\"certificate\" is no certificate in PEM"))?;
    let (_, certificate) = X509Certificate::from_der(pem.contents())
        .map_err(|_| bad_request("\"certificate\" cannot be read"))?;
    let answered = text(&wish, "ariResponse")?;
    let mut state = ca.state();
    let issued = state.certificates.get_mut(&hex(certificate.raw_serial()));
    let issued = issued.ok_or_else(no_such_certificate)?;
    issued.renewal_info = Some(answered.to_owned()).filter(|text| !text.is_empty());
    Ok(StatusCode::OK)
}

fn no_such_certificate() -> BadRequest {
    (StatusCode::NOT_FOUND, "no such certificate\n".to_owned())
}

/// Returns a serial number in the CA's form: 32 digits, whatever form a tool gives it.
fn serial_number(text: &str) -> Option<String> {
    let digits = text.replace(':', "");
    u128::from_str_radix(&digits, 16).ok().map(|number| format!("{number:032x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_number_is_read_as_tools_write_it() {
        let number = "7f00000000000000000000000000abcd";
        for text in
            [number, &number.to_uppercase(), "7f:00:00:00:00:00:00:00:00:00:00:00:00:00:AB:CD"]
        {
            assert_eq!(serial_number(text).as_deref(), Some(number), "{text}");
        }
        assert_eq!(serial_number("00ff").as_deref(), Some("000000000000000000000000000000ff"));
        for text in ["", "xyz", "0x7f", "7f00000000000000000000000000abcd00"] {
            assert_eq!(serial_number(text), None, "{text}");
        }
    }
}
