//! When a certificate is due for renewal.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::model::CertificateSpec;
use crate::model::certificate::RenewalWindow;
use crate::model::cron::Cron;

/// A renewal window, ready to be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    cron: Cron,
    length: SignedDuration,
    zone: TimeZone,
}

/// Why no renewal time fits the windows; kept in a condition, so the text is stable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WindowError(String);

/// Parses the windows of a Certificate; `zone` finds a time zone by its IANA name.
///
/// # Errors
/// Fails when an expression, a length or a time zone is none.
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

/// Returns the moment from which this certificate should be renewed; none with the policy `Disabled`.
///
/// # Errors
/// Fails when no window opens during the certificate's life, or the windows cannot be read.
pub fn renewal_time(
    spec: &CertificateSpec,
    not_before: Timestamp,
    not_after: Timestamp,
    windows: &Result<Vec<Window>, WindowError>,
) -> Result<Option<Timestamp>, WindowError> {
    if spec.renewal.as_ref().is_some_and(|renewal| renewal.policy == "Disabled") {
        return Ok(None);
    }
    let wanted = without_windows(spec, not_before, not_after);
    let windows = windows.as_ref().map_err(Clone::clone)?;
    if windows.is_empty() || windows.iter().any(|window| window.is_open(wanted)) {
        return Ok(Some(wanted));
    }
    let before = windows.iter().filter_map(|w| w.cron.at_or_before(wanted, &w.zone)).max();
    let after = windows.iter().filter_map(|w| w.cron.after(wanted, &w.zone)).min();
    let during = |at: &Timestamp| (not_before..not_after).contains(at);
    let opening = before.filter(during).or_else(|| after.filter(during));
    opening.map(Some).ok_or_else(|| {
        WindowError(format!("no renewal window opens between {not_before:.0} and {not_after:.0}"))
    })
}

/// The moment that `renewBefore` asks for: `notAfter` less a third of the life time unless told otherwise.
pub fn without_windows(
    spec: &CertificateSpec,
    not_before: Timestamp,
    not_after: Timestamp,
) -> Timestamp {
    let life = not_after.duration_since(not_before);
    let given = spec.renew_before.map(|before| before.0);
    let before = given
        .filter(|before| before.is_positive() && *before < life)
        .or_else(|| {
            let percent = spec.renew_before_percentage.filter(|p| (1..100).contains(p))?;
            Some(life * percent / 100)
        })
        .unwrap_or(life / 3);
    let at = not_after - before;
    Timestamp::from_second(at.as_second()).unwrap_or(at)
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
        let time = renewal_time(&spec, start, end, &windows(&spec, east));
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
