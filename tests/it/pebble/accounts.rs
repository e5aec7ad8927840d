//! Accounts at a real CA: shown, changed, given another key, lost and found, ended; and certificates revoked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Said, Terminal, certificate, issuer};

const NAME: &str = "www.example.com";

/// Somebody with a certificate.
fn issued() -> (Pebble, Terminal) {
    let pebble = Pebble::start(&PebbleOptions::default());
    let terminal = Terminal::at(&pebble);
    let said = terminal.order(&[manifest(&pebble), certificate("web", &[NAME], json!({}))]);
    assert_eq!(said.code, Some(0), "{said:?}");
    (pebble, terminal)
}

fn manifest(pebble: &Pebble) -> Value {
    issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({"email": "ops@example.com"}))
}

fn name_of(pebble: &Pebble) -> String {
    manifest(pebble)["metadata"]["name"].as_str().unwrap().to_owned()
}

#[track_caller]
fn ends(said: &Said, code: i32, words: &str) {
    assert_eq!(said.code, Some(code), "{said:?}");
    assert!(said.stdout.contains(words) || said.stderr.contains(words), "{words}: {said:?}");
}

fn shown(terminal: &Terminal, name: &str) -> Value {
    let said = terminal.run(&["account", "show", name, "-o", "json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    report["accounts"][0].clone()
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_account_is_shown_changed_and_given_another_key() {
    let (pebble, terminal) = issued();
    let name = &*name_of(&pebble);
    let before = shown(&terminal, name);
    assert_eq!(
        (&before["status"], &before["contact"]),
        (&json!("valid"), &json!(["mailto:ops@example.com"]))
    );
    ends(&terminal.run(&["account", "show"]), 0, "mailto:ops@example.com\n");

    ends(
        &terminal.run(&["account", "update", name, "--email", "new@example.com"]),
        0,
        "new@example.com",
    );
    assert_eq!(shown(&terminal, name)["contact"], json!(["mailto:new@example.com"]));
    assert_eq!(terminal.objects("issuers")[0]["spec"]["acme"]["email"], "new@example.com");
    ends(
        &terminal.run(&["account", "update", name, "--email", "nobody"]),
        2,
        "not an e-mail address",
    );

    let changed = terminal.run(&["account", "rollover", name, "--algorithm=ecdsa-p384"]);
    ends(&changed, 0, "has a new key");
    let after = shown(&terminal, name);
    assert_eq!(
        (&after["url"], &after["key"]["algorithm"]),
        (&before["url"], &json!("ECDSA P-384"))
    );
    assert_ne!(after["key"]["thumbprint"], before["key"]["thumbprint"]);
    ends(&terminal.drive(&["certificate", "renew", "web"]), 0, "");
    assert_eq!(pebble.accounts(), 1);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_account_is_found_again_after_all_was_lost_but_its_key() {
    let (pebble, terminal) = issued();
    let name = &*name_of(&pebble);
    let account = shown(&terminal, name)["url"].clone();
    ends(&terminal.run(&["account", "export", name, "--out", "account.pem"]), 0, "account.pem");
    let file = terminal.path("account.pem");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    ends(&terminal.run(&["account", "export", name, "--out", "account.pem"]), 2, "exists");

    let other = Terminal::at(&pebble);
    other.manifests(&[manifest(&pebble)]);
    let wrong = other.write("wrong.pem", "no key");
    let recover =
        |key: &str| other.run(&["account", "recover", "-f", "manifests.yaml", "--key", key]);
    ends(&recover(wrong.to_str().unwrap()), 2, "cannot read private key");
    crate::support::terminal::openssl(&[
        "genpkey",
        "-algorithm",
        "EC",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-out",
        wrong.to_str().unwrap(),
    ]);
    ends(&recover(wrong.to_str().unwrap()), 7, "has no account for this key; nothing was changed");
    assert_eq!(other.objects("issuers"), [] as [Value; 0]);
    ends(&recover(file.to_str().unwrap()), 0, account.as_str().unwrap());
    let said = other.order(&[manifest(&pebble), certificate("web", &[NAME], json!({}))]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!((pebble.accounts(), &shown(&other, name)["url"]), (1, &account));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn another_key_takes_the_place_of_one_only_when_that_is_said() {
    let (pebble, terminal) = issued();
    let name = &*name_of(&pebble);
    let other = Terminal::at(&pebble);
    assert_eq!(other.order(&[manifest(&pebble)]).code, Some(0));
    ends(&other.run(&["account", "export", name, "--out", "key.pem"]), 0, "key.pem");
    let file = other.path("key.pem");
    let import = ["account", "import", name, "--key", file.to_str().unwrap()];
    ends(&terminal.run(&import), 2, "has another account key");
    ends(&terminal.run(&[&import[..], &["--replace"]].concat()), 0, "has its key in Secret");
    assert_eq!(shown(&terminal, name)["url"], shown(&other, name)["url"]);
    ends(&terminal.drive(&["certificate", "renew", "web"]), 0, "");
    assert_eq!(pebble.accounts(), 2);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_account_that_has_ended_is_named_as_the_reason() {
    let (pebble, terminal) = issued();
    let name = &*name_of(&pebble);
    ends(&terminal.run(&["account", "deactivate", name]), 2, "--yes");
    ends(&terminal.run(&["account", "deactivate", name, "--yes"]), 0, "is deactivated");
    let conditions = &terminal.objects("issuers")[0]["status"]["conditions"][0];
    assert_eq!(conditions["status"], "False");
    assert!(conditions["message"].as_str().unwrap().contains("deactivated"), "{conditions}");
    let renewed = terminal.drive(&["certificate", "renew", "web"]);
    ends(&renewed, 7, "deactivated");
    assert_eq!(terminal.run(&["account", "show", name]).code, Some(7));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_certificate_is_revoked_once_and_by_who_may() {
    let (pebble, terminal) = issued();
    let revoke = ["certificate", "revoke", "web"];
    ends(&terminal.run(&revoke), 2, "--yes");
    let other = terminal.write("other.key", "");
    crate::support::terminal::openssl(&[
        "genpkey",
        "-algorithm",
        "EC",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-out",
        other.to_str().unwrap(),
    ]);
    let key = format!("--key={}", other.display());
    ends(
        &terminal.run(&[&revoke[..], &["--yes", &key]].concat()),
        2,
        "not that of the certificate",
    );
    assert_eq!(pebble.issued(), 1);
    let reason = ["--yes", "--reason=superseded"];
    let revoked = terminal.run(&[&revoke[..], &reason].concat());
    ends(&revoked, 0, "is revoked\n");
    ends(&revoked, 0, "certificate renew web");
    assert_eq!(terminal.run(&[&revoke[..], &reason].concat()).code, Some(1));
    ends(&terminal.drive(&["certificate", "renew", "web"]), 0, "");
    // By the key of the certificate, from files, without the account's.
    let pair = terminal.pair("web-tls");
    let key = format!("--key={}", pair.key.display());
    let issuer = name_of(&pebble);
    let file = pair.certificate.to_str().unwrap();
    let by_key = ["certificate", "revoke", file, &key, "--issuer", &issuer, "--yes"];
    ends(&terminal.run(&by_key), 0, "is revoked\n");
    ends(&terminal.run(&["certificate", "revoke", file, "--yes"]), 2, "--issuer");
}
