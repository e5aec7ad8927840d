//! `order create`: issues certificates from manifests, and writes them to disk.

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
    /// Flags of the input
    #[command(flatten)]
    pub input: InputArgs,
    /// Issue from a built-in test CA: nothing is spent at the real CA
    ///
    /// Nobody trusts the test CA, and the store of the rehearsal is thrown away.
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
    /// Rehearse all due issuances first, and issue only if the rehearsal succeeds
    ///
    /// If the rehearsal fails, the command ends with its exit code, and nothing is spent at the real CA.
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
    /// If some names of a Certificate fail, issue it for the others; the failed names are tried again at renewal
    #[arg(
        long,
        conflicts_with_all = ["csr", "rehearse_first"],
        hide_short_help = true,
        help_heading = "How to issue"
    )]
    pub allow_subset_of_names: bool,
    /// Flags of the work
    #[command(flatten)]
    pub work: WorkArgs,
}

impl CreateArgs {
    /// Returns whether the command needs a store: a rehearsal on loopback and a client dry run need none.
    pub fn needs_store(&self) -> bool {
        self.rehearse != Some(Rehearse::Loopback) && self.input.dry_run != DryRun::Client
    }
}

/// Issues the certificates of the manifests.
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
    // A trial always uses the first number of a name.
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
        rounds: if args.allow_subset_of_names { subset::LEAVE_OUT_ROUNDS_MAX } else { 0 },
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
