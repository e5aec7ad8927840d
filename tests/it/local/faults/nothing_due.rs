//! Nothing has to be issued: what was changed is taken in all the same, and nobody is asked for what the change does not need.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::site::{Site, wait_until};
use crate::support::traffic::Endpoint;

fn object(site: &Site, words: &str) -> Value {
    let said = site.run(site.program(&format!("get {words} -o json")));
    serde_json::from_str(&said.result).unwrap()
}

/// The status of the Certificate, which calls it ready as it is.
#[track_caller]
fn status(site: &Site) -> Value {
    let certificate = object(site, "certificate web");
    let conditions = certificate["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
    assert_eq!(
        (&ready["status"], &ready["observedGeneration"]),
        (&json!("True"), &certificate["metadata"]["generation"])
    );
    certificate["status"].clone()
}

/// Runs while the port of the listener is taken; no order is made.
#[track_caller]
fn check(site: &Site, more: &str) {
    let _taken = site.taken_port();
    let said = site.run(site.order(more));
    said.check(0, "");
    assert!(said.talk.contains("nothing is due"), "{}", said.talk);
    assert_eq!(site.orders(), 1);
}

#[test]
fn a_certificate_that_was_deleted_and_given_again_gets_its_status_back() {
    let site = Site::new();
    site.issues();
    let before = status(&site);
    site.run(site.program("delete certificate web")).check(0, "");
    site.proxy.forget();
    check(&site, "");
    assert_eq!(site.proxy.counts().total(), 0);
    assert_eq!(status(&site)["notAfter"], before["notAfter"]);
}

#[test]
fn a_change_that_needs_no_new_certificate_is_taken_in() {
    let site = Site::new();
    site.issues();
    let before = status(&site);
    site.proxy.forget();
    site.change(
        "  secretName: web-tls\n",
        "  secretName: web-tls\n  renewBefore: 10m\n  secretTemplate: {labels: {team: blue}}\n",
    );
    check(&site, "--out-secret");
    assert_eq!(site.proxy.counts().total(), 0);
    assert_ne!(status(&site)["renewalTime"], before["renewalTime"]);
    let secret = fs::read_to_string(site.path("out/web-tls/secret.yaml")).unwrap();
    assert!(secret.contains("team: blue"), "{secret}");
}

#[test]
fn changed_output_formats_are_put_into_the_secret() {
    let site = Site::new();
    site.issues();
    let keys = || {
        let secret = fs::read_to_string(site.path("out/web-tls/secret.yaml")).unwrap();
        let is_there = |key: &&str| secret.contains(&format!("  {key}: "));
        ["key.der", "tls-combined.pem", "tls.crt", "tls.key"].into_iter().filter(is_there).count()
    };
    site.proxy.forget();
    let (before, after) = (
        "  secretName: web-tls\n",
        "  secretName: web-tls\n  additionalOutputFormats: [{type: DER}, {type: CombinedPEM}]\n",
    );
    site.change(before, after);
    check(&site, "--out-secret");
    assert_eq!(keys(), 4);
    site.change(after, before);
    check(&site, "--out-secret");
    assert_eq!(keys(), 2);
    assert_eq!(site.proxy.counts().total(), 0);
}

/// What keytool says of a keystore that `order` has written, by the password that opens it; nothing when none does.
fn keystore(site: &Site, name: &str, kind: &str, password: &str) -> Option<String> {
    let file = site.path(&format!("out/web-tls/{name}"));
    let listed = Command::new("keytool")
        .args(["-list", "-v", "-storetype", kind, "-storepass", password, "-keystore"])
        .arg(file)
        .output()
        .expect("tests need keytool on the PATH");
    let said = String::from_utf8_lossy(&listed.stdout).into_owned();
    listed.status.success().then_some(said)
}

/// That a keystore opens with a password and no other one, and has the key that belongs to the certificate.
#[track_caller]
fn check_keystore(site: &Site, name: &str, kind: &str, alias: &str, password: &str) {
    let said = keystore(site, name, kind, password).unwrap();
    for part in [&format!("Alias name: {alias}\n"), "PrivateKeyEntry", "DNSName: www.example.com"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(keystore(site, name, kind, "another").is_none());
}

#[test]
fn changed_keystores_are_put_into_the_secret() {
    let site = Site::new();
    site.issues();
    site.proxy.forget();
    let mut before = "  secretName: web-tls\n".to_owned();
    let mut change = |keystores: &str| {
        let after = format!("  secretName: web-tls\n  keystores: {keystores}\n");
        site.change(&before, &after);
        before = after;
        check(&site, "--out-secret");
    };
    change(
        "{jks: {create: true, password: changeit}, pkcs12: {create: true, profile: Modern2023, password: changeit}}",
    );
    check_keystore(&site, "keystore.jks", "JKS", "certificate", "changeit");
    check_keystore(&site, "keystore.p12", "PKCS12", "1", "changeit");
    let read = |name: &str| fs::read(site.path(&format!("out/web-tls/{name}"))).unwrap();
    let (jks, pkcs12) = (read("keystore.jks"), read("keystore.p12"));
    check(&site, "");
    assert_eq!((read("keystore.jks"), read("keystore.p12")), (jks, pkcs12), "nothing was asked");
    change(
        "{jks: {create: true, alias: web, password: changed}, pkcs12: {create: true, profile: LegacyDES, password: changed}}",
    );
    check_keystore(&site, "keystore.jks", "JKS", "web", "changed");
    check_keystore(&site, "keystore.p12", "PKCS12", "1", "changed");
    change("{jks: {create: false, password: changed}}");
    let secret = fs::read_to_string(site.path("out/web-tls/secret.yaml")).unwrap();
    assert!(!secret.contains("keystore"), "{secret}");
    assert_eq!(site.proxy.counts().total(), 0);
}

#[test]
fn a_keystore_has_the_password_that_its_secret_has() {
    let site = Site::new();
    let plain = fs::read_to_string(site.path("site.yaml")).unwrap();
    let asks = plain.replace(
        "  secretName: web-tls\n",
        "  secretName: web-tls\n  keystores: {jks: {create: true, passwordSecretRef: {name: pw, key: word}}}\n",
    );
    let secret = |entry: &str, password: &str| {
        format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: pw}}\nstringData: {{{entry}: {password}}}\n"
        )
    };
    // Nothing is asked of the CA before the password is there.
    for (manifest, expected) in [
        (asks.clone(), "JKS keystore password Secret \"pw\" not found"),
        (
            format!("{asks}{}", secret("words", "first")),
            "JKS keystore password Secret \"pw\" contains no data for key \"word\"",
        ),
    ] {
        site.give(&manifest);
        let said = site.run(site.order(""));
        assert_eq!(said.code, Some(2), "{}", said.talk);
        assert!(said.talk.contains(expected), "{}", said.talk);
        assert!(said.talk.contains("hint: "), "{}", said.talk);
        assert_eq!(site.proxy.counts().total(), 0);
    }
    site.give(&format!("{asks}{}", secret("word", "first")));
    site.run(site.order("")).check(0, "");
    check_keystore(&site, "keystore.jks", "JKS", "certificate", "first");
    site.give(&format!("{asks}{}", secret("word", "second")));
    check(&site, "");
    check_keystore(&site, "keystore.jks", "JKS", "certificate", "second");
}

#[test]
fn a_secret_goes_with_its_certificate_where_a_flag_says_so() {
    let site = Site::new();
    site.issues();
    check(&site, "--enable-certificate-owner-ref");
    site.run(site.program("certificate show secret/web-tls")).check(0, "");
    site.run(site.program("delete certificate web")).check(0, "");
    let said = site.run(site.program("certificate show secret/web-tls"));
    assert!(said.talk.contains("secrets \"web-tls\" not found"), "{}", said.talk);
}

#[test]
fn a_temporary_certificate_stands_in_the_secret_until_the_real_one_is_there() {
    let site = Site::new();
    site.change(
        "  name: web\n",
        "  name: web\n  annotations: {cert-manager.io/issue-temporary-certificate: 'true'}\n",
    );
    site.blind();
    let order = site.start("order", site.order(""));
    let shown = || site.run(site.program("certificate show secret/web-tls")).result;
    wait_until(|| shown().contains("cert-manager.local"), "the temporary certificate");
    assert!(shown().contains("www.example.com"), "{}", shown());
    site.see();
    let said = order.end();
    said.check(0, "");
    let told = site.run(site.program("describe certificate/web")).result;
    assert!(told.contains("Issued temporary certificate"), "{told}");
    assert!(!shown().contains("cert-manager.local"), "{}", shown());
    site.has_pair();
}

#[test]
fn a_changed_email_is_sent_though_no_certificate_is_due() {
    let site = Site::new();
    site.issues();
    site.proxy.forget();
    site.change("    server:", "    email: me@kubectl-acme.dev\n    server:");
    check(&site, "");
    let account = &object(&site, "issuer acme")["status"]["acme"];
    assert_eq!(account["lastRegisteredEmail"], "me@kubectl-acme.dev");
    let counts = site.proxy.counts();
    assert_eq!(counts.at(Endpoint::NewOrder), 0, "{counts}");
}

#[test]
fn an_issuer_that_is_refused_is_told_though_no_certificate_is_due() {
    let site = Site::new();
    site.issues();
    site.change("    server:", "    email: me@example.com\n    server:");
    for _ in 0..2 {
        let said = site.run(site.order(""));
        assert_eq!(said.code, Some(7), "{}", said.talk);
        assert!(!said.talk.contains("nothing is due"), "{}", said.talk);
        assert_eq!(said.talk.matches("error: ").count(), 1, "{}", said.talk);
    }
}

#[test]
fn changed_solvers_cost_no_request() {
    let site = Site::new();
    site.issues();
    site.proxy.forget();
    site.change("        ingress: {}\n", "        ingress: {ingressClassName: nginx}\n");
    check(&site, "");
    assert_eq!(site.proxy.counts().total(), 0, "{}", site.proxy.counts());
    let issuer = object(&site, "issuer acme");
    let ready = &issuer["status"]["conditions"][0];
    assert_eq!(ready["observedGeneration"], issuer["metadata"]["generation"]);
}

#[test]
fn retrying_a_valid_order_does_nothing() {
    let site = Site::new();
    site.issues();
    let orders = object(&site, "orders");
    let order = orders["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    site.proxy.forget();
    let said = site.run(site.program(&format!("order retry {order}")));
    said.check(0, "");
    let told = "Order default/web-1-[hash] is valid: there is nothing to try again; \
                to renew anyway: kubectl-acme certificate renew web\n";
    assert!(said.talk.contains(told), "{}", said.talk);
    assert_eq!(site.proxy.counts().total(), 0);
    assert_eq!(object(&site, "orders")["items"], orders["items"]);
    site.has_pair();
}
