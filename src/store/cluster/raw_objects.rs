//! Resources that are not ours, as raw JSON: what solvers make in a cluster.

use http::Method;
use serde_json::{Value, json};

use super::access_request::AccessRequest;
use super::wire::{Call, Wire};
use super::{ClusterStore, PAGE, refusal};
use crate::model::validation::object_name_fault;
use crate::store::error::StoreError;
use crate::store::manager::Manager;

/// A resource with namespaces that is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// `apiVersion` of its objects.
    pub api_version: &'static str,
    /// Their kind.
    pub kind: &'static str,
    /// Plural and group, as a Role names it: `ingresses.networking.k8s.io`.
    pub plural: &'static str,
}

/// The objects of such a resource in one namespace.
#[derive(Clone)]
pub struct Foreign {
    wire: Wire,
    resource: Resource,
    namespace: String,
    manager: Manager,
}

impl ClusterStore {
    /// The objects of a resource that is not ours, in one namespace, or to be listed only in all of them (an empty one);
    /// what is written is noted under that manager.
    pub fn foreign(&self, resource: Resource, namespace: &str, manager: Manager) -> Foreign {
        Foreign { wire: self.wire().clone(), resource, namespace: namespace.to_owned(), manager }
    }

    /// Names of the namespaces, as many as stand in one page.
    ///
    /// # Errors
    /// Fails when they cannot be listed.
    pub async fn namespaces(&self) -> Result<Vec<String>, StoreError> {
        let call = Call::new(Method::GET, "/api/v1/namespaces".to_owned()).with("limit", PAGE);
        let deed = AccessRequest::other("list", "namespaces", "");
        let list = self.wire().call(&deed, call).await?.body;
        let items = list["items"].as_array().into_iter().flatten();
        Ok(items.map(|namespace| text(namespace, "name").to_owned()).collect())
    }
}

impl ClusterStore {
    /// Names of the resources that a version of an API group serves; nothing where it serves none.
    ///
    /// # Errors
    /// Fails when the server does not tell, for example because what serves the group does not answer.
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

impl Foreign {
    /// Which resource it is.
    pub fn resource(&self) -> Resource {
        self.resource
    }

    /// Returns those with all of these labels, as the server holds them at this moment.
    pub async fn list(&self, labels: &[(String, String)]) -> Result<Vec<Value>, StoreError> {
        let selector: Vec<_> =
            labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.selected(selector.join(",")).await
    }

    /// Returns those with this label, whatever its value.
    pub async fn labelled(&self, label: &str) -> Result<Vec<Value>, StoreError> {
        self.selected(label.to_owned()).await
    }

    /// Returns those that fit both selectors, each in the server's own words; an empty one fits all. One page at most.
    ///
    /// # Errors
    /// Fails when they cannot be listed.
    pub async fn fitting(&self, labels: &str, fields: &str) -> Result<Vec<Value>, StoreError> {
        self.page(Call::new(Method::GET, self.path("")), labels, fields).await
    }

    /// The same, with their metadata alone.
    ///
    /// # Errors
    /// Fails when they cannot be listed.
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

    async fn selected(&self, selector: String) -> Result<Vec<Value>, StoreError> {
        self.items(Call::new(Method::GET, self.path("")).with("labelSelector", selector)).await
    }

    async fn items(&self, call: Call) -> Result<Vec<Value>, StoreError> {
        let mut list = self.wire.call(&self.deed("list"), call).await?.body;
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Returns one, if it is there; under a name that no object can have there is none.
    pub async fn get(&self, name: &str) -> Result<Option<Value>, StoreError> {
        if object_name_fault(name).is_some() {
            return Ok(None);
        }
        self.unless_gone("get", &Call::new(Method::GET, self.path(name))).await
    }

    /// Makes one and returns it with its name.
    pub async fn create(&self, object: &Value) -> Result<Value, StoreError> {
        let call = Call::new(Method::POST, self.path(""))
            .with("fieldManager", self.manager.name())
            .body("application/json", object);
        Ok(self.wire.call(&self.deed("create").making(object), call).await?.body)
    }

    /// Replaces one that was read before; returns false when somebody else wrote in between, or it is gone.
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

    /// Deletes exactly this object, not a namesake that took its place; one that is gone is fine.
    pub async fn delete(&self, object: &Value) -> Result<(), StoreError> {
        let options = json!({
            "propagationPolicy": "Background",
            "preconditions": {"uid": text(object, "uid")},
        });
        let call = Call::new(Method::DELETE, self.path(text(object, "name")))
            .body("application/json", &options);
        self.unless_gone("delete", &call).await.map(drop)
    }

    /// The answer; nothing when there is no such object, or another one of that name.
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
