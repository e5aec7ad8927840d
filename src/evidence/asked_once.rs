//! Cache of answers that several tasks wait for: each question is asked once.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// Answers, by question.
#[derive(Debug)]
pub(super) struct AnswerCache<T>(Mutex<BTreeMap<String, Arc<OnceCell<T>>>>);

impl<T> Default for AnswerCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> AnswerCache<T> {
    /// Returns the answer to a question; a task that asks during a running question waits for its answer.
    pub(super) async fn answer(&self, question: &str, asked: impl Future<Output = T>) -> T {
        let cell = Arc::clone(self.0.lock().entry(question.to_owned()).or_default());
        cell.get_or_init(|| asked).await.clone()
    }
}
