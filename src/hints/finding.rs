//! Findings in words: the catalogue's sentence and steps, with the facts found in place of the words in capitals.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::invocation;
use crate::diagnosis::catalogue::{self, FixStep};
use crate::diagnosis::finding::Finding;

/// Longest quotation of another program's message, in characters.
const MAX_MESSAGE_CHARS: usize = 400;

/// Describes a finding in one sentence that names its subject.
pub fn sentence(finding: &Finding) -> String {
    let entry = catalogue::entry(finding.cause);
    let says = entry.says.as_ref().and_then(|says| fill_sentence(says, &finding.facts));
    says.unwrap_or_else(|| {
        let detail = finding.facts.get("DETAIL").filter(|detail| !detail.is_empty());
        let detail = detail.map(|detail| format!(": {}", brief(detail))).unwrap_or_default();
        format!("{}: {}{detail}", finding.subject, entry.title)
    })
}

/// Cuts another program's message to a readable length.
pub fn brief(said: &str) -> Cow<'_, str> {
    match said.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &said[..end]).into(),
        None => said.into(),
    }
}

/// Fills the words in braces of a sentence with their values; `None` if a word has no value.
fn fill_sentence(says: &str, facts: &BTreeMap<&'static str, String>) -> Option<String> {
    let mut whole = String::with_capacity(says.len());
    let mut rest = says;
    while let Some((before, from)) = rest.split_once('{') {
        let (word, after) = from.split_once('}')?;
        whole.push_str(before);
        whole.push_str(&brief(facts.get(word)?));
        rest = after;
    }
    Some(whole + rest)
}

/// Returns the steps that help at the place of the objects, in order; all steps if none helps there.
pub fn steps(finding: &Finding, in_cluster: bool) -> Vec<FixStep> {
    let all = &catalogue::entry(finding.cause).fix;
    let of_line = |text: &String| {
        substitute(text, |word, before| {
            let value = value_in_line(finding, word)?;
            if before == Some('@') { server_of_dig(value) } else { Some(value.into()) }
        })
    };
    let filled = |step: &FixStep| FixStep {
        does: substitute(&step.does, |word, _| finding.facts.get(word).map(Into::into)),
        only: None,
        run: step.run.as_ref().map(|run| own_program(&of_line(run))),
        write: step.write.as_ref().map(of_line),
    };
    let helping: Vec<FixStep> =
        all.iter().filter(|step| step.helps(in_cluster)).map(filled).collect();
    if helping.is_empty() { all.iter().map(filled).collect() } else { helping }
}

/// Completes command lines of this program with the flags for the same state or cluster.
fn own_program(lines: &str) -> String {
    let own = |line: &str| match line.strip_prefix("kubectl acme ") {
        Some(words) if !words.ends_with('\\') => invocation::current().like_where_taken(words),
        _ => line.to_owned(),
    };
    lines.trim_end().lines().map(own).collect::<Vec<_>>().join("\n")
}

/// Returns the value of a word in a line to copy, if the value is plain; messages of other programs stay out of the line.
fn value_in_line<'a>(finding: &'a Finding, word: &str) -> Option<&'a str> {
    let values = [&finding.facts, &finding.in_lines].into_iter().filter_map(|all| all.get(word));
    values.map(String::as_str).find(|value| is_plain(value))
}

/// Formats a server for the `@` of dig, which takes no port there; `None` for a server of DNS over HTTPS.
fn server_of_dig(server: &str) -> Option<Cow<'_, str>> {
    match server.parse::<SocketAddr>() {
        Ok(at) if at.port() == 53 => Some(at.ip().to_string().into()),
        Ok(at) => Some(format!("{} -p {}", at.ip(), at.port()).into()),
        Err(_) if server.contains('/') => None,
        Err(_) => Some(server.strip_suffix(":53").unwrap_or(server).into()),
    }
}

/// Replaces the words in capitals that have a value; a value may depend on the character before its word. Hyphens may stand
/// between capitals.
fn substitute<'a>(
    text: &str,
    value: impl Fn(&str, Option<char>) -> Option<Cow<'a, str>>,
) -> String {
    let is_capital = |c: char| c.is_ascii_uppercase();
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_capital) {
        let (before, from) = rest.split_at(start);
        whole.push_str(before);
        let goes_on = |at: usize, c: char| {
            is_capital(c) || (c == '-' && from[at + 1..].starts_with(is_capital))
        };
        let end = from.char_indices().find(|(at, c)| !goes_on(*at, *c));
        let (word, after) = from.split_at(end.map_or(from.len(), |(at, _)| at));
        let stands_alone =
            |c: Option<char>| c.is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '_'));
        let last = whole.chars().last();
        let is_alone = stands_alone(last) && stands_alone(after.chars().next());
        whole.push_str(&value(word, last).filter(|_| is_alone).unwrap_or_else(|| word.into()));
        rest = after;
    }
    whole + rest
}

/// Returns whether a value can stand in a command line without quotes.
fn is_plain(value: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/:@".contains(c);
    !value.is_empty() && !value.starts_with('-') && value.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::catalogue::id::CauseId;
    use crate::diagnosis::finding::{Grade, evidence_of_answer};

    fn finding(name: &str) -> Finding {
        let shown = evidence_of_answer("x", jiff::Timestamp::UNIX_EPOCH, "y");
        let finding = Finding::new(CauseId::Http01, Grade::Certain, name, shown);
        finding.with("DOMAIN", name).with("A", "x").with("ISSUER", "Issuer web/acme")
    }

    #[test]
    fn words_in_capitals_stand_for_what_was_found() {
        let finding = finding("www.example.com");
        let check = |text: &str, expected: &str| {
            let value = |word: &str, _| finding.facts.get(word).map(Cow::from);
            assert_eq!(substitute(text, value), expected);
        };
        check("DOMAIN has no address", "www.example.com has no address");
        check("dig DOMAIN AAAA", "dig www.example.com AAAA");
        check("_acme-challenge.DOMAIN", "_acme-challenge.www.example.com");
        check(
            "SUBDOMAIN, DOMAIN_NAME, DOMAINs and NAME",
            "SUBDOMAIN, DOMAIN_NAME, DOMAINs and NAME",
        );
        check("A, (DOMAIN).", "x, (www.example.com).");
        // A word of several parts is not its last part.
        check("ANOTHER-DOMAIN A-", "ANOTHER-DOMAIN x-");
        check("DOMAIN-x", "www.example.com-x");
        check("é DOMAIN", "é www.example.com");
    }

    #[test]
    fn a_server_is_named_to_dig_without_its_port_and_the_port_by_itself() {
        for (server, expected) in [
            ("192.0.2.53:53", Some("192.0.2.53")),
            ("192.0.2.53:5353", Some("192.0.2.53 -p 5353")),
            ("[2001:db8::1]:53", Some("2001:db8::1")),
            ("ns.example.com:53", Some("ns.example.com")),
            ("ns.example.com", Some("ns.example.com")),
            ("https://192.0.2.53/dns-query", None),
        ] {
            assert_eq!(server_of_dig(server).as_deref(), expected);
        }
    }

    #[test]
    fn what_others_have_said_is_not_put_into_lines_to_copy() {
        let line = |finding: &Finding, text: &str| {
            substitute(text, |word, _| value_in_line(finding, word).map(Cow::from))
        };
        for said in ["a; rm -rf /", "$(id)", "-f", "a b", "`id`", ""] {
            assert_eq!(line(&finding(said), "dig DOMAIN"), "dig DOMAIN");
        }
        let mut known = finding("a.example");
        assert_eq!(line(&known, "dig DOMAIN; get ISSUER"), "dig a.example; get ISSUER");
        known.in_lines.insert("ISSUER", "issuer/acme".into());
        assert_eq!(line(&known, "get ISSUER"), "get issuer/acme");
    }
}
