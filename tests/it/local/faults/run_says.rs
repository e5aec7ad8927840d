//! What `run` says in its log of what waits: why, once, and that it is over.

use std::thread::sleep;
use std::time::Duration;

use super::site::{Running, Site};
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

/// Nobody listens there.
const NOWHERE: &str = "*=127.0.0.1:1";

/// `run` on a Certificate whose name leads nowhere for now.
fn run(site: &Site) -> Running<'_> {
    let mut order = site.order("--timeout 5s");
    order.env("KUBECTL_ACME_HTTP01_RESOLVE", NOWHERE);
    assert_eq!(site.run(order).code, Some(124));
    let mut run = site.program("run");
    run.env("KUBECTL_ACME_HTTP01_RESOLVE", NOWHERE);
    site.start("run", run)
}

#[test]
fn a_challenge_that_is_stuck_is_in_the_log_of_run_with_its_reason_once() {
    let site = Site::new();
    let run = run(&site);
    run.says(" Challenge default/web-1-");
    // Looks come after 1, 2 and 5 s.
    sleep(Duration::from_secs(6));
    run.signal("TERM");
    let said = run.end();
    let of_challenge = |line: &&str| line.contains(" Challenge default/web-1-");
    let lines: Vec<&str> = said.talk.lines().filter(of_challenge).collect();
    let [line] = lines[..] else { panic!("{}", said.talk) };
    assert!(line.contains("refuse"), "{line}");
}

#[test]
fn a_ca_that_is_away_is_in_the_log_of_run_until_the_certificate_is_there_which_is_told_once() {
    let site = Site::new();
    let away = Fault::problem(503, "serverInternal", "upstream is away").at(Endpoint::NewOrder);
    site.proxy.inject(away);
    assert_eq!(site.run(site.order("--timeout 5s")).code, Some(6));
    let run = site.start("run", site.program("run"));
    run.says("Order default/web-1-");
    site.proxy.calm_down();
    run.says("up to date in");
    sleep(Duration::from_secs(2));
    run.signal("TERM");
    let talk = run.end().talk;
    let told = |words: &str| talk.lines().filter(|line| line.contains(words)).count();
    let reason =
        "Failed to create Order: 503 urn:ietf:params:acme:error:serverInternal: upstream is away";
    assert_eq!((told(reason), told("up to date in")), (1, 1), "{talk}");
}
