//! The recordings in which something is wrong from the start: Issuers that cannot register, requests that a person denies,
//! a CA that answers with errors.

use kubectl_acme::acme::account::AccountKey;
use kubectl_acme::model::KeyAlgorithm;
use serde_json::{Value, json};

use super::fixture::{Scene, condition, is_ready};
use crate::support::fault::Fault;
use crate::support::traffic::Endpoint;

/// 07: Issuers that cannot register, and a CA that has forgotten an account.
pub(super) fn issuer_errors(scene: &Scene<'_>) {
    let key = |algorithm| AccountKey::generate(algorithm).unwrap().to_pem().unwrap();
    for (name, content) in [
        ("known-nowhere", key(KeyAlgorithm::Rsa(2048)).as_str()),
        ("ec-key", key(KeyAlgorithm::Ecdsa(256)).as_str()),
        ("garbage", "this is no key"),
    ] {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-account")},
            "stringData": {"tls.key": content},
        });
        scene.kubectl.apply_server_side(&secret.to_string());
    }
    let registered = ["known-nowhere", "upper-email", "forgotten"];
    let refused =
        ["bad-email", "unreachable", "garbage", "no-generation", "untrusted", "tsig-missing"];
    for name in registered.iter().chain(&refused).chain(&["ec-key"]) {
        scene.apply("Issuer", name, 1);
    }
    for name in registered {
        scene.until("Issuer", name, is_ready);
    }
    for name in refused.iter().chain(&["ec-key"]) {
        scene.until("Issuer", name, |issuer| condition(issuer, "Ready").is_some());
    }
    scene.authorities.forget();
    scene.apply("Certificate", "web", 1);
    scene.until_issued("web", 1);
    scene.apply("Issuer", "bad-email", 2);
    scene.until("Issuer", "bad-email", is_ready);
    let address = |issuer: &Value| issuer["status"]["acme"]["uri"].clone();
    let before = address(&scene.until("Issuer", "forgotten", is_ready));
    scene.delete("secret/forgotten-account");
    scene.until("Issuer", "forgotten", |issuer| is_ready(issuer) && address(issuer) != before);
}

/// 11: a person decides.
pub(super) fn denied_request(scene: &Scene<'_>) {
    const DECISIONS: [(&str, &str); 5] = [
        ("denied", "Denied"),
        ("badcsr", "Approved"),
        ("wrongpem", "Approved"),
        ("noissuer", "Approved"),
        ("web-1", "Denied"),
    ];
    scene.begin(&["web"]);
    for name in ["denied", "badcsr", "wrongpem", "noissuer"] {
        scene.apply("CertificateRequest", name, 1);
    }
    for (name, _) in DECISIONS {
        scene.until_event("WaitingForApproval", name);
    }
    for (name, decision) in DECISIONS {
        let decided = json!({
            "type": decision, "status": "True", "reason": "person",
            "message": format!("{decision} by hand"), "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        scene.add_condition("CertificateRequest", name, &decided);
    }
    for (name, _) in DECISIONS {
        scene.until("CertificateRequest", name, |request| condition(request, "Ready").is_some());
    }
    scene.until("Certificate", "web", |c| c["status"]["failedIssuanceAttempts"] == 1);
    scene.until_clean();
}

/// 18: a CA that names the order when it answers finalize.
pub(super) fn named_order(scene: &Scene<'_>) {
    scene.begin(&["two"]);
    scene.until_issued("two", 1);
}

/// What the CA answers in place of what it should, for one Certificate at a time.
const CA_ERRORS: [(&str, Endpoint, usize, (u16, &str)); 12] = [
    ("neworder-429", Endpoint::NewOrder, 1, (429, "rateLimited")),
    ("neworder-503", Endpoint::NewOrder, 2, (503, "")),
    ("neworder-badnonce", Endpoint::NewOrder, 2, (400, "badNonce")),
    ("authz-404", Endpoint::Authorization, 1, (404, "malformed")),
    ("authz-500", Endpoint::Authorization, 2, (500, "serverInternal")),
    ("accept-429", Endpoint::Challenge, 1, (429, "rateLimited")),
    ("accept-500", Endpoint::Challenge, 1, (500, "serverInternal")),
    ("accept-malformed", Endpoint::Challenge, 1, (400, "malformed")),
    ("finalize-429", Endpoint::Finalize, 1, (429, "rateLimited")),
    ("finalize-500", Endpoint::Finalize, 1, (500, "serverInternal")),
    ("download-500", Endpoint::Certificate, 1, (500, "serverInternal")),
    ("download-404", Endpoint::Certificate, 1, (404, "malformed")),
];

/// 22: a CA that gives errors.
pub(super) fn ca_errors(scene: &Scene<'_>) {
    // The directory is read once for both Issuers, so the one whom that concerns comes first here.
    spoil(scene, Endpoint::Directory, 2, (503, ""));
    scene.apply("Issuer", "acme", 1);
    scene.until("Issuer", "acme", is_ready);
    spoil(scene, Endpoint::NewAccount, 1, (429, "rateLimited"));
    scene.apply("Issuer", "limited", 1);
    scene.until("Issuer", "limited", is_ready);
    for (name, endpoint, times, answer) in CA_ERRORS {
        spoil(scene, endpoint, times, answer);
        scene.apply("Certificate", name, 1);
        scene.until("Certificate", name, |certificate| {
            let is_issued = is_ready(certificate) && condition(certificate, "Issuing").is_none();
            is_issued || certificate["status"]["failedIssuanceAttempts"] == 1
        });
        scene.until_clean_of(name);
        let spoilt = scene.authorities.proxy().exchanges().iter().filter(|e| e.faulty).count();
        assert_eq!(spoilt, times, "answers were spoilt for {name}");
    }
}

/// Lets the CA answer so many requests so, and forgets what was before.
fn spoil(scene: &Scene<'_>, endpoint: Endpoint, times: usize, (status, kind): (u16, &str)) {
    // The CA's 20 seconds are not what is compared.
    const RETRY_AFTER: (&str, &str) = ("Retry-After", "2");
    let fault = match kind {
        "" => Fault::status(status).body("upstream is away"),
        kind => Fault::problem(status, kind, &format!("injected {kind}")),
    };
    let fault = if [429, 503].contains(&status) {
        fault.header(RETRY_AFTER.0, RETRY_AFTER.1)
    } else {
        fault
    };
    let proxy = scene.authorities.proxy();
    proxy.forget();
    proxy.inject(fault.at(endpoint).times(times));
}
