//! Selection of the objects that `wait` waits for.

use std::sync::Arc;

use super::goal::WaitGoal;
use crate::context::failure::Failure;
use crate::input::lookup;
use crate::input::selector::LabelSelector;
use crate::input::target::{self, Targets};
use crate::model::{Key, Record};
use crate::store::Store;

/// Words and flags of the command line that select objects.
#[derive(Clone, Copy, Debug)]
pub struct NamedObjects<'a> {
    /// Kinds and names.
    pub words: &'a [String],
    /// Whether every object of a kind is selected.
    pub all: bool,
    /// Labels of the selected objects.
    pub selector: Option<&'a LabelSelector>,
    /// Namespace of namespaced objects.
    pub namespace: &'a str,
}

impl NamedObjects<'_> {
    /// Keys of the selected objects. Named objects that do not exist are kept only if the goal is their creation or deletion.
    ///
    /// # Errors
    /// Fails when nothing is named, an object is not found, a kind can never reach the goal, or the store fails.
    pub async fn keys(&self, goal: &WaitGoal, store: &Arc<dyn Store>) -> Result<Vec<Key>, Failure> {
        let Self { words, all, selector, namespace } = *self;
        let wanted = Targets::parse(words)?;
        wanted.kinds().into_iter().try_for_each(|kind| goal.check(kind))?;
        let mut found = Vec::new();
        match wanted {
            Targets::Kinds(kinds) => {
                if !all && selector.is_none() {
                    return Err(Failure::usage("no name is given")
                        .hint("write KIND/NAME, or KIND with --all or -l LABELS"));
                }
                for kind in kinds {
                    let listed =
                        store.list(kind, &target::scope(kind, Some(namespace)).brief()).await?;
                    let fits = |r: &Record| selector.is_none_or(|labels| labels.fits(r));
                    found.extend(listed.into_iter().filter(fits).map(|record| record.key));
                }
            }
            Targets::Named(named) => {
                if all || selector.is_some() {
                    let what = "names cannot be combined with --all or -l";
                    return Err(Failure::usage(what));
                }
                for (kind, name) in named {
                    let key = target::key(kind, &name, namespace);
                    match (lookup::keys(store, &key).await?, goal) {
                        (led, WaitGoal::Deleted | WaitGoal::Created) if led.is_empty() => {
                            found.push(key);
                        }
                        (led, _) if led.is_empty() => {
                            return Err(lookup::not_found(store, &key).await?);
                        }
                        (led, _) => found.extend(led),
                    }
                }
            }
        }
        Ok(found)
    }
}
