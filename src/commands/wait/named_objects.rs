//! Which objects `wait` is about.

use std::sync::Arc;

use super::goal::WaitGoal;
use crate::context::failure::Failure;
use crate::input::lookup;
use crate::input::selector::LabelSelector;
use crate::input::target;
use crate::input::target::Targets;
use crate::model::{Key, Record};
use crate::store::Store;

/// The words of a command line that name what is waited for.
#[derive(Clone, Copy, Debug)]
pub struct NamedObjects<'a> {
    /// Kinds and names.
    pub words: &'a [String],
    /// Whether every object of a kind is meant.
    pub all: bool,
    /// Labels of those that are meant.
    pub selector: Option<&'a LabelSelector>,
    /// Namespace of those that have one.
    pub namespace: &'a str,
}

impl NamedObjects<'_> {
    /// The objects that the words name; those that are not there yet only where their making is waited for, and those that are
    /// gone where that is.
    ///
    /// # Errors
    /// Fails when the words name none, one is not there, a kind can never be so, or the store fails.
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
