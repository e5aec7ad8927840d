//! CTL: who works on the objects, the queue, and what holds them.

use jiff::SignedDuration;

use super::rule::FaultRule;
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, Finding, Grade, stored};
use crate::reconcile::schedule::Waits;

/// How long taking an answer down may take.
const CLEAN_UP: SignedDuration = SignedDuration::from_mins(5);

pub(super) const RULES: &[FaultRule] =
    &[nobody_works, challenge_is_queued, deletion_hangs, look_failed];

fn nobody_works(case: &Case, found: &mut Vec<Finding>) {
    // On one machine nobody works between two commands.
    if case.driver != DriverCase::Nobody || !case.in_cluster {
        return;
    }
    let shown = stored("Lease cert-manager-controller", case.at, "nobody holds it");
    found.extend(idle(case, shown));
}

/// That nobody works, told once, with whatever shows it; nothing where there is nothing to do.
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

fn challenge_is_queued(case: &Case, found: &mut Vec<Finding>) {
    // A wildcard and its apex take turns within one order.
    for queued in case.queue.iter().filter(|queued| !queued.is_of_same_order) {
        let (name, at) = (&queued.challenge, case.at);
        let asked = format!("Challenge {name}: status.processing");
        let subject = queued.domain.clone();
        found.push(match &queued.waits {
            Waits::Slot { slots } => {
                let shown = stored(asked, at, format!("false; {slots} of {slots} slots are taken"));
                Finding::new(CauseId::Ctl04, Grade::Certain, subject, shown)
                    .with("SLOTS", slots.to_string())
                    .with("DOMAIN", &queued.domain)
            }
            Waits::Lock { holder } => {
                let shown = stored(
                    asked,
                    at,
                    format!("false; Challenge {holder} is for the same name and type"),
                );
                Finding::new(CauseId::Ctl05, Grade::Certain, subject, shown)
                    .with("HOLDER", holder.to_string())
                    .with("DOMAIN", &queued.domain)
            }
            Waits::Nothing => continue,
        });
    }
}

fn deletion_hangs(case: &Case, found: &mut Vec<Finding>) {
    for challenge in case.certificates.iter().flat_map(|of| &of.challenges) {
        let metadata = &challenge.metadata;
        let Some(since) = metadata.deletion_timestamp.filter(|_| !metadata.finalizers.is_empty())
        else {
            continue;
        };
        // Taking answers down takes a while.
        if case.at.duration_since(since.timestamp()) < CLEAN_UP {
            continue;
        }
        let name = challenge.name();
        let asked = format!("Challenge {name}: metadata");
        let came = format!(
            "deletionTimestamp: {since}, finalizers: {}; {}",
            metadata.finalizers.join(", "),
            challenge.status.reason
        );
        found.push(
            Finding::new(
                CauseId::Ctl06,
                Grade::Certain,
                format!("Challenge {name}"),
                stored(asked, case.at, came),
            )
            .with("NAME", &name.name)
            .with("NAMESPACE", &name.namespace),
        );
    }
}

/// What could not be looked at: it is neither well nor ill.
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
