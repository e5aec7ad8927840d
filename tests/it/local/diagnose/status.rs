//! `status` on one machine: what there is, who works, and what is stuck.

use std::collections::BTreeSet;

use serde_json::Value;

use super::NAME;
use super::verbs::{json_of, stuck};
use crate::support::reports;

#[tokio::test(flavor = "multi_thread")]
async fn one_screen_has_what_there_is_and_the_worst_last() {
    let (lab, _) = stuck().await;
    let said = lab.looks(&["status"]);
    assert_eq!(said.code, Some(10), "{said:?}");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines[0], "Certificates:   1: 1 being issued", "{said:?}");
    assert_eq!(lines[1], "Issuers:        1: 1 ready", "{said:?}");
    assert_eq!(lines[2], "Next renewals:  none", "{said:?}");
    assert!(lines[3].starts_with("Driver:         no controller is running"), "{said:?}");
    assert!(lines.contains(&"Challenges:     1 of 60 slots taken, 0 queued"), "{said:?}");
    let last = lines.last().unwrap();
    assert!(last.contains(NAME) && lines[lines.len() - 2].contains("error, "), "{said:?}");
    assert!(said.stderr.contains("more: kubectl-acme diagnose"), "{said:?}");

    let report: Value = json_of(&lab.looks(&["status", "-o", "json"]));
    let told: BTreeSet<String> = reports::rows("Status").into_keys().collect();
    for (path, _) in reports::fields(&report) {
        // Of a list that is empty there is no more to tell.
        let of_list = format!("{path}[]");
        let is_told = told.contains(&path) || told.iter().any(|it| it.starts_with(&of_list));
        assert!(is_told, "docs/reports.md lacks {path}: {report:#}");
    }
    assert_eq!(report["certificates"]["issuing"], 1, "{report:#}");
    assert_eq!(report["stuck"][0]["severity"], "error", "{report:#}");
    assert_eq!(report["exitCode"], 10, "{report:#}");
    assert_eq!(report.get("driver"), None, "{report:#}");
    // Where nothing was ever kept there is no status.
    let none = lab.terminal.run(&["status", "--local=elsewhere"]);
    assert_eq!(none.code, Some(2), "{none:?}");
}
