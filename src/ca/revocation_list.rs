//! The list of revoked certificates (RFC 5280 §5).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::context::Ca;
use super::issuance::RevokedSerial;

/// Path of the list.
pub(super) const PATH: &str = "/crl";
/// Time for which a list counts.
const LIST_VALIDITY: Duration = Duration::from_hours(24);

/// Sends the list of all certificates revoked so far.
pub(super) async fn list(State(ca): State<Arc<Ca>>, request: Request) -> Response {
    let revoked: Vec<RevokedSerial> = {
        let state = ca.state();
        let revoked = state.certificates.iter().filter_map(|(serial, issued)| {
            let revocation = issued.revoked?;
            let serial = u128::from_str_radix(serial, 16).ok()?;
            Some(RevokedSerial { serial, at: revocation.at, reason: revocation.reason })
        });
        revoked.collect()
    };
    // The URL must equal the URL in the certificate (RFC 5280 §6.3.3).
    let url = ca.base.plain().of(request.uri(), request.headers()).url(PATH);
    match ca.authority.revocation_list(&revoked, &url, ca.now(), LIST_VALIDITY) {
        Ok(der) => ([(CONTENT_TYPE, "application/pkix-crl")], der).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot sign the list of revoked certificates");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
