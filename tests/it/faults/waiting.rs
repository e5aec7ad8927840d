//! What waits for a CA that refuses for a while is shown where people look for it.

use super::site::Site;
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

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
