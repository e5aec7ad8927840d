//! `timeline`: every event of an object and of all that hangs below it, in order, with durations.

use std::sync::Arc;

use super::completion;
use super::context::{Context, OutputArgs};
use super::failure::Failure;
use super::target::{self, Wanted};
use crate::model::{Event, Key, Kind};
use crate::print::format::Format;
use crate::print::lineage::{self, Named};
use crate::print::table::Headers;
use crate::print::{document, timeline};
use crate::store::local::Access;
use crate::store::resources::Resources;
use crate::store::{Scope, Store, StoreError};

/// Flags of `timeline`.
#[derive(Debug, clap::Args)]
pub struct TimelineArgs {
    /// The object, KIND/NAME or KIND NAME; a name alone is a Certificate's
    #[arg(required = true, num_args = 1..=2, value_name = "KIND/NAME", add = completion::objects())]
    pub object: Vec<String>,
    /// How results are written
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Runs `timeline`.
///
/// # Errors
/// Fails when nothing is known of the object, or the store cannot be read.
pub async fn run(args: TimelineArgs, context: &mut Context) -> Result<(), Failure> {
    let (kind, name) = Wanted::parse_one(&args.object)?;
    let key = target::key(kind, &name, context.namespace());
    let store = context.store(Access::ReadOnly).await?;
    let events = of_family(&store, &key).await?;
    if events.is_empty() {
        // What is gone may have left its events behind.
        target::read(&store, &key).await?;
    }
    let entries = timeline::entries(&events);
    let mut printer = context.printer(&args.output);
    let subject = format!("{}/{name}", kind.singular());
    if *printer.format() == Format::Jsonl {
        let lines = timeline::stream(&entries).iter().map(document::json_line).collect::<String>();
        return Ok(printer.data(&lines)?);
    }
    if entries.is_empty() && printer.format().is_for_people() {
        printer.note(&format!("No events of {subject}."));
        return Ok(());
    }
    let headers = if args.output.no_headers { Headers::Hidden } else { Headers::Shown };
    let now = context.now();
    let report = timeline::report(&subject, &key.name.namespace, &entries, now);
    printer.report(&report, |colour| timeline::text(&entries, now, headers, colour))?;
    Ok(())
}

/// Reads the events of an object and of everything below it, whether that is still there or not.
///
/// # Errors
/// Fails when the store does.
pub async fn of_family(store: &Arc<dyn Store>, key: &Key) -> Result<Vec<Event>, StoreError> {
    let family = family(store, key).await?;
    let namespace = &key.name.namespace;
    let events = Resources::<Event>::new(Arc::clone(store), Kind::Event);
    let events = events.list(&target::events_scope(namespace)).await?;
    Ok(lineage::below(&family, namespace, &events).into_iter().cloned().collect())
}

/// The object and all that is there below it, from owner to owned.
async fn family(store: &Arc<dyn Store>, root: &Key) -> Result<Vec<Named>, StoreError> {
    let mut family = vec![(root.kind, root.name.name.clone())];
    let mut above: Vec<String> =
        store.get(root).await?.into_iter().map(|record| record.uid().to_owned()).collect();
    let mut kind = root.kind;
    while let Some(below) = owned_by(kind) {
        let mut next = Vec::new();
        for uid in &above {
            for record in store.list(below, &Scope::owned_by(&root.name.namespace, uid)).await? {
                next.push(record.uid().to_owned());
                family.push((below, record.key.name.name));
            }
        }
        (kind, above) = (below, next);
    }
    Ok(family)
}

/// What hangs below a kind.
fn owned_by(kind: Kind) -> Option<Kind> {
    match kind {
        Kind::Certificate => Some(Kind::CertificateRequest),
        Kind::CertificateRequest => Some(Kind::Order),
        Kind::Order => Some(Kind::Challenge),
        Kind::Challenge | Kind::ClusterIssuer | Kind::Event | Kind::Issuer | Kind::Secret => None,
    }
}
