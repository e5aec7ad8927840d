//! Assessment of the Secret of a Certificate: the `Ready` condition and the times in the status.

use jiff::Timestamp;

use crate::model::certificate::READY;
use crate::model::common::{condition, set_condition};
use crate::model::event::reason;
use crate::model::{Certificate, CertificateStatus, Condition, ConditionStatus, Time};
use crate::reconcile::policy::{self, Input};
use crate::reconcile::renewal::{self, Life, Window, WindowError};

/// Assessment of a Secret.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// The `Ready` condition, without its transition time.
    pub ready: Condition,
    /// Start of validity of the certificate in the Secret.
    pub not_before: Option<Time>,
    /// End of validity of the certificate in the Secret.
    pub not_after: Option<Time>,
    /// Moment of the next renewal.
    pub renewal_time: Option<Time>,
}

/// Assesses the Secret.
pub fn assess(
    input: &Input<'_>,
    (windows, life): (&Result<Vec<Window>, WindowError>, Option<Life<'_>>),
    now: Timestamp,
) -> Assessment {
    let leaf = input.secret.and_then(|secret| secret.usable_leaf());
    let spec = &input.certificate.spec;
    let renewal_time = life.map_or(Ok(None), |life| renewal::renewal_time(spec, life, windows));
    let violation = policy::violation(input).or_else(|| policy::expired(input, now));
    let (status, reason, message) = match (violation, &renewal_time) {
        (Some(violation), _) => (ConditionStatus::False, violation.reason, violation.message),
        (None, Err(why)) => {
            let message = format!("Could not calculate renewal time: {why}");
            (ConditionStatus::False, reason::WINDOW_ERROR, message)
        }
        (None, Ok(_)) => {
            let message = "Certificate is up to date and has not expired".to_owned();
            (ConditionStatus::True, "Ready", message)
        }
    };
    let ready = Condition {
        kind: READY.to_owned(),
        status,
        reason: reason.to_owned(),
        message,
        last_transition_time: None,
        observed_generation: input.certificate.metadata.generation,
    };
    Assessment {
        ready,
        not_before: leaf.map(|leaf| leaf.not_before.into()),
        not_after: leaf.map(|leaf| leaf.not_after.into()),
        renewal_time: renewal_time.ok().flatten().map(Time::new),
    }
}

impl Assessment {
    /// Returns whether the status already holds this assessment.
    pub fn is_recorded(&self, certificate: &Certificate) -> bool {
        let status = &certificate.status;
        let ready = condition(&status.conditions, READY)
            .map(|known| Condition { last_transition_time: None, ..known.clone() });
        ready.as_ref() == Some(&self.ready)
            && status.not_before == self.not_before
            && status.not_after == self.not_after
            && status.renewal_time == self.renewal_time
    }

    /// Writes the assessment into a status.
    pub fn write(self, status: &mut CertificateStatus, now: Timestamp) {
        set_condition(&mut status.conditions, self.ready, now);
        status.not_before = self.not_before;
        status.not_after = self.not_after;
        status.renewal_time = self.renewal_time;
    }
}
