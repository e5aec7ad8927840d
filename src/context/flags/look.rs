//! Flags of the commands that probe names as the CA would.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::context::failure::Failure;
use crate::dns::Resolve;
use crate::dns::lookup::{DirectResolver, SystemResolver, server_addresses};
use crate::dns::server::{self, Server};
use crate::dns::zone::{Trust, Zones};
use crate::fetch::{Fetcher, Overrides};
use crate::hints::invocation;

/// Flags for probes of names.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Looking at names")]
pub struct LookArgs {
    /// Address of HOST (*: every host)
    ///
    /// In place of the address in DNS, for split DNS and tests; repeatable.
    #[arg(long, value_name = "HOST=ADDR[:PORT]", value_delimiter = ',')]
    pub http01_resolve: Vec<String>,
    /// Address of HOST for TLS-ALPN-01, with a port in place of 443; repeatable
    #[arg(long, hide_short_help = true, value_name = "HOST=ADDR[:PORT]", value_delimiter = ',')]
    pub tls_alpn_resolve: Vec<String>,
    /// Resolver for every lookup
    ///
    /// Without this flag, the system's resolver.
    #[arg(long, value_name = "HOST:PORT")]
    pub dns: Option<String>,
}

impl LookArgs {
    /// Returns the fetcher that probes names by these flags.
    ///
    /// # Errors
    /// Fails if a flag cannot be read, or the resolver's host has no address.
    pub async fn fetcher(&self) -> Result<Fetcher, Failure> {
        let resolver: Arc<dyn Resolve> = match self.server().await? {
            None => Arc::new(SystemResolver::new()),
            Some(addresses) => Arc::new(DirectResolver::at(addresses)),
        };
        let parse = |entries: &[String], flag| {
            Overrides::parse(entries.iter().map(String::as_str)).map_err(|why| {
                let flag = invocation::current().named(flag);
                Failure::usage(format!("cannot use {flag}: {why}"))
            })
        };
        let mut overrides = parse(&self.http01_resolve, "http01-resolve")?;
        overrides.handshakes = parse(&self.tls_alpn_resolve, "tls-alpn-resolve")?.hosts;
        Ok(Fetcher { resolver, overrides })
    }

    /// Returns the addresses of `--dns`, if the flag is given.
    ///
    /// # Errors
    /// Fails if the host of the flag has no address.
    pub async fn server(&self) -> Result<Option<Vec<SocketAddr>>, Failure> {
        let Some(text) = &self.dns else { return Ok(None) };
        let found = server_addresses(text, &SystemResolver::new()).await;
        found.map(Some).map_err(|why| {
            let flag = invocation::current().named("dns");
            Failure::usage(format!("cannot use {flag} {text}: {why}"))
        })
    }
}

/// Flags for the name servers that are asked for the records of DNS-01.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Looking at names")]
pub struct NameserverArgs {
    /// Resolvers for DNS-01, which find zones and the servers of zones: ADDR:PORT, or https://... for DNS over HTTPS
    /// [default: that of --dns, else the system's]
    #[arg(
        long,
        hide_short_help = true,
        value_name = "SERVER",
        value_delimiter = ',',
        value_parser = |text: &str| Server::parse(text)
    )]
    pub dns01_recursive_nameservers: Vec<Server>,
    /// Ask only these resolvers for the records of DNS-01, if the servers of zones cannot be reached
    #[arg(
        long,
        hide_short_help = true,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub dns01_recursive_nameservers_only: bool,
}

impl NameserverArgs {
    /// Returns the finder of zones and their servers, with resolvers in cert-manager's order: those named, that of `--dns`,
    /// the system's, two public ones.
    ///
    /// # Errors
    /// Fails if the host of `--dns` has no address.
    pub async fn zones(&self, look: &LookArgs, fetcher: &Fetcher) -> Result<Zones, Failure> {
        let resolvers = match (&self.dns01_recursive_nameservers[..], look.server().await?) {
            ([], Some(addresses)) => addresses.into_iter().map(Server::Plain).collect(),
            ([], None) => server::of_the_system(),
            (named, _) => named.to_vec(),
        };
        let trust = if self.dns01_recursive_nameservers_only {
            Trust::RecursiveOnly
        } else {
            Trust::Authoritative
        };
        Ok(Zones::new(resolvers, trust, Arc::clone(&fetcher.resolver)))
    }
}
