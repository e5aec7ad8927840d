//! Accounts at CAs: `account` and its verbs. An account is named by the Issuer that uses it, which also says where its CA and its
//! key are; what the CA holds of it is asked by POST-as-GET, which changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::acme::{AccountKey, AcmeError, Clients, Session};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::look::LookArgs;
use crate::controllers::ReconcileError;
use crate::controllers::accounts::{Accounts, account_key, account_url, tls_of};
use crate::diagnosis::verdict::advice;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::engine;
use crate::hints::invocation;
use crate::input::{lookup, target};
use crate::model::issuer::AcmeIssuer;
use crate::model::{Issuer, Key, Kind, ObjectName, Problem, Secret};
use crate::permissions;
use crate::store::cluster::permissions::Permission;
use crate::store::local::Access;
use crate::store::resources::{Resources, typed};
use crate::store::{Store, events};

/// How long a CA has to answer: a person waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// How CAs are asked.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AskArgs {
    /// Resolver of look-ups [default: the system's]
    #[arg(long, value_name = "HOST:PORT")]
    pub dns: Option<String>,
}

/// Issuers and whom they speak with.
pub struct AccountDesk {
    pub(crate) store: Arc<dyn Store>,
    clients: Arc<Clients>,
    pub(crate) accounts: Accounts,
}

/// What is written beside the status of an Issuer, by the verbs of Roles.
#[derive(Clone, Copy, Debug, Default)]
pub struct WrittenParts {
    /// On the Issuer.
    pub issuer: &'static [&'static str],
    /// On the Secret of the account key.
    pub secret: &'static [&'static str],
    /// Whether Events tell of it.
    pub is_told: bool,
}

/// One Issuer with what its account is made of.
pub struct NamedAccount {
    /// The Issuer.
    pub issuer: Issuer,
    /// What it says of ACME.
    pub acme: AcmeIssuer,
    /// The Secret of the account key, where it is there.
    pub secret: Option<Secret>,
}

impl AccountDesk {
    /// Opens the store.
    ///
    /// # Errors
    /// Fails when it cannot be opened, or a flag cannot be read.
    pub async fn open(args: &AskArgs, access: Access, context: &Context) -> Result<Self, Failure> {
        let look = LookArgs { dns: args.dns.clone(), ..LookArgs::default() };
        let fetcher = look.fetcher().await?;
        let store = context.store(access).await?;
        let clients = Arc::new(engine::clients(&fetcher.resolver));
        let namespace = &context.global.cluster_resource_namespace;
        let accounts =
            Accounts::new(&store, namespace, Accounts::connect_with(Arc::clone(&clients)));
        Ok(Self { store, clients, accounts })
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Every Issuer of ACME that a listing would show.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn all(&self, namespace: &str) -> Result<Vec<NamedAccount>, Failure> {
        let mut all = Vec::new();
        for kind in [Kind::ClusterIssuer, Kind::Issuer] {
            let issuers = Resources::<Issuer>::new(Arc::clone(&self.store), kind);
            all.extend(issuers.list(&target::scope(kind, Some(namespace))).await?);
        }
        let mut found = Vec::new();
        for issuer in all {
            if issuer.spec.acme.is_some() {
                found.push(self.read(issuer).await?);
            }
        }
        Ok(found)
    }

    /// The Issuer of a word: `NAME`, which may be a ClusterIssuer's where no Issuer has it, or `KIND/NAME`.
    ///
    /// # Errors
    /// Fails when there is none, or it has no account.
    pub async fn named(&self, word: &str, context: &Context) -> Result<NamedAccount, Failure> {
        let mut kinds = vec![Kind::Issuer, Kind::ClusterIssuer];
        if word.contains('/') {
            let (kind, _) = target::Targets::parse_one(&[word.to_owned()])?;
            if !kinds.contains(&kind) {
                let what = format!("\"{word}\" is no Issuer but a {kind}");
                return Err(Failure::usage(what).hint("an account is named by its Issuer"));
            }
            kinds = vec![kind];
        }
        let name = word.rsplit('/').next().unwrap_or(word);
        for kind in &kinds {
            let key = target::key(*kind, name, context.namespace());
            if let Some(record) = self.store.get(&key).await? {
                return self.read(typed(record)?).await;
            }
        }
        let key = target::key(kinds[0], name, context.namespace());
        Err(lookup::not_found(&self.store, &key).await?)
    }

    async fn read(&self, issuer: Issuer) -> Result<NamedAccount, Failure> {
        let account = NamedAccount::new(issuer, None)?;
        let name = &account.acme.private_key_secret_ref.name;
        let secret = self.accounts.secret(&account.issuer, name).await?;
        Ok(NamedAccount { secret, ..account })
    }

    /// Fails where somebody may not write down in a cluster what comes of it: what a CA has done cannot be taken back.
    ///
    /// # Errors
    /// Fails with all that is missing, before the CA was asked.
    pub async fn must_be_writable(
        &self,
        account: &NamedAccount,
        written: &WrittenParts,
        context: &Context,
    ) -> Result<(), Failure> {
        let key = account.key();
        let named = |verb: &'static str, kind, place: &str, name: &str| {
            let any = Permission::of_kind(verb, kind, place);
            // Names cannot be given for objects that are not there yet.
            if verb == "create" { any } else { any.named(name) }
        };
        let ObjectName { namespace, name } = &key.name;
        let mut wanted = BTreeSet::from([Permission::on("patch", &key).on_status()]);
        wanted.extend(written.issuer.iter().map(|verb| named(verb, key.kind, namespace, name)));
        let place = self.accounts.secret_namespace(&account.issuer);
        let secret = &account.acme.private_key_secret_ref.name;
        wanted.extend(written.secret.iter().map(|verb| named(verb, Kind::Secret, place, secret)));
        if written.is_told {
            let home = events::home(namespace);
            wanted.extend(["create", "patch"].map(|it| Permission::of_kind(it, Kind::Event, home)));
        }
        permissions::need(context, &wanted).await
    }

    /// Where the Secret of an account key is.
    pub(crate) fn secret_place(&self, account: &NamedAccount) -> String {
        let namespace = self.accounts.secret_namespace(&account.issuer);
        format!("{namespace}/{}", account.acme.private_key_secret_ref.name)
    }

    /// The key of an account.
    ///
    /// # Errors
    /// Fails when the Secret is not there, or holds none.
    pub fn key(&self, account: &NamedAccount) -> Result<AccountKey, Failure> {
        let named = account.key();
        let Some(secret) = &account.secret else {
            let place = self.secret_place(account);
            let what = format!("Secret {place} with the account key of {named} is not there");
            return Err(Failure::usage(what).about(&named).hint(by_copy(&named)));
        };
        account_key(&account.acme, secret).map_err(|why| {
            let what = format!("account key of {named}: {why}");
            Failure::usage(what).about(&named).hint(by_copy(&named))
        })
    }

    /// A session of an account with a key; `url` is its account, where that is known.
    ///
    /// # Errors
    /// Fails when the server cannot be a CA.
    pub fn session(
        &self,
        account: &NamedAccount,
        key: AccountKey,
        url: Option<String>,
    ) -> Result<Session, Failure> {
        let session = self.clients.session(&account.acme.server, &tls_of(&account.acme), key, url);
        session.map_err(|error| refused(error, account, "cannot ask"))
    }
}

impl NamedAccount {
    /// An Issuer with the Secret of its account key.
    ///
    /// # Errors
    /// Fails when it is of another type than ACME.
    pub fn new(issuer: Issuer, secret: Option<Secret>) -> Result<Self, Failure> {
        let key = Key::new(issuer.issuer_kind(), issuer.name());
        let Some(acme) = issuer.spec.acme.clone() else {
            let what = format!("{key} is of another type than acme: it has no account");
            let list = invocation::current().like_in(&key.name.namespace, "account show");
            return Err(Failure::usage(what).about(&key).hint(format!("those that have: {list}")));
        };
        Ok(Self { issuer, acme, secret })
    }

    /// Kind, namespace and name of the Issuer.
    pub fn key(&self) -> Key {
        Key::new(self.issuer.issuer_kind(), self.issuer.name())
    }

    /// URL of the account, where the status has it for this key.
    pub fn url(&self, key: &AccountKey) -> Option<String> {
        account_url(self.issuer.status.acme.as_ref()?, key)
    }
}

/// Waits for a CA, at most so long, and no longer than a person wants.
///
/// # Errors
/// Fails with what the CA says, when it says nothing, and when interrupted.
pub async fn ask<T>(
    asking: impl Future<Output = Result<T, AcmeError>>,
    account: &NamedAccount,
    what: &str,
    context: &Context,
) -> Result<T, Failure> {
    let late = || {
        let (server, seconds) = (&account.acme.server, PATIENCE.as_secs());
        let message =
            format!("{what} {}: {server} has not answered within {seconds} s", account.key());
        Failure::new(FailureKind::CaUnreachable, message).about(&account.key())
    };
    tokio::select! {
        answered = tokio::time::timeout(PATIENCE, asking) => match answered {
            Ok(answered) => answered.map_err(|error| {
                let has_other_key = is_unknown(&error);
                let failure = refused(error, account, what);
                if !has_other_key {
                    return failure;
                }
                let secret = &account.acme.private_key_secret_ref.name;
                let name = &account.issuer.metadata.name;
                let import = format!("account import {name} --key FILE --replace");
                let import = invocation::current().like_in(&account.issuer.metadata.namespace, &import);
                failure.hint(format!(
                    "Secret {secret} holds the key of no account there; {import} takes in the key of one"
                ))
            }),
            Err(_) => Err(late()),
        },
        kind = context.interrupted().wait() => Err(Failure::silent(kind)),
    }
}

/// How the account of an Issuer is found again by a copy of its key.
fn by_copy(issuer: &Key) -> String {
    let recover = format!("account recover {} --key FILE", issuer.name.name);
    let recover = invocation::current().like_in(&issuer.name.namespace, &recover);
    format!("{recover} finds the account again by a copy of its key")
}

/// What a CA refused.
pub fn refused(error: AcmeError, account: &NamedAccount, what: &str) -> Failure {
    failed(error.into(), account, what)
}

/// What came in the way of something about an account.
pub fn failed(error: ReconcileError, account: &NamedAccount, what: &str) -> Failure {
    let key = account.key();
    let step = advice::for_error(&error, &key);
    let kind = kind_of(&error);
    let mut failure = Failure::new(kind, format!("{what} {key}: {error}")).about(&key);
    if let ReconcileError::Acme(AcmeError::Refused { problem, .. }) = error {
        failure.facts.problem = Some(problem);
    }
    step.iter().fold(failure, Failure::step)
}

/// The sort of what came in the way: whatever a CA refuses to do with an account is about the account.
fn kind_of(error: &ReconcileError) -> FailureKind {
    let kind = FailureKind::of_error(error);
    let ReconcileError::Acme(AcmeError::Refused { problem, .. }) = error else { return kind };
    let is_of_certificate =
        matches!(problem.short_kind(), "alreadyRevoked" | "badRevocationReason");
    match kind {
        FailureKind::Usage | FailureKind::Unexpected if !is_of_certificate => FailureKind::Account,
        // Nobody does it there, and waiting changes nothing.
        FailureKind::CaUnreachable if problem.status == 501 => FailureKind::Account,
        kind => kind,
    }
}

/// Tells whether a CA has no account for a key (RFC 8555 §7.3.1).
pub fn is_unknown(error: &AcmeError) -> bool {
    error.problem().is_some_and(|problem: &Problem| problem.short_kind() == "accountDoesNotExist")
}
