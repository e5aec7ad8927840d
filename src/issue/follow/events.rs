//! `--events`: the file that gets every step, for programs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::context::failure::Failure;
use crate::print::event_log::EventLog;
use crate::store::folder::explain;

/// Folder of the open files of this process, by number.
const OPEN_FILES: &str = "/dev/fd";

/// Opens the target of `--events`: an open file descriptor by its number, or a file that is created or appended to.
///
/// # Errors
/// Fails when it cannot be written to.
pub fn open(place: Option<&str>) -> Result<EventLog, Failure> {
    let Some(place) = place else { return Ok(EventLog::default()) };
    let sink: Box<dyn Write + Send> = match place.parse::<u32>() {
        Ok(0) => return Err(Failure::usage("--events=0 is standard input, which is not writable")),
        Ok(1) => Box::new(io::stdout()),
        Ok(2) => Box::new(io::stderr()),
        Ok(number) => match open_descriptor(number) {
            Ok(Some(file)) => Box::new(file),
            Ok(None) => return Ok(EventLog::default()),
            Err(error) => {
                let message = format!("cannot write to file descriptor {number} (--events): ");
                let hint = format!("open the descriptor in the shell, with {number}>FILE");
                return Err(Failure::usage(message + &explain(&error)).hint(hint));
            }
        },
        Err(_) => match OpenOptions::new().create(true).append(true).open(place) {
            Ok(file) => Box::new(file),
            Err(error) => {
                let message = format!("cannot write to {place} (--events): {}", explain(&error));
                return Err(Failure::usage(message));
            }
        },
    };
    Ok(EventLog::new(sink))
}

/// Opens a file that the parent process has opened; `None` if it is a pipe that no process reads any more.
fn open_descriptor(number: u32) -> io::Result<Option<File>> {
    let path = format!("{OPEN_FILES}/{number}");
    // Opening a pipe without a reader would wait for a reader.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    match OpenOptions::new().append(true).custom_flags(flags).open(&path) {
        Ok(_) => OpenOptions::new().append(true).open(&path).map(Some),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd as _;

    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_file_is_added_to_and_a_number_is_an_open_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        for text in ["one", "two"] {
            open(path.to_str()).unwrap().message(text, Timestamp::UNIX_EPOCH);
        }
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        let number = file.as_raw_fd().to_string();
        open(Some(&number)).unwrap().message("three", Timestamp::UNIX_EPOCH);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_no_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let number = writer.as_raw_fd().to_string();
        open(Some(&number)).unwrap().message("nobody hears it", Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn what_takes_nothing_is_refused() {
        for place in ["0", "4999", "/nowhere/events"] {
            assert!(open(Some(place)).is_err(), "{place}");
        }
    }
}
