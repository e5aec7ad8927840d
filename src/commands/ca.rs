//! `ca`: a small ACME server in this program; every line it prints says that nobody trusts it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::context::{Context, OutputArgs};
use super::drive::look::LookArgs;
use super::failure::{Failure, Kind};
use crate::ca::{self, Account, Caa, Config};
use crate::model::Identifier;

/// Flags of `ca`.
#[derive(Clone, Debug, clap::Args)]
pub struct CaArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:14000",
        env = "KUBECTL_ACME_CA_LISTEN"
    )]
    pub listen: SocketAddr,
    /// Name in the server's own certificate beside localhost and 127.0.0.1, repeatable
    #[arg(long, value_name = "NAME", env = "KUBECTL_ACME_CA_NAME")]
    pub name: Vec<String>,
    /// Write the root to this file, for clients that have to trust the server
    #[arg(
        long,
        value_name = "FILE",
        default_value = "kubectl-acme-ca.pem",
        env = "KUBECTL_ACME_CA_ROOT"
    )]
    pub root: PathBuf,
    /// Seconds that clients are asked to wait between polls (Retry-After)
    #[arg(long, value_name = "SECONDS")]
    pub retry_after: Option<u32>,
    /// How many of a hundred good nonces are refused, to try a client's patience
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub refuse_nonces: u8,
    /// Look at CAA records before names are taken as proven, as the CA that they call so; repeatable [default: none are looked at]
    #[arg(long, value_name = "NAME")]
    pub caa_identity: Vec<String>,
    /// How validation looks at names
    #[command(flatten)]
    pub look: LookArgs,
}

/// Serves until interrupted.
///
/// # Errors
/// Fails when the port is not permitted or taken, or the root cannot be written.
pub async fn run(args: CaArgs, context: &mut Context) -> Result<(), Failure> {
    let mut config = Config {
        listen: args.listen,
        retry_after: args.retry_after,
        refuse_nonces_percent: args.refuse_nonces,
        caa: (!args.caa_identity.is_empty())
            .then(|| Caa { identities: args.caa_identity.clone(), account: Account::Own }),
        ..Config::default()
    };
    for name in &args.name {
        let name = Identifier::parse(name)
            .map_err(|why| Failure::usage(format!("cannot use --name {name}: {why}")))?;
        config.names.push(name);
    }
    let fetcher = args.look.fetcher().await?;
    let server = ca::serve(config, Arc::new(fetcher)).await.map_err(|why| {
        Failure::new(Kind::Unexpected, format!("cannot serve on {}: {why}", args.listen))
            .hint("choose another port with --listen 127.0.0.1:0")
    })?;
    std::fs::write(&args.root, server.tls_root_pem()).map_err(|why| {
        let path = args.root.display();
        Failure::new(Kind::Unexpected, format!("cannot write the root to {path}: {why}"))
    })?;
    let printer = context.printer(&OutputArgs::default());
    let line = |text: String| printer.note(&format!("[test CA, trusted by nobody] {text}"));
    line(format!("directory: {}", server.directory_url()));
    line(format!("root, for clients' trust: {}", args.root.display()));
    line("everything is kept in memory; Ctrl-C ends it".to_owned());
    let kind = context.interrupted().wait().await;
    let asked = server.statistics();
    line(format!("ended; it was asked {asked:?}"));
    server.stop().await;
    Err(Failure::silent(kind))
}
