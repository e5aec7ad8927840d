//! Log of all steps, one JSON line each while the step happens, for programs that follow a command (`--events`).

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Write, sink};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::document;
use crate::model::Key;
use crate::model::change_line::{ChangeLine, ChangedObject};

/// Log of steps; clones share one stream, and a log without a stream drops all steps.
#[derive(Clone, Default)]
pub struct EventLog(Option<Arc<Mutex<EventLogState>>>);

struct EventLogState {
    sink: Box<dyn Write + Send>,
    /// Last state and reason that were written of each object.
    last_lines: BTreeMap<Key, (String, String)>,
}

impl EventLog {
    /// Writes to a stream.
    pub fn new(sink: Box<dyn Write + Send>) -> Self {
        Self(Some(Arc::new(Mutex::new(EventLogState { sink, last_lines: BTreeMap::new() }))))
    }

    /// Returns whether the log has a stream, because the user asked for the log.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Writes the state of an object, unless the object's last line has the same state and reason.
    pub fn step(
        &self,
        key: &Key,
        domain: Option<&str>,
        (state, reason): (&str, &str),
        now: Timestamp,
    ) {
        let Some(log) = &self.0 else { return };
        let mut log = log.lock();
        let stands = (state.to_owned(), reason.to_owned());
        if log.last_lines.get(key) == Some(&stands) {
            return;
        }
        log.last_lines.insert(key.clone(), stands);
        log.write(&json!(ChangeLine::step(now, ChangedObject::new(key, domain), state, reason)));
    }

    /// Writes the end of an object, unless the object's last line has this state already, with its reason.
    pub(super) fn end(
        &self,
        key: &Key,
        domain: Option<&str>,
        (state, why): (&str, &str),
        now: Timestamp,
    ) {
        let Some(log) = &self.0 else { return };
        let is_told = log.lock().last_lines.get(key).is_some_and(|(last, _)| last == state);
        if !is_told {
            self.step(key, domain, (state, why), now);
        }
    }

    /// Writes a message that concerns no object.
    pub fn message(&self, text: &str, now: Timestamp) {
        if let Some(log) = &self.0 {
            log.lock().write(&json!(ChangeLine::message(now, text)));
        }
    }

    /// Writes a document as the last line.
    pub fn document(&self, document: &Value) {
        if let Some(log) = &self.0 {
            log.lock().write(document);
        }
    }
}

impl EventLogState {
    fn write(&mut self, line: &Value) {
        let line = document::json_line(line);
        let written = self.sink.write_all(line.as_bytes()).and_then(|()| self.sink.flush());
        if written.is_err() {
            // A reader that has gone is no reason to stop working.
            self.sink = Box::new(sink());
        }
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventLog")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, ObjectName};
    use crate::print::talk::Memory;

    #[test]
    fn each_step_is_written_once_and_an_end_keeps_the_reason_before_it() {
        let written = Memory::default();
        let log = EventLog::new(Box::new(written.clone()));
        let key = Key::new(Kind::Challenge, ObjectName::new("web", "c"));
        let now = "2026-11-21T04:30:25Z".parse().unwrap();
        let domain = Some("a.example");
        for reason in ["no answer", "no answer"] {
            log.step(&key, domain, ("pending", reason), now);
        }
        log.step(&key, domain, ("invalid", "refused"), now);
        log.end(&key, domain, ("invalid", ""), now);
        log.message("driver: kubectl-acme", now);
        insta::assert_snapshot!(written.text(), @r#"
        {"apiVersion":"kubectl-acme/v1alpha1","kind":"Change","object":{"domain":"a.example","kind":"Challenge","name":"c","namespace":"web"},"reason":"no answer","state":"pending","text":"pending: no answer","time":"2026-11-21T04:30:25Z"}
        {"apiVersion":"kubectl-acme/v1alpha1","kind":"Change","object":{"domain":"a.example","kind":"Challenge","name":"c","namespace":"web"},"reason":"refused","state":"invalid","text":"invalid: refused","time":"2026-11-21T04:30:25Z"}
        {"apiVersion":"kubectl-acme/v1alpha1","kind":"Message","text":"driver: kubectl-acme","time":"2026-11-21T04:30:25Z"}
        "#);
    }

    #[test]
    fn nobody_who_reads_is_no_reason_to_stop() {
        let log = EventLog::new(Box::new(ClosedSink));
        log.message("one", Timestamp::UNIX_EPOCH);
        log.message("two", Timestamp::UNIX_EPOCH);
    }

    struct ClosedSink;

    impl Write for ClosedSink {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
