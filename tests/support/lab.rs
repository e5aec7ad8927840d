//! The fault lab: what `diagnose -o json` says of a fault that a test has made happen, or of a set-up that is well. Where
//! `KUBECTL_ACME_LAB` names a folder, what was named is noted there for the table of `just lab`.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

static NOTED: AtomicUsize = AtomicUsize::new(0);

/// That cause was made to happen, and is named first, with its evidence. Returns the finding.
#[track_caller]
pub fn names_first<'a>(report: &'a Value, cause: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    let first = findings.first().is_some_and(|finding| finding["cause"] == cause);
    note(cause, findings);
    assert!(first, "{cause} was to be named first: {report:#}");
    let evidence = findings[0]["evidence"].as_array().unwrap();
    assert!(!evidence.is_empty() && evidence.iter().all(|one| one["came"] != ""), "{report:#}");
    &findings[0]
}

/// Nothing is wrong with a set-up, and nothing is named.
#[track_caller]
pub fn names_none(report: &Value, setup: &str) {
    let findings = report["findings"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    note("well", findings);
    assert!(findings.is_empty(), "{setup} is well: {report:#}");
}

/// Notes what was made to happen and what was named, in a file of its own: tests run side by side, in several processes.
fn note(made: &str, findings: &[Value]) {
    let Some(folder) = env::var_os("KUBECTL_ACME_LAB") else { return };
    let number = NOTED.fetch_add(1, Ordering::Relaxed);
    let file = PathBuf::from(folder).join(format!("{}-{number}", process::id()));
    let named = findings.iter().filter_map(|finding| finding["cause"].as_str());
    let line: Vec<&str> = [made].into_iter().chain(named).collect();
    fs::write(file, line.join(" ") + "\n").unwrap();
}
