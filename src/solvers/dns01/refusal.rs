//! Refusals by a provider's API as data: the party at fault, by the HTTP status and the provider's code.

use http::StatusCode;

use super::api::ApiRefusal;
use crate::model::provider_refusal::{ProviderFault, ProviderRefusal, is_about_address};

/// Codes for unknown credentials: Cloudflare, AWS, and token services (RFC 6749 §5.2).
const CREDENTIAL_CODES: &[&str] = &[
    "6003",
    "6103",
    "6111",
    "9103",
    "9106",
    "9109",
    "10000",
    "10001",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidIdentityToken",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
    "InvalidAuthenticationToken",
    "InvalidAuthenticationTokenTenant",
    "ExpiredAuthenticationToken",
    "authError",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
];
/// Codes for a missing permission, whatever the status.
const PERMISSION_CODES: &[&str] = &[
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationFailed",
    "LinkedAuthorizationFailed",
    "forbidden",
    "insufficientPermissions",
];
/// Codes for a missing zone.
const NO_ZONE_CODES: &[&str] = &[
    "7003",
    "NoSuchHostedZone",
    "ParentResourceNotFound",
    "ResourceGroupNotFound",
    "SubscriptionNotFound",
    "InvalidSubscriptionId",
];
/// Codes that ask for patience under another status than 429.
const BUSY_CODES: &[&str] = &[
    "10429",
    "PriorRequestNotComplete",
    "RateLimitExceeded",
    "ServiceUnavailable",
    "TooManyRequests",
    "quotaExceeded",
    "rateLimitExceeded",
    "userRateLimitExceeded",
];

impl ApiRefusal {
    /// Returns the refusal as data. Callers add the name of the provider and the zone.
    pub(super) fn fact(&self) -> ProviderRefusal {
        ProviderRefusal {
            status: self.status.map(|status| status.as_u16()),
            code: self.code.clone(),
            ..ProviderRefusal::new(self.fault(), &*self.call, &*self.why)
        }
    }

    fn fault(&self) -> ProviderFault {
        let Some(status) = self.status else {
            let is_silent = self.is_silence;
            return if is_silent { ProviderFault::Unreachable } else { ProviderFault::Other };
        };
        let is_one_of = |codes: &[&str]| codes.contains(&self.code.as_str());
        if is_about_address(&self.why) {
            return ProviderFault::AddressRefused;
        }
        match status {
            _ if is_one_of(BUSY_CODES) || self.code.starts_with("Throttling") => {
                ProviderFault::Busy
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => ProviderFault::Busy,
            _ if status.is_server_error() => ProviderFault::Busy,
            _ if is_one_of(CREDENTIAL_CODES) => ProviderFault::Credentials,
            _ if is_one_of(PERMISSION_CODES) => ProviderFault::Permission,
            _ if is_one_of(NO_ZONE_CODES) => ProviderFault::NoZone,
            StatusCode::UNAUTHORIZED => ProviderFault::Credentials,
            StatusCode::FORBIDDEN => ProviderFault::Permission,
            StatusCode::NOT_FOUND => ProviderFault::NoZone,
            _ => ProviderFault::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, code: &str, why: &str, expected: ProviderFault) {
        let refusal = ApiRefusal {
            status: StatusCode::from_u16(status).ok(),
            code: code.to_owned(),
            ..ApiRefusal::unread(why)
        };
        assert_eq!(refusal.fact().fault, expected, "{status} {code} {why}");
    }

    #[test]
    fn who_is_at_fault_is_told_by_status_and_code() {
        use ProviderFault as Fault;
        check(400, "6003", "Invalid request headers", Fault::Credentials);
        check(403, "10000", "Authentication error", Fault::Credentials);
        let address = "Error: 9109: Cannot use the access token from location: 192.0.2.1";
        check(403, "9109", address, Fault::AddressRefused);
        check(403, "AccessDenied", "not authorized to perform", Fault::Permission);
        check(403, "SignatureDoesNotMatch", "", Fault::Credentials);
        check(404, "NoSuchHostedZone", "", Fault::NoZone);
        check(400, "Throttling", "Rate exceeded", Fault::Busy);
        check(400, "invalid_grant", "", Fault::Credentials);
        check(403, "rateLimitExceeded", "", Fault::Busy);
        check(429, "", "", Fault::Busy);
        check(502, "", "", Fault::Busy);
        check(401, "", "", Fault::Credentials);
        check(403, "", "", Fault::Permission);
        check(404, "", "", Fault::NoZone);
        check(422, "", "", Fault::Other);
    }

    #[test]
    fn a_server_that_says_nothing_is_not_one_that_says_nonsense() {
        let silent = ApiRefusal { is_silence: true, ..ApiRefusal::unread("no answer") };
        assert_eq!(silent.fact().fault, ProviderFault::Unreachable);
        assert_eq!(ApiRefusal::unread("no JSON").fact().fault, ProviderFault::Other);
    }
}
