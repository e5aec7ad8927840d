//! Detection of network file systems.

use std::fs;
use std::path::{Path, PathBuf};

/// File systems that several machines share, by the names the kernel gives them.
const NETWORKS: [&str; 9] =
    ["9p", "afs", "ceph", "cifs", "fuse.sshfs", "nfs", "nfs4", "smb3", "virtiofs"];

/// Returns whether a folder lies on a network file system; `false` if the kernel does not say.
pub(super) fn is_on_network(folder: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    fs::canonicalize(folder)
        .is_ok_and(|folder| file_system(&mounts, &folder).is_some_and(is_network))
}

fn is_network(file_system: &str) -> bool {
    NETWORKS.contains(&file_system)
}

/// The type of the file system that holds a path: the last of the longest mount points above it.
fn file_system<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let fields = |line: &'a str| {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.replace("\\040", " ");
        Some((PathBuf::from(point), after.split(' ').next()?))
    };
    let above = mounts.lines().filter_map(fields).filter(|(point, _)| path.starts_with(point));
    above.max_by_key(|(point, _)| point.components().count()).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:30 / /home rw - nfs4 server:/home rw
41 40 0:31 / /home/local\\040disk rw - ext4 /dev/vdb rw
42 22 0:32 / /home2 rw - tmpfs tmpfs rw
";

    #[test]
    fn the_nearest_mount_point_decides() {
        for (path, expected) in [
            ("/var/lib/acme", "ext4"),
            ("/home/ann/state", "nfs4"),
            ("/home/local disk/state", "ext4"),
            ("/home2/state", "tmpfs"),
        ] {
            assert_eq!(file_system(MOUNTS, Path::new(path)), Some(expected), "{path}");
        }
    }
}
