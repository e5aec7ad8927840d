//! A CA that takes requests and does not answer: it is named when time is up, and whoever leaves is told how to go on.

use super::site::{Site, wait_until};
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

const INTERRUPTED: &str = "\
error: interrupted; everything so far is kept
hint: go on with: kubectl-acme order -f site.yaml
";

#[test]
fn whoever_leaves_by_a_second_signal_has_been_told_how_to_go_on() {
    let site = Site::new();
    site.proxy.inject(Fault::hold().at(Endpoint::NewOrder));
    let order = site.start("order", site.order(""));
    wait_until(|| site.proxy.held() > 0, "newOrder");
    order.signal("INT");
    order.says("go on with: ");
    order.says("Ctrl-C once more leaves at once");
    order.signal("INT");
    order.end().check(130, INTERRUPTED);
}
