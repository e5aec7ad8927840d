//! The timeline for programs.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::sheet::word;
use super::{Entry, IssuanceResult, Repeats, Total, totals};
use crate::model::Time;
use crate::model::event_times::TimePrecision;

/// Builds the report of the timeline (`-o json`).
pub fn report(
    (object, namespace): (&str, &str),
    entries: &[Entry],
    awaited: Option<&str>,
    now: Timestamp,
) -> Value {
    let totals = totals(entries, now);
    let mut report = json!({
        "apiVersion": "kubectl-acme/v1alpha1",
        "kind": "Timeline",
        "object": object,
        "namespace": namespace,
        "at": second(now),
        "entries": entries.iter().map(fields).collect::<Vec<_>>(),
        "issuances": totals.iter().map(issuance).collect::<Vec<_>>(),
    });
    if let Some(awaited) = awaited {
        report["waitsFor"] = awaited.into();
    }
    report
}

/// Builds the stream of entries (`-o jsonl`).
pub fn stream(entries: &[Entry]) -> Vec<Value> {
    let marked = entries.iter().map(|entry| {
        let mut value = fields(entry);
        value["apiVersion"] = "kubectl-acme/v1alpha1".into();
        value["kind"] = "TimelineEntry".into();
        value
    });
    marked.collect()
}

/// Builds one entry, with milliseconds if they are known.
fn fields(entry: &Entry) -> Value {
    let (count, place) = match entry.repeats {
        Repeats::Times(count) => (count, None),
        Repeats::FirstOf(_) => (1, Some("first")),
        Repeats::LastOf(count) => (count, Some("last")),
    };
    let mut value = json!({
        "time": second(entry.at),
        "firstTime": second(entry.first),
        "count": count,
        "issuance": entry.issuance,
        "secondsSinceStart": entry.since_start.as_secs(),
        "secondsSinceLast": entry.step.as_secs(),
        "object": {"kind": entry.kind, "name": entry.name},
        "type": word(entry.severity),
        "reason": entry.reason,
        "message": entry.message,
        "sources": entry.sources,
    });
    if let Some(domain) = &entry.domain {
        value["object"]["domain"] = domain.as_str().into();
    }
    if entry.grain == TimePrecision::Fine {
        value["preciseTime"] = format!("{:.6}", entry.at).into();
    }
    if entry.measure == TimePrecision::Fine {
        value["millisecondsSinceStart"] = milliseconds(entry.since_start);
        value["millisecondsSinceLast"] = milliseconds(entry.step);
    }
    if let Some(place) = place {
        value["repeated"] = place.into();
    }
    value
}

/// Builds the result of one issuance.
fn issuance(total: &Total<'_>) -> Value {
    let mut value = json!({
        "issuance": total.end.issuance,
        "issued": total.outcome == IssuanceResult::Issued,
        "entries": total.entries.len(),
        "start": second(total.entries[0].at),
        "end": second(total.until()),
        "seconds": total.length().as_secs(),
    });
    if total.end.measure == TimePrecision::Fine {
        value["milliseconds"] = milliseconds(total.length());
    }
    value
}

fn second(at: Timestamp) -> String {
    Time::new(at).to_string()
}

fn milliseconds(length: SignedDuration) -> Value {
    json!(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Event;
    use crate::print::timeline::entries;
    use crate::print::timeline::saying::Sequence;

    /// The events recorded of one challenge that the CA refuses.
    fn refused() -> Vec<Event> {
        let file = include_str!(
            "../../../tests/fixtures/pairs/04-http01-ca-refuses/invalid/challenge.web-1-2726938748-762612507.events.json"
        );
        serde_json::from_str(file).unwrap()
    }

    #[test]
    fn programs_get_seconds_and_milliseconds_where_they_are_known() {
        let mut events = refused();
        let told = entries(&events, Sequence::Moments);
        let now = "2026-11-21T04:42:29Z".parse().unwrap();
        let waits = Some("Order web/web-1: too many");
        let report = report(("certificate/web", "trace-04"), &told, waits, now);
        assert_eq!(report["entries"].as_array().unwrap().len(), told.len());
        assert_eq!(report["waitsFor"], "Order web/web-1: too many");
        insta::assert_json_snapshot!(report["issuances"], @r#"
        [
          {
            "end": "2026-11-21T04:32:19Z",
            "entries": 3,
            "issuance": 0,
            "issued": false,
            "milliseconds": 8059,
            "seconds": 8,
            "start": "2026-11-21T04:32:11Z"
          }
        ]
        "#);
        insta::assert_json_snapshot!(stream(&told).last().unwrap(), {".message" => "..."}, @r#"
        {
          "apiVersion": "kubectl-acme/v1alpha1",
          "count": 1,
          "firstTime": "2026-11-21T04:32:19Z",
          "issuance": 0,
          "kind": "TimelineEntry",
          "message": "...",
          "millisecondsSinceLast": 8021,
          "millisecondsSinceStart": 8059,
          "object": {
            "kind": "Challenge",
            "name": "web-1-2726938748-762612507"
          },
          "preciseTime": "2026-11-21T04:32:19.311136Z",
          "reason": "Failed",
          "secondsSinceLast": 8,
          "secondsSinceStart": 8,
          "sources": [
            "cert-manager-challenges"
          ],
          "time": "2026-11-21T04:32:19Z",
          "type": "Warning"
        }
        "#);
        for event in &mut events {
            event.metadata.name.clear();
        }
        let told = entries(&events, Sequence::Moments);
        insta::assert_json_snapshot!(stream(&told).last().unwrap(), {".message" => "..."}, @r#"
        {
          "apiVersion": "kubectl-acme/v1alpha1",
          "count": 1,
          "firstTime": "2026-11-21T04:32:19Z",
          "issuance": 0,
          "kind": "TimelineEntry",
          "message": "...",
          "object": {
            "kind": "Challenge",
            "name": "web-1-2726938748-762612507"
          },
          "reason": "Failed",
          "secondsSinceLast": 8,
          "secondsSinceStart": 8,
          "sources": [
            "cert-manager-challenges"
          ],
          "time": "2026-11-21T04:32:19Z",
          "type": "Warning"
        }
        "#);
    }
}
