//! Records that a person makes, where nobody can be asked whether they are there.

use super::site::Site;

#[test]
fn records_that_cannot_be_looked_for_are_not_said_to_be_missing() {
    let site = Site::new();
    site.change(
        "http01:\n        ingress: {}",
        "dns01:\n        rfc2136: {nameserver: 192.0.2.53}",
    );
    let by_hand = "--dns01-manual --dns 127.0.0.1:1";
    assert_eq!(site.run(site.order(by_hand)).code, Some(13), "they have to be made first");
    let said = site.run(site.order(&format!("{by_hand} --timeout 5s")));
    said.check(
        9,
        "\
error: Certificate default/web: whether its record is there could not be checked: Could not determine the zone for \
\"_acme-challenge.www.example.com.\": cannot look up www.example.com.: 127.0.0.1:[port] refuses the connection
hint: name a resolver that answers with --dns or --dns01-recursive-nameservers
hint: then go on with: kubectl-acme order -f site.yaml --dns01-manual --dns 127.0.0.1:[port] --timeout 5s
",
    );
    assert_eq!(site.orders(), 1);
}
