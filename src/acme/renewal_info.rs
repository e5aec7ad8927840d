//! Renewal information (RFC 9773): the identifier of a certificate, and the window that a CA suggests.

use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::error::AcmeError;
use super::telling::NamedUrl;
use super::{Clients, TlsOptions, x509};
use crate::http::headers::retry_after;
use crate::model::renewal_info::RenewalInfo;

/// Answer of a CA to the question when a certificate is to be renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenewalAnswer {
    /// The CA offers no renewal information.
    NotOffered,
    /// The window that the CA suggests.
    Window(RenewalInfo),
    /// Nothing that can be used, with the reason.
    Nothing(String),
    /// Nothing now, with the reason: the CA has too much to do, or a fault of its own (§4.3.3).
    NotNow(String),
}

/// Reply of a CA about the renewal of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewalReply {
    /// URL that was requested; empty if the CA offers no renewal information.
    pub url: String,
    /// Answer.
    pub answer: RenewalAnswer,
    /// Pause before the next request; `None` if the CA names no pause.
    pub pause: Option<Duration>,
}

impl Clients {
    /// Asks a CA when the certificate with that identifier (§4.1) is to be renewed. Needs no account, spends nothing.
    ///
    /// # Errors
    /// Fails if the CA does not answer.
    pub async fn renewal_info(
        &self,
        server: &str,
        tls: &TlsOptions,
        certificate: &str,
    ) -> Result<RenewalReply, AcmeError> {
        let Some(base) = &self.directory(server, tls).await?.renewal_info else {
            let (url, answer) = (String::new(), RenewalAnswer::NotOffered);
            return Ok(RenewalReply { url, answer, pause: None });
        };
        let url = format!("{}/{certificate}", base.trim_end_matches('/'));
        let reply = self.reply(server, tls, NamedUrl { what: "renewalInfo", url: &url }).await?;
        let pause = retry_after(&reply.headers, Timestamp::now());
        let status = reply.status;
        let answer = if !status.is_success() {
            let why = format!("GET {url}: the CA answered {}", status.as_u16());
            let is_for_now = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
            if is_for_now { RenewalAnswer::NotNow(why) } else { RenewalAnswer::Nothing(why) }
        } else if let Some(info) = read(&reply.body) {
            RenewalAnswer::Window(info)
        } else {
            RenewalAnswer::Nothing(format!("GET {url}: no renewal information came"))
        };
        Ok(RenewalReply { url, answer, pause })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRenewalInfo {
    suggested_window: WireWindow,
    #[serde(default, rename = "explanationURL")]
    explanation: Option<String>,
}

#[derive(Deserialize)]
struct WireWindow {
    start: String,
    end: String,
}

/// Identifier of a certificate (DER) in URLs (§4.1); `None` if the certificate does not name its issuer's key.
pub fn identifier(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    x509::renewal_identifier(&certificate)
}

/// Reads the answer of a CA; `None` if it is no renewal information, or the window ends before it begins.
pub fn read(body: &[u8]) -> Option<RenewalInfo> {
    let wire: WireRenewalInfo = serde_json::from_slice(body).ok()?;
    let (start, end) =
        (wire.suggested_window.start.parse().ok()?, wire.suggested_window.end.parse().ok()?);
    (start < end).then(|| RenewalInfo {
        start,
        end,
        explanation: wire.explanation.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_read_and_one_that_is_none_is_not() {
        let body = br#"{"suggestedWindow": {"start": "2026-01-02T04:00:00Z", "end": "2026-01-03T04:00:00Z"}, "explanationURL": "https://ca.example/why"}"#;
        let read_one = read(body).unwrap();
        assert_eq!(read_one.explanation, "https://ca.example/why");
        assert_eq!(read_one.end.to_string(), "2026-01-03T04:00:00Z");
        for none in [
            &b"<html>"[..],
            b"{}",
            br#"{"suggestedWindow": {"start": "2026-01-03T04:00:00Z", "end": "2026-01-02T04:00:00Z"}}"#,
        ] {
            assert_eq!(read(none), None);
        }
    }

    #[test]
    fn a_certificate_is_called_by_the_key_of_its_issuer_and_its_number() {
        // The example of RFC 9773 §4.1.
        let pem = "-----BEGIN CERTIFICATE-----
MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt
cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS
BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu
7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf
qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B
yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb
+FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK
-----END CERTIFICATE-----
";
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        assert_eq!(identifier(&pem.contents).unwrap(), "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE");
    }
}
