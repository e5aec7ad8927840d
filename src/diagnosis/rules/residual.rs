//! ORD-17: stuck Certificates that no known cause explains, with a quote from their objects.
//!
//! This rule comes after all others. A Certificate needs no quote if an error concerns it, or if its wait is known and
//! passes by itself: a queue, a limit, a CA that is away or at work, a time that was named.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::control_plane::concerns;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::case::name::NameCase;
use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::catalogue;
use crate::diagnosis::catalogue::id::{CauseFamily, CauseId};
use crate::diagnosis::finding::{Evidence, Finding, Grade, stored};
use crate::diagnosis::verdict::awaited;
use crate::diagnosis::words::facts;
use crate::model::common::{condition, is_true};
use crate::model::memory::{Holder, Memory};
use crate::model::{Challenge, ObjectName, State, Time};
use crate::store::cluster::is_refused_by_admission;

/// Time that an issuance may take before a standstill is quoted.
const QUOTE_AFTER: SignedDuration = SignedDuration::from_mins(2);
/// Maximum time that a controller takes to begin an issuance that is due.
const BEGIN_MAX: SignedDuration = SignedDuration::from_mins(10);

/// Returns one finding for each open Certificate of `case` that stands still and that no finding in `found` explains;
/// `concerned` returns the Certificates that a subject is about.
pub(super) fn unexplained(
    case: &Case,
    found: &[Finding],
    concerned: impl Fn(&str) -> BTreeSet<ObjectName>,
) -> Vec<Finding> {
    let explained: BTreeSet<ObjectName> = found
        .iter()
        .filter(|finding| finding.is_error() || passes(finding.cause))
        .flat_map(|finding| concerned(&finding.subject))
        .collect();
    let open = case.certificates.iter().filter(|of| of.is_open());
    let unexplained = open.filter(|of| !explained.contains(&of.certificate.name()));
    // A message that a rule has read needs no quote, even if the cause may pass.
    let is_read = |quoted: &Finding| {
        let known = found.iter().filter(|finding| finding.grade != Grade::Possible);
        known.flat_map(|finding| &finding.evidence).any(|one| one.came == quoted.evidence[0].came)
    };
    unexplained
        .filter_map(|of| quote_certificate(case, of))
        .filter(|quoted| !is_read(quoted))
        .collect()
}

/// Reports whether a cause is a wait that ends by itself, so that a standstill behind the cause is no fault.
fn passes(cause: CauseId) -> bool {
    cause.family() == CauseFamily::Lim
        || matches!(
            cause,
            CauseId::Ord09
                | CauseId::Ord16
                | CauseId::Ctl01
                | CauseId::Ctl04
                | CauseId::Ctl05
                | CauseId::Ctl16
                | CauseId::Prv12
        )
}

/// Returns a quote from the objects of a Certificate; `None` if the issuance has just begun, waits for a named time or for
/// a self-check that passes here, or if no controller works on it and its objects have no message.
fn quote_certificate(case: &Case, of: &CertificateCase) -> Option<Finding> {
    let since = of.begun_at().or_else(|| due_since(case, of))?;
    let is_fresh = case.at.duration_since(since) < QUOTE_AFTER && !is_refused(case, of);
    if is_fresh || waits_for_a_moment(case, of) || is_right_from_here(case, of) {
        return None;
    }
    let quote = of_challenge(case, of)
        .or_else(|| of_warning(case, of))
        .or_else(|| of_order(case, of))
        .or_else(|| of_step(case, of, since))?;
    let name = of.certificate.name();
    let subject = format!("Certificate {name}");
    let words = quote.shown.came.clone();
    let near = catalogue::nearest(&words);
    let mut nearest: Vec<String> =
        near.iter().map(|entry| format!("{} ({})", entry.id, entry.title)).collect();
    if nearest.is_empty() {
        nearest.push("no entry has these words".to_owned());
    }
    let finding = Finding::new(CauseId::Ord17, Grade::Likely, subject.clone(), quote.shown)
        .with("WHO", subject)
        .with("SINCE", Time::new(since).to_string())
        .with("WRITER", quote.writer)
        .with("WORDS", words)
        .with("NEAREST", nearest.join(", "))
        .with("NAME", &name.name)
        .with("NAMESPACE", &name.namespace);
    let first = near.first().map(|entry| entry.id.to_string());
    Some(first.into_iter().fold(finding, |finding, id| finding.with("NEAR", id)))
}

/// Returns since when an issuance is due that no controller has begun, although cert-manager works and nothing holds the
/// issuance up; `None` otherwise.
fn due_since(case: &Case, of: &CertificateCase) -> Option<Timestamp> {
    let is_held = of.next_try.is_some_and(|at| at > case.at) || !of.rivals.is_empty();
    if of.due.is_none() || is_held || case.driver != DriverCase::CertManager {
        return None;
    }
    let status = &of.certificate.status;
    let since = status.not_after.or(status.renewal_time)?.timestamp();
    (case.at.duration_since(since) > BEGIN_MAX).then_some(since)
}

/// Reports whether an error already stands in the way, so that the age of the issuance does not matter: no order could be
/// made, an answer could not be put up, or a step was refused twice.
fn is_refused(case: &Case, of: &CertificateCase) -> bool {
    let is_of_now =
        |at: Option<Timestamp>| at.zip(of.begun_at()).is_none_or(|(at, since)| at >= since);
    let mut warnings = case.control.warnings.iter();
    let is_unpresented = |it: &Challenge| {
        it.status.processing && !it.status.presented && !it.status.reason.is_empty()
    };
    let is_unordered = of.order().is_some_and(|order| {
        order.status.url.is_empty()
            && order.status.state.is_none()
            && !order.status.reason.is_empty()
    });
    is_unordered
        || warnings.any(|it| {
            (it.count > 1 || is_refused_by_admission(&it.message))
                && concerns(of, &it.about)
                && is_of_now(it.at)
        })
        || of.current_challenges().filter(|it| !it.has_ended()).any(is_unpresented)
}

/// Quote from an object, with its writer.
struct Quote {
    /// Place of the quote: an object, or the program that wrote it and the object.
    writer: String,
    shown: Evidence,
}

/// Reports whether a Challenge is queued, or waits until a time that this program has noted, and not because of an error.
fn waits_for_a_moment(case: &Case, of: &CertificateCase) -> bool {
    let is_queued = |name: &ObjectName| case.queue.iter().any(|it| it.challenge == *name);
    let order = of.order().map(|it| Memory::read(Holder::Order, &it.metadata.annotations));
    let is_later = |at: Option<Timestamp>| at.is_some_and(|at| at > case.at);
    let waits = |challenge: &Challenge| {
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        is_queued(&challenge.name())
            || (is_later(memory.next_try) && facts::cause(challenge).is_none())
    };
    order.is_some_and(|memory| is_later(memory.next_try))
        || of.current_challenges().filter(|it| !it.has_ended()).any(waits)
}

/// Reports whether every open Challenge waits for its answer to be seen, and this machine has just seen the answer: the
/// reason is outdated, and the next self-check passes unless another cause is found.
fn is_right_from_here(case: &Case, of: &CertificateCase) -> bool {
    let is_right = |challenge: &Challenge| {
        let is_of_it = |pending: &Challenge| pending.name() == challenge.name();
        let mut names = case.names.iter().filter(|it| it.pending.as_ref().is_some_and(is_of_it));
        names.any(NameCase::is_answer_seen)
    };
    let mut open = of.current_challenges().filter(|it| !it.has_ended()).peekable();
    open.peek().is_some()
        && open.all(|it| it.status.state != Some(State::Processing) && is_right(it))
}

/// Quotes the reason of the first Challenge that has a reason and has not succeeded.
fn of_challenge(case: &Case, of: &CertificateCase) -> Option<Quote> {
    let has_words = |it: &&Challenge| !it.status.reason.is_empty() && !is_proven(it);
    let challenge = of.current_challenges().find(has_words)?;
    let asked = format!("Challenge {}: status.reason", challenge.name());
    Some(Quote {
        writer: name_writer(case, &format!("Challenge {}", challenge.name())),
        shown: stored(asked, case.at, &challenge.status.reason),
    })
}

fn is_proven(challenge: &Challenge) -> bool {
    challenge.status.state == Some(State::Valid)
}

/// Quotes the Warning that occurred most often since the issuance began.
fn of_warning(case: &Case, of: &CertificateCase) -> Option<Quote> {
    let since = of.begun_at();
    let is_of_now = |at: Option<Timestamp>| at.zip(since).is_none_or(|(at, since)| at >= since);
    let warnings = case.control.warnings.iter();
    let own = warnings.filter(|it| concerns(of, &it.about) && is_of_now(it.at));
    let warning = own.max_by_key(|it| (it.count, it.at))?;
    let times =
        if warning.count > 1 { format!(", {} times", warning.count) } else { String::new() };
    let asked = format!("Event {} of {}{times}", warning.reason, warning.about);
    let by = if warning.by.is_empty() { "an Event" } else { &warning.by };
    Some(Quote {
        writer: format!("{by} says of {}", warning.about),
        shown: stored(asked, warning.at.unwrap_or(case.at), &warning.message),
    })
}

/// Quotes the reason of the Order.
fn of_order(case: &Case, of: &CertificateCase) -> Option<Quote> {
    let order = of.order().filter(|it| !it.status.reason.is_empty())?;
    let asked = format!("Order {}: status.reason", order.name());
    Some(Quote {
        writer: name_writer(case, &format!("Order {}", order.name())),
        shown: stored(asked, case.at, &order.status.reason),
    })
}

/// Quotes the step at which the chain stands, if a controller should take the step.
fn of_step(case: &Case, of: &CertificateCase, since: Timestamp) -> Option<Quote> {
    let conditions = &of.certificate.status.conditions;
    let is_unbegun = !is_true(conditions, "Issuing") && due_since(case, of).is_some();
    if is_unbegun {
        let asked = format!("Certificate {}: condition Issuing", of.certificate.name());
        let due = of.due.as_ref().map(|due| due.message.as_str()).unwrap_or_default();
        let came = format!("not set, although the certificate is due: {due}");
        let writer = format!("the issuance that should have begun at {}", Time::new(since));
        return Some(Quote { writer, shown: stored(asked, case.at, came) });
    }
    if case.driver == DriverCase::Nobody || !is_true(conditions, "Issuing") {
        return None;
    }
    let chain = Chain {
        certificate: of.certificate.clone(),
        requests: of.requests.clone(),
        orders: of.orders.clone(),
        challenges: of.current_challenges().cloned().collect(),
        issuer: None,
        in_cluster: case.in_cluster,
    };
    let step = awaited::of_chain(&chain)?;
    let asked = format!("Certificate {}: condition Issuing", of.certificate.name());
    let issuing = condition(conditions, "Issuing").map(|it| it.message.as_str());
    let issuing = issuing.filter(|message| !message.is_empty());
    let message = issuing.map(|message| format!("{message}; ")).unwrap_or_default();
    Some(Quote {
        writer: format!("the step that has been open since {}", Time::new(since)),
        shown: stored(asked, case.at, format!("{message}{step}")),
    })
}

/// Names the program that writes the status of an object, for the sentence of the finding.
fn name_writer(case: &Case, object: &str) -> String {
    match case.driver {
        DriverCase::CertManager => format!("cert-manager writes in {object}"),
        DriverCase::KubectlAcme => format!("kubectl-acme writes in {object}"),
        DriverCase::Nobody | DriverCase::Unknown => format!("{object} says"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::control_plane::tests::{cluster, says};
    use super::super::judge;
    use super::super::tests::check;
    use super::*;
    use crate::diagnosis::case::QueuedCase;
    use crate::diagnosis::case::control::WarningCase;
    use crate::reconcile::schedule::Obstacle;

    /// An issuance that began then, with a Challenge of that reason.
    fn begun_at(since: &str, reason: &str, change: impl FnOnce(&mut Case)) -> Case {
        cluster(|case| {
            says(case, reason);
            let issuing = json!({"type": "Issuing", "status": "True", "lastTransitionTime": since, "message": "Secret does not exist"});
            let status = &mut case.certificates[0].certificate.status;
            status.conditions = vec![serde_json::from_value(issuing).unwrap()];
            case.names.clear();
            change(case);
        })
    }

    const LONG_AGO: &str = "2026-11-24T21:30:00Z";
    const UNKNOWN: &str = "the frobnicator of the provider has no quux";

    #[test]
    fn an_unknown_reason_is_quoted_once_it_stands_for_minutes() {
        let case = begun_at(LONG_AGO, UNKNOWN, |_| ());
        check(&case, &[CauseId::Ord17]);
        let found = &judge(&case)[0];
        assert!(found.is_error());
        assert_eq!(found.facts["WORDS"], UNKNOWN);
        assert_eq!(found.facts["WRITER"], "cert-manager writes in Challenge web/h");
        assert!(found.facts["NEAREST"].contains("PRV-"), "{found:?}");
        let fresh = "2026-11-24T21:59:00Z";
        let presented = |is: bool| {
            begun_at(fresh, UNKNOWN, |case| {
                let status = &mut case.certificates[0].challenges[0].status;
                (status.processing, status.presented) = (true, is);
            })
        };
        check(&presented(true), &[]);
        // What could not be put up is stuck at once.
        check(&presented(false), &[CauseId::Ord17]);
    }

    #[test]
    fn what_a_known_cause_explains_is_not_quoted_and_what_a_guess_names_is() {
        let said = "ACME client for issuer not initialised/available";
        check(&begun_at(LONG_AGO, said, |_| ()), &[CauseId::Acc10]);
        let guess = "wrong status code '404', expected '200'";
        let found = judge(&begun_at(LONG_AGO, guess, |_| ()));
        let quoted = found.iter().find(|finding| finding.cause == CauseId::Ord17);
        assert!(quoted.is_some_and(|finding| finding.facts["WORDS"] == guess), "{found:?}");
    }

    #[test]
    fn the_warning_that_came_most_often_is_quoted_where_no_status_says_anything() {
        let warning = |message: &str, count, at: &str| WarningCase {
            about: "Certificate web/www".into(),
            name: ObjectName::new("web", "www"),
            reason: "Odd".into(),
            message: message.into(),
            at: at.parse().ok(),
            count,
            by: "mesh-operator".into(),
        };
        let case = begun_at(LONG_AGO, "", |case| {
            case.control.warnings = vec![
                warning("seldom", 2, "2026-11-24T21:50:00Z"),
                warning("often", 9, "2026-11-24T21:40:00Z"),
                warning("of an issuance before", 90, "2026-11-24T20:00:00Z"),
            ];
        });
        check(&case, &[CauseId::Ord17]);
        let found = &judge(&case)[0];
        assert_eq!(found.facts["WORDS"], "often");
        assert_eq!(found.facts["WRITER"], "mesh-operator says of Certificate web/www");
        assert_eq!(found.evidence[0].asked, "Event Odd of Certificate web/www, 9 times");
    }

    #[test]
    fn where_nothing_says_anything_the_step_is_named_if_somebody_drives() {
        let of = |driver: DriverCase| {
            begun_at(LONG_AGO, "", |case| {
                case.driver = driver;
                case.certificates[0].requests.clear();
                case.certificates[0].orders.clear();
                case.certificates[0].challenges.clear();
                case.certificates[0].certificate.status.next_private_key_secret_name = "k".into();
            })
        };
        let found = judge(&of(DriverCase::CertManager));
        assert_eq!(found.iter().map(|it| it.cause).collect::<Vec<_>>(), [CauseId::Ord17]);
        assert!(found[0].facts["WORDS"].starts_with("Secret does not exist; "), "{found:?}");
        let found = judge(&of(DriverCase::Nobody));
        assert!(found.iter().all(|it| it.cause != CauseId::Ord17), "{found:?}");
    }

    #[test]
    fn a_wait_that_passes_by_itself_is_no_fault() {
        let queued = QueuedCase {
            challenge: ObjectName::new("web", "h"),
            domain: "www.example.com".into(),
            waits: Obstacle::Slot { slots: 60 },
            is_of_same_order: false,
        };
        let case = begun_at(LONG_AGO, "", |case| case.queue = vec![queued]);
        assert!(judge(&case).iter().all(|it| it.cause != CauseId::Ord17));
        let held_back = begun_at(LONG_AGO, "waits until the record is forgotten", |case| {
            let memory = Memory {
                next_try: Some(case.at + SignedDuration::from_mins(9)),
                ..Memory::default()
            };
            let challenge = &mut case.certificates[0].challenges[0];
            memory.write(Holder::Challenge, &mut challenge.metadata.annotations);
        });
        check(&held_back, &[]);
    }
}
