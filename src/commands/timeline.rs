//! `timeline`: lists the events of an object and of all objects below it, in order, with durations.

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::ReportArgs;
use crate::input::{completers, lookup};
use crate::lead;
use crate::objects::awaited::awaited;
use crate::objects::history;
use crate::store::local::Access;

/// Flags of `timeline`.
#[derive(Debug, clap::Args)]
pub struct TimelineArgs {
    /// The object, KIND/NAME or KIND NAME; a name alone is a Certificate's
    #[arg(required = true, num_args = 1..=2, value_name = "KIND/NAME", add = completers::object())]
    pub object: Vec<String>,
    /// Flags of the output
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Runs `timeline`.
///
/// # Errors
/// Fails when there is neither the object nor an event of it, or the store cannot be read.
pub async fn run(args: TimelineArgs, context: &mut Context) -> Result<(), Failure> {
    let store = context.store(Access::ReadOnly).await?;
    let key = lookup::object(&store, &args.object, context.namespace()).await?;
    let entries = history::entries(&store, &key).await?;
    if entries.is_empty() {
        // Events of a deleted object may still exist.
        lookup::read(&store, &key).await?;
    }
    let awaited = awaited(&store, &key).await?;
    let mut printer = context.printer(&(&args.output).into());
    let subject = format!("{}/{}", key.kind.singular(), key.name.name);
    let (people, now) = (printer.format().is_for_people(), context.now());
    if entries.is_empty() && people {
        printer.note(&format!("No events of {subject}."));
        if let Some(awaited) = &awaited {
            printer.note(&format!("Now: {awaited}"));
        }
    } else {
        let namespace = &key.name.namespace;
        printer.timeline((&subject, namespace), &entries, awaited.as_deref(), now)?;
    }
    if people && awaited.is_some() && !lead::is_driven(context).await? {
        printer.note(lead::NO_CONTROLLER);
    }
    Ok(())
}
