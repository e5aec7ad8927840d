//! Access of DNS-01 solvers to Secrets of the store, and to webhooks and service accounts of a cluster.

use std::sync::Arc;

use async_trait::async_trait;
use zeroize::Zeroizing;

use crate::model::validation::object_name_fault;
use crate::model::{Kind, ObjectName, Secret};
use crate::solvers::SolveError;
use crate::solvers::dns01::site::{Credentials, Webhooks};
use crate::solvers::dns01::webhook::path;
use crate::solvers::remedy::Remedy;
use crate::store::Store;
use crate::store::cluster::ClusterStore;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Secrets of a store, and the service accounts of the cluster, if there is one.
#[derive(Debug)]
pub struct StoreCredentials {
    secrets: Resources<Secret>,
    cluster: Option<ClusterStore>,
}

impl StoreCredentials {
    /// Builds the credentials over this store.
    pub fn new(store: &Arc<dyn Store>, cluster: Option<ClusterStore>) -> Self {
        Self { secrets: Resources::new(Arc::clone(store), Kind::Secret), cluster }
    }
}

#[async_trait]
impl Credentials for StoreCredentials {
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, SolveError> {
        let found = self.secrets.get(&ObjectName::new(namespace, name)).await;
        found.map_err(|error| fault(format!("cannot read Secret {namespace}/{name}"), &error))
    }

    async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        audiences: &[String],
    ) -> Result<Zeroizing<String>, SolveError> {
        let what = format!("cannot get a token of the service account {namespace}/{name}");
        if let Some(why) = object_name_fault(name) {
            return Err(SolveError::lasting(
                "cannot get a token of a service account",
                format!("serviceAccountRef.name is {name:?}, which is not a valid name: {why}"),
            )
            .advised("mend serviceAccountRef.name in the solver of the issuer"));
        }
        let Some(cluster) = &self.cluster else {
            return Err(SolveError::lasting(what, "there are service accounts only in a cluster")
                .advised("on this machine, name an access key in a Secret"));
        };
        let token = cluster.service_account_token(namespace, name, audiences).await;
        token.map_err(|error| fault(what, &error))
    }
}

/// Webhooks behind an API server.
#[derive(Debug)]
pub struct ClusterWebhooks(pub ClusterStore);

#[async_trait]
impl Webhooks for ClusterWebhooks {
    async fn call(
        &self,
        group: &str,
        solver: &str,
        payload: &serde_json::Value,
    ) -> Result<serde_json::Value, SolveError> {
        let resource = format!("{solver}.{group}");
        let called = self.0.create_at(&path(group, solver)?, &resource, payload).await;
        called.map_err(|error| {
            let what = format!("cannot call the webhook {solver} of {group}");
            fault(what, &error).advised(Remedy::WebhookService { group: group.to_owned() })
        })
    }
}

fn fault(what: String, error: &StoreError) -> SolveError {
    let needs_person = error.lacks_permission();
    SolveError::new(what, error.to_string(), needs_person)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::MemoryStore;

    #[tokio::test]
    async fn the_name_of_a_service_account_leads_nowhere_else() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let credentials = StoreCredentials::new(&store, None);
        for name in ["../../../secrets", "a/b", "a%2fb", "..", "a?dryRun=All", ""] {
            let error = credentials.service_account_token("web", name, &[]).await.unwrap_err();
            assert!(error.needs_person, "{name}");
            assert!(error.why.starts_with("serviceAccountRef.name is "), "{error}");
        }
    }
}
