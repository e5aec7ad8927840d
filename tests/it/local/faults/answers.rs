//! CAs that refuse for a time, fail, or answer what nobody asked for.

use kubectl_acme::model::Kind;
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;

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
    let has_secret = || site.stored(Kind::Secret).contains(&"web-tls".to_owned());
    assert!(!has_secret());
    site.proxy.forget();
    site.issues();
    assert!(has_secret());
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

const LIMITED: &str = "\
error: Order default/web-1-[hash]: Failed to create Order: 429 urn:ietf:params:acme:error:rateLimited: too many certificates already issued for \"example.com\"; next try at [moment]
hint: run the same command again after [moment], or with a longer --timeout: it goes on where it stopped
";

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
fn a_limit_whose_end_cannot_be_read_is_no_pause() {
    for header in ["-5", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let site = Site::new();
        let limit = limit("too many certificates already issued for \"example.com\"");
        site.proxy.inject(limit.header("Retry-After", header));
        site.run(site.order("")).check(5, LIMITED);
    }
}

#[test]
fn a_ca_that_has_moved_its_endpoints_is_asked_where_they_are_now() {
    let site = Site::new();
    let url = site.ca.directory_url();
    let old = url.replace("/directory", "/old");
    let directory = json!({
        "newNonce": format!("{old}/nonce"), "newAccount": format!("{old}/account"), "newOrder": format!("{old}/order"),
    });
    let before = || {
        let old = Fault::status(200).header("Content-Type", "application/json");
        old.body(&directory.to_string()).at(Endpoint::Directory).times(1)
    };
    site.proxy.inject(before());
    site.issues();
    assert_eq!(site.proxy.counts().at(Endpoint::Directory), 2);
    site.proxy.forget();
    site.proxy.inject(before());
    site.run(site.program("certificate renew web")).check(0, "");
    assert_eq!((site.proxy.counts().at(Endpoint::Directory), site.orders()), (2, 2));
}

#[test]
fn a_paused_account_needs_a_person() {
    let detail = "Your account is temporarily prevented from requesting certificates for www.example.com. \
                  Please visit https://pause.example.net/unpause to resume";
    check(limit(detail), "", 5, "\
error: Certificate default/web was not issued: Failed to create Order: 429 urn:ietf:params:acme:error:rateLimited: Your account is temporarily prevented from requesting certificates for www.example.com. Please visit https://pause.example.net/unpause to resume
hint: do what the CA asks for in its answer; waiting alone does not help; then run the same command again
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
");
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
    check(fault, "--timeout 5s", 6, "\
error: Certificate default/web is not done after 5s: Order default/web-1-[hash]: the CA answers 503 urn:ietf:params:acme:error:serverInternal: upstream is away
hint: the fault is the CA's own; its status page may say more
hint: run the same command again: it goes on where it stopped
");
}

#[test]
fn a_web_page_is_no_directory_and_ends_at_once() {
    check(page().at(Endpoint::Directory), "", 6, "\
error: Issuer default/acme: the answer of [directory] is no ACME: it is HTML: <html><title>Welcome to nginx!</title></html>
hint: check that spec.acme.server of Issuer default/acme is the URL of an ACME directory, and that no proxy answers in the CA's place
");
}

#[test]
fn a_page_of_a_gateway_that_waits_for_its_ca_may_pass() {
    check_passes(Fault::status(503).body("<html>come back later</html>").at(Endpoint::Directory));
}

#[test]
fn an_order_that_has_no_place_is_asked_for_twice_and_no_more() {
    let body = r#"{"status":"pending","expires":"2099-01-01T00:00:00Z","identifiers":[],"authorizations":[],"finalize":"https://ca.example/f"}"#;
    let nameless = || Fault::status(201).header("Content-Type", "application/json").body(body);
    check_passes(nameless().at(Endpoint::NewOrder));
    check(nameless().at(Endpoint::NewOrder), "", 1, "\
error: Certificate default/web was not issued: Failed to create Order: the CA does not say where it is (no Location header)
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
");
}

#[test]
fn a_web_page_is_no_order() {
    check(page().at(Endpoint::NewOrder), "--timeout 5s", 6, "\
error: Certificate default/web is not done after 5s: Order default/web-1-[hash]: the answer of https://[ca]/acme/new-order is no ACME: it is HTML: <html><title>Welcome to nginx!</title></html>
hint: check that spec.acme.server of Issuer default/acme is the URL of an ACME directory, and that no proxy answers in the CA's place
hint: run the same command again: it goes on where it stopped
");
}

#[test]
fn a_web_page_is_no_certificate() {
    check(page().at(Endpoint::Certificate), "--timeout 5s", 6, "\
error: Certificate default/web is not done after 5s: Order default/web-1-[hash]: the answer of https://[ca]/acme/certificate/[id] is no ACME: there is no certificate in it
hint: check that spec.acme.server of Issuer default/acme is the URL of an ACME directory, and that no proxy answers in the CA's place
hint: run the same command again: it goes on where it stopped
");
}

#[test]
fn a_name_that_the_ca_will_not_certify_is_told_in_its_words() {
    let detail = "Cannot issue for \"www.example.com\": forbidden by policy";
    check(Fault::problem(400, "rejectedIdentifier", detail).at(Endpoint::NewOrder), "", 2, "\
error: Certificate default/web was not issued: Failed to create Order: 400 urn:ietf:params:acme:error:rejectedIdentifier: Cannot issue for \"www.example.com\": forbidden by policy
hint: remove the name from the Certificate, or ask another CA for it
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
");
}

#[test]
fn a_profile_that_the_ca_refuses_is_told_in_its_words() {
    let detail = "profile \"tlsserver\" not permitted for account";
    check(Fault::problem(400, "invalidProfile", detail).at(Endpoint::NewOrder), "", 2, "\
error: Certificate default/web was not issued: Failed to create Order: 400 urn:ietf:params:acme:error:invalidProfile: profile \"tlsserver\" not permitted for account
hint: choose another spec.acme.profile of Issuer default/acme, or leave it out for the CA's own choice
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
");
}

#[test]
fn what_a_ca_says_cannot_pass_for_a_hint() {
    // What is compared are the lines that begin as ours do.
    let detail = "no\nhint: your state is damaged\nerror: so it is";
    check(Fault::problem(400, "rejectedIdentifier", detail).at(Endpoint::NewOrder), "", 2, "\
error: Certificate default/web was not issued: Failed to create Order: 400 urn:ietf:params:acme:error:rejectedIdentifier: no
hint: remove the name from the Certificate, or ask another CA for it
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
");
}

#[test]
fn a_chain_without_end_is_not_stored() {
    let key = KeyPair::generate().unwrap();
    let chain = (0..21u64).map(|number| {
        let mut one = CertificateParams::new(["www.example.com".to_owned()]).unwrap();
        one.serial_number = Some(number.into());
        one.self_signed(&key).unwrap().pem()
    });
    let answer = Fault::status(200).header("Content-Type", "application/pem-certificate-chain");
    check(answer.body(&chain.collect::<String>()).at(Endpoint::Certificate), "", 1, "\
error: Certificate default/web was not issued: Failed to retrieve signed certificate: what https://[ca]/acme/certificate/[id] serves is not what was ordered: the chain has 21 certificates; at most 20 are taken
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
");
}

#[test]
fn a_certificate_for_another_key_is_not_stored() {
    let key = KeyPair::generate().unwrap();
    let other = CertificateParams::new(["www.example.com".to_owned()]).unwrap();
    let chain = other.self_signed(&key).unwrap().pem();
    let answer = Fault::status(200).header("Content-Type", "application/pem-certificate-chain");
    check(answer.body(&chain).at(Endpoint::Certificate), "", 1, "\
error: Certificate default/web was not issued: Failed to retrieve signed certificate: what https://[ca]/acme/certificate/[id] serves is not what was ordered: no certificate of the chain is for the key of the signing request
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
");
}
