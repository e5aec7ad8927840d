//! Paths at TAB. Shells complete paths best, with `~`, variables and colours; so a candidate says that a path is due, and
//! existing paths are listed for shells that cannot list paths.

use std::ffi::OsStr;

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};

/// Kind of path that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// Files, and folders on the way to them.
    Files,
    /// Folders alone.
    Folders,
}

/// A candidate that is a path.
#[derive(Debug, PartialEq, Eq)]
pub struct OfferedPath {
    /// Kind of path that is due.
    pub paths: Paths,
    /// Part of the word before the path: `--out=`, or the text up to the last comma.
    pub before: String,
    /// Whether the path exists; if not, the candidate only says that a path is due.
    pub is_there: bool,
}

impl Paths {
    const ALL: [Self; 2] = [Self::Files, Self::Folders];

    /// Returns the beginning of the identity of a candidate.
    fn mark(self) -> &'static str {
        match self {
            Self::Files => "file:",
            Self::Folders => "folder:",
        }
    }

    /// Completes paths.
    pub fn completer(self) -> ArgValueCompleter {
        ArgValueCompleter::new(move |current: &OsStr| self.offered(current))
    }

    pub(super) fn offered(self, current: &OsStr) -> Vec<CompletionCandidate> {
        let all = match self {
            Self::Files => PathCompleter::any(),
            Self::Folders => PathCompleter::dir(),
        };
        // The present folder leads to no other path.
        let listed = all.complete(current).into_iter().filter(|path| path.get_value() != ".");
        let due = CompletionCandidate::new(current).hide(true);
        let marked = |path: CompletionCandidate| {
            let identity = format!("{}{}", self.mark(), path.get_value().to_string_lossy());
            path.id(Some(identity))
        };
        let mut listed: Vec<_> = listed.map(marked).collect();
        if listed.iter().all(CompletionCandidate::is_hide_set) {
            listed.push(due.id(Some(self.mark().to_owned())));
        }
        listed
    }
}

/// Returns the path that a candidate is, or says to be due; `None` for other candidates.
pub fn path_offered(candidate: &CompletionCandidate, current: &str) -> Option<OfferedPath> {
    let identity = candidate.get_id()?;
    let paths = Paths::ALL.into_iter().find(|paths| identity.starts_with(paths.mark()))?;
    let path = &identity[paths.mark().len()..];
    let value = candidate.get_value().to_string_lossy();
    let is_there = !path.is_empty();
    // A candidate that only says that a path is due has the word itself for its value.
    let before =
        if is_there { value.strip_suffix(path).unwrap_or_default() } else { before(current) };
    Some(OfferedPath { paths, before: before.to_owned(), is_there })
}

/// Returns the part of a word before a value: a flag with its `=`, and the text up to the last comma.
fn before(current: &str) -> &str {
    let ends = |sign| current.rfind(sign).map_or(0, |at| at + 1);
    let flag = if current.starts_with('-') { current.find('=').map_or(0, |at| at + 1) } else { 0 };
    &current[..flag.max(ends(','))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(paths: Paths, current: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.yaml", "about", ".hidden"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("archive")).unwrap();
        let typed = format!("{}/{current}", folder.path().display());
        let offered = paths.offered(OsStr::new(&typed));
        let shown = |candidate: CompletionCandidate| {
            let found = path_offered(&candidate, &typed).unwrap();
            assert_eq!((found.paths, found.before.as_str()), (paths, ""));
            let name = candidate.get_value().to_string_lossy();
            let name = name.rsplit_once(&format!("{}/", folder.path().display())).unwrap().1;
            format!("{name}{}", if found.is_there { "" } else { " is due" })
        };
        offered.into_iter().map(shown).collect()
    }

    #[test]
    fn files_and_folders_are_listed_and_a_path_that_is_not_there_is_due() {
        assert_eq!(check(Paths::Files, "a"), ["a.yaml", "about", "archive/"]);
        assert_eq!(check(Paths::Folders, "a"), ["archive/"]);
        assert_eq!(check(Paths::Folders, "b"), ["b is due"]);
    }

    #[test]
    fn what_stands_before_a_path_is_a_flag_or_ends_with_a_comma() {
        for (current, expected) in [
            ("a=b", ""),
            ("--out=a=b", "--out="),
            ("a.yaml,b", "a.yaml,"),
            ("--filename=a,b", "--filename=a,"),
        ] {
            assert_eq!(before(current), expected, "{current}");
        }
    }
}
