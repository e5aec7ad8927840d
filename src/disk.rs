//! Files that are replaced as a whole, in folders to which others may write, too.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner.
    Owner,
    /// Everybody to whom the umask leaves it.
    Permitted,
    /// Everybody, whatever the umask is.
    Everybody,
}

/// What must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The file as long as the system runs.
    Fleeting,
    /// The file even after a power cut.
    Lasting,
}

/// Replaces a file by way of a draft in the same folder: readers see the old text or the new one.
///
/// # Errors
/// Fails when the folder may not be written to; the file is then as it was, and no draft is left.
pub fn replace(
    file: &Path,
    draft: &Path,
    text: &[u8],
    readers: Readers,
    durability: Durability,
) -> io::Result<()> {
    Draft::write(file, draft, text, readers, durability)?.take_place()?;
    if durability == Durability::Lasting {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        keep_names(folder.unwrap_or_else(|| Path::new(".")))?;
    }
    Ok(())
}

/// The new text of a file, complete and beside it. Whoever replaces several files that belong together writes all drafts first:
/// what needs space, or a folder that may be written to, has then succeeded. Without [`Draft::take_place`] it is removed.
#[derive(Debug)]
#[must_use]
pub struct Draft<'a> {
    file: &'a Path,
    path: PathBuf,
    has_place: bool,
}

impl<'a> Draft<'a> {
    /// Writes a draft.
    ///
    /// What stands under the draft's name makes way, and no link is followed, neither there nor in the file's own place: whoever
    /// may write to the folder could lead us to a file of ours elsewhere.
    ///
    /// # Errors
    /// Fails when the folder may not be written to; no draft is left then.
    pub fn write(
        file: &'a Path,
        draft: &Path,
        text: &[u8],
        readers: Readers,
        durability: Durability,
    ) -> io::Result<Self> {
        match fs::remove_file(draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mode = match readers {
            Readers::Owner => 0o600,
            Readers::Permitted | Readers::Everybody => 0o644,
        };
        let handle = OpenOptions::new().write(true).create_new(true).mode(mode).open(draft)?;
        // From here on, nothing half-written stays behind.
        let this = Self { file, path: draft.to_owned(), has_place: false };
        fill(handle, text, readers, durability)?;
        Ok(this)
    }

    /// Puts the draft in the place of its file.
    ///
    /// # Errors
    /// Fails when that file may not be replaced; it is then as it was, and no draft is left.
    pub fn take_place(mut self) -> io::Result<()> {
        fs::rename(&self.path, self.file)?;
        self.has_place = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.has_place {
            // The error that matters is the one before.
            fs::remove_file(&self.path).ok();
        }
    }
}

/// Lets the names in a folder survive a power cut.
///
/// # Errors
/// Fails when the folder cannot be read, or the disk fails.
pub fn keep_names(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn fill(mut file: File, text: &[u8], readers: Readers, durability: Durability) -> io::Result<()> {
    file.write_all(text)?;
    if readers == Readers::Everybody {
        file.set_permissions(Permissions::from_mode(0o644))?;
    }
    if durability == Durability::Lasting {
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// Name, mode (of a link: that of where it leads) and content of every file.
    fn tree(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let told = entries.map(|path| {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            let link = if path.is_symlink() { "->" } else { "" };
            let name = path.file_name().unwrap().display();
            format!("{name}{link} {mode:o} {}", fs::read_to_string(&path).unwrap())
        });
        let mut told: Vec<_> = told.collect();
        told.sort();
        told
    }

    /// Replaces `file` where `victim`, readable by its owner only, is beside it, after something has been planted.
    #[track_caller]
    fn check(plant: fn(&Path), readers: Readers, expected: &[&str]) {
        for durability in [Durability::Fleeting, Durability::Lasting] {
            let folder = TempDir::new().unwrap();
            let at = |name: &str| folder.path().join(name);
            fs::write(at("victim"), "secret").unwrap();
            fs::set_permissions(at("victim"), Permissions::from_mode(0o600)).unwrap();
            plant(folder.path());
            replace(&at("file"), &at("draft"), b"text", readers, durability).unwrap();
            assert_eq!(tree(folder.path()), expected, "{durability:?}");
        }
    }

    const UNTOUCHED: &str = "victim 600 secret";

    #[test]
    fn a_file_has_the_readers_that_were_chosen() {
        check(|_| {}, Readers::Owner, &["file 600 text", UNTOUCHED]);
        check(|_| {}, Readers::Everybody, &["file 644 text", UNTOUCHED]);
    }

    #[test]
    fn a_link_under_the_draft_s_name_leads_nowhere() {
        let plant = |folder: &Path| symlink(folder.join("victim"), folder.join("draft")).unwrap();
        check(plant, Readers::Everybody, &["file 644 text", UNTOUCHED]);
    }

    #[test]
    fn a_link_in_the_file_s_place_is_replaced() {
        let plant = |folder: &Path| symlink(folder.join("victim"), folder.join("file")).unwrap();
        check(plant, Readers::Everybody, &["file 644 text", UNTOUCHED]);
    }

    #[test]
    fn another_name_of_a_file_under_the_draft_s_name_is_only_taken_off() {
        let plant =
            |folder: &Path| fs::hard_link(folder.join("victim"), folder.join("draft")).unwrap();
        check(plant, Readers::Everybody, &["file 644 text", UNTOUCHED]);
    }

    #[test]
    fn a_draft_that_a_crash_has_left_makes_way() {
        let plant = |folder: &Path| fs::write(folder.join("draft"), "a longer text").unwrap();
        check(plant, Readers::Owner, &["file 600 text", UNTOUCHED]);
    }

    #[test]
    fn what_cannot_be_replaced_leaves_no_draft() {
        let folder = TempDir::new().unwrap();
        let (file, draft) = (folder.path().join("file"), folder.path().join("draft"));
        fs::create_dir(&file).unwrap();
        replace(&file, &draft, b"text", Readers::Owner, Durability::Lasting).unwrap_err();
        assert!(file.is_dir() && !draft.exists());
    }
}
