//! For the tests of controllers: a store in memory, and an account service that answers from a list.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::accounts::Accounts;
use super::recorder::Recorder;
use super::{Controller, ReconcileError, ReconcileFailure};
use crate::acme::error::{AcmeError, Fault};
use crate::acme::{
    AccountKey, AccountReply, Acme, AuthorizationReply, CertificateChain, ChallengeReply,
    Directory, NewOrder, OrderReply, Registration,
};
use crate::model::order_budget::Permit;
use crate::model::{Event, Key, Kind, ObjectName, Problem, Record};
use crate::reconcile::Wake;
use crate::store::memory::MemoryStore;
use crate::store::resources::typed;
use crate::store::{Scope, Store};

/// A store with what controllers need around it.
pub(super) struct Desk {
    pub(super) store: Arc<dyn Store>,
    pub(super) accounts: Arc<Accounts>,
    pub(super) ca: Arc<FakeCa>,
}

/// Fake CA: the requests that it received, and its coming answers.
#[derive(Debug, Default)]
pub(super) struct FakeCa {
    pub(super) asked: Mutex<Vec<String>>,
    pub(super) answers: Mutex<VecDeque<Result<AccountReply, AcmeError>>>,
}

/// An answer to newAccount, with the contact that the CA keeps.
pub(super) fn account(contact: &str) -> AccountReply {
    AccountReply {
        url: "https://ca.example/account/1".into(),
        status: "valid".into(),
        contact: Some(vec![contact.into()]),
        created: true,
        orders: None,
    }
}

/// A refusal.
pub(super) fn refusal(
    status: u16,
    retry_after: Option<Timestamp>,
) -> Result<AccountReply, AcmeError> {
    let problem =
        Problem { status, detail: "no".into(), kind: "urn:x".into(), ..Problem::default() };
    Err(AcmeError::Refused { problem: Box::new(problem), retry_after, location: None })
}

/// No answer.
pub(super) fn unreachable_ca() -> Result<AccountReply, AcmeError> {
    Err(AcmeError::Transport {
        deed: "read",
        url: "https://ca.example/dir".into(),
        why: "connection refused".into(),
        fault: Fault::Passing,
    })
}

impl Desk {
    pub(super) fn new() -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let ca = Arc::new(FakeCa::default());
        let asked = Arc::clone(&ca);
        let connect = move |_: &str, _: &_, _: AccountKey, url| {
            let ca = Arc::clone(&asked);
            Ok(Arc::new(FakeSession { ca, url: Mutex::new(url) }) as Arc<dyn Acme>)
        };
        let accounts = Arc::new(Accounts::new(&store, "cert-manager", Box::new(connect)));
        Self { store, accounts, ca }
    }

    pub(super) fn recorder(&self) -> Recorder {
        Recorder::new(Arc::clone(&self.store))
    }

    pub(super) async fn create(&self, object: Value) {
        self.store.create(Record::new(object).unwrap()).await.unwrap();
    }

    pub(super) async fn get<R: DeserializeOwned>(&self, kind: Kind, name: &str) -> Option<R> {
        let key = Key::new(kind, name_of(kind, name));
        Some(typed(self.store.get(&key).await.unwrap()?).unwrap())
    }

    /// Reasons of all events, sorted.
    pub(super) async fn events(&self) -> Vec<String> {
        let events = self.store.list(Kind::Event, &Scope::all()).await.unwrap();
        let mut reasons: Vec<String> =
            events.into_iter().map(|event| typed::<Event>(event).unwrap().reason).collect();
        reasons.sort();
        reasons
    }

    /// Takes steps for one object until it waits or fails.
    pub(super) async fn settle(
        &self,
        controller: &impl Controller,
        kind: Kind,
        name: &str,
        now: Timestamp,
    ) -> Result<Wake, ReconcileError> {
        let key = Key::new(kind, name_of(kind, name));
        for _ in 0..30 {
            match controller.reconcile(&key, now).await {
                Ok(Wake::Now) => {}
                Ok(wake) => return Ok(wake),
                Err(ReconcileFailure::Itself(error)) => return Err(error),
                Err(stopped) => panic!("{stopped:?}"),
            }
        }
        panic!("{key} is never done");
    }
}

fn name_of(kind: Kind, name: &str) -> ObjectName {
    let namespace = if kind.is_namespaced() { "web" } else { "" };
    ObjectName::new(namespace, name)
}

#[derive(Debug)]
struct FakeSession {
    ca: Arc<FakeCa>,
    url: Mutex<Option<String>>,
}

impl FakeSession {
    fn answer(&self, asked: String) -> Result<AccountReply, AcmeError> {
        self.ca.asked.lock().push(asked);
        let reply = self.ca.answers.lock().pop_front().expect("no answer is prepared")?;
        *self.url.lock() = Some(reply.url.clone());
        Ok(reply)
    }
}

#[async_trait]
impl Acme for FakeSession {
    async fn directory(&self) -> Result<Arc<Directory>, AcmeError> {
        Ok(Arc::default())
    }
    async fn register(&self, registration: &Registration) -> Result<AccountReply, AcmeError> {
        let bound = registration.external_account.as_ref().map(|e| format!(" as {}", e.key_id));
        self.answer(format!(
            "register {}{}",
            registration.contact.join(","),
            bound.unwrap_or_default()
        ))
    }
    async fn update_contact(&self, contact: &[String]) -> Result<AccountReply, AcmeError> {
        self.answer(format!("update {}", contact.join(",")))
    }
    async fn change_key(&self, _: &AccountKey) -> Result<(), AcmeError> {
        self.answer("change key".to_owned()).map(drop)
    }
    async fn create_order(&self, _: &NewOrder, _: Permit) -> Result<OrderReply, AcmeError> {
        panic!("this test CA knows accounts only")
    }
    async fn order(&self, _: &str) -> Result<OrderReply, AcmeError> {
        panic!("this test CA knows accounts only")
    }
    async fn authorization(&self, _: &str) -> Result<AuthorizationReply, AcmeError> {
        panic!("this test CA knows accounts only")
    }
    async fn accept(&self, _: &str) -> Result<ChallengeReply, AcmeError> {
        panic!("this test CA knows accounts only")
    }
    async fn finalize(&self, _: &str, _: &[u8]) -> Result<OrderReply, AcmeError> {
        panic!("this test CA knows accounts only")
    }
    async fn certificate(&self, _: &str) -> Result<CertificateChain, AcmeError> {
        panic!("this test CA knows accounts only")
    }
    fn thumbprint(&self) -> &'static str {
        "thumbprint"
    }
    fn account_url(&self) -> Option<String> {
        self.url.lock().clone()
    }
}
