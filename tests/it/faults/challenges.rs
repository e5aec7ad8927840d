//! Names that do not lead here, ports that cannot be had.

use std::net::TcpListener;

use kubectl_acme::ca::Config;

use super::site::Site;
use crate::support::bed::free_port;

#[test]
fn a_closed_port_is_told_when_the_time_is_up() {
    let site = Site::new();
    let closed = free_port();
    let order =
        site.order(&format!("--timeout 2s --http01-resolve www.example.com=127.0.0.1:{closed}"));
    site.run(order).check(124, "");
}

#[test]
fn a_ca_that_does_not_find_the_answer_says_so() {
    let closed = free_port();
    let site = Site::seen_at(Config::default(), closed);
    let here = free_port();
    let order = site
        .order(&format!("--http01-listen 127.0.0.1:{here} --http01-resolve *=127.0.0.1:{here}"));
    site.run(order).check(4, "");
}

#[test]
fn a_port_that_is_taken_is_told_before_the_ca_is_asked() {
    let site = Site::new();
    let _taken = TcpListener::bind(("127.0.0.1", site.port)).unwrap();
    site.run(site.order("")).check(9, "");
}
