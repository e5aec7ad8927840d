//! Order of causes and effects along the chain of objects: down the chain at the beginning, up the chain at the end.
//!
//! An event is written after the fact, and its cause happened earlier still. So a cause that is written after
//! its effect had happened when the effect was written, and stands before the effect. In a cluster the last
//! time of a repeated event is known by the second, and this rule settles the order within that second.

use super::stage::{Occurrence, Stage};
use crate::model::Severity;
use crate::model::event::reason;

/// Puts the causes of one issuance before their effects; all other events keep their order.
pub(super) fn put_causes_first(sayings: &mut [Occurrence<'_>]) {
    let mut backwards: Vec<usize> = (0..sayings.len()).collect();
    // Events of later stages get their places before their causes do.
    backwards.sort_by_key(|number| std::cmp::Reverse(sayings[*number].stage));
    let first_failure = (0..sayings.len())
        .filter(|number| is_refused(&sayings[*number]))
        .min_by_key(|number| sayings[*number].place);
    for effect in backwards {
        for cause in 0..sayings.len() {
            let is_later = sayings[cause].place > sayings[effect].place;
            let has_failed_later = is_refused(&sayings[cause]) && first_failure != Some(cause);
            if is_later && !has_failed_later && leads_to(&sayings[cause], &sayings[effect]) {
                sayings[cause].place = sayings[effect].place;
                sayings[cause].latest = sayings[cause].latest.min(sayings[effect].latest);
            }
        }
    }
    sayings.sort_by_key(|saying| (saying.place, saying.stage));
}

fn is_refused(saying: &Occurrence<'_>) -> bool {
    saying.stage == Stage::ChallengeEnded && !is_good(saying)
}

fn is_good(saying: &Occurrence<'_>) -> bool {
    saying.event.severity == Severity::Normal
}

/// Returns whether the cause must have happened before the effect can happen, in one issuance.
fn leads_to(cause: &Occurrence<'_>, effect: &Occurrence<'_>) -> bool {
    let (to, both_good) = (effect.stage, is_good(cause) == is_good(effect));
    let is_same = cause.object().is_some() && cause.object() == effect.object();
    let makes = cause.makes.is_some() && cause.makes.as_ref() == effect.object();
    // A repetition is no cause: its possible effects were there before.
    cause.is_first
        && cause.stage < to
        && match cause.stage {
            Stage::Begun => true,
            Stage::KeyMade => to == Stage::Requested && cause.is_key(),
            Stage::Requested | Stage::OrderCreated | Stage::OrderTold => makes,
            Stage::Started => is_same && to <= Stage::ChallengeEnded,
            Stage::ChallengeTold => {
                is_same && to == Stage::ChallengeEnded && cause.event.reason == reason::PRESENTED
            }
            Stage::ChallengeEnded if is_good(cause) => to == Stage::OrderEnded,
            Stage::ChallengeEnded | Stage::OrderEnded => to == Stage::RequestEnded && both_good,
            Stage::RequestEnded => to == Stage::CertificateEnded && both_good,
            Stage::RequestTold | Stage::CertificateEnded | Stage::Beside => false,
        }
}
