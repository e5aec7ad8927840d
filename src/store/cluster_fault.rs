//! Faults between this program and a cluster. The text of a fault names verb, resource and place, and quotes the server.

use crate::model::cause::Guard;

/// Reason why a cluster could not be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClusterFault {
    /// There is neither a kubeconfig nor a Pod around us.
    #[error("no cluster is configured: {why}")]
    Unconfigured {
        /// Places where a configuration was looked for.
        why: String,
    },
    /// The kubeconfig cannot be used.
    #[error("cannot use the kubeconfig: {why}")]
    Configuration {
        /// File, entry and reason.
        why: String,
    },
    /// The client certificate is of a form that our TLS does not take.
    #[error(
        "cannot log in as {user}: its client certificate is an X.509 version 1 certificate, which TLS libraries \
         other than kubectl's refuse"
    )]
    OldCertificate {
        /// Entry of the kubeconfig.
        user: String,
    },
    /// The server does not know us, or not any more.
    #[error("cannot log in to {server}: {why}")]
    Credentials {
        /// URL.
        server: String,
        /// Reason.
        why: String,
    },
    /// The server shows a certificate of a CA that the kubeconfig does not name.
    #[error("cannot reach the cluster at {server}: {why}")]
    Untrusted {
        /// URL.
        server: String,
        /// Reason.
        why: String,
    },
    /// There is no answer.
    #[error("cannot reach the cluster at {server}: {why}")]
    Unreachable {
        /// URL.
        server: String,
        /// Reason.
        why: String,
    },
    /// A permission is missing.
    #[error("no permission to {verb} {resource}{}: {said}", within(namespace.as_deref()))]
    Forbidden {
        /// Verb of a Role.
        verb: &'static str,
        /// Resource and group of a Role.
        resource: String,
        /// Namespace; `None` for all namespaces, and for resources without one.
        namespace: Option<String>,
        /// The server's words.
        said: String,
    },
    /// The server has no such resource.
    #[error("the cluster at {server} does not serve {resource}: {why}")]
    Undefined {
        /// URL.
        server: String,
        /// Resource, group and version.
        resource: String,
        /// Reason: nothing of that group, or other versions only.
        why: String,
    },
    /// Another program than an API server answers at the server's URL.
    #[error("what answers at {server} is no Kubernetes API server: {why}")]
    Stranger {
        /// URL.
        server: String,
        /// Evidence for that.
        why: String,
    },
    /// The server has too much to do.
    #[error("the cluster at {server} is too busy to {verb} {what}: {said}")]
    Busy {
        /// URL.
        server: String,
        /// Verb of a Role.
        verb: &'static str,
        /// Object or resource.
        what: String,
        /// The server's words.
        said: String,
    },
    /// The server, or an admission webhook, does not take an object that is not ours.
    #[error("the cluster refuses to {verb} {what}: {said}")]
    Refused {
        /// Verb of a Role.
        verb: &'static str,
        /// Resource and namespace.
        what: String,
        /// Namespace, empty for all.
        namespace: String,
        /// The server's words.
        said: String,
        /// Guard of the cluster that refused, as far as the server's words show.
        guard: Option<Guard>,
        /// Whether an equal request may be taken later, with nothing changed but what others do.
        passes: bool,
    },
    /// The namespace of an object does not exist, or is being deleted.
    #[error("cannot write {what}: {} {namespace}", if *is_ending { "somebody has deleted namespace" } else { "there is no namespace" })]
    NoNamespace {
        /// The object.
        what: String,
        /// Namespace of the object.
        namespace: String,
        /// Whether the namespace is being deleted.
        is_ending: bool,
        /// Whether the object is the Lease, for which another namespace can be named.
        is_of_lease: bool,
    },
    /// The server failed, or a webhook of the server.
    #[error("the cluster at {server} could not {verb} {what}: {said}")]
    Failing {
        /// URL.
        server: String,
        /// Verb of a Role.
        verb: &'static str,
        /// Object or resource.
        what: String,
        /// The server's words.
        said: String,
    },
}

impl ClusterFault {
    /// Returns whether the server does not have the resource at all.
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined { .. })
    }

    /// Guard of the cluster that refused, if a guard did.
    pub fn guard(&self) -> Option<Guard> {
        match self {
            Self::Refused { guard, .. } => *guard,
            _ => None,
        }
    }

    /// Returns whether the fault may pass by itself.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::Untrusted { .. }
            | Self::Busy { .. }
            | Self::Failing { .. } => true,
            Self::Refused { passes, .. } => *passes,
            Self::Unconfigured { .. }
            | Self::Configuration { .. }
            | Self::OldCertificate { .. }
            | Self::Credentials { .. }
            | Self::Forbidden { .. }
            | Self::Undefined { .. }
            | Self::Stranger { .. }
            | Self::NoNamespace { .. } => false,
        }
    }
}

/// The namespace as the end of a sentence about a resource.
pub(crate) fn within(namespace: Option<&str>) -> String {
    namespace.map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default()
}
