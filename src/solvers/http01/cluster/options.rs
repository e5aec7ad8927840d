//! Options of solver objects in a cluster.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Image of the solver, unless a flag names another image.
pub const IMAGE: &str = "quay.io/jetstack/cert-manager-acmesolver:v1.21.2";

/// Port on which a solver Pod listens.
pub(crate) const PORT: u16 = 8089;

/// Flags of solver objects (cert-manager's `--acme-http01-solver-…`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Image of solver Pods.
    pub image: String,
    /// CPU that a Pod asks for, as Kubernetes writes quantities.
    pub request_cpu: String,
    /// Memory that a Pod asks for.
    pub request_memory: String,
    /// CPU that a Pod may use.
    pub limit_cpu: String,
    /// Memory that a Pod may use.
    pub limit_memory: String,
    /// Whether a Pod may not run as root.
    pub run_as_non_root: bool,
    /// Runtime class of Pods.
    pub runtime_class_name: Option<String>,
    /// More labels for all solver objects.
    pub extra_labels: BTreeMap<String, String>,
    /// Time by the cluster's clock until which the objects of a rehearsal may stay. The Challenges
    /// of a rehearsal are not in the cluster: the objects carry a label in place of an owner.
    pub rehearsal: Option<Timestamp>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            image: IMAGE.to_owned(),
            request_cpu: "10m".to_owned(),
            request_memory: "64Mi".to_owned(),
            limit_cpu: "100m".to_owned(),
            limit_memory: "64Mi".to_owned(),
            run_as_non_root: true,
            runtime_class_name: None,
            extra_labels: BTreeMap::new(),
            rehearsal: None,
        }
    }
}
