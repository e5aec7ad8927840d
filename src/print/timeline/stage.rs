//! Where in an issuance a saying stands.

use jiff::SignedDuration;
use jiff::Timestamp;

use crate::model::event::{reason, source};
use crate::model::event_times::{Grain, Occasion};
use crate::model::{Event, Kind, Severity};
use crate::print::lineage::Named;

/// How far things are, in the order in which one leads to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
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

    /// Tells whether that comes back up the chain.
    pub(crate) fn is_end(self) -> bool {
        self >= Self::ChallengeEnded
    }
}

/// One time at which an event was told.
#[derive(Debug)]
pub(crate) struct Saying<'a> {
    pub event: &'a Event,
    /// The place of the event in what was given: each has one.
    pub number: usize,
    /// How many times are known of it.
    pub known: usize,
    /// When the first of them was.
    pub began: Timestamp,
    /// Which of them this is.
    pub nth: usize,
    pub occasion: Occasion,
    pub stage: Stage,
    /// Which issuance it belongs to, from 0.
    pub issuance: usize,
    /// Whether it was told in this issuance for the first time.
    pub is_first: bool,
    /// The object of whose making it tells.
    pub makes: Option<Named>,
    /// Where it stands among the others: a revision, or nanoseconds.
    pub place: i128,
    /// When it had happened.
    pub latest: Timestamp,
    pub object: Option<Named>,
}

impl Saying<'_> {
    /// The object that it is about.
    pub(crate) fn object(&self) -> Option<&Named> {
        self.object.as_ref()
    }

    /// The first and the last moment that it may have been.
    pub(crate) fn bounds(&self) -> (Timestamp, Timestamp) {
        let Occasion { at, grain, .. } = self.occasion;
        match grain {
            Grain::Fine => (at, at),
            Grain::Second => (at, at.saturating_add(REST).unwrap_or(at)),
        }
    }

    pub(crate) fn is_certificate(&self) -> bool {
        self.event.involved_object.kind == Kind::Certificate.as_str()
    }

    /// Tells whether it is the Certificate's private key that was made or taken.
    pub(crate) fn is_key(&self) -> bool {
        let reason = self.event.reason.as_str();
        self.is_certificate() && [reason::GENERATED, reason::REUSED].contains(&reason)
    }
}

/// Tells whether an event says that a Certificate is there.
pub(crate) fn is_issued(event: &Event) -> bool {
    event.involved_object.kind == Kind::Certificate.as_str()
        && event.reason == reason::ISSUING
        && event.message.contains("successfully issued")
}

/// What is left of a second after its beginning.
pub(crate) const REST: SignedDuration = SignedDuration::from_nanos(999_999_999);
