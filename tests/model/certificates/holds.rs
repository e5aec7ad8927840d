//! What has to hold of a Certificate, its keys and its request, in the words of `tests/sim/invariants/`.

use kubectl_acme::model::CertificateRequest;
use kubectl_acme::model::certificate::{ISSUING, READY};
use kubectl_acme::model::common::{condition, is_true};

use super::{State, Stored, World, Write, moment};

type Holds = Result<(), String>;

/// No key is used before it is stored, nor lost while it is used.
pub(crate) fn key_is_stored(store: &Stored, key: u8) -> Holds {
    let is_temporary = store.keys.contains(&Some(key));
    if is_temporary || store.secret.is_some_and(|(held, _)| held == key) {
        return Ok(());
    }
    Err(format!("keys: key {key} is used, and no Secret has it"))
}

/// One Order for each try.
pub(crate) fn one_order(state: &State) -> Holds {
    if state.orders_made > 1 + state.excused {
        return Err(format!(
            "one order: {} were made, {} excused",
            state.orders_made, state.excused
        ));
    }
    Ok(())
}

/// A try that failed is not followed by another one within an hour.
fn pause_is_kept(world: &World, state: &State) -> Holds {
    let certificate = world.certificates.get(state.store.certificate);
    let Some(failed_at) = certificate.status.last_failure_time else { return Ok(()) };
    if moment(state.now).duration_since(failed_at.timestamp()).as_secs() >= 3600 {
        return Ok(());
    }
    Err("pause: another try comes within an hour of one that failed".to_owned())
}

/// What has to hold of one write, whatever was before it.
pub(crate) fn after_write(world: &World, before: &Stored, after: &State, write: Write) -> Holds {
    let store = &after.store;
    match write {
        Write::NewRequest(id) => {
            pause_is_kept(world, after)?;
            key_is_stored(store, super::facts::key_of(&world.requests.get(id)))
        }
        Write::NewOrder(order) => {
            let owner = store.request.map(|id| world.requests.get(id));
            // One whose request has gone meanwhile is collected.
            match owner.filter(|owner| super::facts::number_of(owner) == order.owner) {
                Some(_) => key_is_stored(store, order.key),
                None => Ok(()),
            }
        }
        Write::Secret { new: (held, issued), .. } if held != issued => {
            Err("keys: the Secret has the certificate of another key".to_owned())
        }
        Write::Certificate { .. } => {
            let (was, is) = (
                world.certificates.get(before.certificate),
                world.certificates.get(store.certificate),
            );
            if is.status.revision < was.status.revision {
                return Err("statuses: the revision goes back".to_owned());
            }
            let failures = |c: &kubectl_acme::model::Certificate| c.status.failed_issuance_attempts;
            if failures(&is) > failures(&was).map_or(Some(1), |count| Some(count + 1)) {
                return Err("statuses: one failure counts twice".to_owned());
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A request that has ended stays as it is.
pub(crate) fn request_moves_as_it_may(
    before: &CertificateRequest,
    write: Option<&Write>,
    world: &World,
) -> Holds {
    let Some(Write::Request { new, .. }) = write else { return Ok(()) };
    let reason = |request: &CertificateRequest| {
        condition(&request.status.conditions, "Ready").map(|ready| ready.reason.clone())
    };
    let (was, is) = (reason(before), reason(&world.requests.get(*new)));
    match was.as_deref() {
        Some("Issued" | "Failed") if was != is => {
            Err("statuses: a request had ended and goes on".to_owned())
        }
        _ => Ok(()),
    }
}

/// Whether all is over: the Certificate is issued, for its key, and nothing temporary is left.
pub(crate) fn is_over(world: &World, state: &State) -> bool {
    let certificate = world.certificates.get(state.store.certificate);
    let conditions = &certificate.status.conditions;
    is_true(conditions, READY)
        && !is_true(conditions, ISSUING)
        && certificate.status.revision == Some(1)
        && certificate.status.next_private_key_secret_name.is_empty()
        && state.store.keys == [None; super::KEYS]
        && state.store.secret.is_some_and(|(held, issued)| held == issued)
        && state.flight.is_none()
}
