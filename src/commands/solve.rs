//! `solve`: the entry point of the solver Pod, with the flags of cert-manager's solver, so that either image works.

use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::solvers::http01::single::{self, SolverPodServer};

/// Flags of `solve`.
#[derive(Clone, Debug, clap::Args)]
pub struct SolveArgs {
    /// Port to listen on
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 8089,
        env = "KUBECTL_ACME_SOLVE_LISTEN_PORT"
    )]
    pub listen_port: u16,
    /// Name or address to answer for
    #[arg(long, value_name = "NAME", env = "KUBECTL_ACME_SOLVE_DOMAIN")]
    pub domain: String,
    /// Last part of the path to answer on
    #[arg(
        long,
        value_name = "TOKEN",
        env = "KUBECTL_ACME_SOLVE_TOKEN",
        allow_hyphen_values = true
    )]
    pub token: String,
    /// Key authorization to answer with
    #[arg(long, value_name = "TEXT", env = "KUBECTL_ACME_SOLVE_KEY", allow_hyphen_values = true)]
    pub key: String,
}

/// Answers until interrupted; the interrupt is no failure, since a Pod ends in this way.
///
/// # Errors
/// Fails when the port is not permitted or taken.
pub async fn run(args: SolveArgs, context: &mut Context) -> Result<(), Failure> {
    let SolveArgs { listen_port, domain, token, key } = args;
    let failed = |why: std::io::Error| {
        Failure::new(FailureKind::Solver, format!("cannot serve on port {listen_port}: {why}"))
            .hint("choose another port with --listen-port")
    };
    let listener = single::listen(listen_port).await.map_err(failed)?;
    let printer = context.printer(&OutputArgs::default());
    printer.note(&format!("answering for {domain} on port {listen_port}"));
    let stop = CancellationToken::new();
    let serving = SolverPodServer { domain, token, key }.serve(listener, stop.clone());
    let interrupted = context.interrupted();
    let stopping = async {
        interrupted.wait().await;
        stop.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = serving => {}
        () = stopping => {}
    }
    Ok(())
}
