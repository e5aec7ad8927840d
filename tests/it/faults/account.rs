//! CAs that are not there or not trusted, and accounts that they refuse.

use std::collections::BTreeMap;

use kubectl_acme::ca::{Config, MacKey};

use super::site::Site;
use crate::support::bed::free_port;

/// Runs with a changed manifest: no order is made, nothing is written out; what is stored is good for another try.
#[track_caller]
fn check(site: &Site, more: &str, code: i32, complaint: &str) {
    site.run(site.order(more)).check(code, complaint);
    assert_eq!(site.orders(), 0);
    assert_eq!(site.results(), [""; 0]);
}

#[test]
fn a_ca_that_nobody_answers_for_is_tried_until_the_time_is_up() {
    let site = Site::new();
    let front = site.ca.directory_url();
    site.change(&front, &format!("https://127.0.0.1:{}/dir", free_port()));
    check(&site, "--timeout 2s", 6, "");
}

#[test]
fn a_ca_host_that_does_not_exist_ends_at_once() {
    let site = Site::new();
    site.change(&site.ca.directory_url(), "https://acme.invalid/directory");
    check(&site, "", 6, "");
}

#[test]
fn a_ca_that_is_not_trusted_ends_at_once() {
    let site = Site::new();
    let stranger = Site::new();
    site.change(&site.bundle(), &stranger.bundle());
    check(&site, "", 6, "");
}

#[test]
fn an_email_that_the_ca_refuses_is_told_in_its_words() {
    let site = Site::new();
    site.change("    server:", "    email: me@example.com\n    server:");
    check(&site, "", 7, "");
}

fn binding() -> Site {
    let keys = BTreeMap::from([("kid-1".to_owned(), MacKey::new(vec![7; 32]))]);
    Site::with(Config {
        external_accounts: keys,
        external_account_required: true,
        ..Config::default()
    })
}

const BINDING: &str = "    externalAccountBinding:\n      keyID: kid-1\n      keySecretRef: {name: eab, key: secret}\n    server:";

#[test]
fn a_missing_external_account_binding_is_told() {
    check(&binding(), "", 7, "");
}

#[test]
fn a_missing_secret_of_the_binding_is_told_with_its_namespace() {
    let site = binding();
    site.change("    server:", BINDING);
    check(&site, "", 7, "");
}

#[test]
fn a_wrong_key_of_the_binding_is_told() {
    let site = binding();
    site.change("    server:", BINDING);
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: eab\nstringData:\n  secret: d3Jvbmc\n";
    site.give(&format!("{}{secret}", std::fs::read_to_string(site.path("site.yaml")).unwrap()));
    check(&site, "", 7, "");
}
