//! Files in folders to which others may write, too: looked at without being led elsewhere or held up, and replaced as a whole.

pub mod private;

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::process::geteuid;

/// Whatever lies there: a link is not followed, and a pipe that nobody fills holds nobody up.
const CAREFULLY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// A file of ours that nobody else may read.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

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

/// Whose link may stand in a folder's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Only one that this user or root has made.
    Trusted,
    /// Anybody's.
    All,
}

/// A folder to which others may write, held open: whatever they put in its place meanwhile, we stay in it.
#[derive(Debug)]
pub struct Folder(File);

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// Fails when it is no folder, this user may not look into it, or such a link is in its place.
    pub fn open(path: &Path, links: Links) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let is_followed = match links {
            Links::All => true,
            Links::Trusted => match fs::symlink_metadata(path)? {
                link if !link.is_symlink() => false,
                link if is_trusted(link.uid()) => true,
                link => {
                    let why = format!("it is a link that user {} has made", link.uid());
                    return Err(io::Error::other(why));
                }
            },
        };
        let more = if is_followed { OFlags::empty() } else { OFlags::NOFOLLOW };
        Ok(Self(openat(CWD, path, flags | more, Mode::empty())?.into()))
    }

    /// The folder itself, to be locked.
    pub fn handle(&self) -> &File {
        &self.0
    }

    /// Tells whether a file of that name has exactly that text. What is no file of that length has not, and is not read.
    pub fn holds(&self, name: &str, text: &[u8]) -> bool {
        self.read(name, text.len()).is_ok_and(|there| there.is_some_and(|there| there == text))
    }

    /// Reads a file of that length; nothing where there is another, or something else in its place.
    fn read(&self, name: &str, length: usize) -> io::Result<Option<Vec<u8>>> {
        // Opening a device may do something to it.
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let file = File::from(openat(&self.0, name, OFlags::RDONLY | CAREFULLY, Mode::empty())?);
        let found = file.metadata()?;
        if !found.is_file() || found.len() != length as u64 {
            return Ok(None);
        }
        let mut text = Vec::with_capacity(length);
        // It may grow meanwhile.
        file.take(length as u64 + 1).read_to_end(&mut text)?;
        Ok(Some(text))
    }

    /// Tells whether a folder has that name.
    pub fn has_folder(&self, name: &str) -> bool {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    }

    /// Removes a file, if it is there; of a link, the link.
    ///
    /// # Errors
    /// Fails when the folder may not be written to, or a folder has that name.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()).map_err(io::Error::from) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Replaces a file by way of a draft: readers see the old text or the new one.
    ///
    /// # Errors
    /// Fails when the folder may not be written to; the file is then as it was, and no draft is left.
    pub fn replace(
        &self,
        name: &str,
        draft: &str,
        text: &[u8],
        readers: Readers,
        durability: Durability,
    ) -> io::Result<()> {
        Draft::write(self, (name, draft), text, readers, durability)?.take_place()?;
        match durability {
            Durability::Lasting => self.keep_names(),
            Durability::Fleeting => Ok(()),
        }
    }

    /// Lets the names in the folder survive a power cut.
    ///
    /// # Errors
    /// Fails when the disk does.
    pub fn keep_names(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// The new text of a file, complete and beside it. Whoever replaces several files that belong together writes all drafts first:
/// what needs space, or a folder that may be written to, has then succeeded. Without [`Draft::take_place`] it is removed.
#[derive(Debug)]
#[must_use]
pub struct Draft<'a> {
    folder: &'a Folder,
    name: &'a str,
    beside: String,
    has_place: bool,
}

impl<'a> Draft<'a> {
    /// Writes the draft of a file, both by name.
    ///
    /// What stands under the draft's name makes way, and no link is followed, neither there nor in the file's own place: whoever
    /// may write to the folder could lead us to a file of ours elsewhere.
    ///
    /// # Errors
    /// Fails when the folder may not be written to; no draft is left then.
    pub fn write(
        folder: &'a Folder,
        (name, draft): (&'a str, &str),
        text: &[u8],
        readers: Readers,
        durability: Durability,
    ) -> io::Result<Self> {
        folder.remove(draft)?;
        let mode = match readers {
            Readers::Owner => PRIVATE,
            Readers::Permitted | Readers::Everybody => PRIVATE | Mode::RGRP | Mode::ROTH,
        };
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let handle = openat(&folder.0, draft, new | CAREFULLY, mode)?;
        // From here on, nothing half-written stays behind.
        let this = Self { folder, name, beside: draft.to_owned(), has_place: false };
        fill(handle.into(), text, readers, durability)?;
        Ok(this)
    }

    /// Puts the draft in the place of its file.
    ///
    /// # Errors
    /// Fails when that file may not be replaced; it is then as it was, and no draft is left.
    pub fn take_place(mut self) -> io::Result<()> {
        renameat(&self.folder.0, &self.beside, &self.folder.0, self.name)?;
        self.has_place = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.has_place {
            // The error that matters is the one before.
            self.folder.remove(&self.beside).ok();
        }
    }
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

/// Makes a file in a folder and takes it away again: whether that can be done, and what a private file of ours looks like there.
///
/// # Errors
/// Fails when nothing can be made there.
pub fn trial(folder: &Path) -> io::Result<Metadata> {
    let name = format!(".kubectl-acme-trial-{}", std::process::id());
    let folder = Folder::open(folder, Links::All)?;
    // A process of that number may have been killed here.
    folder.remove(&name)?;
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let made = File::from(openat(&folder.0, &*name, new | CAREFULLY, PRIVATE)?);
    let found = made.metadata();
    folder.remove(&name)?;
    found
}

/// Reads a file that the user has named, which may be a link or a pipe, up to a limit.
///
/// # Errors
/// Fails when it cannot be read, is no UTF-8, or is larger.
pub fn read_given(path: &Path, limit: u64) -> io::Result<String> {
    let text = String::from_utf8(read_bytes(File::open(path)?, limit)?);
    text.map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8")
    })
}

/// Reads all there is, up to a limit.
///
/// # Errors
/// Fails when it cannot be read, or there is more.
pub fn read_bytes(from: impl io::Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(bytes)
}

/// Tells whether a user is this one, or root, who may do everything anyhow.
pub(crate) fn is_trusted(user: u32) -> bool {
    user == geteuid().as_raw() || user == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use rustix::fs::mknodat;
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
            let open = Folder::open(folder.path(), Links::Trusted).unwrap();
            open.replace("file", "draft", b"text", readers, durability).unwrap();
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
        let open = Folder::open(folder.path(), Links::All).unwrap();
        open.replace("file", "draft", b"text", Readers::Owner, Durability::Lasting).unwrap_err();
        assert!(open.has_folder("file") && file.is_dir() && !draft.exists());
    }

    #[test]
    fn only_a_file_of_that_text_holds_it() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("same"), "text").unwrap();
        fs::write(at("other"), "tent").unwrap();
        fs::write(at("longer"), "text and more").unwrap();
        symlink("same", at("link")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        // Nobody ever writes to it: whoever opens it as files are opened waits for ever.
        mknodat(CWD, at("pipe"), FileType::Fifo, PRIVATE, 0).unwrap();
        fs::create_dir(at("folder")).unwrap();
        let open = Folder::open(folder.path(), Links::All).unwrap();
        assert!(open.holds("same", b"text"));
        for name in ["other", "longer", "link", "zero", "pipe", "folder", "missing"] {
            assert!(!open.holds(name, b"text"), "{name}");
        }
    }

    #[test]
    fn what_is_put_in_the_place_of_a_folder_leads_nowhere() {
        let above = TempDir::new().unwrap();
        let (folder, theirs) = (above.path().join("folder"), above.path().join("theirs"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&theirs).unwrap();
        let open = Folder::open(&folder, Links::Trusted).unwrap();
        fs::rename(&folder, above.path().join("away")).unwrap();
        symlink(&theirs, &folder).unwrap();
        open.replace("file", "draft", b"text", Readers::Owner, Durability::Fleeting).unwrap();
        assert_eq!(tree(&theirs), [""; 0]);
        assert_eq!(tree(&above.path().join("away")), ["file 600 text"]);
    }

    #[test]
    fn a_link_that_somebody_else_has_made_is_no_folder() {
        let above = TempDir::new().unwrap();
        let link = above.path().join("link");
        symlink(above.path(), &link).unwrap();
        Folder::open(&link, Links::Trusted).unwrap();
        if lchown(&link, Some(65_534), None).is_err() {
            // Only root can give a link away.
            return;
        }
        let why = Folder::open(&link, Links::Trusted).unwrap_err().to_string();
        assert_eq!(why, "it is a link that user 65534 has made");
        Folder::open(&link, Links::All).unwrap();
    }

    #[test]
    fn a_file_that_was_named_may_be_a_pipe_and_has_an_end() {
        let limited = |path: &str| read_given(Path::new(path), 5);
        assert_eq!(limited("/dev/null").unwrap(), "");
        assert_eq!(limited("/dev/zero").unwrap_err().to_string(), "it is too large");
    }
}
