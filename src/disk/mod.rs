//! Files in folders that other users may write to: read without following links or blocking, and replaced as a whole.

pub mod private;

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::process::geteuid;

/// Flags to open a path that others may have replaced: links are not followed, and a pipe without a writer does not block.
const OPEN_FLAGS: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// Mode of a file that only its owner may read and write.
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Users who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// The file's owner.
    Owner,
    /// Every user that the umask permits.
    Permitted,
    /// Every user, whatever the umask is.
    Everybody,
}

/// Events that a replaced file must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The file survives as long as the system runs.
    Fleeting,
    /// The file survives even a power cut.
    Lasting,
}

/// Links that may stand in a folder's place, by the user who made the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Only links that this user or root has made.
    Trusted,
    /// Links of any user.
    All,
}

/// Open handle of a folder to which others may write: later operations stay in that folder, even if its path is replaced.
#[derive(Debug)]
pub struct Folder(File);

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// Fails if the path is no folder, this user may not read the folder, or a link that `links` excludes is in its place.
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

    /// Returns the handle of the folder itself, to be locked.
    pub fn handle(&self) -> &File {
        &self.0
    }

    /// Reports whether the named regular file has exactly this text; a file of another length is not read.
    pub fn holds(&self, name: &str, text: &[u8]) -> bool {
        self.read(name, text.len()).is_ok_and(|there| there.is_some_and(|there| there == text))
    }

    /// Reads a file of the given length; `None` if the file has another length or is no regular file.
    fn read(&self, name: &str, length: usize) -> io::Result<Option<Vec<u8>>> {
        // Opening a device may do something to it.
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let file = File::from(openat(&self.0, name, OFlags::RDONLY | OPEN_FLAGS, Mode::empty())?);
        let found = file.metadata()?;
        if !found.is_file() || found.len() != length as u64 {
            return Ok(None);
        }
        let mut text = Vec::with_capacity(length);
        // The file may grow meanwhile.
        file.take(length as u64 + 1).read_to_end(&mut text)?;
        Ok(Some(text))
    }

    /// Reports whether a folder has the given name.
    pub fn has_folder(&self, name: &str) -> bool {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    }

    /// Removes a file, if it exists; of a link, the link itself.
    ///
    /// # Errors
    /// Fails if the folder may not be written to, or a folder has the given name.
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
        readers: FileAccess,
        durability: Durability,
    ) -> io::Result<()> {
        Draft::write(self, (name, draft), text, readers, durability)?.take_place()?;
        match durability {
            Durability::Lasting => self.keep_names(),
            Durability::Fleeting => Ok(()),
        }
    }

    /// Syncs the folder, so that the names in it survive a power cut.
    ///
    /// # Errors
    /// Fails if the disk reports an error.
    pub fn keep_names(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// New text of a file, complete and stored beside the file. To replace several related files, write all drafts first:
/// all that needs space or write access has then succeeded. Without [`Draft::take_place`] the draft is removed on drop.
#[derive(Debug)]
#[must_use]
pub struct Draft<'a> {
    folder: &'a Folder,
    name: &'a str,
    beside: String,
    has_place: bool,
}

impl<'a> Draft<'a> {
    /// Writes the draft of a file; the file and the draft are given by name.
    ///
    /// A file under the draft's name is removed first. No link is followed, neither there nor in the file's own place:
    /// a user who may write to the folder could otherwise redirect the write to another file of this user.
    ///
    /// # Errors
    /// Fails when the folder may not be written to; no draft is left then.
    pub fn write(
        folder: &'a Folder,
        (name, draft): (&'a str, &str),
        text: &[u8],
        readers: FileAccess,
        durability: Durability,
    ) -> io::Result<Self> {
        folder.remove(draft)?;
        let mode = match readers {
            FileAccess::Owner => OWNER_ONLY,
            FileAccess::Permitted | FileAccess::Everybody => OWNER_ONLY | Mode::RGRP | Mode::ROTH,
        };
        let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let handle = openat(&folder.0, draft, new | OPEN_FLAGS, mode)?;
        // From here on, nothing half-written stays behind.
        let this = Self { folder, name, beside: draft.to_owned(), has_place: false };
        fill(handle.into(), text, readers, durability)?;
        Ok(this)
    }

    /// Puts the draft in the place of its file.
    ///
    /// # Errors
    /// Fails if the file may not be replaced; the file is then unchanged, and no draft is left.
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

fn fill(
    mut file: File,
    text: &[u8],
    readers: FileAccess,
    durability: Durability,
) -> io::Result<()> {
    file.write_all(text)?;
    if readers == FileAccess::Everybody {
        file.set_permissions(Permissions::from_mode(0o644))?;
    }
    if durability == Durability::Lasting {
        file.sync_all()?;
    }
    Ok(())
}

/// Creates a private file in a folder and removes it, to test that this works; returns the metadata of the created file.
///
/// # Errors
/// Fails if no file can be created in the folder.
pub fn trial(folder: &Path) -> io::Result<Metadata> {
    let name = format!(".kubectl-acme-trial-{}", std::process::id());
    let folder = Folder::open(folder, Links::All)?;
    // A process of that number may have been killed here.
    folder.remove(&name)?;
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let made = File::from(openat(&folder.0, &*name, new | OPEN_FLAGS, OWNER_ONLY)?);
    let found = made.metadata();
    folder.remove(&name)?;
    found
}

/// Reads a file that the user has named, which may be a link or a pipe, up to a limit.
///
/// # Errors
/// Fails if the file cannot be read, is not UTF-8, or is larger than the limit.
pub fn read_given(path: &Path, limit: u64) -> io::Result<String> {
    let text = String::from_utf8(read_bytes(File::open(path)?, limit)?);
    text.map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8")
    })
}

/// Reads a source to its end, up to a limit in bytes.
///
/// # Errors
/// Fails if the source cannot be read or has more bytes.
pub fn read_bytes(from: impl io::Read, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(bytes)
}

/// Reports whether a user ID is the user of this process, or root, who may do everything anyhow.
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
    fn check(plant: fn(&Path), readers: FileAccess, expected: &[&str]) {
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
        check(|_| {}, FileAccess::Owner, &["file 600 text", UNTOUCHED]);
        check(|_| {}, FileAccess::Everybody, &["file 644 text", UNTOUCHED]);
    }

    #[test]
    fn a_link_under_the_draft_s_name_leads_nowhere() {
        let plant = |folder: &Path| symlink(folder.join("victim"), folder.join("draft")).unwrap();
        check(plant, FileAccess::Everybody, &["file 644 text", UNTOUCHED]);
    }

    #[test]
    fn a_link_in_the_file_s_place_is_replaced() {
        let plant = |folder: &Path| symlink(folder.join("victim"), folder.join("file")).unwrap();
        check(plant, FileAccess::Everybody, &["file 644 text", UNTOUCHED]);
    }

    #[test]
    fn another_name_of_a_file_under_the_draft_s_name_is_only_taken_off() {
        let plant =
            |folder: &Path| fs::hard_link(folder.join("victim"), folder.join("draft")).unwrap();
        check(plant, FileAccess::Everybody, &["file 644 text", UNTOUCHED]);
    }

    #[test]
    fn a_draft_that_a_crash_has_left_makes_way() {
        let plant = |folder: &Path| fs::write(folder.join("draft"), "a longer text").unwrap();
        check(plant, FileAccess::Owner, &["file 600 text", UNTOUCHED]);
    }

    #[test]
    fn what_cannot_be_replaced_leaves_no_draft() {
        let folder = TempDir::new().unwrap();
        let (file, draft) = (folder.path().join("file"), folder.path().join("draft"));
        fs::create_dir(&file).unwrap();
        let open = Folder::open(folder.path(), Links::All).unwrap();
        open.replace("file", "draft", b"text", FileAccess::Owner, Durability::Lasting).unwrap_err();
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
        mknodat(CWD, at("pipe"), FileType::Fifo, OWNER_ONLY, 0).unwrap();
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
        open.replace("file", "draft", b"text", FileAccess::Owner, Durability::Fleeting).unwrap();
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
