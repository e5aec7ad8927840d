//! This program, as tests start it.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use super::cluster::eventually;
use super::empty_dns;

/// Where it lies.
pub const PATH: &str = env!("CARGO_BIN_EXE_kubectl-acme");

/// A command of it, which inherits nothing of the environment of the tests, and asks no DNS but theirs.
pub fn command() -> Command {
    let mut command = Command::new(PATH);
    command.env_clear().env("KUBECTL_ACME_DNS", empty_dns::address().to_string());
    command
}

/// This program, beside the test; it ends with it.
pub struct Running {
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a command that writes both streams to a log.
    pub fn start(command: &mut Command, log: PathBuf) -> Self {
        let both = File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(both.try_clone().unwrap()).stderr(both);
        Self { child: command.spawn().unwrap(), log }
    }

    /// What it has said and printed.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it says something.
    #[track_caller]
    pub fn says(&mut self, words: &str) {
        let said = |running: &Self| running.log().contains(words);
        eventually(words, || {
            (said(self) || self.child.try_wait().unwrap().is_some()).then_some(())
        });
        assert!(said(self), "it ended without \"{words}\":\n{}", self.log());
    }

    /// Waits for its end, and returns all it said.
    #[track_caller]
    pub fn ends(mut self, expected: i32) -> String {
        let status = eventually("its end", || self.child.try_wait().unwrap());
        let log = self.log();
        assert_eq!(status.code(), Some(expected), "{log}");
        log
    }

    /// Asks it to end, as Ctrl-C does.
    pub fn interrupt(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    }

    /// Ends it as a power cut would.
    pub fn kill(&mut self) -> ExitStatus {
        self.child.kill().unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended needs no end.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
