//! What `--on-issued` runs, once for each certificate on disk.
//!
//! The serial number of the certificate for which the command has succeeded is a file beside its pair, written after: a kill
//! before makes the command run once more, and nothing makes it be skipped. The file is not in the store, for the command is
//! about this machine; another one that has the same certificate from the same cluster has its own server to reload.

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
use crate::disk::{Durability, Folder, Links, Readers, read_given};
use crate::issue::flags::on_issued::OnIssuedArgs;
use crate::model::{Key, Time};
use crate::programs::{self, Ended, last_words};
use crate::store::folder::explain;

/// The serial number of the certificate for which the command has succeeded.
const DONE: &str = "on-issued.done";
/// What the command said last.
const LOG: &str = "on-issued.log";
/// Longest chain that is read, in bytes.
const CHAIN_LIMIT: u64 = 1 << 20;
/// How soon a command that failed is run again where nobody starts it anew, and the longest pause; each failure doubles it.
const PAUSES: (Duration, Duration) = (Duration::from_secs(30), Duration::from_hours(1));

/// The command, and how its runs ended. One runs at a time: it may restart what serves all certificates.
#[derive(Debug)]
pub struct OnIssued {
    command: String,
    patience: Duration,
    failed: Mutex<BTreeMap<PathBuf, FailedRuns>>,
}

/// Runs for one certificate that failed one after the other.
#[derive(Debug)]
struct FailedRuns {
    serial: String,
    pause: Duration,
    until: Instant,
    why: String,
}

/// A certificate that came, and where it is.
struct IssuedFiles<'a> {
    key: &'a Key,
    leaf: Leaf,
    folder: &'a Path,
    written: &'a Written,
}

impl OnIssuedArgs {
    /// The command, where there is one; it needs a folder in which certificates are written.
    ///
    /// # Errors
    /// Fails when there is none.
    pub fn chosen(&self, out: Option<&Path>) -> Result<Option<OnIssued>, Failure> {
        let Some(command) = &self.on_issued else { return Ok(None) };
        if out.is_none() {
            let message =
                "--on-issued runs when certificates are written to files, and here none are";
            return Err(Failure::usage(message).hint("name a folder for them: --out DIR"));
        }
        let (command, patience) = (command.clone(), self.on_issued_timeout.0.unsigned_abs());
        Ok(Some(OnIssued { command, patience, failed: Mutex::default() }))
    }
}

impl OnIssued {
    /// Runs the command for the certificate in these files, unless it has succeeded for that one, and says that it did. One that
    /// failed a moment ago is not run again before its pause is over.
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
            Some(before) => (before.pause * 2).min(PAUSES.1),
            None => PAUSES.0,
        };
        let issued = IssuedFiles { key, leaf, folder, written };
        let ended = tokio::select! {
            ended = self.run_now(&issued, interrupted) => ended,
            kind = interrupted.wait() => {
                let message = format!("the command of --on-issued was ended for {key}: interrupted");
                let hint = "the same command runs it once more";
                return Err(Failure::new(kind, message).hint(hint));
            }
        };
        let Err(why) = ended else {
            failed.remove(folder);
            let (here, serial) = (folder.to_owned(), issued.leaf.serial);
            keep(&here, DONE, serial + "\n", interrupted).await?;
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

    /// Runs the command, and keeps what it says.
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
        let Ended { status, said } = programs::run(command, self.patience)
            .await
            .map_err(|error| format!("sh cannot be started: {}", explain(&error)))?;
        let said = String::from_utf8_lossy(&said).into_owned();
        let last = last_words(&said);
        // What was said is worth less than what was done.
        if let Err(failure) = keep(folder, LOG, said, interrupted).await {
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
            .hint("the certificate and its key are written; the same command runs it once more")
    }
}

/// Reads the certificate of a folder; nothing when the command has succeeded for it.
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
        let is_done = folder.holds(DONE, format!("{}\n", leaf.serial).as_bytes());
        Ok((!is_done).then_some(leaf))
    })
    .await
}

/// Replaces a file of the folder that only its owner may read.
async fn keep(
    folder: &Path,
    name: &'static str,
    text: String,
    interrupted: &Interrupted,
) -> Result<(), Failure> {
    let here = folder.to_owned();
    on_disk(folder, interrupted, move || {
        let replaced = Folder::open(&here, Links::Trusted).and_then(|folder| {
            let draft = draft_name(name);
            folder.replace(name, &draft, text.as_bytes(), Readers::Owner, Durability::Lasting)
        });
        replaced.map_err(|error| fail(&here.join(name), &error))
    })
    .await
}
