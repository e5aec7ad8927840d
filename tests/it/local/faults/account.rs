//! CAs that are not there or not trusted, and accounts that they refuse.

use std::collections::BTreeMap;
use std::fs;

use kubectl_acme::ca::{Config, MacKey};
use kubectl_acme::model::Blob;
use serde_json::{Value, json};

use super::site::Site;
use crate::support::bed::free_port;
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

/// Runs: no order is made and nothing is written out, and once the fault is mended the same command ends well.
#[track_caller]
fn check(site: &Site, more: &str, code: i32, complaint: &str, mend: impl FnOnce(&Site)) {
    site.run(site.order(more)).check(code, complaint);
    assert_eq!(site.orders(), 0);
    assert_eq!(site.results(), [""; 0]);
    mend(site);
    site.issues();
}

fn give_all(site: &Site) {
    site.give(&site.manifest());
}

#[test]
fn a_ca_that_does_not_answer_is_tried_until_the_time_is_up() {
    let site = Site::new();
    let closed = free_port();
    site.change(&site.ca.directory_url(), &format!("https://127.0.0.1:{closed}/directory"));
    check(&site, "--timeout 5s", 6, "\
error: Certificate default/web is not done after 5s: Issuer default/acme: cannot read https://127.0.0.1:[port]/directory: Connection refused
hint: check spec.acme.server of Issuer default/acme, and whether this machine may connect there (firewall, proxy)
hint: run the same command again: it goes on where it stopped
", give_all);
}

#[test]
fn a_ca_host_that_does_not_exist_ends_at_once() {
    let site = Site::new();
    site.change(&site.ca.directory_url(), "https://acme.invalid/directory");
    check(&site, "", 6, "\
error: Issuer default/acme: cannot read https://acme.invalid/directory: no such host acme.invalid
hint: check spec.acme.server of Issuer default/acme, and this machine's own resolver (/etc/resolv.conf); --dns ADDRESS asks another one
", give_all);
}

#[test]
fn a_ca_that_is_not_trusted_ends_at_once() {
    let site = Site::new();
    let other = json!(Blob(site.ca.tls_root_pem().as_bytes().to_vec()));
    site.change(&site.bundle(), other.as_str().unwrap());
    check(&site, "", 6, "\
error: Issuer default/acme: cannot read [directory]: the server's certificate is not trusted: it is signed by nobody who is trusted here
hint: put the CA's root into spec.acme.caBundle of Issuer default/acme, or set skipTLSVerify for a test
", give_all);
}

#[test]
fn an_email_that_the_ca_refuses_is_told_in_its_words() {
    let site = Site::new();
    site.change("    server:", "    email: me@example.com\n    server:");
    check(&site, "", 7, "\
error: Issuer default/acme is not ready: Failed to register ACME account: 400 urn:ietf:params:acme:error:invalidContact: Error validating contact(s) :: contact email has forbidden domain \"example.com\"
hint: change spec.acme.email of Issuer default/acme; then run the same command again
", |site| {
        site.change("me@example.com", "me@kubectl-acme.dev");
    });
}

#[test]
fn a_page_that_is_not_there_is_no_directory() {
    let site = Site::new();
    site.change("/directory", "/dir");
    check(&site, "", 6, "\
error: Issuer default/acme is not ready: Failed to register ACME account: 404 urn:ietf:params:acme:error:malformed: Page not found
hint: spec.acme.server of Issuer default/acme must be the URL of an ACME directory; then run the same command again
", give_all);
}

/// A refusal with a page of its own and one beside it.
fn changed_terms() -> Fault {
    let problem = json!({
        "type": "urn:ietf:params:acme:error:userActionRequired",
        "detail": "The terms have changed",
        "instance": "https://ca.example/agree?id=1",
    });
    Fault::status(403)
        .header("Content-Type", "application/problem+json")
        .header("Link", "<https://ca.example/terms/2>;rel=\"terms-of-service\"")
        .body(&problem.to_string())
}

const TERMS: &str = "403 urn:ietf:params:acme:error:userActionRequired: The terms have changed \
                     (see https://ca.example/agree?id=1, https://ca.example/terms/2)";
const AGREE: &str = "open https://ca.example/agree?id=1 and https://ca.example/terms/2 and do what the CA asks for there; \
                     then run the same command again";

#[test]
fn terms_to_agree_to_are_told_with_their_page_wherever_the_issuer_is_shown() {
    let site = Site::new();
    site.proxy.inject(changed_terms().at(Endpoint::NewAccount));
    let complaint = format!(
        "error: Issuer default/acme is not ready: Failed to register ACME account: {TERMS}\nhint: {AGREE}\n"
    );
    site.run(site.order("")).check(7, &complaint);
    for words in ["describe issuer acme", "get issuer acme -o json"] {
        let shown = site.run(site.program(words)).result;
        assert!(shown.contains("https://ca.example/agree?id=1"), "{shown}");
        assert!(shown.contains("https://ca.example/terms/2"), "{shown}");
    }
    site.proxy.forget();
    site.issues();
}

#[test]
fn an_order_that_waits_for_agreement_to_terms_is_told_with_their_page() {
    let site = Site::new();
    site.proxy.inject(changed_terms().at(Endpoint::NewOrder));
    let complaint = format!(
        "\
error: Certificate default/web was not issued: Failed to create Order: {TERMS}
hint: {AGREE}
hint: kubectl-acme describe order/web-1-[hash] shows the CA's answers
hint: kubectl-acme timeline certificate/web shows every step
"
    );
    site.run(site.order("")).check(7, &complaint);
    let order = site.run(site.program("get orders -o json")).result;
    assert!(order.contains("https://ca.example/agree?id=1"), "{order}");
    site.proxy.forget();
    site.issues();
}

#[test]
fn a_leftover_account_key_that_the_ca_refuses_is_told_with_its_secret() {
    let site = Site::new();
    let closed =
        Fault::problem(403, "unauthorized", "Account is not valid, has status \"deactivated\"");
    site.proxy.inject(closed.at(Endpoint::NewAccount));
    check(&site, "", 7, "\
error: Issuer default/acme is not ready: Failed to register ACME account: 403 urn:ietf:params:acme:error:unauthorized: Account is not valid, has status \"deactivated\"
hint: the CA does not accept the account key in Secret acme-account in namespace default: name another Secret in spec.acme.privateKeySecretRef of Issuer default/acme, for a new key; then run the same command again
", |site| {
        site.proxy.forget();
        site.change("name: acme-account", "name: another-account");
    });
}

#[test]
fn a_new_account_gets_a_key_that_the_ca_takes() {
    let site = Site::new();
    let problem = json!({
        "type": "urn:ietf:params:acme:error:badSignatureAlgorithm",
        "detail": "JWS signature header contains unsupported algorithm",
        "algorithms": ["RS256"],
    });
    let refused = Fault::status(400).header("Content-Type", "application/problem+json");
    site.proxy.inject(refused.body(&problem.to_string()).at(Endpoint::NewAccount).times(1));
    site.issues();
    assert_eq!(site.proxy.counts().at(Endpoint::NewAccount), 2);
}

/// A machine whose CA wants an external account.
fn bound() -> Site {
    let keys = BTreeMap::from([("kid-1".to_owned(), MacKey::new(vec![7; 32]))]);
    let config = Config::default();
    Site::with(&Config { external_accounts: keys, external_account_required: true, ..config })
}

/// Names the binding in the Issuer, and gives its Secret.
pub(super) fn bind(site: &Site, secret: &str) {
    site.change(
        "    server:",
        "    externalAccountBinding:
      keyID: kid-1
      keySecretRef: {name: eab, key: hmac}
    server:",
    );
    add(site, secret);
}

fn add(site: &Site, object: &str) {
    let manifest = fs::read_to_string(site.path("site.yaml")).unwrap();
    site.give(&format!("{manifest}{object}"));
}

/// The Secret with this key of the binding.
pub(super) fn secret(key: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: eab\nstringData:\n  hmac: {key}\n"
    )
}

/// What the CA has given: 32 times the octet 7.
pub(super) const KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";

#[test]
fn a_missing_external_account_binding_is_told() {
    check(&bound(), "", 7, "\
error: Issuer default/acme is not ready: Failed to register ACME account: 403 urn:ietf:params:acme:error:externalAccountRequired: This CA requires an external account binding
hint: get a key ID and an HMAC key from the CA, and name them in spec.acme.externalAccountBinding of Issuer default/acme; then run the same command again
", |site| bind(site, &secret(KEY)));
}

#[test]
fn a_missing_secret_of_the_binding_is_told_with_its_namespace() {
    let site = bound();
    bind(&site, "");
    check(&site, "", 7, "\
error: Issuer default/acme is not ready: Failed to register ACME account: secrets \"eab\" not found in namespace \"default\"
hint: add that Secret to the manifests, or change Issuer default/acme; then run the same command again
", |site| add(site, &secret(KEY)));
}

#[test]
fn a_wrong_key_of_the_binding_is_told() {
    let site = bound();
    bind(&site, &secret("d3Jvbmc"));
    check(&site, "", 7, "\
error: Issuer default/acme is not ready: Failed to register ACME account: 403 urn:ietf:params:acme:error:unauthorized: External account binding was not made with the key of \"kid-1\"
hint: compare key ID and HMAC key in spec.acme.externalAccountBinding of Issuer default/acme with those the CA gave; the HMAC key is in the Secret named there; then run the same command again
", |site| site.change("d3Jvbmc", KEY));
}

#[test]
fn while_run_drives_an_issuer_is_judged_by_what_it_is_now() {
    let site = bound();
    let run = site.start("run", site.program("run"));
    run.says("driver: kubectl-acme");
    bind(&site, &secret("d3Jvbmc"));
    let refused = site.run(site.order(""));
    assert_eq!(refused.code, Some(7), "{}", refused.talk);
    // Nothing has changed: the CA is asked once more, and refuses once more.
    let again = site.run(site.order(""));
    again.check(7, &refused.complaint());
    site.change("d3Jvbmc", KEY);
    site.run(site.order("")).check(0, "");
    site.has_pair();
}

#[test]
fn a_key_of_the_binding_that_is_no_base64url_is_told() {
    let site = bound();
    bind(&site, &secret("'a key of my own'"));
    check(&site, "", 7, "\
error: Issuer default/acme is not ready: Failed to register ACME account: the external account binding key in Secret \"eab\" is not base64url text
hint: write the HMAC key into that Secret as the CA gave it (base64url), and nothing else; then run the same command again
", |site| site.change("'a key of my own'", KEY));
}

/// The Issuer alone, registered with an e-mail.
fn registered() -> Site {
    let site = Site::new();
    let manifest = site.manifest();
    site.give(manifest.split("---").next().unwrap());
    site.change("    server:", "    email: me@kubectl-acme.dev\n    server:");
    site.run(site.order("")).check(0, "");
    assert_eq!(registered_email(&site), "me@kubectl-acme.dev");
    site
}

/// The e-mail that the status of the Issuer names, when it speaks of the Issuer as it is.
fn registered_email(site: &Site) -> String {
    let said = site.run(site.program("get issuer acme -o json"));
    let issuer: Value = serde_json::from_str(&said.result).unwrap();
    let ready = &issuer["status"]["conditions"][0];
    assert_eq!((&ready["type"], &ready["status"]), (&json!("Ready"), &json!("True")));
    assert_eq!(ready["observedGeneration"], issuer["metadata"]["generation"]);
    issuer["status"]["acme"]["lastRegisteredEmail"].as_str().unwrap().to_owned()
}

#[test]
fn a_changed_issuer_is_ready_when_the_ca_has_heard_of_the_change() {
    let site = registered();
    site.change("me@", "you@");
    site.run(site.order("")).check(0, "");
    assert_eq!(registered_email(&site), "you@kubectl-acme.dev");
}

#[test]
fn a_changed_issuer_that_the_ca_refuses_is_not_ready() {
    let site = registered();
    site.change("me@kubectl-acme.dev", "me@example.com");
    site.run(site.order("")).check(7, "\
error: Issuer default/acme is not ready: Failed to update ACME account:400 urn:ietf:params:acme:error:invalidContact: Error validating contact(s) :: contact email has forbidden domain \"example.com\"
hint: change spec.acme.email of Issuer default/acme; then run the same command again
");
    site.change("me@example.com", "you@kubectl-acme.dev");
    site.run(site.order("")).check(0, "");
    assert_eq!(registered_email(&site), "you@kubectl-acme.dev");
}

#[test]
fn a_changed_issuer_whose_ca_is_away_is_not_ready() {
    let site = registered();
    let closed = free_port();
    site.change(&site.ca.directory_url(), &format!("https://127.0.0.1:{closed}/directory"));
    site.run(site.order("--timeout 5s")).check(6, "\
error: Issuer default/acme is not done after 5s: Issuer default/acme: cannot read https://127.0.0.1:[port]/directory: Connection refused
hint: check spec.acme.server of Issuer default/acme, and whether this machine may connect there (firewall, proxy)
hint: run the same command again: it goes on where it stopped
");
}
