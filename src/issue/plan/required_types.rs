//! Types of challenges that a command may have to answer itself.
//!
//! Only a type that may have to be answered takes a port.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::controllers::selection::Selection;
use crate::diagnosis::case::chain::issuer_key;
use crate::issue::preflight::certificates::choices;
use crate::issue::tracked::Tracked;
use crate::model::{Challenge, ChallengeType, Issuer, Key, Kind};
use crate::objects::own_request::certificate_of;
use crate::store::error::StoreError;
use crate::store::resources::{Resources, typed};
use crate::store::{Scope, Store};

/// Returns the types of challenges that this run may have to answer: of the solvers chosen for the names of due
/// Certificates, and of unfinished Challenges of an earlier run.
///
/// # Errors
/// Fails when the store does.
pub async fn required_types(
    store: &Arc<dyn Store>,
    given: &BTreeSet<Key>,
    open: &BTreeMap<Key, Tracked>,
) -> Result<BTreeSet<ChallengeType>, StoreError> {
    let mut asked = BTreeSet::new();
    for (key, _) in open.iter().filter(|(_, tracked)| tracked.is_due()) {
        let Some(record) = store.get(key).await? else { continue };
        let certificate = certificate_of(&record)?;
        let Some(issuer) = issuer_key(&certificate) else { continue };
        let Some(record) = store.get(&issuer).await? else { continue };
        let issuer = typed::<Issuer>(record)?;
        asked.extend(
            choices(&certificate, &issuer).filter_map(|(_, chosen)| Some(chosen.ok()?.kind)),
        );
    }
    // Challenges of an interrupted run, not those that other commands left behind.
    let challenges = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
    let selection = Selection::only(given.clone());
    for challenge in challenges.list(&Scope::all()).await? {
        let key = Key::new(Kind::Challenge, challenge.name());
        let is_over = challenge.has_ended();
        if !is_over && selection.covers(&**store, &key).await? {
            asked.insert(challenge.spec.kind);
        }
    }
    Ok(asked)
}
