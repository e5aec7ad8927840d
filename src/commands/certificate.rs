//! `certificate`: the life of certificates that are issued.

use clap::Subcommand;

use crate::app::context::Context;
use crate::app::failure::Failure;
use crate::app::follow::again::{self, AgainArgs, Rerun};
use crate::app::input::target;
use crate::model::{Kind, ObjectName};

/// Flags of `certificate`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct CertificateArgs {
    /// What to do with certificates
    #[command(subcommand)]
    command: CertificateCommand,
}

/// What to do with certificates.
#[derive(Debug, Subcommand)]
enum CertificateCommand {
    /// Issue certificates anew, due or not, and wait
    Renew(Box<AgainArgs>),
}

/// Runs the command.
///
/// # Errors
/// Fails with what `main` shows.
pub async fn run(args: CertificateArgs, context: &mut Context) -> Result<(), Failure> {
    match args.command {
        CertificateCommand::Renew(renew) => {
            let namespace = context.namespace();
            let words = renew.names.iter().map(|word| {
                let name = target::name_of(Kind::Certificate, word)?;
                Ok((ObjectName::new(namespace, name), Vec::new()))
            });
            let named = words.collect::<Result<_, Failure>>()?;
            context.global.cluster.terms = renew.work.drive.lease.terms()?;
            Box::pin(again::run(*renew, named, Rerun::Renewed, context)).await
        }
    }
}
