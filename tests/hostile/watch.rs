//! Tries inputs on a thread of its own, and tells a panic, too much time and too much memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use rustix::time::{ClockId, clock_gettime};

use super::ALLOCATED;
use super::change::shortened;
use super::kinds::{Bench, KINDS};

/// Bytes that an input may take.
const MEMORY: usize = 200 << 20;
/// So many times the processor time that an input may take passes before nobody waits for it any more: others may be at work.
const PATIENCE: u32 = 10;
/// As tokio's threads have it; frames that nobody has made smaller need more.
const STACK: usize = if cfg!(debug_assertions) { 8 << 20 } else { 2 << 20 };
/// How long an input is made shorter.
const SHORTENING: Duration = Duration::from_secs(30);

/// What came of an input: its processor time, or a panic.
type Tried = Result<Duration, String>;

/// The thread that tries, and where the input of the moment is kept: a stack that is too deep ends the process.
pub(crate) struct Watch {
    limit: Duration,
    folder: PathBuf,
    inputs: Sender<(usize, Vec<u8>)>,
    outcomes: Receiver<Tried>,
}

impl Watch {
    pub(crate) fn new(limit: Duration) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
        fs::create_dir_all(&folder).unwrap();
        println!(
            "a process that ends at once leaves its input in {}",
            folder.join("now").display()
        );
        let (inputs, outcomes) = start(&folder);
        Self { limit, folder, inputs, outcomes }
    }

    /// Tries an input.
    pub(crate) fn try_input(&mut self, kind: usize, bytes: &[u8]) -> Result<(), String> {
        fs::write(self.folder.join("now"), bytes).unwrap();
        ALLOCATED.reset_peak_usage();
        let before = ALLOCATED.peak_usage();
        self.inputs.send((kind, bytes.to_vec())).unwrap();
        // Whoever never comes back is told as well.
        let tried = self.outcomes.recv_timeout(self.limit * PATIENCE);
        let taken = ALLOCATED.peak_usage().saturating_sub(before);
        let took = match tried {
            Ok(Ok(took)) => took,
            Ok(Err(panic)) => return Err(format!("it panics: {panic}")),
            Err(_) => {
                (self.inputs, self.outcomes) = start(&self.folder);
                return Err(format!("it takes more than {:.1?}", self.limit * PATIENCE));
            }
        };
        if took > self.limit {
            return Err(format!("{} bytes take {took:.1?}", bytes.len()));
        }
        if taken > MEMORY {
            return Err(format!("{} bytes take {} MB", bytes.len(), taken >> 20));
        }
        Ok(())
    }

    /// Makes an input that does harm shorter, and keeps it.
    pub(crate) fn shorten_and_keep(&mut self, kind: usize, name: &str, bytes: Vec<u8>) -> PathBuf {
        let path = self.folder.join(format!("{name}-{}", bytes.len()));
        fs::write(&path, &bytes).unwrap();
        // Each of them would be told, with its stack.
        std::panic::set_hook(Box::new(|_| ()));
        let until = Instant::now() + SHORTENING;
        let has_time = || Instant::now() < until;
        let short = shortened(bytes, |bytes| self.try_input(kind, bytes).is_err(), has_time);
        drop(std::panic::take_hook());
        fs::write(&path, &short).unwrap();
        path
    }
}

/// The processor time of this thread so far.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

fn start(folder: &Path) -> (Sender<(usize, Vec<u8>)>, Receiver<Tried>) {
    let (inputs, mine) = channel::<(usize, Vec<u8>)>();
    let (told, outcomes) = channel();
    let folder = folder.to_owned();
    let work = move || {
        let mut bench = Bench::new(&folder);
        while let Ok((kind, bytes)) = mine.recv() {
            let began = processor_time();
            let tried = catch_unwind(AssertUnwindSafe(|| KINDS[kind].1(&mut bench, &bytes)));
            let tried = tried.map(|()| processor_time().saturating_sub(began)).map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned();
                let word = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                text.or(word).unwrap_or_default()
            });
            if told.send(tried).is_err() {
                return;
            }
        }
    };
    drop(thread::Builder::new().stack_size(STACK).spawn(work).unwrap());
    (inputs, outcomes)
}
