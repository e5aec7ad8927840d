//! `watch`: shows live tables on a terminal, or prints one line per change; read-only.

mod family;
mod news;
mod watched;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;

use self::family::ObjectTree;
use self::watched::WatchedObjects;
use crate::context::failure::Failure;
use crate::context::flags::output::StreamArgs;
use crate::context::{Context, store_when_there};
use crate::input::{completers, lookup, target};
use crate::listing::changes::{Changes, may_be_left_out, of_kinds, others};
use crate::model::{Key, Kind};
use crate::print::screen::Screen;
use crate::print::{Printer, terminal};
use crate::store::{Scope, Store};

/// Minimum time between two drawings of a terminal; without changes, a drawing each second updates the ages.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Flags of `watch`.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// One object with all objects below it, KIND/NAME or KIND NAME; a name alone is a Certificate's
    #[arg(num_args = 0..=2, value_name = "KIND/NAME", add = completers::object())]
    pub object: Vec<String>,
    /// Watch all namespaces
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Flags of the output
    #[command(flatten)]
    pub output: StreamArgs,
}

/// Runs `watch`, which ends when it is interrupted.
///
/// # Errors
/// Fails when the words name no object, the store cannot be read, or when interrupted.
pub async fn run(args: WatchArgs, context: &mut Context) -> Result<(), Failure> {
    if !args.object.is_empty() && args.all_namespaces {
        let what = "a name belongs to one namespace, so it cannot be combined with -A";
        return Err(Failure::usage(what));
    }
    let mut printer = context.printer(&(&args.output).into());
    let is_screen = printer.format().is_for_people()
        && std::io::stdout().is_terminal()
        && terminal::is_capable();
    let store = store_when_there(context).await?;
    let root = match args.object.as_slice() {
        [] => None,
        words => Some(lookup::object(&store, words, context.namespace()).await?),
    };
    let namespace = (!args.all_namespaces).then(|| context.namespace().to_owned());
    let mut changes = watch_all(&store, root.as_ref(), namespace.as_deref());
    let watched_root = root.clone();
    let mut scene =
        WatchedObjects::new(Arc::clone(&store), root.map(ObjectTree::of), args.all_namespaces);
    let mut screen = is_screen.then(Screen::default);
    let mut tick = tokio::time::interval(REDRAW_INTERVAL);
    // Second of the last drawing; `None` if something has changed since.
    let mut drawn = None;
    let mut is_missing_told = false;
    while !printer.is_closed() {
        tokio::select! {
            change = changes.next() => {
                let Some((kind, change)) = change else { break };
                let change = match change {
                    Err(error) if may_be_left_out(kind, watched_root.as_ref(), &error) => {
                        printer.note(&format!("{} are not watched: {error}", kind.plural()));
                        changes = others(changes, kind);
                        continue;
                    }
                    change => change?,
                };
                let news = scene.take(kind, change, context.now()).await?;
                drawn = None;
                if screen.is_none() {
                    print(&mut printer, &news)?;
                    if let Some(root) = scene.missing().filter(|_| !is_missing_told) {
                        is_missing_told = true;
                        print_missing(&store, root, context).await?;
                    }
                }
            }
            _ = tick.tick(), if screen.is_some() => {
                let now = context.now();
                if let Some(screen) = &mut screen
                    && drawn != Some(now.as_second())
                {
                    screen.show(&mut printer, |frame| scene.frame(frame, now))?;
                    drawn = Some(now.as_second());
                }
            }
            kind = context.interrupted().wait() => return Err(Failure::silent(kind)),
        }
    }
    Ok(())
}

/// Watches the six kinds, and the events about them.
fn watch_all(store: &Arc<dyn Store>, root: Option<&Key>, namespace: Option<&str>) -> Changes {
    let events = match (root, namespace) {
        (Some(key), _) => target::events_scope(&key.name.namespace),
        (None, Some(namespace)) => target::events_scope(namespace),
        (None, None) => Scope::all(),
    };
    let objects = Kind::SIX.map(|kind| (kind, target::scope(kind, namespace)));
    of_kinds(store, objects.into_iter().chain([(Kind::Event, events)]))
}

/// Prints that the object does not exist, and where an object of this name is: the name may be misspelt.
async fn print_missing(
    store: &Arc<dyn Store>,
    root: &Key,
    context: &Context,
) -> Result<(), Failure> {
    let failure = lookup::not_found(store, root).await?;
    context.talk().line(&format!("{failure}; waiting for it until Ctrl-C"));
    for hint in failure.hints {
        context.talk().line(&hint);
    }
    Ok(())
}

fn print(printer: &mut Printer, news: &[news::News]) -> Result<(), Failure> {
    for news in news {
        if printer.format().is_for_people() {
            printer.text(&news.line())?;
        } else {
            printer.data(&news.json_line())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::ObjectName;
    use crate::print::colour::{Colour, Colours};
    use crate::print::table::Headers;
    use crate::print::talk::{Memory, MessageStream};

    #[test]
    fn the_words_of_others_do_not_steer_the_terminal() {
        let news = news::News {
            at: Timestamp::UNIX_EPOCH,
            subject: Key::new(Kind::Order, ObjectName::new("shop", "web")),
            namespaces: false,
            text: "errored: \u{1b}]0;owned\u{7}\u{9b}31m".to_owned(),
        };
        for (format, expected) in [
            ("table", "1970-01-01T00:00:00Z order/web errored: ^[]0;owned^G\\u{9b}31m\n"),
            ("jsonl", &news.json_line()),
        ] {
            let out = Memory::default();
            let mut printer = Printer::new(
                Box::new(out.clone()),
                MessageStream::new(Box::new(Memory::default())),
                format.parse().unwrap(),
                Headers::Shown,
                Colours { out: Colour::On, talk: Colour::On },
            );
            print(&mut printer, std::slice::from_ref(&news)).unwrap();
            assert_eq!(out.text(), expected);
        }
    }
}
