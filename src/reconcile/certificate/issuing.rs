//! Certificate under issuance: its key, its request, and the result of the request.
//!
//! No key is made before its Certificate asks for it. A hundred keys made ahead would save a fifth to two fifths of a
//! burst of a hundred certificates, and every process would hold unused keys.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::options::CopiedAnnotations;
use super::trigger::surplus_request;
use super::types::{Action, Delivery, KeyOrigin, Observed, Outcome, next, next_revision};
use crate::model::certificate::{ISSUING, READY};
use crate::model::common::{condition, is_true};
use crate::model::event::reason;
use crate::model::request::REVISION;
use crate::model::{
    Certificate, CertificateRequest, CertificateRequestSpec, ConditionStatus, Kind, Metadata,
    hashed_names, memory,
};
use crate::reconcile::facts::{KeyFacts, LeafFacts, RequestFacts, SecretFacts, annotation};
use crate::reconcile::{Wake, differences, secret_content};

/// Start of the message of an issuance for which no signing request can be made.
pub(super) const NO_REQUEST: &str = "Failed to generate CSR: ";

/// Start of the message of an issuance for which no key can be made.
pub(super) const NO_KEY: &str = "User intervention required: no new key: ";

/// Start of the message of an issuance for which a person has to change something.
const INTERVENTION: &str = "User intervention required: ";

/// Returns the message that ends an issuance under way: no key or no signing request can be made until a person changes
/// the spec, or the Secret that the spec forbids to replace. `None` if the issuance goes on.
pub fn end(certificate: &Certificate) -> Option<&str> {
    let is_over = [INTERVENTION, NO_REQUEST].iter().any(|words| was_refused(certificate, words));
    let issuing = condition(&certificate.status.conditions, ISSUING)?;
    (is_over && issuing.status == ConditionStatus::True).then_some(&issuing.message)
}

/// Decides what a running issuance does next.
pub(super) fn next_action(
    certificate: &Certificate,
    observed: &Observed,
    now: Timestamp,
) -> Action {
    let key = match next_key(certificate, observed, now) {
        Ok(key) => key,
        Err(action) => return action,
    };
    if let Some(unwanted) = unwanted_request(certificate, observed, key, now) {
        return Action::DeleteRequest(Box::new(unwanted));
    }
    let Some(request) = next(certificate, observed) else {
        return create_request(certificate, observed);
    };
    if let Some(surplus) = surplus_request(certificate, observed) {
        return surplus;
    }
    match verdict(request, now) {
        RequestResult::Pending if is_bare(certificate, observed, request) => {
            Action::StoreTemporary(certificate.status.next_private_key_secret_name.clone())
        }
        RequestResult::Pending => Action::Wait(Wake::OnChange),
        RequestResult::Failed { reason, message } => {
            Action::Conclude(Outcome::Failed { reason, message })
        }
        RequestResult::Issued(leaf) => {
            Action::StoreSecret(Box::new(delivery(certificate, request, leaf)))
        }
    }
}

/// Returns whether a temporary certificate is due: the Certificate asks for one, the Secret has no usable pair, and the
/// request is being worked on (without that the end may be a moment away).
fn is_bare(certificate: &Certificate, observed: &Observed, request: &RequestFacts) -> bool {
    let is_asked = certificate.metadata.annotations.get(annotation::TEMPORARY);
    let is_begun = condition(&request.request.status.conditions, READY).is_some();
    let has_pair = observed.secret.as_ref().is_some_and(SecretFacts::has_pair);
    is_asked.is_some_and(|value| value == "true") && is_begun && !has_pair
}

/// Returns the stored key that fits the spec, or the action that provides one.
fn next_key<'a>(
    certificate: &Certificate,
    observed: &'a Observed,
    now: Timestamp,
) -> Result<&'a KeyFacts, Action> {
    let named = &certificate.status.next_private_key_secret_name;
    let held = &observed.next_keys;
    if named.is_empty() {
        return Err(match held.first() {
            Some(found) if is_of_failed_try(&found.secret, certificate, observed, now) => {
                Action::DeleteNextKey(found.secret.clone(), Vec::new())
            }
            Some(found) => Action::Conclude(Outcome::NextKeyFound(found.secret.clone())),
            None => store_key(certificate, observed, None),
        });
    }
    if let Some(surplus) = held.iter().find(|held| held.secret != *named) {
        return Err(Action::DeleteNextKey(surplus.secret.clone(), Vec::new()));
    }
    let Some(found) = held.first() else {
        return Err(store_key(certificate, observed, Some(named.clone())));
    };
    match &found.key {
        Err(_) => Err(Action::DeleteNextKey(named.clone(), Vec::new())),
        Ok(key) => match differences::of_key(&certificate.spec, key) {
            fields if fields.is_empty() => Ok(key),
            fields => Err(Action::DeleteNextKey(named.clone(), fields)),
        },
    }
}

fn store_key(certificate: &Certificate, observed: &Observed, name: Option<String>) -> Action {
    let spec = &certificate.spec;
    if was_refused(certificate, NO_KEY) {
        return Action::Wait(Wake::OnChange);
    }
    if let Err(word) = differences::wanted_key(spec.private_key.as_ref()) {
        let message = format!(
            "User intervention required: spec.privateKey.algorithm \"{word}\" is none of RSA, ECDSA, Ed25519"
        );
        return impossible(certificate, reason::CANNOT_REGENERATE_KEY, message);
    }
    let keep = spec.private_key.as_ref().is_some_and(|key| key.rotation_policy == "Never");
    let old = observed.secret.as_ref().and_then(|secret| secret.key.as_ref()).filter(|_| keep);
    let origin = match old {
        None => KeyOrigin::Generated,
        Some(Err(_)) => KeyOrigin::Replacement,
        Some(Ok(key)) => {
            let fields = differences::of_key(spec, key);
            if !fields.is_empty() {
                let message = format!(
                    "User intervention required: the private key in Secret \"{}\" does not fit the spec in [{}], and \
                     spec.privateKey.rotationPolicy Never forbids a new one",
                    spec.secret_name,
                    fields.join(" ")
                );
                return impossible(certificate, reason::CANNOT_REGENERATE_KEY, message);
            }
            KeyOrigin::Reused
        }
    };
    Action::StoreNextKey(name, origin)
}

/// Records once that nothing can go on until the spec changes.
fn impossible(certificate: &Certificate, reason: &'static str, message: String) -> Action {
    let known = condition(&certificate.status.conditions, ISSUING);
    if known.is_some_and(|issuing| issuing.message == message) {
        return Action::Wait(Wake::OnChange);
    }
    Action::Conclude(Outcome::Impossible { reason, message })
}

/// Finds a request that belongs to no issuance, does not fit the spec or the key, or failed before this issuance began.
fn unwanted_request(
    certificate: &Certificate,
    observed: &Observed,
    key: &KeyFacts,
    now: Timestamp,
) -> Option<CertificateRequest> {
    let unwanted = |facts: &&RequestFacts| {
        let Some(revision) = facts.request.revision() else { return true };
        revision == next_revision(certificate)
            && (!differences::of_request(&certificate.spec, facts).is_empty()
                || !facts.csr.as_ref().is_ok_and(|csr| csr.public_key == key.public_key)
                || failed_before(certificate, facts, now))
    };
    let live = |facts: &&RequestFacts| !facts.request.metadata.is_deleted();
    let found = observed.requests.iter().filter(live).find(unwanted)?;
    Some(found.request.clone())
}

/// Returns whether a request failed in a try before this one. A try is identified by the temporary Secret with its key,
/// whose name is random: clocks may stand still, step back, or count whole seconds only.
fn failed_before(certificate: &Certificate, facts: &RequestFacts, now: Timestamp) -> bool {
    let this_try = &certificate.status.next_private_key_secret_name;
    key_secret(facts).is_some_and(|key| key != this_try)
        && matches!(verdict(facts, now), RequestResult::Failed { .. })
}

/// Returns whether a temporary Secret is that of a failed try, so that another try gets another Secret.
fn is_of_failed_try(
    secret: &str,
    certificate: &Certificate,
    observed: &Observed,
    now: Timestamp,
) -> bool {
    next(certificate, observed).is_some_and(|facts| {
        key_secret(facts).is_some_and(|key| key == secret)
            && matches!(verdict(facts, now), RequestResult::Failed { .. })
    })
}

/// Returns the temporary Secret whose key signed a request.
fn key_secret(facts: &RequestFacts) -> Option<&String> {
    facts.request.metadata.annotations.get(annotation::PRIVATE_KEY_SECRET_NAME)
}

fn create_request(certificate: &Certificate, observed: &Observed) -> Action {
    if was_refused(certificate, NO_REQUEST) {
        return Action::Wait(Wake::OnChange);
    }
    let key = certificate.status.next_private_key_secret_name.clone();
    let request = request_for(certificate, &observed.options.annotations, &key);
    Action::CreateRequest(Box::new(request), key)
}

/// Returns whether the present spec was refused before, with a message that begins with `words`.
fn was_refused(certificate: &Certificate, words: &str) -> bool {
    let issuing = condition(&certificate.status.conditions, ISSUING);
    issuing.is_some_and(|issuing| {
        issuing.message.starts_with(words)
            && issuing.observed_generation == certificate.metadata.generation
    })
}

/// Builds the CertificateRequest of the next issuance, without its signing request.
fn request_for(
    certificate: &Certificate,
    copied: &CopiedAnnotations,
    key_secret: &str,
) -> CertificateRequest {
    let (spec, metadata) = (&certificate.spec, &certificate.metadata);
    let revision = next_revision(certificate);
    let copied =
        metadata.annotations.iter().filter(|(key, _)| !memory::is_ours(key) && copied.take(key));
    let mut annotations: BTreeMap<String, String> =
        copied.map(|(key, value)| (key.clone(), value.clone())).collect();
    let own = [
        (annotation::CERTIFICATE_NAME, metadata.name.clone()),
        (REVISION, revision.to_string()),
        (annotation::PRIVATE_KEY_SECRET_NAME, key_secret.to_owned()),
    ];
    annotations.extend(own.map(|(key, value)| (key.to_owned(), value)));
    CertificateRequest {
        api_version: Kind::CertificateRequest.api_version().to_owned(),
        kind: Kind::CertificateRequest.as_str().to_owned(),
        metadata: Metadata {
            name: hashed_names::request_name(&metadata.name, revision),
            namespace: metadata.namespace.clone(),
            labels: metadata.labels.clone(),
            annotations,
            owner_references: vec![certificate.owner_reference()],
            ..Metadata::default()
        },
        spec: CertificateRequestSpec {
            duration: spec.duration,
            issuer_ref: spec.issuer_ref.clone(),
            is_ca: spec.is_ca,
            usages: spec.usages.clone(),
            ..CertificateRequestSpec::default()
        },
        ..CertificateRequest::default()
    }
}

enum RequestResult<'a> {
    Pending,
    Failed { reason: String, message: String },
    Issued(&'a LeafFacts),
}

fn verdict(facts: &RequestFacts, now: Timestamp) -> RequestResult<'_> {
    let conditions = &facts.request.status.conditions;
    for refusal in ["Denied", "InvalidRequest"] {
        if let Some(found) = condition(conditions, refusal).filter(|_| is_true(conditions, refusal))
        {
            let (reason, message) = (found.reason.clone(), found.message.clone());
            return RequestResult::Failed { reason, message };
        }
    }
    let ready = condition(conditions, READY);
    match ready.map(|ready| (ready.reason.as_str(), &ready.message)) {
        Some(("Failed", message)) => {
            RequestResult::Failed { reason: reason::FAILED.to_owned(), message: message.clone() }
        }
        Some(("Issued", _)) => match usable(facts, now) {
            Ok(leaf) => RequestResult::Issued(leaf),
            Err(message) => {
                RequestResult::Failed { reason: "InvalidCertificate".to_owned(), message }
            }
        },
        Some(_) | None => RequestResult::Pending,
    }
}

/// Returns the issued certificate, if it may go into the Secret.
fn usable(facts: &RequestFacts, now: Timestamp) -> Result<&LeafFacts, String> {
    let leaf = match &facts.leaf {
        Some(Ok(leaf)) => leaf,
        Some(Err(why)) => return Err(format!("the issued certificate cannot be read: {why}")),
        None => return Err("the request says Issued and holds no certificate".to_owned()),
    };
    if !facts.csr.as_ref().is_ok_and(|csr| csr.public_key == leaf.public_key) {
        return Err("the issued certificate is for another key than the request's".to_owned());
    }
    if now > leaf.not_after {
        return Err(format!("the issued certificate expired on {:.0}", leaf.not_after));
    }
    Ok(leaf)
}

fn delivery(certificate: &Certificate, facts: &RequestFacts, leaf: &LeafFacts) -> Delivery {
    let issuer = &facts.request.spec.issuer_ref;
    let name = &certificate.metadata.name;
    Delivery {
        request: facts.request.metadata.name.clone(),
        next_key: certificate.status.next_private_key_secret_name.clone(),
        revision: next_revision(certificate),
        metadata: secret_content::metadata(name, &certificate.spec, Some(issuer), leaf),
    }
}
