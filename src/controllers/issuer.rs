//! Issuers: gathers key and Secrets, registers the account, keeps what came of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use tokio::task::spawn_blocking;
use zeroize::Zeroizing;

use super::accounts::{self, Accounts};
use super::recorder::Recorder;
use super::{Controller, ReconcileError};
use crate::acme::{
    AccountKey, AccountReply, AcmeError, ExternalAccount, KeyAlgorithm, Registration, Retry,
};
use crate::model::issuer::AcmeIssuer;
use crate::model::memory::Holder;
use crate::model::{Blob, Issuer, Key, Kind, Metadata, ObjectName, Record, Secret};
use crate::reconcile::issuer::{self, Action, Deed, Observed, Outcome};
use crate::reconcile::{Refusal, Wake};
use crate::store::resources::Resources;
use crate::store::{Scope, StoreError};

/// Bits of an account key that we make: RSA, which cert-manager can use as well.
const BITS: u32 = 2048;

/// Registers accounts and keeps them registered.
#[derive(Debug)]
pub struct IssuerController {
    issuers: Resources<Issuer>,
    cluster_issuers: Resources<Issuer>,
    secrets: Resources<Secret>,
    accounts: Arc<Accounts>,
    recorder: Recorder,
    /// What the CA refused, by UID of the issuer: asking for just that again brings nothing.
    refused: Mutex<HashMap<String, Asked>>,
}

/// All that a registration depends on: generation of the issuer, revisions of its Secrets.
type Asked = (Option<i64>, Vec<String>);

/// What was gathered for one step.
struct Gathered {
    observed: Observed,
    key_secret: Option<Secret>,
    external_account: Option<ExternalAccount>,
    asked: Asked,
}

impl IssuerController {
    /// Puts the controller together.
    pub fn new(recorder: Recorder, accounts: Arc<Accounts>) -> Self {
        let store = recorder.store();
        Self {
            issuers: Resources::new(Arc::clone(store), Kind::Issuer),
            cluster_issuers: Resources::new(Arc::clone(store), Kind::ClusterIssuer),
            secrets: Resources::new(Arc::clone(store), Kind::Secret),
            accounts,
            recorder,
            refused: Mutex::default(),
        }
    }

    fn of_kind(&self, kind: Kind) -> &Resources<Issuer> {
        if kind == Kind::ClusterIssuer { &self.cluster_issuers } else { &self.issuers }
    }

    async fn gather(&self, issuer: &Issuer, acme: &AcmeIssuer) -> Result<Gathered, StoreError> {
        let name = &acme.private_key_secret_ref.name;
        let key_secret = self.accounts.secret(issuer, name).await?;
        let key = match &key_secret {
            None => issuer::AccountKey::Missing,
            Some(secret) => match accounts::account_key(acme, secret) {
                Ok(key) => issuer::AccountKey::Usable(key.hash()),
                Err(why) => issuer::AccountKey::Unusable(why),
            },
        };
        let mut revisions: Vec<String> = key_secret.iter().map(revision).collect();
        let mut secrets = BTreeMap::new();
        let named = acme.solvers.iter().filter_map(|solver| solver.dns01.as_ref());
        for selector in named.flat_map(|dns01| dns01.secrets()) {
            if let Some(secret) = self.accounts.secret(issuer, &selector.name).await? {
                let keys: BTreeSet<String> = secret.data.into_keys().collect();
                secrets.insert(selector.name.clone(), keys);
            }
        }
        let mut external_account = Ok(None);
        if let Some(binding) = &acme.external_account_binding {
            let secret = self.accounts.secret(issuer, &binding.key_secret_ref.name).await?;
            revisions.extend(secret.iter().map(revision));
            external_account =
                mac_key(secret.as_ref(), &binding.key_secret_ref.name, &binding.key_secret_ref.key)
                    .map(|mac_key| {
                        Some(ExternalAccount { key_id: binding.key_id.clone(), mac_key })
                    });
        }
        let asked = (issuer.metadata.generation, revisions);
        let known = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = known.get(&issuer.metadata.uid) == Some(&asked);
        drop(known);
        let (external_account, fault) = match external_account {
            Ok(account) => (account, Ok(())),
            Err(why) => (None, Err(why)),
        };
        let observed = Observed { key, external_account: fault, secrets, refused };
        Ok(Gathered { observed, key_secret, external_account, asked })
    }

    async fn generate_key(
        &self,
        issuer: &Issuer,
        acme: &AcmeIssuer,
    ) -> Result<Outcome, ReconcileError> {
        let unmade =
            |why: String| ReconcileError::Missing(format!("cannot make account key: {why}"));
        let pem = spawn_blocking(|| AccountKey::generate(KeyAlgorithm::Rsa(BITS))?.to_pem()).await;
        let pem = pem.map_err(|e| unmade(e.to_string()))?.map_err(|e| unmade(e.to_string()))?;
        let selector = &acme.private_key_secret_ref;
        let managed_by = ("app.kubernetes.io/managed-by".to_owned(), "cert-manager".to_owned());
        let secret = Secret {
            metadata: Metadata {
                name: selector.name.clone(),
                namespace: self.accounts.secret_namespace(issuer).to_owned(),
                labels: BTreeMap::from([managed_by]),
                ..Metadata::default()
            },
            secret_type: "Opaque".to_owned(),
            data: BTreeMap::from([(accounts::key_in_secret(acme), Blob(pem.as_bytes().to_vec()))]),
            ..Secret::default()
        };
        self.secrets.create(&secret).await?;
        Ok(Outcome::KeyStored)
    }

    async fn register(
        &self,
        issuer: &Issuer,
        gathered: &Gathered,
        contact: Vec<String>,
    ) -> Result<Result<AccountReply, AcmeError>, ReconcileError> {
        let Some(secret) = &gathered.key_secret else {
            return Err(ReconcileError::Missing("the account key is gone".to_owned()));
        };
        let session = self.accounts.open(issuer, secret)?;
        let external_account = gathered.external_account.clone();
        let registration = Registration { contact, external_account, only_return_existing: false };
        Ok(session.register(&registration).await)
    }

    /// Keeps an outcome; returns the error that the driver must hear of.
    async fn keep(
        &self,
        issuer: &Issuer,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<Wake, StoreError> {
        let recorded = issuer::record(issuer, outcome, now);
        let resources = self.of_kind(issuer.issuer_kind());
        self.recorder.keep(resources, issuer, Some(Holder::Issuer), recorded, now).await?;
        Ok(Wake::Now)
    }

    /// Keeps what a failed request leads to; a fault of transport is the driver's to try again.
    async fn failed(
        &self,
        issuer: &Issuer,
        deed: Deed,
        error: AcmeError,
        asked: Asked,
        now: Timestamp,
    ) -> Result<Wake, ReconcileError> {
        match (error.retry(), error) {
            (Retry::Never, AcmeError::Refused { problem, .. }) => {
                let uid = issuer.metadata.uid.clone();
                self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(uid, asked);
                let refusal = Refusal::Final(problem);
                Ok(self.keep(issuer, Outcome::Refused(deed, refusal), now).await?)
            }
            (Retry::At(at), AcmeError::Refused { problem, .. }) => {
                let refusal = Refusal::Until(problem, at);
                Ok(self.keep(issuer, Outcome::Refused(deed, refusal), now).await?)
            }
            (_, error) => {
                self.keep(issuer, Outcome::Unreachable(deed, error.to_string()), now).await?;
                Err(error.into())
            }
        }
    }
}

#[async_trait]
impl Controller for IssuerController {
    fn watches(&self) -> &'static [Kind] {
        &[Kind::Issuer, Kind::ClusterIssuer, Kind::Secret]
    }

    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        if changed.key.kind != Kind::Secret {
            return Ok(vec![changed.key.clone()]);
        }
        let ObjectName { namespace, name } = &changed.key.name;
        let mut issuers = self.issuers.list(&Scope::namespace(namespace)).await?;
        issuers.extend(self.cluster_issuers.list(&Scope::all()).await?);
        issuers.retain(|issuer| {
            self.accounts.secret_namespace(issuer) == namespace && names_secret(issuer, name)
        });
        Ok(issuers.iter().map(|issuer| Key::new(issuer.issuer_kind(), issuer.name())).collect())
    }

    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileError> {
        let Some(issuer) = self.of_kind(key.kind).get(&key.name).await? else {
            return Ok(Wake::OnChange);
        };
        let Some(acme) = &issuer.spec.acme else { return Ok(Wake::OnChange) };
        let gathered = self.gather(&issuer, acme).await?;
        let outcome = match issuer::next_action(&issuer, &gathered.observed, now) {
            Action::Wait(wake) => return Ok(wake),
            Action::Conclude(outcome) => outcome,
            Action::GenerateKey => self.generate_key(&issuer, acme).await?,
            Action::Register(contact) => match self.register(&issuer, &gathered, contact).await? {
                Ok(AccountReply { url, contact, .. }) => {
                    let issuer::AccountKey::Usable(key_hash) = gathered.observed.key else {
                        return Ok(Wake::Now);
                    };
                    Outcome::Registered { url, contact, key_hash }
                }
                Err(error) => {
                    let asked = gathered.asked;
                    return self.failed(&issuer, Deed::Register, error, asked, now).await;
                }
            },
            Action::UpdateContact(contact) => {
                let session = self.accounts.session(&issuer).await?;
                match session.update_contact(&contact).await {
                    Ok(_) => Outcome::ContactUpdated,
                    Err(error) => {
                        let asked = gathered.asked;
                        return self.failed(&issuer, Deed::UpdateContact, error, asked, now).await;
                    }
                }
            }
        };
        Ok(self.keep(&issuer, outcome, now).await?)
    }
}

fn revision(secret: &Secret) -> String {
    format!("{}/{}", secret.metadata.uid, secret.metadata.resource_version)
}

/// Tells whether an issuer refers to a Secret of that name.
fn names_secret(issuer: &Issuer, name: &str) -> bool {
    let Some(acme) = &issuer.spec.acme else { return false };
    let binding = acme.external_account_binding.iter().map(|binding| &binding.key_secret_ref);
    let solvers = acme.solvers.iter().filter_map(|solver| solver.dns01.as_ref());
    let solvers = solvers.flat_map(|dns01| dns01.secrets());
    let key = std::iter::once(&acme.private_key_secret_ref);
    key.chain(binding).chain(solvers).any(|selector| selector.name == name)
}

/// The MAC key of an external account binding: un-padded base64url text (RFC 8555 §7.3.4).
fn mac_key(secret: Option<&Secret>, name: &str, key: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    let secret = secret.ok_or_else(|| format!("secrets \"{name}\" not found"))?;
    let text = secret
        .value(key)
        .ok_or_else(|| format!("failed to find external account binding key data in Secret \"{name}\" at index \"{key}\""))?;
    let decoded = URL_SAFE_NO_PAD.decode(text.trim_ascii_end());
    decoded.map(Zeroizing::new).map_err(|_| {
        format!(
            "the external account binding key in Secret \"{name}\" is not un-padded base64url text"
        )
    })
}
