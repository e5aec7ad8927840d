//! Cases 5 to 18: how an Issuer comes to its account.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use serde_json::{Value, json};

use super::stage::{Manner, Stage, ready, secret};
use crate::support::pebble::PebbleOptions;
use crate::support::traffic::Endpoint;

const REGISTERED: (&str, &str, &str) =
    ("True", "ACMEAccountRegistered", "The ACME account was registered with the ACME server");

fn registered() -> Value {
    ready(REGISTERED.0, REGISTERED.1, REGISTERED.2)
}

/// The account of the Issuer `acme`, once it is ready.
fn account(stage: &Stage) -> String {
    let issuer = stage.sees("issuer/acme", &registered());
    issuer["status"]["acme"]["uri"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn an_issuer_gets_an_account_and_keeps_it_with_its_key() {
    let mut stage = Stage::open("account").await;
    let first = account(&stage);
    assert!(first.starts_with(stage.proxy.directory().trim_end_matches("/dir")), "{first}");
    let secret = stage.kubectl.object("secret/acme-account");
    assert_eq!(secret["metadata"]["labels"]["app.kubernetes.io/managed-by"], "cert-manager");
    assert_eq!(secret["metadata"]["ownerReferences"], Value::Null);
    let key = STANDARD.decode(secret["data"]["tls.key"].as_str().unwrap()).unwrap();
    assert!(key.starts_with(b"-----BEGIN RSA PRIVATE KEY-----"));

    stage.kubectl.run(&["delete", "issuer", "acme"]);
    stage.apply(&[stage.issuer("acme", json!({}))]);
    assert_eq!(account(&stage), first, "the same key is the same account");

    stage.patch("issuer/acme", &json!({"spec": {"acme": {"email": "ops@mail.acme-tests.dev"}}}));
    let email = json!({"status": {"acme": {"lastRegisteredEmail": "ops@mail.acme-tests.dev"}}});
    let before = stage.sees("issuer/acme", &email);
    assert_eq!(stage.proxy.counts().at(Endpoint::Account), 1, "the contact is changed at the CA");

    stage.rest().await;
    stage.proxy.forget();
    stage.work(Manner::default()).await;
    // What comes after it shows that it was looked at.
    stage.apply(&[stage.issuer("other", json!({"server": "https://127.0.0.1:1/dir"}))]);
    stage.sees("issuer/other", &ready("False", "ErrRegisterACMEAccount", "…"));
    assert_eq!(stage.kubectl.object("issuer/acme"), before);
    assert_eq!(stage.proxy.counts().total(), 0, "a ready Issuer asks nothing");

    stage.kubectl.run(&["delete", "secret", "acme-account"]);
    stage.sees("secret/acme-account", &json!({"data": {"tls.key": "…"}}));
    let moved = |uri: &str| (uri != first && !uri.is_empty()).then_some(());
    crate::support::cluster::eventually("the new account", || moved(&account(&stage)));
}

/// Applies one Issuer of a row, sees it complain, puts right what is wrong, and sees it ready.
fn check(stage: &Stage, name: &str, wrong: Value, complaint: &Value, remedy: &[Value]) {
    stage.apply(&[stage.issuer(name, wrong)]);
    let issuer = format!("issuer/{name}");
    stage.sees(&issuer, complaint);
    stage.apply(remedy);
    stage.sees(&issuer, &registered());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn what_is_wrong_with_an_issuer_is_said_until_it_is_put_right() {
    let mut stage = Stage::set("wrong");
    stage.work(Manner::default()).await;
    let pem = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap().serialize_pem();

    let old = "https://acme-v01.api.letsencrypt.org/directory";
    let says = "Your ACME server URL is set to a v1 endpoint (…). You should update …";
    let (silent, is_silent) = ("https://127.0.0.1:1/dir", "Failed to register ACME account: …");
    for (name, server, reason, message) in [
        ("old", old, "InvalidConfig", says),
        ("silent", silent, "ErrRegisterACMEAccount", is_silent),
    ] {
        let right = stage.issuer(name, json!({}));
        let complaint = ready("False", reason, message);
        check(&stage, name, json!({"server": server}), &complaint, &[right]);
    }
    stage.hears("issuer/silent", "Warning ErrInitIssuer Error initializing issuer: …");

    let missing = "Failed to verify ACME account: the ACME issuer config has \
                   'disableAccountKeyGeneration' set to true, but the secret was not found: …";
    let complaint = ready("False", "ErrVerifyACMEAccount", missing);
    let given = secret("given-account", "tls.key", &pem);
    check(&stage, "given", json!({"disableAccountKeyGeneration": true}), &complaint, &[given]);

    stage.apply(&[secret("junk-account", "tls.key", "junk")]);
    let complaint = ready("False", "ErrVerifyACMEAccount", "Account private key is invalid: …");
    check(&stage, "junk", json!({}), &complaint, &[secret("junk-account", "tls.key", &pem)]);

    // Reads on from cert-manager: keys of other sorts than RSA are as good.
    stage
        .apply(&[secret("elliptic-account", "tls.key", &pem), stage.issuer("elliptic", json!({}))]);
    stage.sees("issuer/elliptic", &registered());

    let token = json!({"name": "token", "key": "api"});
    let solver = json!({"solvers": [{"dns01": {"cloudflare": {"apiTokenSecretRef": token}}}]});
    stage.apply(&[stage.issuer("solver", solver)]);
    let missing = "failed to get secret \"token\": …";
    stage.sees("issuer/solver", &ready("False", "InvalidSolver", missing));
    stage.apply(&[secret("token", "other", "x")]);
    let keyless = "the secret \"token\" does not have key \"api\"";
    stage.sees("issuer/solver", &ready("False", "InvalidSolver", keyless));
    stage.apply(&[secret("token", "api", "x")]);
    stage.sees("issuer/solver", &registered());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn an_external_account_is_bound_as_soon_as_its_key_is_there() {
    const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let accounts = vec![("kid-1".to_owned(), KEY.to_owned())];
    let options = PebbleOptions { external_accounts: accounts, ..PebbleOptions::calm() };
    let mut stage = Stage::with("bound", options);
    stage.work(Manner::default()).await;
    let binding = json!({
        "keyID": "kid-1", "keySecretRef": {"name": "binding", "key": "secret"},
        "keyAlgorithm": "HS384",
    });
    stage.apply(&[stage.issuer("acme", json!({"externalAccountBinding": binding}))]);
    let failed = ready("False", "ErrRegisterACMEAccount", "Failed to register ACME account: …");
    stage.sees("issuer/acme", &failed);
    stage.hears("issuer/acme", "Warning ErrRegisterACMEAccount Failed to register ACME account: …");
    let unread = |key: &str| {
        let before = stage.events("issuer/acme").len();
        stage.apply(&[secret("binding", "secret", key)]);
        crate::support::cluster::eventually("another complaint", || {
            (stage.events("issuer/acme").len() > before).then_some(())
        });
        stage.sees("issuer/acme", &failed);
    };
    unread("c3RhbmRhcmQ+base64/with+signs==");
    assert_eq!(stage.pebble.accounts(), 0);
    stage.apply(&[secret("binding", "secret", KEY)]);
    stage.sees("issuer/acme", &registered());
    assert_eq!(stage.pebble.accounts(), 1);
}
