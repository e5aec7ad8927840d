//! Objects that the server answers rather than stores: payloads of webhooks, tokens of service accounts.

use http::Method;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::ClusterStore;
use super::access_request::AccessRequest;
use super::wire::Call;
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;

/// Validity of a token, in seconds: the shortest that an API server gives.
const TOKEN_SECONDS: u32 = 600;

impl ClusterStore {
    /// Creates an object at a path, whichever server serves it; returns the answer. The resource is named as in a Role.
    ///
    /// # Errors
    /// Fails if the object is refused, or no server serves the path.
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

    /// Requests a token of a service account for these audiences (TokenRequest), valid for ten minutes.
    ///
    /// # Errors
    /// Fails if the token is refused.
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
            "spec": { "audiences": audiences, "expirationSeconds": TOKEN_SECONDS },
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
