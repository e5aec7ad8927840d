//! Certificates whose CA says when to renew: asked once nothing else is to be done; its answer is kept or held back.

use jiff::{SignedDuration, Timestamp};

use super::ReconcileError;
use super::certificate::CertificateController;
use super::renewal_inquiry::{InquiryResult, is_unwanted};
use crate::model::{Certificate, ObjectName, Secret};
use crate::reconcile::certificate::types::{Action, Observed, Outcome};
use crate::reconcile::{Wake, certificate};

/// Time that a person's question to a CA waits for its turn.
const TURN_WAIT: std::time::Duration = std::time::Duration::from_millis(200);
const TURN_WAIT_SIGNED: SignedDuration = SignedDuration::from_millis(200);

impl CertificateController {
    /// Asks the CA when to renew a Certificate that is not due, unless it was asked lately, and keeps the answer.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn ask_when_to_renew(
        &self,
        name: &ObjectName,
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        let Some(certificate) = self.certificates.get(name).await? else { return Ok(()) };
        let secret = ObjectName::new(&name.namespace, &certificate.spec.secret_name);
        let secret = self.secrets.get(&secret).await?;
        let observed = self.neighbours.observe_from_outside(&certificate, secret.as_ref()).await?;
        let neighbours = (secret.as_ref(), &observed);
        for now in [now, now + TURN_WAIT_SIGNED] {
            match self.ask(&certificate, neighbours, Wake::OnChange, now).await? {
                Wake::At(at) if at <= now + TURN_WAIT_SIGNED => tokio::time::sleep(TURN_WAIT).await,
                _ => break,
            }
        }
        Ok(())
    }

    /// Asks the CA when to renew, if that is due, and keeps the answer; otherwise returns when to reconcile again.
    pub(super) async fn ask(
        &self,
        certificate: &Certificate,
        (secret, observed): (Option<&Secret>, &Observed),
        wake: Wake,
        now: Timestamp,
    ) -> Result<Wake, ReconcileError> {
        let Some(inquiry) = &self.inquiry else { return Ok(wake) };
        let Some((leaf, at)) = certificate::question(certificate, observed) else {
            return Ok(wake);
        };
        if certificate::rival(certificate, observed).is_some() {
            return Ok(wake);
        }
        let Some(id) = leaf.renewal_id.as_deref().filter(|_| at <= now) else {
            return Ok(wake.or_at(at));
        };
        let interval = observed.options.renewal_interval;
        let store = self.recorder.store();
        let asked = match inquiry.ask(store, certificate, (id, interval), now).await {
            // Without permission to read the issuer, the renewal goes on as if there were none.
            Err(error) if error.lacks_permission() => InquiryResult::Nobody,
            asked => asked?,
        };
        let outcome = match asked {
            InquiryResult::Answered(answer) => {
                Outcome::RenewalAsked(Box::new(leaf.clone()), answer)
            }
            InquiryResult::NotWanted if observed.suggestion.is_some() => Outcome::RenewalNotAsked,
            InquiryResult::Nobody | InquiryResult::NotWanted => {
                return Ok(wake.or_at(now + interval.0));
            }
            InquiryResult::Later(at) => return Ok(wake.or_at(at)),
        };
        self.carry_out(certificate, secret, Action::Conclude(outcome), now).await?;
        Ok(Wake::Now)
    }

    /// Begins a renewal that the CA hastens, unless it is unwanted or too early; returns when to reconcile again.
    pub(super) async fn renew_early(
        &self,
        certificate: &Certificate,
        secret: Option<&Secret>,
        due: Action,
        now: Timestamp,
    ) -> Result<Wake, ReconcileError> {
        let is_unwanted = match is_unwanted(self.recorder.store(), certificate).await {
            Err(error) if error.lacks_permission() => false,
            is_unwanted => is_unwanted?,
        };
        if is_unwanted {
            let forget = Action::Conclude(Outcome::RenewalNotAsked);
            self.carry_out(certificate, secret, forget, now).await?;
            return Ok(Wake::Now);
        }
        let inquiry = self.inquiry.as_ref();
        if let Some(until) = inquiry.and_then(|inquiry| inquiry.held_until(certificate, now)) {
            return Ok(Wake::At(until));
        }
        self.carry_out(certificate, secret, due, now).await?;
        if let Some(inquiry) = inquiry {
            inquiry.has_begun(certificate, now);
        }
        Ok(Wake::Now)
    }
}
