//! CAs that refuse for a time, fail, or answer what nobody asked for.

use rcgen::{CertificateParams, KeyPair};

use super::site::Site;
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

/// Runs with a fault at the CA: nothing is written out, and once the fault is gone the same command ends well.
#[track_caller]
fn check(fault: Fault, more: &str, code: i32, complaint: &str) {
    let site = Site::new();
    site.proxy.inject(fault);
    site.run(site.order(more)).check(code, complaint);
    assert_eq!(site.results(), [""; 0]);
    let stored = site.run(site.program("get secrets -o name"));
    assert!(!stored.result.contains("web-tls"), "{}", stored.result);
    site.proxy.forget();
    site.issues();
}

/// Runs with a fault at the CA that passes: it is waited for, and nothing is asked twice that had an answer.
#[track_caller]
fn check_passes(fault: Fault) {
    let site = Site::new();
    site.proxy.inject(fault.times(1));
    site.run(site.order("")).check(0, "");
    assert_eq!(site.orders(), 1);
    site.has_pair();
}

fn limit(detail: &str) -> Fault {
    Fault::problem(429, "rateLimited", detail).at(Endpoint::NewOrder)
}

fn page() -> Fault {
    let page = "<html><title>Welcome to nginx!</title></html>";
    Fault::status(200).header("Content-Type", "text/html").body(page)
}

#[test]
fn a_limit_that_ends_before_the_timeout_is_waited_for() {
    check_passes(limit("too many new orders recently").header("Retry-After", "1"));
}

#[test]
fn a_limit_that_ends_after_the_timeout_ends_at_once() {
    let site = Site::new();
    let limit = limit("too many certificates already issued for \"example.com\"");
    site.proxy.inject(limit.header("Retry-After", "3600"));
    site.run(site.order("")).check(5, LIMITED);
    // The moment is remembered: nothing is asked before it.
    site.proxy.forget();
    site.run(site.order("")).check(5, LIMITED);
    assert_eq!(site.proxy.counts().at(Endpoint::NewOrder), 0);
    assert_eq!((site.orders(), site.results()), (0, Vec::new()));
}

#[test]
fn a_paused_account_needs_a_person() {
    let detail = "Your account is temporarily prevented from requesting certificates for www.example.com. \
                  Please visit https://pause.example.net/unpause to resume";
    check(limit(detail), "", 5, "");
}

#[test]
fn a_ca_that_fails_once_is_asked_again() {
    check_passes(Fault::problem(500, "serverInternal", "internal error").at(Endpoint::NewOrder));
    check_passes(Fault::status(502).body("bad gateway").at(Endpoint::NewAccount));
    check_passes(Fault::drop_request().at(Endpoint::Finalize));
}

#[test]
fn a_ca_that_always_fails_is_told_when_the_time_is_up() {
    let fault = Fault::problem(503, "serverInternal", "upstream is away").at(Endpoint::NewOrder);
    check(fault, "--timeout 2s", 6, "");
}

#[test]
fn a_web_page_is_no_directory() {
    check(page().at(Endpoint::Directory), "--timeout 2s", 6, "");
}

#[test]
fn a_web_page_is_no_order() {
    check(page().at(Endpoint::NewOrder), "--timeout 2s", 6, "");
}

#[test]
fn a_web_page_is_no_certificate() {
    check(page().at(Endpoint::Certificate), "--timeout 2s", 6, "");
}

#[test]
fn a_name_that_the_ca_will_not_certify_is_told_in_its_words() {
    let detail = "Cannot issue for \"www.example.com\": forbidden by policy";
    check(Fault::problem(400, "rejectedIdentifier", detail).at(Endpoint::NewOrder), "", 2, "");
}

#[test]
fn a_certificate_for_another_key_is_not_stored() {
    let key = KeyPair::generate().unwrap();
    let other = CertificateParams::new(["www.example.com".to_owned()]).unwrap();
    let chain = other.self_signed(&key).unwrap().pem();
    let answer = Fault::status(200).header("Content-Type", "application/pem-certificate-chain");
    check(answer.body(&chain).at(Endpoint::Certificate), "", 1, "");
}

const LIMITED: &str = "";
