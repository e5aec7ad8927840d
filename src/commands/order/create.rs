//! `order create`: from manifests to certificates on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::settle::{self, Results};
use super::supervise::Followed;
use super::work::{Job, work};
use crate::commands::context::{Context, OutputArgs};
use crate::commands::drive::{DriveArgs, duration};
use crate::commands::due::due;
use crate::commands::failure::Failure;
use crate::commands::intake::{Intake, IntakeArgs};
use crate::commands::local::{Claim, claim};
use crate::commands::precheck;
use crate::commands::rehearsal::{Rehearsal, Rehearse};
use crate::model::{Duration, Key, Kind, Record};
use crate::store::Store;
use crate::store::local::Access;
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
        value_enum
    )]
    pub rehearse: Option<Rehearse>,
    /// Write DIR/SECRETNAME/tls.crt and tls.key [default: out in the state folder]
    #[arg(long, value_name = "DIR", env = "KUBECTL_ACME_OUT")]
    pub out: Option<PathBuf>,
    /// Write DIR/SECRETNAME/secret.yaml, too
    #[arg(long)]
    pub out_secret: bool,
    /// Give up after this time
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration, env = "KUBECTL_ACME_TIMEOUT")]
    pub timeout: Duration,
    /// How challenges are answered
    #[command(flatten)]
    pub drive: DriveArgs,
    /// Output
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Where the work is done, and with what.
struct Workshop {
    store: Arc<dyn Store>,
    rehearsal: Option<Rehearsal>,
    out: Option<PathBuf>,
    claim: Claim,
}

/// Issues what the manifests ask for.
///
/// # Errors
/// Fails with the lowest exit code of all Certificates.
pub async fn run(args: CreateArgs, context: &Context) -> Result<(), Failure> {
    let started = Timestamp::now();
    let intake = args.intake.read(context, &args.output)?;
    if args.intake.is_dry_run() {
        return intake.print(context, &args.output);
    }
    let deadline = started.saturating_add(args.timeout.0).unwrap_or(Timestamp::MAX);
    let workshop = open(&args, context, deadline).await?;
    let records = prepare(&intake, &workshop);
    precheck::check(&records, &workshop.store).await?;
    announce(&records, &workshop, context, &args.output);
    for record in &records {
        workshop.store.apply(record.clone()).await?;
    }
    let open = followed(&records, &workshop.store, started).await?;
    let mut given: BTreeSet<Key> = records.iter().map(|record| record.key.clone()).collect();
    given.extend(precheck::issuers(&records));
    let rehearsal = workshop.rehearsal.as_ref();
    let job = Job {
        store: Arc::clone(&workshop.store),
        claim: workshop.claim,
        drive: &args.drive,
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
        out_secret: args.out_secret,
        records: &records,
    };
    settle::settle(&results, &args.output, context, ends).await
}

async fn open(
    args: &CreateArgs,
    context: &Context,
    deadline: Timestamp,
) -> Result<Workshop, Failure> {
    if let Some(how) = args.rehearse {
        let rehearsal = Rehearsal::start(how, &args.drive).await?;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let out = args.out.clone();
        return Ok(Workshop { store, rehearsal: Some(rehearsal), out, claim: Claim::Alone });
    }
    let folder = context.state_folder()?;
    let store = context.store(Access::ReadWrite).await?;
    let claim = claim(&folder, context, deadline).await?;
    let out = args.out.clone().unwrap_or_else(|| folder.join("out"));
    Ok(Workshop { store, rehearsal: None, out: Some(out), claim })
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

/// The first line of every driving command: where, which CA, who drives.
fn announce(records: &[Record], workshop: &Workshop, context: &Context, output: &OutputArgs) {
    let printer = context.printer(output);
    let place = match (&workshop.rehearsal, context.state_folder()) {
        (Some(_), _) => "nothing is kept".to_owned(),
        (None, Ok(folder)) => format!("local state in {}", folder.display()),
        (None, Err(_)) => String::new(),
    };
    let servers: BTreeSet<&str> = records
        .iter()
        .map(|record| record.text("/spec/acme/server"))
        .filter(|server| !server.is_empty())
        .collect();
    let cas: Vec<String> = servers.into_iter().map(precheck::known_ca).collect();
    let ca = match (&workshop.rehearsal, cas.len()) {
        (Some(_), _) => "rehearsal CA, trusted by nobody".to_owned(),
        (None, 0) => "as stored".to_owned(),
        (None, _) => cas.join(", "),
    };
    printer.note(&format!(
        "{place}; namespace {}; CA: {ca}; driver: kubectl-acme",
        context.namespace()
    ));
    if records.iter().any(|r| r.text("/kind").ends_with("Issuer")) {
        printer.note("HTTP-01 challenges are answered by this program's own listener or webroot, whatever the solver's class");
    }
}

/// What has to be followed: Certificates that are due, and Issuers given alone.
async fn followed(
    records: &[Record],
    store: &Arc<dyn Store>,
    now: Timestamp,
) -> Result<BTreeMap<Key, Followed>, Failure> {
    let of_kind = |kind| records.iter().filter(move |r| r.key.kind == kind);
    let mut open = BTreeMap::new();
    for record in of_kind(Kind::Certificate) {
        if let Some(since) = due(store, &record.key.name, now).await? {
            let followed = Followed::due(store, &record.key.name, since).await?;
            open.insert(record.key.clone(), followed);
        }
    }
    if of_kind(Kind::Certificate).next().is_none() {
        for record in of_kind(Kind::Issuer).chain(of_kind(Kind::ClusterIssuer)) {
            open.insert(record.key.clone(), Followed::default());
        }
    }
    Ok(open)
}
