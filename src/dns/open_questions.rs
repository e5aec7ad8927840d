//! Questions on their way to resolvers: an equal question meanwhile gets the same answer. A hundred challenges of a
//! zone ask for its servers at once. Nothing is kept once the answer is there.
//!
//! A hundred names over ten zones cost a resolver three questions each, those of the CA apart.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use hickory_resolver::proto::rr::{Name, RecordType};
use parking_lot::Mutex;

use super::Silence;
use super::reply::Reply;
use super::server::Server;

/// Server, name and type of a question.
type Question = (Server, Name, RecordType);
type ServerAnswer = Result<Reply, Silence>;

/// Open questions; a question ends when no caller waits for it any more.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenQuestions(
    Arc<Mutex<HashMap<Question, WeakShared<BoxFuture<'static, ServerAnswer>>>>>,
);

impl OpenQuestions {
    /// Awaits the answer to an equal question that is open already; else asks.
    pub(super) async fn join<F>(&self, question: Question, ask: impl FnOnce() -> F) -> ServerAnswer
    where
        F: Future<Output = ServerAnswer> + Send + 'static,
    {
        self.open(question, ask).await
    }

    fn open<F>(
        &self,
        question: Question,
        ask: impl FnOnce() -> F,
    ) -> Shared<BoxFuture<'static, ServerAnswer>>
    where
        F: Future<Output = ServerAnswer> + Send + 'static,
    {
        let mut all = self.0.lock();
        let open = all.get(&question).and_then(WeakShared::upgrade);
        if let Some(open) = open.filter(|open| open.peek().is_none()) {
            return open;
        }
        all.retain(|_, open| open.upgrade().is_some());
        let asked = ask().boxed().shared();
        all.extend(asked.downgrade().map(|weak| (question, weak)));
        asked
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::time::{sleep, timeout};

    use super::*;

    /// Joins so many questions, a second's work each; returns how often one was asked.
    async fn asked(asked: &OpenQuestions, names: &[&str]) -> u32 {
        let count = Arc::new(AtomicU32::new(0));
        let joined = names.iter().map(|name| {
            let question = (
                Server::parse("127.0.0.1").unwrap(),
                Name::from_ascii(name).unwrap(),
                RecordType::SOA,
            );
            let count = Arc::clone(&count);
            asked.join(question, || async move {
                count.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
                Err(Silence::TimedOut)
            })
        });
        assert!(join_all(joined).await.iter().all(Result::is_err));
        count.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_question_is_asked_once_at_a_time() {
        let open = OpenQuestions::default();
        assert_eq!(asked(&open, &["a.", "A.", "b.", "a."]).await, 2);
        assert_eq!(asked(&open, &["a."]).await, 1, "nothing is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_goes_on_while_anybody_waits_for_it() {
        let open = OpenQuestions::default();
        let first = timeout(Duration::from_millis(500), asked(&open, &["a."]));
        let second = async {
            sleep(Duration::from_millis(100)).await;
            asked(&open, &["a."]).await
        };
        let (first, second) = tokio::join!(first, second);
        assert!(first.is_err());
        assert_eq!(second, 0);
        timeout(Duration::from_millis(500), asked(&open, &["a."])).await.unwrap_err();
        assert_eq!(asked(&open, &["a."]).await, 1, "nobody waited for it any more");
        assert_eq!(open.0.lock().len(), 1);
    }
}
