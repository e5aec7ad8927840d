//! Removes the files that earlier processes of this machine have left in document roots, whichever solver answers now.

use std::net::SocketAddr;
use std::path::{Path, absolute};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::webroot::Webroot;
use crate::model::arrival::Arrival;
use crate::model::memory::{Holder, Memory};
use crate::model::{Answer, Challenge};
use crate::solvers::{SolveError, Solver};

/// Solver of HTTP-01 on this machine that also removes the file in the document root that a
/// Challenge remembers. Not for a cluster, where others write the Challenge's memory.
#[derive(Clone, Debug)]
pub struct RememberedFiles {
    chosen: Arc<dyn Solver>,
    /// Document root of the chosen solver, if it writes files; absolute.
    webroot: Option<String>,
}

impl RememberedFiles {
    /// Answers by that solver, which writes no files.
    pub fn beside(chosen: Arc<dyn Solver>) -> Self {
        Self { chosen, webroot: None }
    }

    /// Answers by files below that document root. A path that is no text is not remembered.
    pub fn below(root: &Path, webroot: Webroot) -> Self {
        let path = absolute(root).ok().and_then(|path| path.to_str().map(str::to_owned));
        Self { chosen: Arc::new(webroot), webroot: path }
    }

    /// Returns the document root in which an earlier process has left the answer, if it is another root.
    fn find_left_webroot(&self, challenge: &Challenge) -> Option<Webroot> {
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        let path = memory.webroot.filter(|path| Path::new(path).is_absolute())?;
        let is_ours = self.webroot.as_ref().is_some_and(|own| Path::new(own) == Path::new(&path));
        (!is_ours).then(|| Webroot::new(path))
    }
}

#[async_trait]
impl Solver for RememberedFiles {
    async fn present(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        self.chosen.present(challenge, answer).await
    }

    /// Takes down all that can be taken down, and then returns the first error.
    async fn clean_up(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        let result = self.chosen.clean_up(challenge, answer).await;
        match self.find_left_webroot(challenge) {
            Some(webroot) => result.and(webroot.clean_up(challenge, answer).await),
            None => result,
        }
    }

    fn nothing_stands(&self, challenge: &Challenge) {
        self.chosen.nothing_stands(challenge);
    }

    fn stands(&self, challenge: &Challenge, answer: &Answer) -> bool {
        self.chosen.stands(challenge, answer)
    }

    fn webroot(&self) -> Option<&str> {
        self.webroot.as_deref()
    }

    fn listens_at(&self) -> Vec<SocketAddr> {
        self.chosen.listens_at()
    }

    fn came_since(&self, answer: &Answer, since: Timestamp) -> Vec<Arrival> {
        self.chosen.came_since(answer, since)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::solvers::SolverGroup;
    use crate::solvers::testing::{answer, challenge};

    /// A Challenge that remembers that document root.
    fn left_in(root: &str) -> Challenge {
        let mut left = challenge();
        let memory = Memory { webroot: Some(root.to_owned()), ..Memory::default() };
        memory.write(Holder::Challenge, &mut left.metadata.annotations);
        left
    }

    fn nobody() -> RememberedFiles {
        RememberedFiles::beside(Arc::new(SolverGroup(Vec::new())))
    }

    #[tokio::test]
    async fn whoever_cleans_up_removes_the_file_that_another_process_wrote() {
        let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let answer = answer("one");
        let file = old.path().join(".well-known/acme-challenge/one");
        let challenge = left_in(old.path().to_str().unwrap());
        let elsewhere = RememberedFiles::below(new.path(), Webroot::new(new.path()));
        for whoever in [nobody(), elsewhere] {
            Webroot::new(old.path()).present(&challenge, &answer).await.unwrap();
            assert!(file.exists());
            whoever.clean_up(&challenge, &answer).await.unwrap();
            assert!(!file.exists());
        }
    }

    #[tokio::test]
    async fn nothing_but_the_answer_itself_is_ever_removed() {
        let root = TempDir::new().unwrap();
        let folder = root.path().join(".well-known/acme-challenge");
        fs::create_dir_all(&folder).unwrap();
        // Somebody else's file under the name of our token, and others that a token might lead to.
        for file in [folder.join("one"), folder.join("two"), root.path().join("three")] {
            fs::write(file, "theirs").unwrap();
        }
        let challenge = left_in(root.path().to_str().unwrap());
        for token in ["one", "", "..", "../../three"] {
            nobody().clean_up(&challenge, &answer(token)).await.unwrap();
        }
        assert!(["one", "two"].iter().all(|file| folder.join(file).exists()));
        assert!(root.path().join("three").exists());
    }

    #[test]
    fn only_another_document_root_with_an_absolute_path_counts_as_left() {
        let own = RememberedFiles::below(Path::new("/srv/www/"), Webroot::new("/srv/www/"));
        for (path, is_left) in
            [("/srv/www", false), ("/srv/old", true), ("srv/old", false), ("", false)]
        {
            assert_eq!(own.find_left_webroot(&left_in(path)).is_some(), is_left, "{path}");
        }
    }
}
