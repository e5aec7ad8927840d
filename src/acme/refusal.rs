//! Errors made of answers of the CA.

use std::time::Duration;

use http::header::{LOCATION, RETRY_AFTER};
use jiff::Timestamp;
use url::Url;

use super::error::{AcmeError, ErrorSubject, says_paused, sort_problem};
use super::{headers, problem_document};
use crate::http::exchange::Reply;
use crate::http::headers::{retry_after, text};
use crate::model::Problem;

/// Shortest pause after a refusal, also if the CA asks for no pause at all, or for one in the past.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Pause before another try at a limit that does not state its end.
const LIMIT_PAUSE: Duration = Duration::from_mins(5);

/// Longest pause after a refusal: limits of public CAs end within a week, and a request for more is a mistake.
const PAUSE_MAX: Duration = Duration::from_hours(8 * 24);

/// Makes the error for an answer of status 400 and above.
pub(super) fn refused(reply: &Reply) -> AcmeError {
    let mut problem = problem_document::problem(reply.status.as_u16(), &reply.body);
    problem.instance = problem.instance.and_then(|page| page_of(&reply.url, &page));
    let is_of_terms = matches!(problem.short_kind(), "userActionRequired" | "agreementRequired");
    let terms = if is_of_terms { "terms-of-service" } else { "help" };
    let links = [terms, "help"].into_iter().flat_map(|word| headers::links(&reply.headers, word));
    problem.links = links.filter_map(|page| page_of(&reply.url, &page)).collect();
    AcmeError::Refused {
        retry_after: next_try(reply, &problem, reply.came),
        location: text(&reply.headers, &LOCATION).map(str::to_owned),
        problem: Box::new(problem),
    }
}

/// Returns the moment from which another try makes sense: the CA's, bounded by the shortest and the longest pause; our
/// own for a limit of which the CA gives no moment, or none that can be read.
fn next_try(reply: &Reply, problem: &Problem, now: Timestamp) -> Option<Timestamp> {
    let is_limit = sort_problem(problem) == ErrorSubject::RateLimited && reply.status == 429;
    let has_type = problem.short_kind() == "rateLimited";
    let pause = match retry_after(&reply.headers, now) {
        Some(pause) => pause.clamp(PAUSE_MIN, PAUSE_MAX),
        None if is_limit && reply.headers.contains_key(RETRY_AFTER) => LIMIT_PAUSE,
        // A gateway before the CA gives no ACME problem type, and its limit passes sooner.
        None if is_limit && has_type && !says_paused(problem) => LIMIT_PAUSE,
        None => return None,
    };
    now.checked_add(pause).ok()
}

/// Returns the URL of a page for the user; an answer may give the URL relative to its own.
fn page_of(answer: &Url, page: &str) -> Option<String> {
    match Url::parse(page) {
        Ok(_) => Some(page.to_owned()),
        Err(_) => answer.join(page).ok().map(|url| url.to_string()),
    }
}
