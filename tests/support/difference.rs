//! Differences on purpose: data beside a test, each of which has to be there.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::story::{self, Finding, Story};

/// A fact on which we differ, and why; `*` stands for any text. Without anything it is about, words that we replace
/// wherever they stand.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// What it is about.
    pub about: &'static str,
    /// There.
    pub theirs: &'static str,
    /// Here.
    pub ours: &'static str,
    /// Why.
    pub why: &'static str,
}

impl Difference {
    fn fits(&self, found: &Finding) -> bool {
        fits(self.about, &found.about)
            && fits(self.theirs, &found.theirs)
            && fits(self.ours, &found.ours)
    }
}

/// Whether a text is as a pattern says, in which `*` stands for any text.
pub fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    rest.is_empty() || text.char_indices().any(|(at, _)| fits(rest, &text[at..]))
}

/// A Certificate that fails there and goes on here: then all that hangs on it is compared with that of another one, which
/// has gone well there.
#[derive(Clone, Copy, Debug)]
pub struct Instead {
    /// The recording, and the Certificate that fails in it.
    pub fails: (&'static str, &'static str),
    /// The one that goes well, and its recording.
    pub like: (&'static str, &'static str),
    /// Words of that story, and what to say in their place.
    pub words: &'static [(&'static str, &'static str)],
    /// Facts of that story, and what they are in its place.
    pub facts: &'static [(&'static str, &'static str)],
    /// Why.
    pub why: &'static str,
}

impl Instead {
    /// The story as it would be had that Certificate gone as the other one in `good`.
    pub fn retold(&self, theirs: &Story, good: &Story) -> Story {
        let said = |text: &String| match self.facts.iter().find(|(fact, _)| fact == text) {
            Some((_, here)) => (*here).to_owned(),
            None => self.words.iter().fold(text.clone(), |text, (from, to)| text.replace(from, to)),
        };
        let mut told = theirs.clone();
        told.retain(|about, _| !is_of(about, self.fails.1));
        let good = good.iter().filter(|(about, _)| is_of(about, self.like.1));
        told.extend(good.map(|(about, fact)| (said(about), said(fact))));
        told
    }
}

/// Whether a fact is about a Certificate or what is named after it.
fn is_of(about: &str, certificate: &str) -> bool {
    if about.strip_prefix("creation of ") == Some(certificate) {
        return true;
    }
    let object = about.strip_prefix("events of ").unwrap_or(about);
    let name = object.split([' ', ',']).nth(1).unwrap_or_default();
    name.strip_prefix(certificate).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// What a comparison of two stories came to.
#[derive(Debug)]
pub struct Verdict {
    /// How many objects and Events were compared.
    pub compared: usize,
    /// How many of them are the same in every fact.
    pub equal: usize,
    /// How many facts were compared.
    pub facts: usize,
    /// How many facts differ on purpose.
    pub on_purpose: usize,
    /// What nobody wanted: a difference that is not listed, a listed one that is not there.
    pub surprises: Vec<String>,
}

/// Compares two stories; the differences listed are fine, and have to be there.
pub fn compare(theirs: &Story, ours: &Story, listed: &[Difference]) -> Verdict {
    let (theirs, mut surprises) = reworded(theirs, listed);
    let found = story::differences(&theirs, ours);
    let (wanted, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|found| listed.iter().any(|d| d.fits(found)));
    surprises.extend(others.iter().map(|found| said(found)));
    for difference in listed.iter().filter(|d| !d.about.is_empty()) {
        if !found.iter().any(|found| difference.fits(found)) {
            surprises.push(format!("no difference any more: {difference:#?}"));
        }
    }
    let facts: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let objects: BTreeSet<&str> = facts.iter().map(|about| object_of(about)).collect();
    let unequal: BTreeSet<&str> = found.iter().map(|f| object_of(&f.about)).collect();
    Verdict {
        compared: objects.len(),
        equal: objects.len() - unequal.len(),
        facts: facts.len(),
        on_purpose: wanted.len(),
        surprises,
    }
}

fn said(found: &Finding) -> String {
    let mut text = format!("not the same: {}", found.about);
    write!(text, "\n  theirs: {}\n  ours:   {}", found.theirs, found.ours).ok();
    text
}

/// Their story in our words, and which words nobody says any more.
fn reworded(theirs: &Story, listed: &[Difference]) -> (Story, Vec<String>) {
    let (mut theirs, mut unsaid) = (theirs.clone(), Vec::new());
    for words in listed.iter().filter(|d| d.about.is_empty()) {
        let reword = |text: &String| text.replace(words.theirs, words.ours);
        let after: Story =
            theirs.iter().map(|(about, fact)| (reword(about), reword(fact))).collect();
        if after == theirs {
            unsaid.push(format!("nobody says {:?} any more ({})", words.theirs, words.why));
        }
        theirs = after;
    }
    (theirs, unsaid)
}

/// The object or Event that a fact is about.
fn object_of(about: &str) -> &str {
    let about = about.trim_end_matches(", reported by");
    match about.split_once(", ") {
        Some((_, event)) if event.starts_with("event ") => about,
        Some((object, _)) => object,
        None => about,
    }
}
