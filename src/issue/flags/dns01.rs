//! Flags for the publication of DNS-01 records.

use url::Url;

use crate::context::Context;
use crate::engine::dns01::ProviderMeans;
use crate::solvers::dns01::site::Hooks;
use crate::solvers::dns01::solver::Ambience;

/// Flags for the publication of DNS-01 records.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Challenges")]
pub struct Dns01Args {
    /// Whether ClusterIssuers may use credentials from around this process: environment, files, metadata services
    #[arg(
        long,
        hide_short_help = true,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub cluster_issuer_ambient_credentials: bool,
    /// Whether Issuers may use credentials from around this process, too
    #[arg(
        long,
        hide_short_help = true,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub issuer_ambient_credentials: bool,
    /// URL of the webhook solvers of a group, repeatable: called directly, not through an API server
    #[arg(long, hide_short_help = true, value_name = "GROUP=URL", value_delimiter = ',', value_parser = webhook)]
    pub dns01_webhook: Vec<(String, String)>,
    /// Run the programs that `exec` solvers name, with the rights of this process. With --local only
    #[arg(long, hide_short_help = true)]
    pub dns01_allow_exec: bool,
}

impl Dns01Args {
    /// Returns what providers reach by these flags: the webhooks that a flag names, and those that the cluster knows.
    pub fn reach(&self, context: &Context) -> ProviderMeans {
        let ambience = Ambience {
            cluster_issuers: self.cluster_issuer_ambient_credentials,
            issuers: self.issuer_ambient_credentials,
        };
        let usual = ProviderMeans::usual(context);
        let hooks = self.hooks(usual.is_in_cluster());
        usual.with(self.dns01_webhook.iter().cloned().collect(), ambience, hooks)
    }

    /// Returns whether programs may be run: never in a cluster, where other people write Issuers.
    pub fn hooks(&self, is_cluster: bool) -> Hooks {
        match (is_cluster, self.dns01_allow_exec) {
            (true, _) => Hooks::Never,
            (false, true) => Hooks::Allowed,
            (false, false) => Hooks::NotAllowed,
        }
    }
}

/// Reads a group and a URL.
fn webhook(text: &str) -> Result<(String, String), String> {
    let (group, url) = text.split_once('=').ok_or("must be GROUP=URL")?;
    let read = Url::parse(url).map_err(|error| format!("\"{url}\" is not a URL: {error}"))?;
    if !["http", "https"].contains(&read.scheme()) {
        return Err(format!("\"{url}\" is neither an http nor an https URL"));
    }
    Ok((group.to_owned(), url.to_owned()))
}
