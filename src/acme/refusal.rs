//! The error that an answer of the CA is.

use std::time::Duration;

use http::header::{LOCATION, RETRY_AFTER};
use jiff::Timestamp;
use url::Url;

use super::error::{AcmeError, Sort, says_paused, sort_problem};
use super::{headers, problem_document};
use crate::http::exchange::Reply;
use crate::http::headers::{retry_after, text};
use crate::model::Problem;

/// What we leave a CA that has refused and asks for no pause at all, or for one in the past.
const SHORTEST: Duration = Duration::from_secs(1);

/// The pause before a limit is tried again that does not say when it ends.
const USUAL: Duration = Duration::from_mins(5);

/// The longest pause after a refusal: limits of public CAs end within a week, and what asks for more is a mistake.
const LONGEST: Duration = Duration::from_hours(8 * 24);

/// The error that an answer of status 400 and above is.
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

/// The moment from which another try makes sense: that of the answer, not sooner than in a second and not later than in the longest
/// pause that a CA can mean; our own for a limit that names none, or none that can be read.
fn next_try(reply: &Reply, problem: &Problem, now: Timestamp) -> Option<Timestamp> {
    let is_limit = sort_problem(problem) == Sort::RateLimited && reply.status == 429;
    let has_type = problem.short_kind() == "rateLimited";
    let pause = match retry_after(&reply.headers, now) {
        Some(pause) => pause.clamp(SHORTEST, LONGEST),
        None if is_limit && reply.headers.contains_key(RETRY_AFTER) => USUAL,
        // A gateway before the CA speaks no ACME, and its limit passes sooner.
        None if is_limit && has_type && !says_paused(problem) => USUAL,
        None => return None,
    };
    now.checked_add(pause).ok()
}

/// The address of a page for the user, which may stand in an answer as a part of one.
fn page_of(answer: &Url, page: &str) -> Option<String> {
    match Url::parse(page) {
        Ok(_) => Some(page.to_owned()),
        Err(_) => answer.join(page).ok().map(|url| url.to_string()),
    }
}
