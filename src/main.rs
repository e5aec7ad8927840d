//! Installs the crypto provider, runs the command, turns how it ended into an exit code.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use kubectl_acme::cli::{self, completion};
use kubectl_acme::process;

/// Objects are read, compared and dropped all the time, by several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long a thread for blocking work stays when it has none. Each keeps memory of its own, and all that a burst has made take
/// turns from then on: with the usual ten seconds, seven pieces of work a second keep seventy threads.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // A second provider would be ours as well.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    // Before all that prints or logs.
    if completion::complete_words(cli::command) {
        return ExitCode::SUCCESS;
    }
    let cli = cli::parse();
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = match threads.enable_all().thread_keep_alive(KEEP_ALIVE).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            // Nothing else is left to say it with.
            let _unheard = writeln!(std::io::stderr(), "error: cannot start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(process::execute(cli.global, cli.command));
    // A look-up that hangs in the system's resolver does not hold the process.
    runtime.shutdown_background();
    code
}
