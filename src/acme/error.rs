//! Which answers are final, which are worth another try, and when.

use jiff::Timestamp;

use crate::model::Problem;

/// What an obstacle is about; exit codes and hints follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
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
    /// The CA does not answer, or not usefully; it may pass.
    Unavailable,
    /// Anything else that the CA refuses.
    Other,
}

/// Says when another try helps.
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
            // Nothing is there, or nobody does it: whatever type a CA gives that (step-ca: `rejectedIdentifier`).
            (404 | 405 | 501, _) => Retry::Never,
            (429 | 500.., Some(at)) => Retry::At(*at),
            (429, None) if says_paused(problem) => Retry::Never,
            // A gateway before the CA speaks no ACME and names no moment.
            (408 | 425 | 429 | 500.., None) => Retry::Backoff,
            _ if matches!(problem.short_kind(), "badNonce" | "serverInternal") => Retry::Backoff,
            _ => Retry::Never,
        },
    }
}

/// Tells whether a limit is one that only a person lifts: the account is paused for a name, in Boulder's words or plainer ones.
/// Boulder sends no Retry-After with it; nor do other CAs with limits that pass.
pub fn says_paused(problem: &Problem) -> bool {
    let detail = problem.detail.to_ascii_lowercase();
    problem.short_kind() == "rateLimited"
        && ["temporarily prevented from", "paused", "unpause"].iter().any(|w| detail.contains(w))
}

/// Tells whether what was asked of a URL of the directory shows that nothing is there.
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

/// Says what an obstacle is about.
pub fn sort(error: &AcmeError) -> Sort {
    match error {
        AcmeError::Transport {
            fault: Fault::NoSuchHost | Fault::Unusable | Fault::Untrusted,
            ..
        }
        | AcmeError::NotAcme { .. } => Sort::Connection,
        AcmeError::Transport { fault: Fault::Lookup | Fault::Passing, .. }
        | AcmeError::NotYet { .. }
        | AcmeError::Protocol { .. } => Sort::Unavailable,
        AcmeError::NotOffered { .. } => Sort::Other,
        AcmeError::Refused { problem, .. } => match sort_problem(problem) {
            Sort::RateLimited if error.retry() == Retry::Never => Sort::Paused,
            sort => sort,
        },
    }
}

/// Says what a problem is about; `invalidEmail` is older Boulder's word for `invalidContact`. Whether a limit is a pause shows only in the answer: see [`sort`].
pub fn sort_problem(problem: &Problem) -> Sort {
    match (problem.short_kind(), problem.status) {
        // What a CA does not do says nothing of what was sent, whatever its type.
        (_, 501) => Sort::Unavailable,
        (_, 405) => Sort::Other,
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
        ) => Sort::Account,
        ("rateLimited", _) => Sort::RateLimited,
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
        ) => Sort::Identifier,
        ("malformed", _) if problem.is_of_name() => Sort::Identifier,
        ("invalidProfile", _) => Sort::Profile,
        ("badCSR", _) => Sort::SigningRequest,
        ("orderNotReady", _) => Sort::OrderState,
        ("alreadyReplaced", _) => Sort::Replaced,
        (_, 404) => Sort::Gone,
        (_, 429) => Sort::RateLimited,
        ("badNonce" | "serverInternal", _) | (_, 408 | 425 | 500..) => Sort::Unavailable,
        _ => Sort::Other,
    }
}

/// When another try helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not before something changes.
    Never,
    /// Soon, with growing pauses.
    Backoff,
    /// At that moment, which the CA named.
    At(Timestamp),
}

/// Why a request to the CA brought nothing.
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
        /// What was tried, such as `read`.
        deed: &'static str,
        /// URL.
        url: String,
        /// The whole chain of causes in one line.
        why: String,
        /// What kind of fault it is.
        fault: Fault,
    },
    /// An answer that no CA should give and that another try does not change: what the server URL leads to is no ACME directory,
    /// or newAccount names no account.
    #[error("the answer of {url} is no ACME: {why}")]
    NotAcme {
        /// URL.
        url: String,
        /// What is there.
        why: String,
    },
    /// The directory names no URL for what was wanted, which RFC 8555 §7.1.1 lets a CA leave out.
    #[error("the CA at {server} offers no {what}: its directory does not name it")]
    NotOffered {
        /// URL of the directory.
        server: String,
        /// Name in the directory, such as `keyChange`.
        what: &'static str,
    },
    /// The CA does not have yet what it has named or promised itself; it comes by itself.
    #[error("{url} is not there yet: {why}")]
    NotYet {
        /// URL.
        url: String,
        /// What the CA answers in its place.
        why: String,
        /// Not before this moment does the CA want to be asked again, if it says so.
        retry_after: Option<Timestamp>,
    },
    /// An answer that no CA should give, although the next one may be good: not JSON, missing headers, foreign URLs, too large.
    #[error("the answer of {url} is no ACME: {why}")]
    Protocol {
        /// URL.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Sorts of transport faults: some only a person can remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The host has no address.
    NoSuchHost,
    /// The URL is none that can be asked.
    Unusable,
    /// Nobody could say which address the host has.
    Lookup,
    /// The server's certificate is not trusted.
    Untrusted,
    /// Everything that may pass by itself.
    Passing,
}

impl AcmeError {
    /// Says when another try helps.
    pub fn retry(&self) -> Retry {
        retry(self)
    }

    /// Says what the obstacle is about.
    pub fn sort(&self) -> Sort {
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

    fn check(status: u16, kind: &str, retry_after: Option<&str>, retry: Retry, sort: Sort) {
        let error = refused(status, kind, retry_after);
        assert_eq!((error.retry(), error.sort()), (retry, sort), "{status} {kind}");
    }

    #[test]
    fn limits_wait_and_pauses_need_a_person() {
        let at = "2026-11-20T12:00:00Z";
        let moment = Retry::At(at.parse().unwrap());
        check(429, "rateLimited", Some(at), moment, Sort::RateLimited);
        check(429, "rateLimited", None, Retry::Backoff, Sort::RateLimited);
        let paused = "rateLimited: Your account is temporarily prevented from requesting certificates for a.example";
        check(429, paused, None, Retry::Never, Sort::Paused);
        check(429, paused, Some(at), moment, Sort::RateLimited);
        check(429, "", None, Retry::Backoff, Sort::RateLimited);
        check(429, "", Some(at), moment, Sort::RateLimited);
        check(503, "", Some(at), moment, Sort::Unavailable);
        check(503, "rateLimited", None, Retry::Backoff, Sort::RateLimited);
        check(500, "serverInternal", Some(at), moment, Sort::Unavailable);
        check(502, "", None, Retry::Backoff, Sort::Unavailable);
        check(400, "serverInternal", None, Retry::Backoff, Sort::Unavailable);
        check(400, "badNonce", None, Retry::Backoff, Sort::Unavailable);
    }

    #[test]
    fn refusals_are_final_and_sorted() {
        for (status, kind, sort) in [
            (400, "accountDoesNotExist", Sort::Account),
            (403, "userActionRequired", Sort::Account),
            (403, "externalAccountRequired", Sort::Account),
            (400, "invalidContact", Sort::Account),
            (400, "invalidEmail", Sort::Account),
            (400, "unsupportedContact", Sort::Account),
            (400, "badPublicKey", Sort::Account),
            (400, "badSignatureAlgorithm", Sort::Account),
            (401, "unauthorized", Sort::Account),
            (403, "unauthorized", Sort::Account),
            (400, "compound", Sort::Identifier),
            (400, "dns", Sort::Identifier),
            (400, "rejectedIdentifier", Sort::Identifier),
            (403, "caa", Sort::Identifier),
            (400, "invalidProfile", Sort::Profile),
            (400, "badCSR", Sort::SigningRequest),
            (403, "orderNotReady", Sort::OrderState),
            (409, "alreadyReplaced", Sort::Replaced),
            (404, "", Sort::Gone),
            (404, "malformed", Sort::Gone),
            (404, "serverInternal", Sort::Gone),
            (501, "rejectedIdentifier", Sort::Unavailable),
            (501, "serverInternal", Sort::Unavailable),
            (405, "rejectedIdentifier", Sort::Other),
            (405, "malformed", Sort::Other),
            (400, "malformed", Sort::Other),
            (409, "conflict", Sort::Other),
        ] {
            check(status, kind, None, Retry::Never, sort);
        }
    }

    #[test]
    fn a_lost_connection_may_pass_and_a_missing_host_does_not() {
        for (fault, retry, sort) in [
            (Fault::NoSuchHost, Retry::Never, Sort::Connection),
            (Fault::Unusable, Retry::Never, Sort::Connection),
            (Fault::Untrusted, Retry::Never, Sort::Connection),
            (Fault::Lookup, Retry::Backoff, Sort::Unavailable),
            (Fault::Passing, Retry::Backoff, Sort::Unavailable),
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
