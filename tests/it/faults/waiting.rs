//! What waits for a CA that refuses for a while is shown where people look for it.

use super::site::Site;
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

#[test]
fn an_order_that_its_ca_refuses_for_a_while_is_in_timeline_schedule_and_list() {
    let site = Site::new();
    let refused = Fault::problem(429, "rateLimited", "too many").header("Retry-After", "3600");
    site.proxy.inject(refused.at(Endpoint::NewOrder));
    assert_eq!(site.run(site.order("")).code, Some(5));
    let reason = "Order default/web-1-[hash]: Failed to create Order: 429 \
                  urn:ietf:params:acme:error:rateLimited: too many; next try at [moment]\n";
    for words in ["schedule", "challenge get"] {
        let said = site.run(site.program(words));
        let line = format!("\n1 order waits for its CA: {reason}");
        assert!(said.talk.contains(&line), "{words}: {}", said.talk);
    }
    let said = site.run(site.program("timeline web"));
    let last = said.result.lines().last().unwrap();
    let ends = " Order default/web-1-";
    assert!(last.contains(ends) && last.contains("too many; next try at "), "{last}");
    assert!(said.talk.contains("nobody drives"), "{}", said.talk);
}

#[test]
fn a_timeline_ends_with_what_is_true_now() {
    let site = Site::new();
    site.proxy.inject(Fault::hold().at(Endpoint::Directory));
    assert_eq!(site.run(site.order("--timeout 2s")).code, Some(6));
    let last = |site: &Site| {
        let said = site.run(site.program("timeline web"));
        said.result.lines().last().unwrap_or_default().to_owned()
    };
    let away = last(&site);
    assert!(away.contains("Issuer default/acme is not ready: "), "{away}");
    // Somebody mends that, and nobody goes on with the Certificate.
    site.proxy.release();
    let whole = site.manifest();
    site.give(whole.split("---").next().unwrap());
    site.run(site.order("")).check(0, "");
    let mended = last(&site);
    let now = "Issuer default/acme is ready, and Certificate web waits for the Order of CertificateRequest web-1";
    assert!(mended.ends_with(now), "{mended}");
}
