//! What cleans up after a cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Removes a cluster's folder at the end, also at that of the process: nobody drops what is static.
pub(super) struct Janitor {
    folder: PathBuf,
    process: Child,
}

impl Janitor {
    /// Makes the folder.
    pub(super) fn start() -> Self {
        let folder =
            tempfile::Builder::new().prefix("cluster-").tempdir().map(TempDir::keep).unwrap();
        let script =
            r#"cat >/dev/null; sleep 1; [ -e "$1/keep" ] && set -- "$1/etcd"; rm -rf "$1""#;
        let process = Command::new("setsid")
            .args(["bash", "-c", script, "janitor"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .spawn()
            .expect("bash starts");
        Self { folder, process }
    }

    /// The folder, as long as the cluster runs.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Leaves the logs for whoever looks into a failed test.
    pub(super) fn keep(&self) {
        fs::write(self.folder.join("keep"), "").ok();
        #[expect(clippy::print_stderr, reason = "shown beside the failed assertion")]
        {
            eprintln!("the cluster's logs are in {}", self.folder.display());
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().ok();
    }
}
