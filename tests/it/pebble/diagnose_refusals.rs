//! The fault lab where a CA refuses as Boulder does, in its words: a proxy before Pebble answers in its place.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::fault::Fault;
use crate::support::lab;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::proxy::Proxy;
use crate::support::terminal::{Said, Terminal, certificate, issuer};
use crate::support::traffic::Endpoint;

const NAME: &str = "www.example.com";

/// Pebble behind a proxy, and somebody who wants a certificate.
struct Refusing {
    pebble: Pebble,
    proxy: Proxy,
    terminal: Terminal,
}

impl Refusing {
    fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        let pebble = Pebble::start(&PebbleOptions::calm());
        let proxy = pebble.proxy();
        faults.into_iter().for_each(|fault| proxy.inject(fault));
        let terminal = Terminal::at(&pebble);
        Self { pebble, proxy, terminal }
    }

    /// Orders, and leaves it where it is after a moment.
    fn order(&self, issuing: Value, spec: Value, names: &[&str]) -> Said {
        let issuer = issuer(&self.proxy.directory(), self.pebble.tls_ca_pem(), issuing);
        self.terminal.manifests(&[issuer, certificate("web", names, spec)]);
        let port = self.terminal.http_port;
        let listen = format!("--http01-listen=127.0.0.1:{port}");
        let resolve = format!("--http01-resolve=*=127.0.0.1:{port}");
        let order = ["order", "-f", "manifests.yaml", "--timeout=8s", &listen, &resolve];
        let said = self.terminal.run(&order);
        assert_ne!(said.code, Some(0), "{said:?}");
        said
    }

    #[track_caller]
    fn names_first(&self, cause: &str, code: i32) -> Value {
        let port = self.terminal.http_port;
        let listen = format!("--http01-listen=127.0.0.1:{port}");
        let resolve = format!("--http01-resolve=*=127.0.0.1:{port}");
        let said = self.terminal.run(&["diagnose", "web", "-o", "json", &listen, &resolve]);
        let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        let first = lab::names_first(&report, cause).clone();
        assert_eq!(said.code, Some(code), "{report:#}");
        first
    }
}

/// What is named first where newOrder is refused so.
#[track_caller]
fn check(cause: &str, refusal: Fault, words: &str) {
    let site = Refusing::new([refusal.at(Endpoint::NewOrder)]);
    site.order(json!({}), json!({}), &[NAME]);
    let first = site.names_first(cause, 10);
    assert!(first["message"].as_str().unwrap().contains(words), "{first:#}");
}

/// A limit, with when it ends and where it is described.
fn limited(detail: &str) -> Fault {
    Fault::problem(429, "rateLimited", detail)
        .header("Retry-After", "3600")
        .header("Link", "<https://letsencrypt.org/docs/rate-limits>;rel=\"help\"")
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn lim_02_the_registered_domain_had_too_many_certificates() {
    let detail = "too many certificates (50) already issued for \"example.com\" in the last 168h0m0s, retry after 2026-11-27 23:45:01 UTC: \
                  see https://letsencrypt.org/docs/rate-limits/#new-certificates-per-registered-domain";
    check("LIM-02", limited(detail), "\"example.com\" in the last 168h0m0s");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn lim_03_validation_of_the_name_failed_too_often() {
    let detail = "too many failed authorizations (5) for \"www.example.com\" in the last 1h0m0s, retry after 2026-11-25 12:17:12 UTC: \
                  see https://letsencrypt.org/docs/rate-limits/#authorization-failures-per-identifier-per-account";
    check("LIM-03", limited(detail), "for \"www.example.com\"");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn lim_05_too_many_accounts_were_made_from_the_address() {
    let detail = "too many new registrations (10) from this IP address in the last 3h0m0s, retry after 2026-11-25 15:26:18 UTC: \
                  see https://letsencrypt.org/docs/rate-limits/#new-registrations-per-ip-address";
    let site = Refusing::new([limited(detail).at(Endpoint::NewAccount)]);
    site.order(json!({}), json!({}), &[NAME]);
    let first = site.names_first("LIM-05", 10);
    assert!(first["message"].as_str().unwrap().contains("from this IP address"), "{first:#}");
    assert_eq!(first["subject"], "Issuer default/acme", "{first:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn cfg_16_the_profile_has_no_ip_addresses() {
    let detail = "Error creating new order :: Default profile does not permit IP address identifiers. \
                  See available profiles at https://letsencrypt.org/docs/profiles/.";
    let refusal = Fault::problem(400, "rejectedIdentifier", detail).at(Endpoint::NewOrder);
    let site = Refusing::new([refusal]);
    site.order(json!({}), json!({"dnsNames": null, "ipAddresses": ["192.0.2.1"]}), &[]);
    let first = site.names_first("CFG-16", 10);
    assert!(first["message"].as_str().unwrap().contains("Default profile"), "{first:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn cfg_17_the_profile_has_fewer_names() {
    let detail = "Error creating new order :: Order cannot contain more than 25 identifiers";
    check("CFG-17", Fault::problem(400, "malformed", detail), "more than 25");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn cfg_20_the_ca_does_not_take_dates() {
    let refusal = Fault::problem(400, "malformed", "NotBefore and NotAfter are not supported");
    let site = Refusing::new([refusal.at(Endpoint::NewOrder)]);
    let dated = json!({"enableDurationFeature": true});
    site.order(dated, json!({"duration": "240h"}), &[NAME]);
    site.names_first("CFG-20", 10);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn ord_04_an_order_has_failed_for_a_reason_that_nobody_knows() {
    let detail = "Unable to validate JWS :: Request payload did not parse as JSON";
    check("ORD-04", Fault::problem(400, "malformed", detail), "did not parse as JSON");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn ord_05_whoever_ordered_has_gone_before_there_were_challenges() {
    let mut site = Refusing::new([Fault::hold().at(Endpoint::Authorization)]);
    site.order(json!({}), json!({}), &[NAME]);
    assert_eq!(site.terminal.objects("challenges"), [Value::Null; 0]);
    site.proxy.release();
    let later = Timestamp::now() + SignedDuration::from_mins(10);
    site.terminal.set("KUBECTL_ACME_NOW", format!("{later:.0}"));
    let first = site.names_first("ORD-05", 10);
    assert!(
        first["evidence"].to_string().contains("authorization of www.example.com"),
        "{first:#}"
    );
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn ord_16_the_ca_leaves_a_proven_order_pending() {
    let pending = Fault::change(|order| order["status"] = json!("pending")).at(Endpoint::Order);
    let mut site = Refusing::new([pending]);
    let said = site.order(json!({}), json!({}), &[NAME]);
    assert_eq!(said.code, Some(124), "{said:?}");
    // A CA may need a moment for it, and not many.
    for (minutes, code) in [(2, 0), (10, 10)] {
        let later = Timestamp::now() + SignedDuration::from_mins(minutes);
        site.terminal.set("KUBECTL_ACME_NOW", format!("{later:.0}"));
        site.names_first("ORD-16", code);
    }
    let first = site.names_first("ORD-16", 10);
    assert!(first["evidence"].to_string().contains("the order pending"), "{first:#}");
}

/// The guide's item "Unable to update challenge :: authorization must be pending".
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn guide_authorization_must_be_pending() {
    let detail = "Unable to update challenge :: authorization must be pending";
    let refusal = Fault::problem(400, "malformed", detail).at(Endpoint::Challenge);
    let site = Refusing::new([refusal]);
    site.order(json!({}), json!({}), &[NAME]);
    site.names_first("ORD-07", 10);
}

/// The guide's item "Failed to update ACME account: … invalidEmail".
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn guide_failed_to_update_acme_account_invalid_email() {
    let detail = "Unable to update account :: invalid contact domain. Contact emails @example.com are forbidden";
    let refusal = Fault::problem(400, "invalidEmail", detail).at(Endpoint::NewAccount);
    let site = Refusing::new([refusal]);
    site.order(json!({"email": "cert-manager@example.com"}), json!({}), &[NAME]);
    let first = site.names_first("ACC-01", 10);
    assert!(
        first["message"].as_str().unwrap().contains("Contact emails @example.com"),
        "{first:#}"
    );
}

/// The guide's item "secrets … already exists": the account of a leftover Secret is no longer valid.
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn guide_a_leftover_account_is_no_longer_valid() {
    let detail = "An account with the provided public key exists but is deactivated";
    let refusal = Fault::problem(403, "unauthorized", detail).at(Endpoint::NewAccount);
    let site = Refusing::new([refusal]);
    site.order(json!({}), json!({}), &[NAME]);
    let first = site.names_first("ACC-04", 10);
    assert!(first["fix"].to_string().contains("privateKeySecretRef"), "{first:#}");
}

/// The guide's first item: an issuer that is not ready, and why.
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn guide_the_issuer_is_not_ready() {
    let refusal = Fault::problem(400, "malformed", "A rule of this CA that nobody knows");
    let site = Refusing::new([refusal.at(Endpoint::NewAccount)]);
    site.order(json!({}), json!({}), &[NAME]);
    let first = site.names_first("CFG-02", 10);
    assert!(first["message"].as_str().unwrap().contains("that nobody knows"), "{first:#}");
}
