//! Stages of an issuance, and the occurrence of an event at a stage.

use jiff::SignedDuration;
use jiff::Timestamp;

use crate::model::event::{reason, source};
use crate::model::event_times::{Occasion, TimePrecision};
use crate::model::{Event, Kind, Severity};
use crate::print::lineage::KindAndName;

/// Stages of an issuance, in the order in which one stage leads to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The Certificate is due.
    Begun,
    /// Events about the Certificate's private key.
    KeyMade,
    /// The CertificateRequest of the Certificate is made.
    Requested,
    /// Events of a CertificateRequest before its Order.
    RequestTold,
    /// The Order is made.
    OrderCreated,
    /// Events of an Order on its way, such as the creation of its Challenges.
    OrderTold,
    /// The scheduler has taken up a Challenge.
    Started,
    /// Events of a Challenge on its way.
    ChallengeTold,
    /// The CA has agreed to a Challenge, or refused it.
    ChallengeEnded,
    /// The Order has its certificate.
    OrderEnded,
    /// The CertificateRequest has its certificate, or has failed.
    RequestEnded,
    /// The Certificate is in its Secret, or the issuance has failed.
    CertificateEnded,
    /// Events outside of the chain.
    Beside,
}

impl Stage {
    pub(crate) fn of(event: &Event) -> Self {
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
                    | Kind::Gateway
                    | Kind::Ingress
                    | Kind::Issuer
                    | Kind::ListenerSet
                    | Kind::Secret,
                )
                | None,
                _,
            ) => Self::Beside,
        }
    }

    /// Returns whether the stage leads back up the chain.
    pub(crate) fn is_end(self) -> bool {
        self >= Self::ChallengeEnded
    }
}

/// One occurrence of an event.
#[derive(Debug)]
pub(crate) struct Occurrence<'a> {
    pub event: &'a Event,
    /// Index of the event in the input, unique for each event.
    pub number: usize,
    /// Number of known occurrences of the event.
    pub known: usize,
    /// Time of the event's first occurrence.
    pub began: Timestamp,
    /// Index of this occurrence among the event's occurrences.
    pub nth: usize,
    pub occasion: Occasion,
    pub stage: Stage,
    /// Number of the event's issuance, from 0.
    pub issuance: usize,
    /// Whether the event was not written before in this issuance.
    pub is_first: bool,
    /// Object whose creation the event reports.
    pub makes: Option<KindAndName>,
    /// Place among other occurrences: a revision, or nanoseconds.
    pub place: i128,
    /// Latest time at which the event can have happened.
    pub latest: Timestamp,
    pub object: Option<KindAndName>,
}

impl Occurrence<'_> {
    /// Returns the object of the event.
    pub(crate) fn object(&self) -> Option<&KindAndName> {
        self.object.as_ref()
    }

    /// Returns the first and the last moment at which the event can have happened.
    pub(crate) fn bounds(&self) -> (Timestamp, Timestamp) {
        let Occasion { at, grain, .. } = self.occasion;
        match grain {
            TimePrecision::Fine => (at, at),
            TimePrecision::Second => (at, at.saturating_add(SECOND_REMAINDER).unwrap_or(at)),
        }
    }

    pub(crate) fn is_certificate(&self) -> bool {
        self.event.involved_object.kind == Kind::Certificate.as_str()
    }

    /// Returns whether the event reports that the Certificate's private key was made or reused.
    pub(crate) fn is_key(&self) -> bool {
        let reason = self.event.reason.as_str();
        self.is_certificate() && [reason::GENERATED, reason::REUSED].contains(&reason)
    }
}

/// Returns whether an event reports that a Certificate was issued.
pub(crate) fn is_issued(event: &Event) -> bool {
    event.involved_object.kind == Kind::Certificate.as_str()
        && event.reason == reason::ISSUING
        && event.message.contains("successfully issued")
}

/// Longest time within a second after its beginning.
pub(crate) const SECOND_REMAINDER: SignedDuration = SignedDuration::from_nanos(999_999_999);
