//! The table of the fault lab in `docs/lab.md`: which causes have a rule, which test makes each happen, and of the others what is
//! missing. It is read off the sources, so that it cannot tell of a rule or a fault that is not there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kubectl_acme::diagnosis::catalogue::{self, CauseEntry, LabNote};

/// Causes that have a rule at least: the number only grows.
const RULES: usize = 192;

/// What the sources have of one cause.
#[derive(Default)]
struct Found {
    /// Whether a rule names it.
    has_rule: bool,
    /// Whether a case that is put together by hand shows its rule.
    has_case: bool,
    /// Files of tests that make it happen on real parts, below `tests/it/`.
    faults: Vec<String>,
}

/// Every file below a folder.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// Tells whether a source names a cause as the variant of the enum.
fn names(text: &str, entry: &CauseEntry) -> bool {
    let variant = format!("Id::{:?}", entry.id);
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
    text.match_indices(&variant).any(|(at, _)| is_end(&text[at + variant.len()..]))
}

fn found() -> BTreeMap<usize, Found> {
    let rules = sources("src/diagnosis/rules");
    let rules = rules.iter().map(|(path, text)| {
        let (rule, cases) = text.split_once("#[cfg(test)]").unwrap_or((text, ""));
        if path.ends_with("tests.rs") || path.ends_with("cases.rs") {
            ("", text.as_str())
        } else {
            (rule, cases)
        }
    });
    let rules: Vec<(&str, &str)> = rules.collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let tests = sources("tests/it").into_iter().filter_map(|(path, text)| {
        let name = path.strip_prefix(&root).unwrap().with_extension("").display().to_string();
        name.contains("diagnose").then_some((name, text))
    });
    let tests: Vec<(String, String)> = tests.collect();
    let of = |entry: &CauseEntry| {
        let quoted = format!("\"{}\"", entry.id);
        let is_fault =
            |line: &str| line.contains(&quoted) && !line.contains(&format!("!= {quoted}"));
        let faults = tests.iter().filter(|(_, text)| text.lines().any(is_fault));
        Found {
            has_rule: rules.iter().any(|(rule, _)| names(rule, entry)),
            has_case: rules.iter().any(|(_, cases)| names(cases, entry)),
            faults: faults.map(|(name, _)| name.clone()).collect(),
        }
    };
    catalogue::all().iter().map(of).enumerate().collect()
}

/// The rows of the table, one for each cause.
pub(super) fn rows() -> String {
    let row = |(entry, found): (&CauseEntry, &Found)| {
        let rule = if found.has_rule { "yes" } else { "no" };
        let (LabNote::Reproduce(how) | LabNote::Unseen(how)) = &entry.lab;
        let made = match (found.faults.is_empty(), &entry.lab) {
            (false, _) => {
                let files: Vec<String> = found.faults.iter().map(|f| format!("`{f}`")).collect();
                files.join(", ")
            }
            (true, LabNote::Unseen(_)) => format!("cannot be: {how}"),
            (true, LabNote::Reproduce(_)) => format!("not yet: {how}"),
        };
        let id = entry.id;
        format!("| [{id}](causes/{id}.md) | {rule} | {} |\n", made.replace('|', "\\|"))
    };
    let found = found();
    catalogue::all().iter().zip(found.values()).map(row).collect()
}

#[test]
fn every_rule_is_shown_by_a_fault_or_a_case_and_no_rule_is_lost() {
    let found = found();
    let rules = catalogue::all().iter().zip(found.values()).filter(|(_, found)| found.has_rule);
    let rules: Vec<(&CauseEntry, &Found)> = rules.collect();
    let bare = rules.iter().filter(|(_, found)| !found.has_case && found.faults.is_empty());
    let bare: Vec<String> = bare.map(|(entry, _)| entry.id.to_string()).collect();
    assert_eq!(bare, [""; 0], "neither a fault nor a case shows these rules");
    assert!(rules.len() >= RULES, "{} of {RULES} rules are left", rules.len());
}

/// Items of cert-manager's guide to troubleshooting ACME, as it says them, each with the test that makes it happen.
const GUIDE: [(&str, &str); 9] = [
    (
        "check if the (Cluster)Issuer you're using is in a ready state",
        "guide_the_issuer_is_not_ready",
    ),
    (
        "Failed to update ACME account:400 urn:ietf:params:acme:error:invalidEmail",
        "guide_failed_to_update_acme_account_invalid_email",
    ),
    (
        "Failed to register ACME account: secrets \"acme-key\" already exists",
        "guide_a_leftover_account_is_no_longer_valid",
    ),
    (
        "Unable to update challenge :: authorization must be pending",
        "guide_authorization_must_be_pending",
    ),
    (
        "Check the authorization URL on the status of the Order or Challenge",
        "guide_the_authorization_says_why_where_the_order_does_not",
    ),
    (
        "check if you can see the challenge URL from the public internet",
        "guide_a_firewall_hides_the_challenge_url",
    ),
    ("check if your cluster can see it too", "guide_the_cluster_does_not_see_the_challenge_url"),
    ("If you receive a tls: handshake failure", "guide_tls_handshake_failure"),
    ("Got 404 status code", "guide_got_404_status_code"),
];

#[test]
fn every_item_of_the_guide_has_its_test() {
    let sources = sources("tests/it");
    let lines = sources.iter().flat_map(|(_, text)| text.lines());
    let named =
        lines.filter_map(|line| line.trim_start_matches("async ").strip_prefix("fn guide_"));
    let named: Vec<String> =
        named.filter_map(|rest| Some(format!("guide_{}", rest.split_once('(')?.0))).collect();
    for (item, test) in GUIDE {
        let count = named.iter().filter(|name| *name == test).count();
        assert_eq!(count, 1, "{item:?} is shown by {test}");
    }
}
