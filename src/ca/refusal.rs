//! Refusals: the problem documents of RFC 8555 §6.7, in Boulder's words if Boulder has words for the case.

use std::fmt::Display;

use axum::Json;
use axum::http::header::{ALLOW, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::dns::{LookupError, LookupFailure};
use crate::model::Identifier;

/// Error types (RFC 8555 §6.7); `alreadyReplaced` is that of RFC 9773, `conflict` Boulder's, `invalidProfile` the profiles draft's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    AccountDoesNotExist,
    AlreadyReplaced,
    AlreadyRevoked,
    BadCsr,
    BadNonce,
    BadPublicKey,
    BadRevocationReason,
    BadSignatureAlgorithm,
    Caa,
    Conflict,
    Connection,
    Dns,
    ExternalAccountRequired,
    InvalidContact,
    InvalidProfile,
    Malformed,
    OrderNotReady,
    RejectedIdentifier,
    ServerInternal,
    Tls,
    Unauthorized,
    UnsupportedContact,
    UnsupportedIdentifier,
}

impl Kind {
    /// Returns the last part of the error type.
    fn name(self) -> &'static str {
        match self {
            Self::AccountDoesNotExist => "accountDoesNotExist",
            Self::AlreadyReplaced => "alreadyReplaced",
            Self::AlreadyRevoked => "alreadyRevoked",
            Self::BadCsr => "badCSR",
            Self::BadNonce => "badNonce",
            Self::BadPublicKey => "badPublicKey",
            Self::BadRevocationReason => "badRevocationReason",
            Self::BadSignatureAlgorithm => "badSignatureAlgorithm",
            Self::Caa => "caa",
            Self::Conflict => "conflict",
            Self::Connection => "connection",
            Self::Dns => "dns",
            Self::ExternalAccountRequired => "externalAccountRequired",
            Self::InvalidContact => "invalidContact",
            Self::InvalidProfile => "invalidProfile",
            Self::Malformed => "malformed",
            Self::OrderNotReady => "orderNotReady",
            Self::RejectedIdentifier => "rejectedIdentifier",
            Self::ServerInternal => "serverInternal",
            Self::Tls => "tls",
            Self::Unauthorized => "unauthorized",
            Self::UnsupportedContact => "unsupportedContact",
            Self::UnsupportedIdentifier => "unsupportedIdentifier",
        }
    }

    /// Returns the HTTP status that Boulder sends with the error type.
    fn status(self) -> StatusCode {
        match self {
            Self::Caa
            | Self::ExternalAccountRequired
            | Self::OrderNotReady
            | Self::Unauthorized => StatusCode::FORBIDDEN,
            Self::AlreadyReplaced | Self::Conflict => StatusCode::CONFLICT,
            Self::ServerInternal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::AccountDoesNotExist
            | Self::AlreadyRevoked
            | Self::BadCsr
            | Self::BadNonce
            | Self::BadPublicKey
            | Self::BadRevocationReason
            | Self::BadSignatureAlgorithm
            | Self::Connection
            | Self::Dns
            | Self::InvalidContact
            | Self::InvalidProfile
            | Self::Malformed
            | Self::RejectedIdentifier
            | Self::Tls
            | Self::UnsupportedContact
            | Self::UnsupportedIdentifier => StatusCode::BAD_REQUEST,
        }
    }

    fn urn(self) -> String {
        format!("urn:ietf:params:acme:error:{}", self.name())
    }
}

/// Refusal, sent in place of an answer, or kept as the error of a challenge.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) kind: Kind,
    status: StatusCode,
    detail: String,
    subproblems: Vec<Value>,
    algorithms: &'static [&'static str],
    headers: Vec<(HeaderName, String)>,
}

impl Refusal {
    /// Builds a refusal with a type and a sentence for people.
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            status: kind.status(),
            detail: detail.into(),
            subproblems: Vec::new(),
            algorithms: &[],
            headers: Vec::new(),
        }
    }

    /// Builds the most common refusal: the request does not follow the protocol.
    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(Kind::Malformed, detail)
    }

    /// Builds the refusal for an object that does not exist.
    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, ..Self::malformed(detail) }
    }

    /// Builds the refusal for a method that the object does not take.
    pub(super) fn method_not_allowed(allowed: &str) -> Self {
        Self { status: StatusCode::METHOD_NOT_ALLOWED, ..Self::malformed("Method not allowed") }
            .with_header(ALLOW, allowed)
    }

    /// Builds the refusal for a failure of the CA itself; the cause is logged, not sent.
    pub(super) fn internal(error: &dyn Display) -> Self {
        tracing::error!(%error, "the rehearsal CA failed");
        Self::new(Kind::ServerInternal, "The rehearsal CA failed; its log says why")
    }

    /// Adds the signature algorithms that the CA takes (§6.2).
    pub(super) fn with_algorithms(self, algorithms: &'static [&'static str]) -> Self {
        Self { algorithms, ..self }
    }

    /// Adds the URL of another object.
    pub(super) fn with_location(self, url: &str) -> Self {
        self.with_header(LOCATION, url)
    }

    /// Adds the part of the refusal that one identifier causes (§6.7.1).
    pub(super) fn with_subproblem(
        mut self,
        kind: Kind,
        detail: &str,
        (identifier_type, value): (&str, &str),
    ) -> Self {
        self.subproblems.push(json!({
            "type": kind.urn(),
            "detail": detail,
            "status": kind.status().as_u16(),
            "identifier": { "type": identifier_type, "value": value },
        }));
        self
    }

    /// Returns the sentence for people.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the problem document.
    pub(super) fn document(&self) -> Value {
        let mut document = json!({
            "type": self.kind.urn(),
            "detail": self.detail,
            "status": self.status.as_u16(),
        });
        if !self.subproblems.is_empty() {
            document["subproblems"] = self.subproblems.clone().into();
        }
        if !self.algorithms.is_empty() {
            document["algorithms"] = json!(self.algorithms);
        }
        document
    }

    fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.document())).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.append(name, value);
            }
        }
        response
    }
}

/// Returns an identifier as RFC 8555 §7.1.3 writes identifiers.
pub(super) fn identifier_json(identifier: &Identifier) -> Value {
    json!({ "type": identifier.type_name(), "value": identifier.to_string() })
}

/// Describes a failed lookup, in Boulder's words.
pub(crate) fn dns_problem(kind: &str, name: &str, error: &LookupError) -> String {
    match error {
        LookupError::NoSuchName { .. } | LookupError::NoSuchTarget { .. } => format!(
            "DNS problem: NXDOMAIN looking up {kind} for {name} - check that a DNS record exists for this domain"
        ),
        // A CA reports the name of its question, not the target of the name's aliases.
        LookupError::Failed { why: LookupFailure::Answered { code, .. }, .. } => format!(
            "DNS problem: {code} looking up {kind} for {name} - the domain's nameservers may be malfunctioning"
        ),
        LookupError::Failed { why, .. } => {
            format!("DNS problem: {why} looking up {kind} for {name}")
        }
        other => format!("DNS problem: {other}"),
    }
}

pub(crate) fn dns_detail(error: &LookupError) -> String {
    match error {
        LookupError::NoSuchName { name } | LookupError::NoSuchTarget { name, .. } => format!(
            "DNS problem: NXDOMAIN looking up A for {name} - check that a DNS record exists for this domain; \
             DNS problem: NXDOMAIN looking up AAAA for {name} - check that a DNS record exists for this domain"
        ),
        LookupError::NoAddress { name } => {
            format!("no valid A records found for {name}; no valid AAAA records found for {name}")
        }
        LookupError::Failed { name, why } => {
            format!("DNS problem: {why} looking up A or AAAA for {name}")
        }
        other => format!("DNS problem: {other}"),
    }
}
