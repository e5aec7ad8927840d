//! What causes what along the chain, and so comes first: down it when things begin, up it when they end.
//!
//! What is told has happened already, and what caused it before. So an event that is told after one that it has caused had
//! happened when that was told, and stands before it; in a cluster, where the last time of a repeated event is known by the
//! second, this settles the order within that second.

use super::saying::Saying;
use crate::model::event::{reason, source};
use crate::model::{Event, Kind, Severity};

/// How far things are, in the order in which one leads to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The Certificate is due.
    Begun,
    /// What concerns its private key.
    KeyMade,
    /// Its CertificateRequest is made.
    Requested,
    /// What is told of a CertificateRequest before its Order.
    RequestTold,
    /// The Order is made.
    OrderCreated,
    /// What is told of an Order on its way, such as its Challenges.
    OrderTold,
    /// The scheduler has taken up a Challenge.
    Started,
    /// What is told of a Challenge on its way.
    ChallengeTold,
    /// The CA has agreed to a Challenge, or refused it.
    ChallengeEnded,
    /// The Order has its certificate.
    OrderEnded,
    /// The CertificateRequest has its certificate, or has failed.
    RequestEnded,
    /// The Certificate is in its Secret, or the issuance has failed.
    CertificateEnded,
    /// What is no part of that.
    Beside,
}

impl Stage {
    pub(super) fn of(event: &Event) -> Self {
        let kind = Kind::SIX.into_iter().find(|kind| kind.as_str() == event.involved_object.kind);
        let is_warning = event.severity == Severity::Warning;
        match (kind, event.reason.as_str()) {
            (Some(Kind::Certificate), reason::ISSUING) if is_issued(event) => {
                Self::CertificateEnded
            }
            (Some(Kind::Certificate), reason::ISSUING) => Self::Begun,
            (Some(Kind::Certificate), reason::REQUESTED) => Self::Requested,
            (Some(Kind::Certificate), _) if event.source.component == source::ISSUING => {
                Self::CertificateEnded
            }
            (Some(Kind::Certificate), _) => Self::KeyMade,
            (Some(Kind::CertificateRequest), reason::ORDER_CREATED) => Self::OrderCreated,
            (Some(Kind::CertificateRequest), reason::CERTIFICATE_ISSUED) => Self::RequestEnded,
            (Some(Kind::CertificateRequest), _) if is_warning => Self::RequestEnded,
            (Some(Kind::CertificateRequest), _) => Self::RequestTold,
            (Some(Kind::Order), reason::COMPLETE) => Self::OrderEnded,
            (Some(Kind::Order), _) => Self::OrderTold,
            (Some(Kind::Challenge), reason::STARTED) => Self::Started,
            (Some(Kind::Challenge), reason::DOMAIN_VERIFIED | reason::FAILED) => {
                Self::ChallengeEnded
            }
            (Some(Kind::Challenge), reason::PRESENTED | reason::PRESENT_ERROR) => {
                Self::ChallengeTold
            }
            (
                Some(
                    Kind::Challenge
                    | Kind::ClusterIssuer
                    | Kind::Event
                    | Kind::Issuer
                    | Kind::Secret,
                )
                | None,
                _,
            ) => Self::Beside,
        }
    }

    /// Tells whether that comes back up the chain.
    pub(super) fn is_end(self) -> bool {
        self >= Self::ChallengeEnded
    }
}

/// Tells whether an event says that a Certificate is there.
pub(super) fn is_issued(event: &Event) -> bool {
    event.involved_object.kind == Kind::Certificate.as_str()
        && event.reason == reason::ISSUING
        && event.message.contains("successfully issued")
}

/// Puts the causes of one issuance before their effects; all else stays in its order.
pub(super) fn put_causes_first(sayings: &mut [Saying<'_>]) {
    let mut backwards: Vec<usize> = (0..sayings.len()).collect();
    // Whatever stands in a later stage has its place before its causes get theirs.
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

fn is_refused(saying: &Saying<'_>) -> bool {
    saying.stage == Stage::ChallengeEnded && !is_good(saying)
}

fn is_good(saying: &Saying<'_>) -> bool {
    saying.event.severity == Severity::Normal
}

/// Tells whether one has to have happened for the other to happen, in one issuance.
fn leads_to(cause: &Saying<'_>, effect: &Saying<'_>) -> bool {
    let (to, both_good) = (effect.stage, is_good(cause) == is_good(effect));
    let is_same = cause.object().is_some() && cause.object() == effect.object();
    let makes = cause.makes.is_some() && cause.makes.as_ref() == effect.object();
    // A repetition is no cause: what it might have caused has been there before.
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
