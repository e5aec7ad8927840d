//! Writes answers as files for a running web server.
//!
//! On local stores a Challenge remembers its document root (annotation `kubectl-acme/challenge-webroot`), so
//! that a later process finds the file at clean-up, whatever its own flags.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::is_token;
use crate::disk::{Durability, FileAccess, Folder, Links};
use crate::model::{Answer, Challenge};
use crate::solvers::remedy::{Remedy, RootFault};
use crate::solvers::{SolveError, Solver};

/// Answers HTTP-01 through files below a web server's document root.
///
/// Clean-up removes a file, and with the last file the folders that this process made.
#[derive(Clone, Debug)]
pub struct Webroot(Arc<WebrootState>);

#[derive(Debug)]
struct WebrootState {
    root: PathBuf,
    /// Folders that this process made; the lock also keeps one answer from removing another answer's folder.
    made: Mutex<BTreeSet<PathBuf>>,
}

impl Webroot {
    /// Answers below that document root, which must exist when the first answer is put up.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(Arc::new(WebrootState { root: root.into(), made: Mutex::default() }))
    }

    /// Answers below that document root, after a check that files can be written there; writes nothing.
    ///
    /// # Errors
    /// Fails if the document root is missing, no folder, or not writable by this user.
    pub async fn open(root: impl Into<PathBuf>) -> Result<Self, SolveError> {
        let webroot = Self::new(root);
        let inner = Arc::clone(&webroot.0);
        aside(move || inner.check()).await?;
        Ok(webroot)
    }
}

#[async_trait]
impl Solver for Webroot {
    async fn present(&self, _: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        let (inner, answer) = (Arc::clone(&self.0), answer.clone());
        aside(move || inner.write(&answer)).await
    }

    async fn clean_up(&self, _: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        let (inner, answer) = (Arc::clone(&self.0), answer.clone());
        aside(move || inner.remove(&answer)).await
    }

    fn stands(&self, _: &Challenge, answer: &Answer) -> bool {
        self.0.holds(answer)
    }
}

/// Runs file work on a thread of its own: a document root may lie on a slow network disk.
async fn aside(
    work: impl FnOnce() -> Result<(), SolveError> + Send + 'static,
) -> Result<(), SolveError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(SolveError::passing("cannot work on the document root", "interrupted"))
    })
}

impl WebrootState {
    /// Returns the folders below the document root, the outer folder first.
    fn folders(&self) -> [PathBuf; 2] {
        let outer = self.root.join(".well-known");
        let inner = outer.join("acme-challenge");
        [outer, inner]
    }

    /// Fails unless the token can be a file's name.
    fn expect_token(&self, answer: &Answer) -> Result<(), SolveError> {
        let [_, folder] = self.folders();
        if is_token(&answer.token) {
            return Ok(());
        }
        Err(SolveError::lasting(
            format!("cannot write to {}", folder.display()),
            "the CA's token is not base64url",
        ))
    }

    /// Returns whether the file of this answer is there.
    fn holds(&self, answer: &Answer) -> bool {
        let [_, folder] = self.folders();
        self.expect_token(answer).is_ok()
            && open(&folder).is_ok_and(|folder| is_there(&folder, answer))
    }

    /// Fails unless the document root is a folder.
    fn is_folder(&self) -> Result<(), SolveError> {
        let found = fs::metadata(&self.root).and_then(|found| {
            if found.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
        });
        found.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SolveError::lasting(
                format!("cannot write to {}", self.root.display()),
                "no such folder",
            )
            .advised(Remedy::DocumentRoot(RootFault::Missing)),
            _ => solve_error("write to", &self.root, &error),
        })
    }

    /// Fails unless an answer could be written now.
    fn check(&self) -> Result<(), SolveError> {
        self.is_folder()?;
        let [outer, inner] = self.folders();
        let there = [&inner, &outer].into_iter().find(|folder| folder.exists());
        let folder = there.unwrap_or(&self.root);
        if !folder.is_dir() {
            return Err(solve_error("write to", folder, &io::ErrorKind::NotADirectory.into()));
        }
        accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|error| solve_error("write to", folder, &error.into()))
    }

    fn write(&self, answer: &Answer) -> Result<(), SolveError> {
        self.expect_token(answer)?;
        let mut made = self.made.lock();
        self.is_folder()?;
        let [_, innermost] = self.folders();
        for folder in self.folders() {
            if make(&folder).map_err(|error| solve_error("make", &folder, &error))? {
                made.insert(folder);
            }
        }
        let text = answer.key_authorization.as_bytes();
        let replace = || {
            let folder = open(&innermost)?;
            if is_there(&folder, answer) {
                return Ok(());
            }
            let draft = format!(".{}.{}", answer.token, std::process::id());
            folder.replace(&answer.token, &draft, text, FileAccess::Everybody, Durability::Fleeting)
        };
        replace().map_err(|error| solve_error("write to", &innermost, &error))
    }

    fn remove(&self, answer: &Answer) -> Result<(), SolveError> {
        // An answer that could not be put up is not there.
        if self.expect_token(answer).is_err() {
            return Ok(());
        }
        let mut made = self.made.lock();
        let [outer, inner] = self.folders();
        // A foreign file under the token's name stays.
        let folder = open(&inner).ok();
        if let Some(folder) = folder.filter(|folder| is_there(folder, answer)) {
            let removed = folder.remove(&answer.token);
            removed.map_err(|error| solve_error("remove the answer from", &inner, &error))?;
        }
        for folder in [inner, outer] {
            // A folder that is not empty cannot be removed, and has to stay.
            if made.contains(&folder) && fs::remove_dir(&folder).is_ok() {
                made.remove(&folder);
            }
        }
        Ok(())
    }
}

/// Makes one folder that a web server may read; returns whether the folder was missing.
fn make(folder: &Path) -> io::Result<bool> {
    match fs::create_dir(folder) {
        Ok(()) => {
            fs::set_permissions(folder, Permissions::from_mode(0o755))?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens the folder of answers. A link in its place is followed, whichever user made the link:
/// links let one folder serve several sites, and the files are meant for everyone.
fn open(folder: &Path) -> io::Result<Folder> {
    Folder::open(folder, Links::All)
}

/// Returns whether the file of this answer is there.
fn is_there(folder: &Folder, answer: &Answer) -> bool {
    folder.holds(&answer.token, answer.key_authorization.as_bytes())
}

fn solve_error(deed: &str, path: &Path, error: &io::Error) -> SolveError {
    let (why, needs_person) = match error.kind() {
        io::ErrorKind::PermissionDenied => ("permission denied".to_owned(), true),
        io::ErrorKind::NotADirectory => ("a part of the path is not a folder".to_owned(), true),
        io::ErrorKind::ReadOnlyFilesystem => ("the file system is read-only".to_owned(), true),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ("no space left".to_owned(), true)
        }
        kind => (kind.to_string(), false),
    };
    SolveError::new(format!("cannot {deed} {}", path.display()), why, needs_person)
        .with_remedy(needs_person.then(|| Remedy::DocumentRoot(root_fault(error.kind()))))
}

/// Returns the fault of the document root behind an error.
fn root_fault(kind: io::ErrorKind) -> RootFault {
    match kind {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => RootFault::Missing,
        io::ErrorKind::PermissionDenied => RootFault::Forbidden,
        io::ErrorKind::ReadOnlyFilesystem => RootFault::ReadOnly,
        _ => RootFault::Full,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;
    use crate::model::Identifier;
    use crate::solvers::testing::challenge;

    fn answer(token: &str) -> Answer {
        Answer {
            identifier: Identifier::parse("www.example.com").unwrap(),
            token: token.to_owned(),
            key_authorization: format!("{token}.thumbprint"),
        }
    }

    /// Everything below the root: path, mode and, of files, content.
    fn tree(root: &Path) -> Vec<String> {
        fn visit(root: &Path, folder: &Path, seen: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                let name = path.strip_prefix(root).unwrap().display();
                if path.is_dir() {
                    seen.push(format!("{name}/ {mode:o}"));
                    visit(root, &path, seen);
                } else {
                    seen.push(format!("{name} {mode:o} {}", fs::read_to_string(&path).unwrap()));
                }
            }
        }
        let mut seen = Vec::new();
        visit(root, root, &mut seen);
        seen.sort();
        seen
    }

    enum Deed {
        CleanUp(&'static str),
        Present(&'static str),
    }
    use Deed::{CleanUp, Present};

    /// Lays out files (a path that ends in `/` is a folder), does the deeds and compares the whole tree.
    async fn check(before: &[&str], deeds: &[Deed], after: &[&str]) {
        let root = TempDir::new().unwrap();
        for path in before {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if path.to_string_lossy().ends_with('/') {
                fs::create_dir_all(&path).unwrap();
            } else {
                fs::write(&path, "theirs").unwrap();
            }
        }
        let webroot = Webroot::new(root.path());
        for deed in deeds {
            match deed {
                Present(token) => webroot.present(&challenge(), &answer(token)).await.unwrap(),
                CleanUp(token) => webroot.clean_up(&challenge(), &answer(token)).await.unwrap(),
            }
        }
        assert_eq!(tree(root.path()), after);
    }

    #[tokio::test]
    async fn an_answer_is_a_file_that_every_server_may_read() {
        check(
            &[],
            &[Present("one")],
            &[
                ".well-known/ 755",
                ".well-known/acme-challenge/ 755",
                ".well-known/acme-challenge/one 644 one.thumbprint",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn with_the_last_answer_the_folders_go() {
        check(&[], &[Present("one"), CleanUp("one")], &[]).await;
        check(
            &[],
            &[Present("one"), Present("two"), CleanUp("one")],
            &[
                ".well-known/ 755",
                ".well-known/acme-challenge/ 755",
                ".well-known/acme-challenge/two 644 two.thumbprint",
            ],
        )
        .await;
        check(&[], &[Present("one"), Present("two"), CleanUp("one"), CleanUp("two")], &[]).await;
    }

    #[tokio::test]
    async fn folders_that_were_there_stay() {
        check(&[".well-known/"], &[Present("one"), CleanUp("one")], &[".well-known/ 755"]).await;
        check(
            &[".well-known/acme-challenge/"],
            &[CleanUp("one")],
            &[".well-known/ 755", ".well-known/acme-challenge/ 755"],
        )
        .await;
    }

    #[tokio::test]
    async fn a_file_of_somebody_else_stays() {
        check(
            &[".well-known/acme-challenge/one"],
            &[CleanUp("one")],
            &[
                ".well-known/ 755",
                ".well-known/acme-challenge/ 755",
                ".well-known/acme-challenge/one 644 theirs",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn whoever_may_write_to_the_folder_leads_us_to_no_other_file() {
        let own = format!(".one.{}", std::process::id());
        for planted in [own.as_str(), "one"] {
            let root = TempDir::new().unwrap();
            let (folder, victim) =
                (root.path().join(".well-known/acme-challenge"), root.path().join("victim"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(&victim, "secret").unwrap();
            fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
            symlink(&victim, folder.join(planted)).unwrap();
            Webroot::new(root.path()).present(&challenge(), &answer("one")).await.unwrap();
            let expected = [
                ".well-known/ 755",
                ".well-known/acme-challenge/ 755",
                ".well-known/acme-challenge/one 644 one.thumbprint",
                "victim 600 secret",
            ];
            assert_eq!(tree(root.path()), expected, "{planted}");
            assert!(folder.join("one").symlink_metadata().unwrap().is_file(), "{planted}");
        }
    }

    #[tokio::test]
    async fn a_link_to_our_answer_is_none() {
        let root = TempDir::new().unwrap();
        let folder = root.path().join(".well-known/acme-challenge");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("elsewhere"), "one.thumbprint").unwrap();
        symlink("elsewhere", folder.join("one")).unwrap();
        let webroot = Webroot::new(root.path());
        assert!(!webroot.stands(&challenge(), &answer("one")));
        webroot.clean_up(&challenge(), &answer("one")).await.unwrap();
        assert!(folder.join("one").is_symlink(), "it is somebody else's");
        webroot.present(&challenge(), &answer("one")).await.unwrap();
        assert!(webroot.stands(&challenge(), &answer("one")));
    }

    #[tokio::test]
    async fn what_could_not_be_put_up_needs_no_taking_down() {
        check(&[], &[CleanUp("../up")], &[]).await;
    }

    async fn refusal(root: &Path, token: &str) -> String {
        let error = Webroot::new(root).present(&challenge(), &answer(token)).await.unwrap_err();
        assert!(error.needs_person);
        error.to_string().replace(&root.display().to_string(), "ROOT")
    }

    #[tokio::test]
    async fn a_token_that_leads_elsewhere_is_refused() {
        let root = TempDir::new().unwrap();
        for token in ["", ".", "..", "../up", "a/b", "a.b", "ä"] {
            assert_eq!(
                refusal(root.path(), token).await,
                "cannot write to ROOT/.well-known/acme-challenge: the CA's token is not base64url"
            );
        }
        assert!(tree(root.path()).is_empty());
    }

    #[tokio::test]
    async fn a_document_root_that_is_missing_is_not_made() {
        let root = TempDir::new().unwrap();
        let missing = root.path().join("missing");
        assert_eq!(refusal(&missing, "one").await, "cannot write to ROOT: no such folder");
    }

    /// Why answers cannot be written below `ROOT/path`, and what to do; nothing may be made by asking.
    async fn check_before(root: &Path, path: &str, expected: &str) {
        let before = tree(root);
        let error = Webroot::open(root.join(path)).await.unwrap_err();
        assert!(
            error.needs_person && matches!(error.remedy.as_deref(), Some(Remedy::DocumentRoot(_)))
        );
        assert_eq!(error.to_string().replace(&root.display().to_string(), "ROOT"), expected);
        assert_eq!(tree(root), before);
    }

    #[tokio::test]
    async fn whether_answers_can_be_written_is_known_before_the_first() {
        let root = TempDir::new().unwrap();
        fs::create_dir_all(root.path().join("www/.well-known")).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        fs::create_dir(root.path().join("spoilt")).unwrap();
        fs::write(root.path().join("spoilt/.well-known"), "").unwrap();
        let before = tree(root.path());
        Webroot::open(root.path().join("www")).await.unwrap();
        assert_eq!(tree(root.path()), before);
        for (path, expected) in [
            ("missing", "cannot write to ROOT/missing: no such folder"),
            ("file", "cannot write to ROOT/file: a part of the path is not a folder"),
            (
                "spoilt",
                "cannot write to ROOT/spoilt/.well-known: a part of the path is not a folder",
            ),
        ] {
            check_before(root.path(), path, expected).await;
        }
    }

    #[tokio::test]
    async fn a_folder_of_somebody_else_is_refused_before_the_first_answer() {
        let root = TempDir::new().unwrap();
        let inner = root.path().join(".well-known/acme-challenge");
        fs::create_dir_all(&inner).unwrap();
        fs::set_permissions(&inner, Permissions::from_mode(0o555)).unwrap();
        // The system lets its administrator write anywhere.
        if fs::write(inner.join("probe"), "").is_err() {
            let why = "cannot write to ROOT/.well-known/acme-challenge: permission denied";
            check_before(root.path(), "", why).await;
        }
    }

    #[tokio::test]
    async fn a_file_in_the_way_is_named() {
        let root = TempDir::new().unwrap();
        fs::write(root.path().join(".well-known"), "").unwrap();
        assert_eq!(
            refusal(root.path(), "one").await,
            "cannot make ROOT/.well-known/acme-challenge: a part of the path is not a folder"
        );
    }
}
