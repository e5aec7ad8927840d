//! `tree`: shows the objects below a Certificate, with the state and the wait of each; read-only.

pub mod forest;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use self::forest::{Forest, TreeReader, report, rows};
use crate::context::failure::Failure;
use crate::context::flags::output::ReportArgs;
use crate::context::{Context, store_when_there};
use crate::input::selector::LabelSelector;
use crate::input::{applying, completers, lookup, target};
use crate::listing::changes::{self, may_be_left_out, others};
use crate::model::{Key, Kind, Time};
use crate::print::format::Format;
use crate::print::screen::Screen;
use crate::print::table::Headers;
use crate::print::{Printer, terminal, tree};
use crate::store::Store;
use crate::store::error::unless_forbidden;

/// Time within which changes are collected and shown together.
const COLLECT_TIME: Duration = Duration::from_millis(100);
/// Interval at which ages on a terminal are drawn anew.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// Flags of `tree`.
#[derive(Debug, clap::Args)]
pub struct TreeArgs {
    /// The object, KIND/NAME or KIND NAME; a name alone is a Certificate's; without any, every Certificate of the namespace
    #[arg(num_args = 0..=2, value_name = "KIND/NAME", add = completers::object())]
    pub object: Vec<String>,
    /// Show the Certificates of all namespaces
    #[arg(long, short = 'A', conflicts_with = "object")]
    pub all_namespaces: bool,
    /// Only Certificates with these labels, such as app=web
    #[arg(long, short = 'l', value_name = "LABELS", conflicts_with = "object")]
    pub selector: Option<LabelSelector>,
    /// Show the tree again at every change, until Ctrl-C
    #[arg(long, short = 'w')]
    pub watch: bool,
    /// Flags of the output
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Runs `tree`.
///
/// # Errors
/// Fails when the object is not found, the store cannot be read, or when interrupted.
pub async fn run(args: TreeArgs, context: &mut Context) -> Result<(), Failure> {
    let store = if args.watch {
        context.at_hand(store_when_there(context).await?)
    } else {
        context.existing_store().await?
    };
    let root = match args.object.as_slice() {
        [] => None,
        words => match target::asking(words, context.namespace()) {
            None => Some(lookup::object(&store, words, context.namespace()).await?),
            asking => asking,
        },
    };
    let mut printer = context.printer(&(&args.output).into());
    if !args.watch {
        let forest = forest(&args, root.as_ref(), &store, context).await?;
        if forest.trees.is_empty() && printer.format().is_for_people() {
            printer.nothing_found((!args.all_namespaces).then(|| context.namespace()));
            return Ok(());
        }
        return show(&args, &forest, &mut printer, context);
    }
    follow(&args, root.as_ref(), &store, (&mut printer, context)).await
}

/// Shows the trees again after each change.
async fn follow(
    args: &TreeArgs,
    root: Option<&Key>,
    store: &Arc<dyn Store>,
    (printer, context): (&mut Printer, &Context),
) -> Result<(), Failure> {
    let namespace = (!args.all_namespaces).then(|| context.namespace().to_owned());
    let mut changes = changes::of_the_six(store, namespace.as_deref());
    let is_screen = printer.format().is_for_people()
        && std::io::stdout().is_terminal()
        && terminal::is_capable();
    let mut screen = is_screen.then(Screen::default);
    let mut shown: Option<Forest> = None;
    let mut next = Instant::now();
    while !printer.is_closed() {
        tokio::select! {
            biased;
            kind = context.interrupted().wait() => return Err(Failure::silent(kind)),
            () = sleep_until(next) => {
                let forest = forest(args, root, store, context).await?;
                if let Some(screen) = &mut screen {
                    let (now, format) = (context.now(), &printer.format().clone());
                    screen.show(printer, |frame| {
                        let shape = (args.all_namespaces, *format == Format::Wide);
                        let look = (headers(args), frame.colour, Some(frame.columns()));
                        frame.block(&tree::table(&rows(&forest.trees), shape, look, now));
                        frame.tail(forest.unread_lines().into_iter().map(|line| line + "\n"));
                        frame.footer(format!("{}  Ctrl-C ends", Time::new(now)));
                    })?;
                } else if shown.as_ref() != Some(&forest) {
                    if shown.is_some() && printer.format().is_for_people() {
                        printer.text("\n")?;
                    }
                    show(args, &forest, printer, context)?;
                    shown = Some(forest);
                }
                next = Instant::now() + REDRAW_INTERVAL;
            }
            change = changes.next() => {
                let Some((kind, change)) = change else { break };
                match change {
                    Err(error) if may_be_left_out(kind, root, &error) => {
                        changes = others(changes, kind);
                    }
                    Err(error) if error.may_pass() => {}
                    change => drop(change?),
                }
                next = next.min(Instant::now() + COLLECT_TIME);
            }
        }
    }
    Ok(())
}

/// Reads the selected trees, by namespace and name.
async fn forest(
    args: &TreeArgs,
    root: Option<&Key>,
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<Forest, Failure> {
    let mut reader = TreeReader::new(store, applying::behind(store, context));
    if let Some(root) = root {
        let tree = reader.tree(root).await?;
        return Ok(reader.forest(vec![tree]));
    }
    let namespace = (!args.all_namespaces).then(|| context.namespace());
    let scope = |kind| target::scope(kind, namespace).brief();
    let mut roots = store.list(Kind::Certificate, &scope(Kind::Certificate)).await?;
    // CertificateRequests that no Certificate has made are roots, too.
    let requests = store.list(Kind::CertificateRequest, &scope(Kind::CertificateRequest)).await;
    let requests = unless_forbidden(requests)?.unwrap_or_default();
    roots.extend(requests.into_iter().filter(|it| it.metadata().controller().is_none()));
    let mut trees = Vec::new();
    for record in roots {
        if args.selector.as_ref().is_none_or(|labels| labels.fits(&record)) {
            trees.push(reader.tree(&record.key).await?);
        }
    }
    Ok(reader.forest(trees))
}

fn headers(args: &TreeArgs) -> Headers {
    if args.output.no_headers { Headers::Hidden } else { Headers::Shown }
}

fn show(
    args: &TreeArgs,
    forest: &Forest,
    printer: &mut Printer,
    context: &Context,
) -> Result<(), Failure> {
    let (width, now) = (printer.width(), context.now());
    let shape = (args.all_namespaces, *printer.format() == Format::Wide);
    printer.report(&report(forest), |colour| {
        let look = (headers(args), colour, width);
        tree::table(&rows(&forest.trees), shape, look, now)
    })?;
    forest.unread_lines().iter().for_each(|line| printer.note(line));
    Ok(())
}
