//! Output: tables, sheets, timelines, progress, and the only writer to stdout and stderr.
//!
//! Everything but [`Printer`] is a pure function of objects, events and the moment.

pub mod account;
pub mod age;
pub mod certificate;
pub mod certificate_check;
pub mod colour;
pub mod columns;
pub mod custom_columns;
pub mod describe;
pub mod document;
mod escape;
pub mod event_log;
pub mod fold;
pub mod format;
pub mod jsonpath;
mod label;
pub mod lineage;
pub mod log;
mod palette;
pub mod paths;
pub mod progress;
pub mod report;
mod rows;
pub mod screen;
mod spinner;
pub mod table;
mod tabs;
pub mod talk;
pub mod terminal;
pub mod timeline;
pub mod tree;
pub mod wait;

use std::fmt;
use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::Value;

use self::colour::{Colour, Colours};
use self::columns::{ColumnStyle, LabelColumns, Namespaces, Naming, Width};
use self::format::Format;
use self::palette::Ink;
use self::table::Headers;
use self::talk::MessageStream;
use self::timeline::Entry;
use self::timeline::sheet::TimelineStyle;
use crate::model::Kind;

/// Objects of one kind, in the order they are shown.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// The kind.
    pub kind: Kind,
    /// The objects.
    pub objects: Vec<&'a Value>,
}

/// Whether the user asked for one object by name, or for any number of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// JSON and YAML are the object itself.
    One,
    /// JSON and YAML are a List, even of one object or none.
    Many,
}

/// Only writer to stdout and stderr: results go to stdout, messages to stderr.
pub struct Printer {
    out: Box<dyn Write + Send>,
    talk: MessageStream,
    format: Format,
    headers: Headers,
    colours: Colours,
    labels: LabelColumns,
    /// Columns of the terminal that shows results; `None` if results go elsewhere.
    width: Option<usize>,
    closed: bool,
}

impl Printer {
    /// Writes to the given streams.
    pub fn new(
        out: Box<dyn Write + Send>,
        talk: MessageStream,
        format: Format,
        headers: Headers,
        colours: Colours,
    ) -> Self {
        let labels = LabelColumns::default();
        Self { out, talk, format, headers, colours, labels, width: None, closed: false }
    }

    /// Folds and cuts texts for people to a terminal of `width` columns.
    #[must_use]
    pub fn within(self, width: Option<usize>) -> Self {
        Self { width, ..self }
    }

    /// Returns the columns of the terminal that shows results; `None` if results go elsewhere.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Writes to this process's standard output and standard error.
    pub fn standard(format: Format, headers: Headers, colours: Colours) -> Self {
        let talk = MessageStream::new(Box::new(io::stderr()));
        Self::new(Box::new(io::stdout()), talk, format, headers, colours)
    }

    /// Returns the format of results.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Returns the stream of standard error, for progress and logs.
    pub fn talk(&self) -> MessageStream {
        self.talk.clone()
    }

    /// Returns whether the reader of stdout is gone: a command that only prints should end then.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Changes whether tables have headings; a watch shows them once.
    pub fn set_headers(&mut self, headers: Headers) {
        self.headers = headers;
    }

    /// Shows labels as columns of tables.
    pub fn show_labels(&mut self, labels: LabelColumns) {
        self.labels = labels;
    }

    /// Returns the labels shown as columns of tables.
    pub fn labels(&self) -> &LabelColumns {
        &self.labels
    }

    /// Writes text for people: nothing in the text but this program's own colours steers the terminal.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        let text = escape::no_command(escape::escape_but_colours(text, self.colours.out));
        self.data(&text)
    }

    /// Writes data for programs, unchanged. A reader that went away is no error: the rest is dropped.
    pub fn data(&mut self, text: &str) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        let out = &mut self.out;
        let written = self.talk.aside(|| out.write_all(text.as_bytes()).and_then(|()| out.flush()));
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            other => other,
        }
    }

    /// Writes resources in the chosen format; tables of several kinds stand a blank line apart.
    pub fn resources(
        &mut self,
        groups: &[Group<'_>],
        shape: Shape,
        namespaces: Namespaces,
        now: Timestamp,
    ) -> io::Result<()> {
        let filled: Vec<&Group<'_>> = groups.iter().filter(|g| !g.objects.is_empty()).collect();
        let objects = filled.iter().flat_map(|group| group.objects.iter().copied());
        let width = match &self.format {
            Format::Csv | Format::Table => Width::Narrow,
            Format::Wide => Width::Wide,
            Format::CustomColumns(columns) => {
                let text = columns.render(objects, self.headers);
                return self.text(&text);
            }
            Format::Name => {
                let names = objects.map(|object| columns::qualified_name(object) + "\n");
                let text = names.collect::<String>();
                return self.data(&text);
            }
            Format::Jsonl => {
                let lines = objects.map(|object| document::json_line(&document::shown(object)));
                let text = lines.collect::<String>();
                return self.data(&text);
            }
            Format::Json | Format::JsonPath(_) | Format::JsonPathAsJson(_) | Format::Yaml => {
                let mut objects: Vec<Value> = objects.map(document::shown).collect();
                let value = match (shape, objects.len()) {
                    (Shape::One, 1) => objects.remove(0),
                    _ => document::list(objects),
                };
                return self.document(&value);
            }
        };
        let naming = if filled.len() > 1 { Naming::WithKind } else { Naming::Bare };
        let (headers, colour) = (self.headers, self.colours.out);
        let look = ColumnStyle {
            width,
            naming,
            namespaces,
            headers,
            colour,
            labels: Some(&self.labels),
            terminal: self.width,
        };
        let tables = filled
            .iter()
            .map(|group| columns::table(group.kind, group.objects.iter().copied(), &look, now));
        let text = tables.collect::<Vec<_>>().join("\n");
        self.text(&text)
    }

    /// Writes a report of this program: as a document if the format is a document, else as text for people.
    pub fn report(
        &mut self,
        report: &Value,
        text: impl FnOnce(Colour) -> String,
    ) -> io::Result<()> {
        if let Some(document) = self.format.document(report) {
            return self.data(&document);
        }
        let text = text(self.colours.out);
        self.text(&text)
    }

    /// Writes a timeline: as text for people or as one report, each with the current wait, or as one entry a line.
    pub fn timeline(
        &mut self,
        (object, namespace): (&str, &str),
        entries: &[Entry],
        awaited: Option<&str>,
        now: Timestamp,
    ) -> io::Result<()> {
        if self.format == Format::Jsonl {
            let lines = timeline::report::stream(entries)
                .iter()
                .map(document::json_line)
                .collect::<String>();
            return self.data(&lines);
        }
        let report = timeline::report::report((object, namespace), entries, awaited, now);
        let text = self.timeline_text(entries, awaited, now);
        self.report(&report, |_| text)
    }

    /// Renders a timeline as text for people, as in [`Self::timeline`].
    pub fn timeline_text(
        &self,
        entries: &[Entry],
        awaited: Option<&str>,
        now: Timestamp,
    ) -> String {
        let (headers, colour, width) = (self.headers, self.colours.out, self.width);
        let style = TimelineStyle { headers, colour, width };
        timeline::sheet::text(entries, awaited, now, style)
    }

    fn document(&mut self, value: &Value) -> io::Result<()> {
        let text = self.format.document(value).unwrap_or_default();
        self.data(&text)
    }

    /// Writes a note to stderr.
    pub fn note(&self, message: &str) {
        self.talk.line(message);
    }

    /// Writes a warning to stderr.
    pub fn warning(&self, message: &str) {
        self.write_labelled("warning", Ink::Yellow, message);
    }

    /// Writes a hint to stderr.
    pub fn hint(&self, message: &str) {
        self.write_labelled("hint", Ink::Cyan, message);
    }

    /// Writes an error with its object and reason, then each hint, on lines of their own.
    pub fn error<T: AsRef<str>>(&self, message: &str, hints: &[T]) {
        self.write_labelled("error", Ink::Red, message);
        for hint in hints {
            self.hint(hint.as_ref());
        }
    }

    /// Writes kubectl's message that no resources were found.
    pub fn nothing_found(&self, namespace: Option<&str>) {
        match namespace {
            Some(namespace) => self.note(&format!("No resources found in {namespace} namespace.")),
            None => self.note("No resources found"),
        }
    }

    fn write_labelled(&self, label: &str, ink: Ink, message: &str) {
        self.talk.labelled(label, ink, message, self.colours.talk);
    }
}

impl fmt::Debug for Printer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Printer").field("format", &self.format).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::talk::Memory;
    use super::*;

    fn printer(format: &str, colour: Colour) -> (Printer, Memory, Memory) {
        let (out, err) = (Memory::default(), Memory::default());
        let printer = Printer::new(
            Box::new(out.clone()),
            MessageStream::new(Box::new(err.clone())),
            format.parse().unwrap(),
            Headers::Shown,
            Colours { out: colour, talk: colour },
        );
        (printer, out, err)
    }

    fn check(format: &str, shape: Shape) -> String {
        let certificate = |name: &str| {
            json!({
                "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                "metadata": {"name": name, "managedFields": [], "creationTimestamp": "2026-11-21T04:32:03Z"},
                "spec": {"secretName": "tls"},
            })
        };
        let issuer = json!({"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme"}});
        let (web, mail) = (certificate("web"), certificate("mail"));
        let groups = match shape {
            Shape::One => vec![Group { kind: Kind::Certificate, objects: vec![&web] }],
            Shape::Many => vec![
                Group { kind: Kind::Certificate, objects: vec![&web, &mail] },
                Group { kind: Kind::Order, objects: vec![] },
                Group { kind: Kind::Issuer, objects: vec![&issuer] },
            ],
        };
        let (mut printer, out, err) = printer(format, Colour::Off);
        let now = "2026-11-21T04:32:25Z".parse().unwrap();
        printer.resources(&groups, shape, Namespaces::Hidden, now).unwrap();
        assert_eq!(err.text(), "");
        out.text()
    }

    #[test]
    fn several_kinds_are_several_tables_and_names_carry_the_kind() {
        insta::assert_snapshot!(check("table", Shape::Many), @"
        NAME                               READY   SECRET   EXPIRES   AGE
        certificate.cert-manager.io/web            tls      <none>    22s
        certificate.cert-manager.io/mail           tls      <none>    22s

        NAME                          READY   AGE
        issuer.cert-manager.io/acme           <unknown>
        ");
    }

    #[test]
    fn names_are_one_a_line() {
        insta::assert_snapshot!(check("name", Shape::Many), @"
        certificate.cert-manager.io/web
        certificate.cert-manager.io/mail
        issuer.cert-manager.io/acme
        ");
    }

    #[test]
    fn one_object_is_itself_and_many_are_a_list() {
        insta::assert_snapshot!(check("yaml", Shape::One), @r#"
        apiVersion: cert-manager.io/v1
        kind: Certificate
        metadata:
          creationTimestamp: "2026-11-21T04:32:03Z"
          name: web
        spec:
          secretName: tls
        "#);
        assert_eq!(check("jsonpath={.metadata.name}", Shape::One), "web");
        assert_eq!(check("jsonpath={.items[*].metadata.name}", Shape::Many), "web mail acme");
        assert_eq!(check("jsonl", Shape::Many).lines().count(), 3);
    }

    #[test]
    fn talk_goes_to_stderr_and_hints_follow_the_error() {
        let (printer, out, err) = printer("table", Colour::Off);
        printer.note("context: local");
        printer.warning("nobody trusts this CA");
        printer.error("cannot read issuer web/acme: no such object", &["name it in issuerRef"]);
        printer.nothing_found(Some("web"));
        assert_eq!(out.text(), "");
        insta::assert_snapshot!(err.text(), @"
        context: local
        warning: nobody trusts this CA
        error: cannot read issuer web/acme: no such object
        hint: name it in issuerRef
        No resources found in web namespace.
        ");
    }

    #[test]
    fn colour_repeats_the_label() {
        let (printer, _, err) = printer("table", Colour::On);
        printer.warning("look");
        printer.error("it \u{1b}[2Jfailed", &["do it"]);
        insta::assert_snapshot!(err.text().replace('\u{1b}', "ESC"), @"
        ESC[1mESC[33mwarning:ESC[0m look
        ESC[1mESC[31merror:ESC[0m it ^[[2Jfailed
        ESC[1mESC[36mhint:ESC[0m do it
        ");
    }

    #[test]
    fn people_see_what_would_steer_the_terminal_and_programs_get_it_as_it_is() {
        let rude = "\u{1b}]0;owned\u{7}\u{9b}31m";
        let seen = "^[]0;owned^G\\u{9b}31m";
        let issuer = json!({"metadata": {"name": rude}, "status": {"conditions": [
            {"type": "Ready", "status": rude, "message": rude},
        ]}});
        let now = Timestamp::UNIX_EPOCH;
        let columns = "custom-columns=A:.metadata.name";
        for (format, colour) in [
            ("table", Colour::Off),
            ("table", Colour::On),
            ("wide", Colour::On),
            (columns, Colour::On),
            ("jsonpath={.metadata.name}", Colour::On),
            ("json", Colour::Off),
            ("yaml", Colour::Off),
        ] {
            let (mut printer, out, err) = printer(format, colour);
            let group = Group { kind: Kind::Issuer, objects: vec![&issuer] };
            printer.resources(&[group], Shape::One, Namespaces::Hidden, now).unwrap();
            let of_name = match format {
                "json" => "\\u001b]0;owned\\u0007\u{9b}31m",
                "yaml" => &serde_yaml::to_string(&rude).unwrap(),
                "jsonpath={.metadata.name}" => rude,
                _ => seen,
            };
            assert!(out.text().contains(of_name), "{format}: {:?}", out.text());
            printer.note(rude);
            printer.error(rude, &[rude]);
            assert_eq!(err.text().matches(seen).count(), 3, "{:?}", err.text());
            let (mut printer, out, _) = self::printer("table", colour);
            printer.text(rude).unwrap();
            printer.report(&json!({}), |_| rude.to_owned()).unwrap();
            assert_eq!(out.text(), seen.repeat(2));
        }
    }

    #[test]
    fn a_reader_that_went_away_ends_quietly() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let talk = MessageStream::new(Box::new(Memory::default()));
        let mut printer =
            Printer::new(Box::new(writer), talk, Format::Table, Headers::Shown, Colours::default());
        assert!(!printer.is_closed());
        printer.data("lost").unwrap();
        assert!(printer.is_closed());
        printer.data("dropped").unwrap();
    }

    #[test]
    fn a_timeline_is_text_a_report_or_a_stream() {
        let event: crate::model::Event = serde_json::from_value(json!({
            "metadata": {"name": "web.1"}, "involvedObject": {"kind": "Certificate", "name": "web"},
            "reason": "Issuing", "message": "Issuing certificate as Secret does not exist",
            "firstTimestamp": "2026-11-21T04:32:03Z", "type": "Normal",
        }))
        .unwrap();
        let entries = timeline::entries([&event, &event], timeline::saying::Sequence::Moments);
        for (format, expected) in
            [("table", "TIME "), ("jsonl", "{\"apiVersion\":"), ("jsonpath={.kind}", "Timeline")]
        {
            let (mut printer, out, _) = printer(format, Colour::Off);
            let now = "2026-11-21T04:32:25Z".parse().unwrap();
            printer.timeline(("certificate/web", "web"), &entries, None, now).unwrap();
            assert!(out.text().starts_with(expected), "{}", out.text());
        }
    }

    #[test]
    fn reports_are_text_for_people_and_documents_for_programs() {
        let report = json!({"apiVersion": "kubectl-acme/v1alpha1", "kind": "Schedule"});
        for (format, expected) in [("table", "two run\n"), ("jsonpath={.kind}", "Schedule")] {
            let (mut printer, out, _) = printer(format, Colour::Off);
            printer.report(&report, |_| "two run\n".to_owned()).unwrap();
            assert_eq!(out.text(), expected, "{format}");
        }
    }
}
