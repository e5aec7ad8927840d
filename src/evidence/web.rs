//! Web servers that do not serve the answer: their replies, path by path, and whether the answer's file exists.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::diagnosis::case::web::{UNKNOWN_TOKEN, WebProbe, WebReply, WebrootCase};
use crate::fetch::raw::{self, NoBytes};
use crate::model::cause::Symptom;
use crate::model::memory::{Holder, Memory};
use crate::model::observation::{CheckResult, Observation};
use crate::model::{Answer, Challenge};
use crate::solvers::http01::PATH;

/// Longest wait for all paths together; shorter for a server that was silent before.
const PATHS_TIMEOUT: Duration = Duration::from_millis(2500);
const PATHS_TIMEOUT_AFTER_SILENCE: Duration = Duration::from_millis(1500);
/// Number of repeated requests for the path of an answer.
const ANSWER_REPEATS: usize = 3;

/// Requests other paths of a name at an address, and again the answer's path; `None` if no connection is accepted.
pub(super) async fn paths(
    name: &str,
    address: SocketAddr,
    look: &Observation,
    token: &str,
) -> Option<WebProbe> {
    let longest = match &look.seen {
        CheckResult::Nothing { symptom: Some(Symptom::NoReply), .. } => PATHS_TIMEOUT_AFTER_SILENCE,
        CheckResult::Nothing {
            symptom: Some(Symptom::Unreachable | Symptom::ConnectionRefused),
            ..
        }
        | CheckResult::NoLook { .. } => return None,
        _ => PATHS_TIMEOUT,
    };
    let begun = Instant::now();
    let host = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    let ask = async |before: &str, path: String| match raw::bytes_behind(
        before,
        address,
        (&host, &path),
        longest,
    )
    .await
    {
        Ok(bytes) => WebReply::read(&bytes),
        Err(NoBytes::NotConnected) => WebReply::NotConnected,
        Err(NoBytes::Ended) => WebReply::Ended,
        Err(NoBytes::Silent) => WebReply::Silent,
    };
    let is_turned_away = matches!(
        &look.seen,
        CheckResult::Nothing { symptom: Some(Symptom::HungUp), .. }
            | CheckResult::Reply { status: 400, .. }
    );
    let (challenge, beside, root, proxied) = tokio::join!(
        ask("", format!("{PATH}{UNKNOWN_TOKEN}")),
        ask("", format!("/.well-known/{UNKNOWN_TOKEN}")),
        ask("", "/".to_owned()),
        async {
            if !is_turned_away {
                return None;
            }
            Some(ask(raw::PROXY_HEADER, format!("{PATH}{UNKNOWN_TOKEN}")).await)
        },
    );
    let mut again = Vec::new();
    if challenge.reply().is_some() {
        let ask_again = async {
            for _ in 0..ANSWER_REPEATS {
                again.push(ask("", format!("{PATH}{token}")).await);
            }
        };
        // Replies that came in time are kept: the limit holds for all paths together.
        let left = longest.saturating_sub(begun.elapsed());
        let _is_whole = timeout(left, ask_again).await;
    }
    Some(WebProbe { challenge, beside, root, proxied, again })
}

/// Returns the folder in which the answer of a Challenge was written, and whether the file is still there.
pub(super) async fn webroot(challenge: Option<&Challenge>) -> Option<WebrootCase> {
    let challenge = challenge?;
    let folder = Memory::read(Holder::Challenge, &challenge.metadata.annotations).webroot?;
    let answer = Answer::of(challenge).ok()?;
    let file = Path::new(&folder).join(PATH.trim_start_matches('/')).join(&answer.token);
    let content = tokio::fs::read(&file).await.ok();
    let has_answer = content.is_some_and(|is| is == answer.key_authorization.as_bytes());
    Some(WebrootCase { folder, has_answer })
}
