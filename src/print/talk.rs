//! Standard error, shared by messages, logs and progress without tearing each other's lines: as text, or as one JSON
//! document a line for collectors of logs.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use indicatif::ProgressBar;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::colour::Colour;
use super::escape::{escape, escape_but_colours, no_command, set_off};
use super::palette::Ink;

/// The label of a note.
const NOTE: &str = "note";
/// Start of the targets of this program's own log events.
pub const OURS: &str = "kubectl_acme";

/// Stream of messages; clones share one stream.
#[derive(Clone)]
pub struct MessageStream(Arc<Mutex<TalkState>>);

/// Form of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageForm {
    /// Only messages for the user's attention are written: no notes, no progress.
    pub quiet: bool,
    /// Every line is a JSON document.
    pub json: bool,
}

struct TalkState {
    sink: Box<dyn Write + Send>,
    tone: MessageForm,
    /// Rows that must be off the screen while other text is written.
    spinner: Option<ProgressBar>,
}

impl MessageStream {
    /// Writes messages to a stream.
    pub fn new(sink: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(TalkState { sink, tone: MessageForm::default(), spinner: None })))
    }

    /// Sets the form of all later messages.
    pub fn set_tone(&self, tone: MessageForm) {
        self.inner().tone = tone;
    }

    /// Returns whether rows may stand among the messages.
    pub(super) fn takes_rows(&self) -> bool {
        self.inner().tone == MessageForm::default()
    }

    /// Writes a line; nothing in the line steers the terminal, and text after a line break is indented. A
    /// stream that takes no more text is no reason to stop working, so there is no error.
    pub fn line(&self, text: &str) {
        self.note(text, Colour::Off);
    }

    /// Draws rows, whose text is escaped already.
    pub(super) fn draw(&self, text: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.sink.write_all(text.as_bytes())?;
        inner.sink.flush()
    }

    /// Writes a line that may have this program's own colours, under the rules of [`Self::line`].
    pub fn coloured_line(&self, text: &str) {
        self.note(text, Colour::On);
    }

    fn note(&self, text: &str, colour: Colour) {
        let tone = self.inner().tone;
        if tone.quiet {
            return;
        }
        if tone.json {
            return self.write_plain(&json_message(NOTE, text));
        }
        self.write_line(&escape_but_colours(text, colour));
    }

    /// Writes a line that begins with the sort of message, in any tone.
    pub(super) fn labelled(&self, label: &str, ink: Ink, message: &str, colour: Colour) {
        let message = escape(message);
        if self.inner().tone.json {
            return self.write_plain(&json_message(label, &message));
        }
        let label = match colour {
            Colour::Off => format!("{label}:"),
            Colour::On => ink.label(&format!("{label}:")),
        };
        self.write_line(&escape_but_colours(&format!("{label} {message}"), colour));
    }

    /// Writes a line of the log, which is formatted already.
    pub(super) fn log_line(&self, text: &str) {
        if self.inner().tone.json {
            return self.write_plain(text);
        }
        self.write_line(&escape_but_colours(text, Colour::On));
    }

    fn write_plain(&self, line: &str) {
        // There is no other stream to report a failed write to.
        self.clone().write_all(format!("{line}\n").as_bytes()).ok();
    }

    fn write_line(&self, message: &str) {
        let line = no_command(set_off(message)) + "\n";
        // There is no other stream to report a failed write to.
        self.clone().write_all(line.as_bytes()).ok();
    }

    /// Runs a function that writes to the same terminal while the spinner is off the screen.
    pub(super) fn aside<T>(&self, deed: impl FnOnce() -> T) -> T {
        let spinner = self.inner().spinner.clone();
        match spinner {
            Some(spinner) => spinner.suspend(deed),
            None => deed(),
        }
    }

    pub(super) fn show(&self, spinner: Option<ProgressBar>) {
        self.inner().spinner = spinner;
    }

    fn inner(&self) -> MutexGuard<'_, TalkState> {
        self.0.lock()
    }
}

impl Write for MessageStream {
    /// Writes all bytes at once, above the spinner; callers pass whole lines.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.aside(|| {
            let mut inner = self.inner();
            inner.sink.write_all(bytes)?;
            inner.sink.flush()
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Talk")
    }
}

/// A stream in memory, for tests of everything that writes.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(pub(super) Arc<Mutex<Vec<u8>>>);

#[cfg(test)]
impl Memory {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

#[cfg(test)]
impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Formats a message as a document; a timestamp at the start of the message becomes the document's time.
fn json_message(label: &str, text: &str) -> String {
    let (time, message) = match text.split_once(' ') {
        Some((first, rest)) => match first.parse::<Timestamp>() {
            Ok(moment) => (moment, rest),
            Err(_) => (Timestamp::now(), text),
        },
        None => (Timestamp::now(), text),
    };
    let level = match label {
        "error" => "error",
        "warning" => "warn",
        _ => "info",
    };
    let fields = json!({ "kind": label });
    json_document(time, level, OURS, message, &fields)
}

/// Formats one line of the log as a document.
pub(super) fn json_document(
    time: Timestamp,
    level: &str,
    target: &str,
    message: &str,
    fields: &Value,
) -> String {
    let time = format!("{time:.3}");
    json!({ "time": time, "level": level, "target": target, "message": message, "fields": fields })
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_a_document_as_well() {
        let time = "2026-11-21T04:30:25Z";
        insta::assert_snapshot!(json_message("error", &format!("{time} no \"way\"")), @r#"{"fields":{"kind":"error"},"level":"error","message":"no \"way\"","target":"kubectl_acme","time":"2026-11-21T04:30:25.000Z"}"#);
        assert!(json_message(NOTE, "").contains("\"message\":\"\""));
        assert!(json_message("warning", "look out").contains("\"level\":\"warn\""));
    }
}
