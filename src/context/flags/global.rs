//! Flags of every command.

use std::path::PathBuf;

use super::connection::ClusterArgs;
use super::log::LogArgs;
use super::report::ReportChoice;
use crate::print::format::Format;

/// Flags of every command.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global flags")]
pub struct GlobalArgs {
    /// Format of the command's output, from its own flags
    #[arg(skip)]
    pub format: Option<Format>,
    /// Reports that the command is to make, from its own flags; `None` for a command without reports
    #[arg(skip)]
    pub reports: Option<Vec<ReportChoice>>,
    /// Keep resources on this machine, in DIR
    ///
    /// Without DIR the resources are in $XDG_STATE_HOME/kubectl-acme, else in ~/.local/state/kubectl-acme.
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1"
    )]
    pub local: Option<String>,
    /// Namespace of the objects
    #[arg(long, short, global = true)]
    pub namespace: Option<String>,
    /// Namespace of the Secrets that ClusterIssuers refer to
    #[arg(
        long,
        global = true,
        value_name = "NAMESPACE",
        default_value = "cert-manager",
        hide_short_help = true
    )]
    pub cluster_resource_namespace: String,
    /// Flags that are always given, as YAML [default: $XDG_CONFIG_HOME/kubectl-acme/config.yaml]
    ///
    /// A key is a flag without its dashes; keys below the name of a command are flags of that command alone. Flags that are
    /// typed, and environment variables, override the file.
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub config: Option<PathBuf>,
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_short_help = true
    )]
    pub color: crate::print::colour::ColourChoice,
    /// Amount and form of output on stderr
    #[command(flatten)]
    pub log: LogArgs,
    /// Cluster and user
    #[command(flatten)]
    pub cluster: ClusterArgs,
}
