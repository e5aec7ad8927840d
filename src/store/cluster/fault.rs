//! What can be wrong between us and a cluster, and what to do about it.
//!
//! A fault names verb, resource and place, quotes the server, and says what to do.

use std::error::Error;

use kube::client::AuthError;

use super::login;
use super::server_messages::Guard;

/// How kube and its libraries begin what others say.
const LAYERS: [&str; 4] =
    ["ServiceError: ", "HyperError: ", "auth error: ", "client error (Connect)"];

/// Why a cluster could not be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClusterFault {
    /// There is neither a kubeconfig nor a Pod around us.
    #[error("no cluster is configured: {why}")]
    Unconfigured {
        /// Where it was looked for.
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
    /// The server does not know us, or no more.
    #[error("cannot log in to {server}: {why}")]
    Credentials {
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
    #[error("no permission to {verb} {resource}{place}: {said}")]
    Forbidden {
        /// Verb of a Role.
        verb: &'static str,
        /// Resource and group of a Role.
        resource: String,
        /// ` in namespace x`, or nothing.
        place: String,
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
        /// Nothing of that group, or other versions.
        why: String,
    },
    /// Somebody else answers at the server's URL.
    #[error("what answers at {server} is no Kubernetes API server: {why}")]
    Stranger {
        /// URL.
        server: String,
        /// By what we know.
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
        /// Whether the same may be taken later, with nothing changed but what others do.
        passes: bool,
    },
    /// The namespace of an object is not there, or not for long.
    #[error("cannot write {what}: {why}")]
    Namespace {
        /// The object.
        what: String,
        /// What is wrong with its namespace.
        why: String,
        /// What to do about it, one line each.
        hints: Vec<String>,
    },
    /// The server, or a webhook of it, failed.
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
    /// What to do next, one line each; `kubectl` is how kubectl is called for the same cluster, as the same user.
    pub fn hints(&self, kubectl: &str) -> Vec<String> {
        let hints: &[&str] = match self {
            Self::Unconfigured { .. } => &[
                "name a kubeconfig: --kubeconfig FILE, or KUBECONFIG",
                "or work without a cluster: --local keeps everything on this machine",
            ],
            Self::Configuration { .. } => {
                &["kubectl config get-contexts lists what there is; --context NAME chooses one"]
            }
            Self::OldCertificate { .. } => &[
                "issue it again as version 3: openssl x509 -req … -extfile FILE, where FILE says extendedKeyUsage = clientAuth",
            ],
            Self::Credentials { .. } => {
                return vec![format!(
                    "log in again as for kubectl, then see that {kubectl} auth whoami answers"
                )];
            }
            Self::Unreachable { why, .. } if why.contains("invalid peer certificate") => &[
                "compare certificate-authority-data of the kubeconfig with the CA of the cluster; kubectl would refuse it as well",
            ],
            Self::Unreachable { .. } => {
                return vec![format!(
                    "see that {kubectl} version answers with the same context; a VPN or a proxy may be missing"
                )];
            }
            Self::Forbidden { verb, resource, place, .. } => {
                // Only a ClusterRole is about objects without a namespace, and about those of all namespaces.
                let (role, namespace) = match place.strip_prefix(" in namespace ") {
                    Some(name) => ("Role", format!(" --namespace {name}")),
                    None => ("ClusterRole", " --all-namespaces".to_owned()),
                };
                let (resource, status) = match resource.strip_suffix("/status") {
                    Some(resource) => (resource, " --subresource status"),
                    None => (resource.as_str(), ""),
                };
                return vec![format!(
                    "ask for it in a {role}; {kubectl} auth can-i {verb} {resource}{status}{namespace} tells when it is there"
                )];
            }
            Self::Stranger { .. } => {
                return vec![format!(
                    "{kubectl} config view --minify shows the URL; is there a proxy that answers in the server's place?"
                )];
            }
            Self::Undefined { resource, .. } if resource.ends_with("gateway.networking.k8s.io") => {
                &[
                    "install the Gateway API's definitions, or answer by an Ingress: solvers[].http01.ingress",
                ]
            }
            Self::Undefined { .. } => &[
                "install cert-manager's definitions of version 1.0 or newer, or ours: kubectl acme crds | kubectl apply -f -",
            ],
            Self::Namespace { hints, .. } => return hints.clone(),
            Self::Refused { what, namespace, said, passes, .. } => {
                match Guard::of(said).or_else(|| passes.then_some(Guard::Unknown)) {
                    Some(guard) => return vec![guard.hint(what, namespace)],
                    None => &["change what it names; kubectl would be refused as well"],
                }
            }
            Self::Busy { .. } | Self::Failing { .. } => &["try again later"],
        };
        hints.iter().map(|hint| (*hint).to_owned()).collect()
    }

    /// Tells whether the server does not have the resource at all.
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined { .. })
    }

    /// Tells whether it may pass by itself.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Busy { .. } | Self::Failing { .. } => true,
            Self::Refused { passes, .. } => *passes,
            Self::Unconfigured { .. }
            | Self::Configuration { .. }
            | Self::OldCertificate { .. }
            | Self::Credentials { .. }
            | Self::Forbidden { .. }
            | Self::Undefined { .. }
            | Self::Stranger { .. }
            | Self::Namespace { .. } => false,
        }
    }
}

/// What it means that no answer came.
pub(super) fn unanswered(server: &str, error: &kube::Error) -> ClusterFault {
    let server = server.to_owned();
    match log_in(error) {
        Some(error) => {
            let why = login::plugin_fault(error, None).unwrap_or_else(|| chain(error));
            ClusterFault::Credentials { server, why }
        }
        None => ClusterFault::Unreachable { server, why: chain(error) },
    }
}

fn log_in(error: &kube::Error) -> Option<&AuthError> {
    let mut next: Option<&dyn Error> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

/// The words of an error and all its causes, without those that only repeat or name a library's layers.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        let words = LAYERS.iter().fold(text.as_str(), |text, layer| text.trim_start_matches(layer));
        let is_new = !told.iter().any(|before| before.contains(words));
        if is_new && !words.is_empty() {
            told.push(words.to_owned());
        }
        next = error.source();
    }
    told.join(": ")
}
