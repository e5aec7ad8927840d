//! The headers that matter: `Retry-After`, `Link`, and those with one value.

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName};
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

/// Longest pause believed: beyond it a header is a mistake, and a moment so far off would not print.
const LONGEST: i64 = 366 * 24 * 3600;

/// What clocks may differ by without a word, in seconds: Kerberos and CAs themselves allow some minutes.
const STEP: i64 = 600;

/// One header as text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// What a `Retry-After` header asks for (RFC 9110 §10.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// There is none.
    Unsaid,
    /// It asks for a pause, and for which one cannot be read.
    Unreadable,
    /// Until that moment, never before now.
    Until(Timestamp),
}

/// Reads `Retry-After`. A date is read by the server's own clock, where the answer shows it, so that a wrong clock here or
/// there does no harm.
pub(super) fn patience(headers: &HeaderMap, now: Timestamp) -> Patience {
    if !headers.contains_key(RETRY_AFTER) {
        return Patience::Unsaid;
    }
    match pause(headers, now).and_then(|pause| now.checked_add(pause).ok()) {
        Some(at) => Patience::Until(at),
        None => Patience::Unreadable,
    }
}

fn pause(headers: &HeaderMap, now: Timestamp) -> Option<SignedDuration> {
    let value = text(headers, &RETRY_AFTER)?;
    let seconds = if let Ok(seconds) = value.parse::<u64>() {
        i64::try_from(seconds).unwrap_or(LONGEST)
    } else {
        let at = date(value)?;
        let their_now = text(headers, &DATE).and_then(date).unwrap_or(now);
        at.duration_since(their_now).as_secs()
    };
    Some(SignedDuration::from_secs(seconds.clamp(0, LONGEST)))
}

/// How far the CA's clock is ahead of ours, where the answer shows it: in steps, so that it stays the same from answer to answer,
/// and nothing below half a step.
pub(super) fn ahead(headers: &HeaderMap, now: Timestamp) -> SignedDuration {
    let Some(theirs) = text(headers, &DATE).and_then(date) else { return SignedDuration::ZERO };
    let seconds = theirs.duration_since(now).as_secs();
    let steps = (seconds.abs() + STEP / 2) / STEP;
    SignedDuration::from_secs(seconds.signum() * steps * STEP)
}

fn date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()
}

/// Targets of the `Link` headers with that relation (RFC 8288 §3), in their order.
pub(super) fn links(headers: &HeaderMap, relation: &str) -> Vec<String> {
    let values = headers.get_all(http::header::LINK);
    values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(split_links)
        .filter(|(_, parameters)| has_relation(parameters, relation))
        .map(|(target, _)| target.to_owned())
        .collect()
}

/// Takes `<target>; parameters, <target>; parameters` apart; commas inside brackets and quotes belong to the text.
fn split_links(value: &str) -> Vec<(&str, &str)> {
    let mut links = Vec::new();
    let mut rest = value;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((target, after)) = after.split_once('>') else { break };
        let mut quoted = false;
        let end = after
            .char_indices()
            .find(|(_, c)| {
                quoted ^= *c == '"';
                *c == ',' && !quoted
            })
            .map_or(after.len(), |(at, _)| at);
        links.push((target, &after[..end]));
        rest = &after[end..];
    }
    links
}

fn has_relation(parameters: &str, relation: &str) -> bool {
    parameters.split(';').filter_map(|parameter| parameter.split_once('=')).any(|(name, value)| {
        name.trim().eq_ignore_ascii_case("rel")
            && value
                .trim()
                .trim_matches('"')
                .split_ascii_whitespace()
                .any(|word| word.eq_ignore_ascii_case(relation))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::LINK;

    use super::*;

    /// Seconds from now on; less than none where nothing can be read.
    fn after(retry: &str, date: Option<&str>) -> i64 {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_str(retry).unwrap());
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_str(date).unwrap());
        }
        match patience(&headers, now) {
            Patience::Until(at) => at.duration_since(now).as_secs(),
            Patience::Unreadable => -1,
            Patience::Unsaid => panic!("{retry} is not heard"),
        }
    }

    #[test]
    fn a_pause_is_read_in_both_forms() {
        for (retry, date, seconds) in [
            ("3", None, 3),
            ("0", None, 0),
            (" 86400 ", None, 86_400),
            ("99999999999999", None, LONGEST),
            ("Fri, 20 Nov 2026 12:01:00 GMT", None, 60),
            ("Fri, 20 Nov 2026 11:00:00 GMT", None, 0),
            // The CA's clock is an hour ahead of ours.
            ("Fri, 20 Nov 2026 13:01:00 GMT", Some("Fri, 20 Nov 2026 13:00:00 GMT"), 60),
            // A wrong weekday is not worth losing the moment.
            ("Mon, 20 Nov 2026 12:00:05 GMT", None, 5),
            ("soon", None, -1),
            ("-5", None, -1),
            ("1.5", None, -1),
            ("", None, -1),
            ("99999999999999999999", None, -1),
            ("Fri, 31 Dec 9999 23:59:59 GMT", None, -1),
        ] {
            assert_eq!(after(retry, date), seconds, "{retry}");
        }
    }

    #[test]
    fn clocks_that_differ_by_much_are_told_in_steps() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        for (date, minutes) in [
            ("Fri, 20 Nov 2026 12:00:01 GMT", 0),
            ("Fri, 20 Nov 2026 12:04:59 GMT", 0),
            ("Fri, 20 Nov 2026 12:09:58 GMT", 10),
            ("Fri, 20 Nov 2026 12:10:02 GMT", 10),
            ("Thu, 19 Nov 2026 12:00:03 GMT", -24 * 60),
            ("long ago", 0),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(DATE, HeaderValue::from_static(date));
            assert_eq!(ahead(&headers, now), SignedDuration::from_mins(minutes), "{date}");
        }
        assert_eq!(ahead(&HeaderMap::new(), now), SignedDuration::ZERO);
    }

    #[test]
    fn no_header_asks_for_no_patience() {
        assert_eq!(patience(&HeaderMap::new(), Timestamp::UNIX_EPOCH), Patience::Unsaid);
    }

    #[test]
    fn alternate_links_are_found_among_others() {
        let mut headers = HeaderMap::new();
        for value in [
            r#"<https://ca/dir>;rel="index""#,
            r#"<https://ca/cert/1>; title="a, b"; rel="alternate", </cert/2>;REL=alternate"#,
            r#"<https://ca/cert/3>; rel="up alternate""#,
            "<https://ca/cert/4",
            "no link",
        ] {
            headers.append(LINK, HeaderValue::from_str(value).unwrap());
        }
        assert_eq!(
            links(&headers, "alternate"),
            ["https://ca/cert/1", "/cert/2", "https://ca/cert/3"]
        );
        assert_eq!(links(&headers, "up"), ["https://ca/cert/3"]);
    }
}
