//! `order create`: from manifests to certificates on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use crate::app::context::Context;
use crate::app::failure::Failure;
use crate::app::follow::finish::{self, Results};
use crate::app::follow::plan::{Opening, opening};
use crate::app::follow::tracked::{End, Tracked};
use crate::app::follow::work::{Job, WorkArgs, work};
use crate::app::follow::{events, results};
use crate::app::input::{DryRun, Input, InputArgs, applying, dry_run, overwritten};
use crate::app::lead::{Claim, claim};
use crate::app::preflight::permissions::{Permissions, workplace};
use crate::app::preflight::{self, announce, provider_check};
use crate::app::rehearsal::{Rehearsal, Rehearse};
use crate::app::venue::Venue;
use crate::model::{Key, Record};
use crate::store::Store;
use crate::store::memory::MemoryStore;

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
        conflicts_with = "dns01_manual",
        help_heading = "How to issue"
    )]
    pub rehearse: Option<Rehearse>,
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

/// Where the work is done, and with what.
struct Workshop {
    store: Arc<dyn Store>,
    records: Vec<Record>,
    rehearsal: Option<Rehearsal>,
    out: Option<PathBuf>,
    claim: Claim,
    permit: Permissions,
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
    match args.input.dry_run {
        DryRun::None => {}
        DryRun::Server if args.rehearse.is_none() => {
            return dry_run::server(&input, &args.work, context).await;
        }
        DryRun::Client | DryRun::Server => {
            return dry_run::client(&input, context, &args.work.output);
        }
    }
    let deadline = started.saturating_add(args.work.timeout.0).unwrap_or(Timestamp::MAX);
    let events = events::open(args.work.events.as_deref())?;
    let times = (started, deadline);
    let (workshop, begun) = match Box::pin(begin(&args, &input, context, times)).await {
        Ok(begun) => begun,
        Err(failure) => {
            let (records, is_kept) = (input.records(), args.rehearse.is_none());
            let told = finish::Unbegun { records: &records, is_kept, times, events: &events };
            return finish::settle_unbegun(&told, &args.work.output, context, failure).await;
        }
    };
    // Of thousands of manifests this is as much as all that is kept of them while they are followed.
    drop(input);
    let Begun { given, open, ends: known } = begun;
    let (records, rehearsal) = (&workshop.records, workshop.rehearsal.as_ref());
    let followed = open.iter().map(|(key, tracked)| (key.clone(), tracked.is_due())).collect();
    let job = Job {
        store: Arc::clone(&workshop.store),
        claim: workshop.claim,
        permit: workshop.permit,
        drive: &args.work.drive,
        rehearsal: rehearsal.map(Rehearsal::means),
        by_hand: manual.dns01_manual,
        given,
        open,
        started,
        deadline,
        events: events.clone(),
    };
    let mut worked = work(job, context).await;
    let tidied = match rehearsal {
        Some(rehearsal) => rehearsal.end(&workshop.store, &args.work.drive, context).await,
        None => Ok(()),
    };
    if let Err(failure) = &tidied {
        context.printer(&args.work.output).error(&failure.message, &failure.hints);
        worked.untidy = Some(failure.kind);
    }
    worked.ends.extend(known);
    let results = Results {
        store: &workshop.store,
        out: workshop.out.as_deref(),
        out_secret: args.work.out_secret,
        zone_file: manual.dns01_zone_file.as_deref(),
        is_kept: workshop.rehearsal.is_none(),
        times,
        timeline: args.work.timeline,
        records,
        followed: &followed,
        events: &events,
    };
    finish::settle(&results, &args.work.output, context, worked).await
}

/// What is to be worked on, when all checks have passed.
struct Begun {
    given: BTreeSet<Key>,
    open: BTreeMap<Key, Tracked>,
    ends: BTreeMap<Key, End>,
}

/// Checks everything, applies the manifests, and finds what is due.
async fn begin(
    args: &CreateArgs,
    input: &Input,
    context: &Context,
    (started, deadline): (Timestamp, Timestamp),
) -> Result<(Workshop, Begun), Failure> {
    let manual = &args.work.manual;
    let workshop = open(args, input, context, deadline).await?;
    let records = &workshop.records;
    manual.check_turn(&workshop.claim)?;
    let venue = match args.rehearse {
        Some(_) => Venue::of_rehearsal(context),
        None => Venue::of(context, &workshop.claim).by_hand(manual.dns01_manual),
    };
    let (folder, namespace) = (workshop.out.as_deref(), &context.global.cluster_resource_namespace);
    preflight::check(records, &workshop.store, venue, folder, namespace).await?;
    if let Some(folder) = folder {
        results::expect_writable(folder, context.interrupted()).await?;
    }
    if !args.input.domain.is_empty() {
        overwritten::check(records, &workshop.store, &context.printer(&args.work.output)).await?;
    }
    let mut given: BTreeSet<Key> = records.iter().map(|record| record.key.clone()).collect();
    given.extend(preflight::certificates::issuers(records));
    if let Some(rehearsal) = &workshop.rehearsal {
        announce::rehearsal(context, rehearsal.is_in_cluster(), records)?;
    } else {
        let (Workshop { store, claim, .. }, drive) = (&workshop, Some(&args.work.drive));
        announce::work(context, store, &given, records, claim, drive).await?;
    }
    let printer = context.printer(&args.work.output);
    if !workshop.claim.is_cert_manager() {
        input.tell_not_acted_on(&printer);
    }
    applying::apply(input, records, &workshop.store, context, &printer).await?;
    let Opening { open, ends } =
        opening(records, &workshop.store, &workshop.claim, started).await?;
    let rehearsal = workshop.rehearsal.as_ref();
    if venue.has_providers() && args.rehearse != Some(Rehearse::Loopback) {
        let due = open.iter().filter(|(_, tracked)| tracked.is_due()).map(|(key, _)| key);
        let (drive, fetcher) = (&args.work.drive, rehearsal.map(|r| &r.fetcher));
        let told = (context, &args.work.output);
        provider_check::check(due, &workshop.store, drive, fetcher, told).await?;
    }
    Ok((workshop, Begun { given, open, ends }))
}

async fn open(
    args: &CreateArgs,
    input: &Input,
    context: &Context,
    deadline: Timestamp,
) -> Result<Workshop, Failure> {
    if let Some(how) = args.rehearse {
        let drive = &args.work.drive;
        let (rehearsal, records) = Rehearsal::start(how, drive, input, deadline, context).await?;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (rehearsal, out) = (Some(rehearsal), args.work.out.clone());
        let (claim, permit) = (Claim::Alone, Permissions::default());
        return Ok(Workshop { store, records, rehearsal, out, claim, permit });
    }
    let records = input.records();
    let places = args.work.drive.places(context);
    let (store, permit) = workplace(context, &records, true, places).await?;
    let claim = claim(context, deadline, &permit).await?;
    let out = context.out(args.work.out.as_deref())?;
    Ok(Workshop { store, records, rehearsal: None, out, claim, permit })
}
