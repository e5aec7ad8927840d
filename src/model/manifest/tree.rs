//! YAML as a tree in which every part has its position.

use serde_json::{Map, Number, Value};

use crate::model::field::{FieldPath, Matter, Step};

/// Position in a text; line and column count from 1, columns in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// Value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) content: Content,
}

/// Content of a JSON value, with fields in the order of the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<FieldEntry>),
}

/// Field and the position of its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldEntry {
    pub(crate) key: String,
    pub(crate) at: Position,
    pub(crate) value: Node,
}

impl Node {
    /// Builds a text at a position.
    pub(crate) fn text(at: Position, text: impl Into<String>) -> Self {
        Self { at, content: Content::Text(text.into()) }
    }

    /// Builds an object without fields at a position.
    pub(crate) fn empty(at: Position) -> Self {
        Self { at, content: Content::Map(Vec::new()) }
    }

    /// Returns the text, if the value is a text.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::List(_)
            | Content::Map(_) => None,
        }
    }

    /// Returns the items; empty if the value is no list.
    pub(crate) fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::Map(_) => &[],
        }
    }

    /// Returns the fields; empty if the value is no object.
    pub(crate) fn entries(&self) -> &[FieldEntry] {
        match &self.content {
            Content::Map(entries) => entries,
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::List(_) => &[],
        }
    }

    /// Reports whether the value is null.
    pub(crate) fn is_null(&self) -> bool {
        self.content == Content::Null
    }

    /// Reports whether the value is an object.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.content, Content::Map(_))
    }

    /// Returns a field, `a.b` for a nested field.
    pub(crate) fn get(&self, dotted: &str) -> Option<&Self> {
        dotted.split('.').try_fold(self, |node, key| {
            node.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
        })
    }

    /// Returns a field to change, `a.b` for a nested field.
    pub(crate) fn get_mut(&mut self, dotted: &str) -> Option<&mut Self> {
        dotted.split('.').try_fold(self, |node, key| {
            let entries = node.entries_mut()?;
            entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
        })
    }

    /// Returns the text of a field, empty if there is none.
    pub(crate) fn text_of(&self, dotted: &str) -> &str {
        self.get(dotted).and_then(Self::as_text).unwrap_or("")
    }

    /// Removes a field and returns the field.
    pub(crate) fn take(&mut self, key: &str) -> Option<FieldEntry> {
        let entries = self.entries_mut()?;
        let index = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(index))
    }

    /// Inserts a field, `a.b` for a nested field; missing objects on the way are made at the position of the value.
    ///
    /// Changes nothing and returns false if the field is there already or something on the way is no object.
    pub(crate) fn put(&mut self, dotted: &str, value: Self) -> bool {
        let at = value.at;
        let (key, rest) = match dotted.split_once('.') {
            Some((key, rest)) => (key, Some(rest)),
            None => (dotted, None),
        };
        let Some(entries) = self.entries_mut() else { return false };
        entries.retain(|entry| entry.key != key || !entry.value.is_null());
        let found = entries.iter_mut().find(|entry| entry.key == key);
        let value = match (found, rest) {
            (Some(entry), Some(rest)) => return entry.value.put(rest, value),
            (Some(_), None) => return false,
            (None, Some(rest)) => {
                let mut child = Self::empty(at);
                child.put(rest, value);
                child
            }
            (None, None) => value,
        };
        entries.push(FieldEntry { key: key.to_owned(), at, value });
        true
    }

    /// Returns the fields to change; `None` if the value is no object.
    pub(crate) fn entries_mut(&mut self) -> Option<&mut Vec<FieldEntry>> {
        match &mut self.content {
            Content::Map(entries) => Some(entries),
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::List(_) => None,
        }
    }

    /// Returns the items to change; empty if the value is no list.
    pub(crate) fn items_mut(&mut self) -> &mut [Self] {
        match &mut self.content {
            Content::List(items) => items,
            Content::Null
            | Content::Bool(_)
            | Content::Number(_)
            | Content::Text(_)
            | Content::Map(_) => &mut [],
        }
    }

    /// Returns the position of a field's name, or of its value if that is plain; of the parent, if the field is missing.
    pub(crate) fn find(&self, path: &FieldPath, matter: Matter) -> Position {
        let (mut node, mut at) = (self, self.at);
        for step in path.steps() {
            let next = match step {
                Step::Key(key) => node
                    .entries()
                    .iter()
                    .find(|entry| entry.key == *key)
                    .map(|entry| (&entry.value, entry.at)),
                Step::Index(index) => node.items().get(*index).map(|item| (item, item.at)),
            };
            let Some((below, name_at)) = next else { return at };
            node = below;
            at = match (matter, &below.content) {
                (Matter::Value, Content::Bool(_) | Content::Number(_) | Content::Text(_)) => {
                    below.at
                }
                (Matter::Name, _)
                | (Matter::Value, Content::Null | Content::List(_) | Content::Map(_)) => name_at,
            };
        }
        at
    }

    /// Converts to JSON, without positions.
    pub(crate) fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(flag) => Value::Bool(*flag),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Content::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// Describes the type of the value in words; never shows the value, which may be a secret.
    pub(crate) fn describe(&self) -> &'static str {
        match self.content {
            Content::Null => "nothing",
            Content::Bool(_) => "a boolean",
            Content::Number(_) => "a number",
            Content::Text(_) => "text",
            Content::List(_) => "a list",
            Content::Map(_) => "an object",
        }
    }
}
