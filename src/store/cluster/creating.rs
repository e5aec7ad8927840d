//! Objects that are answered rather than stored: payloads of webhooks, tokens of service accounts.

use http::Method;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::ClusterStore;
use super::access_request::AccessRequest;
use super::fault::ClusterFault;
use super::wire::Call;
use crate::store::error::StoreError;

/// How long a token is valid, in seconds: the shortest that an API server gives.
const TOKEN: u32 = 600;

impl ClusterStore {
    /// Creates an object at a path, whatever serves that, and returns the answer. The resource is named as in a Role.
    ///
    /// # Errors
    /// Fails when it is refused, or nobody serves it.
    pub async fn create_at(
        &self,
        path: &str,
        resource: &str,
        body: &Value,
    ) -> Result<Value, StoreError> {
        let call = Call::new(Method::POST, path.to_owned()).body("application/json", body);
        let deed = AccessRequest::other("create", resource, "");
        Ok(self.wire().call(&deed, call).await?.body)
    }

    /// A token of a service account for these audiences (TokenRequest), valid for ten minutes.
    ///
    /// # Errors
    /// Fails when it is refused.
    pub async fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        audiences: &[String],
    ) -> Result<Zeroizing<String>, StoreError> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "audiences": audiences, "expirationSeconds": TOKEN },
        });
        let call = Call::new(Method::POST, path).body("application/json", &body);
        let deed = AccessRequest::other("create", "serviceaccounts/token", namespace);
        let mut answer = self.wire().call(&deed, call).await?.body;
        match answer.pointer_mut("/status/token").map(Value::take) {
            Some(Value::String(token)) => Ok(Zeroizing::new(token)),
            _ => Err(ClusterFault::Unreachable {
                server: self.server().to_owned(),
                why: format!("its answer for {namespace}/{name} is no TokenRequest"),
            }
            .into()),
        }
    }
}
