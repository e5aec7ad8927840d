//! The process dies at every write of a roll-over: whoever goes on ends with one account and one key that it takes.

use std::sync::Arc;

use kubectl_acme::acme::{AccountKey, Clients, Registration};
use kubectl_acme::ca::Config;
use kubectl_acme::controllers::account_rollover::{self, RolloverEnd};
use kubectl_acme::controllers::accounts::Accounts;
use kubectl_acme::model::{Issuer, Key, KeyAlgorithm, Kind, ObjectName, Record, Secret};
use kubectl_acme::store::Store;
use kubectl_acme::store::memory::MemoryStore;
use kubectl_acme::store::resources::{Resources, typed};
use serde_json::json;

use super::account_secret;
use super::dying_store::{Death, Mortal};
use crate::support::ca::TestCa;

/// What a roll-over writes: the new key beside the old one, the new key alone, and what the Issuer says of it.
const WRITES: i64 = 3;

fn accounts(store: &Arc<dyn Store>) -> Accounts {
    Accounts::new(store, "cert-manager", Accounts::connect_with(Arc::new(Clients::new())))
}

async fn issuer(store: &Arc<dyn Store>) -> Issuer {
    let key = Key::new(Kind::Issuer, ObjectName::new("default", "acme"));
    typed(store.get(&key).await.unwrap().unwrap()).unwrap()
}

async fn secret(store: &Arc<dyn Store>) -> Secret {
    let key = Key::new(Kind::Secret, ObjectName::new("default", "acme-account"));
    typed(store.get(&key).await.unwrap().unwrap()).unwrap()
}

/// A store with an Issuer that has an account.
async fn registered(ca: &TestCa) -> Arc<dyn Store> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    for record in [Record::new(ca.issuer()).unwrap(), account_secret(KeyAlgorithm::Ecdsa(256))] {
        store.apply(record).await.unwrap();
    }
    let found = issuer(&store).await;
    let secret = secret(&store).await;
    let key = AccountKey::from_pem(secret.value("tls.key").unwrap()).unwrap();
    let session = accounts(&store).open(&found, &secret).unwrap();
    let account = session.register(&Registration::default()).await.unwrap();
    let issuers = Resources::<Issuer>::new(Arc::clone(&store), Kind::Issuer);
    let status = json!({
        "acme": {"uri": account.url, "lastPrivateKeyHash": key.hash()},
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    issuers.replace_status(&found, &serde_json::from_value(status).unwrap()).await.unwrap();
    store
}

/// Stores a new key and brings the roll-over to its end, in a process that may die.
async fn roll_over(store: &Arc<dyn Store>) -> Option<RolloverEnd> {
    let (found, old) = (issuer(store).await, secret(store).await);
    let acme = found.spec.acme.as_ref().unwrap();
    let next = AccountKey::generate(KeyAlgorithm::Ecdsa(384)).unwrap();
    let changed = account_rollover::with_next_key(acme, &old, &next).unwrap();
    let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
    secrets.replace(&changed).await.ok()?;
    accounts(store).finish_rollover(&found).await.ok()
}

async fn check(writes: i64, death: Death) {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let store = registered(&ca).await;
    let url = issuer(&store).await.status.acme.unwrap().uri;
    let mortal: Arc<dyn Store> = Arc::new(Mortal::new(Arc::clone(&store), writes, death));
    let ended = roll_over(&mortal).await;
    let survives = writes == WRITES;
    assert_eq!(matches!(ended, Some(RolloverEnd::Changed { .. })), survives, "{writes} {death:?}");

    let found = issuer(&store).await;
    accounts(&store).finish_rollover(&found).await.unwrap();
    let (found, kept) = (issuer(&store).await, secret(&store).await);
    let entries: Vec<&String> = kept.data.keys().collect();
    assert_eq!(entries, ["tls.key"], "{writes} {death:?}");
    let session = accounts(&store).session(&found).await.unwrap();
    session.update_contact(&["mailto:a@kubectl-acme.test".to_owned()]).await.unwrap();
    assert_eq!((ca.server.accounts(), session.account_url()), (1, Some(url)));
    let key = AccountKey::from_pem(kept.value("tls.key").unwrap()).unwrap();
    let is_old = writes == 0 && death == Death::BeforeTheWrite;
    let wanted = if is_old { KeyAlgorithm::Ecdsa(256) } else { KeyAlgorithm::Ecdsa(384) };
    assert_eq!(key.algorithm(), wanted, "{writes} {death:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_roll_over_killed_at_every_write_ends_with_one_key_that_the_account_takes() {
    for writes in 0..=WRITES {
        for death in [Death::BeforeTheWrite, Death::AfterTheWrite] {
            check(writes, death).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_is_not_known_which_key_the_ca_takes_nothing_is_signed() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let store = registered(&ca).await;
    let mortal: Arc<dyn Store> =
        Arc::new(Mortal::new(Arc::clone(&store), 1, Death::BeforeTheWrite));
    assert!(roll_over(&mortal).await.is_none());
    let found = issuer(&store).await;
    let refused = accounts(&store).session(&found).await.unwrap_err().to_string();
    assert_eq!(refused, "Issuer default/acme gets another account key just now");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_an_account_of_its_own_is_refused_and_kept() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let store = registered(&ca).await;
    let (found, old) = (issuer(&store).await, secret(&store).await);
    let acme = found.spec.acme.as_ref().unwrap();
    let next = AccountKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap();
    let other = accounts(&store).open_with(&found, next.clone(), None).unwrap();
    other.register(&Registration::default()).await.unwrap();
    let changed = account_rollover::with_next_key(acme, &old, &next).unwrap();
    let secrets = Resources::<Secret>::new(Arc::clone(&store), Kind::Secret);
    secrets.replace(&changed).await.unwrap();
    let ended = accounts(&store).finish_rollover(&found).await.unwrap();
    assert!(matches!(ended, RolloverEnd::Refused(_)), "{ended:?}");
    let kept = secret(&store).await;
    let entries: Vec<&String> = kept.data.keys().collect();
    assert_eq!(entries, ["tls.key", "tls.key.unused"]);
    assert_eq!(kept.value("tls.key"), old.value("tls.key"));
}
