//! `account`: accounts at CAs, each named by the Issuer that uses the account.

pub mod change;
pub mod key_file;
pub mod rollover;
pub mod show;

use clap::Subcommand;

use self::change::{DeactivateArgs, UpdateArgs};
use self::key_file::{ExportArgs, ImportArgs, RecoverArgs};
use self::rollover::RolloverArgs;
use self::show::ShowAccountArgs;
use crate::context::Context;
use crate::context::failure::Failure;

/// Flags of `account`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct AccountArgs {
    /// Subcommand
    #[command(subcommand)]
    command: AccountCommand,
}

/// Subcommands of `account`.
#[derive(Debug, Subcommand)]
enum AccountCommand {
    /// Show accounts as their CAs hold them
    Show(ShowAccountArgs),
    /// Change the contact of an account
    Update(UpdateArgs),
    /// Give an account another key
    Rollover(RolloverArgs),
    /// Deactivate an account for ever
    Deactivate(DeactivateArgs),
    /// Find the account of a key again, after its Issuer was lost
    Recover(RecoverArgs),
    /// Write the key of an account to a file
    Export(ExportArgs),
    /// Take over an account of certbot, lego, acme.sh or another machine
    Import(ImportArgs),
}

/// Runs the command.
///
/// # Errors
/// Fails with the error of the subcommand, which `main` prints.
pub async fn run(args: AccountArgs, context: &Context) -> Result<(), Failure> {
    match args.command {
        AccountCommand::Show(args) => show::run(args, context).await,
        AccountCommand::Update(args) => change::update(args, context).await,
        AccountCommand::Rollover(args) => rollover::run(args, context).await,
        AccountCommand::Deactivate(args) => change::deactivate(args, context).await,
        AccountCommand::Recover(args) => key_file::recover(args, context).await,
        AccountCommand::Export(args) => key_file::export(args, context).await,
        AccountCommand::Import(args) => key_file::import(args, context).await,
    }
}
