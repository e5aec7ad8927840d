//! What was asked of a cluster, as messages name it.

use serde_json::Value;

use super::fault::within;
use crate::model::{Key, Kind};
use crate::store::ids;

/// What is asked for, in the words of a Role, for errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessRequest<'a> {
    /// Verb of a Role.
    pub verb: &'static str,
    /// The object, when it is about one.
    pub key: Option<&'a Key>,
    /// Plural and group, as in a Role.
    pub kind: What<'a>,
    /// Namespace, empty for all.
    pub namespace: &'a str,
    /// Whether it is about the status, which a Role names apart.
    pub status: bool,
    /// How the name begins that the server is to make up; empty where a name is given.
    generated: &'a str,
}

/// A kind of ours, or another resource, as `leases.coordination.k8s.io`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What<'a> {
    /// A kind of ours.
    Kind(Kind),
    /// Another resource.
    Other(&'a str),
}

impl<'a> AccessRequest<'a> {
    /// A deed on one object.
    pub(crate) fn on(verb: &'static str, key: &'a Key) -> Self {
        Self { key: Some(key), ..Self::over(verb, key.kind, &key.name.namespace) }
    }

    /// A deed on the objects of a kind.
    pub(crate) fn over(verb: &'static str, kind: Kind, namespace: &'a str) -> Self {
        Self::about(verb, What::Kind(kind), namespace)
    }

    /// A deed on another resource.
    pub(crate) fn other(verb: &'static str, resource: &'a str, namespace: &'a str) -> Self {
        Self::about(verb, What::Other(resource), namespace)
    }

    fn about(verb: &'static str, kind: What<'a>, namespace: &'a str) -> Self {
        Self { verb, key: None, kind, namespace, status: false, generated: "" }
    }

    /// The same on its status.
    pub(crate) fn on_status(verb: &'static str, key: &'a Key) -> Self {
        Self { status: true, ..Self::on(verb, key) }
    }

    /// The making of that object, whose name may be for the server to end.
    pub(crate) fn making(self, object: &'a Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let generated = if text("name").is_empty() { text("generateName") } else { "" };
        Self { generated, ..self }
    }

    /// The object as people may know it, when it is about one.
    pub(crate) fn named(&self) -> Option<Key> {
        let mut key = self.key?.clone();
        if key.name.name.is_empty() {
            key.name.name = format!("{}…", self.generated);
        }
        Some(key)
    }

    /// What the server says of it, in words that are the same at each try.
    pub(crate) fn stable(&self, said: String) -> String {
        if self.generated.is_empty() { said } else { ids::without_draws(&said, self.generated) }
    }

    /// Plural and group, as `kubectl auth can-i` takes them, and the subresource.
    pub(crate) fn resource(&self) -> String {
        let status = if self.status { "/status" } else { "" };
        match self.kind {
            What::Kind(kind) if kind.group().is_empty() => kind.plural(),
            What::Kind(kind) => format!("{}.{}{status}", kind.plural(), kind.group()),
            What::Other(resource) => resource.to_owned(),
        }
    }

    /// Where, for a sentence.
    pub(crate) fn place(&self) -> Option<&str> {
        (!self.namespace.is_empty()).then_some(self.namespace)
    }

    /// What it is about, for a sentence.
    pub(crate) fn what(&self) -> String {
        match self.named() {
            Some(key) => key.to_string(),
            None => format!("{}{}", self.resource(), within(self.place())),
        }
    }
}
