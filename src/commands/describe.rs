//! `describe`: prints the sheet of an object as kubectl does, with the events.

use std::sync::Arc;

use jiff::Timestamp;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::input::selector::LabelSelector;
use crate::input::target::{self, Targets};
use crate::input::{completers, lookup};
use crate::known::StoredFinding;
use crate::model::{Event, Key, Kind, Record};
use crate::print::{Printer, describe};
use crate::store::error::StoreError;
use crate::store::resources::Resources;
use crate::store::{Scope, Store, events};

/// Maximum number of objects whose causes are printed; for more objects `diagnose` groups the causes.
const MOST_CAUSES: usize = 3;

/// Flags of `describe`.
#[derive(Debug, clap::Args)]
pub struct DescribeArgs {
    /// KIND, KIND NAME…, KIND/NAME…, or KIND and the beginning of names
    #[arg(required = true, value_name = "KIND|KIND/NAME", add = completers::objects())]
    pub objects: Vec<String>,
    /// Describe the objects of all namespaces
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Only objects with these labels: app=web, tier!=front, 'app in (web,mail)', app, !app
    #[arg(long, short = 'l', value_name = "LABELS")]
    pub selector: Option<LabelSelector>,
    /// Show events
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    pub show_events: bool,
}

/// Runs `describe`.
///
/// # Errors
/// Fails when a kind is unknown, an object is not found, or the store cannot be read.
pub async fn run(args: DescribeArgs, context: &mut Context) -> Result<(), Failure> {
    let wanted = Targets::parse(&args.objects)?;
    if args.all_namespaces && matches!(wanted, Targets::Named(_)) {
        let what = "a name belongs to one namespace, so it cannot be combined with -A";
        return Err(Failure::usage(what));
    }
    let store = context.existing_store().await?;
    let mut printer = context.printer(&OutputArgs::default());
    let namespace = (!args.all_namespaces).then(|| context.namespace().to_owned());
    let found = find(&store, &wanted, &args, namespace.as_deref()).await?;
    let mut is_first = true;
    for record in &found.objects {
        let events = match args.show_events.then(|| events(&store, record)) {
            Some(events) => or_warning(events.await, &printer)?,
            None => None,
        };
        let sheet = describe::sheet(&record.object, events.as_deref(), context.now());
        let gap = if std::mem::take(&mut is_first) { "" } else { "\n\n" };
        printer.text(&format!("{gap}{sheet}"))?;
    }
    say_causes(&store, &printer, &found.objects, context.now()).await;
    conclude(&printer, &wanted, &found, namespace.as_deref())
}

/// Prints one line with the cause, or with the command that finds it, for each faulty object; the sheets stay as kubectl's.
async fn say_causes(store: &Arc<dyn Store>, printer: &Printer, shown: &[Record], now: Timestamp) {
    if shown.len() > MOST_CAUSES {
        return;
    }
    let mut said: Vec<String> = Vec::new();
    for record in shown {
        let Some(known) = StoredFinding::of(store, &record.key, now).await else { continue };
        let line = known.line();
        if !said.contains(&line) {
            printer.note(&line);
            said.push(line);
        }
    }
}

/// Result of a search.
struct FoundObjects {
    objects: Vec<Record>,
    missing: Vec<Failure>,
}

async fn find(
    store: &Arc<dyn Store>,
    wanted: &Targets,
    args: &DescribeArgs,
    namespace: Option<&str>,
) -> Result<FoundObjects, StoreError> {
    let mut found = FoundObjects { objects: Vec::new(), missing: Vec::new() };
    let named = match wanted {
        Targets::Kinds(kinds) => {
            for kind in kinds {
                let listed = store.list(*kind, &target::scope(*kind, namespace)).await?;
                let fits = |r: &Record| args.selector.as_ref().is_none_or(|labels| labels.fits(r));
                found.objects.extend(listed.into_iter().filter(fits));
            }
            return Ok(found);
        }
        Targets::Named(named) => named,
    };
    for (kind, name) in named {
        let key = target::key(*kind, name, namespace.unwrap_or_default());
        if let Some(record) = store.get(&key).await? {
            found.objects.push(record);
            continue;
        }
        // A single name may be a prefix; several names are a list of names.
        let alike = if named.len() == 1 { with_prefix(store, &key).await? } else { Vec::new() };
        let led = if alike.is_empty() { lookup::keys(store, &key).await? } else { Vec::new() };
        if alike.is_empty() && led.is_empty() {
            found.missing.push(lookup::not_found(store, &key).await?);
        }
        found.objects.extend(alike);
        for key in led {
            found.objects.extend(store.get(&key).await?);
        }
    }
    Ok(found)
}

/// Lists the objects whose names begin with the given name.
async fn with_prefix(store: &Arc<dyn Store>, key: &Key) -> Result<Vec<Record>, StoreError> {
    let mut listed =
        store.list(key.kind, &target::scope(key.kind, Some(&key.name.namespace))).await?;
    listed.retain(|record| record.key.name.name.starts_with(&key.name.name));
    Ok(listed)
}

async fn events(store: &Arc<dyn Store>, record: &Record) -> Result<Vec<Event>, StoreError> {
    let told = Resources::<Event>::new(Arc::clone(store), Kind::Event);
    let home = events::home(&record.key.name.namespace);
    told.list(&Scope::about(record.uid()).within(home)).await
}

/// Unwraps the events; `None` and a warning if events may not be read.
fn or_warning(
    events: Result<Vec<Event>, StoreError>,
    printer: &Printer,
) -> Result<Option<Vec<Event>>, StoreError> {
    match events {
        Err(error) if error.lacks_permission() => {
            printer.warning(&format!("events are left out: {error}"));
            Ok(None)
        }
        events => events.map(Some),
    }
}

fn conclude(
    printer: &Printer,
    wanted: &Targets,
    found: &FoundObjects,
    namespace: Option<&str>,
) -> Result<(), Failure> {
    for failure in &found.missing {
        printer.error(&failure.message, &failure.hints);
    }
    if !found.missing.is_empty() {
        return Err(Failure::silent(FailureKind::Unexpected));
    }
    if found.objects.is_empty() {
        let in_namespace = wanted.kinds().iter().any(|kind| kind.is_namespaced());
        printer.nothing_found(namespace.filter(|_| in_namespace));
    }
    Ok(())
}
