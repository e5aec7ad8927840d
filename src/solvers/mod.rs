//! Solvers put the answer where the CA looks.

use std::fmt;

use async_trait::async_trait;

use crate::model::Answer;

/// Puts answers up and takes them down.
#[async_trait]
pub trait Solver: fmt::Debug + Send + Sync {
    /// Publishes the answer and returns at once; does not wait for it to be visible. Safe to repeat.
    async fn present(&self, answer: &Answer) -> Result<(), SolveError>;
    /// Takes the answer away. Safe to repeat; succeeds when `present` never ran.
    async fn clean_up(&self, answer: &Answer) -> Result<(), SolveError>;
    /// Tells whether the answer is up, as far as this solver can tell without asking anybody; false after a restart
    /// of a process that served it from memory.
    fn stands(&self, answer: &Answer) -> bool;
}

/// Why an answer could not be put up or taken down.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct SolveError {
    /// What was tried, with its object: `cannot write /srv/www/.well-known/…`.
    pub what: String,
    /// Why it did not work; stable text, since it is kept in a status.
    pub why: String,
    /// Whether only a person can remove the cause.
    pub needs_person: bool,
}
