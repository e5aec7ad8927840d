//! Headers that matter wherever we ask: `Retry-After` and `Date`.

use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Longest pause believed: beyond it a header is a mistake, and a moment so far off would not print.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// One header as text.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// The server's clock.
pub fn date(headers: &HeaderMap) -> Option<Timestamp> {
    text(headers, &DATE).and_then(moment)
}

/// The pause that `Retry-After` asks for (RFC 9110 §10.2.3), none where it is absent or cannot be read. A date is read by
/// the server's own clock, where the answer shows it, so that a wrong clock here or there does no harm.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = text(headers, &RETRY_AFTER)?;
    let pause = if let Ok(seconds) = value.parse() {
        Duration::from_secs(seconds)
    } else {
        let pause = moment(value)?.duration_since(date(headers).unwrap_or(now));
        // What is over asks for no pause.
        Duration::try_from(pause).unwrap_or_default()
    };
    Some(pause.min(LONGEST))
}

/// Reads an HTTP date (RFC 9110 §5.6.7); a wrong weekday is not worth losing the moment.
fn moment(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_pause_is_read_in_both_forms() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let longest = Some(LONGEST.as_secs());
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
    }
}
