//! The list of revoked certificates (RFC 5280 §5).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::context::Ca;
use super::issuance::RevokedSerial;

/// Where the list lies.
pub(super) const PATH: &str = "/crl";
/// How long a list counts.
const GOOD_FOR: Duration = Duration::from_hours(24);

/// Gives the list of all certificates that were revoked so far.
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
    // As the certificate says it that led here (RFC 5280 §6.3.3).
    let url = ca.base.plain().of(request.uri(), request.headers()).url(PATH);
    match ca.authority.revocation_list(&revoked, &url, ca.now(), GOOD_FOR) {
        Ok(der) => ([(CONTENT_TYPE, "application/pkix-crl")], der).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot sign the list of revoked certificates");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
