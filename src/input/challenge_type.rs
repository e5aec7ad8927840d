//! `--challenge-type`: every issuer of a set asks for that type of challenge.

use crate::context::failure::Failure;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::verdict::foreign_issuer;
use crate::model::issuer::CHALLENGE_TYPE;
use crate::model::{Key, Kind, Record};
use crate::objects::own_request::certificate_of;

/// Annotates every issuer of a set with a type of challenge (`--challenge-type`).
///
/// # Errors
/// Fails for a Certificate whose issuer is not in the set.
pub(crate) fn ask<'a>(
    kind: &str,
    records: impl Iterator<Item = &'a mut Record>,
) -> Result<(), Failure> {
    let records: Vec<&mut Record> = records.collect();
    let keys: Vec<Key> = records.iter().map(|record| record.key.clone()).collect();
    for record in records {
        if record.key.kind.is_issued() {
            let certificate = certificate_of(record)?;
            let issuer = issuer_key(&certificate).ok_or_else(|| foreign_issuer(&certificate))?;
            if keys.contains(&issuer) {
                continue;
            }
            let key = &record.key;
            return Err(Failure::usage(format!(
                "cannot use --challenge-type for {key}: {issuer} is not among the manifests"
            ))
            .hint(format!(
                "add its manifest with another -f, or annotate it: {CHALLENGE_TYPE}: {kind}"
            )));
        }
        if matches!(record.key.kind, Kind::Issuer | Kind::ClusterIssuer) {
            record.object["metadata"]["annotations"][CHALLENGE_TYPE] = kind.into();
        }
    }
    Ok(())
}
