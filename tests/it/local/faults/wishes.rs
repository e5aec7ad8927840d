//! A person asks for what cannot be, or takes away what is worked on.

use std::fs;

use super::site::Site;
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

#[test]
fn an_order_that_has_failed_is_not_resumed() {
    let site = Site::new();
    let refusal = Fault::problem(400, "rejectedIdentifier", "no").at(Endpoint::NewOrder);
    site.proxy.inject(refusal);
    assert_eq!(site.run(site.order("")).code, Some(2));
    site.proxy.forget();
    let order = site.run(site.program("get orders -o name")).result;
    let resumed = site.run(site.program(&format!("order resume {order}")));
    resumed.check(2, "\
error: Certificate default/web was not issued: Failed to create Order: 400 urn:ietf:params:acme:error:rejectedIdentifier: no
hint: remove the name from the Certificate, or ask another CA for it
hint: kubectl-acme certificate renew web makes a fresh order
");
    assert!(!resumed.talk.contains("nothing is due"), "{}", resumed.talk);
    site.issues();
    let order = site.run(site.program("get orders -o name")).result;
    let last = order.lines().last().unwrap();
    site.run(site.program(&format!("order resume {last}"))).check(0, "");
}

#[test]
fn the_secret_of_another_certificate_is_not_renewed() {
    let site = Site::new();
    site.issues();
    let one = site.manifest();
    let (issuer, certificate) = one.split_once("---\n").unwrap();
    site.give(&format!("{issuer}---\n{}", certificate.replace("name: web\n", "name: rival\n")));
    let complaint = "\
error: Certificate default/rival: its Secret belongs to Certificate web
hint: give one of the two another secretName
";
    site.run(site.order("")).check(2, complaint);
    site.proxy.forget();
    site.run(site.program("certificate renew rival")).check(2, complaint);
    assert_eq!(site.proxy.counts().total(), 0);
    site.has_pair();
}

/// Starts an order that finds nothing of its answer, takes an object away once the answer is up, and waits for the end.
#[track_caller]
fn takes_away(what: &str, complaint: &str) {
    let site = Site::new();
    fs::create_dir(site.path("www")).unwrap();
    let mut order = site.order("--http01-webroot=www");
    order.env_remove("KUBECTL_ACME_HTTP01_LISTEN");
    let order = site.start("order", order);
    order.says("www.example.com pending: Waiting for HTTP-01 challenge propagation");
    assert_eq!(site.run(site.program(&format!("delete {what}"))).code, Some(0));
    order.end().check(if what.starts_with("issuer") { 2 } else { 1 }, complaint);
    if what.starts_with("certificate") {
        let folder = site.path("www/.well-known/acme-challenge");
        assert_eq!(fs::read_dir(folder).map_or(0, Iterator::count), 0);
        assert_eq!(site.run(site.program("get challenges -o name")).result, "");
    }
}

#[test]
fn a_certificate_that_is_deleted_meanwhile_leaves_nothing_behind() {
    takes_away(
        "certificate web",
        "error: Certificate default/web was deleted while it was worked on\n",
    );
}

#[test]
fn an_issuer_that_is_deleted_meanwhile_ends_the_wait_at_once() {
    takes_away(
        "issuer acme",
        "\
error: Certificate default/web was not issued: Issuer default/acme not found
hint: kubectl-acme order -f MANIFEST.yaml --http01-webroot=www creates the issuer again
",
    );
}

#[test]
fn a_certificate_for_other_names_is_not_written_over_and_one_that_loses_names_is_told() {
    let site = Site::new();
    site.change("name: web\n", "name: q-r-test\n");
    site.change("dnsNames: [www.example.com]", "dnsNames: [q-r.test, second.test]");
    site.run(site.order("--timeout=5s"));
    site.proxy.forget();
    site.run(site.program("order --domain q.r.test --server https://127.0.0.1:9/dir")).check(2, "\
error: cannot use --domain q.r.test: Certificate default/q-r-test exists for q-r.test, second.test
hint: write manifests, and give the Certificate another name and secretName: kubectl-acme order --domain q.r.test --dry-run=client -o yaml > FILE.yaml
");
    let narrower = "order --domain q-r.test --server https://127.0.0.1:9/dir --timeout=5s";
    let told = "Certificate default/q-r-test loses second.test: --domain sets all of its names";
    let talk = site.run(site.program(narrower)).talk;
    assert!(talk.contains(told), "{talk}");
}
