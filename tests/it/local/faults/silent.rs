//! A CA that takes requests and does not answer: it is named when time is up, and whoever leaves is told how to go on.

use std::time::{Duration, Instant};

use super::site::{Site, wait_until};
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

/// More than a run takes that waits for nothing, and less than an answer is waited for.
const SOON: Duration = Duration::from_secs(80);
const INTERRUPTED: &str = "\
error: interrupted; everything so far is kept
hint: go on with: kubectl-acme order -f site.yaml
";

/// A CA that says nothing when it is only asked for something: it is named, and nobody waits for it beyond the end.
#[track_caller]
fn check(endpoint: Endpoint, named: &str) {
    let site = Site::new();
    site.proxy.inject(Fault::hold().at(endpoint));
    let began = Instant::now();
    let said = site.run(site.order("--timeout 5s"));
    assert!(began.elapsed() < SOON, "{}", said.talk);
    assert_eq!(said.code, Some(6), "{}", said.talk);
    let complaint = said.complaint();
    let begins = format!(
        "error: Certificate default/web is not done after 5s: Issuer default/acme: cannot {named}"
    );
    assert!(complaint.starts_with(&begins), "{complaint}");
    assert!(complaint.contains(": no answer for "), "{complaint}");
    assert!(
        complaint.contains("\nhint: check spec.acme.server of Issuer default/acme"),
        "{complaint}"
    );
    assert!(!said.talk.contains("Ctrl-C"), "{}", said.talk);
    site.proxy.release();
    site.issues();
    assert_eq!(site.orders(), 1);
}

#[test]
fn a_ca_that_is_silent_is_named_when_time_is_up_and_not_waited_for() {
    check(Endpoint::Directory, "read [directory]: ");
    check(Endpoint::Nonce, "take a nonce from https://[ca]/");
    check(Endpoint::Authorization, "read https://[ca]/");
}

#[test]
fn what_a_ca_was_asked_to_do_is_waited_for_and_nobody_has_to_press_anything() {
    let site = Site::new();
    site.proxy.inject(Fault::hold().at(Endpoint::NewOrder));
    let order = site.start("order", site.order("--timeout 5s"));
    order.says("waiting for the requests under way");
    site.proxy.release();
    let said = order.end();
    assert_eq!(said.code, Some(6), "{}", said.talk);
    assert!(said.complaint().contains(": cannot post to https://[ca]/"), "{}", said.talk);
    assert!(!said.talk.contains("Ctrl-C"), "{}", said.talk);
    site.issues();
    assert_eq!(site.orders(), 1);
}

#[test]
fn a_new_order_that_is_never_answered_is_given_up_soon_after_time_is_up_and_the_next_run_goes_on() {
    let site = Site::new();
    site.proxy.inject(Fault::hold().at(Endpoint::NewOrder));
    let said = site.run(site.order("--timeout 5s"));
    assert_eq!(said.code, Some(6), "{}", said.talk);
    assert!(said.talk.contains("the requests under way are given up"), "{}", said.talk);
    assert!(said.complaint().contains(": cannot post to https://[ca]/"), "{}", said.talk);
    site.proxy.release();
    site.issues();
}

#[test]
fn whoever_leaves_by_a_second_signal_has_been_told_how_to_go_on() {
    let site = Site::new();
    site.proxy.inject(Fault::hold().at(Endpoint::NewOrder));
    let order = site.start("order", site.order(""));
    wait_until(|| site.proxy.held() > 0, "newOrder");
    order.signal("INT");
    order.says("go on with: ");
    order.says("press Ctrl-C again to leave at once");
    order.signal("INT");
    order.end().check(130, INTERRUPTED);
}

#[test]
fn one_signal_is_enough_where_a_ca_is_only_asked_for_something() {
    let site = Site::new();
    site.proxy.inject(Fault::hold().at(Endpoint::Directory));
    let order = site.start("order", site.order(""));
    wait_until(|| site.proxy.held() > 0, "the directory");
    order.signal("INT");
    let began = Instant::now();
    order.end().check(130, INTERRUPTED);
    assert!(began.elapsed() < SOON);
}
