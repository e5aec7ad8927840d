//! Child programs, run with a bound on their time and on the part of their output that is kept.

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

/// Most bytes that are kept of a program's output: the last ones.
const MAX_OUTPUT_BYTES: usize = 4096;
/// Most lines that are shown of a failed program's output: the last ones.
const SHOWN_LINES: usize = 3;
/// Longest wait for the output of an ended program: processes left in the background may hold the output open.
const OUTPUT_WAIT_MAX: Duration = Duration::from_secs(1);

/// Outcome of a program.
#[derive(Debug)]
pub struct ProgramResult {
    /// Exit status; `None` if the program took too long and was killed.
    pub status: Option<ExitStatus>,
    /// Last bytes of both outputs, from the beginning of a line: no half of a credential is left.
    pub said: Vec<u8>,
}

/// Process group that is killed on drop: a program and all that it started, unless the program has ended by itself.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Fails only if no process of the group is left.
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}

/// Joins the last lines of a program's output to one line; empty if the program wrote nothing.
pub fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join(" / ")
}

/// Runs a program to its end, in a process group of its own: Ctrl-C at the terminal does not reach the program. When
/// `patience` is over or the future is dropped, the program and all that it started are killed.
///
/// # Errors
/// Fails if the program cannot be started.
pub async fn run(mut command: Command, patience: Duration) -> io::Result<ProgramResult> {
    let (reader, writer) = pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer).process_group(0);
    let mut child = command.spawn()?;
    // The parent's ends for writing are closed: the output ends when the children close their ends.
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
    if timeout(OUTPUT_WAIT_MAX, &mut listening).await.is_err() {
        listening.abort();
    }
    let mut said = said.lock();
    if said.len() == MAX_OUTPUT_BYTES {
        let first = said.iter().position(|byte| *byte == b'\n').unwrap_or(MAX_OUTPUT_BYTES);
        drop(said.drain(..first));
    }
    Ok(ProgramResult { status, said: said.iter().copied().collect() })
}

async fn listen(mut words: Receiver, said: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; MAX_OUTPUT_BYTES];
    while let Ok(count @ 1..) = words.read(&mut buffer).await {
        let mut said = said.lock();
        said.extend(&buffer[..count]);
        let surplus = said.len().saturating_sub(MAX_OUTPUT_BYTES);
        drop(said.drain(..surplus));
    }
}
