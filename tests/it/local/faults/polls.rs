//! How often a CA is asked that never comes to an end, or says more than it should.

use std::fs;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use kubectl_acme::ca::Config;
use serde_json::{Value, json};

use super::site::{Site, wait_until};
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

/// The first object of that kind.
fn first(site: &Site, kind: &str) -> Value {
    let listed = site.run(site.program(&format!("get {kind} -o json")));
    let listed: Value = serde_json::from_str(&listed.result).unwrap();
    listed["items"][0].clone()
}

/// A CA that never issues, and says so of the order's next poll.
#[track_caller]
fn check_pace(retry_after: Option<u32>, fault: Option<Fault>) {
    let never = Some(Duration::from_hours(1));
    let config = Config { finalize_delay: never, retry_after, ..Config::default() };
    let site = Site::with(&config);
    if let Some(fault) = fault {
        site.proxy.inject(fault.at(Endpoint::Order));
    }
    let order = site.start("order", site.order("--timeout 12s"));
    let is_processing = || first(&site, "orders")["status"]["state"] == "processing";
    wait_until(is_processing, "the CA's work");
    let revision = || first(&site, "orders")["metadata"]["resourceVersion"].clone();
    let (before, polls) = (revision(), site.proxy.counts().at(Endpoint::Order));
    wait_until(|| site.proxy.counts().at(Endpoint::Order) > polls + 3, "more polls");
    assert_eq!(revision(), before, "polls that brought nothing new are written down");
    let said = order.end();
    assert_eq!(said.code, Some(124), "{}", said.talk);
    let polls = site.proxy.counts().at(Endpoint::Order);
    assert!(polls <= 20, "{polls} polls in 12 s");
}

#[test]
fn an_order_is_polled_at_our_own_pace_where_the_ca_names_no_moment_to_come() {
    thread::scope(|scope| {
        scope.spawn(|| check_pace(None, None));
        scope.spawn(|| check_pace(Some(0), None));
        scope.spawn(|| check_pace(None, Some(in_the_past())));
    });
}

/// An answer that names a moment which is over.
fn in_the_past() -> Fault {
    Fault::change(|_| ()).header("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT")
}

/// `run` before a CA that never issues: what it asks of each of two orders, once the first polls are over.
#[track_caller]
fn check_pace_of_run(retry_after: Option<u32>, faults: Vec<Fault>) {
    let never = Some(Duration::from_hours(1));
    let site = Site::with(&Config { finalize_delay: never, retry_after, ..Config::default() });
    for fault in faults {
        site.proxy.inject(fault);
    }
    let manifest = fs::read_to_string(site.path("site.yaml")).unwrap();
    let certificate = manifest.split_once("---").unwrap().1;
    let other = certificate.replace("name: web", "name: other").replace("www.", "other.");
    let other = other.replace("secretName: web-tls", "secretName: other-tls");
    site.give(&format!("{manifest}---{other}"));
    assert_eq!(site.run(site.order("--timeout 2s")).code, Some(124));
    let run = site.start("run", site.program("run"));
    sleep(Duration::from_secs(10));
    let (before, from) = (site.proxy.counts(), Instant::now());
    sleep(Duration::from_secs(10));
    let (after, elapsed) = (site.proxy.counts(), from.elapsed());
    run.signal("TERM");
    let said = run.end();
    let asked = after.total() - before.total();
    let polls = after.at(Endpoint::Order) - before.at(Endpoint::Order);
    assert!(polls >= 2, "nobody asks any more: {after}\n{}", said.talk);
    // Of each order once in two seconds, and once more for where the ten seconds begin.
    let most = 2 * (usize::try_from(elapsed.as_secs()).unwrap() / 2 + 1);
    assert!(asked <= most, "{asked} requests in {elapsed:?}, of which {polls} polls: {after}");
}

#[test]
fn run_asks_for_an_order_once_in_two_seconds_whatever_the_ca_says() {
    thread::scope(|scope| {
        scope.spawn(|| check_pace_of_run(None, Vec::new()));
        scope.spawn(|| check_pace_of_run(Some(0), Vec::new()));
        scope.spawn(|| check_pace_of_run(None, vec![in_the_past().at(Endpoint::Order)]));
        let twice = repeats_its_first_authorization().at(Endpoint::NewOrder);
        let again = repeats_its_first_authorization().at(Endpoint::Order);
        scope.spawn(|| check_pace_of_run(Some(0), vec![twice, again]));
    });
}

/// An order whose first authorization stands in it a thousand times.
fn repeats_its_first_authorization() -> Fault {
    Fault::change(|order| {
        let first = order["authorizations"][0].clone();
        order["authorizations"] = vec![first; 1000].into();
    })
}

#[test]
fn an_authorization_that_stands_a_thousand_times_is_read_once() {
    let site = Site::new();
    site.proxy.inject(repeats_its_first_authorization().at(Endpoint::NewOrder));
    site.issues();
    assert_eq!(site.proxy.counts().at(Endpoint::Authorization), 1, "{}", site.proxy.counts());
}

#[test]
fn more_authorizations_than_names_end_the_order_before_any_is_read() {
    let site = Site::new();
    let many = Fault::change(|order| {
        let first = order["authorizations"][0].as_str().unwrap().to_owned();
        let others = (1..1000).map(|number| Value::from(format!("{first}{number}")));
        order["authorizations"].as_array_mut().unwrap().extend(others);
    });
    site.proxy.inject(many.at(Endpoint::NewOrder));
    site.run(site.order("")).check(1, "\
error: Certificate default/web was not issued: the CA asks for 1000 authorizations, more than the order has names: it is for www.example.com
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
");
    assert_eq!(site.proxy.counts().at(Endpoint::Authorization), 0, "{}", site.proxy.counts());
    assert_eq!(first(&site, "orders")["status"]["authorizations"], Value::Null);
    assert_eq!(first(&site, "challenges"), Value::Null);
}

#[test]
fn a_signing_request_that_was_taken_is_not_sent_again_while_the_chain_cannot_be_had() {
    let site = Site::new();
    let page = Fault::status(200).header("Content-Type", "text/html").body("<html></html>");
    let slow = Fault::problem(429, "rateLimited", "slow").header("Retry-After", "1");
    for fault in [Fault::status(503), page, slow] {
        site.proxy.inject(fault.at(Endpoint::Certificate).times(1));
    }
    site.issues();
    let counts = site.proxy.counts();
    assert_eq!((counts.at(Endpoint::Finalize), counts.at(Endpoint::Certificate)), (1, 4));
    assert_eq!(site.orders(), 1);
}

#[test]
fn what_is_proved_already_is_not_answered_again_beside_what_is_not() {
    let site = Site::with(&Config { reuse_authorizations: true, ..Config::default() });
    site.issues();
    site.proxy.forget();
    site.change("[www.example.com]", "[www.example.com, example.com]");
    site.issues();
    let counts = site.proxy.counts();
    assert_eq!((counts.at(Endpoint::Authorization), counts.at(Endpoint::Challenge)), (2, 1));
}

#[test]
fn a_challenge_that_stays_pending_with_an_error_keeps_its_answer_up() {
    let site = Site::new();
    // RFC 8555 §8.2: the CA has not seen it, and looks again by itself.
    let again = Fault::change(|challenge| {
        challenge["status"] = "pending".into();
        challenge["error"] = json!({
            "type": "urn:ietf:params:acme:error:connection", "detail": "not yet", "status": 400,
        });
    });
    site.proxy.inject(again.header("Retry-After", "1").at(Endpoint::Challenge));
    let pending = Fault::change(|order| order["status"] = "pending".into());
    site.proxy.inject(pending.at(Endpoint::Order).times(3));
    site.issues();
    assert_eq!(site.proxy.counts().at(Endpoint::Challenge), 1, "{}", site.proxy.counts());
}
