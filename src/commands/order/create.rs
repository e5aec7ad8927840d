//! `order create`: from manifests to certificates on disk.

use jiff::Timestamp;

use super::request_numbers;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::input::{DryRun, InputArgs, overwritten};
use crate::issue::asking::with_certificates;
use crate::issue::dry_run;
use crate::issue::follow::events;
use crate::issue::follow::work::WorkArgs;
use crate::issue::issuance::Issuance;
use crate::issue::plan::subset;
use crate::issue::rehearsal::Rehearse;
use crate::issue::results::purpose::Purpose;

/// Flags of `order create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// What to issue
    #[command(flatten)]
    pub input: InputArgs,
    /// Issue from a CA of our own: nothing is spent
    ///
    /// Nobody trusts that CA, and the store is thrown away.
    #[arg(
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "real",
        value_enum,
        conflicts_with_all = ["dns01_manual", "rehearse_first"],
        help_heading = "How to issue"
    )]
    pub rehearse: Option<Rehearse>,
    /// Rehearse what is due, and issue it only when that has worked
    ///
    /// A rehearsal that fails ends the command with its exit code, and nothing was spent at the real CA.
    #[arg(
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "real",
        value_enum,
        conflicts_with = "dns01_manual",
        hide_short_help = true,
        help_heading = "How to issue"
    )]
    pub rehearse_first: Option<Rehearse>,
    /// Where some names of a Certificate fail, issue it for the others; they are tried again at its renewal
    #[arg(
        long,
        conflicts_with_all = ["csr", "rehearse_first"],
        hide_short_help = true,
        help_heading = "How to issue"
    )]
    pub allow_subset_of_names: bool,
    /// How the work is done
    #[command(flatten)]
    pub work: WorkArgs,
}

impl CreateArgs {
    /// Tells whether there must be a store: what is rehearsed on loopback or only printed needs none.
    pub fn needs_store(&self) -> bool {
        self.rehearse != Some(Rehearse::Loopback) && self.input.dry_run != DryRun::Client
    }
}

/// Issues what the manifests ask for.
///
/// # Errors
/// Fails with the lowest exit code of all Certificates.
pub async fn run(args: CreateArgs, context: &Context) -> Result<(), Failure> {
    let started = Timestamp::now();
    args.work.drive.probe_pod.check(context)?;
    let manual = &args.work.manual;
    manual.check(context)?;
    let input = args.input.read(manual.proof(), context, &args.work.output).await?;
    let is_tried = args.rehearse.is_some() || args.input.dry_run == DryRun::Client;
    // What is only tried is the first of its name.
    let is_numbered = args.input.csr.is_some() && !is_tried;
    let input = if is_tried { input } else { overwritten::settled(input, context).await? };
    let input = if is_numbered { request_numbers::numbered(input, context).await? } else { input };
    match args.input.dry_run {
        DryRun::None => {}
        DryRun::Server if args.rehearse.is_none() => {
            return dry_run::server(&input, &args.work, context).await;
        }
        DryRun::Client | DryRun::Server => {
            return dry_run::client(&input, &args.work, context).await;
        }
    }
    let input = with_certificates(input, &args.work, context).await?;
    let input = if args.allow_subset_of_names && args.rehearse.is_none() {
        subset::as_left_before(input, context, &context.printer(&args.work.output)).await?
    } else {
        input
    };
    let deadline = started.saturating_add(args.work.timeout.0).unwrap_or(Timestamp::MAX);
    let events = events::open(args.work.events.as_deref())?;
    let issuance = Issuance {
        work: &args.work,
        input: &input,
        purpose: args.rehearse.map_or(Purpose::Issue, Purpose::Rehearse),
        times: (started, deadline),
        rounds: if args.allow_subset_of_names { subset::ROUNDS } else { 0 },
        events: &events,
    };
    if let Some(how) = args.rehearse_first {
        Box::pin(issuance.rehearse_what_is_due(how, context)).await?;
    }
    let ended = Box::pin(issuance.run(context)).await;
    if is_numbered {
        request_numbers::forget_older(&input, context).await;
    }
    ended
}
