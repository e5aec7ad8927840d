//! Resources that are not ours, as raw JSON: objects that solvers make in a cluster.

use http::Method;
use serde_json::{Value, json};

use super::access_request::AccessRequest;
use super::wire::{Call, Wire};
use super::{ClusterStore, PAGE, refusal};
use crate::model::validation::object_name_fault;
use crate::store::Manager;
use crate::store::error::StoreError;

/// A resource with namespaces that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// `apiVersion` of the objects.
    pub api_version: &'static str,
    /// Kind of the objects.
    pub kind: &'static str,
    /// Plural and group, as a Role names it: `ingresses.networking.k8s.io`.
    pub plural: &'static str,
}

/// Objects of such a resource in one namespace.
#[derive(Clone)]
pub struct RawObjects {
    wire: Wire,
    resource: Resource,
    namespace: String,
    manager: Manager,
}

impl ClusterStore {
    /// Objects of a resource that is not ours, in one namespace, or, for lists only, in all of them (an empty one);
    /// writes are noted under that manager.
    pub fn foreign(&self, resource: Resource, namespace: &str, manager: Manager) -> RawObjects {
        RawObjects { wire: self.wire().clone(), resource, namespace: namespace.to_owned(), manager }
    }

    /// Names of the namespaces, as many as one page holds.
    ///
    /// # Errors
    /// Fails if the namespaces cannot be listed.
    pub async fn namespaces(&self) -> Result<Vec<String>, StoreError> {
        let call = Call::new(Method::GET, "/api/v1/namespaces".to_owned()).with("limit", PAGE);
        let deed = AccessRequest::other("list", "namespaces", "");
        let list = self.wire().call(&deed, call).await?.body;
        let items = list["items"].as_array().into_iter().flatten();
        Ok(items.map(|namespace| text(namespace, "name").to_owned()).collect())
    }
}

impl ClusterStore {
    /// Names of the resources that a version of an API group serves; empty if it serves none.
    ///
    /// # Errors
    /// Fails if the server does not answer, for example because the backend of the group is silent.
    pub async fn served(&self, group: &str, version: &str) -> Result<Vec<String>, StoreError> {
        let resource = format!("resources of {group}/{version}");
        let deed = AccessRequest::other("discover", &resource, "");
        let call = Call::new(Method::GET, format!("/apis/{group}/{version}"));
        let list = match self.wire().answer(&deed, &call).await? {
            Ok(answer) => answer.body,
            Err(status) if status.code == 404 => return Ok(Vec::new()),
            Err(status) => return Err(refusal::refused(&self.wire().server, &deed, &status)),
        };
        let resources = list["resources"].as_array().into_iter().flatten();
        Ok(resources.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect())
    }
}

impl RawObjects {
    /// Resource of the objects.
    pub fn resource(&self) -> Resource {
        self.resource
    }

    /// Lists the objects with all of these labels, as the server holds them at this moment.
    pub async fn list(&self, labels: &[(String, String)]) -> Result<Vec<Value>, StoreError> {
        let selector: Vec<_> =
            labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.list_by_selector(selector.join(",")).await
    }

    /// Lists the objects with this label, whatever its value.
    pub async fn labelled(&self, label: &str) -> Result<Vec<Value>, StoreError> {
        self.list_by_selector(label.to_owned()).await
    }

    /// Lists the objects that fit both selectors, in the server's syntax; an empty selector fits all. One page at most.
    ///
    /// # Errors
    /// Fails if the objects cannot be listed.
    pub async fn fitting(&self, labels: &str, fields: &str) -> Result<Vec<Value>, StoreError> {
        self.page(Call::new(Method::GET, self.path("")), labels, fields).await
    }

    /// Lists objects as [`Self::fitting`] does, with their metadata alone.
    ///
    /// # Errors
    /// Fails if the objects cannot be listed.
    pub async fn outlined(&self, labels: &str, fields: &str) -> Result<Vec<Value>, StoreError> {
        let call = Call::new(Method::GET, self.path("")).metadata_only();
        self.page(call, labels, fields).await
    }

    async fn page(&self, call: Call, labels: &str, fields: &str) -> Result<Vec<Value>, StoreError> {
        let mut call = call.with("limit", PAGE);
        for (name, selector) in [("labelSelector", labels), ("fieldSelector", fields)] {
            if !selector.is_empty() {
                call = call.with(name, selector);
            }
        }
        self.items(call).await
    }

    async fn list_by_selector(&self, selector: String) -> Result<Vec<Value>, StoreError> {
        self.items(Call::new(Method::GET, self.path("")).with("labelSelector", selector)).await
    }

    async fn items(&self, call: Call) -> Result<Vec<Value>, StoreError> {
        let mut list = self.wire.call(&self.deed("list"), call).await?.body;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns one object, if it is there; under a name that no object can have there is none.
    pub async fn get(&self, name: &str) -> Result<Option<Value>, StoreError> {
        if object_name_fault(name).is_some() {
            return Ok(None);
        }
        self.unless_gone("get", &Call::new(Method::GET, self.path(name))).await
    }

    /// Creates an object and returns it with its name.
    pub async fn create(&self, object: &Value) -> Result<Value, StoreError> {
        let call = Call::new(Method::POST, self.path(""))
            .with("fieldManager", self.manager.name())
            .body("application/json", object);
        Ok(self.wire.call(&self.deed("create").making(object), call).await?.body)
    }

    /// Replaces an object that was read before; returns `false` if another writer came in between, or it is gone.
    pub async fn replace(&self, object: &Value) -> Result<bool, StoreError> {
        let call = Call::new(Method::PUT, self.path(text(object, "name")))
            .with("fieldManager", self.manager.name())
            .body("application/json", object);
        let deed = self.deed("update");
        match self.wire.answer(&deed, &call).await? {
            Ok(_) => Ok(true),
            Err(status) if [404, 409].contains(&status.code) && status.details.is_some() => {
                Ok(false)
            }
            Err(status) => Err(refusal::refused(&self.wire.server, &deed, &status)),
        }
    }

    /// Deletes exactly this object, not a namesake that took its place; succeeds if the object is gone.
    pub async fn delete(&self, object: &Value) -> Result<(), StoreError> {
        let options = json!({
            "propagationPolicy": "Background",
            "preconditions": {"uid": text(object, "uid")},
        });
        let call = Call::new(Method::DELETE, self.path(text(object, "name")))
            .body("application/json", &options);
        self.unless_gone("delete", &call).await.map(drop)
    }

    /// Returns the answer; `None` if there is no such object, or another object of that name.
    async fn unless_gone(
        &self,
        verb: &'static str,
        call: &Call,
    ) -> Result<Option<Value>, StoreError> {
        let deed = self.deed(verb);
        match self.wire.answer(&deed, call).await? {
            Ok(answer) => Ok(Some(answer.body)),
            Err(status) if [404, 409].contains(&status.code) && status.details.is_some() => {
                Ok(None)
            }
            Err(status) => Err(refusal::refused(&self.wire.server, &deed, &status)),
        }
    }

    fn deed(&self, verb: &'static str) -> AccessRequest<'_> {
        AccessRequest::other(verb, self.resource.plural, &self.namespace)
    }

    fn path(&self, name: &str) -> String {
        let Resource { api_version, plural, .. } = self.resource;
        let root = if api_version.contains('/') { "/apis" } else { "/api" };
        let plural = plural.split('.').next().unwrap_or_default();
        let all = match self.namespace.as_str() {
            "" => format!("{root}/{api_version}/{plural}"),
            namespace => format!("{root}/{api_version}/namespaces/{namespace}/{plural}"),
        };
        if name.is_empty() { all } else { format!("{all}/{name}") }
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}
