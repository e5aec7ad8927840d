//! Certificate that is not being issued: assessment of its Secret, start of an issuance, and cleanup.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::readiness;
use super::types::{Action, Observed, Outcome, current, next};
use crate::model::certificate::READY;
use crate::model::common::is_true;
use crate::model::keystore::{KeystoreFormat, Keystores};
use crate::model::memory::{Holder, Memory};
use crate::model::{Certificate, CertificateRequest};
use crate::reconcile::facts::{KeystoreFacts, LeafFacts, OutputFormat, SecretFacts, annotation};
use crate::reconcile::renewal::Life;
use crate::reconcile::{Wake, differences, policy, renewal, renewal_info, request, secret_content};

/// Minutes until a Certificate whose Secret belongs to another one checks again.
const RIVAL_PAUSE_MINUTES: i64 = 3;

/// Decides what a Certificate that is not being issued does next.
pub(super) fn next_action(
    certificate: &Certificate,
    observed: &Observed,
    now: Timestamp,
) -> Action {
    assess(certificate, observed, now)
        .or_else(|| issue(certificate, observed, now))
        .or_else(|| repair(certificate, observed))
        .or_else(|| surplus_request(certificate, observed))
        .unwrap_or_else(|| Action::Wait(wake(certificate, observed, now)))
}

fn input<'a>(certificate: &'a Certificate, observed: &'a Observed) -> policy::Input<'a> {
    let secret = observed.secret.as_ref();
    policy::Input { certificate, secret, current: current(certificate, observed) }
}

/// Assesses the Secret, if the assessment differs from the status.
pub(super) fn assess(
    certificate: &Certificate,
    observed: &Observed,
    now: Timestamp,
) -> Option<Action> {
    let input = input(certificate, observed);
    let life = life(certificate, observed);
    let assessment = readiness::assess(&input, (&observed.windows, life), now);
    let known = assessment.is_recorded(certificate);
    (!known).then(|| Action::Conclude(Outcome::Assessed(Box::new(assessment))))
}

/// Starts an issuance if a rule is violated, unless the Secret is another Certificate's or a failure is too recent.
fn issue(certificate: &Certificate, observed: &Observed, now: Timestamp) -> Option<Action> {
    if rival(certificate, observed).is_some() || held_until(certificate, observed, now).is_some() {
        return None;
    }
    let input = input(certificate, observed);
    if let Some(violation) = violation(certificate, &input) {
        let (window_error, is_hastened) = (None, false);
        return Some(Action::Conclude(Outcome::Due { violation, window_error, is_hastened }));
    }
    let violation = policy::renewing(renewal_time(certificate, observed)?, now)?;
    let life = life(certificate, observed)?;
    let window_error = renewal::renewal_time(&certificate.spec, life, &observed.windows).err();
    let is_hastened = renewal::without_suggestion(&certificate.spec, life) > now;
    Some(Action::Conclude(Outcome::Due { violation, window_error, is_hastened }))
}

/// Returns why a Certificate has to be issued now, regardless of recent failures; `None` if its Secret is as asked for.
pub(super) fn due(
    certificate: &Certificate,
    observed: &Observed,
    now: Timestamp,
) -> Option<policy::Violation> {
    let input = input(certificate, observed);
    violation(certificate, &input)
        .or_else(|| policy::renewing(renewal_time(certificate, observed)?, now))
}

/// Returns the first rule that is violated, whatever the time. A temporary certificate breaks none of cert-manager's
/// rules: cert-manager does not try again behind one.
fn violation(certificate: &Certificate, input: &policy::Input<'_>) -> Option<policy::Violation> {
    let is_temporary = |secret: &&SecretFacts| has_temporary(certificate, secret);
    let temporary = || input.secret.filter(is_temporary).map(|_| policy::temporary());
    policy::violation(input).or_else(temporary)
}

/// Returns whether the Secret still has the temporary certificate of the first issuance.
fn has_temporary(certificate: &Certificate, secret: &SecretFacts) -> bool {
    let asked = certificate.metadata.annotations.get(annotation::TEMPORARY);
    let named = secret.annotations.get(annotation::CERTIFICATE_NAME);
    asked.is_some_and(|value| value == "true")
        && certificate.status.revision.is_none()
        && named == Some(&certificate.metadata.name)
        && secret.is_temporary()
}

/// Returns the moment of renewal; if no window can be kept, the one that would hold without windows.
fn renewal_time(certificate: &Certificate, observed: &Observed) -> Option<Timestamp> {
    let (spec, life) = (&certificate.spec, life(certificate, observed)?);
    renewal::renewal_time(spec, life, &observed.windows)
        .unwrap_or_else(|_| Some(renewal::without_windows(spec, life)))
}

/// Returns the life of the certificate in the Secret.
pub(super) fn life<'a>(certificate: &Certificate, observed: &'a Observed) -> Option<Life<'a>> {
    let leaf = observed.secret.as_ref()?.usable_leaf()?;
    let suggestion = observed.suggestion.as_ref();
    let asked = ordered_at(certificate, observed, leaf);
    Some(Life { start: leaf.not_before, end: leaf.not_after, asked, suggestion })
}

/// Returns when that certificate was ordered, if it is of the last issuance and the ledger goes back so far.
fn ordered_at(
    certificate: &Certificate,
    observed: &Observed,
    leaf: &LeafFacts,
) -> Option<Timestamp> {
    let issued = current(certificate, observed)?.leaf.as_ref()?.as_ref().ok()?;
    let revision = certificate.status.revision.filter(|_| issued == leaf)?;
    observed.ledger.0.iter().rfind(|entry| entry.revision == revision).map(|entry| entry.at)
}

/// Returns when to ask the CA about the certificate in the Secret; `None` while something else is to be done, or if no
/// renewal is wanted at all.
pub(super) fn question<'a>(
    certificate: &Certificate,
    observed: &'a Observed,
) -> Option<(&'a LeafFacts, Timestamp)> {
    let is_disabled =
        certificate.spec.renewal.as_ref().is_some_and(|renewal| renewal.policy == "Disabled");
    let is_of_concern = !is_disabled
        && !certificate.metadata.is_deleted()
        && !certificate.is_being_issued()
        && violation(certificate, &input(certificate, observed)).is_none();
    let leaf = observed.secret.as_ref()?.usable_leaf().filter(|_| is_of_concern)?;
    let memory = Memory::read(Holder::Certificate, &certificate.metadata.annotations).renewal;
    let interval = observed.options.renewal_interval;
    Some((leaf, renewal_info::next_question(leaf, memory.as_ref(), interval)?))
}

/// Returns the name of the Certificate that owns the Secret, if it is another one. Of several Certificates with one
/// Secret only the owner issues: the one the Secret names, else the oldest.
pub(super) fn rival(certificate: &Certificate, observed: &Observed) -> Option<String> {
    let own = &certificate.metadata.name;
    let is_rival = |name: &String| observed.rivals.iter().any(|rival| rival.name == *name);
    let named =
        observed.secret.as_ref().and_then(|s| s.annotations.get(annotation::CERTIFICATE_NAME));
    if let Some(named) = named.filter(|named| *named == own || is_rival(named)) {
        return (named != own).then(|| named.clone());
    }
    let age = (certificate.metadata.creation_timestamp, own);
    let oldest = observed.rivals.iter().min_by_key(|rival| (rival.created, &rival.name))?;
    ((oldest.created, &oldest.name) < age).then(|| oldest.name.clone())
}

/// Returns until when a failed issuance is not tried again; `None` once it may be, because the pause is over, the spec
/// was changed, or a person deleted the failed request or its Order.
pub(super) fn held_until(
    certificate: &Certificate,
    observed: &Observed,
    now: Timestamp,
) -> Option<Timestamp> {
    let next_try = observed.options.backoff.next_try(&certificate.status)?;
    let failed = next(certificate, observed)?;
    if request::failed_by_order(&failed.request) && !failed.has_order {
        return None;
    }
    if !differences::of_request(&certificate.spec, failed).is_empty() {
        return None;
    }
    Some(next_try).filter(|at| *at > now)
}

/// Repairs labels and annotations of the Secret after the template or another writer changed them, and the forms and
/// keystores of key and chain after the spec changed.
fn repair(certificate: &Certificate, observed: &Observed) -> Option<Action> {
    let secret = observed.secret.as_ref()?;
    let name = &certificate.metadata.name;
    if secret.annotations.get(annotation::CERTIFICATE_NAME) != Some(name) {
        return None;
    }
    let request = current(certificate, observed).map(|facts| &facts.request.spec.issuer_ref);
    let issuer = request.unwrap_or(&certificate.spec.issuer_ref);
    let issuer = (!has_temporary(certificate, secret)).then_some(issuer);
    let metadata = secret_content::metadata(name, &certificate.spec, issuer, secret.usable_leaf()?);
    let is_right = metadata.is_on(secret)
        && has_formats(certificate, secret)
        && has_keystores(certificate, secret)
        && has_owner(certificate, observed, secret);
    (!is_right).then_some(Action::RepairSecret(metadata))
}

/// Returns whether a Secret has key and chain in every form asked for that can be made, and in no other form of ours.
fn has_formats(certificate: &Certificate, secret: &SecretFacts) -> bool {
    if secret.usable_key().is_none() {
        return true;
    }
    let wanted = OutputFormat::of(&certificate.spec);
    let mut surplus = secret.formats.difference(&wanted);
    wanted.is_subset(&secret.formats)
        && surplus.all(|format| secret.foreign_data.contains(format.key()))
}

/// Returns whether a Secret has every keystore as asked for, and no other keystore of ours. A keystore whose password
/// is not available is left as it is.
fn has_keystores(certificate: &Certificate, secret: &SecretFacts) -> bool {
    if secret.usable_key().is_none() {
        return true;
    }
    let wanted: BTreeSet<KeystoreFormat> =
        certificate.spec.keystores.iter().flat_map(Keystores::wanted).collect();
    let is_right = |format: KeystoreFormat| match secret.keystores.get(&format) {
        None => !wanted.contains(&format),
        Some(_) if !wanted.contains(&format) => secret.foreign_data.contains(format.keystore_key()),
        Some(KeystoreFacts::AsAsked | KeystoreFacts::Unknown) => true,
        Some(KeystoreFacts::Outdated | KeystoreFacts::Unasked) => false,
    };
    KeystoreFormat::ALL.into_iter().all(is_right)
}

/// Returns whether a Secret has its Certificate as owner if it should; if not, whether only others name that owner.
fn has_owner(certificate: &Certificate, observed: &Observed, secret: &SecretFacts) -> bool {
    let ours = certificate.owner_reference();
    let found = secret.owners.iter().find(|owner| owner.uid == ours.uid);
    if observed.options.owns_secret {
        return found == Some(&ours);
    }
    found.is_none() || secret.foreign_owners.contains(&ours.uid)
}

/// Deletes the oldest CertificateRequest beyond the history limit; `None` while the Certificate is not Ready.
pub(super) fn surplus_request(certificate: &Certificate, observed: &Observed) -> Option<Action> {
    if !is_true(&certificate.status.conditions, READY) {
        return None;
    }
    let limit = certificate.spec.revision_history_limit.unwrap_or(1).max(1);
    let live = observed.requests.iter().map(|facts| &facts.request);
    let live = live.filter(|request| !request.metadata.is_deleted());
    let mut known: Vec<(i64, &CertificateRequest)> =
        live.filter_map(|request| Some((request.revision()?, request))).collect();
    known.sort_unstable_by_key(|(revision, request)| (*revision, &request.metadata.name));
    let surplus = known.len().saturating_sub(usize::try_from(limit).unwrap_or(1));
    let oldest = known.first().filter(|_| surplus > 0)?;
    Some(Action::DeleteRequest(Box::new(oldest.1.clone())))
}

/// Returns the next moment at which this Certificate may have something to do.
fn wake(certificate: &Certificate, observed: &Observed, now: Timestamp) -> Wake {
    let rival = rival(certificate, observed)
        .is_some()
        .then(|| now + SignedDuration::from_mins(RIVAL_PAUSE_MINUTES));
    let leaf = observed.secret.as_ref().and_then(SecretFacts::usable_leaf);
    // The certificate counts as expired one second after its last second.
    let expiry =
        leaf.and_then(|leaf| leaf.not_after.checked_add(SignedDuration::from_secs(1)).ok());
    let moments = [
        rival,
        held_until(certificate, observed, now),
        renewal_time(certificate, observed),
        expiry,
    ];
    let soonest = moments.into_iter().flatten().filter(|at| *at > now).min();
    soonest.map_or(Wake::OnChange, Wake::At)
}
