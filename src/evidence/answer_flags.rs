//! Flags of whoever only looks: where answers are given on this machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::hints::invocation;

/// Where answers are given on this machine; without any flag, where the Challenges remember that they were given.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Looking at names")]
pub struct AnswerArgs {
    /// Where answers to HTTP-01 are given on this machine [default: where they were given, else port 80]
    ///
    /// With --local, while nobody issues, they are given there for as long as it is looked: whether the way leads here is seen. With
    /// a domain they are given only where the command itself names a place.
    #[arg(long, value_name = "ADDR:PORT", value_delimiter = ',')]
    pub http01_listen: Vec<SocketAddr>,
    /// Where answers to TLS-ALPN-01 are given on this machine [default: where they were given, else port 443]
    #[arg(long, hide_short_help = true, value_name = "ADDR:PORT", value_delimiter = ',')]
    pub tls_alpn_listen: Vec<SocketAddr>,
    /// Where answers are given as files on this machine; then nobody listens
    #[arg(long, hide_short_help = true, value_name = "DIR")]
    pub http01_webroot: Option<PathBuf>,
}

impl AnswerArgs {
    /// Tells whether the place for HTTP-01 comes from the environment, which names it for orders.
    pub fn is_for_orders(&self) -> bool {
        invocation::current().is_of_environment("http01-listen")
    }

    /// Places for HTTP-01; `None` if files answer.
    pub fn http01(&self) -> Option<&[SocketAddr]> {
        self.http01_webroot.is_none().then_some(&self.http01_listen)
    }
}
