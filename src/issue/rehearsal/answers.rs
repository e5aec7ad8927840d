//! Answers that still exist at the end of a rehearsal: its store is lost afterwards, so the answers are removed now.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use tokio::time::{Instant, sleep, timeout_at};

use crate::context::failure::Failure;
use crate::controllers::challenge::answer;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::challenge::FINALIZER;
use crate::model::{Answer, Challenge, Kind};
use crate::solvers::Solver;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Most answers that are removed at once.
const CONCURRENCY: usize = 16;
/// Most answers that are named if they have to stay.
const MAX_NAMED: usize = 20;
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Returns the Challenges whose answers may exist.
///
/// # Errors
/// Fails when the store does.
pub(super) async fn still_up(store: &Arc<dyn Store>) -> Result<Vec<Challenge>, Failure> {
    let challenges = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
    let mut challenges = challenges.list(&Scope::all()).await?;
    challenges.retain(|challenge| challenge.metadata.finalizers.iter().any(|f| f == FINALIZER));
    Ok(challenges)
}

/// Removes the answers of Challenges, each by its solver; until `deadline`, tries again after errors that may pass.
///
/// # Errors
/// Fails with a hint for each answer that has to stay, which says what the answer is, and where.
pub(super) async fn take_down<'a>(
    challenges: &'a [Challenge],
    solver: impl Fn(&Challenge) -> &'a dyn Solver,
    deadline: Instant,
) -> Result<(), Failure> {
    let tried =
        challenges.iter().map(|challenge| try_until(deadline, solver(challenge), challenge));
    let mut left: Vec<_> = stream::iter(tried)
        .buffer_unordered(CONCURRENCY)
        .filter_map(async |left| left)
        .collect()
        .await;
    left.sort();
    let Some((_, why)) = left.first() else { return Ok(()) };
    let message = format!("the rehearsal leaves answers behind: {why}");
    let mut failure = Failure::new(FailureKind::Solver, message);
    for (place, _) in left.iter().take(MAX_NAMED) {
        failure = failure.hint(format!("remove {place}"));
    }
    Err(match left.len().saturating_sub(MAX_NAMED) {
        0 => failure,
        more => failure.hint(format!("and {more} more")),
    })
}

/// Returns the place of the answer, and why the answer stays; `None` when it is removed.
async fn try_until(
    deadline: Instant,
    solver: &dyn Solver,
    challenge: &Challenge,
) -> Option<(String, String)> {
    // A Challenge without a valid answer has published nothing.
    let answer: Answer = answer(challenge).ok()?;
    let why = loop {
        match timeout_at(deadline, solver.clean_up(challenge, &answer)).await {
            Ok(Ok(())) => return None,
            Ok(Err(error)) if error.needs_person || Instant::now() + RETRY_PAUSE >= deadline => {
                break error.to_string();
            }
            Ok(Err(_)) => sleep(RETRY_PAUSE).await,
            Err(_) => break "removing the answers takes too long".to_owned(),
        }
    };
    Some((solver.place(challenge, &answer).await, why))
}

#[cfg(test)]
mod tests {

    use async_trait::async_trait;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;
    use crate::model::Record;
    use crate::solvers::SolveError;
    use crate::store::memory::MemoryStore;

    /// Notes the names whose answers it removes; that of `stuck.example.com` stays for good, other answers once.
    #[derive(Debug, Default)]
    struct Provider(Mutex<Vec<String>>);

    #[async_trait]
    impl Solver for Provider {
        async fn present(&self, _: &Challenge, _: &Answer) -> Result<(), SolveError> {
            Ok(())
        }
        async fn clean_up(&self, challenge: &Challenge, _: &Answer) -> Result<(), SolveError> {
            let name = &challenge.spec.dns_name;
            let mut seen = self.0.lock();
            let is_known = seen.contains(name);
            seen.push(name.clone());
            if is_known {
                return Ok(());
            }
            Err(SolveError::new("cannot remove it", "no", name == "stuck.example.com"))
        }
        fn stands(&self, _: &Challenge, _: &Answer) -> bool {
            true
        }
        async fn place(&self, challenge: &Challenge, _: &Answer) -> String {
            format!("the record of {}", challenge.spec.dns_name)
        }
    }

    async fn keep(store: &Arc<dyn Store>, name: &str, finalizers: &[&str]) {
        let challenge = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge",
            "metadata": {"name": name, "namespace": "web", "finalizers": finalizers},
            "spec": {
                "type": "DNS-01", "dnsName": name, "token": "token", "key": "text", "url": "https://ca.example/1",
                "authorizationURL": "https://ca.example/2", "issuerRef": {"name": "acme"}, "solver": {"dns01": {}},
            },
        });
        store.create(Record::new(challenge).unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_still_up_is_taken_down_and_what_has_to_stay_is_told() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        keep(&store, "gone.example.com", &[]).await;
        keep(&store, "up.example.com", &[FINALIZER]).await;
        let provider = Provider::default();
        let take_down = async || {
            let challenges = still_up(&store).await.unwrap();
            let deadline = Instant::now() + Duration::from_mins(1);
            let taken = take_down(&challenges, |_| &provider, deadline).await;
            taken.map_err(|failure| (failure.message, failure.hints))
        };
        assert_eq!(take_down().await, Ok(()));
        assert_eq!(*provider.0.lock(), ["up.example.com", "up.example.com"]);
        keep(&store, "stuck.example.com", &[FINALIZER]).await;
        let message = "the rehearsal leaves answers behind: cannot remove it: no".to_owned();
        let hint = "remove the record of stuck.example.com".to_owned();
        assert_eq!(take_down().await, Err((message, vec![hint])));
    }
}
