//! A CA that is away for a while: the Order or Challenge that it keeps waiting says so, until the CA is itself again.

use serde_json::Value;

use super::site::{Site, wait_until};
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

const SAID: &str = "503 urn:ietf:params:acme:error:serverInternal: upstream is away";

fn away() -> Fault {
    Fault::problem(503, "serverInternal", "upstream is away").at(Endpoint::Challenge)
}

/// The status of the one object of that kind, as a person reads it.
fn status(site: &Site, kind: &str) -> Value {
    let listed = site.run(site.program(&format!("get {kind} -o json")));
    let listed: Value = serde_json::from_str(&listed.result).unwrap();
    listed["items"][0]["status"].clone()
}

fn reason(status: &Value) -> &str {
    status["reason"].as_str().unwrap_or_default()
}

/// Waits until the Challenge gives such a reason.
#[track_caller]
fn wait_for(site: &Site, what: &str, is_it: impl Fn(&str) -> bool) {
    let is_so = || {
        let status = status(site, "challenges");
        status["state"] == "pending" && is_it(reason(&status))
    };
    wait_until(is_so, what);
}

/// While the CA is away the Order says what it has not done, and nothing of it is left once that is done.
#[track_caller]
fn check_order(endpoint: Endpoint, deed: &str) {
    let site = Site::new();
    site.proxy.inject(Fault::problem(503, "serverInternal", "upstream is away").at(endpoint));
    let order = site.start("order", site.order(""));
    let told = format!("Failed to {deed}: {SAID}");
    wait_until(|| reason(&status(&site, "orders")) == told, &told);
    site.proxy.calm_down();
    order.end().check(0, "");
    assert_eq!((site.orders(), reason(&status(&site, "orders"))), (1, ""));
    site.has_pair();
}

/// The fault shows while it lasts, is over with it, and costs neither the order nor a second acceptance.
#[track_caller]
fn check(fault: Fault, is_it: impl Fn(&str) -> bool) {
    let site = Site::new();
    site.blind();
    site.proxy.inject(fault);
    let order = site.start("order", site.order(""));
    wait_for(&site, "what the CA said", is_it);
    assert_eq!(site.ca.statistics().of("challenge"), 0, "the CA heard nothing yet");
    site.proxy.calm_down();
    // The CA has taken it and does not see yet: the Challenge is still there.
    wait_for(&site, "an end of it", str::is_empty);
    assert_eq!(site.ca.statistics().of("challenge"), 1);
    site.see();
    let said = order.end();
    said.check(0, "");
    assert!(said.talk.contains(SAID), "{}", said.talk);
    assert_eq!((site.orders(), site.ca.statistics().of("challenge")), (1, 1));
    site.has_pair();
}

#[test]
fn a_ca_that_is_away_is_in_the_reason_of_the_order_until_it_is_back() {
    check_order(Endpoint::NewOrder, "create Order");
    check_order(Endpoint::Authorization, "fetch authorization");
    check_order(Endpoint::Finalize, "finalize Order");
    check_order(Endpoint::Certificate, "retrieve signed certificate");
}

#[test]
fn a_ca_that_is_away_at_the_acceptance_is_told_until_it_is_back() {
    check(away(), |reason| reason == format!("Error accepting challenge: {SAID}"));
}

#[test]
fn a_ca_that_names_the_moment_of_another_acceptance_is_told_until_then() {
    let told = format!("Error accepting challenge: {SAID}; next try at ");
    check(away().header("Retry-After", "1"), |reason| reason.starts_with(&told));
}

#[test]
fn a_ca_that_is_away_for_longer_than_the_timeout_ends_the_run_and_is_not_asked_before() {
    let site = Site::new();
    site.proxy.inject(away().header("Retry-After", "3600"));
    let complaint = "\
error: Challenge default/web-1-[hash]: Error accepting challenge: 503 urn:ietf:params:acme:error:serverInternal: upstream is away; next try at [moment]
hint: run the same command again after [moment], or with a longer --timeout: it goes on where it stopped
";
    site.run(site.order("")).check(6, complaint);
    assert_eq!(site.proxy.counts().at(Endpoint::Challenge), 1);
    site.proxy.forget();
    site.run(site.order("")).check(6, complaint);
    assert_eq!(site.proxy.counts().at(Endpoint::Challenge), 0);
    assert_eq!((site.orders(), site.results()), (1, Vec::new()));
}
