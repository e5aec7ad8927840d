//! CTL: controllers of the objects, the queue, and objects that are held.

use jiff::{SignedDuration, Timestamp};

use super::problem::causes_of_words;
use crate::diagnosis::case::control::ControllerCase;
use crate::diagnosis::case::{Case, DriverCase, QueuedCase, RunningCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::catalogue::{self, CauseSeverity};
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, stored};
use crate::model::{Metadata, Time};
use crate::reconcile::schedule::Obstacle;

/// Time after which a wait is an error, if the Challenges ahead have been stuck for as long.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(10);
/// Maximum time for taking an answer down.
const CLEAN_UP_MAX: SignedDuration = SignedDuration::from_mins(5);

pub(super) const RULES: &[FaultRule] =
    &[nobody_works, controllers_watch_elsewhere, challenge_is_queued, deletion_hangs, look_failed];

fn nobody_works(case: &Case, found: &mut Vec<Finding>) {
    // On one machine no controller works between two commands.
    if case.driver != DriverCase::Nobody || !case.in_cluster {
        return;
    }
    // No controller can work on kinds that the cluster does not know.
    if !case.control.undefined.is_empty() {
        return;
    }
    let lapsed = case.control.lapsed.iter().map(|lease| {
        let came = format!(
            "no holder; {} held the Lease, and renewed it last at {}",
            lease.holder, lease.renewed
        );
        stored(format!("Lease {}/cert-manager-controller", lease.namespace), case.at, came)
    });
    let mut shown: Vec<Evidence> = lapsed.collect();
    if shown.is_empty() {
        shown.push(stored("Lease cert-manager-controller", case.at, "no holder"));
    }
    found.extend(shown.into_iter().filter_map(|shown| idle(case, shown)));
}

/// Builds the finding that no controller works, with its evidence; `None` if there is nothing to do.
pub(super) fn idle(case: &Case, shown: Evidence) -> Option<Finding> {
    let mut due = case.certificates.iter().filter(|of| of.due.is_some());
    let first = due.next()?.certificate.name();
    let subject = match due.count() {
        0 => format!("Certificate {first}"),
        others => format!("{} Certificates", others + 1),
    };
    let finding = Finding::new(CauseId::Ctl01, Grade::Certain, subject.clone(), shown);
    Some(finding.with("WHAT", subject))
}

/// Reports whether cert-manager's controllers watch a namespace: all namespaces, or the one that their arguments name.
pub(super) fn is_watched(case: &Case, namespace: &str) -> bool {
    let all = &case.control.controllers;
    all.is_empty() || all.iter().any(|of| watched_namespace(of).is_none_or(|one| one == namespace))
}

/// Returns the only namespace that a controller watches; `None` if the controller watches all.
fn watched_namespace(of: &ControllerCase) -> Option<&str> {
    of.flags.get("namespace").map(String::as_str).filter(|name| !name.is_empty())
}

/// CTL-01: the holder of the Lease watches one other namespace alone.
fn controllers_watch_elsewhere(case: &Case, found: &mut Vec<Finding>) {
    let Some(first) = case.control.controllers.first() else { return };
    for of in case.certificates.iter().filter(|of| of.due.is_some()) {
        let name = of.certificate.name();
        if is_watched(case, &name.namespace) {
            continue;
        }
        let flag = format!("namespace={}", watched_namespace(first).unwrap_or_default());
        let shown = stored(format!("Deployment {}: arguments", first.name), case.at, flag);
        let subject = format!("Certificate {name}");
        let finding = Finding::new(CauseId::Ctl01, Grade::Certain, subject.clone(), shown);
        found.push(finding.with("WHAT", subject));
    }
}

fn challenge_is_queued(case: &Case, found: &mut Vec<Finding>) {
    // A wildcard and its apex take turns within one order.
    for queued in case.queue.iter().filter(|queued| !queued.is_of_same_order) {
        let (name, at) = (&queued.challenge, case.at);
        let asked = format!("Challenge {name}: status.processing");
        let subject = queued.domain.clone();
        let finding = match &queued.waits {
            Obstacle::Slot { slots } => {
                let shown = stored(asked, at, format!("false; {slots} of {slots} slots are taken"));
                Finding::new(CauseId::Ctl04, Grade::Certain, subject, shown)
                    .shown_by(case.running.iter().map(|one| runs(case, one)))
                    .with("SLOTS", slots.to_string())
                    .with("DOMAIN", &queued.domain)
            }
            Obstacle::Lock { holder } => {
                let of_holder = case.running.iter().find(|one| one.challenge == *holder);
                let shown = stored(
                    asked,
                    at,
                    format!("false; Challenge {holder} is for the same name and type"),
                );
                Finding::new(CauseId::Ctl05, Grade::Certain, subject, shown)
                    .shown_by(of_holder.map(|one| runs(case, one)))
                    .with("HOLDER", holder.to_string())
                    .with("HOLDER-NAME", &holder.name)
                    .with("HOLDER-NAMESPACE", &holder.namespace)
                    .with("DOMAIN", &queued.domain)
            }
            Obstacle::Nothing => continue,
        };
        found.push(match stuck(case, queued) {
            Some(causes) => finding.shown_by(causes).meaning(CauseSeverity::Error),
            None => finding,
        });
    }
}

/// Returns the causes at which the Challenges ahead of a queued Challenge are stuck, if the wait and all of these are long;
/// `None` if one of the Challenges ahead may still end.
fn stuck(case: &Case, queued: &QueuedCase) -> Option<Vec<Evidence>> {
    let is_long = |since: Option<Time>| {
        since.is_some_and(|since| case.at.duration_since(since.timestamp()) >= STUCK_AFTER)
    };
    let mut all = case.certificates.iter().flat_map(|of| &of.challenges);
    let own = all.find(|challenge| challenge.name() == queued.challenge)?;
    let ahead = case.running.iter().filter(|one| match &queued.waits {
        Obstacle::Lock { holder } => one.challenge == *holder,
        _ => true,
    });
    let ahead: Vec<&RunningCase> = ahead.collect();
    let is_stuck = |one: &&RunningCase| is_long(one.since) && !one.reason.is_empty();
    if ahead.is_empty() || !is_long(own.metadata.creation_timestamp) || !ahead.iter().all(is_stuck)
    {
        return None;
    }
    let mut causes: Vec<(CauseId, &RunningCase)> = Vec::new();
    for one in ahead {
        let Some(cause) = causes_of_words(&one.reason).into_iter().next() else { continue };
        if causes.iter().all(|(known, _)| *known != cause) {
            causes.push((cause, one));
        }
    }
    let told = causes.into_iter().map(|(cause, one)| {
        let asked = format!("cause that stops Challenge {}", one.challenge);
        stored(asked, case.at, format!("{cause}: {}", catalogue::entry(cause).title))
    });
    Some(told.collect())
}

/// Builds evidence from a Challenge that another Challenge waits for.
fn runs(case: &Case, one: &RunningCase) -> Evidence {
    let age = one.since.map(|since| case.at.duration_since(since.timestamp()).as_mins());
    let age = age.map(|minutes| format!(", {minutes} min old")).unwrap_or_default();
    let reason = if one.reason.is_empty() { "no reason given" } else { &one.reason };
    let asked = format!("Challenge {} for {}", one.challenge, one.domain);
    stored(asked, case.at, format!("running{age}: {reason}"))
}

/// Reports whether an object has been in deletion for longer than clean-up takes, and is held by finalizers.
pub fn hangs_in_deletion(metadata: &Metadata, now: Timestamp) -> bool {
    let since = metadata.deletion_timestamp.filter(|_| !metadata.finalizers.is_empty());
    since.is_some_and(|since| now.duration_since(since.timestamp()) >= CLEAN_UP_MAX)
}

fn deletion_hangs(case: &Case, found: &mut Vec<Finding>) {
    let of_certificates = case.certificates.iter().flat_map(|of| &of.challenges);
    for challenge in of_certificates.chain(&case.orphans) {
        let metadata = &challenge.metadata;
        let Some(since) = metadata.deletion_timestamp else { continue };
        if !hangs_in_deletion(metadata, case.at) {
            continue;
        }
        let name = challenge.name();
        let asked = format!("Challenge {name}: metadata");
        let came = format!(
            "deletionTimestamp: {since}, finalizers: {}; {}",
            metadata.finalizers.join(", "),
            challenge.status.reason
        );
        // The issuer is needed to take the answer down.
        let issuer = challenge.spec.issuer_ref.key(&metadata.namespace);
        let issuer = issuer.and_then(|key| case.issuer(&key));
        let gone = issuer.filter(|of| of.is_known && of.issuer.is_none());
        let gone = gone.map(|of| stored(of.key.to_string(), case.at, "it does not exist any more"));
        found.push(
            Finding::new(
                CauseId::Ctl06,
                Grade::Certain,
                format!("Challenge {name}"),
                stored(asked, case.at, came),
            )
            .shown_by(gone)
            .with("CHALLENGE", &name.name)
            .with("NAME", &name.name)
            .with("NAMESPACE", &name.namespace),
        );
    }
}

/// INT-01: objects that could not be observed are neither well nor ill.
fn look_failed(case: &Case, found: &mut Vec<Finding>) {
    for unseen in &case.unseen {
        let shown = stored(&unseen.what, case.at, &unseen.why);
        found.push(
            Finding::new(CauseId::Int01, Grade::Certain, &unseen.what, shown)
                .with("WHAT", &unseen.what)
                .with("WHY", &unseen.why),
        );
    }
}
