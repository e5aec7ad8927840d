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
    /// The format that the command is to write, as its own flags say
    #[arg(skip)]
    pub format: Option<Format>,
    /// The reports that the command is to make, as its own flags say; nothing where it makes none
    #[arg(skip)]
    pub reports: Option<Vec<ReportChoice>>,
    /// Keep resources on this machine, in DIR
    ///
    /// Without DIR they are in $XDG_STATE_HOME/kubectl-acme, else in ~/.local/state/kubectl-acme.
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
    /// A key is a flag without its dashes; below the name of a command stand flags of that command alone. A flag that is
    /// typed wins, and so does its environment form.
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
    /// How much is said on stderr
    #[command(flatten)]
    pub log: LogArgs,
    /// Which cluster, and as whom
    #[command(flatten)]
    pub cluster: ClusterArgs,
}
