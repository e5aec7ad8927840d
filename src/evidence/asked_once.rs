//! Answers that several wait for: each is asked for once.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// What came of questions, by what was asked.
#[derive(Debug)]
pub(super) struct AskedOnce<T>(Mutex<BTreeMap<String, Arc<OnceCell<T>>>>);

impl<T> Default for AskedOnce<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> AskedOnce<T> {
    /// The answer to a question; who asks while somebody else does waits for the same.
    pub(super) async fn answer(&self, question: &str, asked: impl Future<Output = T>) -> T {
        let cell = Arc::clone(self.0.lock().entry(question.to_owned()).or_default());
        cell.get_or_init(|| asked).await.clone()
    }
}
