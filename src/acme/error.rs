//! Errors of ACME requests: which are final, which are worth another try, and when.

use jiff::Timestamp;

use crate::model::Problem;

/// Subject of an error; exit codes and hints follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorSubject {
    /// Account, external account binding or terms of service.
    Account,
    /// A limit that time removes.
    RateLimited,
    /// A limit that a person removes: the page stands in the problem's text.
    Paused,
    /// A name the CA will not certify, or could not validate.
    Identifier,
    /// The profile.
    Profile,
    /// The signing request, or its key.
    SigningRequest,
    /// An order that cannot take this step now: read it again.
    OrderState,
    /// `replaces` is used up: order again without it.
    Replaced,
    /// The CA no longer knows the order, the authorization or the certificate.
    Gone,
    /// The CA's host does not exist, is not trusted, or is no CA's.
    Connection,
    /// The CA gives no usable answer; the fault may pass.
    Unavailable,
    /// Anything else that the CA refuses.
    Other,
}

/// Returns when another try helps.
pub fn retry(error: &AcmeError) -> Retry {
    match error {
        AcmeError::Transport {
            fault: Fault::NoSuchHost | Fault::Unusable | Fault::Untrusted,
            ..
        }
        | AcmeError::NotAcme { .. }
        | AcmeError::NotOffered { .. } => Retry::Never,
        AcmeError::NotYet { retry_after: Some(at), .. } => Retry::At(*at),
        AcmeError::Transport { fault: Fault::Lookup | Fault::Passing, .. }
        | AcmeError::NotYet { retry_after: None, .. }
        | AcmeError::Protocol { .. } => Retry::Backoff,
        AcmeError::Refused { problem, retry_after, .. } => match (problem.status, retry_after) {
            // No such resource or function, whatever type the CA gives the problem (step-ca: `rejectedIdentifier`).
            (404 | 405 | 501, _) => Retry::Never,
            (429 | 500.., Some(at)) => Retry::At(*at),
            (429, None) if says_paused(problem) => Retry::Never,
            // A gateway before the CA sends no ACME problem and names no moment.
            (408 | 425 | 429 | 500.., None) => Retry::Backoff,
            _ if matches!(problem.short_kind(), "badNonce" | "serverInternal") => Retry::Backoff,
            _ => Retry::Never,
        },
    }
}

/// Returns whether only a person can lift a limit: the account is paused for a name, in Boulder's words or plainer
/// ones. Boulder sends no Retry-After with a pause; nor do other CAs with limits that pass.
pub fn says_paused(problem: &Problem) -> bool {
    let detail = problem.detail.to_ascii_lowercase();
    problem.short_kind() == "rateLimited"
        && ["temporarily prevented from", "paused", "unpause"].iter().any(|w| detail.contains(w))
}

/// Returns whether the error of a request to a URL of the directory shows that the URL is gone.
pub fn is_nowhere(error: &AcmeError) -> bool {
    match error {
        AcmeError::Refused { problem, .. } => matches!(problem.status, 404 | 405 | 410),
        AcmeError::Transport { fault, .. } => {
            matches!(fault, Fault::NoSuchHost | Fault::Unusable | Fault::Untrusted)
        }
        AcmeError::NotAcme { .. }
        | AcmeError::NotOffered { .. }
        | AcmeError::NotYet { .. }
        | AcmeError::Protocol { .. } => false,
    }
}

/// Returns the subject of an error.
pub fn sort(error: &AcmeError) -> ErrorSubject {
    match error {
        AcmeError::Transport {
            fault: Fault::NoSuchHost | Fault::Unusable | Fault::Untrusted,
            ..
        }
        | AcmeError::NotAcme { .. } => ErrorSubject::Connection,
        AcmeError::Transport { fault: Fault::Lookup | Fault::Passing, .. }
        | AcmeError::NotYet { .. }
        | AcmeError::Protocol { .. } => ErrorSubject::Unavailable,
        AcmeError::NotOffered { .. } => ErrorSubject::Other,
        AcmeError::Refused { problem, .. } => match sort_problem(problem) {
            ErrorSubject::RateLimited if error.retry() == Retry::Never => ErrorSubject::Paused,
            sort => sort,
        },
    }
}

/// Returns a problem's subject; `invalidEmail` is older Boulder's `invalidContact`. Only [`sort`] can see a pause.
pub fn sort_problem(problem: &Problem) -> ErrorSubject {
    match (problem.short_kind(), problem.status) {
        // A function that the CA lacks says nothing of the data sent, whatever the problem's type.
        (_, 501) => ErrorSubject::Unavailable,
        (_, 405) => ErrorSubject::Other,
        // Unauthorized is a deactivated account, or a key that is not the account's (RFC 8555 §7.3.6).
        (
            "accountDoesNotExist"
            | "badPublicKey"
            | "badSignatureAlgorithm"
            | "externalAccountRequired"
            | "invalidContact"
            | "invalidEmail"
            | "unauthorized"
            | "unsupportedContact"
            | "userActionRequired"
            | "agreementRequired",
            _,
        ) => ErrorSubject::Account,
        ("rateLimited", _) => ErrorSubject::RateLimited,
        (
            "caa"
            | "compound"
            | "connection"
            | "dns"
            | "incorrectResponse"
            | "rejectedIdentifier"
            | "tls"
            | "unsupportedIdentifier",
            _,
        ) => ErrorSubject::Identifier,
        ("malformed", _) if problem.is_of_name() => ErrorSubject::Identifier,
        ("invalidProfile", _) => ErrorSubject::Profile,
        ("badCSR", _) => ErrorSubject::SigningRequest,
        ("orderNotReady", _) => ErrorSubject::OrderState,
        ("alreadyReplaced", _) => ErrorSubject::Replaced,
        (_, 404) => ErrorSubject::Gone,
        (_, 429) => ErrorSubject::RateLimited,
        ("badNonce" | "serverInternal", _) | (_, 408 | 425 | 500..) => ErrorSubject::Unavailable,
        _ => ErrorSubject::Other,
    }
}

/// Time at which another try helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not before something changes.
    Never,
    /// Soon, with growing pauses.
    Backoff,
    /// At that moment, which the CA named.
    At(Timestamp),
}

/// Error of a request to the CA.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AcmeError {
    /// The CA answered with an error.
    #[error("{problem}")]
    Refused {
        /// The problem, its `status` always filled in; an answer without a problem document keeps up to 200
        /// characters of its body as detail.
        problem: Box<Problem>,
        /// `Retry-After` of the answer.
        retry_after: Option<Timestamp>,
        /// `Location` of the answer, such as the account in a key-change conflict.
        location: Option<String>,
    },
    /// No answer: name resolution, connection, TLS, time-out, or a cut answer.
    #[error("cannot {deed} {url}: {why}")]
    Transport {
        /// Action that was tried, such as `read`.
        deed: &'static str,
        /// URL.
        url: String,
        /// The whole chain of causes in one line.
        why: String,
        /// Kind of fault.
        fault: Fault,
    },
    /// An answer that no CA should give and that another try does not change: no ACME directory at the server URL, or
    /// newAccount without the URL of an account.
    #[error("the answer of {url} is no ACME: {why}")]
    NotAcme {
        /// URL.
        url: String,
        /// Reason.
        why: String,
    },
    /// The directory names no URL for the wanted function, which RFC 8555 §7.1.1 lets a CA leave out.
    #[error("the CA at {server} offers no {what}: its directory does not name it")]
    NotOffered {
        /// URL of the directory.
        server: String,
        /// Name in the directory, such as `keyChange`.
        what: &'static str,
    },
    /// A resource that the CA itself has named or promised is not there yet; it comes by itself.
    #[error("{url} is not there yet: {why}")]
    NotYet {
        /// URL.
        url: String,
        /// Answer of the CA in place of the resource.
        why: String,
        /// Moment before which the CA wants no other request, if the CA names a moment.
        retry_after: Option<Timestamp>,
    },
    /// An answer that no CA should give, although the next one may be good: not JSON, missing headers, foreign URLs, too large.
    #[error("the answer of {url} is no ACME: {why}")]
    Protocol {
        /// URL.
        url: String,
        /// Reason.
        why: String,
    },
}

/// Kind of transport fault: some kinds only a person can remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The host has no address.
    NoSuchHost,
    /// The URL cannot be requested.
    Unusable,
    /// The lookup of the host's address failed.
    Lookup,
    /// The server's certificate is not trusted.
    Untrusted,
    /// Any other fault, which may pass by itself.
    Passing,
}

impl AcmeError {
    /// Returns when another try helps.
    pub fn retry(&self) -> Retry {
        retry(self)
    }

    /// Returns the subject of the error.
    pub fn sort(&self) -> ErrorSubject {
        sort(self)
    }

    /// The CA's problem, if it answered.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            Self::Transport { .. }
            | Self::NotAcme { .. }
            | Self::NotOffered { .. }
            | Self::NotYet { .. }
            | Self::Protocol { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, kind: &str, retry_after: Option<&str>) -> AcmeError {
        let (kind, detail) = kind.split_once(": ").unwrap_or((kind, ""));
        let detail = detail.to_owned();
        let kind = if kind.is_empty() { String::new() } else { format!("urn:x:{kind}") };
        AcmeError::Refused {
            problem: Box::new(Problem { kind, detail, status, ..Problem::default() }),
            retry_after: retry_after.map(|t| t.parse().unwrap()),
            location: None,
        }
    }

    fn check(status: u16, kind: &str, retry_after: Option<&str>, retry: Retry, sort: ErrorSubject) {
        let error = refused(status, kind, retry_after);
        assert_eq!((error.retry(), error.sort()), (retry, sort), "{status} {kind}");
    }

    #[test]
    fn limits_wait_and_pauses_need_a_person() {
        let at = "2026-11-20T12:00:00Z";
        let moment = Retry::At(at.parse().unwrap());
        check(429, "rateLimited", Some(at), moment, ErrorSubject::RateLimited);
        check(429, "rateLimited", None, Retry::Backoff, ErrorSubject::RateLimited);
        let paused = "rateLimited: Your account is temporarily prevented from requesting certificates for a.example";
        check(429, paused, None, Retry::Never, ErrorSubject::Paused);
        check(429, paused, Some(at), moment, ErrorSubject::RateLimited);
        check(429, "", None, Retry::Backoff, ErrorSubject::RateLimited);
        check(429, "", Some(at), moment, ErrorSubject::RateLimited);
        check(503, "", Some(at), moment, ErrorSubject::Unavailable);
        check(503, "rateLimited", None, Retry::Backoff, ErrorSubject::RateLimited);
        check(500, "serverInternal", Some(at), moment, ErrorSubject::Unavailable);
        check(502, "", None, Retry::Backoff, ErrorSubject::Unavailable);
        check(400, "serverInternal", None, Retry::Backoff, ErrorSubject::Unavailable);
        check(400, "badNonce", None, Retry::Backoff, ErrorSubject::Unavailable);
    }

    #[test]
    fn refusals_are_final_and_sorted() {
        for (status, kind, sort) in [
            (400, "accountDoesNotExist", ErrorSubject::Account),
            (403, "userActionRequired", ErrorSubject::Account),
            (403, "externalAccountRequired", ErrorSubject::Account),
            (400, "invalidContact", ErrorSubject::Account),
            (400, "invalidEmail", ErrorSubject::Account),
            (400, "unsupportedContact", ErrorSubject::Account),
            (400, "badPublicKey", ErrorSubject::Account),
            (400, "badSignatureAlgorithm", ErrorSubject::Account),
            (401, "unauthorized", ErrorSubject::Account),
            (403, "unauthorized", ErrorSubject::Account),
            (400, "compound", ErrorSubject::Identifier),
            (400, "dns", ErrorSubject::Identifier),
            (400, "rejectedIdentifier", ErrorSubject::Identifier),
            (403, "caa", ErrorSubject::Identifier),
            (400, "invalidProfile", ErrorSubject::Profile),
            (400, "badCSR", ErrorSubject::SigningRequest),
            (403, "orderNotReady", ErrorSubject::OrderState),
            (409, "alreadyReplaced", ErrorSubject::Replaced),
            (404, "", ErrorSubject::Gone),
            (404, "malformed", ErrorSubject::Gone),
            (404, "serverInternal", ErrorSubject::Gone),
            (501, "rejectedIdentifier", ErrorSubject::Unavailable),
            (501, "serverInternal", ErrorSubject::Unavailable),
            (405, "rejectedIdentifier", ErrorSubject::Other),
            (405, "malformed", ErrorSubject::Other),
            (400, "malformed", ErrorSubject::Other),
            (409, "conflict", ErrorSubject::Other),
        ] {
            check(status, kind, None, Retry::Never, sort);
        }
    }

    #[test]
    fn a_lost_connection_may_pass_and_a_missing_host_does_not() {
        for (fault, retry, sort) in [
            (Fault::NoSuchHost, Retry::Never, ErrorSubject::Connection),
            (Fault::Unusable, Retry::Never, ErrorSubject::Connection),
            (Fault::Untrusted, Retry::Never, ErrorSubject::Connection),
            (Fault::Lookup, Retry::Backoff, ErrorSubject::Unavailable),
            (Fault::Passing, Retry::Backoff, ErrorSubject::Unavailable),
        ] {
            let error = AcmeError::Transport {
                deed: "read",
                url: String::new(),
                why: String::new(),
                fault,
            };
            assert_eq!((error.retry(), error.sort()), (retry, sort));
        }
    }
}
