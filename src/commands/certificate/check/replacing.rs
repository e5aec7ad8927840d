//! Replacing what was found, so many in an hour. Only Certificates of the store can be replaced; what its CA would refuse is not
//! tried, and what was issued a moment ago is not issued again because the CA has not yet noticed.

use jiff::{SignedDuration, Timestamp};

use super::surveyor::Surveyed;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::issue::again;
use crate::issue::follow::work::WorkArgs;
use crate::issue::plan::replacement::Replacement;
use crate::model::certificate_check::{
    CheckVerdict, CheckedRenewal, CheckedRenewalOutcome, ReplacementCause,
};
use crate::model::{Certificate, Kind, ObjectName};
use crate::print::format::Format;
use crate::print::jsonpath::Template;
use crate::store::local::Access;
use crate::store::resources::Resources;

/// For so long a CA's word that a new certificate is to be renewed counts as a stale one: as long as CAs ask to wait between two
/// questions.
const FRESH: SignedDuration = SignedDuration::from_hours(6);

/// Replaces what may be replaced of what was found, and says of each what came of it.
///
/// # Errors
/// Fails with the lowest exit code of all Certificates that were tried.
pub async fn replace(
    surveyed: &mut [Surveyed],
    mut work: WorkArgs,
    most_per_hour: usize,
    context: &Context,
) -> Result<(), Failure> {
    let mut wanted = Vec::new();
    for one in surveyed.iter_mut().filter(|one| one.checked.verdict == CheckVerdict::Replace) {
        match (not_tried(one, context.now()), &one.certificate) {
            (None, Some(certificate)) => wanted.push(certificate.clone()),
            (why, _) => one.checked.renewal = Some(held_back(why.unwrap_or_default())),
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let store = context.store(Access::ReadWrite).await?;
    let replacement = Replacement::new(wanted, most_per_hour);
    let room = replacement.room(&store, Timestamp::now()).await?;
    let mut ended = Ok(());
    if room > 0 {
        if !context.printer(&work.output).format().is_for_people() {
            // The one document on standard output is that of the check.
            work.output.output = Template::parse("").ok().map(Format::JsonPath);
        }
        ended = Box::pin(again::replace(work, &replacement, context)).await;
    }
    let certificates = Resources::<Certificate>::new(store, Kind::Certificate);
    for one in surveyed.iter_mut().filter(|one| one.checked.renewal.is_none()) {
        let Some((name, before)) = &one.certificate else { continue };
        if !replacement.names().any(|wanted| wanted == name) {
            continue;
        }
        let after = certificates.get(name).await?.and_then(|found| found.status.revision);
        one.checked.renewal = Some(if after > *before {
            CheckedRenewal { outcome: CheckedRenewalOutcome::Replaced, why: None }
        } else if room == 0 || replacement.was_put_off(name) {
            held_back(later(most_per_hour))
        } else {
            let why = Some("the new certificate has not come; standard error says why".to_owned());
            CheckedRenewal { outcome: CheckedRenewalOutcome::Failed, why }
        });
    }
    ended
}

fn held_back(why: String) -> CheckedRenewal {
    CheckedRenewal { outcome: CheckedRenewalOutcome::HeldBack, why: Some(why) }
}

fn later(most: usize) -> String {
    format!("{most} in an hour is the limit; a later run goes on")
}

/// Why a certificate is not to be tried, if so.
fn not_tried(one: &Surveyed, now: Timestamp) -> Option<String> {
    if one.certificate.is_none() {
        return Some("it is not that of a Certificate in the store".to_owned());
    }
    let forbidden = one.checked.reasons.iter();
    let mut forbidden = forbidden.filter(|reason| reason.reason == ReplacementCause::CaaForbids);
    if let Some(reason) = forbidden.next() {
        return Some(format!("its CA would refuse it: {}", reason.detail));
    }
    let is_only_asked = one.checked.reasons.iter().all(|reason| {
        matches!(reason.reason, ReplacementCause::RenewalWindow | ReplacementCause::RenewalDue)
    });
    let is_asked = one.has(ReplacementCause::RenewalWindow) && is_only_asked;
    let is_fresh = one.issued_at.is_some_and(|at| now.duration_since(at) < FRESH);
    (is_asked && is_fresh).then(|| {
        let hours = FRESH.as_hours();
        format!("it was issued less than {hours} h ago, and its CA still wants it renewed")
    })
}

/// The Certificates that may be replaced by a later run, or once something else is put right, each with why they were not.
pub fn held(surveyed: &[Surveyed]) -> impl Iterator<Item = (&ObjectName, &str)> {
    surveyed.iter().filter_map(|one| {
        let renewal = one.checked.renewal.as_ref()?;
        let is_held = renewal.outcome == CheckedRenewalOutcome::HeldBack;
        let (name, _) = one.certificate.as_ref().filter(|_| is_held)?;
        Some((name, renewal.why.as_deref()?))
    })
}
