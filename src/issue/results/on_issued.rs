//! Command of `--on-issued`, which is run once for each certificate on disk.
//!
//! After the command has succeeded, a file beside certificate and key gets the serial number: after an earlier kill the
//! command runs once more, and no kill makes it be skipped. The serial number is not kept in the store, because the command
//! is about this machine; another machine with the same certificate of the same cluster has a server of its own to reload.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::files::Written;
use crate::acme::chain::{self, Leaf};
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::context::output_files::{draft_name, fail, on_disk};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk::{Durability, FileAccess, Folder, Links, read_given};
use crate::issue::flags::on_issued::OnIssuedArgs;
use crate::model::{Key, Time};
use crate::programs::{self, ProgramResult, last_words};
use crate::store::folder::explain;

/// File with the serial number of the certificate for which the command has succeeded.
const DONE_FILE: &str = "on-issued.done";
/// File with the last output of the command.
const LOG_FILE: &str = "on-issued.log";
/// Longest chain that is read, in bytes.
const CHAIN_LIMIT: u64 = 1 << 20;
/// First and longest pause before a command that failed is run again by itself; each failure doubles the pause.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_secs(30), Duration::from_hours(1));

/// Command of the user, and its failed runs. One run at a time: the command may restart the server of all certificates.
#[derive(Debug)]
pub struct OnIssued {
    command: String,
    patience: Duration,
    failed: Mutex<BTreeMap<PathBuf, FailedRuns>>,
}

/// Successive failed runs for one certificate.
#[derive(Debug)]
struct FailedRuns {
    serial: String,
    pause: Duration,
    until: Instant,
    why: String,
}

/// Issued certificate, and its files.
struct IssuedFiles<'a> {
    key: &'a Key,
    leaf: Leaf,
    folder: &'a Path,
    written: &'a Written,
}

impl OnIssuedArgs {
    /// Returns the command, if there is one; it needs a folder to which certificates are written.
    ///
    /// # Errors
    /// Fails when there is no folder.
    pub fn chosen(&self, out: Option<&Path>) -> Result<Option<OnIssued>, Failure> {
        let Some(command) = &self.on_issued else { return Ok(None) };
        if out.is_none() {
            let message =
                "--on-issued needs certificates in files, and this command writes no files";
            return Err(Failure::usage(message).hint("name a folder for the files: --out DIR"));
        }
        let (command, patience) = (command.clone(), self.on_issued_timeout.0.unsigned_abs());
        Ok(Some(OnIssued { command, patience, failed: Mutex::default() }))
    }
}

impl OnIssued {
    /// Runs the command for the certificate in these files, unless the command has succeeded for it already; returns a line
    /// for people if the command ran. A command that failed is not run again before its pause is over.
    ///
    /// # Errors
    /// Fails when the command does, cannot be started or takes too long, when a file cannot be used, or a signal came.
    pub async fn run(
        &self,
        key: &Key,
        written: &Written,
        interrupted: &Interrupted,
    ) -> Result<Option<String>, Failure> {
        let mut failed = self.failed.lock().await;
        let folder = written.certificate.parent().unwrap_or_else(|| Path::new("."));
        let Some(leaf) = read(folder, &written.certificate, interrupted).await? else {
            return Ok(None);
        };
        let before = failed.get(folder).filter(|before| before.serial == leaf.serial);
        let pause = match before {
            Some(before) if Instant::now() < before.until => {
                return Err(self.failure(key, &before.why));
            }
            Some(before) => (before.pause * 2).min(RETRY_PAUSES.1),
            None => RETRY_PAUSES.0,
        };
        let issued = IssuedFiles { key, leaf, folder, written };
        let ended = tokio::select! {
            ended = self.run_now(&issued, interrupted) => ended,
            kind = interrupted.wait() => {
                let message = format!("the command of --on-issued was ended for {key}: interrupted");
                let hint = "the same kubectl-acme command tries again";
                return Err(Failure::new(kind, message).hint(hint));
            }
        };
        let Err(why) = ended else {
            failed.remove(folder);
            let (here, serial) = (folder.to_owned(), issued.leaf.serial);
            replace_file(&here, DONE_FILE, serial + "\n", interrupted).await?;
            return Ok(Some(format!("{key}: `{}` has run", self.command)));
        };
        let until = Instant::now() + pause;
        let failure = self.failure(key, &why);
        failed.insert(
            folder.to_owned(),
            FailedRuns { serial: issued.leaf.serial, pause, until, why },
        );
        Err(failure)
    }

    /// Runs the command, and stores its output.
    async fn run_now(
        &self,
        issued: &IssuedFiles<'_>,
        interrupted: &Interrupted,
    ) -> Result<(), String> {
        let IssuedFiles { key, leaf, folder, written } = issued;
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(&self.command)
            .env("ISSUED_CERTIFICATE", key.name.to_string())
            .env("ISSUED_NAMES", leaf.names.identifiers().join(" "))
            .env("ISSUED_SERIAL", &leaf.serial)
            .env("ISSUED_NOT_AFTER", Time::new(leaf.not_after).to_string())
            .env("ISSUED_FOLDER", folder)
            .env("ISSUED_CERT_FILE", &written.certificate)
            .stdin(Stdio::null());
        match &written.key {
            Some(key) => command.env("ISSUED_KEY_FILE", key),
            None => command.env_remove("ISSUED_KEY_FILE"),
        };
        let ProgramResult { status, said } = programs::run(command, self.patience)
            .await
            .map_err(|error| format!("sh cannot be started: {}", explain(&error)))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let last = last_words(&said);
        // A lost output does not make the run a failure.
        if let Err(failure) = replace_file(folder, LOG_FILE, said, interrupted).await {
            tracing::warn!(why = %failure, "what the command of --on-issued said is not kept");
        }
        let why = match status {
            Some(status) if status.success() => return Ok(()),
            Some(status) => match status.code() {
                Some(code) => format!("it ended with exit status {code}"),
                // `signal: 9 (SIGKILL)`
                None => format!("it was ended by {status}"),
            },
            None => {
                let seconds = self.patience.as_secs();
                format!(
                    "it was still running after {seconds} s, and was ended (--on-issued-timeout)"
                )
            }
        };
        Err(if last.is_empty() { why } else { format!("{why}: {last}") })
    }

    fn failure(&self, key: &Key, why: &str) -> Failure {
        let command = &self.command;
        let message = format!("`{command}` failed for {key}: {why}");
        Failure::new(FailureKind::Unexpected, message)
            .hint("certificate and key are written; the same kubectl-acme command tries again")
    }
}

/// Reads the certificate of a folder; `None` if the command has already succeeded for the certificate.
async fn read(
    folder: &Path,
    certificate: &Path,
    interrupted: &Interrupted,
) -> Result<Option<Leaf>, Failure> {
    let (here, certificate) = (folder.to_owned(), certificate.to_owned());
    on_disk(folder, interrupted, move || {
        let fail = |why: &str| {
            let message = format!("cannot read {}: {why}", certificate.display());
            Failure::new(FailureKind::Unexpected, message)
        };
        let pem = read_given(&certificate, CHAIN_LIMIT).map_err(|error| fail(&explain(&error)))?;
        let leaf = chain::leaf(&pem).map_err(|fault| fail(&fault.to_string()))?;
        let folder = Folder::open(&here, Links::Trusted).map_err(|error| fail(&explain(&error)))?;
        let is_done = folder.holds(DONE_FILE, format!("{}\n", leaf.serial).as_bytes());
        Ok((!is_done).then_some(leaf))
    })
    .await
}

/// Replaces a file of the folder that only its owner may read.
async fn replace_file(
    folder: &Path,
    name: &'static str,
    text: String,
    interrupted: &Interrupted,
) -> Result<(), Failure> {
    let here = folder.to_owned();
    on_disk(folder, interrupted, move || {
        let replaced = Folder::open(&here, Links::Trusted).and_then(|folder| {
            let draft = draft_name(name);
            folder.replace(name, &draft, text.as_bytes(), FileAccess::Owner, Durability::Lasting)
        });
        replaced.map_err(|error| fail(&here.join(name), &error))
    })
    .await
}
