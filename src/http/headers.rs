//! Headers that any server may send: `Retry-After` and `Date`.

use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;

/// Longest pause believed: a longer one is a mistake of the server, and a moment so far off would not print.
const MAX_PAUSE: Duration = Duration::from_hours(366 * 24);
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// First year of two digits that belongs to the twentieth century, as in RFC 6265 §5.1.1.
const FIRST_YEAR_OF_1900: i16 = 70;

/// Returns one header as text.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// Returns the time by the server's clock.
pub fn date(headers: &HeaderMap) -> Option<Timestamp> {
    text(headers, &DATE).and_then(moment)
}

/// Returns the pause that `Retry-After` asks for (RFC 9110 §10.2.3), the longest of several; `None` if the header is absent
/// or cannot be read. A date is read by the server's clock if the answer shows it, so that a wrong clock does no harm.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let clock = date(headers).unwrap_or(now);
    let values = headers.get_all(RETRY_AFTER).iter().filter_map(|value| value.to_str().ok());
    let pauses =
        values.filter_map(|value| pause(value, clock).or_else(|| longest_of_list(value, clock)));
    pauses.max().map(|pause| pause.min(MAX_PAUSE))
}

/// Reads one pause: seconds, or a moment.
fn pause(value: &str, clock: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // A moment in the past asks for no pause.
    Some(Duration::try_from(moment(value)?.duration_since(clock)).unwrap_or_default())
}

/// Returns the longest of the pauses that a proxy joined with commas (RFC 9110 §5.3); most dates have a comma, too.
fn longest_of_list(value: &str, clock: Timestamp) -> Option<Duration> {
    let parts: Vec<&str> = value.split(',').collect();
    let mut pauses = Vec::new();
    let mut rest = &parts[..];
    while let [first, more @ ..] = rest {
        let dated = more.first().map(|second| format!("{first},{second}"));
        if let Some(read) = dated.and_then(|dated| pause(&dated, clock)) {
            pauses.push(read);
            rest = &more[1..];
        } else {
            pauses.push(pause(first, clock)?);
            rest = more;
        }
    }
    pauses.into_iter().max()
}

/// Reads an HTTP date in any of its three forms (RFC 9110 §5.6.7); a wrong weekday is not worth losing the moment.
fn moment(text: &str) -> Option<Timestamp> {
    let parser = DateTimeParser::new().relaxed_weekday(true);
    parser.parse_timestamp(text).ok().or_else(|| moment_of_old(text))
}

/// Reads the two older forms: `Friday, 27-Nov-26 21:40:00 GMT` (RFC 850) and `Fri Nov 27 21:40:00 2026` (asctime).
fn moment_of_old(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split([' ', ',', '-']).filter(|word| !word.is_empty()).collect();
    let ([_, day, month, year, time, "GMT" | "UTC"] | [_, month, day, time, year]) = words[..]
    else {
        return None;
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    let century = match (year.len(), year.parse::<i16>().ok()?) {
        (2, year) if year < FIRST_YEAR_OF_1900 => 2000,
        (2, _) => 1900,
        _ => 0,
    };
    let year = century + year.parse::<i16>().ok()?;
    let date = Date::new(year, i8::try_from(month + 1).ok()?, day.parse().ok()?).ok()?;
    let time: Time = time.parse().ok()?;
    date.to_datetime(time).to_zoned(TimeZone::UTC).ok().map(|moment| moment.timestamp())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_pause_is_read_in_every_form() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let longest = Some(MAX_PAUSE.as_secs());
        for (retry, date, seconds) in [
            ("3", None, Some(3)),
            ("0", None, Some(0)),
            (" 86400 ", None, Some(86_400)),
            ("99999999999999", None, longest),
            ("Fri, 20 Nov 2026 12:01:00 GMT", None, Some(60)),
            ("Fri, 20 Nov 2026 11:00:00 GMT", None, Some(0)),
            // The server's clock is an hour ahead of ours.
            ("Fri, 20 Nov 2026 13:01:00 GMT", Some("Fri, 20 Nov 2026 13:00:00 GMT"), Some(60)),
            ("Mon, 20 Nov 2026 12:00:05 GMT", None, Some(5)),
            ("Friday, 20-Nov-26 12:00:07 GMT", None, Some(7)),
            ("Monday, 20-Nov-26 12:00:07 GMT", None, Some(7)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", None, Some(0)),
            ("Fri Nov 20 12:00:07 2026", None, Some(7)),
            ("Tue Dec  1 12:00:00 2026", None, Some(11 * 86_400)),
            ("Friday, 20-Nov-26 13:00:07 GMT", Some("Fri Nov 20 13:00:00 2026"), Some(7)),
            ("Fri, 20 Nov 2026 13:00:07 GMT", Some("Friday, 20-Nov-26 13:00:00 GMT"), Some(7)),
            ("7, 7", None, Some(7)),
            ("7,9", None, Some(9)),
            ("Fri, 20 Nov 2026 12:00:07 GMT, Fri, 20 Nov 2026 12:00:07 GMT", None, Some(7)),
            ("Fri Nov 20 12:00:07 2026, 9", None, Some(9)),
            ("7, soon", None, None),
            ("Friday, 32-Nov-26 12:00:07 GMT", None, None),
            ("Friday, 20-Nix-26 12:00:07 GMT", None, None),
            ("soon", None, None),
            ("-5", None, None),
            ("1.5", None, None),
            ("", None, None),
            ("99999999999999999999", None, None),
            ("Fri, 31 Dec 9999 23:59:59 GMT", None, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(retry));
            headers.extend(date.map(|date| (DATE, HeaderValue::from_static(date))));
            let read = retry_after(&headers, now).map(|pause| pause.as_secs());
            assert_eq!(read, seconds, "{retry}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
        let mut twice = HeaderMap::new();
        twice.append(RETRY_AFTER, HeaderValue::from_static("7"));
        twice.append(RETRY_AFTER, HeaderValue::from_static("9"));
        assert_eq!(retry_after(&twice, now), Some(Duration::from_secs(9)));
    }
}
