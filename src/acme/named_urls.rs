//! URLs that a CA has named lately: a replica of its store that lags answers 404 for them, and has them a moment later.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::error::AcmeError;

/// How long after a URL was named a 404 for it is no answer.
const LAG_MAX: SignedDuration = SignedDuration::from_secs(30);
/// How long it is known when a URL was named first: no order of a public CA lives longer.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(8 * 24);
/// So many are kept at most; a URL beyond them is believed to be gone at its first 404.
const KEPT_MAX: usize = 50_000;

/// When each URL was named first.
#[derive(Debug, Default)]
pub(super) struct NamedUrls(Mutex<HashMap<String, Timestamp>>);

impl NamedUrls {
    /// Notes URLs of an answer; the first time counts.
    pub(super) fn note<'a>(&self, urls: impl IntoIterator<Item = &'a str>, now: Timestamp) {
        let mut named = self.0.lock();
        for url in urls {
            if url.is_empty() || named.contains_key(url) {
                continue;
            }
            if named.len() >= KEPT_MAX {
                named.retain(|_, at| now.duration_since(*at) < KEPT_FOR);
            }
            if named.len() < KEPT_MAX {
                named.insert(url.to_owned(), now);
            }
        }
    }

    fn is_new(&self, url: &str, now: Timestamp) -> bool {
        self.0.lock().get(url).is_some_and(|at| now.duration_since(*at) <= LAG_MAX)
    }

    /// Makes of a refusal what it means: a 404 for what was named a moment ago, or of an account that was made then, passes.
    pub(super) fn judge(
        &self,
        error: AcmeError,
        url: &str,
        account: Option<&str>,
        now: Timestamp,
    ) -> AcmeError {
        let Some(problem) = error.problem().filter(|problem| problem.status == 404) else {
            return error;
        };
        let says_account = problem.detail.to_ascii_lowercase().contains("account");
        let account = account.filter(|account| says_account && self.is_new(account, now));
        let Some(lacking) = Some(url).filter(|url| self.is_new(url, now)).or(account) else {
            return error;
        };
        let said = if problem.detail.is_empty() { "nothing more" } else { &problem.detail };
        let why = format!("the CA has named it a moment ago, and answers HTTP 404: {said}");
        AcmeError::NotYet { url: lacking.to_owned(), why, retry_after: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::error::Retry;
    use crate::model::Problem;

    fn refused(status: u16, detail: &str) -> AcmeError {
        let problem = Problem { status, detail: detail.to_owned(), ..Problem::default() };
        AcmeError::Refused { problem: Box::new(problem), retry_after: None, location: None }
    }

    #[test]
    fn a_404_for_what_was_named_half_a_minute_ago_passes() {
        let named = NamedUrls::default();
        let start: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let at = |seconds: i64| start + SignedDuration::from_secs(seconds);
        named.note(["https://ca/order/1", "", "https://ca/acct/1"], at(0));
        // The first time counts, however often it is named.
        named.note(["https://ca/order/1"], at(29));
        let account = Some("https://ca/acct/1");
        let check = |status, detail, url, seconds, expected| {
            let judged = named.judge(refused(status, detail), url, account, at(seconds));
            assert_eq!(judged.retry(), expected, "{status} {detail} {url} {seconds}: {judged}");
        };
        let (passes, ends) = (Retry::Backoff, Retry::Never);
        check(404, "No order for ID 42", "https://ca/order/1", 1, passes);
        check(404, "", "https://ca/order/1", 30, passes);
        check(404, "No order for ID 42", "https://ca/order/1", 31, ends);
        check(410, "", "https://ca/order/1", 1, ends);
        check(403, "No such order", "https://ca/order/1", 1, ends);
        check(404, "No such order", "https://ca/order/2", 1, ends);
        check(404, "", "", 1, ends);
        check(404, "Account not found", "https://ca/new-order", 1, passes);
        check(404, "Account not found", "https://ca/new-order", 31, ends);
        check(404, "not found", "https://ca/new-order", 1, ends);
    }
}
