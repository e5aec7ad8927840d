//! Text to trees: YAML 1.1 as kubectl reads it, one tree per document, every broken document reported.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_yaml::{Options, Spanned};

use super::tree::{Content, FieldEntry, Node, Position};

/// Most documents that are read from one text.
const MAX_DOCUMENTS: usize = 50_000;

/// Fault for which a document cannot be read, and its position.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) at: Position,
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
}

/// Reads every document of a text; empty documents are skipped.
///
/// Documents are cut apart first, as kubectl does, so that a broken one does not hide the next.
pub(crate) fn documents(text: &str) -> Vec<Result<Node, Broken>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let pieces = pieces(text);
    if let Some((at, _)) = pieces.get(MAX_DOCUMENTS) {
        let message = format!("a text has {MAX_DOCUMENTS} documents at most");
        return vec![Err(Broken { at: *at, message, hint: Some("split it") })];
    }
    pieces
        .into_iter()
        .map(|(start, piece)| document(piece, start))
        .filter(|document| !matches!(document, Ok(node) if node.is_null()))
        .collect()
}

/// Cuts a text into documents, each with the position of its beginning.
fn pieces(text: &str) -> Vec<(Position, &str)> {
    if text.trim_start().starts_with('{')
        && let Some(pieces) = json_pieces(text)
    {
        return pieces;
    }
    let mut pieces = Vec::new();
    let (mut start, mut offset) = (Position { line: 1, column: 1 }, 0);
    let mut begin = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let marker = line.strip_prefix("---").is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(|character: char| character.is_ascii_whitespace())
        });
        if marker && index > 0 {
            pieces.push((start, &text[begin..offset]));
            (start, begin) = (Position { line: index + 1, column: 1 }, offset);
        }
        offset += line.len();
    }
    pieces.push((start, &text[begin..]));
    pieces.retain(|(_, piece)| piece.lines().any(is_content));
    pieces
}

/// Reports whether a line holds anything but blanks, a comment, a directive or a marker.
fn is_content(line: &str) -> bool {
    let line = line.trim();
    !(line.is_empty() || line.starts_with(['#', '%']) || line == "---" || line == "...")
}

/// Cuts JSON objects that follow one another; `None` if the text is not of that form.
fn json_pieces(text: &str) -> Option<Vec<(Position, &str)>> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let (mut pieces, mut begin) = (Vec::new(), 0);
    let mut at = Position { line: 1, column: 1 };
    while let Some(next) = stream.next() {
        next.ok()?;
        let piece = &text[begin..stream.byte_offset()];
        let content = piece.trim_start();
        at = behind(at, &piece[..piece.len() - content.len()]);
        pieces.push((at, content));
        at = behind(at, content);
        begin = stream.byte_offset();
    }
    Some(pieces)
}

/// Returns the position behind a text that begins at the given position.
fn behind(at: Position, passed: &str) -> Position {
    let Some(newline) = passed.rfind('\n') else {
        return Position { column: at.column + passed.chars().count(), ..at };
    };
    Position {
        line: at.line + passed.matches('\n').count(),
        column: passed[newline + 1..].chars().count() + 1,
    }
}

fn document(piece: &str, start: Position) -> Result<Node, Broken> {
    let offset = |line: usize, column: usize| Position {
        line: line.max(1) + start.line - 1,
        column: if line <= 1 { column.max(1) + start.column - 1 } else { column.max(1) },
    };
    match serde_yaml::from_str_with_options::<Spanned<Yaml>>(piece, options()) {
        Ok(root) => Ok(root.node(&offset)),
        Err(error) => Err(explain(&error, piece, &offset)),
    }
}

/// Limits high enough for `kubectl get -A -o yaml`, low enough for a file meant to do harm.
fn options() -> Options {
    serde_yaml::options! {
        budget: serde_yaml::budget! { max_nodes: 2_000_000, max_events: 8_000_000 },
        alias_limits: serde_yaml::alias_limits! { max_total_replayed_events: 100_000 },
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

/// Describes where and why a document is broken.
fn explain(
    error: &serde_yaml::Error,
    piece: &str,
    offset: &impl Fn(usize, usize) -> Position,
) -> Broken {
    let (mut line, mut column) = error.location().map_or((1, 1), |location| {
        (
            usize::try_from(location.line()).unwrap_or(1),
            usize::try_from(location.column()).unwrap_or(1),
        )
    });
    let text = error.to_string();
    let plain = text.split(" at line ").next().unwrap_or(&text);
    if plain.contains("tab")
        && let Some(found) = tab_after(piece, line)
    {
        (line, column) = found;
    }
    let here = piece.lines().nth(line.saturating_sub(1)).unwrap_or("");
    let (message, hint) = words(error, plain, here);
    Broken { at: offset(line, column), message, hint }
}

/// Describes a fault in words for people who do not know the YAML specification.
fn words(error: &serde_yaml::Error, plain: &str, here: &str) -> (String, Option<&'static str>) {
    if let serde_yaml::Error::DuplicateMappingKey { key, .. } = error {
        let name = key.as_deref().unwrap_or("of this name");
        return (format!("field {name} is given twice"), Some("keep one of them"));
    }
    let (message, hint) = if here.trim_start().starts_with("$ ") {
        let hint = "leave it out: it came along when the manifest was copied";
        ("this is a shell command, not YAML", hint)
    } else if here.contains("{{") {
        ("this is a template, not YAML", "render it first, for example with helm template")
    } else if plain.contains("tab") {
        ("a tab cannot indent YAML", "indent with spaces")
    } else if plain.contains("mapping values are not allowed") {
        let hint = "check the indentation; text with \": \" in it needs quotes";
        ("a field cannot begin here", hint)
    } else if plain.contains("unexpected character") {
        (plain, "put the text in quotes")
    } else if plain.contains("did not find expected") {
        let hint = "check the indentation: fields of one object begin in the same column";
        ("this does not continue what stands above", hint)
    } else if plain.contains("budget") || plain.contains("limit") {
        return (format!("too large or too deep to be a manifest ({plain})"), None);
    } else {
        return (plain.to_owned(), None);
    };
    (message.to_owned(), Some(hint))
}

/// Finds the first line, from the given line on, that is indented with a tab.
fn tab_after(piece: &str, line: usize) -> Option<(usize, usize)> {
    piece.lines().enumerate().skip(line.saturating_sub(1)).find_map(|(index, text)| {
        let blank = &text[..text.len() - text.trim_start().len()];
        blank.chars().position(|character| character == '\t').map(|tab| (index + 1, tab + 1))
    })
}

/// Value as the parser returns it; [`Spanned`] gives every part its position.
enum Yaml {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Spanned<Self>>),
    Map(Vec<(Spanned<Name>, Spanned<Self>)>),
}

/// Name of a field; kubectl turns numbers and booleans into text.
struct Name(String);

trait Placed {
    fn node(self, offset: &impl Fn(usize, usize) -> Position) -> Node;
}

impl Placed for Spanned<Yaml> {
    fn node(self, offset: &impl Fn(usize, usize) -> Position) -> Node {
        let at = position(&self.referenced, offset);
        let content = match self.value {
            Yaml::Null => Content::Null,
            Yaml::Bool(flag) => Content::Bool(flag),
            Yaml::Number(number) => Content::Number(number),
            Yaml::Text(text) => Content::Text(text),
            Yaml::List(items) => {
                Content::List(items.into_iter().map(|item| item.node(offset)).collect())
            }
            Yaml::Map(entries) => Content::Map(
                entries
                    .into_iter()
                    .map(|(name, value)| FieldEntry {
                        at: position(&name.referenced, offset),
                        key: name.value.0,
                        value: value.node(offset),
                    })
                    .collect(),
            ),
        };
        Node { at, content }
    }
}

fn position(
    location: &serde_yaml::Location,
    offset: &impl Fn(usize, usize) -> Position,
) -> Position {
    offset(
        usize::try_from(location.line()).unwrap_or(1),
        usize::try_from(location.column()).unwrap_or(1),
    )
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Yaml, E> {
        Ok(Yaml::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Yaml, E> {
        Ok(Yaml::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Yaml, E> {
        Ok(Yaml::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Yaml, E> {
        Number::from_f64(number).map(Yaml::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Yaml, E> {
        Ok(Yaml::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Yaml, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Yaml::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Yaml, A::Error> {
        let mut entries: Vec<(Spanned<Name>, Spanned<Yaml>)> = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Yaml::Map(entries))
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Yaml::deserialize(deserializer)? {
            Yaml::Text(text) => Ok(Self(text)),
            Yaml::Bool(flag) => Ok(Self(flag.to_string())),
            Yaml::Number(number) => Ok(Self(number.to_string())),
            Yaml::Null | Yaml::List(_) | Yaml::Map(_) => {
                Err(D::Error::custom("the name of a field must be text"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::field::Matter;

    fn values(text: &str) -> Vec<Value> {
        documents(text).into_iter().map(|document| document.unwrap().to_value()).collect()
    }

    /// Place, message and hint of every document that cannot be read.
    fn broken(text: &str) -> Vec<String> {
        documents(text)
            .into_iter()
            .filter_map(Result::err)
            .map(|b| {
                format!("{}:{}: {} | {}", b.at.line, b.at.column, b.message, b.hint.unwrap_or(""))
            })
            .collect()
    }

    #[test]
    fn yaml_is_read_as_kubectl_reads_it() {
        let text =
            "a: 0777\nb: yes\non: off\n1: 2\nc: 1.5\nd: '010'\ne: ~\nf: 0x1f\ng: !!binary aGk=\n";
        let expected = json!({"a": 511, "b": true, "true": false, "1": 2, "c": 1.5, "d": "010",
            "e": null, "f": 31, "g": "hi"});
        assert_eq!(values(text), [expected]);
        assert_eq!(
            values("x: &x {p: 1}\nb:\n  <<: *x\n  q: *x\n"),
            [json!({"x": {"p": 1}, "b": {"p": 1, "q": {"p": 1}}})]
        );
        assert_eq!(values("\u{feff}a: 1\r\nb:\r\n  - 2\r\n"), [json!({"a": 1, "b": [2]})]);
    }

    #[test]
    fn documents_are_cut_apart_and_empty_ones_skipped() {
        let text = "%YAML 1.1\n---\n# nothing\n---\na: 1\n--- # next\nb: |\n  ---\n  x\n...\n---\n---\n~\n";
        assert_eq!(values(text), [json!({"a": 1}), json!({"b": "---\nx\n"})]);
        assert_eq!(values(""), [] as [Value; 0]);
        assert_eq!(
            values("{\"a\":\t1}\n{\"b\": \"\\ud83d\\ude00\"} {}"),
            [json!({"a": 1}), json!({"b": "😀"}), json!({})]
        );
    }

    #[test]
    fn json_objects_know_their_places_however_many_there_are() {
        let text = format!("{}\n  {{\"ö\": 1}} {{}}", "{}".repeat(3));
        let places: Vec<_> = pieces(&text).iter().map(|(at, _)| (at.line, at.column)).collect();
        assert_eq!(places, [(1, 1), (1, 3), (1, 5), (2, 3), (2, 12)]);
        let many = documents(&"{}".repeat(MAX_DOCUMENTS + 1));
        assert_eq!(many.len(), 1);
        assert!(many[0].is_err());
        assert_eq!(documents(&"{}".repeat(9)).len(), 9);
    }

    #[test]
    fn everything_knows_its_place() {
        let nodes = documents("a: 1\n---\nspec:\n  list:\n  - x: y\n");
        let node = nodes[1].as_ref().unwrap();
        let path = crate::model::field::FieldPath::of("spec.list").index(0).key("x");
        assert_eq!(node.find(&path, Matter::Value), Position { line: 5, column: 8 });
        assert_eq!(
            node.find(&path.key("absent").key("deeper"), Matter::Value),
            Position { line: 5, column: 8 }
        );
        let json = documents("{}\n  {\"a\": 1}");
        let path = crate::model::field::FieldPath::of("a");
        assert_eq!(
            json[1].as_ref().unwrap().find(&path, Matter::Value),
            Position { line: 2, column: 9 }
        );
    }

    #[test]
    fn what_cannot_be_read_is_told_with_place_and_way_out() {
        for (text, expected) in [
            ("a: 1\n\tb: 2\n", "2:1: a tab cannot indent YAML | indent with spaces"),
            ("a:\n\t- x\n", "2:1: a tab cannot indent YAML | indent with spaces"),
            ("a: 1\na: 2\n", "2:1: field a is given twice | keep one of them"),
            ("a: [1, 2\n", "1:4: unclosed bracket '[' | "),
            (
                "a: b: c\n",
                "1:5: a field cannot begin here | check the indentation; text with \": \" in it needs quotes",
            ),
            ("a: @x\n", "1:4: unexpected character: `@' | put the text in quotes"),
            (
                "- a\nb: c\n",
                "2:1: this does not continue what stands above | check the indentation: fields of one object begin in the same column",
            ),
            ("a: *x\n", "1:4: alias references unknown anchor | "),
            (
                "a: {{ .Values.x }}\n",
                "1:5: this is a template, not YAML | render it first, for example with helm template",
            ),
            (
                "   a: 1\n$ kubectl create -f x\n",
                "2:1: this is a shell command, not YAML | leave it out: it came along when the manifest was copied",
            ),
        ] {
            assert_eq!(broken(text), [expected], "{text:?}");
        }
    }

    #[test]
    fn one_broken_document_does_not_hide_the_next() {
        assert_eq!(
            broken("a: [\n---\nb: 1\n---\nc: 1\nc: 2\n"),
            ["1:4: unclosed bracket '[' | ", "6:1: field c is given twice | keep one of them"]
        );
    }

    #[test]
    fn a_file_meant_to_do_harm_is_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let last = level - 1;
            let items = vec![format!("*a{last}"); 9].join(", ");
            writeln!(bomb, "a{level}: &a{level} [{items}]").unwrap();
        }
        assert!(broken(&bomb)[0].contains("too large or too deep"), "{:?}", broken(&bomb));
        let deep = "[".repeat(100_000);
        assert!(broken(&deep)[0].contains("too large or too deep"), "{:?}", broken(&deep));
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "(?s)[\\x00-\\x7fä😀]{0,80}|([ \t]{0,3}[a-z{}\\[\\]:&*!|>'\",#%-]{0,6}\r?\n){0,8}") {
            for node in documents(&text).into_iter().flatten() {
                node.to_value();
            }
        }
    }
}
