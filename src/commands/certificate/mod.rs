//! `certificate`: lists Certificates, shows and checks certificates, and renews, revokes, approves or denies them.

pub mod approval;
pub mod check;
pub mod inspect;
pub mod revocation;
pub mod show;

use clap::Subcommand;

use self::approval::{DecideArgs, Decision};
use self::check::CheckArgs;
use self::revocation::RevokeArgs;
use self::show::ShowArgs;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::{TABLE_FORMATS, of_table, offered};
use crate::input::target::{self, Targets};
use crate::input::{completers, lookup};
use crate::issue::again::{self, Named, Rerun, RerunArgs};
use crate::issue::plan::chosen::ChosenFor;
use crate::listing::{self, ListArgs};
use crate::model::Kind;
use crate::permissions::all_that_is_missing;
use crate::store::local::Access;

/// Flags of `certificate`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct CertificateArgs {
    /// Subcommand
    #[command(subcommand)]
    command: CertificateCommand,
}

/// Subcommands of `certificate`.
#[derive(Debug, Subcommand)]
enum CertificateCommand {
    /// List Certificates
    Get(Box<CertificateGetArgs>),
    /// Show the contents of a certificate: of a Certificate, a Secret, a file or a TLS server
    Show(Box<ShowArgs>),
    /// Find certificates that must be replaced now: revoked, expiring, not as requested, or in their CA's renewal window
    #[command(mut_arg("output", |output| {
        let help = "Format: wide, json, yaml, jsonl, csv or jsonpath=TEMPLATE";
        output.value_parser(of_table).add(offered(&TABLE_FORMATS)).help(help).long_help(help)
    }))]
    Check(Box<CheckArgs>),
    /// Issue certificates anew, due or not, and wait
    #[command(mut_arg("names", |names| names.add(completers::names(Kind::Certificate))))]
    Renew(Box<RerunArgs>),
    /// Revoke a certificate at its CA, so that nobody trusts the certificate any more
    Revoke(RevokeArgs),
    /// Approve CertificateRequests, so that they go to the CA
    #[command(mut_arg("names", |names| names.add(completers::names(Kind::CertificateRequest))))]
    Approve(DecideArgs),
    /// Deny CertificateRequests, so that they never go to the CA
    #[command(mut_arg("names", |names| names.add(completers::names(Kind::CertificateRequest))))]
    Deny(DecideArgs),
}

/// Flags of `certificate get`.
#[derive(Debug, clap::Args)]
struct CertificateGetArgs {
    /// Names or domains; all Certificates when there are none
    #[arg(value_name = "NAME", add = completers::names(Kind::Certificate))]
    names: Vec<String>,
    /// Flags of every listing
    #[command(flatten)]
    list: ListArgs,
}

impl CertificateArgs {
    /// Returns whether the command needs a store: files and servers can be read without a store.
    pub fn needs_store(&self) -> bool {
        match &self.command {
            CertificateCommand::Check(check) => check.needs_store(),
            CertificateCommand::Show(show) => show.needs_store(),
            _ => true,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Fails with the error of the subcommand, which `main` prints.
pub async fn run(args: CertificateArgs, context: &mut Context) -> Result<(), Failure> {
    match args.command {
        CertificateCommand::Get(get) => {
            let wanted = Targets::of_kind(Kind::Certificate, &get.names)?;
            listing::show(&wanted, &get.list, context).await
        }
        CertificateCommand::Check(check) => Box::pin(check::run(*check, context)).await,
        CertificateCommand::Show(show) => show::run(*show, context).await,
        CertificateCommand::Revoke(args) => Box::pin(revocation::run(args, context)).await,
        CertificateCommand::Approve(args) => {
            approval::decide(&args, Decision::Approved, context).await
        }
        CertificateCommand::Deny(args) => approval::decide(&args, Decision::Denied, context).await,
        CertificateCommand::Renew(renew) => {
            let store = context.store(Access::ReadWrite).await?;
            let mut named = Named::new();
            for word in &renew.names {
                let name = target::name_of(Kind::Certificate, word)?;
                let key = target::key(Kind::Certificate, &name, context.namespace());
                match lookup::one(&store, &key).await {
                    Ok(key) => named.insert(key.name, Vec::new()),
                    Err(failure) => return Err(all_that_is_missing(context, failure).await),
                };
            }
            if renew.chosen.is_given() {
                let chosen = renew.chosen.certificates(ChosenFor::Any, &store, context).await?;
                named.extend(chosen.into_iter().map(|name| (name, Vec::new())));
            }
            context.global.cluster.terms = renew.work.drive.lease.terms()?;
            Box::pin(again::run(*renew, named, Rerun::Renewed, context)).await
        }
    }
}
