//! Program that publishes and removes records, called in lego's way: `PROGRAM present|cleanup NAME TEXT`.
//!
//! Programs run only from a local store and by a flag: otherwise anyone who may write an Issuer
//! could run programs in the controller.

use std::env;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::process::Command;

use super::credential::{Credential, without};
use super::site::{Site, zone_of};
use super::{Provider, TxtRecord};
use crate::dns::FindZone;
use crate::model::own_solver::hook::{Hook, Variable};
use crate::programs::{self, ProgramResult, last_words};
use crate::solvers::SolveError;

/// The exit status of a program that asks for another try (EX_TEMPFAIL of BSD's sysexits).
const ANOTHER_TRY: i32 = 75;
/// Actions, in the words of lego.
const PRESENT: &str = "present";
const CLEAN_UP: &str = "cleanup";

/// Program that publishes and removes records.
#[derive(Debug)]
pub(super) struct Exec {
    program: String,
    arguments: Vec<String>,
    variables: Vec<(String, Credential)>,
    /// Values of the variables that come from Secrets.
    secrets: Vec<Credential>,
    timeout: Duration,
    zones: Arc<dyn FindZone>,
}

impl Exec {
    /// Builds the program with its variables, with values read from Secrets.
    pub(super) async fn of(hook: Hook, site: &Site<'_>) -> Result<Self, SolveError> {
        let mut words = hook.command.into_iter().chain(hook.args);
        let program = words.next().unwrap_or_default();
        let (mut variables, mut secrets) = (Vec::new(), Vec::new());
        for Variable { name, value, value_from } in hook.env {
            let value = match value_from {
                Some(source) => {
                    let secret = Credential::new(&site.secret(&source.secret_key_ref).await?);
                    secrets.push(secret.clone());
                    secret
                }
                None => Credential::new(&value.unwrap_or_default()),
            };
            variables.push((name, value));
        }
        Ok(Self {
            program,
            arguments: words.collect(),
            variables,
            secrets,
            timeout: Duration::from_secs(hook.timeout_seconds),
            zones: Arc::clone(site.zones),
        })
    }

    async fn run(&self, action: &str, record: &TxtRecord) -> Result<(), SolveError> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .args([action, &record.name, &record.value])
            .envs(self.variables.iter().map(|(name, value)| (name, value.expose())))
            .env("DNS01_ACTION", action)
            .env("DNS01_DOMAIN", &record.domain)
            .env("DNS01_RECORD", &record.name)
            .env("DNS01_VALUE", &record.value)
            .stdin(Stdio::null());
        // A program that knows its zones needs no help, so a failed lookup of the zone is no error.
        match zone_of(&*self.zones, &record.name).await {
            Ok(zone) => command.env("DNS01_ZONE", zone),
            Err(_) => command.env_remove("DNS01_ZONE"),
        };
        match programs::run(command, self.timeout).await {
            Ok(ProgramResult { status: Some(status), .. }) if status.success() => Ok(()),
            Ok(ProgramResult { status: Some(status), said }) => {
                Err(self.exit_error(action, record, status, &said))
            }
            Ok(ProgramResult { status: None, said }) => {
                let why = format!(
                    "it was still running after {} s, and was ended",
                    self.timeout.as_secs()
                );
                let hint = "if it needs longer, set timeoutSeconds (at most 600) in its config";
                let why = self.with_last_words(why, &said);
                Err(self.error(action, record, why).advised(hint))
            }
            Err(error) => {
                let why =
                    error.to_string().split(" (os error").next().unwrap_or_default().to_owned();
                Err(self.error(action, record, format!("it cannot be started: {why}")))
            }
        }
    }

    fn exit_error(
        &self,
        action: &str,
        record: &TxtRecord,
        status: ExitStatus,
        said: &[u8],
    ) -> SolveError {
        let why = match status.code() {
            Some(code) => format!("it ended with exit status {code}"),
            // `signal: 9 (SIGKILL)`
            None => format!("it was ended by {status}"),
        };
        let error = self.error(action, record, self.with_last_words(why, said));
        SolveError { needs_person: status.code() != Some(ANOTHER_TRY), ..error }
    }

    fn error(&self, action: &str, record: &TxtRecord, why: String) -> SolveError {
        let command = [&self.program].into_iter().chain(&self.arguments).map(String::as_str);
        let command = command.chain([action, &record.name]).collect::<Vec<_>>().join(" ");
        SolveError::lasting(format!("the hook `{command}` fails"), why).advised(format!(
            "run it by hand: {command} TEXT; it has to end with 0 once the TXT record is {}",
            if action == PRESENT { "published" } else { "gone" }
        ))
    }

    /// Adds the last lines of the output, without values from Secrets.
    fn with_last_words(&self, why: String, said: &[u8]) -> String {
        let said = String::from_utf8_lossy(said);
        let said = without(&said, self.secrets.iter());
        let last = last_words(&said);
        if last.is_empty() { why } else { format!("{why}: {}", super::text::one_line(&last)) }
    }

    /// Returns the path of the program, as the system finds it for a run.
    fn find_program(&self) -> Option<PathBuf> {
        if self.program.contains('/') {
            return Some(PathBuf::from(&self.program)).filter(|path| path.is_file());
        }
        let folders = env::var_os("PATH").unwrap_or_default();
        let mut candidates = env::split_paths(&folders).map(|folder| folder.join(&self.program));
        candidates.find(|path| is_executable(path))
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[async_trait]
impl Provider for Exec {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        self.run(PRESENT, record).await
    }

    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError> {
        self.run(CLEAN_UP, record).await
    }

    /// Checks only that the program exists and is executable: the program's work is unknown.
    async fn check(&self, _: &str) -> Result<(), SolveError> {
        let why = match self.find_program() {
            Some(path) if is_executable(&path) => return Ok(()),
            Some(_) => "the file is not executable",
            None => "there is no such program",
        };
        Err(SolveError::lasting(format!("cannot run the hook {}", self.program), why.to_owned())
            .advised("write its path from the root, and let it be executable (chmod +x)"))
    }
}
