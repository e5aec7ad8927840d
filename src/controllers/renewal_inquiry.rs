//! Inquiry that asks CAs when certificates are to be renewed (RFC 9773).
//!
//! Each CA is asked about one certificate after another, and rests if it does not answer: no Certificate waits for
//! that, and it is no fault of any Certificate. The Certificate keeps the CA's answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::timeout;
use tracing::debug;

use super::accounts::tls_of;
use crate::acme::Clients;
use crate::acme::renewal_info::{RenewalAnswer, RenewalReply};
use crate::model::issuer::AcmeIssuer;
use crate::model::{Certificate, Issuer, Kind};
use crate::reconcile::renewal_info::{self, Answer, Interval};
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Longest time that a CA may take for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Shortest pause between two questions to one CA.
const QUESTION_PAUSE_MIN: SignedDuration = SignedDuration::from_millis(50);
/// Rest of a CA that has not answered; each further time doubles the rest.
const SILENCE_REST: SignedDuration = SignedDuration::from_mins(1);
/// Longest rest of a CA.
const REST_MAX: SignedDuration = SignedDuration::from_hours(2);

/// Result of a question to a CA.
#[derive(Debug)]
pub(super) enum InquiryResult {
    /// The CA has answered, perhaps without useful information.
    Answered(Answer),
    /// Not before this moment: other certificates come first, or the CA rests.
    Later(Timestamp),
    /// No CA can be asked: the issuer is missing or not of type ACME, or its CA offers no renewal information.
    Nobody,
    /// The issuer says that its CA is not to be asked.
    NotWanted,
}

/// Inquiry into renewal times.
#[derive(Debug)]
pub struct RenewalInquiry {
    clients: Arc<Clients>,
    turns: Mutex<HashMap<String, Turns>>,
    /// Renewals that this process has begun early because of a CA, by the UID of their Certificates.
    hastened: Mutex<HashMap<String, (u32, Timestamp)>>,
}

/// Turns of certificates at one CA.
#[derive(Debug, Default)]
struct Turns {
    /// Next turn that is not taken.
    next: Option<Timestamp>,
    /// Turns of certificates that wait.
    given: HashMap<String, Timestamp>,
    /// Moment until which the CA rests.
    rests: Option<Timestamp>,
    /// Number of times in a row that the CA has not answered.
    silent: u32,
}

impl RenewalInquiry {
    /// Builds the inquiry; no CA was asked yet.
    pub fn new(clients: Arc<Clients>) -> Self {
        Self { clients, turns: Mutex::default(), hastened: Mutex::default() }
    }

    /// Asks the CA of a Certificate's issuer about the certificate with this renewal identifier, if it is its turn.
    ///
    /// # Errors
    /// Fails if the store does.
    pub(super) async fn ask(
        &self,
        store: &Arc<dyn Store>,
        certificate: &Certificate,
        (id, interval): (&str, Interval),
        now: Timestamp,
    ) -> Result<InquiryResult, StoreError> {
        let Some(issuer) = issuer_of(store, certificate).await? else {
            return Ok(InquiryResult::Nobody);
        };
        let Some(acme) = &issuer.spec.acme else { return Ok(InquiryResult::Nobody) };
        if !acme.asks_when_to_renew() {
            return Ok(InquiryResult::NotWanted);
        }
        if let Some(at) = self.turn(&acme.server, id, now) {
            return Ok(InquiryResult::Later(at));
        }
        Ok(self.ask_authority(acme, id, interval, now).await)
    }

    async fn ask_authority(
        &self,
        acme: &AcmeIssuer,
        id: &str,
        interval: Interval,
        now: Timestamp,
    ) -> InquiryResult {
        let tls = tls_of(acme);
        let reply =
            timeout(ANSWER_TIMEOUT, self.clients.renewal_info(&acme.server, &tls, id)).await;
        let (answer, pause) = match &reply {
            Ok(Ok(RenewalReply { answer, pause, .. })) => (Some(answer), *pause),
            _ => (None, None),
        };
        let pause = pause.and_then(|pause| SignedDuration::try_from(pause).ok());
        let said = match answer {
            Some(RenewalAnswer::NotOffered) => {
                self.record_answer(&acme.server);
                return InquiryResult::Nobody;
            }
            Some(RenewalAnswer::Window(info)) => Ok(info.clone()),
            Some(RenewalAnswer::Nothing(why)) => Err(why.clone()),
            Some(RenewalAnswer::NotNow(_)) | None => {
                debug!(?reply, server = %acme.server, "this CA does not say when to renew");
                return InquiryResult::Later(self.rest(&acme.server, pause, now));
            }
        };
        self.record_answer(&acme.server);
        InquiryResult::Answered(Answer { said, pause, interval })
    }

    /// Returns until when this process holds back a renewal that a CA hastens, whatever the Certificate remembers.
    pub(super) fn held_until(
        &self,
        certificate: &Certificate,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let (count, began) = self.hastened_renewal(certificate, now)?;
        let until = began.checked_add(renewal_info::stays(count)).ok()?;
        (until > now).then_some(until)
    }

    /// Counts a renewal that a CA has hastened.
    pub(super) fn has_begun(&self, certificate: &Certificate, now: Timestamp) {
        let count = self.hastened_renewal(certificate, now).map_or(0, |(count, _)| count);
        let begun = (count.saturating_add(1), now);
        let mut all = self.hastened.lock();
        all.retain(|_, (count, began)| !renewal_info::is_long_ago(*began, *count, now));
        all.insert(certificate.metadata.uid.clone(), begun);
    }

    fn hastened_renewal(
        &self,
        certificate: &Certificate,
        now: Timestamp,
    ) -> Option<(u32, Timestamp)> {
        let known = self.hastened.lock().get(&certificate.metadata.uid).copied();
        known.filter(|(count, began)| !renewal_info::is_long_ago(*began, *count, now))
    }

    /// Takes the turn of a certificate at a CA; returns the moment of the turn if that is later.
    fn turn(&self, server: &str, id: &str, now: Timestamp) -> Option<Timestamp> {
        let mut all = self.turns.lock();
        let turns = all.entry(server.to_owned()).or_default();
        if let Some(until) = turns.rests.filter(|until| *until > now) {
            turns.given.clear();
            turns.next = None;
            return Some(until);
        }
        if let Some(given) = turns.given.get(id).copied() {
            if given > now {
                return Some(given);
            }
            turns.given.remove(id);
            return None;
        }
        let taken = turns.next.filter(|next| *next > now).unwrap_or(now);
        if taken == now {
            // No certificate waits any more, except of Certificates that are gone.
            turns.given.clear();
        }
        // A single certificate tests whether the CA is back; the others try after that, and are spread only then.
        if turns.silent > 0 && taken > now {
            return Some(taken);
        }
        let apart = if turns.silent == 0 { QUESTION_PAUSE_MIN } else { SILENCE_REST };
        turns.next = taken.checked_add(apart).ok();
        let later = (taken > now).then_some(taken);
        turns.given.extend(later.map(|at| (id.to_owned(), at)));
        later
    }

    /// Lets a CA rest, for as long as it asks for unless that is shorter or very long.
    fn rest(&self, server: &str, pause: Option<SignedDuration>, now: Timestamp) -> Timestamp {
        let mut all = self.turns.lock();
        let turns = all.entry(server.to_owned()).or_default();
        // Parallel questions without an answer count once.
        if turns.rests.is_none_or(|until| until <= now) {
            turns.silent = turns.silent.saturating_add(1);
            let doublings = turns.silent.saturating_sub(1).min(16);
            let rest =
                (SILENCE_REST * (1 << doublings)).max(pause.unwrap_or_default()).min(REST_MAX);
            turns.rests = now.checked_add(rest).ok();
        }
        turns.rests.unwrap_or(now)
    }

    fn record_answer(&self, server: &str) {
        if let Some(turns) = self.turns.lock().get_mut(server)
            && turns.silent > 0
        {
            turns.silent = 0;
            turns.next = None;
        }
    }
}

/// Returns whether a Certificate's issuer says that its CA is not to be asked.
pub(super) async fn is_unwanted(
    store: &Arc<dyn Store>,
    certificate: &Certificate,
) -> Result<bool, StoreError> {
    let issuer = issuer_of(store, certificate).await?;
    let acme = issuer.as_ref().and_then(|issuer| issuer.spec.acme.as_ref());
    Ok(acme.is_some_and(|acme| !acme.asks_when_to_renew()))
}

async fn issuer_of(
    store: &Arc<dyn Store>,
    certificate: &Certificate,
) -> Result<Option<Issuer>, StoreError> {
    let reference = &certificate.spec.issuer_ref;
    let Some(key) = reference.key(&certificate.metadata.namespace) else { return Ok(None) };
    let kind = if key.kind == Kind::ClusterIssuer { Kind::ClusterIssuer } else { Kind::Issuer };
    Resources::<Issuer>::new(Arc::clone(store), kind).get_known(&key.name).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap()
    }

    #[test]
    fn a_ca_is_asked_one_thing_after_another_and_rests_when_it_does_not_answer() {
        let inquiry = RenewalInquiry::new(Arc::default());
        let ca = "https://ca.example/dir";
        assert_eq!(inquiry.turn(ca, "a", at(0)), None);
        assert_eq!(inquiry.turn("https://other.example", "a", at(0)), None);
        assert_eq!(inquiry.turn(ca, "b", at(0)), Some(at(50)));
        assert_eq!(inquiry.turn(ca, "c", at(0)), Some(at(100)));
        assert_eq!(inquiry.turn(ca, "b", at(10)), Some(at(50)), "it has its turn already");
        assert_eq!(inquiry.turn(ca, "b", at(50)), None);
        assert_eq!(inquiry.turn(ca, "c", at(100)), None);
        assert_eq!(inquiry.turn(ca, "d", at(1000)), None);
        let minute = 60_000;
        assert_eq!(inquiry.rest(ca, None, at(2000)), at(2000 + minute));
        assert_eq!(inquiry.rest(ca, None, at(2001)), at(2000 + minute), "it was asked beside that");
        assert_eq!(inquiry.turn(ca, "a", at(3000)), Some(at(2000 + minute)));
        assert_eq!(inquiry.turn(ca, "a", at(2000 + minute)), None);
        assert_eq!(inquiry.turn(ca, "b", at(2000 + minute)), Some(at(2000 + 2 * minute)));
        assert_eq!(inquiry.turn(ca, "c", at(2000 + minute)), Some(at(2000 + 2 * minute)));
        assert_eq!(inquiry.rest(ca, None, at(3000 + minute)), at(3000 + 3 * minute));
        inquiry.record_answer(ca);
        assert_eq!(inquiry.turn(ca, "b", at(3000 + 3 * minute)), None, "it is back");
        assert_eq!(inquiry.turn(ca, "c", at(3000 + 3 * minute)), Some(at(3050 + 3 * minute)));
        let later = 4000 + 3 * minute;
        let asked = Some(SignedDuration::from_mins(7));
        assert_eq!(inquiry.rest(ca, asked, at(later)), at(later + 7 * minute));
    }

    #[test]
    fn a_certificate_that_has_forgotten_is_not_renewed_without_end() {
        let inquiry = RenewalInquiry::new(Arc::default());
        let mut certificate = Certificate::default();
        certificate.metadata.uid = "u".to_owned();
        let hour = 3_600_000;
        let check = |now: i64, expected: Option<i64>| {
            let held = inquiry.held_until(&certificate, at(now * hour));
            assert_eq!(held, expected.map(|until| at(until * hour)), "{now}");
            if held.is_none() {
                inquiry.has_begun(&certificate, at(now * hour));
            }
        };
        check(0, None);
        check(1, Some(24));
        check(24, None);
        check(25, Some(72));
        check(24 * 9, None);
        check(24 * 9, Some(24 * 10));
    }
}
