//! Paths at TAB. Shells know them best, with `~`, variables and colours; so what is offered here says that a path is due,
//! and lists those that there are for whoever cannot list them.

use std::ffi::OsStr;

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};

/// Which paths are due.
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
    /// Which paths are due.
    pub paths: Paths,
    /// What stands before the path in the word: `--out=`, or what a comma ends.
    pub before: String,
    /// Whether there is such a path; if not, it only says that one is due.
    pub is_there: bool,
}

impl Paths {
    const ALL: [Self; 2] = [Self::Files, Self::Folders];

    /// What the identity of a candidate begins with.
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
        // The folder that one is in is no way to anything.
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

/// Tells whether a candidate is a path, or says that one is due.
pub fn path_offered(candidate: &CompletionCandidate, current: &str) -> Option<OfferedPath> {
    let identity = candidate.get_id()?;
    let paths = Paths::ALL.into_iter().find(|paths| identity.starts_with(paths.mark()))?;
    let path = &identity[paths.mark().len()..];
    let value = candidate.get_value().to_string_lossy();
    let is_there = !path.is_empty();
    // What only says that a path is due has the word itself for its value.
    let before =
        if is_there { value.strip_suffix(path).unwrap_or_default() } else { before(current) };
    Some(OfferedPath { paths, before: before.to_owned(), is_there })
}

/// What stands before a value in a word: a flag with its sign, and what a comma ends.
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
