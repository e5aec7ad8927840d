//! What the CA says of one name while another one is stuck: it is heard, shown, and ends the order where it is a refusal.

use std::net::TcpListener;

use kubectl_acme::ca::Config;
use serde_json::Value;

use super::site::{Site, wait_until};
use crate::support::bed::free_port;
use crate::support::traffic::Endpoint;

const REFUSED: &str = "refused.example.com";
const STUCK: &str = "stuck.example.com";
const GOOD: &str = "good.example.com";

/// A machine that wants a certificate for these names. Our own look finds all but the stuck one, which leads to that port; the CA's
/// finds all but the refused one.
fn site(names: &[&str], stuck: u16) -> (Site, String) {
    let (seen, closed) = (free_port(), free_port());
    let site = Site::seen_but(&Config::default(), seen, &[(REFUSED, closed)]);
    site.change("[www.example.com]", &format!("[{}]", names.join(", ")));
    let here = format!("*=127.0.0.1:{}", site.port);
    (site, format!("--http01-resolve {here} --http01-resolve {STUCK}=127.0.0.1:{stuck}"))
}

/// State of the Challenge for each name, and its reason.
fn states(site: &Site, names: &[&str]) -> Vec<(String, String)> {
    let listed = site.run(site.program("get challenges -o json"));
    let listed: Value = serde_json::from_str(&listed.result).unwrap();
    let items = listed["items"].as_array().unwrap();
    let state = |name: &&str| {
        let of_name = items.iter().find(|item| item["spec"]["dnsName"] == *name);
        let status = of_name.map_or(&Value::Null, |item| &item["status"]);
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        (text("state"), text("reason"))
    };
    names.iter().map(state).collect()
}

/// One name is refused beside one that is stuck: the order ends by the CA's words, and what it has proved shows as that.
#[track_caller]
fn check_refused(stuck: u16) {
    let names = [GOOD, REFUSED, STUCK];
    let (site, resolve) = site(&names, stuck);
    let said = site.run(site.order(&resolve));
    assert_eq!(said.code, Some(4), "{}", said.talk);
    let why = "acme: authorization error for refused.example.com: 400 urn:ietf:params:acme:error:connection: ";
    assert!(said.talk.contains(&format!("was not issued: {why}")), "{}", said.talk);
    let [good, refused, stuck] = &states(&site, &names)[..] else { panic!("{}", said.talk) };
    assert_eq!((good.0.as_str(), good.1.as_str()), ("valid", "Successfully authorized domain"));
    assert_eq!(refused.0, "invalid");
    assert!(refused.1.contains(why), "{refused:?}");
    assert_eq!(stuck.0, "errored", "{stuck:?}");
    assert!(stuck.1.starts_with("The Order has failed"), "{stuck:?}");
    let counts = site.proxy.counts();
    // The first of them comes soon; what a busy machine makes of that is its own affair.
    assert!((1..10).contains(&counts.at(Endpoint::Order)), "{counts}");
    assert_eq!((counts.at(Endpoint::Challenge), site.orders()), (2, 1), "{counts}");
}

#[test]
fn a_name_that_the_ca_refuses_ends_the_order_although_another_is_stuck() {
    check_refused(free_port());
}

#[test]
fn a_look_that_does_not_end_keeps_nobody_from_hearing_a_refusal() {
    // It takes connections, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    check_refused(silent.local_addr().unwrap().port());
}

#[test]
fn a_name_that_the_ca_has_proved_shows_as_that_although_another_is_stuck() {
    let names = [GOOD, STUCK];
    let stuck = free_port();
    let (site, resolve) = site(&names, stuck);
    let order = site.start("order", site.order(&resolve));
    wait_until(|| states(&site, &names)[0].0 == "valid", "the CA's word");
    let [_, (state, reason)] = &states(&site, &names)[..] else { panic!() };
    assert_eq!(state, "pending");
    assert!(reason.starts_with("Waiting for HTTP-01 challenge propagation"), "{reason}");
    // What is known is not asked again, and the order is polled no more.
    let counts = site.proxy.counts();
    assert!(counts.at(Endpoint::Authorization) <= 4, "{counts}");
    order.signal("INT");
    assert_eq!(order.end().code, Some(130));
    // A process that comes later goes on where that one stopped.
    let here = format!("--http01-resolve *=127.0.0.1:{}", site.port);
    site.run(site.order(&here)).check(0, "");
    site.has_pair();
    assert_eq!(site.orders(), 1);
}

#[test]
fn what_an_earlier_process_has_told_the_ca_is_heard_by_the_next_one() {
    let names = [REFUSED, STUCK];
    let (site, resolve) = site(&names, free_port());
    // The CA does not look before the first process is gone.
    site.blind();
    let order = site.start("order", site.order(&resolve));
    let is_accepted = || site.ca.statistics().of("challenge") == 1;
    wait_until(is_accepted, "an acceptance");
    order.signal("KILL");
    order.end();
    site.see();
    let said = site.run(site.order(&format!("--timeout 40s {resolve}")));
    // The order of an earlier run is tried anew, once.
    assert_eq!(said.code, Some(4), "{}", said.talk);
    assert!(said.talk.contains("trying again after:"), "{}", said.talk);
    assert_eq!(site.orders(), 2);
}
