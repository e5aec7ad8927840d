//! URLs that a CA has named lately: a replica of its store that lags answers 404 for a new URL, and has the resource a
//! moment later. Times are of this process, so that a clock that is set back, or stands still, makes no 404 last.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use super::error::AcmeError;

/// Longest time after the first naming of a URL for which a 404 does not count.
const LAG_MAX: Duration = Duration::from_secs(30);
/// Time for which the first naming of a URL is kept: no order of a public CA lives longer.
const KEPT_FOR: Duration = Duration::from_hours(8 * 24);
/// Most URLs that are kept; a URL beyond that number is taken as gone at its first 404.
const KEPT_MAX: usize = 50_000;

/// Time of the first naming of each URL.
#[derive(Debug, Default)]
pub(super) struct NamedUrls(Mutex<HashMap<String, Instant>>);

impl NamedUrls {
    /// Notes the URLs of an answer; the first time of each URL counts.
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

    /// Turns a 404 into an error that passes, if the URL was named, or the account was made, only a moment ago.
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
