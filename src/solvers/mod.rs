//! Solvers, which publish challenges' answers for the CA.

pub mod dns01;
pub mod http01;
pub mod remedy;
mod sockets;
#[cfg(test)]
mod testing;
pub mod tls_alpn01;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use self::remedy::Remedy;
use crate::model::arrival::Arrival;
use crate::model::provider_refusal::ProviderRefusal;
use crate::model::{Answer, Challenge};

/// Publisher of answers; the Challenge names the place, for solvers with several places.
#[async_trait]
pub trait Solver: fmt::Debug + Send + Sync {
    /// Publishes the answer and returns at once; does not wait for it to be visible. Safe to repeat.
    async fn present(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError>;
    /// Removes the answer. Safe to repeat; succeeds when `present` never ran.
    async fn clean_up(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError>;
    /// Records that nothing was ever put up for this Challenge, so that the solver need not search for it.
    fn nothing_stands(&self, _: &Challenge) {}
    /// Returns whether the answer is up, as far as known without a request; false after a restart
    /// of a process that served the answer from memory.
    fn stands(&self, challenge: &Challenge, answer: &Answer) -> bool;
    /// Returns whether a person puts the answer up, so that only a check shows whether the answer is there.
    fn is_by_hand(&self) -> bool {
        false
    }
    /// Returns whether the publisher reports the answer at all places that the CA may ask; true
    /// without a report. A single check cannot show this: a name server may be in many places.
    async fn is_everywhere(&self, _: &Challenge, _: &Answer) -> Result<bool, SolveError> {
        Ok(true)
    }
    /// Returns the document root, if answers are files that outlive this process: the Challenge has to remember the root.
    fn webroot(&self) -> Option<&str> {
        None
    }
    /// Returns the addresses where this process takes connections for answers, unless they are all
    /// addresses at the port of the protocol; so that a later check may listen there.
    fn listens_at(&self) -> Vec<SocketAddr> {
        Vec::new()
    }
    /// Returns the arrivals at the answer since a moment, as far as this process serves the answer itself.
    fn came_since(&self, _: &Answer, _: Timestamp) -> Vec<Arrival> {
        Vec::new()
    }
    /// Describes for a person the answer to remove, if it cannot be removed here.
    async fn place(&self, challenge: &Challenge, _: &Answer) -> String {
        format!("the {} answer for {}", challenge.spec.kind, challenge.spec.dns_name)
    }
}

/// Reason why an answer could not be put up or taken down.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct SolveError {
    /// Failed action, with its object: `cannot write /srv/www/.well-known/…`.
    pub what: String,
    /// Reason for the failure; stable text, since a status keeps the text.
    pub why: String,
    /// Whether only a person can remove the cause.
    pub needs_person: bool,
    /// Remedy for the cause, if known.
    pub remedy: Option<Box<Remedy>>,
    /// Refusal of a DNS provider, if a refusal is the cause.
    pub refusal: Option<Box<ProviderRefusal>>,
    /// Time of the next useful try, if the refusing party names a time.
    pub until: Option<Timestamp>,
}

impl SolveError {
    /// Creates an error of an action; with `needs_person` only a person can remove the cause.
    pub fn new(what: impl Into<String>, why: impl Into<String>, needs_person: bool) -> Self {
        let (what, why) = (what.into(), why.into());
        Self { what, why, needs_person, remedy: None, refusal: None, until: None }
    }

    /// Creates an error that may pass by itself.
    pub fn passing(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(what, why, false)
    }

    /// Creates an error whose cause only a person can remove.
    pub fn lasting(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(what, why, true)
    }

    /// Sets the remedy, in place of an earlier remedy.
    #[must_use]
    pub fn advised(self, remedy: impl Into<Remedy>) -> Self {
        self.with_remedy(Some(remedy.into()))
    }

    /// Sets the remedy, or removes it if there is none.
    #[must_use]
    pub fn with_remedy(self, remedy: Option<impl Into<Remedy>>) -> Self {
        Self { remedy: remedy.map(|remedy| Box::new(remedy.into())), ..self }
    }

    /// Adds the refusal of a DNS provider.
    #[must_use]
    pub fn refused(self, refusal: ProviderRefusal) -> Self {
        Self { refusal: Some(Box::new(refusal)), ..self }
    }

    /// Sets the time before which another try is useless.
    #[must_use]
    pub fn until(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }

    /// Makes the error the reason why another action failed.
    #[must_use]
    pub fn within(self, what: impl Into<String>) -> Self {
        Self { why: self.to_string(), what: what.into(), ..self }
    }
}

/// Several solvers that all answer, such as a listener and a webroot.
#[derive(Clone, Debug)]
pub struct SolverGroup(pub Vec<Arc<dyn Solver>>);

#[async_trait]
impl Solver for SolverGroup {
    async fn present(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        for solver in &self.0 {
            solver.present(challenge, answer).await?;
        }
        Ok(())
    }

    /// Takes down all that can be taken down, and then returns the first error.
    async fn clean_up(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        let mut result = Ok(());
        for solver in &self.0 {
            result = result.and(solver.clean_up(challenge, answer).await);
        }
        result
    }

    fn nothing_stands(&self, challenge: &Challenge) {
        for solver in &self.0 {
            solver.nothing_stands(challenge);
        }
    }

    fn stands(&self, challenge: &Challenge, answer: &Answer) -> bool {
        self.0.iter().all(|solver| solver.stands(challenge, answer))
    }

    fn listens_at(&self) -> Vec<SocketAddr> {
        self.0.iter().flat_map(|solver| solver.listens_at()).collect()
    }

    fn came_since(&self, answer: &Answer, since: Timestamp) -> Vec<Arrival> {
        self.0.iter().flat_map(|solver| solver.came_since(answer, since)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tempfile::TempDir;

    use super::http01::listener::Listener;
    use super::http01::webroot::Webroot;
    use super::testing::{answer, challenge};
    use super::*;

    /// Checks the contract of every solver.
    async fn check(solver: &dyn Solver) {
        let (one, two) = (answer("one"), answer("two"));
        assert!(!solver.stands(&challenge(), &one), "nothing is up at first");
        solver
            .clean_up(&challenge(), &one)
            .await
            .expect("clean-up succeeds when present never ran");
        solver.present(&challenge(), &one).await.unwrap();
        solver.present(&challenge(), &one).await.expect("present is safe to repeat");
        solver.present(&challenge(), &two).await.unwrap();
        assert!(solver.stands(&challenge(), &one) && solver.stands(&challenge(), &two));
        solver.clean_up(&challenge(), &one).await.unwrap();
        assert!(
            !solver.stands(&challenge(), &one) && solver.stands(&challenge(), &two),
            "one goes, the other stays"
        );
        solver.clean_up(&challenge(), &one).await.expect("clean-up is safe to repeat");
        solver.present(&challenge(), &one).await.unwrap();
        assert!(solver.stands(&challenge(), &one), "it may come back");
    }

    async fn listener() -> Listener {
        Listener::bind(&[SocketAddr::from((Ipv4Addr::LOCALHOST, 0))]).await.unwrap()
    }

    #[tokio::test]
    async fn the_listener_keeps_the_contract() {
        check(&listener().await).await;
    }

    #[tokio::test]
    async fn the_webroot_keeps_the_contract() {
        let root = TempDir::new().unwrap();
        check(&Webroot::new(root.path())).await;
    }

    #[tokio::test]
    async fn both_together_keep_the_contract() {
        let root = TempDir::new().unwrap();
        check(&SolverGroup(vec![Arc::new(listener().await), Arc::new(Webroot::new(root.path()))]))
            .await;
    }

    /// Can do nothing.
    #[derive(Debug)]
    struct Broken;

    #[async_trait]
    impl Solver for Broken {
        async fn present(&self, _: &Challenge, _: &Answer) -> Result<(), SolveError> {
            Err(SolveError::lasting("present", "broken"))
        }

        async fn clean_up(&self, _: &Challenge, _: &Answer) -> Result<(), SolveError> {
            Err(SolveError::lasting("clean up", "broken"))
        }

        fn stands(&self, _: &Challenge, _: &Answer) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn one_that_fails_does_not_keep_the_answer_up_elsewhere() {
        let one = answer("one");
        let listener = Arc::new(listener().await);
        let together = SolverGroup(vec![listener.clone(), Arc::new(Broken)]);
        assert!(together.present(&challenge(), &one).await.is_err());
        assert!(listener.stands(&challenge(), &one) && !together.stands(&challenge(), &one));
        let together = SolverGroup(vec![Arc::new(Broken), listener.clone()]);
        assert_eq!(
            together.clean_up(&challenge(), &one).await.unwrap_err().to_string(),
            "clean up: broken"
        );
        assert!(!listener.stands(&challenge(), &one));
    }
}
