//! Files and folders that hold secrets: accessible to this user alone, or not used at all.

use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Gid, getegid, geteuid, getgroups};

use super::{OPEN_FLAGS, OWNER_ONLY, is_trusted, trial};

/// Reasons why a file or folder is not trusted with secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// A link is in the place of the file or folder, and leads wherever the link's maker wants.
    Link,
    /// A pipe, a device or a folder is in the file's place.
    NoFile,
    /// The file or folder belongs to another user.
    Owner {
        /// User ID of the owner.
        theirs: u32,
        /// User ID of this process.
        ours: u32,
    },
    /// Others may use the file; holds the mode of the file.
    OpenFile(u32),
    /// Others may write to the folder; holds the mode of the folder, including the sticky bit.
    OpenFolder(u32),
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("it is a link"),
            Self::NoFile => f.write_str("it is not a regular file"),
            Self::Owner { theirs, ours } => {
                write!(f, "it belongs to user {theirs}, and this is user {ours}")
            }
            Self::OpenFile(mode) => write!(f, "it is open to other users (mode {mode:o})"),
            Self::OpenFolder(mode) => write!(f, "other users may write to it (mode {mode:o})"),
        }
    }
}

/// Reasons why a private file or folder is not used.
#[derive(Debug)]
pub enum Unprotected {
    /// The operating system refused.
    System(io::Error),
    /// The file or folder is exposed to other users.
    Exposed(Exposure),
}

impl From<io::Error> for Unprotected {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<rustix::io::Errno> for Unprotected {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}

/// Creates a folder and its parents, for their owner only. An existing folder must be this user's or root's, writable
/// by nobody else, and no link. Others may list the folder, because its files are private, too.
///
/// # Errors
/// Fails if the folder cannot be created, or is exposed.
pub fn make_private(folder: &Path) -> Result<(), Unprotected> {
    if fs::symlink_metadata(folder).is_err() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    judge_folder(folder)
}

/// Checks that an existing folder is private.
///
/// # Errors
/// Fails if the path is no folder, or the folder is exposed.
pub fn judge_folder(folder: &Path) -> Result<(), Unprotected> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_symlink() {
        return Err(Unprotected::Exposed(Exposure::Link));
    }
    if !found.is_dir() {
        return Err(Unprotected::System(io::ErrorKind::NotADirectory.into()));
    }
    judge(&found, folder, 0o022).map_err(Unprotected::Exposed)
}

/// Checks that a private file, if it exists, belongs to this user or root, and that no other user may use it.
///
/// # Errors
/// Fails if the file is exposed, or its metadata cannot be read.
pub fn judge_file(path: &Path) -> Result<(), Unprotected> {
    match fs::symlink_metadata(path) {
        Ok(found) => judge_found(&found, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens a private file for reading and writing, and creates it if it is missing; its content is kept.
///
/// # Errors
/// Fails if the file is exposed, or the system refuses.
pub fn open_private(path: &Path) -> Result<File, Unprotected> {
    judge_file(path)?;
    let file =
        File::from(openat(CWD, path, OFlags::RDWR | OFlags::CREATE | OPEN_FLAGS, OWNER_ONLY)?);
    // Another file may have taken the path meanwhile.
    judge_found(&file.metadata()?, path)?;
    Ok(file)
}

/// Opens a private file for reading.
///
/// # Errors
/// Fails if the file is missing or exposed, or the system refuses.
pub fn open_private_to_read(path: &Path) -> Result<File, Unprotected> {
    judge_file(path)?;
    let file = File::from(openat(CWD, path, OFlags::RDONLY | OPEN_FLAGS, Mode::empty())?);
    judge_found(&file.metadata()?, path)?;
    Ok(file)
}

fn judge_found(found: &Metadata, path: &Path) -> Result<(), Unprotected> {
    if found.is_symlink() {
        return Err(Unprotected::Exposed(Exposure::Link));
    }
    if !found.is_file() {
        return Err(Unprotected::Exposed(Exposure::NoFile));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    judge(found, folder.unwrap_or_else(|| Path::new(".")), 0o077).map_err(Unprotected::Exposed)
}

/// Checks owner and mode. Network file systems may give files of this process to another user, and some keep no modes:
/// a trial file in the same folder shows what is usual there.
fn judge(found: &Metadata, folder: &Path, closed: u32) -> Result<(), Exposure> {
    let is_ours = is_trusted(found.uid());
    let open = found.mode() & closed;
    if is_ours && open == 0 {
        return Ok(());
    }
    let usual = trial(folder).ok();
    let usual = usual.as_ref();
    if !is_ours && usual.is_none_or(|usual| usual.uid() != found.uid()) {
        return Err(Exposure::Owner { theirs: found.uid(), ours: geteuid().as_raw() });
    }
    if open & OTHERS == 0 && is_of_shared_volume(found, folder) {
        return Ok(());
    }
    if open != 0 && !usual.is_some_and(keeps_no_modes) {
        let mode = found.mode() & 0o7777;
        return Err(if found.is_dir() {
            Exposure::OpenFolder(mode)
        } else {
            Exposure::OpenFile(mode)
        });
    }
    Ok(())
}

/// Mode bits that apply to all other users.
const OTHERS: u32 = 0o007;
/// Mode bit by which new entries of a folder get the folder's group (setgid).
const SET_GROUP: u32 = 0o2000;

/// Reports whether a file or folder is open to its group because it lies on a volume with `fsGroup`: at each mount
/// kubelet gives the whole volume to that group, to read and write, and the folders hand the group down. The group is
/// one of this process; other Pods have that group only if somebody gave it to them.
fn is_of_shared_volume(found: &Metadata, folder: &Path) -> bool {
    let gid = found.gid();
    let hands_down = |of: &Metadata| of.mode() & SET_GROUP != 0 && of.gid() == gid;
    let is_handed_down = if found.is_dir() {
        hands_down(found)
    } else {
        fs::metadata(folder).is_ok_and(|folder| hands_down(&folder))
    };
    let is_in = |groups: Vec<Gid>| groups.iter().any(|group| group.as_raw() == gid);
    is_handed_down && (getegid().as_raw() == gid || getgroups().is_ok_and(is_in))
}

/// Reports whether a file system shows a private file of this process as open to others.
fn keeps_no_modes(usual: &Metadata) -> bool {
    usual.mode() & 0o077 != 0
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::os::unix::net::UnixListener;

    use rustix::fs::{FileType, mknodat};
    use tempfile::TempDir;

    use super::*;

    fn told<T: fmt::Debug>(refused: Result<T, Unprotected>) -> String {
        match refused {
            Err(Unprotected::Exposed(exposure)) => exposure.to_string(),
            Err(Unprotected::System(error)) => error.kind().to_string(),
            Ok(_) => "used".to_owned(),
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_private_file_keeps_its_text_and_a_new_one_is_ours_alone() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("file");
        for text in ["", "text"] {
            open_private(&file).unwrap();
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            fs::write(&file, "text").unwrap();
        }
    }

    /// Plants something in a file's place, and tells why it is not used; what the link leads to stays as it is.
    #[track_caller]
    fn check_file(plant: fn(&Path), expected: &str) {
        let folder = TempDir::new().unwrap();
        let (file, victim) = (folder.path().join("file"), folder.path().join("victim"));
        fs::write(&victim, "secret").unwrap();
        set_mode(&victim, 0o600);
        plant(&file);
        assert_eq!(told(judge_file(&file)), expected);
        assert_eq!(told(open_private(&file)), expected);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "secret");
    }

    #[test]
    fn what_is_no_private_file_is_not_opened() {
        check_file(|file| symlink("victim", file).unwrap(), "it is a link");
        check_file(|file| symlink("missing", file).unwrap(), "it is a link");
        let no_file = "it is not a regular file";
        check_file(|file| mknodat(CWD, file, FileType::Fifo, Mode::RUSR, 0).unwrap(), no_file);
        check_file(|file| drop(UnixListener::bind(file).unwrap()), no_file);
        check_file(|file| fs::create_dir(file).unwrap(), no_file);
    }

    #[test]
    fn a_file_that_others_may_use_is_not_opened() {
        let open = |file: &Path, mode| {
            fs::write(file, "").unwrap();
            set_mode(file, mode);
        };
        for mode in [0o644, 0o660, 0o602] {
            let folder = TempDir::new().unwrap();
            let file = folder.path().join("file");
            open(&file, mode);
            let expected = format!("it is open to other users (mode {mode:o})");
            assert_eq!(told(open_private(&file)), expected);
            assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, mode);
        }
    }

    #[test]
    fn a_folder_is_made_for_its_owner_and_one_that_others_only_look_into_is_used() {
        let above = TempDir::new().unwrap();
        let folder = above.path().join("deep/folder");
        make_private(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        for mode in [0o500, 0o750, 0o755] {
            set_mode(&folder, mode);
            assert_eq!(told(make_private(&folder)), "used", "{mode:o}");
        }
        for mode in [0o720, 0o777, 0o1777] {
            set_mode(&folder, mode);
            let expected = format!("other users may write to it (mode {mode:o})");
            assert_eq!(told(make_private(&folder)), expected);
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "a trial leaves nothing");
    }

    #[test]
    fn a_volume_with_a_group_of_ours_is_used() {
        let above = TempDir::new().unwrap();
        let (folder, file) = (above.path().join("state"), above.path().join("state/file"));
        make_private(&folder).unwrap();
        open_private(&file).unwrap();
        // What kubelet does at each mount of a volume with fsGroup.
        set_mode(&folder, 0o2770);
        set_mode(&file, 0o660);
        for path in [&folder, &file] {
            chown(path, None, Some(getegid().as_raw())).unwrap();
        }
        set_mode(&folder, 0o2770);
        assert_eq!(told(make_private(&folder)), "used");
        assert_eq!(told(open_private(&file)), "used");
        set_mode(&file, 0o664);
        assert_eq!(told(open_private(&file)), "it is open to other users (mode 664)");
        set_mode(&file, 0o660);
        for (mode, expected) in [
            (0o2772, "other users may write to it (mode 2772)"),
            (0o770, "other users may write to it (mode 770)"),
        ] {
            set_mode(&folder, mode);
            assert_eq!(told(make_private(&folder)), expected);
        }
        assert_eq!(told(open_private(&file)), "it is open to other users (mode 660)");
        set_mode(&folder, 0o2770);
        // Only root can give a folder to a group that is not its own.
        if chown(&folder, None, Some(65_533)).is_ok() {
            set_mode(&folder, 0o2770);
            assert_eq!(told(make_private(&folder)), "other users may write to it (mode 2770)");
        }
    }

    #[test]
    fn a_link_in_a_folder_s_place_is_not_followed() {
        let above = TempDir::new().unwrap();
        let link = above.path().join("link");
        for target in [".", "missing"] {
            symlink(target, &link).unwrap();
            assert_eq!(told(make_private(&link)), "it is a link", "{target}");
            fs::remove_file(&link).unwrap();
        }
        fs::write(&link, "").unwrap();
        assert_eq!(told(make_private(&link)), "not a directory");
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_used() {
        let above = TempDir::new().unwrap();
        let (folder, file) = (above.path().join("folder"), above.path().join("file"));
        make_private(&folder).unwrap();
        open_private(&file).unwrap();
        for path in [&folder, &file] {
            if chown(path, Some(65_534), None).is_err() {
                // Only root can give a file away.
                return;
            }
        }
        let expected = "it belongs to user 65534, and this is user 0";
        assert_eq!(told(make_private(&folder)), expected);
        assert_eq!(told(open_private(&file)), expected);
    }
}
