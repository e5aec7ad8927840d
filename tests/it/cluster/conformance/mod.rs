//! The cases of the behaviour reference (its section 14) on the real API server: those of names, Issuers, requests, Orders,
//! solvers, Challenges and HTTP-01, which are its sections 1 to 6, 9 and 11. [`CASES`] says which test reaches which.

mod challenges;
mod http01;
mod issuers;
mod names;
mod orders;
mod requests;
mod solvers;
mod stage;
mod webhook;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Files of this binary in which the tests are.
const FILES: [&str; 11] = [
    "cluster/conformance/challenges.rs",
    "cluster/conformance/http01.rs",
    "cluster/conformance/issuers.rs",
    "cluster/conformance/names.rs",
    "cluster/conformance/orders.rs",
    "cluster/conformance/requests.rs",
    "cluster/conformance/solvers.rs",
    "cluster/kubectl.rs",
    "local/solve.rs",
    "cluster/solver.rs",
    "../../src/fetch/mod.rs",
];

/// Each test with the cases that it reaches. 15, 22, 26, 32, 35, 43, 60, 66, 68, 69, 71, 74 and 77 differ on purpose where
/// docs/differences.md says so.
const CASES: &[(&str, &[u8])] = &[
    ("orders_have_the_names_of_cert_manager", &[1, 2, 3]),
    ("challenges_and_their_objects_have_the_names_of_cert_manager", &[1]),
    ("requests_keep_certificate_names_of_233_characters", &[4]),
    ("an_issuer_gets_an_account_and_keeps_it_with_its_key", &[5, 6, 7, 9, 17]),
    ("what_is_wrong_with_an_issuer_is_said_until_it_is_put_right", &[8, 13, 14, 15, 16, 18]),
    ("an_external_account_is_bound_as_soon_as_its_key_is_there", &[10, 11, 12]),
    ("a_request_is_judged_before_anything_is_ordered", &[19, 20, 21, 24, 25, 28]),
    ("what_others_approve_or_deny_counts", &[22, 23]),
    ("a_challenge_that_fails_takes_its_order_and_request_along", &[26, 35, 64]),
    ("an_order_with_the_certificate_of_another_key_is_made_anew", &[27]),
    ("an_order_goes_from_names_to_a_certificate", &[29, 37, 40]),
    ("what_is_proved_already_needs_no_challenge", &[30, 31]),
    ("a_refusal_ends_an_order_and_a_fault_does_not", &[32, 33, 34, 39]),
    ("an_order_outlasts_answers_that_are_late_or_lost", &[36, 38]),
    ("the_chain_is_the_one_preferred", &[41]),
    ("an_order_follows_the_solvers_of_its_issuer", &[42, 43]),
    ("a_duration_is_asked_for_only_where_the_issuer_says_so", &[44]),
    (
        "the_solver_is_chosen_as_cert_manager_chooses",
        &[45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56],
    ),
    ("no_more_challenges_start_than_there_are_slots_and_one_of_a_name", &[57, 58, 59]),
    ("a_challenge_reads_its_own_authorization_where_nobody_else_does", &[60, 63, 68]),
    ("what_stands_in_the_way_of_a_challenge_is_said_and_waited_for", &[61, 62]),
    ("what_the_ca_says_to_an_acceptance_is_kept_or_tried_again", &[63, 65, 66, 67]),
    ("a_challenge_goes_only_after_its_answer_and_always_goes", &[69, 70]),
    ("a_wait_can_stand_in_for_the_self_check", &[71, 72]),
    ("objects_are_shaped_by_name_and_solver", &[73, 76]),
    ("what_is_lost_comes_back_and_what_is_too_much_goes", &[74]),
    ("an_edited_ingress_keeps_the_paths_of_others", &[75]),
    ("a_line_break_behind_the_answer_is_forgiven_as_the_ca_does", &[77]),
    ("it_answers_one_name_until_it_is_told_to_end", &[79]),
    ("an_ingress_leads_to_cert_managers_solver_and_to_ours", &[79]),
    ("an_ipv6_address_stands_in_brackets", &[80]),
    ("kubectl_shows_everything_and_takes_it_away", &[97]),
];

/// Reached below the API server only: port 443, to which such a redirect leads, is nobody's in a test.
const ELSEWHERE: &[(&str, &[u8])] = &[("certificates_are_not_verified", &[78])];

#[test]
fn every_case_is_reached_by_a_test_that_is_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let source: String =
        FILES.iter().map(|file| fs::read_to_string(folder.join(file)).unwrap()).collect();
    let mut reached = BTreeSet::new();
    for (test, cases) in CASES.iter().chain(ELSEWHERE) {
        assert!(source.contains(&format!("fn {test}()")), "{test} is nowhere");
        reached.extend(cases.iter().copied());
    }
    let wanted: BTreeSet<u8> = (1..=80).chain([97]).collect();
    assert_eq!(reached, wanted, "the cases of sections 1 to 6, 9 and 11");
}
