//! Listing objects: tables of any of the six kinds and every other format, for `get`, `certificate get`,
//! `order get` and `challenge get`.

pub mod changes;
pub mod following;
pub mod waiting_orders;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use self::following::Following;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::context::{Context, no_state_in, store_when_there};
use crate::input::lookup;
use crate::input::selector::{FieldSelector, LabelSelector};
use crate::input::target::{self, Targets};
use crate::model::{Kind, Record};
use crate::print::columns::{LabelColumns, Namespaces};
use crate::print::format::Format;
use crate::print::jsonpath::Path;
use crate::print::table::Headers;
use crate::print::{Group, Printer, Shape};
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::local::Access;

/// Flags of every command that lists objects.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ListArgs {
    /// List the objects of all namespaces
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Only objects with these labels, such as app=web
    ///
    /// app=web, tier!=front, 'app in (web,mail)', app, !app; several with commas.
    #[arg(long, short = 'l', value_name = "LABELS")]
    pub selector: Option<LabelSelector>,
    /// Only objects with these fields
    ///
    /// Such as metadata.name=web, spec.issuerRef.name=acme.
    #[arg(long, value_name = "FIELDS")]
    pub field_selector: Option<FieldSelector>,
    /// Labels to show
    #[command(flatten)]
    pub labels: LabelArgs,
    /// Sort by the value at this JSONPath
    ///
    /// Such as .metadata.creationTimestamp.
    #[arg(long, value_name = "JSONPATH", value_parser = Path::relaxed)]
    pub sort_by: Option<Path>,
    /// Print nothing if there is no such object
    #[arg(long)]
    pub ignore_not_found: bool,
    /// List, then show every change until interrupted
    #[arg(long, short)]
    pub watch: bool,
    /// Output flags
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags that show labels in tables.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LabelArgs {
    /// Show these labels as columns
    #[arg(long, short = 'L', value_name = "LABEL", value_delimiter = ',')]
    pub label_columns: Vec<String>,
    /// Show all labels in a last column
    #[arg(long)]
    pub show_labels: bool,
}

impl LabelArgs {
    fn columns(&self) -> LabelColumns {
        LabelColumns { each: self.label_columns.clone(), all: self.show_labels }
    }
}

/// Lists the wanted objects, and follows them with `--watch`; `certificate get` and the like call this function too.
///
/// # Errors
/// Fails if an object does not exist, or the store cannot be read.
pub async fn show(wanted: &Targets, args: &ListArgs, context: &mut Context) -> Result<(), Failure> {
    args.check(wanted)?;
    let mut printer = context.printer(&args.output);
    printer.show_labels(args.labels.columns());
    let store = if args.watch {
        store_when_there(context).await?
    } else {
        context.store(Access::ReadOnly).await?
    };
    let namespace = (!args.all_namespaces).then(|| context.namespace().to_owned());
    let detail = args.detail(printer.format());
    let found = find(&store, wanted, args, namespace.as_deref(), detail).await?;
    print(&mut printer, wanted, &found, args, context)?;
    for failure in &found.missing {
        printer.error(&failure.message, &failure.hints);
    }
    if let Some(failure) = Failure::of_all(&found.missing) {
        return Err(failure);
    }
    if !args.watch {
        // The process ends here; freeing ten thousand objects takes longer than printing them.
        std::mem::forget(found);
        return Ok(());
    }
    let [kind] = wanted.kinds()[..] else { return Ok(()) };
    let following = Following {
        kind,
        scope: target::scope(kind, namespace.as_deref()),
        names: found.names(wanted),
        labels: args.selector.clone().unwrap_or_default(),
        fields: args.field_selector.clone().unwrap_or_default(),
        namespaces: args.namespaces(),
        headers: args.headers_to_come(&found),
    };
    let listed = found.objects.into_values().flatten().collect();
    following.run(&store, listed, printer, context).await
}

impl ListArgs {
    fn check(&self, wanted: &Targets) -> Result<(), Failure> {
        let is_named = matches!(wanted, Targets::Named(_));
        if is_named && self.all_namespaces {
            let what = "a name belongs to one namespace, so it cannot be combined with -A";
            return Err(Failure::usage(what));
        }
        if is_named && (self.selector.is_some() || self.field_selector.is_some()) {
            return Err(Failure::usage("names cannot be combined with a selector"));
        }
        let several = match wanted {
            Targets::Kinds(kinds) => kinds.len() > 1,
            Targets::Named(named) => named.len() > 1,
        };
        if self.watch && several {
            return Err(Failure::usage("--watch follows one kind or one object")
                .hint("to follow everything at once: watch"));
        }
        Ok(())
    }

    fn namespaces(&self) -> Namespaces {
        if self.all_namespaces { Namespaces::Shown } else { Namespaces::Hidden }
    }

    /// Returns whether headings are still to come: if no object was listed, none were printed.
    fn headers_to_come(&self, found: &ListedObjects) -> Headers {
        let is_empty = found.objects.values().all(Vec::is_empty);
        if is_empty && !self.output.no_headers { Headers::Shown } else { Headers::Hidden }
    }

    /// Returns how much is read: tables and names show nothing of the bulk, but compared fields may be in it.
    fn detail(&self, format: &Format) -> Detail {
        let shows_bulk = !matches!(format, Format::Table | Format::Wide | Format::Name);
        let compares = self.field_selector.is_some() || self.sort_by.is_some();
        if shows_bulk || compares || self.watch { Detail::Whole } else { Detail::Brief }
    }

    fn fits(&self, record: &Record) -> bool {
        self.selector.as_ref().is_none_or(|labels| labels.fits(record))
            && self.field_selector.as_ref().is_none_or(|fields| fields.fits(record))
    }
}

/// Amount of each object that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Brief,
    Whole,
}

/// Result of a search.
struct ListedObjects {
    /// Objects by kind.
    objects: BTreeMap<Kind, Vec<Record>>,
    /// Failures about named objects that do not exist.
    missing: Vec<Failure>,
}

impl ListedObjects {
    /// Returns the names to follow: those of the named objects; none if all objects of a kind are wanted.
    fn names(&self, wanted: &Targets) -> Vec<String> {
        match wanted {
            Targets::Kinds(_) => Vec::new(),
            Targets::Named(_) => {
                self.objects.values().flatten().map(|record| record.key.name.name.clone()).collect()
            }
        }
    }
}

async fn find(
    store: &Arc<dyn Store>,
    wanted: &Targets,
    args: &ListArgs,
    namespace: Option<&str>,
    detail: Detail,
) -> Result<ListedObjects, StoreError> {
    let mut found = ListedObjects { objects: BTreeMap::new(), missing: Vec::new() };
    match wanted {
        Targets::Kinds(kinds) => {
            for kind in kinds {
                let scope = target::scope(*kind, namespace);
                let scope = if detail == Detail::Brief { scope.brief() } else { scope };
                let mut listed = match store.list(*kind, &scope).await {
                    // The other kinds are shown, as by kubectl.
                    Err(error) if error.lacks_permission() && kinds.len() > 1 => {
                        found.missing.push(error.into());
                        continue;
                    }
                    listed => listed?,
                };
                listed.retain(|record| args.fits(record));
                found.objects.insert(*kind, listed);
            }
        }
        Targets::Named(named) => {
            for (kind, name) in named {
                let named = target::key(*kind, name, namespace.unwrap_or_default());
                let keys = lookup::keys(store, &named).await?;
                if keys.is_empty() && !args.ignore_not_found {
                    found.missing.push(lookup::not_found(store, &named).await?);
                }
                let known = found.objects.entry(*kind).or_default();
                for key in keys {
                    if let Some(record) = store.get(&key).await?
                        && !known.iter().any(|known| known.key == record.key)
                    {
                        known.push(record);
                    }
                }
            }
        }
    }
    if let Some(path) = &args.sort_by {
        for listed in found.objects.values_mut() {
            listed.sort_by(|a, b| path.compare(&a.object, &b.object));
        }
    }
    Ok(found)
}

fn print(
    printer: &mut Printer,
    wanted: &Targets,
    found: &ListedObjects,
    args: &ListArgs,
    context: &Context,
) -> Result<(), Failure> {
    let kinds = wanted.kinds();
    let objects = |kind: &Kind| -> Vec<&Value> {
        found.objects.get(kind).into_iter().flatten().map(|record| &record.object).collect()
    };
    let groups: Vec<Group<'_>> =
        kinds.iter().map(|kind| Group { kind: *kind, objects: objects(kind) }).collect();
    let is_empty = groups.iter().all(|group| group.objects.is_empty());
    if is_empty && matches!(wanted, Targets::Named(_)) {
        return Ok(());
    }
    if is_empty && printer.format().is_for_people() {
        let in_namespace = !args.all_namespaces && kinds.iter().any(|kind| kind.is_namespaced());
        if !args.ignore_not_found {
            printer.nothing_found(in_namespace.then_some(context.namespace()));
            // As with kubectl, an empty list is no error: a script may begin to ask before there is a state.
            if let Some(folder) = context.absent_state()? {
                printer.hint(&no_state_in(&folder));
            }
        }
        return Ok(());
    }
    let is_one = names(wanted).len() == 1 && objects(&kinds[0]).len() == 1;
    let shape = if is_one { Shape::One } else { Shape::Many };
    Ok(printer.resources(&groups, shape, args.namespaces(), context.now())?)
}

fn names(wanted: &Targets) -> Vec<String> {
    match wanted {
        Targets::Kinds(_) => Vec::new(),
        Targets::Named(named) => named.iter().map(|(_, name)| name.clone()).collect(),
    }
}
