//! Flags of read-only commands: the places on this machine where answers are given.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::hints::invocation;

/// Places on this machine where answers are given; without a flag, those that the Challenges have recorded.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Looking at names")]
pub struct AnswerArgs {
    /// Answer HTTP-01 here while names are probed [default: as recorded in the Challenge, else port 80]
    ///
    /// Applies with --local if no controller is running, and shows whether requests reach this machine. With a
    /// domain, applies only if the flag is on the command line, not in the environment.
    #[arg(long, value_name = "ADDR:PORT", value_delimiter = ',')]
    pub http01_listen: Vec<SocketAddr>,
    /// Answer TLS-ALPN-01 here while names are probed [default: as recorded in the Challenge, else port 443]
    #[arg(long, hide_short_help = true, value_name = "ADDR:PORT", value_delimiter = ',')]
    pub tls_alpn_listen: Vec<SocketAddr>,
    /// Expect answers to HTTP-01 as files below DIR, and listen on no port
    #[arg(long, hide_short_help = true, value_name = "DIR")]
    pub http01_webroot: Option<PathBuf>,
}

impl AnswerArgs {
    /// Returns whether the place for HTTP-01 comes from the environment variable, which is meant for orders.
    pub fn is_for_orders(&self) -> bool {
        invocation::current().is_of_environment("http01-listen")
    }

    /// Listen addresses for HTTP-01; `None` if answers are written as files.
    pub fn http01(&self) -> Option<&[SocketAddr]> {
        self.http01_webroot.is_none().then_some(&self.http01_listen)
    }
}
