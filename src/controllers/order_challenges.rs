//! Creation and deletion of the Challenges of an Order.

use futures_util::future::try_join_all;

use super::{ReconcileError, name_conflict};
use crate::model::{Challenge, ChallengeStatus, Key, Kind, Metadata, Order};
use crate::reconcile::order::Outcome;
use crate::reconcile::order::required::Required;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Creates missing Challenges, in parallel.
///
/// # Errors
/// Fails if the store does, or if another object has the name of a Challenge.
pub(super) async fn create(
    challenges: &Resources<Challenge>,
    order: &Order,
    missing: Vec<Required>,
) -> Result<Outcome, ReconcileError> {
    let made = missing.iter().map(|m| (m.name.clone(), m.spec.dns_name.clone())).collect();
    try_join_all(missing.into_iter().map(|one| create_one(challenges, order, one))).await?;
    Ok(Outcome::ChallengesCreated(made))
}

async fn create_one(
    challenges: &Resources<Challenge>,
    order: &Order,
    required: Required,
) -> Result<(), ReconcileError> {
    let challenge = Challenge {
        api_version: Kind::Challenge.api_version().to_owned(),
        kind: Kind::Challenge.as_str().to_owned(),
        metadata: Metadata {
            name: required.name,
            namespace: order.metadata.namespace.clone(),
            owner_references: vec![order.owner_reference()],
            ..Metadata::default()
        },
        spec: required.spec,
        status: ChallengeStatus::default(),
    };
    match challenges.create(&challenge).await {
        Ok(_) => Ok(()),
        Err(StoreError::AlreadyExists { key }) => {
            let ours = Key::new(Kind::Order, order.name());
            Ok(name_conflict::check_free(challenges, key, &ours, &order.metadata.uid).await??)
        }
        Err(error) => Err(error.into()),
    }
}

/// Deletes the Challenges of the Order that have one of these names, in parallel.
///
/// # Errors
/// Fails if the store does.
pub(super) async fn delete(
    challenges: &Resources<Challenge>,
    of_order: &[Challenge],
    names: &[String],
) -> Result<Outcome, ReconcileError> {
    let surplus = of_order.iter().filter(|challenge| names.contains(&challenge.metadata.name));
    try_join_all(surplus.map(|challenge| challenges.delete_exactly(challenge))).await?;
    Ok(Outcome::ChallengesDeleted)
}
