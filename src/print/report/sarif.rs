//! SARIF 2.1.0, for systems that show findings beside the lines of files: a rule for each type of error.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Finding, FindingLevel, PipelinePage};
use crate::print::document;
use crate::print::escape::escape;

/// URL of the format's schema.
const SCHEMA_URL: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Renders one run.
pub fn document(page: &PipelinePage) -> String {
    let rules: Vec<Value> = page.meanings.iter().map(|(id, meaning)| rule(id, meaning)).collect();
    // A finding without an object and a line concerns the run.
    let (of_run, results): (Vec<_>, Vec<_>) =
        page.findings().into_iter().partition(|it| it.object.is_empty() && it.place.is_none());
    let results: Vec<Value> = results.iter().map(|finding| result(page, finding)).collect();
    let notifications: Vec<Value> = of_run.iter().map(notification).collect();
    let mut invocation = json!({
        "executionSuccessful": page.report.exit_code == 0,
        "exitCode": page.report.exit_code,
        "endTimeUtc": page.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    if !notifications.is_empty() {
        invocation["toolExecutionNotifications"] = notifications.into();
    }
    let version = env!("CARGO_PKG_VERSION");
    let driver = json!({
        "name": "kubectl-acme", "version": version, "semanticVersion": version, "rules": rules,
    });
    let log = json!({
        "$schema": SCHEMA_URL,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "results": results,
        }],
    });
    // A runner of GitHub takes `##[` for the start of a command, anywhere in a line; in JSON the escape is the same text.
    document::json(&log).replace("##[", "#\\u0023[")
}

fn rule(id: &str, meaning: &str) -> Value {
    json!({
        "id": id,
        "shortDescription": {"text": meaning},
        "defaultConfiguration": {"level": "error"},
    })
}

fn result(page: &PipelinePage, finding: &Finding<'_>) -> Value {
    let mut location = Map::new();
    let mut message = finding.text();
    if let Some(place) = finding.place {
        let region = json!({"startLine": place.line, "startColumn": place.column});
        match page.path(place) {
            Some(path) => {
                let artifact = json!({"uri": uri(path)});
                let physical = json!({"artifactLocation": artifact, "region": region});
                location.insert("physicalLocation".to_owned(), physical);
            }
            None => message = format!("{}:{}:{}: {message}", place.file, place.line, place.column),
        }
    }
    if !finding.object.is_empty() {
        let object = json!([{"fullyQualifiedName": escape(&finding.object), "kind": "resource"}]);
        location.insert("logicalLocations".to_owned(), object);
    }
    let mut result = json!({
        "ruleId": finding.kind,
        "level": level(finding.level),
        "message": {"text": escape(&message)},
        "locations": [location],
    });
    let index = page.meanings.iter().position(|(id, _)| *id == finding.kind);
    if let Some(index) = index {
        result["ruleIndex"] = index.into();
    }
    result
}

fn notification(finding: &Finding<'_>) -> Value {
    json!({
        "level": level(finding.level),
        "message": {"text": escape(&finding.text())},
        "associatedRule": {"id": finding.kind},
    })
}

fn level(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Error => "error",
        FindingLevel::Warning => "warning",
        FindingLevel::Note => "note",
    }
}

/// Returns a path as a URI: relative to the repository, or with `file://` for a file elsewhere.
fn uri(path: &str) -> String {
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing into memory cannot fail.
            let _written = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::model::order_report::OrderReport;

    /// The run, with what the specification requires of every log.
    #[track_caller]
    fn run(page: &PipelinePage) -> Value {
        let log: Value = serde_json::from_str(&document(page)).unwrap();
        assert_eq!(log["version"], "2.1.0");
        let run = log["runs"][0].clone();
        assert!(run["tool"]["driver"]["name"].is_string() && run["results"].is_array(), "{run}");
        assert!(run["invocations"][0]["executionSuccessful"].is_boolean(), "{run}");
        for result in run["results"].as_array().unwrap() {
            assert!(result["message"]["text"].is_string(), "{result}");
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
        }
        run
    }

    #[test]
    fn a_failure_stands_at_the_line_of_its_certificate() {
        let run = run(&sample::mixed());
        insta::assert_snapshot!(document::json(&run["results"]), @r#"
        [
            {
                "level": "error",
                "locations": [
                    {
                        "logicalLocations": [
                            {
                                "fullyQualifiedName": "Certificate web/bad",
                                "kind": "resource"
                            }
                        ],
                        "physicalLocation": {
                            "artifactLocation": {
                                "uri": "ci/deploy/web.yaml"
                            },
                            "region": {
                                "startColumn": 1,
                                "startLine": 3
                            }
                        }
                    }
                ],
                "message": {
                    "text": "Certificate web/bad: the CA refused it, 50%\nhint: look at the name: dig www.example.com"
                },
                "ruleId": "validation",
                "ruleIndex": 1
            }
        ]
        "#);
        insta::assert_snapshot!(document::json(&run["invocations"]), @r#"
        [
            {
                "endTimeUtc": "2026-11-24T12:00:00Z",
                "executionSuccessful": false,
                "exitCode": 4
            }
        ]
        "#);
    }

    #[test]
    fn a_fault_that_is_in_no_file_has_its_object_for_a_place() {
        let run = run(&sample::faulty("unknown field"));
        let locations = |at: usize| &run["results"][at]["locations"][0];
        let uri = &locations(0)["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(uri, "ci/deploy/web.yaml");
        assert_eq!(locations(1).get("physicalLocation"), None);
        assert_eq!(locations(1)["logicalLocations"][0]["fullyQualifiedName"], "Certificate a");
        let text = run["results"][1]["message"]["text"].as_str().unwrap();
        assert!(text.starts_with("stdin:2:1: unknown field"), "{text}");
    }

    #[test]
    fn what_is_about_nothing_that_was_given_is_about_the_run() {
        let mut page = sample::page(OrderReport::new(2, false));
        page.report.error = Some(sample::error("usage", 2, "no store"));
        let run = run(&page);
        assert_eq!(run["results"], json!([]));
        let told = &run["invocations"][0]["toolExecutionNotifications"][0];
        assert_eq!(
            (&told["level"], &told["associatedRule"]["id"]),
            (&json!("error"), &json!("usage"))
        );
    }

    #[test]
    fn no_text_is_more_than_text() {
        let page = sample::hostile();
        let run = run(&page);
        assert_eq!(run["results"].as_array().unwrap().len(), 3);
        let last = run["results"][2]["message"]["text"].as_str().unwrap();
        assert!(last.starts_with(&escape(sample::HOSTILE)), "{last}");
        assert!(!document(&page).contains("##["));
    }

    #[test]
    fn paths_are_uris() {
        for (path, expected) in [
            ("deploy/a b.yaml", "deploy/a%20b.yaml"),
            ("a:b#c?d%.yaml", "a%3Ab%23c%3Fd%25.yaml"),
            ("/tmp/ü.yaml", "file:///tmp/%C3%BC.yaml"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }

    #[test]
    fn a_cause_that_was_found_is_a_rule_of_the_run() {
        let run = run(&sample::diagnosed(sample::HOSTILE, &[("a.example", FindingLevel::Warning)]));
        assert_eq!(run["results"][0]["level"], "warning", "{run}");
        assert_eq!(run["results"][0]["ruleId"], "HTTP-05", "{run}");
    }
}
