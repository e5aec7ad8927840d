//! With what eyes this machine looks: the resolver and the detours of self-checks, and of our own CA.

use std::sync::Arc;

use super::failure::Failure;
use crate::dns::Resolve;
use crate::dns::lookup::{DirectResolver, SystemResolver, server_address};
use crate::fetch::{Fetcher, Overrides};

/// How answers are looked at.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Looking as the CA does")]
pub struct LookArgs {
    /// Where the self-check finds HOST (* for every host), repeatable
    #[arg(
        long,
        value_name = "HOST=ADDR[:PORT]",
        env = "KUBECTL_ACME_HTTP01_RESOLVE",
        value_delimiter = ','
    )]
    pub http01_resolve: Vec<String>,
    /// Resolver of every look-up of the self-check [default: the system's]
    #[arg(long, value_name = "HOST:PORT", env = "KUBECTL_ACME_DNS")]
    pub dns: Option<String>,
}

impl LookArgs {
    /// What self-checks and our own CA look with; both obey `--dns` and `--http01-resolve`.
    ///
    /// # Errors
    /// Fails when one of the two cannot be read, or the resolver's host has no address.
    pub async fn fetcher(&self) -> Result<Fetcher, Failure> {
        let overrides = Overrides::parse(self.http01_resolve.iter().map(String::as_str))
            .map_err(|why| Failure::usage(format!("cannot use --http01-resolve: {why}")))?;
        let system = SystemResolver::new();
        let Some(text) = &self.dns else {
            return Ok(Fetcher { resolver: Arc::new(system), overrides });
        };
        let server = server_address(text, &system)
            .await
            .map_err(|why| Failure::usage(format!("cannot use --dns {text}: {why}")))?;
        let resolver: Arc<dyn Resolve> = Arc::new(DirectResolver::new(server));
        Ok(Fetcher { resolver, overrides })
    }
}
