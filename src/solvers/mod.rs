//! Solvers put the answer where the CA looks.

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

/// Puts answers up and takes them down; the Challenge says where, for solvers that have several places.
#[async_trait]
pub trait Solver: fmt::Debug + Send + Sync {
    /// Publishes the answer and returns at once; does not wait for it to be visible. Safe to repeat.
    async fn present(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError>;
    /// Takes the answer away. Safe to repeat; succeeds when `present` never ran.
    async fn clean_up(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError>;
    /// Is told that nothing was ever put up for this Challenge, so that a solver need not look for it.
    fn nothing_stands(&self, _: &Challenge) {}
    /// Tells whether the answer is up, as far as can be told without asking anybody; false after a restart of a
    /// process that served it from memory.
    fn stands(&self, challenge: &Challenge, answer: &Answer) -> bool;
    /// Tells whether a person puts the answer up, so that nothing but a look says whether it is there.
    fn is_by_hand(&self) -> bool {
        false
    }
    /// Whether whoever publishes the answer says that it is in all the places where the CA may look; true where nobody says. One
    /// look cannot tell: a name server may be in many places.
    async fn is_everywhere(&self, _: &Challenge, _: &Answer) -> Result<bool, SolveError> {
        Ok(true)
    }
    /// Document root below which answers are files that outlive this process, so that somebody has to remember it.
    fn webroot(&self) -> Option<&str> {
        None
    }
    /// Where this process takes connections for answers, where that is another place than every address at the port of the protocol; so
    /// that whoever looks later may listen there.
    fn listens_at(&self) -> Vec<SocketAddr> {
        Vec::new()
    }
    /// What has come since that moment to where the answer is served, as far as this process serves it itself.
    fn came_since(&self, _: &Answer, _: Timestamp) -> Vec<Arrival> {
        Vec::new()
    }
    /// What a person removes where the answer cannot be taken away, in words.
    async fn place(&self, challenge: &Challenge, _: &Answer) -> String {
        format!("the {} answer for {}", challenge.spec.kind, challenge.spec.dns_name)
    }
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
    /// What removes the cause, where that can be said.
    pub remedy: Option<Box<Remedy>>,
    /// What a DNS provider has refused, where that is why.
    pub refusal: Option<Box<ProviderRefusal>>,
    /// When the next try makes sense, where whoever was asked names a moment.
    pub until: Option<Timestamp>,
}

impl SolveError {
    /// An error of that deed, which only a person can make pass where it says so.
    pub fn new(what: impl Into<String>, why: impl Into<String>, needs_person: bool) -> Self {
        let (what, why) = (what.into(), why.into());
        Self { what, why, needs_person, remedy: None, refusal: None, until: None }
    }

    /// An error that may be over by itself.
    pub fn passing(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(what, why, false)
    }

    /// An error whose cause only a person can remove.
    pub fn lasting(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(what, why, true)
    }

    /// The same error with what removes its cause, in place of what was known of that.
    #[must_use]
    pub fn advised(self, remedy: impl Into<Remedy>) -> Self {
        self.with_remedy(Some(remedy.into()))
    }

    /// The same error with what removes its cause, if that is known.
    #[must_use]
    pub fn with_remedy(self, remedy: Option<impl Into<Remedy>>) -> Self {
        Self { remedy: remedy.map(|remedy| Box::new(remedy.into())), ..self }
    }

    /// The same error with what a DNS provider has refused.
    #[must_use]
    pub fn refused(self, refusal: ProviderRefusal) -> Self {
        Self { refusal: Some(Box::new(refusal)), ..self }
    }

    /// The same error, not worth another try before that moment.
    #[must_use]
    pub fn until(self, until: Option<Timestamp>) -> Self {
        Self { until, ..self }
    }

    /// The same error as the reason why another deed failed.
    #[must_use]
    pub fn within(self, what: impl Into<String>) -> Self {
        Self { why: self.to_string(), what: what.into(), ..self }
    }
}

/// Several solvers that all answer, such as a listener and a webroot.
#[derive(Clone, Debug)]
pub struct Together(pub Vec<Arc<dyn Solver>>);

#[async_trait]
impl Solver for Together {
    async fn present(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        for solver in &self.0 {
            solver.present(challenge, answer).await?;
        }
        Ok(())
    }

    /// Takes down what can be taken down, and then returns the first error.
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

    /// What every solver owes.
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
        check(&Together(vec![Arc::new(listener().await), Arc::new(Webroot::new(root.path()))]))
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
        let together = Together(vec![listener.clone(), Arc::new(Broken)]);
        assert!(together.present(&challenge(), &one).await.is_err());
        assert!(listener.stands(&challenge(), &one) && !together.stands(&challenge(), &one));
        let together = Together(vec![Arc::new(Broken), listener.clone()]);
        assert_eq!(
            together.clean_up(&challenge(), &one).await.unwrap_err().to_string(),
            "clean up: broken"
        );
        assert!(!listener.stands(&challenge(), &one));
    }
}
