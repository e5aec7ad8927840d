//! Issuers: the Secrets that they name, and the directories of their CAs.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};

use super::investigator::{Investigator, MAX_CONCURRENT, unseen};
use super::patience::no_answer;
use crate::acme::Directory;
use crate::acme::error::{AcmeError, Fault};
use crate::context::failure::Failure;
use crate::controllers::account_secrets::mac_key;
use crate::controllers::accounts::{account_key, is_being_changed, key_in_secret, tls_of};
use crate::diagnosis::case::Unobserved;
use crate::diagnosis::case::issuer::{
    DirectoryAnswer, DirectoryCase, IssuerCase, SecretCase, SecretState, SecretUse,
};
use crate::diagnosis::verdict::near_issuer::near_issuers;
use crate::input::lookup;
use crate::model::issuer::AcmeIssuer;
use crate::model::{Issuer, Key, Kind, ObjectName, Secret, SecretKeySelector};
use crate::store::Store;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::{Resources, typed};

/// Namespace in which Helm installs cert-manager, and of the Secrets of ClusterIssuers.
const CERT_MANAGER_NAMESPACE: &str = "cert-manager";
/// Namespace of objects that were created without naming one.
const DEFAULT_NAMESPACE: &str = "default";

impl Investigator {
    pub(super) async fn issuers(
        &self,
        store: &Arc<dyn Store>,
        keys: BTreeSet<Key>,
        unseen: &mut Vec<Unobserved>,
    ) -> Result<Vec<IssuerCase>, Failure> {
        let read = keys.into_iter().map(|key| async {
            let mut missed = Vec::new();
            let issuer = self.issuer(store, key, &mut missed).await?;
            Ok::<_, StoreError>((issuer, missed))
        });
        let mut read = stream::iter(read).buffered(MAX_CONCURRENT);
        let mut all = Vec::new();
        while let Some(one) = read.next().await {
            let (issuer, missed) = one?;
            all.push(issuer);
            unseen.extend(missed);
        }
        Ok(all)
    }

    async fn issuer(
        &self,
        store: &Arc<dyn Store>,
        key: Key,
        missed: &mut Vec<Unobserved>,
    ) -> Result<IssuerCase, StoreError> {
        let record = match store.get(&key).await {
            Ok(record) => record,
            Err(error) if error.lacks_permission() => {
                missed.push(unseen(key.to_string(), &error));
                return Ok(IssuerCase { is_known: false, ..IssuerCase::of(key, None) });
            }
            Err(error) => return Err(error),
        };
        let Some(issuer) = record.map(typed::<Issuer>).transpose()? else {
            let near = near_issuers(&key, &lookup::issuers(store).await?);
            return Ok(IssuerCase { near, ..IssuerCase::of(key, None) });
        };
        let mut secrets = Vec::new();
        if let Some(acme) = &issuer.spec.acme {
            let namespace = issuer.secret_namespace(&self.cluster_resource_namespace);
            for (purpose, selector) in named_secrets(acme) {
                match self.secret(store, acme, (purpose, &selector), namespace).await {
                    Ok(secret) => secrets.push(secret),
                    Err(error) => {
                        let what = format!("Secret {namespace}/{} of {key}", selector.name);
                        missed.push(unseen(what, &error));
                    }
                }
            }
        }
        Ok(IssuerCase { secrets, ..IssuerCase::of(key, Some(issuer)) })
    }

    async fn secret(
        &self,
        store: &Arc<dyn Store>,
        acme: &AcmeIssuer,
        (purpose, selector): (SecretUse, &SecretKeySelector),
        namespace: &str,
    ) -> Result<SecretCase, StoreError> {
        let name = ObjectName::new(namespace, &selector.name);
        let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
        let secret = secrets.get(&name).await?;
        let entry = match purpose {
            SecretUse::AccountKey => key_in_secret(acme),
            SecretUse::Binding | SecretUse::Provider => selector.key.clone(),
        };
        let elsewhere = if secret.is_some() {
            Vec::new()
        } else {
            let places = [
                self.cluster_resource_namespace.as_str(),
                CERT_MANAGER_NAMESPACE,
                DEFAULT_NAMESPACE,
            ];
            find_elsewhere(store, &name, &places).await?
        };
        let state = secret.map_or(SecretState::Missing, |secret| {
            judge_secret(acme, (purpose, selector), &entry, &secret, namespace)
        });
        Ok(SecretCase { purpose, name, entry, state, elsewhere })
    }

    pub(super) async fn directory(&self, acme: &AcmeIssuer) -> DirectoryCase {
        let tls = tls_of(acme);
        let asked = self.outside(self.clients.directory(&acme.server, &tls)).await;
        let answer = match asked {
            Ok(Ok(directory)) => describe_directory(&directory),
            Ok(Err(error)) => describe_fault(&error),
            Err(_) => DirectoryAnswer::Unreachable(no_answer()),
        };
        DirectoryCase { url: acme.server.clone(), at: self.now, answer }
    }
}

fn describe_directory(directory: &Directory) -> DirectoryAnswer {
    DirectoryAnswer::Directory {
        profiles: directory.profiles.keys().cloned().collect(),
        caa_identities: directory.caa_identities.clone(),
        external_account_required: directory.external_account_required,
        new_account: directory.new_account.clone(),
    }
}

fn describe_fault(error: &AcmeError) -> DirectoryAnswer {
    match error {
        AcmeError::Refused { problem, .. } => DirectoryAnswer::Refused((**problem).clone()),
        AcmeError::NotAcme { .. }
        | AcmeError::NotOffered { .. }
        | AcmeError::NotYet { .. }
        | AcmeError::Protocol { .. } => DirectoryAnswer::NotAcme(error.to_string()),
        AcmeError::Transport { fault, why, .. } => match fault {
            Fault::Untrusted => DirectoryAnswer::Untrusted(why.clone()),
            Fault::NoSuchHost => DirectoryAnswer::NoSuchHost(why.clone()),
            Fault::Unusable => DirectoryAnswer::NotAcme(why.clone()),
            Fault::Lookup => DirectoryAnswer::Lookup(why.clone()),
            Fault::Passing => DirectoryAnswer::Unreachable(why.clone()),
        },
    }
}

/// Lists the Secrets that an issuer names, each with its purpose.
fn named_secrets(acme: &AcmeIssuer) -> Vec<(SecretUse, SecretKeySelector)> {
    let key = (SecretUse::AccountKey, acme.private_key_secret_ref.clone());
    let binding = acme.external_account_binding.iter();
    let binding = binding.map(|binding| (SecretUse::Binding, binding.key_secret_ref.clone()));
    let providers = acme.solvers.iter().filter_map(|solver| solver.dns01.as_ref());
    let providers = providers.flat_map(|dns01| dns01.secrets());
    let providers = providers.map(|selector| (SecretUse::Provider, selector));
    std::iter::once(key).chain(binding).chain(providers).collect()
}

fn judge_secret(
    acme: &AcmeIssuer,
    (purpose, selector): (SecretUse, &SecretKeySelector),
    entry: &str,
    secret: &Secret,
    namespace: &str,
) -> SecretState {
    let Some(value) = secret.value(entry) else {
        return SecretState::NoEntry(secret.data.keys().cloned().collect());
    };
    if value.trim_ascii().is_empty() {
        return SecretState::Empty;
    }
    match purpose {
        SecretUse::AccountKey => match account_key(acme, secret) {
            Ok(key) => SecretState::AccountKey {
                algorithm: key.algorithm().to_string(),
                thumbprint: key.thumbprint().to_owned(),
                is_being_changed: is_being_changed(acme, secret),
            },
            Err(why) => SecretState::Unusable(why),
        },
        SecretUse::Binding => match mac_key(Some(secret), selector, namespace) {
            Ok(_) => SecretState::Present,
            Err(why) => SecretState::Unusable(why),
        },
        SecretUse::Provider => SecretState::Present,
    }
}

/// Finds the other usual namespaces that have a Secret of that name.
async fn find_elsewhere(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    places: &[&str],
) -> Result<Vec<String>, StoreError> {
    let mut found: Vec<String> = Vec::new();
    for place in places.iter().filter(|place| **place != name.namespace) {
        let key = Key::new(Kind::Secret, ObjectName::new(*place, &name.name));
        let there = unless_forbidden(store.get(&key).await)?.flatten();
        if there.is_some() && !found.iter().any(|known| known == place) {
            found.push((*place).to_owned());
        }
    }
    Ok(found)
}
