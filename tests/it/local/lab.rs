//! The table of the fault lab in `docs/lab.md`: which causes have a rule, which test makes each happen, and of the others what is
//! missing. It is read off the sources, so that it cannot tell of a rule or a fault that is not there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kubectl_acme::diagnosis::catalogue::{self, CauseEntry, LabNote};

/// Causes that have a rule at least: the number only grows.
const RULES: usize = 195;

/// Causes that never come alone, and the one that is named first where they are made to happen.
const BESIDE: [(&str, &str); 2] = [("ORD-02", "HTTP-03"), ("D01-18", "D01-01")];

/// What the sources have of one cause.
#[derive(Default)]
struct Found {
    /// Whether a rule names it.
    has_rule: bool,
    /// Whether a case that is put together by hand shows its rule.
    has_case: bool,
    /// Files of tests that make it happen on real parts, below `tests/it/`, as the table shows them.
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

/// Functions of tests that hold that the cause that is given to them is named first, or that look one up in a table of such.
const HOLDS_FIRST: [&str; 9] = [
    "names_first",
    "names_soon",
    "first",
    "check",
    "check_server",
    "named",
    "names",
    "foreseen",
    "",
];

/// Tells whether a test holds that a cause is named first: it stands among the arguments of a function that does, or in a row of a
/// table that is gone through. What is only compared with it, or explained by another, is no fault of its own.
fn holds_first(text: &str, quoted: &str) -> bool {
    text.match_indices(quoted).any(|(at, _)| {
        let before = text[..at].strip_suffix("Some(").unwrap_or(&text[..at]);
        if !before.trim_end().ends_with(['(', ',', '[']) {
            return false;
        }
        let mut depth = 0;
        let opened = before.char_indices().rev().find(|(_, letter)| {
            match letter {
                ')' | ']' | '}' => depth += 1,
                '(' | '[' | '{' => depth -= 1,
                _ => {}
            }
            depth < 0
        });
        let Some((opened, bracket)) = opened else { return false };
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '!';
        let callee = before[..opened].rsplit(|c| !is_of_name(c)).next().unwrap_or_default();
        bracket == '(' && HOLDS_FIRST.contains(&callee)
    })
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
        let id = entry.id.to_string();
        let quoted = format!("\"{id}\"");
        let root = BESIDE.iter().find(|(beside, _)| *beside == id).map(|(_, root)| *root);
        let faults = tests.iter().filter_map(|(name, text)| match root {
            None => holds_first(text, &quoted).then(|| format!("`{name}`")),
            Some(root) => (text.contains(&quoted) && holds_first(text, &format!("\"{root}\"")))
                .then(|| format!("`{name}`, beside {root}")),
        });
        Found {
            has_rule: rules.iter().any(|(rule, _)| names(rule, entry)),
            has_case: rules.iter().any(|(_, cases)| names(cases, entry)),
            faults: faults.collect(),
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
            (false, _) => found.faults.join(", "),
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

/// Items of cert-manager's guide to troubleshooting, as it says them and in its order, each with the test that makes it happen.
const GUIDE: &[(&str, &str)] = &[
    (
        "If none is present and you plan to use the ingress-shim: check the ingress annotations",
        "guide_an_ingress_has_no_certificate",
    ),
    (
        "check the output of the command you used to create the certificate",
        "guide_the_definitions_are_not_installed",
    ),
    (
        "any issue regarding the Issuer configuration",
        "guide_a_request_waits_for_an_issuer_that_is_not_there",
    ),
    (
        "error messages regarding accounts or network issues with your issuer",
        "guide_the_issuer_does_not_reach_the_ca",
    ),
    (
        "check if the (Cluster)Issuer you're using is in a ready state",
        "guide_the_issuer_is_not_ready",
    ),
    (
        "Failed to update ACME account:400 urn:ietf:params:acme:error:invalidEmail",
        "guide_failed_to_update_acme_account_invalid_email",
    ),
    (
        "invalid contact domain. Contact emails @example.com are forbidden",
        "guide_the_ca_refuses_the_email_of_the_issuer",
    ),
    (
        "Failed to register ACME account: secrets \"acme-key\" already exists",
        "guide_the_secret_of_the_account_already_exists",
    ),
    (
        "a leftover account from a previous issuer that is no longer valid",
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
        "a cap on the maximum number of simultaneous challenges",
        "guide_names_that_never_succeed_keep_all_slots",
    ),
    (
        "disallows two challenges for the same DNS name and solver type",
        "guide_two_challenges_of_one_name_are_not_completed_at_once",
    ),
    (
        "Waiting for dns-01 challenge propagation",
        "guide_waiting_for_propagation_since_a_copy_follows_late",
    ),
    (
        "In case of DNS01 you will find any errors from your DNS provider here",
        "guide_the_dns_provider_does_not_know_the_token_or_has_no_such_zone",
    ),
    (
        "check if you can see the challenge URL from the public internet",
        "guide_a_firewall_hides_the_challenge_url",
    ),
    (
        "check your Ingress and firewall configuration",
        "guide_a_firewall_of_the_cluster_lets_nobody_in",
    ),
    (
        "the service and pod cert-manager created to solve the ACME challenge",
        "guide_the_service_of_the_solver_leads_nowhere",
    ),
    ("check if your cluster can see it too", "guide_the_cluster_does_not_see_the_challenge_url"),
    (
        "It is important to test this from inside a Pod",
        "guide_http01_is_seen_from_the_internet_and_not_from_a_pod",
    ),
    ("If you receive a tls: handshake failure", "guide_tls_handshake_failure"),
    (
        "your ingress controller handling multiple resources for the same hostname",
        "guide_several_resources_have_the_same_hostname",
    ),
    (
        "prevent GKE from assigning a 2nd IP address",
        "guide_gke_assigns_a_second_address_for_the_challenge",
    ),
    (
        "Got 404 status code: you can access the URL from the public internet",
        "guide_got_404_status_code",
    ),
    (
        "Got 404 status code: the ACME solver pod is up and running",
        "guide_got_404_and_the_solver_pod_does_not_run",
    ),
    (
        "Got 404 status code: the status of the HTTP01 solver ingress",
        "guide_got_404_and_nobody_takes_the_ingress_of_the_solver",
    ),
    (
        "Check if you can see the TXT DNS record from the public internet",
        "guide_the_txt_record_is_missing_another_or_in_the_wrong_place",
    ),
    (
        "see it from the public internet but not from inside the cluster",
        "guide_the_record_is_seen_from_one_side_alone",
    ),
    (
        "cert-manager identifies the wrong zone for your domain name",
        "guide_the_wrong_zone_since_soa_records_are_filtered",
    ),
    (
        "Let's Encrypt will be revoking a number of certificates due to a bug",
        "guide_the_ca_wants_certificates_replaced_that_it_issued_wrongly",
    ),
];

#[test]
fn every_item_of_the_guide_has_its_test() {
    let sources = sources("tests/it");
    let lines = sources.iter().flat_map(|(_, text)| text.lines());
    let named =
        lines.filter_map(|line| line.trim_start_matches("async ").strip_prefix("fn guide_"));
    let mut named: Vec<String> =
        named.filter_map(|rest| Some(format!("guide_{}", rest.split_once('(')?.0))).collect();
    let mut wanted: Vec<&str> = GUIDE.iter().map(|(_, test)| *test).collect();
    named.sort();
    wanted.sort_unstable();
    assert_eq!(named, wanted, "each item has its test, and each such test its item");
}
