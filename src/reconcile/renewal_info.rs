//! Renewal information of a CA (ARI, RFC 9773): when the CA is asked, which moment of the suggested window is taken,
//! and how long a certificate that the CA's suggestion brought is kept if the CA still says "now".
//!
//! A hash of the certificate's identifier and the window draws the moment from the window: many certificates spread
//! over it, and a restart draws the same moment.

use jiff::{SignedDuration, Timestamp};

use super::facts::{CsrFacts, LeafFacts, SecretFacts, annotation};
use super::{Note, differences};
use crate::model::event::{reason, source};
use crate::model::hashed_names::fnv1;
use crate::model::renewal_info::{
    AriStatus, CertificateAcmeStatus, RenewalInfo, RenewalMemory, SuggestedWindow,
};
use crate::model::text::shortened;
use crate::model::{Certificate, Issuer, IssuerRef, Time};

/// Hours that a certificate from a CA-hastened renewal is kept if the CA still says "now"; each further one in a row
/// doubles the time. So there are at most four such renewals in a week, and CAs that count renewals allow five.
const STALE_HOURS: i64 = 24;
/// Hours after which a CA that says "later" may say "now" as if for the first time; one that says both in turn may not.
const FORGOTTEN_HOURS: i64 = 7 * 24;
/// Number of doublings after which the time grows no more: longer than any certificate lives.
const DOUBLINGS_MAX: u32 = 8;
/// Least number of questions to a CA in the life of a certificate.
const QUESTIONS_PER_LIFE: i32 = 8;
/// Longest text of a CA that is kept, in characters.
const MAX_CA_TEXT_CHARS: usize = 300;

/// Usual pause between two questions to a CA about one certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval(pub SignedDuration);

impl Default for Interval {
    fn default() -> Self {
        Self(SignedDuration::from_hours(6))
    }
}

impl Interval {
    /// Returns the pause that a CA asks for, bounded to between 1/360 and 4 times the usual pause, and short enough for
    /// the certificate's life.
    fn bounded(self, asked: Option<SignedDuration>, leaf: &LeafFacts) -> SignedDuration {
        let (shortest, longest) = (self.0 / 360, self.0 * 4);
        let life = leaf.not_after.duration_since(leaf.not_before);
        asked
            .unwrap_or(self.0)
            .clamp(shortest, longest)
            .min((life / QUESTIONS_PER_LIFE).max(shortest))
    }
}

/// Answer of a CA that was asked about a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Renewal information, or why the CA gave none.
    pub said: Result<RenewalInfo, String>,
    /// Pause that the CA asks for before the next question.
    pub pause: Option<SignedDuration>,
    /// Usual pause before the next question.
    pub interval: Interval,
}

/// Suggestion of a CA for the certificate in a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Moment drawn from the suggested window.
    pub at: Timestamp,
    /// End of the time in which the suggestion is ignored: a hastened renewal brought this certificate already.
    pub held_until: Option<Timestamp>,
}

/// Returns when to ask the CA about a certificate; `None` if the certificate has no identifier for renewal information.
pub fn next_question(
    leaf: &LeafFacts,
    memory: Option<&RenewalMemory>,
    interval: Interval,
) -> Option<Timestamp> {
    let id = leaf.renewal_id.as_ref()?;
    let known = memory.filter(|memory| memory.certificate == *id).and_then(|memory| memory.next);
    known.or_else(|| {
        // A new certificate has just been made as the CA wants it.
        let pause = interval.bounded(None, leaf);
        leaf.not_before.checked_add(pause / 2 + part(pause / 2, &[id, "first"])).ok()
    })
}

/// Returns the CA's suggestion for this certificate; `None` if the CA has given none so far.
pub fn suggestion(leaf: &LeafFacts, memory: Option<&RenewalMemory>) -> Option<Suggestion> {
    let id = leaf.renewal_id.as_ref()?;
    let memory = memory.filter(|memory| memory.certificate == *id)?;
    let info = memory.info.as_ref()?;
    let window = info.end.duration_since(info.start);
    let at = info.start.checked_add(part(window, &[id, &info.start.to_string()])).ok()?;
    let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
    let held_until = memory.hastened_at.filter(|_| memory.hastened > 0).and_then(|began| {
        let until = began.checked_add(stays(memory.hastened)).ok()?;
        (at < until).then_some(until)
    });
    Some(Suggestion { at, held_until })
}

/// Returns how long a certificate is kept after `hastened` renewals in a row that the CA wanted.
pub fn stays(hastened: u32) -> SignedDuration {
    let doublings = hastened.saturating_sub(1).min(DOUBLINGS_MAX);
    SignedDuration::from_hours(STALE_HOURS << doublings)
}

/// Returns the identifier (§4.1) of the certificate that an Order replaces: the one in the Secret, if this issuer
/// signed it for at least one of the names and is asked when to renew. Empty if there is none.
pub fn predecessor(
    asked: &IssuerRef,
    issuer: &Issuer,
    csr: &CsrFacts,
    secret: Option<&SecretFacts>,
) -> String {
    let found = || {
        let acme = issuer.spec.acme.as_ref().filter(|acme| acme.asks_when_to_renew());
        let secret = acme.and(secret)?;
        let given = |key: &str| secret.annotations.get(key).cloned();
        let issued_by = IssuerRef {
            name: given(annotation::ISSUER_NAME)?,
            kind: given(annotation::ISSUER_KIND).unwrap_or_default(),
            group: given(annotation::ISSUER_GROUP).unwrap_or_default(),
        };
        let leaf = secret.usable_leaf()?;
        let (old, new) = (&leaf.names, &csr.names);
        let shares_a_name = old.dns_names.iter().any(|name| new.dns_names.contains(name))
            || old.ip_addresses.iter().any(|address| new.ip_addresses.contains(address));
        let is_its_own = differences::same_issuer(asked, &issued_by);
        leaf.renewal_id.clone().filter(|_| shares_a_name && is_its_own)
    };
    found().unwrap_or_default()
}

/// Returns whether the last of `hastened` renewals in a row began so long ago that it has no bearing on the next one.
pub fn is_long_ago(began: Timestamp, hastened: u32, now: Timestamp) -> bool {
    now.duration_since(began) >= stays(hastened).max(SignedDuration::from_hours(FORGOTTEN_HOURS))
}

/// Returns the memory once a renewal begins that the CA has hastened.
pub fn hastened(memory: Option<RenewalMemory>, now: Timestamp) -> RenewalMemory {
    let before = memory.unwrap_or_default();
    let hastened = before.hastened.saturating_add(1);
    RenewalMemory { hastened, hastened_at: Some(now), ..before }
}

/// Folds an answer into the memory. After a failed question, earlier information on this certificate still holds.
pub(super) fn remember(
    memory: Option<RenewalMemory>,
    leaf: &LeafFacts,
    answer: &Answer,
    now: Timestamp,
) -> Option<RenewalMemory> {
    let id = leaf.renewal_id.clone()?;
    let before = memory.unwrap_or_default();
    let pause = answer.interval.bounded(answer.pause, leaf);
    // A tenth sooner or later, so that certificates asked about together are not asked about together the next time.
    let spread = part(pause / 5, &[&id, &now.to_string()]) - pause / 10;
    let next = now.checked_add(pause + spread).ok();
    let info = match &answer.said {
        Ok(info) => {
            let explanation = shortened(&info.explanation, MAX_CA_TEXT_CHARS);
            Some(RenewalInfo { explanation, ..info.clone() })
        }
        Err(_) => before.info.filter(|_| before.certificate == id),
    };
    let is_content = answer.said.as_ref().is_ok_and(|info| info.start > now);
    let is_long_ago =
        before.hastened_at.is_some_and(|began| is_long_ago(began, before.hastened, now));
    let (hastened, hastened_at) =
        if is_content && is_long_ago { (0, None) } else { (before.hastened, before.hastened_at) };
    Some(RenewalMemory { certificate: id, info, next, hastened, hastened_at })
}

/// Builds the status of the renewal information.
pub(super) fn status(
    memory: &RenewalMemory,
    answer: &Answer,
    now: Timestamp,
) -> CertificateAcmeStatus {
    let info = memory.info.as_ref();
    let ari = AriStatus {
        certificate: memory.certificate.clone(),
        explanation: info.map(|info| info.explanation.clone()).unwrap_or_default(),
        last_checked: Some(Time::new(now)),
        last_error: answer
            .said
            .as_ref()
            .err()
            .map(|why| shortened(why, MAX_CA_TEXT_CHARS))
            .unwrap_or_default(),
        next_check: memory.next.map(Time::new),
        suggested_window: info
            .map(|info| SuggestedWindow { start: info.start.into(), end: info.end.into() }),
        ..AriStatus::default()
    };
    CertificateAcmeStatus { ari: Some(ari), ..CertificateAcmeStatus::default() }
}

/// Returns the notes on an answer: why there is none, once, or why the suggestion is not followed.
pub(super) fn notes(
    certificate: &Certificate,
    leaf: &LeafFacts,
    memory: &RenewalMemory,
    answer: &Answer,
) -> Vec<Note> {
    let known = certificate.status.acme.as_ref().and_then(|acme| acme.ari.as_ref());
    let known = known.map_or("", |ari| ari.last_error.as_str());
    match &answer.said {
        Err(why) if shortened(why, MAX_CA_TEXT_CHARS) == known => Vec::new(),
        Err(why) => {
            let message = format!("Could not fetch ACME Renewal Information: {why}");
            vec![Note::warning(source::READINESS, reason::ARI_ERROR, message)]
        }
        Ok(info) => {
            let held = suggestion(leaf, Some(memory)).and_then(|suggestion| suggestion.held_until);
            let Some(until) = held else { return Vec::new() };
            let message = format!(
                "The CA wants this certificate to be renewed by {:.0}, and it is the new one of a renewal that the CA \
                 wanted: it is kept until {until:.0} at least, unless its life ends before",
                info.end
            );
            vec![Note::warning(source::READINESS, reason::RENEWAL_WANTED_AGAIN, message)]
        }
    }
}

/// Returns a part of a length of time: equal for equal words, and evenly spread over different words.
fn part(length: SignedDuration, words: &[&str]) -> SignedDuration {
    let hash = fnv1(words.join(" ").as_bytes());
    // FNV-1 leaves its upper bits much alike for texts that differ at their end.
    let mixed = u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    let millis = (length.as_millis().max(0) * i128::from(mixed)) >> 20;
    SignedDuration::from_millis(i64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::certificate::Names;
    use crate::reconcile::facts::PublicKey;
    use crate::reconcile::testing::at;

    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;

    /// A certificate of so many days, with that number.
    fn leaf(number: &str, days: i64) -> LeafFacts {
        LeafFacts {
            not_before: at(0),
            not_after: at(days * DAY),
            public_key: PublicKey::default(),
            renewal_id: Some(format!("ca.{number}")),
            serial: "01".to_owned(),
            names: Names::default(),
        }
    }

    fn window(start: i64, end: i64) -> RenewalInfo {
        RenewalInfo { start: at(start), end: at(end), explanation: String::new() }
    }

    fn says(said: Result<RenewalInfo, &str>, pause: Option<i64>) -> Answer {
        let pause = pause.map(SignedDuration::from_secs);
        Answer { said: said.map_err(str::to_owned), pause, interval: Interval::default() }
    }

    fn told(number: &str, info: RenewalInfo, now: i64) -> Option<RenewalMemory> {
        remember(None, &leaf(number, 90), &says(Ok(info), None), at(now))
    }

    #[test]
    fn moments_are_spread_over_the_window_and_stay_the_same_after_a_restart() {
        let mut quarters = [0; 4];
        for number in 0..400 {
            let leaf = leaf(&number.to_string(), 90);
            let memory = told(&number.to_string(), window(60 * DAY, 61 * DAY), DAY);
            let drawn = suggestion(&leaf, memory.as_ref()).unwrap().at;
            assert_eq!(suggestion(&leaf, memory.as_ref()).unwrap().at, drawn);
            let seconds = drawn.duration_since(at(60 * DAY)).as_secs();
            quarters[usize::try_from(seconds * 4 / DAY).unwrap()] += 1;
        }
        assert!(quarters.iter().all(|count| (60..140).contains(count)), "{quarters:?}");
    }

    #[test]
    fn what_was_said_of_another_certificate_means_nothing_for_this_one() {
        let memory = told("1", window(0, HOUR), DAY);
        assert!(suggestion(&leaf("1", 90), memory.as_ref()).is_some());
        assert_eq!(suggestion(&leaf("2", 90), memory.as_ref()), None);
        let first = |memory| next_question(&leaf("2", 90), memory, Interval::default()).unwrap();
        assert_eq!(first(memory.as_ref()), first(None));
        let nameless = LeafFacts { renewal_id: None, ..leaf("1", 90) };
        assert_eq!(next_question(&nameless, memory.as_ref(), Interval::default()), None);
    }

    #[test]
    fn a_ca_is_asked_as_it_wants_within_bounds_and_often_enough_for_a_short_life() {
        let minutes = |asked: Option<i64>, days: i64| {
            let leaf = leaf("1", days);
            let answer = says(Ok(window(DAY, DAY * 2)), asked);
            let next = remember(None, &leaf, &answer, at(0)).unwrap().next.unwrap();
            (next.duration_since(at(0)).as_mins(), next_question(&leaf, None, answer.interval))
        };
        for (asked, days, around) in [
            (None, 90, 360),
            (Some(25_000), 90, 416),
            (Some(3), 90, 1),
            (Some(400 * DAY), 90, 24 * 60),
            (Some(6 * HOUR), 1, 180),
        ] {
            let (next, first) = minutes(asked, days);
            let tenth = around / 10 + 1;
            assert!((around - tenth..=around + tenth).contains(&next), "{asked:?}: {next}");
            let longest = 360.min(days * 180);
            let first = first.unwrap().duration_since(at(0)).as_mins();
            assert!((longest / 2..=longest).contains(&first), "{first}");
        }
    }

    #[test]
    fn a_ca_that_goes_on_saying_now_is_heeded_ever_less_until_it_is_content() {
        let mut memory = told("1", window(-DAY, -HOUR), 0);
        let mut now = 0;
        let held = |number: &str, memory: &Option<RenewalMemory>| {
            let suggestion = suggestion(&leaf(number, 90), memory.as_ref()).unwrap();
            suggestion.held_until.map(|until| until.duration_since(at(0)).as_hours() / 24)
        };
        assert_eq!(held("1", &memory), None);
        for (number, days) in [("2", 1), ("3", 3), ("4", 7), ("5", 15)] {
            memory = Some(hastened(memory, at(now)));
            let answer = says(Ok(window(-DAY, -HOUR)), None);
            memory = remember(memory, &leaf(number, 90), &answer, at(now + HOUR));
            assert_eq!(held(number, &memory), Some(days));
            now = days * DAY;
        }
        // Where it says nothing, nothing is forgotten.
        memory = remember(memory, &leaf("5", 90), &says(Err("503"), None), at(now));
        assert_eq!(memory.as_ref().unwrap().hastened, 4);
        for (day, hastened) in [(14, 4), (15, 0)] {
            let content = says(Ok(window((day + 1) * DAY, (day + 2) * DAY)), None);
            memory = remember(memory, &leaf("5", 90), &content, at(day * DAY));
            assert_eq!((held("5", &memory), memory.as_ref().unwrap().hastened), (None, hastened));
        }
        assert!(stays(u32::MAX) > SignedDuration::from_hours(24 * 200));
    }

    #[test]
    fn a_fault_is_told_once_and_what_was_said_before_still_holds() {
        let memory = told("1", window(DAY, 2 * DAY), 0);
        let fault = says(Err("the CA answered 503"), None);
        let after = remember(memory.clone(), &leaf("1", 90), &fault, at(HOUR)).unwrap();
        assert_eq!(after.info, memory.unwrap().info);
        let mut certificate = Certificate::default();
        let told = notes(&certificate, &leaf("1", 90), &after, &fault);
        assert_eq!((told.len(), told[0].reason.as_ref()), (1, "ARIError"));
        certificate.status.acme = Some(status(&after, &fault, at(HOUR)));
        assert!(notes(&certificate, &leaf("1", 90), &after, &fault).is_empty());
    }
}
