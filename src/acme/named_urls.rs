//! URLs that a CA has named lately: a replica of its store that lags answers 404 for them, and has them a moment later. Time is that of
//! this process, so that a clock that is set back, or stands still, makes no 404 last.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use super::error::AcmeError;

/// How long after a URL was named a 404 for it is no answer.
const LAG_MAX: Duration = Duration::from_secs(30);
/// How long it is known when a URL was named first: no order of a public CA lives longer.
const KEPT_FOR: Duration = Duration::from_hours(8 * 24);
/// So many are kept at most; a URL beyond them is believed to be gone at its first 404.
const KEPT_MAX: usize = 50_000;

/// When each URL was named first.
#[derive(Debug, Default)]
pub(super) struct NamedUrls(Mutex<HashMap<String, Instant>>);

impl NamedUrls {
    /// Notes URLs of an answer; the first time counts.
    pub(super) fn note<'a>(&self, urls: impl IntoIterator<Item = &'a str>) {
        let now = Instant::now();
        let mut named = self.0.lock();
        for url in urls {
            if url.is_empty() || named.contains_key(url) {
                continue;
            }
            if named.len() >= KEPT_MAX {
                named.retain(|_, at| now - *at < KEPT_FOR);
            }
            if named.len() < KEPT_MAX {
                named.insert(url.to_owned(), now);
            }
        }
    }

    fn is_new(&self, url: &str) -> bool {
        self.0.lock().get(url).is_some_and(|at| at.elapsed() <= LAG_MAX)
    }

    /// Makes of a refusal what it means: a 404 for what was named a moment ago, or of an account that was made then, passes.
    pub(super) fn judge(&self, error: AcmeError, url: &str, account: Option<&str>) -> AcmeError {
        let Some(problem) = error.problem().filter(|problem| problem.status == 404) else {
            return error;
        };
        let says_account = problem.detail.to_ascii_lowercase().contains("account");
        let account = account.filter(|account| says_account && self.is_new(account));
        let Some(lacking) = Some(url).filter(|url| self.is_new(url)).or(account) else {
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

    #[tokio::test(start_paused = true)]
    async fn a_404_for_what_was_named_half_a_minute_ago_passes() {
        let named = NamedUrls::default();
        named.note(["https://ca/order/1", "", "https://ca/acct/1"]);
        let account = Some("https://ca/acct/1");
        let check = |status, detail, url, expected| {
            let judged = named.judge(refused(status, detail), url, account);
            assert_eq!(judged.retry(), expected, "{status} {detail} {url}: {judged}");
        };
        let (passes, ends) = (Retry::Backoff, Retry::Never);
        check(404, "No order for ID 42", "https://ca/order/1", passes);
        check(410, "", "https://ca/order/1", ends);
        check(403, "No such order", "https://ca/order/1", ends);
        check(404, "No such order", "https://ca/order/2", ends);
        check(404, "", "", ends);
        check(404, "Account not found", "https://ca/new-order", passes);
        check(404, "not found", "https://ca/new-order", ends);
        tokio::time::advance(LAG_MAX).await;
        // The first time counts, however often it is named.
        named.note(["https://ca/order/1"]);
        check(404, "", "https://ca/order/1", passes);
        tokio::time::advance(Duration::from_secs(1)).await;
        check(404, "No order for ID 42", "https://ca/order/1", ends);
        check(404, "Account not found", "https://ca/new-order", ends);
    }
}
