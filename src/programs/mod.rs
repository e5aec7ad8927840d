//! Programs that are run with a bound on their time and on what is kept of their words.

use std::collections::VecDeque;
use std::io::{self, pipe};
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::time::timeout;

/// What is kept of its words, in bytes: the last ones.
const KEPT: usize = 4096;
/// Lines that are shown of a program that fails: its last ones.
const LINES: usize = 3;
/// How long its words are waited for when it has ended: what it left in the background may hold on to them.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// None when it took too long and was ended.
    pub status: Option<ExitStatus>,
    /// What it said last, on both outputs, from the beginning of a line: no half of a credential is left.
    pub said: Vec<u8>,
}

/// Ends a program and all that it has started, unless it has ended by itself.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Nobody is left where it fails.
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}

/// The last lines that a program said, in one; empty when it said nothing.
pub fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES)..].join(" / ")
}

/// Runs a program to its end. It is in a process group of its own: Ctrl-C at our terminal is ours, and it is ended with all that
/// it has started when its time is up or nobody waits for it any more.
///
/// # Errors
/// Fails when it cannot be started.
pub async fn run(mut command: Command, patience: Duration) -> io::Result<Ended> {
    let (reader, writer) = pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let mut child = command.spawn()?;
    // Our ends for writing: the words are at their end when the others close theirs.
    drop(command);
    let mut group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let said = Arc::new(Mutex::new(VecDeque::new()));
    let mut listening =
        tokio::spawn(listen(Receiver::from_owned_fd(OwnedFd::from(reader))?, Arc::clone(&said)));
    let status = if let Ok(status) = timeout(patience, child.wait()).await {
        group.0 = None;
        Some(status?)
    } else {
        drop(group);
        child.wait().await?;
        None
    };
    if timeout(LAST_WORDS, &mut listening).await.is_err() {
        listening.abort();
    }
    let mut said = said.lock();
    if said.len() == KEPT {
        let first = said.iter().position(|byte| *byte == b'\n').unwrap_or(KEPT);
        drop(said.drain(..first));
    }
    Ok(Ended { status, said: said.iter().copied().collect() })
}

async fn listen(mut words: Receiver, said: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; KEPT];
    while let Ok(count @ 1..) = words.read(&mut buffer).await {
        let mut said = said.lock();
        said.extend(&buffer[..count]);
        let surplus = said.len().saturating_sub(KEPT);
        drop(said.drain(..surplus));
    }
}
