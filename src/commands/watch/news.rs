//! Meaning of a change in one line: the new state, condition or reason, or the event.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::model::{Key, ObjectName, Record, Time};
use crate::print::document;

/// One line of news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct News {
    /// Time of the change.
    pub at: Timestamp,
    /// Object that changed, or that the event is about.
    pub subject: Key,
    /// Whether the line names the namespace.
    pub namespaces: bool,
    /// New state, condition, reason or event, as text.
    pub text: String,
}

impl News {
    /// Line for people and logs, with a newline.
    pub(super) fn line(&self) -> String {
        let Key { kind, name: ObjectName { namespace, name } } = &self.subject;
        let mut line = format!("{} ", Time::new(self.at));
        if self.namespaces && !namespace.is_empty() {
            // Writing into memory cannot fail.
            let _written = write!(line, "{namespace} ");
        }
        // A text of several lines is still one change.
        let text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        line + &format!("{}/{name} {text}\n", kind.singular())
    }

    /// Line for programs.
    pub(super) fn json_line(&self) -> String {
        document::json_line(&json!({
            "apiVersion": "kubectl-acme/v1alpha1",
            "kind": "Change",
            "time": Time::new(self.at),
            "object": {
                "kind": self.subject.kind.as_str(),
                "namespace": self.subject.name.namespace,
                "name": self.subject.name.name,
            },
            "text": self.text,
        }))
    }
}

/// Facts that are new in an object, one text per change.
pub(super) fn of_object(before: Option<&Value>, after: &Value) -> Vec<Fact> {
    let known = before.map(facts_of).unwrap_or_default();
    let is_known = |fact: &Fact| known.iter().any(|known| known.text == fact.text);
    let mut facts: Vec<Fact> = facts_of(after).into_iter().filter(|fact| !is_known(fact)).collect();
    if before.is_none() && facts.is_empty() {
        facts.push(Fact::new("created", moment(after.pointer("/metadata/creationTimestamp"))));
    }
    facts
}

/// Fact about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// Fact as text.
    pub text: String,
    /// Start of the fact, if the object has the time.
    pub since: Option<Timestamp>,
}

impl Fact {
    fn new(text: impl Into<String>, since: Option<Timestamp>) -> Self {
        Self { text: text.into(), since }
    }
}

fn moment(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

/// Time of the last write of the status, if `managedFields` has it.
fn status_written(object: &Value) -> Option<Timestamp> {
    let managed = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let of_status = managed.into_iter().flatten().filter(|by| by["subresource"] == "status");
    of_status.filter_map(|by| moment(by.get("time"))).max()
}

/// Text of an event; `None` if the event has not occurred again.
pub(super) fn of_event(before: Option<&Record>, event: &Record) -> Option<String> {
    let count = |record: &Record| record.object["count"].as_u64().unwrap_or(1);
    if before.is_some_and(|before| count(before) == count(event)) {
        return None;
    }
    let warning = if event.text("/type") == "Warning" { "Warning " } else { "" };
    let message = event.text("/message").trim();
    let times = match count(event) {
        0 | 1 => String::new(),
        times => format!(" (x{times})"),
    };
    Some(format!("{warning}{}: {message}{times}", event.text("/reason")))
}

/// Returns whether the object is at its end until somebody changes something.
pub(super) fn is_settled(object: &Value) -> bool {
    let is = |kind: &str, status: &str| {
        conditions(object).any(|c| c["type"] == kind && c["status"] == status)
    };
    match object.pointer("/status/state").and_then(Value::as_str) {
        Some("valid" | "invalid" | "expired" | "errored") => {
            object.pointer("/status/processing") != Some(&Value::Bool(true))
        }
        Some(_) => false,
        None => is("Ready", "True") && !is("Issuing", "True"),
    }
}

/// Facts about an object now.
fn facts_of(object: &Value) -> Vec<Fact> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let flag = |pointer: &str| object.pointer(pointer) == Some(&Value::Bool(true));
    let mut texts = Vec::new();
    match (text("/status/state"), text("/status/reason")) {
        ("", "") => {}
        ("", reason) => texts.push(reason.to_owned()),
        (state, "") => texts.push(state.to_owned()),
        (state, reason) => texts.push(format!("{state}: {reason}")),
    }
    if flag("/status/processing") {
        texts.push("runs".to_owned());
    }
    if flag("/status/presented") {
        texts.push("answer presented".to_owned());
    }
    let written = status_written(object);
    let mut facts: Vec<Fact> = texts.into_iter().map(|text| Fact::new(text, written)).collect();
    facts.extend(
        conditions(object).map(|c| Fact::new(condition(c), moment(c.get("lastTransitionTime")))),
    );
    if let Some(at) = object.pointer("/metadata/deletionTimestamp") {
        facts.push(Fact::new("being deleted", moment(Some(at))));
    }
    facts
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten()
}

fn condition(condition: &Value) -> String {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    let reason = match text("reason") {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    let message = match text("message").trim() {
        "" => String::new(),
        message => format!(": {message}"),
    };
    format!("{}={}{reason}{message}", text("type"), text("status"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    #[expect(clippy::needless_pass_by_value, reason = "the tables below read better with values")]
    fn check(before: Option<Value>, after: Value, expected: &[&str]) {
        let facts = of_object(before.as_ref(), &after).into_iter().map(|fact| fact.text);
        assert_eq!(facts.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_new_object_says_where_it_stands() {
        check(None, json!({}), &["created"]);
        check(None, json!({"status": {"state": "pending"}}), &["pending"]);
    }

    #[test]
    fn state_and_reason_are_one_piece_of_news() {
        let before = json!({"status": {"state": "pending", "processing": true}});
        let after =
            json!({"status": {"state": "pending", "processing": true, "reason": "no answer"}});
        check(Some(before.clone()), after.clone(), &["pending: no answer"]);
        check(Some(after.clone()), before, &["pending"]);
        check(Some(after.clone()), after, &[]);
    }

    #[test]
    fn conditions_are_told_when_anything_of_them_changes() {
        let ready = |status: &str, message: &str| {
            json!({"status": {"conditions": [
                {"type": "Ready", "status": status, "reason": "Ready", "message": message},
            ]}})
        };
        check(
            Some(ready("False", "not yet")),
            ready("True", "up to date"),
            &["Ready=True (Ready): up to date"],
        );
    }

    #[test]
    fn deletion_is_told() {
        let gone = json!({"metadata": {"deletionTimestamp": "2026-11-21T04:32:03Z"}});
        check(Some(json!({})), gone, &["being deleted"]);
    }

    #[test]
    fn an_event_is_told_again_when_it_happens_again() {
        let event = |count: u64| {
            let object = json!({
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1"}, "count": count,
                "type": "Warning", "reason": "PresentError", "message": "no port\n",
            });
            Record::new(object).unwrap()
        };
        assert_eq!(of_event(None, &event(1)).as_deref(), Some("Warning PresentError: no port"));
        assert_eq!(of_event(Some(&event(1)), &event(1)), None);
        let again = of_event(Some(&event(1)), &event(2));
        assert_eq!(again.as_deref(), Some("Warning PresentError: no port (x2)"));
    }

    #[test]
    fn a_line_is_one_line() {
        let news = News {
            at: Timestamp::UNIX_EPOCH,
            subject: Key::new(Kind::Certificate, ObjectName::new("shop", "web")),
            namespaces: true,
            text: "Ready=False: first\nsecond".to_owned(),
        };
        let line = "1970-01-01T00:00:00Z shop certificate/web Ready=False: first second\n";
        assert_eq!(news.line(), line);
        assert!(news.json_line().ends_with("}\n"));
    }

    #[test]
    fn a_final_challenge_is_settled_once_its_slot_is_free() {
        for (status, expected) in [
            (json!({"state": "valid", "processing": true}), false),
            (json!({"state": "valid", "processing": false}), true),
            (json!({"state": "pending"}), false),
            (json!({"conditions": [{"type": "Ready", "status": "True"}]}), true),
            (json!({}), false),
        ] {
            assert_eq!(is_settled(&json!({"status": status})), expected, "{status}");
        }
    }

    #[test]
    fn what_is_found_is_as_old_as_the_object_says() {
        let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        let check = |object: Value, expected: Option<Timestamp>| {
            let facts = of_object(None, &object);
            assert_eq!(facts.iter().map(|fact| fact.since).collect::<Vec<_>>(), [expected]);
        };
        let (made, ready) = ("2026-11-21T04:30:25Z", "2026-11-21T04:31:25Z");
        check(json!({"metadata": {"creationTimestamp": made}}), at(made));
        let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": ready});
        check(json!({"status": {"conditions": [condition]}}), at(ready));
        let written = json!([
            {"manager": "a", "time": made},
            {"manager": "b", "time": ready, "subresource": "status"},
        ]);
        let status = json!({"state": "pending"});
        check(json!({"metadata": {"managedFields": written}, "status": status}), at(ready));
        check(json!({"status": status}), None);
    }
}
