//! The log's lines: for people, or one JSON document each.
//!
//! No private key, no token and no answer of a challenge gets into the log, whichever code logs.

use std::fmt::{self, Write as _};
use std::io;

use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::registry::{LookupSpan, Scope};

use super::colour::Colour;
use super::palette::Ink;
use super::talk::{MessageStream, OURS, json_document};
use crate::model::masked;

/// Fields that stand on lines of their own.
const BLOCK_FIELDS: [&str; 3] = ["header", "payload", "body"];

/// Format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// One JSON document a line, for whatever is said on stderr
    Json,
}

/// Logs the events that pass the filter to `talk`, so that the log does not break spinners; a
/// second installation (in tests) keeps the first.
pub fn install(filter: EnvFilter, format: LogFormat, talk: &MessageStream, colour: Colour) {
    let lines = LogLines { format, colour };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    let builder = builder.with_writer(LogWriter(talk.clone())).fmt_fields(JsonFields::new());
    builder.event_format(lines).try_init().ok();
}

/// Writes events as lines.
#[derive(Clone, Copy, Debug)]
struct LogLines {
    format: LogFormat,
    colour: Colour,
}

impl<S, N> FormatEvent<S, N> for LogLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut around = Map::new();
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>();
            let fields = fields.and_then(|f| serde_json::from_str::<Map<_, _>>(&f.fields).ok());
            around.extend(fields.into_iter().flatten());
        }
        let mut heard = EventFields::default();
        event.record(&mut heard);
        let target = heard.target.clone();
        let target = target.as_deref().unwrap_or_else(|| event.metadata().target());
        let (now, level) = (Timestamp::now(), *event.metadata().level());
        let line = match self.format {
            LogFormat::Text => heard.text(now, &self.level(level), target, &around),
            LogFormat::Json => {
                around.extend(heard.fields.into_iter().map(|(name, value)| (name.into(), value)));
                let level = level.as_str().to_lowercase();
                json_document(now, &level, target, &heard.message, &around.into())
            }
        };
        writer.write_str(&line)
    }
}

impl LogLines {
    fn level(self, level: Level) -> String {
        let ink = match level {
            Level::ERROR => Ink::Red,
            Level::WARN => Ink::Yellow,
            Level::INFO => Ink::Green,
            Level::DEBUG => Ink::Blue,
            _ => Ink::Magenta,
        };
        match self.colour {
            Colour::On => ink.word(level.as_str()),
            Colour::Off => level.as_str().to_owned(),
        }
    }
}

/// Content of a log event.
#[derive(Debug, Default)]
struct EventFields {
    message: String,
    /// Target of an event from a crate that logs without spans.
    target: Option<String>,
    fields: Vec<(&'static str, Value)>,
}

impl EventFields {
    fn text(
        &self,
        now: Timestamp,
        level: &str,
        target: &str,
        around: &Map<String, Value>,
    ) -> String {
        let own = target.strip_prefix(OURS).map(|part| part.trim_start_matches("::"));
        let target = match own {
            Some("") => "main",
            Some(part) => part.split("::").next().unwrap_or(part),
            None => target,
        };
        let mut line = format!("{now:.3} {level} {target}: {}", self.message);
        let is_block = |name: &&str| BLOCK_FIELDS.contains(name);
        for (name, value) in self.fields.iter().filter(|(name, _)| !is_block(name)) {
            // Writing to a String cannot fail.
            write!(line, " {name}={}", plain(value)).ok();
        }
        let around: Vec<&str> = around.values().filter_map(Value::as_str).collect();
        let about = around.join(" ");
        // The spans' values are left out if a field of the event has them already.
        if !about.is_empty() && self.fields.iter().all(|(_, value)| *value != about) {
            write!(line, " ({about})").ok();
        }
        for (name, value) in self.fields.iter().filter(|(name, _)| is_block(name)) {
            let shown = value.as_str().unwrap_or_default().trim_end().replace('\n', "\n    ");
            if !shown.is_empty() {
                write!(line, "\n  {name}: {shown}").ok();
            }
        }
        line
    }

    fn take(&mut self, field: &Field, value: Value) {
        match field.name() {
            "message" => value.as_str().unwrap_or_default().clone_into(&mut self.message),
            "log.target" => self.target = value.as_str().map(str::to_owned),
            name if name.starts_with("log.") => {}
            name => self.fields.push((name, value)),
        }
    }
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, masked::text(value).into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, value.into());
    }
}

/// Formats a value for people: words as they are, other values in quotes.
fn plain(value: &Value) -> String {
    match value.as_str() {
        Some(text) if !text.is_empty() && !text.contains([' ', '"', '\n']) => text.to_owned(),
        Some(text) => format!("{text:?}"),
        None => value.to_string(),
    }
}

/// Makes the writer of each line.
#[derive(Clone, Debug)]
struct LogWriter(MessageStream);

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = LogLine;

    fn make_writer(&'a self) -> LogLine {
        LogLine { talk: self.0.clone(), text: Vec::new() }
    }
}

/// Log line under construction, written when dropped.
#[derive(Debug)]
struct LogLine {
    talk: MessageStream,
    text: Vec<u8>,
}

impl io::Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.text);
        if !text.is_empty() {
            self.talk.log_line(text.trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::print::talk::{Memory, MessageForm};

    /// Returns the text logged in a span, without the time.
    fn check(format: LogFormat, colour: Colour, deed: impl FnOnce()) -> String {
        let err = Memory::default();
        let talk = MessageStream::new(Box::new(err.clone()));
        talk.set_tone(MessageForm { json: format == LogFormat::Json, quiet: true });
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(LogWriter(talk))
            .fmt_fields(JsonFields::new())
            .event_format(LogLines { format, colour });
        let all = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(all, || {
            tracing::info_span!("reconcile", name = "web/a").in_scope(deed);
        });
        let text = err.text();
        match format {
            LogFormat::Text => text
                .lines()
                .map(|line| match line.split_once(' ') {
                    Some((first, rest)) if first.ends_with('Z') => format!("{rest}\n"),
                    _ => format!("{line}\n"),
                })
                .collect(),
            LogFormat::Json => {
                let mut document: Value = serde_json::from_str(&text).unwrap();
                let time = document["time"].take();
                time.as_str().unwrap().parse::<Timestamp>().unwrap();
                document.to_string()
            }
        }
    }

    fn answered() {
        let path = "http://a.example/.well-known/acme-challenge/token_1";
        let body = "{\n\"a\":1}";
        tracing::info!(what = "newOrder", status = 201, path, body, "asked the CA");
    }

    #[test]
    fn people_read_a_line_with_long_fields_below_it() {
        insta::assert_snapshot!(check(LogFormat::Text, Colour::Off, answered), @r#"
        INFO print: asked the CA what=newOrder status=201 path=http://a.example/.well-known/acme-challenge/*** (web/a)
          body: {
            "a":1}
        "#);
    }

    #[test]
    fn colour_repeats_the_level() {
        let line = check(LogFormat::Text, Colour::On, || tracing::warn!("look \u{1b}[2J"));
        insta::assert_snapshot!(line.replace('\u{1b}', "ESC"), @"ESC[33mWARNESC[0m print: look ^[[2J (web/a)");
    }

    #[test]
    fn programs_read_a_document() {
        insta::assert_snapshot!(check(LogFormat::Json, Colour::Off, answered), @r#"{"fields":{"body":"{\n\"a\":1}","name":"web/a","path":"http://a.example/.well-known/acme-challenge/***","status":201,"what":"newOrder"},"level":"info","message":"asked the CA","target":"kubectl_acme::print::log::tests","time":null}"#);
    }
}
