//! Requests to a cluster, as messages name them.

use serde_json::Value;

use crate::model::{Key, Kind};
use crate::store::cluster_fault::within;
use crate::store::ids;

/// A request in the terms of a Role, for errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessRequest<'a> {
    /// Verb of a Role.
    pub verb: &'static str,
    /// The object, if the request is about one object.
    pub key: Option<&'a Key>,
    /// Plural and group, as in a Role.
    pub kind: RequestedResource<'a>,
    /// Namespace, empty for all.
    pub namespace: &'a str,
    /// Whether the request is about the status, which a Role names apart.
    pub status: bool,
    /// Beginning of the name that the server is to generate; empty if a name is given.
    generated: &'a str,
}

/// A kind of ours, or another resource, as `leases.coordination.k8s.io`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestedResource<'a> {
    /// A kind of ours.
    Kind(Kind),
    /// Another resource.
    Other(&'a str),
}

impl<'a> AccessRequest<'a> {
    /// Makes the request for one object.
    pub(crate) fn on(verb: &'static str, key: &'a Key) -> Self {
        Self { key: Some(key), ..Self::over(verb, key.kind, &key.name.namespace) }
    }

    /// Makes the request for the objects of a kind.
    pub(crate) fn over(verb: &'static str, kind: Kind, namespace: &'a str) -> Self {
        Self::about(verb, RequestedResource::Kind(kind), namespace)
    }

    /// Makes the request for another resource.
    pub(crate) fn other(verb: &'static str, resource: &'a str, namespace: &'a str) -> Self {
        Self::about(verb, RequestedResource::Other(resource), namespace)
    }

    fn about(verb: &'static str, kind: RequestedResource<'a>, namespace: &'a str) -> Self {
        Self { verb, key: None, kind, namespace, status: false, generated: "" }
    }

    /// Makes the request for the status of one object.
    pub(crate) fn on_status(verb: &'static str, key: &'a Key) -> Self {
        Self { status: true, ..Self::on(verb, key) }
    }

    /// Sets the object that the request makes; the server may have to generate the end of its name.
    pub(crate) fn making(self, object: &'a Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let generated = if text("name").is_empty() { text("generateName") } else { "" };
        Self { generated, ..self }
    }

    /// Key of the object as people may know it, if the request is about one object.
    pub(crate) fn named(&self) -> Option<Key> {
        let mut key = self.key?.clone();
        if key.name.name.is_empty() {
            key.name.name = format!("{}…", self.generated);
        }
        Some(key)
    }

    /// Returns the server's message in words that are equal at each try, without generated names.
    pub(crate) fn stable(&self, said: String) -> String {
        if self.generated.is_empty() { said } else { ids::without_draws(&said, self.generated) }
    }

    /// Plural and group, as `kubectl auth can-i` takes them, and the subresource.
    pub(crate) fn resource(&self) -> String {
        let status = if self.status { "/status" } else { "" };
        match self.kind {
            RequestedResource::Kind(kind) if kind.group().is_empty() => kind.plural(),
            RequestedResource::Kind(kind) => format!("{}.{}{status}", kind.plural(), kind.group()),
            RequestedResource::Other(resource) => resource.to_owned(),
        }
    }

    /// Namespace for a sentence; `None` for all namespaces.
    pub(crate) fn place(&self) -> Option<&str> {
        (!self.namespace.is_empty()).then_some(self.namespace)
    }

    /// Subject of the request, for a sentence.
    pub(crate) fn what(&self) -> String {
        match self.named() {
            Some(key) => key.to_string(),
            None => format!("{}{}", self.resource(), within(self.place())),
        }
    }
}
