//! `order retry`, `order resume` and `certificate renew`: Certificates that are in the store already.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::follow::events;
use super::follow::work::{Job, WorkArgs, work};
use super::plan::chosen::ChosenArgs;
use super::plan::due::Inspection;
use super::plan::renewal::mark_for_renewal;
use super::plan::replacement::Replacement;
use super::preflight::{self, announce, provider_check};
use super::results::purpose::Purpose;
use super::results::report::Places;
use super::results::subject::Results;
use super::results::unbegun::{self, RefusedCommand};
use super::results::{files, finish};
use super::tracked::Tracked;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::controllers::certificate::Due;
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::verdict::{Verdict, verdict};
use crate::hints::invocation;
use crate::input::lookup;
use crate::lead::venue::Venue;
use crate::lead::{Claim, claim};
use crate::model::{Certificate, Key, Kind, ObjectName, Order, Record, State};
use crate::objects::chain;
use crate::permissions::{Permissions, all_that_is_missing, workplace};
use crate::store::Store;
use crate::store::local::Access;
use crate::store::resources::{Resources, typed};

/// Flags of commands that work on Certificates already in the store.
#[derive(Clone, Debug, clap::Args)]
pub struct RerunArgs {
    /// Names of Certificates, of objects that belong to them, or domains
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "all_namespaces", "selector"])]
    pub names: Vec<String>,
    /// Flags that choose Certificates without names
    #[command(flatten)]
    pub chosen: ChosenArgs,
    /// Flags of the work
    #[command(flatten)]
    pub work: WorkArgs,
}

/// Kind of rerun that a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rerun {
    /// New order, whatever the state of the Certificate.
    Renewed,
    /// New order for a Certificate that failed.
    Retried,
    /// Continuation of an issuance that was begun.
    Resumed,
}

/// Certificates, each with its Orders that the user named.
pub type Named = BTreeMap<ObjectName, Vec<ObjectName>>;

/// Works on Certificates that are in the store until each has ended.
///
/// # Errors
/// Fails with the lowest exit code of all Certificates.
pub async fn run(
    args: RerunArgs,
    named: Named,
    wanted: Rerun,
    context: &Context,
) -> Result<(), Failure> {
    Box::pin(work_on(args, named, (wanted, None), context)).await
}

/// Replaces the Certificates of `replacement`, up to its limit per hour, and waits until each has ended.
///
/// # Errors
/// Fails with the lowest exit code of all Certificates.
pub async fn replace(
    work: WorkArgs,
    replacement: &Replacement,
    context: &Context,
) -> Result<(), Failure> {
    let named: Named = replacement.names().map(|name| (name.clone(), Vec::new())).collect();
    let args = RerunArgs { names: Vec::new(), chosen: ChosenArgs::default(), work };
    Box::pin(work_on(args, named, (Rerun::Renewed, Some(replacement)), context)).await
}

async fn work_on(
    args: RerunArgs,
    named: Named,
    wanted: (Rerun, Option<&Replacement>),
    context: &Context,
) -> Result<(), Failure> {
    let started = Timestamp::now();
    let manual = &args.work.manual;
    manual.check(context)?;
    args.work.drive.probe_pod.check(context)?;
    let deadline = started.saturating_add(args.work.timeout.0).unwrap_or(Timestamp::MAX);
    let times = (started, deadline);
    let events = events::open(args.work.events.as_deref())?;
    // The manifests of these Certificates were read by another command.
    let places = Places::new();
    let keys = named.keys().map(|name| Key::new(Kind::Certificate, name.clone()));
    let keys: Vec<Key> = keys.collect();
    let found = match read(&context.store(Access::ReadWrite).await?, &keys).await {
        Ok(found) => found,
        Err(failure) => return Err(all_that_is_missing(context, failure).await),
    };
    let begun = begin(&args, (&named, wanted), (&keys, &found), times, context);
    let on_issued =
        args.work.on_issued.chosen(context.out(args.work.out.as_deref())?.as_deref())?;
    let Begun { store, claim, permit, out, records, given, open } = match Box::pin(begun).await {
        Ok(begun) => begun,
        Err(failure) => {
            let (records, places, purpose) = (&found, &places, Purpose::Issue);
            let told = RefusedCommand { records, places, purpose, times, events: &events };
            return unbegun::settle_unbegun(&told, &args.work.output, context, failure).await;
        }
    };
    let followed = open.iter().map(|(key, tracked)| (key.clone(), tracked.is_due())).collect();
    let job = Job {
        store: Arc::clone(&store),
        claim,
        permit,
        drive: &args.work.drive,
        rehearsal: None,
        leaves_names_out: false,
        by_hand: manual.dns01_manual,
        given,
        open,
        started,
        deadline,
        events: events.clone(),
    };
    let worked = work(job, context).await;
    let results = Results {
        store: &store,
        out: out.as_deref(),
        out_secret: args.work.out_secret,
        on_issued: on_issued.as_ref(),
        zone_file: manual.dns01_zone_file.as_deref(),
        purpose: Purpose::Issue,
        times,
        timeline: args.work.timeline,
        records: &records,
        places: &places,
        followed: &followed,
        events: &events,
    };
    Box::pin(finish::settle(&results, &args.work.output, context, worked)).await
}

/// Objects to work on when all checks have passed.
struct Begun {
    store: Arc<dyn Store>,
    claim: Claim,
    permit: Permissions,
    out: Option<PathBuf>,
    records: Vec<Record>,
    given: BTreeSet<Key>,
    open: BTreeMap<Key, Tracked>,
}

/// Checks everything, and marks the Certificates that are to be issued again.
async fn begin(
    args: &RerunArgs,
    (named, (wanted, replacement)): (&Named, (Rerun, Option<&Replacement>)),
    (keys, found): (&[Key], &[Record]),
    (started, deadline): (Timestamp, Timestamp),
    context: &Context,
) -> Result<Begun, Failure> {
    let manual = &args.work.manual;
    let places = args.work.drive.places(context);
    let (store, permit) = workplace(context, found, false, places).await?;
    let claim = claim(context, deadline, &permit).await?;
    manual.check_turn(&claim)?;
    let records = read(&store, keys).await?;
    let venue = Venue::of(context, &claim).by_hand(manual.dns01_manual);
    let out = context.out(args.work.out.as_deref())?;
    let namespace = &context.global.cluster_resource_namespace;
    preflight::check(&records, &store, venue, out.as_deref(), namespace).await?;
    if let Some(folder) = out.as_deref() {
        files::expect_writable(folder, context.interrupted()).await?;
    }
    let printer = context.printer(&args.work.output);
    let mut wanting = Vec::new();
    let options = args.work.drive.certificates.options();
    let inspection = Inspection::new(&store, options, started);
    for record in &records {
        match reason_to_skip(&inspection, record, named, wanted).await? {
            Some(why) => printer.note(&why),
            None => wanting.push(record),
        }
    }
    if let Some(replacement) = replacement {
        wanting = replacement.allowed(&store, wanting, started).await?;
    }
    if wanted != Rerun::Resumed && venue.has_providers() {
        let told = (context, &args.work.output);
        let due = wanting.iter().map(|record| &record.key);
        provider_check::check(due, &store, &args.work.drive, None, told).await?;
    }
    let (issuers, drive) = (preflight::certificates::issuers(&records), Some(&args.work.drive));
    announce::work(context, &store, &issuers, &[], &claim, drive).await?;
    let (mut given, mut open) = (BTreeSet::new(), BTreeMap::new());
    for record in wanting {
        let certificate = typed::<Certificate>(record.clone())?;
        let name = certificate.name();
        if wanted != Rerun::Resumed {
            mark_for_renewal(&store, &name).await?;
        }
        let revision = certificate.status.revision.unwrap_or(0);
        let followed = Tracked::due(inspection.store(), &name, revision).await?;
        open.insert(record.key.clone(), followed);
        given.insert(record.key.clone());
        given.extend(issuer_key(&certificate));
    }
    Ok(Begun { store, claim, permit, out, records, given, open })
}

/// Returns why nothing is to be done for a Certificate; `None` if there is work.
async fn reason_to_skip(
    inspection: &Inspection,
    record: &Record,
    named: &Named,
    wanted: Rerun,
) -> Result<Option<String>, Failure> {
    let (store, name) = (inspection.store(), &record.key.name);
    let certificate = typed::<Certificate>(record.clone())?;
    let is_under_way = certificate.is_being_issued();
    // Fails in every mode if the Secret belongs to another Certificate.
    let is_due = inspection.due(name).await?;
    match wanted {
        Rerun::Renewed => Ok(None),
        Rerun::Resumed if is_under_way => Ok(None),
        Rerun::Resumed => match is_due {
            Due::Issue { revision } | Due::TryAgain { revision } => {
                Err(nothing_to_resume(store, name, revision).await?)
            }
            Due::No | Due::Rival { .. } => {
                Ok(Some(format!("Certificate {name}: nothing is under way")))
            }
        },
        Rerun::Retried => {
            let orders = Resources::<Order>::new(Arc::clone(store), Kind::Order);
            let mut ends = Vec::new();
            for order in named.get(name).into_iter().flatten() {
                // Another process, for whose end this one waited, may have replaced the Order.
                let state = orders.get(order).await?.and_then(|order| order.status.state);
                if state.is_some_and(|state| state != State::Valid) {
                    return Ok(None);
                }
                ends.push(match state {
                    Some(_) => format!("Order {order} is valid"),
                    None => format!("Order {order} is gone"),
                });
            }
            if is_under_way || !matches!(is_due, Due::No) {
                return Ok(None);
            }
            if ends.is_empty() {
                ends.push(format!("Certificate {name} has no Order"));
            }
            let (why, renew) = (ends.join(", "), invocation::current().renewal(name));
            Ok(Some(format!("{why}: there is nothing to try again; to renew anyway: {renew}")))
        }
    }
}

async fn read(store: &Arc<dyn Store>, keys: &[Key]) -> Result<Vec<Record>, Failure> {
    let mut records = Vec::new();
    for key in keys {
        records.push(lookup::read(store, key).await?);
    }
    Ok(records)
}

/// Builds the failure if nothing is under way and no certificate exists: how the last order, if any, ended.
async fn nothing_to_resume(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    revision: i64,
) -> Result<Failure, Failure> {
    let again = invocation::current().renewal(name);
    let hint = format!("{again} makes a fresh order");
    if let Some(chain) = chain::read(store, name).await?
        && let Verdict::Failed(failed) = verdict(&chain, &Obstacles::new(), Some(revision))
    {
        return Ok(Failure::from(failed).hint(hint));
    }
    let why = format!(
        "Certificate {name}: nothing is under way, and its Secret lacks the certificate that its spec asks for"
    );
    Ok(Failure::usage(why).hint(hint))
}
