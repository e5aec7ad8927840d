//! Installs the crypto provider, runs the command, turns how it ended into an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use kubectl_acme::cli::{self, completion};
use kubectl_acme::process;

/// Objects are read, compared and dropped all the time, by several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A second provider would be ours as well.
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    // Before all that prints or logs.
    if completion::complete_words(cli::command) {
        return ExitCode::SUCCESS;
    }
    let cli = cli::parse();
    let runtime = match tokio::runtime::Runtime::new() {
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
