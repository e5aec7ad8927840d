//! Global flags and the command tree; each command's own flags stand beside its behaviour.

use clap::{Parser, Subcommand};

use crate::commands::{ca, certificate, order, run};

/// ACME certificates from manifest to Secret, with nothing hidden
///
/// Reads cert-manager manifests (Issuer, ClusterIssuer, Certificate), drives Orders and Challenges on this machine, shows
/// what every challenge waits for, and says why one is stuck.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-acme",
    version,
    disable_help_subcommand = true,
    infer_long_args = false,
    max_term_width = 110
)]
pub struct Cli {
    /// Flags of every command
    #[command(flatten)]
    pub global: GlobalArgs,
    /// Command
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global flags")]
pub struct GlobalArgs {
    /// Keep resources on this machine, in DIR or in $XDG_STATE_HOME/kubectl-acme
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        env = "KUBECTL_ACME_LOCAL"
    )]
    pub local: Option<String>,
    /// Namespace of the objects
    #[arg(long, short, global = true, env = "KUBECTL_ACME_NAMESPACE")]
    pub namespace: Option<String>,
    /// Namespace of the Secrets that ClusterIssuers refer to
    #[arg(
        long,
        global = true,
        value_name = "NAMESPACE",
        default_value = "cert-manager",
        env = "KUBECTL_ACME_CLUSTER_RESOURCE_NAMESPACE"
    )]
    pub cluster_resource_namespace: String,
    /// When to use colour: auto, always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        env = "KUBECTL_ACME_COLOR"
    )]
    pub color: crate::print::colour::ColourChoice,
    /// What to log on stderr, such as debug or kubectl_acme=trace
    #[arg(long, global = true, value_name = "FILTER", env = "KUBECTL_ACME_LOG")]
    pub log: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Issue certificates from manifests, and look after their orders
    Order(Box<order::OrderArgs>),
    /// Look after issued certificates
    Certificate(certificate::CertificateArgs),
    /// Run the controllers until interrupted
    Run(Box<run::RunArgs>),
    /// Run a small ACME server that nobody trusts, for rehearsals and tests
    Ca(ca::CaArgs),
}
