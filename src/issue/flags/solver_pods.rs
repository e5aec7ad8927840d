//! What solver Pods in a cluster look like: cert-manager's flags of the same names.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::solvers::http01::cluster::ClusterSolver;
use crate::solvers::http01::cluster::options::{IMAGE, Options};
use crate::store::cluster::ClusterStore;

/// The heading of flags that mean nothing without a cluster.
pub const HEADING: &str = "Solver Pods in a cluster";

/// Flags about solver Pods.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = HEADING)]
pub struct SolverPodArgs {
    /// Image of the Pods that answer HTTP-01 challenges
    #[arg(long, hide_short_help = true, value_name = "IMAGE", default_value = IMAGE)]
    pub acme_http01_solver_image: String,
    /// CPU that such a Pod asks for
    ///
    /// A quantity of Kubernetes, such as 10m: a hundredth of a core.
    #[arg(long, hide_short_help = true, value_name = "QUANTITY", default_value = "10m")]
    pub acme_http01_solver_resource_request_cpu: String,
    /// Memory that such a Pod asks for
    ///
    /// A quantity of Kubernetes, such as 64Mi.
    #[arg(long, hide_short_help = true, value_name = "QUANTITY", default_value = "64Mi")]
    pub acme_http01_solver_resource_request_memory: String,
    /// CPU that such a Pod may use
    ///
    /// A quantity of Kubernetes, such as 100m: a tenth of a core.
    #[arg(long, hide_short_help = true, value_name = "QUANTITY", default_value = "100m")]
    pub acme_http01_solver_resource_limits_cpu: String,
    /// Memory that such a Pod may use
    ///
    /// A quantity of Kubernetes, such as 64Mi.
    #[arg(long, hide_short_help = true, value_name = "QUANTITY", default_value = "64Mi")]
    pub acme_http01_solver_resource_limits_memory: String,
    /// Whether such a Pod may not run as root
    ///
    /// A podTemplate with a securityContext replaces this.
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
    /// Runtime class of such Pods
    ///
    /// Without one the cluster's default runs them.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub acme_http01_solver_runtime_class_name: Option<String>,
    /// More labels for the objects that answer a challenge, repeatable
    ///
    /// They go on Pod, Service, Ingress and HTTPRoute, and do not replace those by which the objects are found.
    #[arg(long, hide_short_help = true, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = label)]
    pub acme_http01_solver_extra_labels: Vec<(String, String)>,
}

impl SolverPodArgs {
    /// What answers HTTP-01 in that cluster; nothing is asked of it yet. The objects of a rehearsal may stay until then, by
    /// the cluster's clock.
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

    /// The options that a command line means.
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
