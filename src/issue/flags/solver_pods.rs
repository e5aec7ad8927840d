//! Flags of solver Pods in a cluster, with cert-manager's names.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::solvers::http01::cluster::ClusterSolver;
use crate::solvers::http01::cluster::options::{IMAGE, Options};
use crate::store::cluster::ClusterStore;

/// Heading of flags that have no effect without a cluster.
pub const HEADING: &str = "Solver Pods in a cluster";

/// Flags about solver Pods.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
pub struct SolverPodArgs {
    /// Image of the Pods that answer HTTP-01 challenges
    #[arg(long, hide_short_help = true, value_name = "IMAGE", default_value = IMAGE)]
    pub acme_http01_solver_image: String,
    /// CPU request of solver Pods
    ///
    /// A quantity of Kubernetes, such as 10m: a hundredth of a core.
    #[arg(long, hide_short_help = true, value_name = "QUANTITY", default_value = "10m")]
    pub acme_http01_solver_resource_request_cpu: String,
    /// Memory request of solver Pods
    ///
    /// A quantity of Kubernetes, such as 64Mi.
    #[arg(long, hide_short_help = true, value_name = "QUANTITY", default_value = "64Mi")]
    pub acme_http01_solver_resource_request_memory: String,
    /// CPU limit of solver Pods
    ///
    /// A quantity of Kubernetes, such as 100m: a tenth of a core.
    #[arg(long, hide_short_help = true, value_name = "QUANTITY", default_value = "100m")]
    pub acme_http01_solver_resource_limits_cpu: String,
    /// Memory limit of solver Pods
    ///
    /// A quantity of Kubernetes, such as 64Mi.
    #[arg(long, hide_short_help = true, value_name = "QUANTITY", default_value = "64Mi")]
    pub acme_http01_solver_resource_limits_memory: String,
    /// Whether solver Pods must not run as root
    ///
    /// A podTemplate with a securityContext replaces this setting.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "BOOL",
        default_value_t = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub acme_http01_solver_run_as_non_root: bool,
    /// Runtime class of solver Pods
    ///
    /// Without this flag, the cluster's default runtime class applies.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub acme_http01_solver_runtime_class_name: Option<String>,
    /// More labels for the objects that answer a challenge, repeatable
    ///
    /// The labels go on Pod, Service, Ingress and HTTPRoute, and do not replace the labels by which the objects are found.
    #[arg(long, hide_short_help = true, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = label)]
    pub acme_http01_solver_extra_labels: Vec<(String, String)>,
}

impl SolverPodArgs {
    /// Builds the HTTP-01 solver of a cluster; no request is sent yet. The objects of a rehearsal may stay until
    /// `rehearsal`, by the cluster's clock.
    pub fn solver(&self, cluster: &ClusterStore, rehearsal: Option<Timestamp>) -> ClusterSolver {
        ClusterSolver::new(cluster.clone(), self.options(rehearsal))
    }

    fn options(&self, rehearsal: Option<Timestamp>) -> Options {
        Options {
            image: self.acme_http01_solver_image.clone(),
            request_cpu: self.acme_http01_solver_resource_request_cpu.clone(),
            request_memory: self.acme_http01_solver_resource_request_memory.clone(),
            limit_cpu: self.acme_http01_solver_resource_limits_cpu.clone(),
            limit_memory: self.acme_http01_solver_resource_limits_memory.clone(),
            run_as_non_root: self.acme_http01_solver_run_as_non_root,
            runtime_class_name: self.acme_http01_solver_runtime_class_name.clone(),
            extra_labels: BTreeMap::from_iter(self.acme_http01_solver_extra_labels.clone()),
            rehearsal,
        }
    }
}

/// Reads a label.
fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("\"{text}\" is not a label such as team=web")),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    /// Checks the options that a command line gives.
    fn check(flags: &[&str], expected: &Options) {
        let command = SolverPodArgs::augment_args(Command::new("test"));
        let matches = command.try_get_matches_from(["test"].iter().chain(flags)).unwrap();
        let args = SolverPodArgs::from_arg_matches(&matches).unwrap();
        assert_eq!(&args.options(None), expected, "{flags:?}");
    }

    #[test]
    fn flags_are_those_of_cert_manager() {
        check(&[], &Options::default());
        check(
            &["--acme-http01-solver-image=a/b:1", "--acme-http01-solver-run-as-non-root=false"],
            &Options { image: "a/b:1".to_owned(), run_as_non_root: false, ..Options::default() },
        );
        let labels = [("team", "web"), ("tier", "edge")];
        let extra_labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        check(
            &["--acme-http01-solver-extra-labels=team=web,tier=edge"],
            &Options { extra_labels, ..Options::default() },
        );
    }
}
