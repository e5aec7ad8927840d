//! Facts that only the headers of a CA's answer give: links, and how far the CA's clock is from ours.

use http::HeaderMap;
use jiff::{SignedDuration, Timestamp};

use crate::http::headers::date;

/// Step of the difference between clocks, in seconds: Kerberos and CAs themselves allow differences of some minutes.
const CLOCK_STEP_SECONDS: i64 = 600;

/// Returns how far the CA's clock is ahead of ours, if the answer shows it: in steps, so that the value stays equal
/// from answer to answer; zero below half a step.
pub(super) fn ahead(headers: &HeaderMap, now: Timestamp) -> SignedDuration {
    let Some(theirs) = date(headers) else { return SignedDuration::ZERO };
    let seconds = theirs.duration_since(now).as_secs();
    let steps = (seconds.abs() + CLOCK_STEP_SECONDS / 2) / CLOCK_STEP_SECONDS;
    SignedDuration::from_secs(seconds.signum() * steps * CLOCK_STEP_SECONDS)
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
    use http::header::{DATE, LINK};

    use super::*;

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
