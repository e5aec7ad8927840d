//! Findings in words: the catalogue's sentence and steps, with what was found in place of their words in capitals.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::app::invocation;
use crate::diagnosis::catalogue::{self, FixStep};
use crate::diagnosis::finding::Finding;

/// Most letters of what others have said.
const MOST_SAID: usize = 400;

/// What is wrong, in one sentence that names its subject.
pub fn sentence(finding: &Finding) -> String {
    let entry = catalogue::entry(finding.cause);
    let says = entry.says.as_ref().and_then(|says| said(says, &finding.facts));
    says.unwrap_or_else(|| {
        let detail = finding.facts.get("DETAIL").filter(|detail| !detail.is_empty());
        let detail = detail.map(|detail| format!(": {}", brief(detail))).unwrap_or_default();
        format!("{}: {}{detail}", finding.subject, entry.title)
    })
}

/// What others have said, as much of it as anybody reads.
pub fn brief(said: &str) -> Cow<'_, str> {
    match said.char_indices().nth(MOST_SAID) {
        Some((end, _)) => format!("{}…", &said[..end]).into(),
        None => said.into(),
    }
}

/// A sentence with values for its words in braces; nothing where one of them has none.
fn said(says: &str, facts: &BTreeMap<&'static str, String>) -> Option<String> {
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

/// What helps where the objects are, in this order; all of it where nothing is for that place alone.
pub fn steps(finding: &Finding, in_cluster: bool) -> Vec<FixStep> {
    let all = &catalogue::entry(finding.cause).fix;
    let fill = |text: &String, how| filled(text, &finding.facts, how);
    let filled = |step: &FixStep| FixStep {
        does: fill(&step.does, Use::Sentence),
        only: None,
        run: step.run.as_ref().map(|run| own_program(&fill(run, Use::Line))),
        write: step.write.as_ref().map(|write| fill(write, Use::Line)),
    };
    let helping: Vec<FixStep> =
        all.iter().filter(|step| step.helps(in_cluster)).map(filled).collect();
    if helping.is_empty() { all.iter().map(filled).collect() } else { helping }
}

/// Lines of this program as they have to be typed for the same state or cluster.
fn own_program(lines: &str) -> String {
    let own = |line: &str| match line.strip_prefix("kubectl acme ") {
        Some(words) if !words.ends_with('\\') => invocation::current().like_where_taken(words),
        _ => line.to_owned(),
    };
    lines.trim_end().lines().map(own).collect::<Vec<_>>().join("\n")
}

/// Where a text is going to stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Among words, for a person.
    Sentence,
    /// In a line that is copied to a shell or a manifest: what others have said stays out of it.
    Line,
}

/// A text with values for those of its words in capitals that have one.
fn filled(text: &str, facts: &BTreeMap<&'static str, String>, how: Use) -> String {
    let is_word = |c: char| c.is_ascii_uppercase();
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        whole.push_str(before);
        let end = from.find(|c: char| !is_word(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        let stands_alone =
            |c: Option<char>| c.is_none_or(|c| !(c.is_ascii_alphanumeric() || c == '_'));
        let is_alone = stands_alone(whole.chars().last()) && stands_alone(after.chars().next());
        let value = facts.get(word).filter(|_| is_alone && !word.is_empty());
        match value.filter(|value| how == Use::Sentence || is_plain(value)) {
            Some(value) => whole.push_str(value),
            None => whole.push_str(word),
        }
        rest = after;
    }
    whole + rest
}

/// Tells whether a value can stand in a command line as it is.
fn is_plain(value: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._/:@".contains(c);
    !value.is_empty() && !value.starts_with('-') && value.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str) -> BTreeMap<&'static str, String> {
        [("DOMAIN", name.to_owned()), ("A", "x".to_owned())].into()
    }

    #[test]
    fn words_in_capitals_stand_for_what_was_found() {
        let facts = facts("www.example.com");
        let check = |text: &str, expected: &str| {
            assert_eq!(filled(text, &facts, Use::Sentence), expected);
        };
        check("DOMAIN has no address", "www.example.com has no address");
        check("dig DOMAIN AAAA", "dig www.example.com AAAA");
        check("_acme-challenge.DOMAIN", "_acme-challenge.www.example.com");
        check(
            "SUBDOMAIN, DOMAIN_NAME, DOMAINs and NAME",
            "SUBDOMAIN, DOMAIN_NAME, DOMAINs and NAME",
        );
        check("A, (DOMAIN).", "x, (www.example.com).");
        check("é DOMAIN", "é www.example.com");
    }

    #[test]
    fn what_others_have_said_is_not_put_into_lines_to_copy() {
        for said in ["a; rm -rf /", "$(id)", "-f", "a b", "`id`", ""] {
            assert_eq!(filled("dig DOMAIN", &facts(said), Use::Line), "dig DOMAIN");
        }
        assert_eq!(filled("dig DOMAIN", &facts("a.example"), Use::Line), "dig a.example");
    }
}
