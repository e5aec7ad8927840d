//! Passwords of keystores, checked before the order: without a password no Secret is written.

use super::provider_secrets::SecretPlaces;
use crate::context::failure::Failure;
use crate::controllers::keystores::password_in;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::next_step::NextStep;
use crate::hints;
use crate::model::keystore::PasswordPlace;
use crate::model::{Certificate, Key, Kind, ObjectName, Secret};
use crate::store::resources::typed;

/// Checks that the password of each keystore that a Certificate asks for exists.
///
/// # Errors
/// Fails when a password is missing. A Secret that may not be read is left to the work itself.
pub(super) async fn check(
    certificate: &Certificate,
    places: SecretPlaces<'_>,
) -> Result<(), Failure> {
    let Some(keystores) = &certificate.spec.keystores else { return Ok(()) };
    for format in keystores.wanted() {
        let PasswordPlace::Secret(selector) = keystores.password(format) else { continue };
        let place = ObjectName::new(&certificate.metadata.namespace, &selector.name);
        let key = Key::new(Kind::Secret, place.clone());
        let found = match places.records.iter().find(|record| record.key == key) {
            Some(record) => Some(record.clone()),
            None => match places.store.get(&key).await {
                Ok(found) => found,
                Err(error) if error.lacks_permission() => continue,
                Err(error) => return Err(error.into()),
            },
        };
        let found = found.map(typed::<Secret>).transpose()?;
        if let Err(why) = password_in(found.as_ref(), format, place, selector.key.clone()) {
            let message = format!("Certificate {}: {why}", certificate.name());
            let failure = Failure::new(FailureKind::Usage, message);
            return Err(failure.hint(hints::line(&NextStep::Keystore(Box::new(why)))));
        }
    }
    Ok(())
}
