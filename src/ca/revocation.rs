//! Revocation (RFC 8555 §7.6): by the account, by another account that holds all names, or by the certificate's own key.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use super::context::Ca;
use super::refusal::{Kind, Refusal};
use super::request::{Signed, absent_if_null};
use super::state::{self, Id, Issued, Revocation, Status};

/// Reasons a subscriber may give (RFC 5280 §5.3.1), as at Let's Encrypt.
const ALLOWED_REASONS: [u8; 5] = [0, 1, 3, 4, 5];

/// Payload of revokeCert.
#[derive(Deserialize)]
struct RevocationRequest {
    certificate: String,
    #[serde(default, deserialize_with = "absent_if_null")]
    reason: u8,
}

/// Revokes a certificate.
pub(super) async fn revoke(
    State(ca): State<Arc<Ca>>,
    signed: Signed,
) -> Result<StatusCode, Refusal> {
    let wish: RevocationRequest = signed.payload()?;
    let unreadable = || Refusal::malformed("Unable to revoke :: Unable to parse certificate DER");
    let der = BASE64_URL_SAFE_NO_PAD.decode(&wish.certificate).map_err(|_| unreadable())?;
    let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| unreadable())?;
    let now = ca.now();
    let mut state = ca.state();
    let issued = state.certificates.iter().find(|(_, issued)| issued.der == der);
    let Some((serial, issued)) = issued else {
        return Err(Refusal::not_found("Unable to revoke :: No such certificate"));
    };
    let serial = serial.clone();
    let may_revoke = match signed.account() {
        Ok(account) => issued.account == account || holds_all(&state, account, issued, now),
        Err(_) => signed.key()?.is(certificate.public_key()),
    };
    if !may_revoke {
        let detail = format!(
            "Unable to revoke :: requester does not control all identifiers in cert with serial \"{serial}\""
        );
        return Err(Refusal::new(Kind::Unauthorized, detail));
    }
    if !ALLOWED_REASONS.contains(&wish.reason) {
        let detail = format!("Unable to revoke :: disallowed revocation reason: {}", wish.reason);
        return Err(Refusal::new(Kind::BadRevocationReason, detail));
    }
    if issued.revoked.is_some() {
        let detail = format!(
            "Unable to revoke :: no certificate with serial {serial} and status other than revoked"
        );
        return Err(Refusal::new(Kind::AlreadyRevoked, detail));
    }
    if let Some(issued) = state.certificates.get_mut(&serial) {
        issued.revoked = Some(Revocation { at: now, reason: wish.reason });
    }
    Ok(StatusCode::OK)
}

/// Returns whether an account has validated every name of a certificate.
fn holds_all(state: &state::State, account: Id, certificate: &Issued, now: Timestamp) -> bool {
    certificate.identifiers.iter().all(|identifier| {
        state.authorizations.values().any(|authorization| {
            authorization.account == account
                && authorization.identifier == *identifier
                && authorization.status == Status::Valid
                && authorization.expires > now
        })
    })
}
