//! Messages on stderr as one JSON document a line, for collectors of logs.

use jiff::Timestamp;
use serde_json::{Value, json};

/// The label of a note.
pub(super) const NOTE: &str = "note";
/// Start of the targets of this program's own log events.
pub const OURS: &str = "kubectl_acme";

/// Formats a message as a document; a timestamp at the start of the message becomes the document's time.
pub(super) fn said(label: &str, text: &str) -> String {
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
    document(time, level, OURS, message, &fields)
}

/// Formats one line of the log as a document.
pub(super) fn document(
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
        insta::assert_snapshot!(said("error", &format!("{time} no \"way\"")), @r#"{"fields":{"kind":"error"},"level":"error","message":"no \"way\"","target":"kubectl_acme","time":"2026-11-21T04:30:25.000Z"}"#);
        assert!(said(NOTE, "").contains("\"message\":\"\""));
        assert!(said("warning", "look out").contains("\"level\":\"warn\""));
    }
}
