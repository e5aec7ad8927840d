//! CAs that answer what nobody asked for.

use rcgen::{CertificateParams, KeyPair};

use super::site::Site;
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

#[track_caller]
fn check(fault: Fault, more: &str, code: i32, complaint: &str) {
    let site = Site::new();
    site.proxy.inject(fault);
    site.run(site.order(more)).check(code, complaint);
    assert_eq!(site.results(), [""; 0]);
}

#[test]
fn a_limit_that_ends_after_the_timeout_ends_at_once() {
    let f = Fault::problem(
        429,
        "rateLimited",
        "too many certificates already issued for \"example.com\"",
    )
    .header("Retry-After", "3600")
    .at(Endpoint::NewOrder);
    check(f, "", 5, "");
}

#[test]
fn a_limit_that_ends_before_the_timeout_is_waited_for() {
    let f = Fault::problem(429, "rateLimited", "too many new orders recently")
        .header("Retry-After", "1")
        .at(Endpoint::NewOrder)
        .times(1);
    let site = Site::new();
    site.proxy.inject(f);
    site.run(site.order("")).check(0, "");
    assert_eq!(site.orders(), 1);
}

#[test]
fn a_paused_account_needs_a_person() {
    let f = Fault::problem(429, "rateLimited", "Your account is temporarily prevented from requesting certificates for www.example.com. Please visit https://pause.example.net/unpause to resume").at(Endpoint::NewOrder);
    check(f, "", 5, "");
}

#[test]
fn a_ca_that_fails_once_is_asked_again() {
    let site = Site::new();
    site.proxy.inject(
        Fault::problem(500, "serverInternal", "The server experienced an internal error")
            .at(Endpoint::NewOrder)
            .times(1),
    );
    site.run(site.order("")).check(0, "");
    assert_eq!(site.orders(), 1);
}

#[test]
fn a_ca_that_always_fails_is_told_when_the_time_is_up() {
    check(
        Fault::problem(503, "serverInternal", "upstream is away").at(Endpoint::NewOrder),
        "--timeout 3s",
        6,
        "",
    );
}

#[test]
fn a_web_page_in_place_of_a_directory_is_told() {
    check(
        Fault::status(200)
            .header("Content-Type", "text/html")
            .body("<html><title>Welcome to nginx!</title></html>")
            .at(Endpoint::Directory),
        "--timeout 2s",
        6,
        "",
    );
}

#[test]
fn a_web_page_in_place_of_an_order_is_told() {
    check(
        Fault::status(200)
            .header("Content-Type", "text/html")
            .body("<html><title>Welcome to nginx!</title></html>")
            .at(Endpoint::NewOrder),
        "--timeout 2s",
        6,
        "",
    );
}

#[test]
fn a_page_not_found_in_place_of_a_directory_is_told() {
    check(Fault::status(404).body("404 page not found").at(Endpoint::Directory), "", 6, "");
}

fn stranger(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem()
}

#[test]
fn a_certificate_for_another_key_is_not_stored() {
    let f = Fault::status(200)
        .header("Content-Type", "application/pem-certificate-chain")
        .body(&stranger(&["www.example.com"]))
        .at(Endpoint::Certificate);
    check(f, "", 1, "");
}

#[test]
fn a_name_that_the_ca_will_not_certify_is_told() {
    check(Fault::problem(400, "rejectedIdentifier", "Error creating new order :: Cannot issue for \"www.example.com\": The ACME server refuses to issue a certificate for this domain name, because it is forbidden by policy").at(Endpoint::NewOrder), "", 2, "");
}
