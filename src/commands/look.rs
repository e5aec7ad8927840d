//! Looking at names as the CA would: flags shared by whoever looks.

use std::sync::Arc;

use super::failure::Failure;
use crate::dns::Resolve;
use crate::dns::lookup::{DirectResolver, SystemResolver, server_address};
use crate::fetch::{Fetcher, Overrides};

/// How names are looked at.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Looking at names")]
pub struct LookArgs {
    /// Where HOST really is (* for every host), for split DNS and tests; repeatable
    #[arg(long, value_name = "HOST=ADDR[:PORT]", value_delimiter = ',')]
    pub http01_resolve: Vec<String>,
    /// Resolver of every look-up [default: the system's]
    #[arg(long, value_name = "HOST:PORT")]
    pub dns: Option<String>,
}

impl LookArgs {
    /// What looks at names by these flags.
    ///
    /// # Errors
    /// Fails when a flag cannot be read, or the resolver's host has no address.
    pub async fn fetcher(&self) -> Result<Fetcher, Failure> {
        let system = SystemResolver::new();
        let resolver: Arc<dyn Resolve> = match &self.dns {
            None => Arc::new(system),
            Some(text) => {
                let server = server_address(text, &system)
                    .await
                    .map_err(|why| Failure::usage(format!("cannot use --dns {text}: {why}")))?;
                Arc::new(DirectResolver::new(server))
            }
        };
        let overrides = Overrides::parse(self.http01_resolve.iter().map(String::as_str))
            .map_err(|why| Failure::usage(format!("cannot use --http01-resolve: {why}")))?;
        Ok(Fetcher { resolver, overrides })
    }
}
