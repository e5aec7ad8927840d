//! What waits for a CA that refuses for a while is shown where people look for it.

use serde_json::Value;

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
    assert!(said.talk.contains("no controller is running"), "{}", said.talk);
}

#[test]
fn a_timeline_ends_with_what_is_true_now() {
    let site = Site::new();
    site.proxy.inject(Fault::hold().at(Endpoint::Directory));
    assert_eq!(site.run(site.order("--timeout 5s")).code, Some(6));
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

#[test]
fn each_issuance_of_a_timeline_is_whole_and_in_order() {
    let site = Site::new();
    site.issues();
    let renewal = site.program("certificate renew web");
    site.run(renewal).check(0, "");
    let said = site.run(site.program("timeline web -o json"));
    let report: Value = serde_json::from_str(&said.result).unwrap();
    let issuances = report["issuances"].as_array().unwrap();
    assert_eq!(issuances.len(), 2, "{report}");
    for (number, issuance) in issuances.iter().enumerate() {
        assert_eq!(issuance["issued"], true, "{report}");
        let entries: Vec<&Value> = report["entries"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["issuance"] == number)
            .collect();
        let of = |reason: &str| {
            let is_it = |entry: &&Value| entry["reason"] == reason;
            entries.iter().position(is_it).unwrap_or_else(|| panic!("{reason}: {report}"))
        };
        // No event tells of an Order whose CertificateRequest had waited for its issuer.
        let chain = ["Generated", "Requested", "Complete", "CertificateIssued"].map(of);
        assert!(chain.is_sorted(), "{chain:?} {report}");
        if number == 0 {
            let challenge =
                ["Created", "Started", "Presented", "DomainVerified", "Complete"].map(of);
            assert!(challenge.is_sorted(), "{challenge:?} {report}");
        }
        let last = entries.last().unwrap();
        assert!(last["message"].as_str().unwrap().ends_with("successfully issued"), "{report}");
        let milliseconds = |entry: &Value, field: &str| entry[field].as_u64().unwrap();
        let steps: u64 = entries.iter().map(|e| milliseconds(e, "millisecondsSinceLast")).sum();
        assert_eq!(steps, milliseconds(last, "millisecondsSinceStart"), "{report}");
        assert_eq!(steps, milliseconds(issuance, "milliseconds"), "{report}");
    }
}
