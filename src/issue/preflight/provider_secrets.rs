//! Secrets of dns01 solvers, checked before the order: without these Secrets the order would be wasted.

use std::sync::Arc;

use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::solver::Dns01Solver;
use crate::model::{Issuer, Key, Kind, ObjectName, Record, Secret, SecretKeySelector};
use crate::store::Store;
use crate::store::resources::typed;

/// Places in which the Secrets of an issuer are looked up.
#[derive(Clone, Copy)]
pub(crate) struct SecretPlaces<'a> {
    /// Objects that are about to be applied.
    pub(crate) records: &'a [Record],
    /// Store with the existing objects.
    pub(crate) store: &'a Arc<dyn Store>,
    /// Namespace of the Secrets of ClusterIssuers.
    pub(crate) cluster_resources: &'a str,
}

/// Checks that the Secrets of a solver exist; `whose` is the Certificate and the name that need the solver.
///
/// # Errors
/// Fails when a Secret, or a key in it, is missing. A Secret that may not be read is left to the work itself.
pub(crate) async fn check(
    solver: &Dns01Solver,
    issuer: &Issuer,
    key: &Key,
    whose: &str,
    places: SecretPlaces<'_>,
) -> Result<(), Failure> {
    let namespace = issuer.secret_namespace(places.cluster_resources);
    for SecretKeySelector { name, key: entry } in solver.secrets() {
        let refused = |why: String| {
            let message = format!("{whose}: the dns01 solver of {key} lacks its Secret: {why}");
            Failure::new(FailureKind::Solver, message)
        };
        let place = Key::new(Kind::Secret, ObjectName::new(namespace, &name));
        let found = match places.records.iter().find(|record| record.key == place) {
            Some(record) => Some(record.clone()),
            None => match places.store.get(&place).await {
                Ok(found) => found,
                Err(error) if error.lacks_permission() => continue,
                Err(error) => return Err(error.into()),
            },
        };
        let Some(found) = found else {
            let why = format!("secrets \"{name}\" not found in namespace \"{namespace}\"");
            return Err(refused(why).hint(format!(
                "add a manifest of Secret {name}, with the key {entry}, in namespace {namespace}"
            )));
        };
        if typed::<Secret>(found)?.value(&entry).is_none() {
            return Err(refused(format!("Secret {namespace}/{name} has no key \"{entry}\"")).hint(
                format!("add the key {entry} to Secret {name}, or name another key in {key}"),
            ));
        }
    }
    Ok(())
}
