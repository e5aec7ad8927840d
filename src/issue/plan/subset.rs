//! `--allow-subset-of-names`: if some names of a Certificate fail, it is issued for the other names, as certbot does.
//!
//! The spec loses the failed names then, and an annotation keeps them, so that the same manifest asks for no certificate
//! until the next is due: then all names are tried once more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::due::Inspection;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::controllers::certificate::Due;
use crate::diagnosis::case::chain::{Chain, key_of};
use crate::diagnosis::words::facts;
use crate::input::Input;
use crate::issue::preflight::certificates::{certificates, names};
use crate::issue::tracked::End;
use crate::model::memory::{NAMES_LEFT_OUT, names_left_out};
use crate::model::{Certificate, Challenge, Key, Kind, Record, State};
use crate::objects::chain;
use crate::print::Printer;
use crate::reconcile::certificate::options::Options;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::local::Access;
use crate::store::resources::{Resources, typed};

/// Most rounds of one command in which names are left out: each round costs an order.
pub const LEAVE_OUT_ROUNDS_MAX: usize = 3;

/// Names of each Certificate that are left out.
pub type LeftOut = BTreeMap<Key, BTreeSet<String>>;

/// Returns the failed names of Certificates that have other names.
///
/// # Errors
/// Fails when the store does.
pub async fn failed(
    ends: &BTreeMap<Key, End>,
    store: &Arc<dyn Store>,
) -> Result<LeftOut, StoreError> {
    let mut found = LeftOut::new();
    for (key, end) in ends.iter().filter(|(key, _)| key.kind == Kind::Certificate) {
        let End::Failed(failure) = end else { continue };
        let Some(chain) = chain::read(store, &key.name).await? else { continue };
        let failed = failed_names(&chain, failure.facts.is_late);
        let has_others = names(&chain.certificate).any(|name| !has(&failed, name));
        if has_others && !failed.is_empty() {
            found.insert(key.clone(), failed);
        }
    }
    Ok(found)
}

/// Returns the names for which the last order failed: names that the CA refused, and if time was up, also names that it
/// did not validate. If one name fails, names whose challenge the CA was not asked to validate are not at fault.
fn failed_names(chain: &Chain, is_late: bool) -> BTreeSet<String> {
    let Some(order) = chain.order() else { return BTreeSet::new() };
    let is_bad = |challenge: &&Challenge| match challenge.status.state {
        Some(state) if state.is_failure() => facts::cause(challenge).is_some(),
        Some(State::Valid) => false,
        _ => is_late,
    };
    let own = chain.challenges.iter().filter(|c| c.metadata.is_controlled_by(&order.metadata.uid));
    let by_challenge = own.filter(is_bad).map(|challenge| challenge.spec.shown_domain());
    let problem = facts::problem(order);
    let refused = problem.iter().flat_map(|problem| &problem.subproblems);
    let refused = refused.filter_map(|one| Some(one.identifier.as_ref()?.value.clone()));
    by_challenge.chain(refused).collect()
}

fn has(left_out: &BTreeSet<String>, name: &str) -> bool {
    left_out.iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// Removes names from the manifest of a Certificate.
pub fn without(record: &mut Record, left_out: &BTreeSet<String>) {
    let Some(Value::Object(spec)) = record.object.get_mut("spec") else { return };
    for list in ["dnsNames", "ipAddresses"] {
        if let Some(Value::Array(names)) = spec.get_mut(list) {
            names.retain(|name| !name.as_str().is_some_and(|name| has(left_out, name)));
        }
    }
    let common = spec.get("commonName").and_then(Value::as_str);
    if common.is_some_and(|name| has(left_out, name)) {
        spec.remove("commonName");
    }
}

/// Returns the input without the names that an earlier command left out and that are not to be tried again yet.
///
/// # Errors
/// Fails when the store does.
pub async fn as_left_before(
    mut input: Input,
    context: &Context,
    printer: &Printer,
) -> Result<Input, Failure> {
    let store = context.store(Access::ReadOnly).await?;
    let inspection = Inspection::new(&store, Options::default(), Timestamp::now());
    let wanted: Vec<Certificate> = certificates(input.records()).collect();
    for wanted in wanted {
        let key = key_of(&wanted);
        if key.kind != Kind::Certificate {
            continue;
        }
        let Some(there) = store.get(&key).await? else { continue };
        let there = typed::<Certificate>(there)?;
        let left_out = kept(&there);
        let asked: BTreeSet<&str> = names(&wanted).collect();
        let held: BTreeSet<&str> =
            names(&there).chain(left_out.iter().map(String::as_str)).collect();
        if left_out.is_empty() || asked != held || inspection.due(&key.name).await? != Due::No {
            continue;
        }
        let until = there.status.renewal_time.map(|at| format!(" at {at}")).unwrap_or_default();
        let list = Vec::from_iter(left_out.clone()).join(", ");
        printer.note(&format!("{key}: names left out until its renewal{until}: {list}"));
        input.change(&key, |record| without(record, &left_out));
    }
    Ok(input)
}

/// Names without which a Certificate was issued.
pub fn kept(certificate: &Certificate) -> BTreeSet<String> {
    names_left_out(&certificate.metadata.annotations)
}

/// Stores the names that were left out of issued Certificates; of other issued Certificates that were due (as `followed`
/// says), removes the stored names.
///
/// # Errors
/// Fails when the store does.
pub async fn keep(
    ends: &BTreeMap<Key, End>,
    followed: &BTreeMap<Key, bool>,
    left_out: &LeftOut,
    store: &Arc<dyn Store>,
) -> Result<(), StoreError> {
    let certificates = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
    let is_new = |(key, end): &(&Key, &End)| {
        key.kind == Kind::Certificate && end.is_good() && followed.get(*key) == Some(&true)
    };
    for (key, _) in ends.iter().filter(is_new) {
        let now = left_out.get(key).cloned().unwrap_or_default();
        // Controllers write the Certificate, too.
        for _ in 0..10 {
            let Some(mut certificate) = certificates.get(&key.name).await? else { break };
            if kept(&certificate) == now {
                break;
            }
            let annotations = &mut certificate.metadata.annotations;
            if now.is_empty() {
                annotations.remove(NAMES_LEFT_OUT);
            } else {
                annotations
                    .insert(NAMES_LEFT_OUT.to_owned(), Vec::from_iter(now.clone()).join(","));
            }
            match certificates.replace_metadata(&certificate).await {
                Err(StoreError::Conflict { .. }) => {}
                written => {
                    written?;
                    break;
                }
            }
        }
    }
    Ok(())
}
