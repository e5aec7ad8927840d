//! A thread that does one job after another.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// The thread and its queue of jobs. After a drop, the jobs already sent are done and the thread has ended: the last
/// connection to leave the database tidies up, and must not be cut short by the end of the process.
pub(super) struct Worker<J> {
    jobs: Option<Sender<J>>,
    thread: Option<JoinHandle<()>>,
}

impl<J: Send + 'static> Worker<J> {
    /// Starts the thread.
    pub(super) fn start(
        name: &str,
        serve: impl FnOnce(Receiver<J>) + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, sent) = mpsc::channel();
        let thread = thread::Builder::new().name(name.into()).spawn(|| serve(sent))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Hands over a job; a thread that has ended drops the job.
    pub(super) fn send(&self, job: J) {
        let _taken = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
    }
}

impl<J> Drop for Worker<J> {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ended_well = thread.join().is_ok();
        }
    }
}
