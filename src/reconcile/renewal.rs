//! Moment from which a certificate is due for renewal.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::renewal_info::Suggestion;
use crate::model::CertificateSpec;
use crate::model::certificate::RenewalWindow;
use crate::model::cron::Cron;

/// Limit below which a life is short: a third of a short life leaves too little time for a second try.
const SHORT_LIFE: SignedDuration = SignedDuration::from_hours(10 * 24);
/// Shortest time that a certificate is kept from when it was ordered. Five minutes are the least that a spec can ask
/// for (`duration: 1h`, `renewBefore: 55m`), from which the CA takes its seconds.
const KEPT_FOR_MIN: SignedDuration = SignedDuration::from_mins(4);
/// Divisor of the life: the CA's window is ignored if less than this part of the life would be left.
const LIFE_LEFT_DIVISOR: i32 = 6;

/// Renewal window, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    cron: Cron,
    length: SignedDuration,
    zone: TimeZone,
}

/// Reason that no renewal time fits the windows; kept in a condition, so the text is stable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WindowError(String);

/// Parses the windows of a Certificate; `zone` finds a time zone by its IANA name.
///
/// # Errors
/// Fails if an expression, a length or a time zone is invalid.
pub fn windows(
    spec: &CertificateSpec,
    zone: impl Fn(&str) -> Option<TimeZone>,
) -> Result<Vec<Window>, WindowError> {
    let given = spec.renewal.iter().flat_map(|renewal| renewal.windows.iter());
    given.map(|window| parse(window, &zone)).collect()
}

fn parse(
    window: &RenewalWindow,
    zone: &impl Fn(&str) -> Option<TimeZone>,
) -> Result<Window, WindowError> {
    let cron = Cron::parse(&window.cron).map_err(WindowError)?;
    let length = window.window_duration.0;
    if !length.is_positive() {
        return Err(WindowError("windowDuration is not longer than nothing".to_owned()));
    }
    let zone = match window.timezone.as_str() {
        "" | "UTC" => TimeZone::UTC,
        name => zone(name)
            .ok_or_else(|| WindowError(format!("there is no time zone named \"{name}\"")))?,
    };
    Ok(Window { cron, length, zone })
}

/// Life of a certificate, and its CA's suggestion.
#[derive(Clone, Copy, Debug)]
pub struct Life<'a> {
    /// First second of the life.
    pub start: Timestamp,
    /// Last second of the life.
    pub end: Timestamp,
    /// Moment of the order, by the clock of the program that placed it, if known. CAs date certificates back.
    pub asked: Option<Timestamp>,
    /// Suggestion of the CA, if the CA was asked.
    pub suggestion: Option<&'a Suggestion>,
}

impl Life<'_> {
    /// Returns when the certificate was ordered; a moment after the life's end comes from a wrong clock and is ignored.
    fn ordered_at(&self) -> Option<Timestamp> {
        self.asked.filter(|asked| *asked < self.end)
    }
}

/// Returns the moment from which this certificate should be renewed; `None` with the policy `Disabled`.
///
/// # Errors
/// Fails if no window opens during the certificate's life, or the windows cannot be read.
pub fn renewal_time(
    spec: &CertificateSpec,
    life: Life<'_>,
    windows: &Result<Vec<Window>, WindowError>,
) -> Result<Option<Timestamp>, WindowError> {
    if spec.renewal.as_ref().is_some_and(|renewal| renewal.policy == "Disabled") {
        return Ok(None);
    }
    let wanted = without_windows(spec, life);
    let windows = windows.as_ref().map_err(Clone::clone)?;
    if windows.is_empty() || windows.iter().any(|window| window.is_open(wanted)) {
        return Ok(Some(wanted));
    }
    let Life { start, end, .. } = life;
    let start = life.ordered_at().map_or(start, |asked| start.max(asked));
    let before = windows.iter().filter_map(|w| w.cron.at_or_before(wanted, &w.zone)).max();
    let after = windows.iter().filter_map(|w| w.cron.after(wanted, &w.zone)).min();
    let during = |at: &Timestamp| (start..end).contains(at);
    let opening = before.filter(during).or_else(|| after.filter(during));
    opening.map(Some).ok_or_else(|| {
        WindowError(format!("no renewal window opens between {start:.0} and {end:.0}"))
    })
}

/// Returns the moment of renewal regardless of the Certificate's windows: the one drawn from the CA's window, unless
/// the spec asks for an earlier one or too little of the life would be left; without one, see [`without_suggestion`].
pub fn without_windows(spec: &CertificateSpec, life: Life<'_>) -> Timestamp {
    let alone = without_suggestion(spec, life);
    let Some(suggestion) = life.suggestion else { return alone };
    let latest = life.end - life.end.duration_since(life.start) / LIFE_LEFT_DIVISOR;
    if suggestion.at > latest {
        return alone;
    }
    if spec_renew_before(spec, life).is_some() && alone < suggestion.at {
        return alone;
    }
    match suggestion.held_until {
        Some(until) => alone.min(until.max(suggestion.at)),
        None => suggestion.at,
    }
}

/// Returns the moment of renewal regardless of the CA: as the spec asks, else when a third of the life is left, or half
/// of a life below ten days, counted from the order.
///
/// If that moment comes right after the order (the CA dates back far, or our clock is ahead), the certificate is kept
/// for half of the life that was left then; otherwise each certificate would bring the next at once.
pub fn without_suggestion(spec: &CertificateSpec, life: Life<'_>) -> Timestamp {
    let length = life.end.duration_since(life.start);
    let asked = life.ordered_at();
    let left = asked.map_or(length, |asked| life.end.duration_since(asked).min(length));
    let usual = if length < SHORT_LIFE { left / 2 } else { length / 3 };
    let at = life.end - spec_renew_before(spec, life).unwrap_or(usual);
    let too_soon = |asked: &Timestamp| at.duration_since(*asked) < KEPT_FOR_MIN;
    let at = asked.filter(too_soon).map_or(at, |asked| asked + (left / 2).max(KEPT_FOR_MIN));
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// Returns how long before the end the spec asks for a renewal, if the life has room for that.
fn spec_renew_before(spec: &CertificateSpec, life: Life<'_>) -> Option<SignedDuration> {
    let length = life.end.duration_since(life.start);
    let given = spec.renew_before.map(|before| before.0);
    given.filter(|before| before.is_positive() && *before < length).or_else(|| {
        let percent = spec.renew_before_percentage.filter(|p| (1..100).contains(p))?;
        Some(length * percent / 100)
    })
}

impl Window {
    fn is_open(&self, at: Timestamp) -> bool {
        let opened = self.cron.at_or_before(at, &self.zone);
        opened.is_some_and(|opened| at.duration_since(opened) < self.length)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const START: &str = "2026-11-21T04:30:35Z";

    /// Shows the renewal time of a certificate that lives for so many days from [`START`].
    fn check(mut spec: Value, days: i64, expected: Result<Option<&str>, &str>) {
        spec["secretName"] = json!("web-tls");
        spec["issuerRef"] = json!({"name": "acme"});
        let spec: CertificateSpec = serde_json::from_value(spec).unwrap();
        let start: Timestamp = START.parse().unwrap();
        let end = start + SignedDuration::from_hours(24 * days);
        let east =
            |name: &str| (name == "East").then(|| TimeZone::fixed(jiff::tz::Offset::constant(5)));
        let life = Life { start, end, asked: None, suggestion: None };
        let time = renewal_time(&spec, life, &windows(&spec, east));
        let shown = time.map(|at| at.map(|at| at.to_string())).map_err(|error| error.to_string());
        assert_eq!(shown, expected.map(|at| at.map(str::to_owned)).map_err(str::to_owned));
    }

    #[test]
    fn a_third_of_the_life_is_left_unless_told_otherwise() {
        for (spec, expected) in [
            (json!({}), "2027-01-20T04:30:35Z"),
            (json!({"renewBefore": "360h"}), "2027-02-04T04:30:35Z"),
            (json!({"renewBefore": "2160h"}), "2027-01-20T04:30:35Z"),
            (json!({"renewBefore": "0s"}), "2027-01-20T04:30:35Z"),
            (json!({"renewBeforePercentage": 50}), "2027-01-05T04:30:35Z"),
            (json!({"renewBeforePercentage": 100}), "2027-01-20T04:30:35Z"),
            (json!({"duration": "24h"}), "2027-01-20T04:30:35Z"),
        ] {
            check(spec, 90, Ok(Some(expected)));
        }
    }

    /// When a certificate of so many minutes, asked for after so many of them, is renewed, in minutes of its life.
    fn check_asked(spec: &Value, minutes: i64, asked: i64, expected: i64) {
        let mut whole = json!({"secretName": "web-tls", "issuerRef": {"name": "acme"}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec: CertificateSpec = serde_json::from_value(whole).unwrap();
        let start: Timestamp = START.parse().unwrap();
        let at = |minute: i64| start + SignedDuration::from_mins(minute);
        let life = Life { start, end: at(minutes), asked: Some(at(asked)), suggestion: None };
        let windows = windows(&spec, |_| None);
        let time = renewal_time(&spec, life, &windows).unwrap().unwrap();
        assert_eq!(time.duration_since(start).as_mins(), expected, "{spec:?} {minutes} {asked}");
    }

    #[test]
    fn what_was_due_before_it_was_asked_for_stays_half_of_what_is_left() {
        let none = json!({});
        check_asked(&none, 180, 60, 120);
        check_asked(&none, 100, 60, 80);
        check_asked(&none, 120, 60, 90);
        check_asked(&json!({"renewBefore": "90m"}), 120, 60, 90);
        check_asked(&json!({"renewBefore": "54m"}), 120, 60, 66);
        check_asked(&json!({"renewBefore": "55m"}), 60, 1, 5);
        // A clock that is behind.
        check_asked(&none, 100, -50, 50);
        // A clock that is ahead, and one that is so no longer.
        check_asked(&none, 100, 95, 99);
        check_asked(&none, 100, 7000, 50);
    }

    #[test]
    fn a_window_that_was_open_before_brings_no_other_one_at_once() {
        let daily =
            json!({"renewal": {"windows": [{"cron": "30 5 * * *", "windowDuration": "10m"}]}});
        // The one of the first day opened right before it was asked for.
        check_asked(&daily, 2 * 24 * 60, 60, 24 * 60 + 59);
        let hourly =
            json!({"renewal": {"windows": [{"cron": "0 * * * *", "windowDuration": "5m"}]}});
        check_asked(&hourly, 120, 0, 29);
        check_asked(&hourly, 180, 60, 89);
        check_asked(&hourly, 100, 60, 89);
    }

    /// When a certificate of so many hours is renewed, in hours of its life; the CA wants one hour, and until another it is not
    /// heeded.
    fn check_suggested(spec: &Value, hours: i64, wanted: i64, held: Option<i64>, expected: i64) {
        let mut whole = json!({"secretName": "web-tls", "issuerRef": {"name": "acme"}});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec: CertificateSpec = serde_json::from_value(whole).unwrap();
        let start: Timestamp = START.parse().unwrap();
        let at = |hour: i64| start + SignedDuration::from_hours(hour);
        let suggestion = Suggestion { at: at(wanted), held_until: held.map(at) };
        let life = Life { start, end: at(hours), asked: None, suggestion: Some(&suggestion) };
        let time = renewal_time(&spec, life, &Ok(Vec::new())).unwrap().unwrap();
        assert_eq!(time.duration_since(start).as_hours(), expected, "{spec:?} {wanted} {held:?}");
    }

    #[test]
    fn the_ca_says_when_unless_the_spec_asks_for_an_earlier_moment() {
        let none = json!({});
        check_suggested(&none, 900, 590, None, 590);
        check_suggested(&none, 900, 610, None, 610);
        check_suggested(&none, 900, -50, None, -50);
        // Far off, or after the end, is a mistake.
        check_suggested(&none, 900, 800, None, 600);
        check_suggested(&none, 900, 9000, None, 600);
        check_suggested(&json!({"renewBefore": "500h"}), 900, 590, None, 400);
        check_suggested(&json!({"renewBefore": "200h"}), 900, 590, None, 590);
        check_suggested(&json!({"renewBeforePercentage": 50}), 900, 590, None, 450);
        check_suggested(&json!({"renewBefore": "200h"}), 900, 800, None, 700);
    }

    #[test]
    fn a_word_that_is_not_heeded_is_waited_out_but_not_beyond_the_usual_moment() {
        let none = json!({});
        check_suggested(&none, 900, -50, Some(24), 24);
        check_suggested(&none, 900, -50, Some(5000), 600);
        check_suggested(&none, 30, -50, Some(24), 15);
    }

    #[test]
    fn of_a_short_life_half_is_left() {
        check(json!({}), 9, Ok(Some("2026-11-25T16:30:35Z")));
        check(json!({}), 10, Ok(Some("2026-11-27T20:30:35Z")));
        check(json!({"renewBefore": "72h"}), 9, Ok(Some("2026-11-27T04:30:35Z")));
    }

    #[test]
    fn a_disabled_renewal_has_no_time() {
        check(json!({"renewal": {"policy": "Disabled"}}), 90, Ok(None));
    }

    #[test]
    fn a_window_moves_the_time_to_its_last_opening_before_it() {
        let window = |cron: &str, zone: &str| json!({"renewal": {"windows": [{"cron": cron, "windowDuration": "2h", "timezone": zone}]}});
        for (cron, zone, expected) in [
            ("0 3 * * *", "", Ok(Some("2027-01-20T04:30:35Z"))), // open
            ("0 1 * * *", "", Ok(Some("2027-01-20T01:00:00Z"))),
            ("0 1 * * *", "East", Ok(Some("2027-01-19T20:00:00Z"))),
            ("0 12 1 2 *", "", Ok(Some("2027-02-01T12:00:00Z"))), // only after it
            (
                "0 12 1 8 *",
                "",
                Err(
                    "no renewal window opens between 2026-11-21T04:30:35Z and 2027-02-19T04:30:35Z",
                ),
            ),
            ("0 1 * * *", "Nowhere", Err("there is no time zone named \"Nowhere\"")),
            ("often", "", Err("\"often\" has 1 fields, not 5")),
        ] {
            check(window(cron, zone), 90, expected);
        }
    }
}
