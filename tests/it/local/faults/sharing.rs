//! Certificates for the same names at a CA that gives an account its pending order back when it asks again, as Boulder does.

use std::collections::BTreeSet;

use serde_json::Value;

use super::site::{Site, wait_until};

/// Each Certificate has a pair of its own, from an order of its own.
#[track_caller]
fn check(site: &Site, certificates: &[&str]) {
    let secrets: Vec<String> = certificates.iter().map(|name| format!("{name}-tls")).collect();
    site.has_pairs(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
    let listed = site.run(site.program("get orders -o json"));
    let orders: Value = serde_json::from_str(&listed.result).unwrap();
    let orders = orders["items"].as_array().unwrap();
    let urls: BTreeSet<&str> =
        orders.iter().map(|order| order["status"]["url"].as_str().unwrap()).collect();
    assert!(orders.iter().all(|order| order["status"]["state"] == "valid"), "{orders:#?}");
    assert_eq!((orders.len(), urls.len()), (certificates.len(), certificates.len()));
    site.run(site.order("")).check(0, "");
}

/// The manifest's Certificate under other names, all for the same DNS name.
fn alike(site: &Site, names: &[&str]) -> String {
    let manifest = site.manifest();
    let (issuer, certificate) = manifest.split_once("---\n").unwrap();
    let one = |name: &&str| {
        let renamed = certificate.replace("name: web\n", &format!("name: {name}\n"));
        format!("---\n{}", renamed.replace("web-tls", &format!("{name}-tls")))
    };
    issuer.to_owned() + &names.iter().map(one).collect::<String>()
}

#[test]
fn certificates_of_one_name_take_turns_and_prove_it_once() {
    let site = Site::new();
    let names = ["one", "three", "two"];
    site.give(&alike(&site, &names));
    let said = site.run(site.order(""));
    said.check(0, "");
    let why = "the CA gave both the same order, which brings one certificate";
    assert!(said.talk.contains(why), "{}", said.talk);
    check(&site, &names);
    assert_eq!(site.ca.statistics().of("challenge"), 1);
}

#[test]
fn an_order_left_by_another_run_is_taken_over_and_its_owner_gets_a_new_one() {
    let site = Site::new();
    let nowhere = "--http01-resolve *=127.0.0.1:1";
    let first = site.start("first", site.order(nowhere));
    wait_until(|| site.orders() == 1, "the first order");
    first.says("Waiting for HTTP-01 challenge propagation");
    first.signal("INT");
    assert_eq!(first.end().code, Some(130));
    site.give(&alike(&site, &["other"]));
    site.run(site.order("")).check(0, "");
    site.has_pairs(&["other-tls"]);
    assert_eq!(site.orders(), 2);
    site.give(&site.manifest());
    site.run(site.order("")).check(0, "");
    site.give(&alike(&site, &["other", "web"]));
    check(&site, &["other", "web"]);
    assert_eq!(site.orders(), 3);
}

#[test]
fn while_run_drives_certificates_of_one_name_take_turns_too() {
    let site = Site::new();
    let run = site.start("run", site.program("run"));
    run.says("driver: kubectl-acme");
    let names = ["one", "two"];
    site.give(&alike(&site, &names));
    site.run(site.order("")).check(0, "");
    check(&site, &names);
}
