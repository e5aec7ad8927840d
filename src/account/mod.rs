//! Accounts at CAs: `account` and its verbs. The Issuer that uses an account names it, and says where the CA and the key
//! are; the CA's record of the account is read by POST-as-GET, which changes nothing.

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
use crate::hints::invocation;
use crate::input::{lookup, target};
use crate::model::issuer::AcmeIssuer;
use crate::model::{Issuer, Key, Kind, ObjectName, Problem, Secret};
use crate::store::cluster::permissions::Permission;
use crate::store::local::Access;
use crate::store::resources::{Resources, typed};
use crate::store::{Store, events};
use crate::{engine, permissions};

/// Longest wait for a CA's answer: a person waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Flags for requests to CAs.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AskArgs {
    /// Resolver for lookups [default: the system's]
    #[arg(long, value_name = "HOST:PORT")]
    pub dns: Option<String>,
}

/// Store of Issuers, and the clients of their CAs.
pub struct AccountClient {
    pub(crate) store: Arc<dyn Store>,
    clients: Arc<Clients>,
    pub(crate) accounts: Accounts,
}

/// Verbs of Roles that are needed for writes beside the status of an Issuer.
#[derive(Clone, Copy, Debug, Default)]
pub struct WrittenParts {
    /// Verbs on the Issuer.
    pub issuer: &'static [&'static str],
    /// Verbs on the Secret of the account key.
    pub secret: &'static [&'static str],
    /// Whether Events are written as well.
    pub is_told: bool,
}

/// Issuer with the parts of its account.
pub struct NamedAccount {
    /// The Issuer.
    pub issuer: Issuer,
    /// `spec.acme` of the Issuer.
    pub acme: AcmeIssuer,
    /// Secret of the account key, if it exists.
    pub secret: Option<Secret>,
}

impl AccountClient {
    /// Opens the store.
    ///
    /// # Errors
    /// Fails if the store cannot be opened, or a flag cannot be read.
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

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns every ACME Issuer of a namespace, and every ACME ClusterIssuer.
    ///
    /// # Errors
    /// Fails if the store fails.
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

    /// Returns the Issuer of a word: `NAME`, which may be a ClusterIssuer's if no Issuer has that name, or `KIND/NAME`.
    ///
    /// # Errors
    /// Fails if there is no such Issuer, or it has no account.
    pub async fn named(&self, word: &str, context: &Context) -> Result<NamedAccount, Failure> {
        let mut kinds = vec![Kind::Issuer, Kind::ClusterIssuer];
        if word.contains('/') {
            let (kind, _) = target::Targets::parse_one(&[word.to_owned()])?;
            if !kinds.contains(&kind) {
                let what = format!("\"{word}\" is no Issuer but a {kind}");
                return Err(Failure::usage(what).hint("name an account by its Issuer"));
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

    /// Checks that the result may be written in the cluster: a change at a CA cannot be undone.
    ///
    /// # Errors
    /// Fails with all missing permissions, before the CA is asked.
    pub async fn must_be_writable(
        &self,
        account: &NamedAccount,
        written: &WrittenParts,
        context: &Context,
    ) -> Result<(), Failure> {
        let key = account.key();
        let named = |verb: &'static str, kind, place: &str, name: &str| {
            let any = Permission::of_kind(verb, kind, place);
            // Permissions cannot name objects that do not exist yet.
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

    /// Returns the namespace and the name of the Secret of an account key.
    pub(crate) fn secret_place(&self, account: &NamedAccount) -> String {
        let namespace = self.accounts.secret_namespace(&account.issuer);
        format!("{namespace}/{}", account.acme.private_key_secret_ref.name)
    }

    /// Returns the key of an account.
    ///
    /// # Errors
    /// Fails if the Secret does not exist, or holds no key.
    pub fn key(&self, account: &NamedAccount) -> Result<AccountKey, Failure> {
        let named = account.key();
        let Some(secret) = &account.secret else {
            let place = self.secret_place(account);
            let what = format!("Secret {place} with the account key of {named} does not exist");
            return Err(Failure::usage(what).about(&named).hint(recover_hint(&named)));
        };
        account_key(&account.acme, secret).map_err(|why| {
            let what = format!("account key of {named}: {why}");
            Failure::usage(what).about(&named).hint(recover_hint(&named))
        })
    }

    /// Opens a session of an account with a key; `url` is that of the account, if known.
    ///
    /// # Errors
    /// Fails if the server cannot be a CA.
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
    /// Makes the account of an Issuer, with the Secret of its key.
    ///
    /// # Errors
    /// Fails if the Issuer is of another type than ACME.
    pub fn new(issuer: Issuer, secret: Option<Secret>) -> Result<Self, Failure> {
        let key = Key::new(issuer.issuer_kind(), issuer.name());
        let Some(acme) = issuer.spec.acme.clone() else {
            let what = format!("{key} is of another type than acme: it has no account");
            let list = invocation::current().like_in(&key.name.namespace, "account show");
            return Err(Failure::usage(what)
                .about(&key)
                .hint(format!("issuers with an account: {list}")));
        };
        Ok(Self { issuer, acme, secret })
    }

    /// Returns kind, namespace and name of the Issuer.
    pub fn key(&self) -> Key {
        Key::new(self.issuer.issuer_kind(), self.issuer.name())
    }

    /// Returns the URL of the account, if the status has a URL for this key.
    pub fn url(&self, key: &AccountKey) -> Option<String> {
        account_url(self.issuer.status.acme.as_ref()?, key)
    }
}

/// Waits for a CA's answer, up to the time limit or a signal.
///
/// # Errors
/// Fails with the CA's error, if the CA does not answer in time, and when interrupted.
pub async fn ask<T>(
    asking: impl Future<Output = Result<T, AcmeError>>,
    account: &NamedAccount,
    what: &str,
    context: &Context,
) -> Result<T, Failure> {
    let late = || {
        let (server, seconds) = (&account.acme.server, ANSWER_TIMEOUT.as_secs());
        let message =
            format!("{what} {}: {server} has not answered within {seconds} s", account.key());
        Failure::new(FailureKind::CaUnreachable, message).about(&account.key())
    };
    tokio::select! {
        answered = tokio::time::timeout(ANSWER_TIMEOUT, asking) => match answered {
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
                    "the CA has no account for the key in Secret {secret}; {import} imports the key of one"
                ))
            }),
            Err(_) => Err(late()),
        },
        kind = context.interrupted().wait() => Err(Failure::silent(kind)),
    }
}

/// Returns the hint for finding the account of an Issuer again by a copy of its key.
fn recover_hint(issuer: &Key) -> String {
    let recover = format!("account recover {} --key FILE", issuer.name.name);
    let recover = invocation::current().like_in(&issuer.name.namespace, &recover);
    format!("{recover} finds the account again by a copy of its key")
}

/// Makes the failure for a CA's refusal.
pub fn refused(error: AcmeError, account: &NamedAccount, what: &str) -> Failure {
    failed(error.into(), account, what)
}

/// Makes the failure for an error of work on an account.
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

/// Returns the kind of failure; a refusal by a CA of work on an account is about the account.
fn kind_of(error: &ReconcileError) -> FailureKind {
    let kind = FailureKind::of_error(error);
    let ReconcileError::Acme(AcmeError::Refused { problem, .. }) = error else { return kind };
    let is_of_certificate =
        matches!(problem.short_kind(), "alreadyRevoked" | "badRevocationReason");
    match kind {
        FailureKind::Usage | FailureKind::Unexpected if !is_of_certificate => FailureKind::Account,
        // The CA does not implement the request, and waiting changes nothing.
        FailureKind::CaUnreachable if problem.status == 501 => FailureKind::Account,
        kind => kind,
    }
}

/// Returns whether a CA has no account for a key (RFC 8555 §7.3.1).
pub fn is_unknown(error: &AcmeError) -> bool {
    error.problem().is_some_and(|problem: &Problem| problem.short_kind() == "accountDoesNotExist")
}
