//! What has to hold of one write or one request, whatever was before it.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use kubectl_acme::acme::chain::{self, Leaf};
use kubectl_acme::acme::{AccountKey, PrivateKey, csr};
use kubectl_acme::model::challenge::FINALIZER;
use kubectl_acme::model::{Blob, Key, Kind, ObjectName, Record, Secret};

use super::super::events::Asked;
use super::super::people::NAMESPACE;
use super::super::plan::{Deed, Fault};
use super::super::world::World;
use super::Holds;

/// No key of a certificate is used before it is stored; `gone` are those that somebody may have deleted since.
pub(super) fn key_is_stored(world: &World, asked: &Asked, gone: &HashSet<Blob>) -> Holds {
    let der = URL_SAFE_NO_PAD.decode(asked.payload["csr"].as_str().unwrap_or_default()).unwrap();
    let wanted = csr::read(&der).map_err(|error| error.to_string())?.public_key;
    let public = |pem: &[u8]| Some(PrivateKey::from_pem(pem).ok()?.public_key().to_vec());
    if secrets(world, public).contains(&wanted)
        || gone.iter().any(|blob| public(&blob.0).as_ref() == Some(&wanted))
    {
        return Ok(());
    }
    Err(format!("keys: {} is finalized with a key that no Secret has", asked.path))
}

/// No key of an account is used before it is stored.
pub(super) fn account_key_is_stored(world: &World, asked: &Asked) -> Holds {
    let (x, y) = (&asked.header["jwk"]["x"], &asked.header["jwk"]["y"]);
    let text = format!(r#"{{"crv":"P-256","kty":"EC","x":{x},"y":{y}}}"#);
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    let wanted = URL_SAFE_NO_PAD.encode(digest);
    let stored =
        secrets(world, |pem| Some(AccountKey::from_pem(pem).ok()?.thumbprint().to_owned()));
    if stored.contains(&wanted) {
        return Ok(());
    }
    Err("keys: an account is asked for with a key that no Secret has".to_owned())
}

fn secrets<T>(world: &World, read: impl Fn(&[u8]) -> Option<T>) -> Vec<T> {
    let secrets = world.typed::<Secret>(Kind::Secret);
    secrets
        .iter()
        .flat_map(|secret| secret.data.values())
        .filter_map(|blob| read(&blob.0))
        .collect()
}

/// A Challenge has its finalizer before its answer is put up.
pub(super) fn finalizer_comes_first(world: &World, key: &Key, uid: &str) -> Holds {
    let found = world.peek(key).filter(|record| record.uid() == uid);
    if found.is_some_and(|record| record.metadata().finalizers.iter().any(|name| name == FINALIZER))
    {
        return Ok(());
    }
    Err(format!("finalizer: the answer of {key} goes up without one"))
}

/// A Secret has a certificate with the key beside it, and none that is older than the one before. Where nothing goes wrong, it comes
/// before that one has expired.
pub(super) fn secret_is_whole(
    world: &World,
    (before, after): (Option<&Record>, Option<&Record>),
) -> Holds {
    let of_kind = |record: &&Record| record.key.kind == Kind::Secret;
    let Some(after) = after.filter(of_kind) else { return Ok(()) };
    let Some((key, leaf)) = pair(after)? else { return Ok(()) };
    if leaf.public_key != key {
        return Err(format!("Secret: {} has the certificate of another key", after.key));
    }
    let before = before.map(pair).transpose()?.flatten();
    let Some((old_key, old)) = before.filter(|(_, old)| old.renewal_id != leaf.renewal_id) else {
        return Ok(());
    };
    // Whoever wants another one as the certificate comes, before the key of the try is gone, has it with that key.
    let changes_mind = |fault: &Fault| match fault {
        Fault::Person { deed, .. } => matches!(
            deed,
            Deed::ChangesNames | Deed::DeletesRequest | Deed::DeletesOrder | Deed::Renews
        ),
        _ => false,
    };
    let keeps_key = world.setting.keeps_key;
    if (key == old_key) != keeps_key && (keeps_key || !world.faults.iter().any(changes_mind)) {
        return Err(format!(
            "Secret: the key of {} is kept, or not, against its policy",
            after.key
        ));
    }
    if leaf.not_after < old.not_after {
        return Err(format!("Secret: the certificate of {} is older than before", after.key));
    }
    if world.faults.is_empty() && old.not_after < world.now() {
        return Err(format!("Secret: {} is renewed after it has expired", after.key));
    }
    Ok(())
}

/// A certificate is not renewed as soon as it is there: where nothing goes wrong, a tenth of its life passes first.
pub(super) fn renewal_has_its_time(
    world: &World,
    (_, after): (Option<&Record>, Option<&Record>),
) -> Holds {
    let Some(certificate) = after.filter(|_| world.faults.is_empty()) else { return Ok(()) };
    let name = ObjectName::new(NAMESPACE, certificate.text("/spec/secretName"));
    let Some(secret) = world.peek(&Key::new(Kind::Secret, name)) else { return Ok(()) };
    let Some((_, leaf)) = pair(&secret)? else { return Ok(()) };
    // Certificates begin an hour before they are issued.
    let issued = leaf.not_before + SignedDuration::from_hours(1);
    if world.now().duration_since(issued) < leaf.not_after.duration_since(issued) / 10 {
        return Err(format!("renewal: {} is renewed as soon as it is there", certificate.key));
    }
    Ok(())
}

/// The public half of the key of a Secret, and its certificate; nothing where it has not both.
fn pair(secret: &Record) -> Result<Option<(Vec<u8>, Leaf)>, String> {
    let secret: Secret = serde_json::from_value(secret.object.clone()).unwrap();
    let part = |name: &str| secret.data.get(name).map(|blob| &*blob.0).filter(|it| !it.is_empty());
    let (Some(key), Some(chain)) = (part("tls.key"), part("tls.crt")) else { return Ok(None) };
    let wrong = |why: String| format!("Secret: {}: {why}", secret.metadata.name);
    let key = PrivateKey::from_pem(key).map_err(|error| wrong(error.to_string()))?;
    let leaf = chain::leaf(&String::from_utf8_lossy(chain));
    Ok(Some((key.public_key().to_vec(), leaf.map_err(|error| wrong(error.to_string()))?)))
}

/// Statuses move as cert-manager's may: what has ended stays as it is, and revisions count up one by one.
pub(super) fn status_moves_as_it_may(change: (Option<&Record>, Option<&Record>)) -> Holds {
    let (Some(before), Some(after)) = change else { return Ok(()) };
    let state = |record: &Record| record.text("/status/state").to_owned();
    let (was, is) = (state(before), state(after));
    // An Order that is valid has not ended before its certificate is there (RFC 8555 §7.4.2).
    let is_open = before.key.kind == Kind::Order && before.text("/status/certificate").is_empty();
    let has_ended =
        matches!(was.as_str(), "invalid" | "errored" | "expired") || (was == "valid" && !is_open);
    if has_ended && was != is {
        return Err(format!("statuses: {} goes from {was} to {is:?}", before.key));
    }
    // A limit passes, and with it the refusal.
    if was != is && is == "errored" && after.text("/status/reason").contains("rateLimited") {
        return Err(format!("Retry-After: {} ends at a limit", before.key));
    }
    let ready = |record: &Record| {
        let conditions =
            record.object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|c| c["type"] == "Ready").cloned().unwrap_or_default();
        (ready["status"] == "True", ready["reason"] == "Failed")
    };
    if before.key.kind == Kind::CertificateRequest {
        let (was, is) = (ready(before), ready(after));
        if (was.0 && !is.0) || (was.1 && !is.1) {
            return Err(format!("statuses: {} had ended and goes on", before.key));
        }
    }
    let revision = |record: &Record| record.object["status"]["revision"].as_i64().unwrap_or(0);
    let counts_on = revision(before)..=revision(before) + 1;
    if before.key.kind == Kind::Certificate && !counts_on.contains(&revision(after)) {
        return Err(format!("statuses: the revision of {} does not count on", before.key));
    }
    Ok(())
}
