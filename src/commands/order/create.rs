//! `order create`: from manifests to certificates on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::followed::Followed;
use super::settle::{self, Results};
use super::work::{Job, WorkArgs, work};
use crate::commands::announce;
use crate::commands::chain::Chain;
use crate::commands::claim::{Claim, claim};
use crate::commands::context::Context;
use crate::commands::due::due;
use crate::commands::failure::Failure;
use crate::commands::intake::{Intake, IntakeArgs};
use crate::commands::permissions::{Permit, workplace};
use crate::commands::precheck::{self, Bench};
use crate::commands::rehearsal::{Rehearsal, Rehearse};
use crate::model::{Key, Kind, Record};
use crate::store::Store;
use crate::store::memory::MemoryStore;

/// Flags of `order create`.
#[derive(Clone, Debug, clap::Args)]
pub struct CreateArgs {
    /// What to issue
    #[command(flatten)]
    pub intake: IntakeArgs,
    /// Issue from a CA of our own that nobody trusts, in a throw-away store: nothing is spent
    #[arg(
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "real",
        value_enum,
        help_heading = "How to issue"
    )]
    pub rehearse: Option<Rehearse>,
    /// How the work is done
    #[command(flatten)]
    pub work: WorkArgs,
}

impl CreateArgs {
    /// Tells whether there must be a store: a rehearsal brings its own, and what is only printed needs none.
    pub fn needs_store(&self) -> bool {
        self.rehearse.is_none() && !self.intake.is_dry_run()
    }
}

/// Where the work is done, and with what.
struct Workshop {
    store: Arc<dyn Store>,
    rehearsal: Option<Rehearsal>,
    out: Option<PathBuf>,
    claim: Claim,
    permit: Permit,
}

/// Issues what the manifests ask for.
///
/// # Errors
/// Fails with the lowest exit code of all Certificates.
pub async fn run(args: CreateArgs, context: &Context) -> Result<(), Failure> {
    let started = Timestamp::now();
    let intake = args.intake.read(context, &args.work.output)?;
    if args.intake.is_dry_run() {
        return intake.print(context, &args.work.output);
    }
    let deadline = started.saturating_add(args.work.timeout.0).unwrap_or(Timestamp::MAX);
    let workshop = open(&args, &intake, context, deadline).await?;
    let records = prepare(&intake, &workshop);
    let bench =
        if args.rehearse.is_some() { Bench::Local } else { Bench::of(context, &workshop.claim) };
    precheck::check(&records, &workshop.store, bench).await?;
    for record in &records {
        workshop.store.apply(record.clone()).await?;
    }
    let mut given: BTreeSet<Key> = records.iter().map(|record| record.key.clone()).collect();
    given.extend(precheck::issuers(&records));
    match &workshop.rehearsal {
        Some(_) => announce::rehearsal(context),
        None => announce::work(context, &workshop.store, &given, &workshop.claim).await?,
    }
    let open = followed(&records, &workshop.store, started).await?;
    let rehearsal = workshop.rehearsal.as_ref();
    let job = Job {
        store: Arc::clone(&workshop.store),
        claim: workshop.claim,
        permit: workshop.permit,
        drive: &args.work.drive,
        rehearsal: rehearsal.map(|r| (Arc::clone(&r.http01), r.fetcher.clone())),
        given,
        open,
        started,
        deadline,
    };
    let ends = work(job, context).await?;
    let results = Results {
        store: &workshop.store,
        out: workshop.out.as_deref(),
        out_secret: args.work.out_secret,
        is_kept: workshop.rehearsal.is_none(),
        records: &records,
    };
    settle::settle(&results, &args.work.output, context, ends).await
}

async fn open(
    args: &CreateArgs,
    intake: &Intake,
    context: &Context,
    deadline: Timestamp,
) -> Result<Workshop, Failure> {
    if let Some(how) = args.rehearse {
        let rehearsal = Rehearsal::start(how, &args.work.drive).await?;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let out = args.work.out.clone();
        let (claim, permit) = (Claim::Alone, Permit::default());
        return Ok(Workshop { store, rehearsal: Some(rehearsal), out, claim, permit });
    }
    let answers = args.work.drive.answers_in_cluster();
    let (store, permit) = workplace(context, &intake.records(), true, answers).await?;
    let claim = claim(context, deadline, &permit).await?;
    let out = context.out(args.work.out.as_deref())?;
    Ok(Workshop { store, rehearsal: None, out, claim, permit })
}

fn prepare(intake: &Intake, workshop: &Workshop) -> Vec<Record> {
    let mut records = intake.records();
    if let Some(rehearsal) = &workshop.rehearsal {
        for record in &mut records {
            rehearsal.redirect(record);
        }
    }
    records
}

/// What has to be followed: Certificates that are due or left untidy, and Issuers given alone.
async fn followed(
    records: &[Record],
    store: &Arc<dyn Store>,
    now: Timestamp,
) -> Result<BTreeMap<Key, Followed>, Failure> {
    let of_kind = |kind| records.iter().filter(move |r| r.key.kind == kind);
    let mut open = BTreeMap::new();
    for record in of_kind(Kind::Certificate) {
        let name = &record.key.name;
        if let Some(since) = due(store, name, now).await? {
            open.insert(record.key.clone(), Followed::due(store, name, since).await?);
        } else if Chain::read(store, name).await?.is_some_and(|chain| !chain.is_tidy()) {
            // An earlier run was killed when the certificate was in its Secret already.
            open.insert(record.key.clone(), Followed::default());
        }
    }
    if of_kind(Kind::Certificate).next().is_none() {
        for record in of_kind(Kind::Issuer).chain(of_kind(Kind::ClusterIssuer)) {
            open.insert(record.key.clone(), Followed::default());
        }
    }
    Ok(open)
}
