//! SIGXFSZ, by which the system ends a process that outgrows its file-size limit (`ulimit -f`).

use std::sync::Once;

/// Number of SIGXFSZ on Linux, macOS and the BSDs.
#[cfg(unix)]
const SIGXFSZ: i32 = 25;

/// Makes a write beyond the file-size limit fail instead of ending the process, so that the user gets the error.
pub(super) fn survive_the_file_size_limit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(unix)]
        if let Err(error) = std::thread::spawn(take_the_signal).join().unwrap_or(Ok(())) {
            tracing::debug!(%error, "a file-size limit will end this process");
        }
    });
}

/// Sets a handler, which stays for the life of the process, runtime or not. The runtime is our own because a store may
/// be opened without any.
#[cfg(unix)]
fn take_the_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}
