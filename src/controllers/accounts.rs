//! Accounts: sessions with CAs, made on demand from the Issuer's key Secret.
//!
//! A program that needs the CA asks here; a restart resumes without waiting for an Issuer's reconcile.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::ReconcileError;
use super::per_issuer::PerIssuer;
use crate::acme::error::AcmeError;
use crate::acme::{AccountKey, Acme, Clients, TlsOptions};
use crate::model::common::is_true;
use crate::model::event::source;
use crate::model::issuer::{AcmeIssuer, AcmeIssuerStatus};
use crate::model::{Issuer, IssuerRef, Key, Kind, ObjectName, Secret};
use crate::reconcile::issuer::{self, Outcome};
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Default key in the account Secret, for an Issuer that names none.
const DEFAULT_KEY: &str = "tls.key";
/// Suffix for the new account key that is to replace the one in place.
pub(super) const NEXT_KEY_SUFFIX: &str = "next";

/// Time in which a second loss of an account means that the CA will not remember it.
const REREGISTRATION_PERIOD: SignedDuration = SignedDuration::from_secs(60);

/// Opens a session without a request: directory URL, TLS trust, account key, account URL if known.
pub type Connect = dyn Fn(&str, &TlsOptions, AccountKey, Option<String>) -> Result<Arc<dyn Acme>, AcmeError>
    + Send
    + Sync;

/// Sessions of all Issuers.
pub struct Accounts {
    issuers: Resources<Issuer>,
    cluster_issuers: Resources<Issuer>,
    secrets: Resources<Secret>,
    cluster_namespace: String,
    connect: Box<Connect>,
    sessions: PerIssuer<Arc<Opened>>,
    /// Accounts that a CA has forgotten.
    gone: PerIssuer<Gone>,
}

/// Account that was removed from an issuer's status, to be registered again.
#[derive(Clone)]
struct Gone {
    at: Timestamp,
    /// Revision of the issuer that still had it.
    revision: String,
}

/// Session, with its origin.
struct Opened {
    made_from: Origin,
    session: Arc<dyn Acme>,
}

/// Inputs of a session beside the account URL.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    server: String,
    tls: TlsOptions,
    /// UID and revision of the key Secret.
    secret: (String, String),
}

impl Accounts {
    /// Builds the registry; `cluster_namespace` holds the Secrets of ClusterIssuers.
    pub fn new(store: &Arc<dyn Store>, cluster_namespace: &str, connect: Box<Connect>) -> Self {
        Self {
            issuers: Resources::new(Arc::clone(store), Kind::Issuer).written_by(source::ISSUERS),
            cluster_issuers: Resources::new(Arc::clone(store), Kind::ClusterIssuer)
                .written_by(source::CLUSTER_ISSUERS),
            secrets: Resources::new(Arc::clone(store), Kind::Secret),
            cluster_namespace: cluster_namespace.to_owned(),
            connect,
            sessions: PerIssuer::default(),
            gone: PerIssuer::default(),
        }
    }

    /// Returns a function that opens sessions with real CAs.
    pub fn connect_with(clients: Arc<Clients>) -> Box<Connect> {
        Box::new(move |server, tls, key, account| {
            let session = clients.session(server, tls, key, account)?;
            Ok(Arc::new(session) as Arc<dyn Acme>)
        })
    }

    /// Finds the issuer that a reference in this namespace means.
    pub async fn find_issuer(
        &self,
        namespace: &str,
        reference: &IssuerRef,
    ) -> Result<Option<Issuer>, StoreError> {
        match reference.key(namespace) {
            Some(key) if key.kind == Kind::ClusterIssuer => {
                self.cluster_issuers.get(&key.name).await
            }
            Some(key) => self.issuers.get(&key.name).await,
            None => Ok(None),
        }
    }

    /// Returns the issuer that a reference in this namespace means.
    ///
    /// # Errors
    /// Fails if the issuer does not exist.
    pub async fn issuer(
        &self,
        namespace: &str,
        reference: &IssuerRef,
    ) -> Result<Issuer, ReconcileError> {
        let found = self.find_issuer(namespace, reference).await?;
        found.ok_or_else(|| {
            let (kind, name) = (reference.effective_kind(), &reference.name);
            ReconcileError::Missing(format!("error reading issuer: {kind} \"{name}\" not found"))
        })
    }

    /// Returns the issuers of a kind, written in the name of their controller.
    pub(super) fn issuers_of(&self, kind: Kind) -> &Resources<Issuer> {
        if kind == Kind::ClusterIssuer { &self.cluster_issuers } else { &self.issuers }
    }

    /// Returns the Secrets.
    pub(super) fn secrets(&self) -> &Resources<Secret> {
        &self.secrets
    }

    /// Returns the namespace of the Secrets of ClusterIssuers.
    pub fn cluster_namespace(&self) -> &str {
        &self.cluster_namespace
    }

    /// Returns the namespace of the Secrets of an issuer.
    pub fn secret_namespace<'a>(&'a self, issuer: &'a Issuer) -> &'a str {
        issuer.secret_namespace(&self.cluster_namespace)
    }

    /// Returns a Secret of an issuer.
    pub async fn secret(&self, issuer: &Issuer, name: &str) -> Result<Option<Secret>, StoreError> {
        self.secrets.get(&ObjectName::new(self.secret_namespace(issuer), name)).await
    }

    /// Returns the session of an issuer that has an account.
    ///
    /// # Errors
    /// Fails if the key or the account is missing; a change of the issuer or its Secret wakes the waiting objects.
    pub async fn session(&self, issuer: &Issuer) -> Result<Arc<dyn Acme>, ReconcileError> {
        let acme = acme_of(issuer)?;
        let name = &acme.private_key_secret_ref.name;
        let Some(secret) = self.secret(issuer, name).await? else {
            let place = ObjectName::new(self.secret_namespace(issuer), name);
            let message =
                format!("Secret {place} with the account key of {} not found", shown(issuer));
            return Err(ReconcileError::Missing(message));
        };
        // An Issuer made by cert-manager may be Ready without a URL; the account is then found by its key.
        let uri = issuer.status.acme.as_ref().map_or("", |account| &account.uri);
        if uri.is_empty() && !is_true(&issuer.status.conditions, "Ready") {
            return Err(ReconcileError::Missing(format!("{} has no account yet", shown(issuer))));
        }
        if is_being_changed(acme, &secret) {
            let what = format!("{} gets another account key just now", shown(issuer));
            return Err(ReconcileError::Missing(what));
        }
        self.open(issuer, &secret)
    }

    /// Opens a session of an issuer with the caller's key, for one use.
    ///
    /// # Errors
    /// Fails if the server URL cannot be that of a CA.
    pub fn open_with(
        &self,
        issuer: &Issuer,
        key: AccountKey,
        account: Option<String>,
    ) -> Result<Arc<dyn Acme>, ReconcileError> {
        let acme = acme_of(issuer)?;
        Ok((self.connect)(&acme.server, &tls_of(acme), key, account)?)
    }

    /// Returns the session of an issuer with the key in this Secret, whether or not the CA knows the key.
    ///
    /// # Errors
    /// Fails if there is no usable key in the Secret, or the server URL cannot be that of a CA.
    pub fn open(&self, issuer: &Issuer, secret: &Secret) -> Result<Arc<dyn Acme>, ReconcileError> {
        let acme = acme_of(issuer)?;
        let made_from = Origin {
            server: acme.server.clone(),
            tls: tls_of(acme),
            secret: (secret.metadata.uid.clone(), secret.metadata.resource_version.clone()),
        };
        let account = issuer.status.acme.clone().unwrap_or_default();
        let fits = |opened: &Arc<Opened>| {
            opened.made_from == made_from
                && (account.uri.is_empty()
                    || opened.session.account_url() == Some(account.uri.clone()))
        };
        let make = || {
            let key = account_key(acme, secret).map_err(|why| {
                ReconcileError::Missing(format!("account key of {}: {why}", shown(issuer)))
            })?;
            let url = account_url(&account, &key);
            let session = (self.connect)(&made_from.server, &made_from.tls, key, url)?;
            Ok::<_, ReconcileError>(Arc::new(Opened { made_from: made_from.clone(), session }))
        };
        let opened = self.sessions.get_or_make(issuer, fits, make)?;
        Ok(Arc::clone(&opened.session))
    }

    /// Forgets an issuer that is gone, with its account key.
    pub fn forget(&self, issuer: &Key) {
        self.sessions.forget(issuer);
        self.gone.forget(issuer);
    }

    /// Records that the CA has forgotten the account, so that it is registered again; returns whether that may help:
    /// not if it was registered again just before.
    ///
    /// # Errors
    /// Fails with a conflict if `issuer` is outdated: the refused account may have been removed already.
    pub async fn account_is_gone(
        &self,
        issuer: &Issuer,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let revision = &issuer.metadata.resource_version;
        let issuers = self.issuers_of(issuer.issuer_kind());
        let key = Key::new(issuer.issuer_kind(), issuer.name());
        self.sessions.forget(&key);
        let before = self.gone.get(issuer).map(|gone| (gone.at, gone.revision == *revision));
        let conflict = || Err(StoreError::Conflict { key: key.clone() });
        match before {
            // Other requests used the account while it was found to be gone.
            Some((_, true)) => return conflict(),
            Some((at, false)) if now.duration_since(at) < REREGISTRATION_PERIOD => {
                let found = issuers.get(&issuer.name()).await?;
                let is_current =
                    found.is_some_and(|found| found.metadata.resource_version == *revision);
                return if is_current { Ok(false) } else { conflict() };
            }
            _ => {}
        }
        let recorded = issuer::record(issuer, Outcome::AccountGone, Timestamp::default());
        issuers.replace_status(issuer, &recorded.status).await?;
        let gone = Gone { at: now, revision: revision.clone() };
        self.gone.insert(issuer, gone);
        Ok(true)
    }
}

/// Returns the key under which the account key is in its Secret.
pub fn key_in_secret(acme: &AcmeIssuer) -> String {
    let key = &acme.private_key_secret_ref.key;
    if key.is_empty() { DEFAULT_KEY.to_owned() } else { key.clone() }
}

/// Returns the Secret's key for a value beside the account key.
pub(super) fn beside(acme: &AcmeIssuer, word: &str) -> String {
    format!("{}.{word}", key_in_secret(acme))
}

/// Returns whether an account key is to be replaced by a new one that stands beside it.
pub fn is_being_changed(acme: &AcmeIssuer, secret: &Secret) -> bool {
    secret.value(&beside(acme, NEXT_KEY_SUFFIX)).is_some()
}

/// Reads the account key from its Secret.
///
/// # Errors
/// Fails with a reason that contains no part of the key.
pub fn account_key(acme: &AcmeIssuer, secret: &Secret) -> Result<AccountKey, String> {
    let key = key_in_secret(acme);
    let Some(pem) = secret.value(&key) else {
        return Err(format!("no data for \"{key}\" in secret '{}'", secret.metadata.object_name()));
    };
    AccountKey::from_pem(pem).map_err(|error| error.to_string())
}

/// Returns the account URL in the status, if the status is about this key.
pub fn account_url(account: &AcmeIssuerStatus, key: &AccountKey) -> Option<String> {
    let known = !account.uri.is_empty() && account.last_private_key_hash == key.hash();
    known.then(|| account.uri.clone())
}

/// Returns the TLS options for the CA of an issuer.
pub fn tls_of(acme: &AcmeIssuer) -> TlsOptions {
    TlsOptions { ca_bundle: acme.ca_bundle.0.clone(), skip_verify: acme.skip_tls_verify }
}

/// Returns the ACME part of an issuer.
///
/// # Errors
/// Fails if the issuer has none.
pub(super) fn acme_of(issuer: &Issuer) -> Result<&AcmeIssuer, ReconcileError> {
    let acme = issuer.spec.acme.as_ref();
    acme.ok_or_else(|| ReconcileError::Missing(format!("{} is not of type acme", shown(issuer))))
}

/// Returns kind and name of an issuer, for messages.
pub(super) fn shown(issuer: &Issuer) -> String {
    format!("{} {}", issuer.issuer_kind(), issuer.name())
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Accounts({} sessions)", self.sessions.count())
    }
}
