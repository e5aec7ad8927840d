//! Writes answers as files for a web server that runs already.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::is_token;
use crate::model::{Answer, Challenge};
use crate::solvers::{SolveError, Solver};

/// Answers HTTP-01 through files below a web server's document root.
///
/// A file goes at clean-up, and with the last one the folders that this process made.
#[derive(Clone, Debug)]
pub struct Webroot(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    /// Folders that were not there before us; the lock also keeps one answer from removing another's folder.
    made: Mutex<BTreeSet<PathBuf>>,
}

impl Webroot {
    /// Answers below that document root, which must be there when the first answer is put up.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Inner { root: root.into(), made: Mutex::default() }))
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
        self.0.file(answer).is_ok_and(|file| holds(&file, answer))
    }
}

/// Runs file work on a thread of its own: a document root may lie on a slow network disk.
async fn aside(
    work: impl FnOnce() -> Result<(), SolveError> + Send + 'static,
) -> Result<(), SolveError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        Err(SolveError {
            what: "cannot work on the document root".to_owned(),
            why: "interrupted".to_owned(),
            needs_person: false,
            hint: None,
            until: None,
        })
    })
}

impl Inner {
    /// The folders below the document root, the outer one first.
    fn folders(&self) -> [PathBuf; 2] {
        let outer = self.root.join(".well-known");
        let inner = outer.join("acme-challenge");
        [outer, inner]
    }

    fn file(&self, answer: &Answer) -> Result<PathBuf, SolveError> {
        let [_, folder] = self.folders();
        if is_token(&answer.token) {
            return Ok(folder.join(&answer.token));
        }
        Err(SolveError {
            what: format!("cannot write to {}", folder.display()),
            why: "the CA's token is not base64url".to_owned(),
            needs_person: true,
            hint: None,
            until: None,
        })
    }

    fn write(&self, answer: &Answer) -> Result<(), SolveError> {
        let file = self.file(answer)?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.root.is_dir() {
            return Err(SolveError {
                what: format!("cannot write to {}", self.root.display()),
                why: "no such folder".to_owned(),
                needs_person: true,
                hint: None,
                until: None,
            });
        }
        let [_, innermost] = self.folders();
        for folder in self.folders() {
            if make(&folder).map_err(|error| failed("make", &folder, &error))? {
                made.insert(folder);
            }
        }
        if holds(&file, answer) {
            return Ok(());
        }
        let draft = innermost.join(format!(".{}.{}", answer.token, std::process::id()));
        write_by_rename(&draft, &file, answer.key_authorization.as_bytes())
            .map_err(|error| failed("write to", &innermost, &error))
    }

    fn remove(&self, answer: &Answer) -> Result<(), SolveError> {
        // What could not be put up is not there.
        let Ok(file) = self.file(answer) else { return Ok(()) };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let [outer, inner] = self.folders();
        // Somebody else's file under our token's name stays.
        if holds(&file, answer) {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("remove the answer from", &inner, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        for folder in [inner, outer] {
            // A folder with something in it refuses to go, and so it should.
            if made.contains(&folder) && fs::remove_dir(&folder).is_ok() {
                made.remove(&folder);
            }
        }
        Ok(())
    }
}

/// Makes one folder that a web server may read; tells whether it was missing.
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

/// Nobody ever reads half an answer.
fn write_by_rename(draft: &Path, file: &Path, text: &[u8]) -> io::Result<()> {
    let written = (|| {
        let mut options = fs::OpenOptions::new();
        let mut handle = options.write(true).create(true).truncate(true).mode(0o644).open(draft)?;
        handle.write_all(text)?;
        // The mode above is cut by the umask.
        handle.set_permissions(Permissions::from_mode(0o644))?;
        fs::rename(draft, file)
    })();
    if written.is_err() {
        // Best effort: the error that matters is the first.
        fs::remove_file(draft).ok();
    }
    written
}

fn holds(file: &Path, answer: &Answer) -> bool {
    fs::read(file).is_ok_and(|text| text == answer.key_authorization.as_bytes())
}

fn failed(deed: &str, path: &Path, error: &io::Error) -> SolveError {
    let (why, needs_person) = match error.kind() {
        io::ErrorKind::PermissionDenied => ("permission denied".to_owned(), true),
        io::ErrorKind::NotADirectory => ("a part of the path is not a folder".to_owned(), true),
        io::ErrorKind::ReadOnlyFilesystem => ("the file system is read-only".to_owned(), true),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ("no space left".to_owned(), true)
        }
        kind => (kind.to_string(), false),
    };
    SolveError {
        what: format!("cannot {deed} {}", path.display()),
        why,
        needs_person,
        hint: None,
        until: None,
    }
}

#[cfg(test)]
mod tests {
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
