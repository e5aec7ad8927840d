//! Installs the crypto provider, runs the command, and turns its outcome into an exit code.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use kubectl_acme::cli::{self, completion};
use kubectl_acme::process;

/// Allocator; objects are read, compared and dropped all the time, by several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Longest time that a thread for blocking work stays without work. Each thread keeps memory of its own, and after a
/// burst all threads take turns: with the usual ten seconds, seven pieces of work a second keep seventy threads.
const THREAD_KEEP_ALIVE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // A provider that is already installed would be this program's as well.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    // Before all that prints or logs.
    if completion::complete_words(cli::command) {
        return ExitCode::SUCCESS;
    }
    let cli = cli::parse();
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = match threads.enable_all().thread_keep_alive(THREAD_KEEP_ALIVE).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            // If stderr fails, too, no way is left to report the error.
            let _unheard = writeln!(std::io::stderr(), "error: cannot start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(process::execute(cli.global, cli.command));
    // A lookup that hangs in the system's resolver must not hold up the process.
    runtime.shutdown_background();
    code
}
