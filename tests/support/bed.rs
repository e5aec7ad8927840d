//! The bed's programs: where they are, and how one runs no longer than its test.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// Ports below the range from which the system takes those of outgoing connections: a block for each test process.
const BLOCKS: u16 = 19_100;
/// How many ports a block has: with few, one that a test has between two runs of a program is given to another test.
const BLOCK: u16 = 340;
/// Whoever listens at the first of these has the first block, and so on.
const CLAIMS: std::ops::Range<u16> = 19_000..19_040;

/// Returns the path of one of the bed's programs; a missing bed fails the test, it never skips it.
pub fn program(name: &str) -> PathBuf {
    let bed = std::env::var_os("KUBECTL_ACME_BED")
        .map(PathBuf::from)
        .expect("KUBECTL_ACME_BED names the folder of the test servers: run `just pebble`");
    let path = bed.join(name);
    assert!(path.exists(), "{} is missing: run tests/run once", path.display());
    path
}

/// A number that no other test process has that runs at the same time, from 0 on.
pub fn number_of_process() -> u16 {
    static CLAIM: OnceLock<(u16, TcpListener)> = OnceLock::new();
    let claim = || {
        let claimed = |port| Some((port - CLAIMS.start, listen(port).ok()?));
        CLAIMS.into_iter().find_map(claimed).expect("40 test processes do not run at once")
    };
    CLAIM.get_or_init(claim).0
}

fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// Returns a loopback port that is free for TCP and UDP, another one at each call, and none that another test process takes.
pub fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let first = BLOCKS + number_of_process() * BLOCK;
    (0..BLOCK)
        .map(|_| first + TAKEN.fetch_add(1, Ordering::Relaxed) % BLOCK)
        .find(|port| listen(*port).is_ok() && UdpSocket::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("a block of ports is not all taken")
}

/// Copies a program. Another process does it: a file that is open for writing in ours, and so in whatever another test starts
/// meanwhile, cannot be run (ETXTBSY).
pub fn copy_program(from: impl AsRef<OsStr>, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(copied.success(), "cannot copy to {}", to.display());
}

/// A server process that ends when this value goes, or when the test process dies in whatever way.
#[derive(Debug)]
pub struct Server {
    /// A shell that waits for the end of its input and then kills the server.
    tether: Child,
}

impl Server {
    /// Starts a command with its output in `log`.
    pub fn start(command: &Command, log: &Path) -> Self {
        let output = File::create(log).unwrap();
        let mut tethered = Command::new("bash");
        tethered
            .args(["-c", TETHER, "tether"])
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::piped())
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => tethered.env(name, value),
                None => tethered.env_remove(name),
            };
        }
        Self { tether: tethered.spawn().expect("bash starts") }
    }

    /// Sends it a signal, such as `TERM`, `STOP` or `CONT`.
    pub fn signal(&mut self, name: &str) {
        let tether = self.tether.stdin.as_mut().expect("it is taken only at the end");
        writeln!(tether, "{name}").expect("the server is running");
    }

    /// Its exit code, once it has ended.
    pub fn code(&mut self) -> Option<i32> {
        self.tether.try_wait().unwrap()?.code()
    }

    /// Says whether the server is still running.
    pub fn is_running(&mut self) -> bool {
        self.tether.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.tether.stdin.take());
        self.tether.wait().ok();
    }
}

/// Ends with the server, or ends the server at the end of input; until then its lines are signals to pass on. The
/// server leads a process group, so that what it started ends with it. A signal on the death of the parent would not
/// do: it comes when the thread that started the server ends, and tests share servers between threads.
const TETHER: &str = r#"
exec 3<&0
setsid "$@" </dev/null 3<&- & server=$!
{
  while read -r signal <&3; do kill -s "$signal" "$server"; done
  kill -KILL -- "$server" "-$server"
} 2>/dev/null & watch=$!
exec 3<&-
wait "$server" 2>/dev/null; code=$?
kill -KILL -- "-$server" "$watch" 2>/dev/null
exit "$code"
"#;
