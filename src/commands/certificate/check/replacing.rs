//! Replacement of the found certificates, limited per hour. Only Certificates of the store can be replaced. An order that the
//! CA would refuse is not tried, and a certificate issued a moment ago is not issued again for a stale renewal window.

use jiff::{SignedDuration, Timestamp};

use super::surveyor::CheckResult;
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

/// Age up to which a renewal window that asks to renew a new certificate counts as stale: as long as CAs ask clients
/// to wait between two requests for the window.
const FRESH_CERTIFICATE_AGE: SignedDuration = SignedDuration::from_hours(6);

/// Replaces the replaceable certificates, and records the outcome of each.
///
/// # Errors
/// Fails with the lowest exit code of all Certificates that were tried.
pub async fn replace(
    surveyed: &mut [CheckResult],
    mut work: WorkArgs,
    most_per_hour: usize,
    context: &Context,
) -> Result<(), Failure> {
    let mut wanted = Vec::new();
    for one in surveyed.iter_mut().filter(|one| one.checked.verdict == CheckVerdict::Replace) {
        match (why_not_tried(one, context.now()), &one.certificate) {
            (None, Some(certificate)) => wanted.push(certificate.clone()),
            (why, _) => one.checked.renewal = Some(hold_back(why.unwrap_or_default())),
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
            // The check's document is the only document on standard output.
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
            hold_back(limit_message(most_per_hour))
        } else {
            let why = Some("no new certificate was issued; standard error says why".to_owned());
            CheckedRenewal { outcome: CheckedRenewalOutcome::Failed, why }
        });
    }
    ended
}

fn hold_back(why: String) -> CheckedRenewal {
    CheckedRenewal { outcome: CheckedRenewalOutcome::HeldBack, why: Some(why) }
}

fn limit_message(most: usize) -> String {
    format!("the limit is {most} in an hour; run the command again later")
}

/// Reason why no replacement is tried; `None` if one is tried.
fn why_not_tried(one: &CheckResult, now: Timestamp) -> Option<String> {
    if one.certificate.is_none() {
        return Some("the certificate belongs to no Certificate in the store".to_owned());
    }
    let forbidden = one.checked.reasons.iter();
    let mut forbidden = forbidden.filter(|reason| reason.reason == ReplacementCause::CaaForbids);
    if let Some(reason) = forbidden.next() {
        return Some(format!("the CA would refuse the order: {}", reason.detail));
    }
    let is_only_asked = one.checked.reasons.iter().all(|reason| {
        matches!(reason.reason, ReplacementCause::RenewalWindow | ReplacementCause::RenewalDue)
    });
    let is_asked = one.has(ReplacementCause::RenewalWindow) && is_only_asked;
    let is_fresh = one.issued_at.is_some_and(|at| now.duration_since(at) < FRESH_CERTIFICATE_AGE);
    (is_asked && is_fresh).then(|| {
        let hours = FRESH_CERTIFICATE_AGE.as_hours();
        format!("the certificate was issued less than {hours} h ago, and the CA still asks for its renewal")
    })
}

/// Certificates that a later run, or a run after another fault is mended, may replace, each with the reason why not now.
pub fn held(surveyed: &[CheckResult]) -> impl Iterator<Item = (&ObjectName, &str)> {
    surveyed.iter().filter_map(|one| {
        let renewal = one.checked.renewal.as_ref()?;
        let is_held = renewal.outcome == CheckedRenewalOutcome::HeldBack;
        let (name, _) = one.certificate.as_ref().filter(|_| is_held)?;
        Some((name, renewal.why.as_deref()?))
    })
}
