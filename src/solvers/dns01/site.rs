//! Surroundings of a provider beyond its own fields: Secrets, zones, webhooks, and permissions.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use zeroize::Zeroizing;

use super::Connection;
use crate::dns::{FindZone, LookupError, Resolve};
use crate::model::cause::Symptom;
use crate::model::{Secret, SecretKeySelector};
use crate::solvers::SolveError;
use crate::solvers::remedy::Remedy;

/// Source of the Secrets that solvers name.
#[async_trait]
pub trait Credentials: fmt::Debug + Send + Sync {
    /// Returns a Secret, if the Secret exists.
    ///
    /// # Errors
    /// Fails if the Secret cannot be read, for example without the permission.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, SolveError>;

    /// Returns a token for a service account with these audiences (Kubernetes TokenRequest), valid for ten minutes.
    ///
    /// # Errors
    /// Fails without a cluster, and if the API server refuses.
    async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        audiences: &[String],
    ) -> Result<Zeroizing<String>, SolveError>;
}

/// Surroundings with which every provider is built, beside its own fields.
#[derive(Debug)]
pub struct Site<'a> {
    /// Namespace of the Secrets: the Issuer's namespace, or the namespace of cluster resources for ClusterIssuers.
    pub namespace: &'a str,
    /// Source of the Secrets.
    pub credentials: &'a dyn Credentials,
    /// Whether credentials from around the process may be used: environment, metadata services, workload identity.
    pub ambient: bool,
    /// Finder of zones, by the solver's own name servers if the solver has any.
    pub zones: &'a Arc<dyn FindZone>,
    /// Resolver for hosts of APIs and name servers.
    pub resolver: &'a Arc<dyn Resolve>,
    /// Client of webhooks.
    pub webhooks: &'a Arc<dyn Webhooks>,
    /// Whether programs may be run.
    pub hooks: Hooks,
    /// Whether a provider's first answer counts, although the provider asks for patience.
    pub impatient: bool,
}

impl Site<'_> {
    /// Returns the connection to providers.
    pub(super) fn connection(&self) -> Connection {
        let connection = Connection::new(self.resolver);
        if self.impatient { connection.impatient() } else { connection }
    }

    /// Returns the value of a key of a Secret.
    ///
    /// # Errors
    /// Fails if the Secret or the key is not there, or the value is not text; the error names both.
    pub async fn secret(
        &self,
        selector: &SecretKeySelector,
    ) -> Result<Zeroizing<String>, SolveError> {
        let SecretKeySelector { name, key } = selector;
        let namespace = self.namespace;
        let missing = |why: String, hint: String| {
            SolveError::lasting(format!("cannot read the credentials in Secret \"{name}\""), why)
                .advised(hint)
        };
        let Some(secret) = self.credentials.secret(namespace, name).await? else {
            let why = format!("secrets \"{name}\" not found in namespace \"{namespace}\"");
            let hint = format!("create the Secret {name} in {namespace}, with the key \"{key}\"");
            return Err(missing(why, hint));
        };
        let Some(value) = secret.value(key) else {
            let keys: Vec<&str> =
                secret.data.keys().chain(secret.string_data.keys()).map(String::as_str).collect();
            let why = format!("it has no key \"{key}\"");
            let hint = match keys.as_slice() {
                [] => format!("add the key \"{key}\" to the Secret; it is empty"),
                _ => format!(
                    "add the key \"{key}\", or name one of those it has: {}",
                    keys.join(", ")
                ),
            };
            return Err(missing(why, hint));
        };
        match String::from_utf8(value.to_vec()) {
            Ok(text) => Ok(Zeroizing::new(text)),
            Err(error) => {
                drop(Zeroizing::new(error.into_bytes()));
                let hint = "write it as text; `data` in a manifest is base64 of it".to_owned();
                Err(missing(format!("the value of \"{key}\" is not text"), hint))
            }
        }
    }
}

/// Builds the error of a solver that only another manifest can fix.
pub(crate) fn unusable(why: String) -> SolveError {
    let what = "cannot publish the record".to_owned();
    SolveError::lasting(what, why)
}

/// Whether programs that a manifest names may be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hooks {
    /// Programs may be run: a person has allowed them.
    Allowed,
    /// No person has allowed programs.
    #[default]
    NotAllowed,
    /// Programs never run, because others write the manifests here.
    Never,
}

/// Client of webhooks: through an API server that knows the webhooks, or directly.
#[async_trait]
pub trait Webhooks: fmt::Debug + Send + Sync {
    /// Posts a payload to a solver of a group, and returns the payload of the answer.
    ///
    /// # Errors
    /// Fails if the solver cannot be reached, or answers without a payload.
    async fn call(&self, group: &str, solver: &str, payload: &Value) -> Result<Value, SolveError>;
}

/// Returns the absolute name of the zone, with the final dot. The error for a missing zone has the words of the self-check.
pub(super) async fn zone_of(zones: &dyn FindZone, name: &str) -> Result<String, SolveError> {
    zones.zone_of(name).await.map_err(|error| {
        let symptom = error.symptom().filter(|it| *it == Symptom::AliasLoop);
        let symptom = symptom.unwrap_or(Symptom::NotDelegated);
        let what = format!("Could not determine the zone for \"{name}\"");
        // If resolvers answer and know no zone, nothing changes by itself; a resolver that fails or is silent may be back soon.
        let needs_person =
            matches!(error, LookupError::NoZone { .. } | LookupError::AliasLoop { .. });
        SolveError::new(what, error.to_string(), needs_person).advised(Remedy::Zone(symptom))
    })
}
