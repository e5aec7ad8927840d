//! What a provider works with beyond its own fields: Secrets, zones, webhooks, and what it may do.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use zeroize::Zeroizing;

use super::Connection;
use crate::dns::{FindZone, Resolve};
use crate::model::{Secret, SecretKeySelector};
use crate::solvers::SolveError;

/// Reads the Secrets that solvers name.
#[async_trait]
pub trait Credentials: fmt::Debug + Send + Sync {
    /// A Secret, if it is there.
    ///
    /// # Errors
    /// Fails when it cannot be told, such as for want of a permission.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, SolveError>;

    /// A token for a service account with these audiences (Kubernetes TokenRequest), valid for ten minutes.
    ///
    /// # Errors
    /// Fails where there is no cluster, and when the API server refuses.
    async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        audiences: &[String],
    ) -> Result<Zeroizing<String>, SolveError>;
}

/// What every provider is built with, beside its own fields.
#[derive(Debug)]
pub struct Site<'a> {
    /// Where the Secrets are: the Issuer's namespace, or that of cluster resources for ClusterIssuers.
    pub namespace: &'a str,
    /// Reads them.
    pub credentials: &'a dyn Credentials,
    /// Whether credentials from around the process may be used: environment, metadata services, workload identity.
    pub ambient: bool,
    /// Finds zones, by way of the solver's own name servers where it has any.
    pub zones: &'a Arc<dyn FindZone>,
    /// Looks up hosts of APIs and name servers.
    pub resolver: &'a Arc<dyn Resolve>,
    /// Calls webhooks.
    pub webhooks: &'a Arc<dyn Webhooks>,
    /// Whether programs may be run.
    pub hooks: Hooks,
    /// Whether a provider's first answer counts, although it asks for patience.
    pub impatient: bool,
}

impl Site<'_> {
    /// How providers are reached.
    pub(super) fn connection(&self) -> Connection {
        let connection = Connection::new(self.resolver);
        if self.impatient { connection.impatient() } else { connection }
    }

    /// The value of a key of a Secret.
    ///
    /// # Errors
    /// Fails when the Secret or the key is not there, or is not text; the error names both.
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

/// The error of a solver that only another manifest helps.
pub(crate) fn unusable(why: String) -> SolveError {
    let what = "cannot publish the record".to_owned();
    SolveError::lasting(what, why)
}

/// Whether programs that a manifest names may be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hooks {
    /// They may: a person has said so.
    Allowed,
    /// Nobody has said so.
    #[default]
    NotAllowed,
    /// Others write manifests here, whatever a person says.
    Never,
}

/// Calls webhooks: through an API server that knows them, or directly.
#[async_trait]
pub trait Webhooks: fmt::Debug + Send + Sync {
    /// Posts a payload to a solver of a group, and returns the payload that comes back.
    ///
    /// # Errors
    /// Fails when the solver cannot be reached, or answers with anything but a payload.
    async fn call(&self, group: &str, solver: &str, payload: &Value) -> Result<Value, SolveError>;
}
