//! Findings as data: a cause of the catalogue, its subject, the certainty, and the evidence.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::case::Case;
use super::case::dns::{self, VantageReply};
use super::catalogue::id::{CauseFamily, CauseId};
use super::catalogue::{self, CauseSeverity};
use crate::model::ObjectName;
use crate::model::observation::{Observation, Vantage};

/// Certainty of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// The observations allow no other cause.
    Certain,
    /// Another cause is possible, but rare.
    Likely,
    /// One of several possible causes.
    Possible,
}

impl Grade {
    /// Returns the word for the grade.
    pub fn word(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
        }
    }
}

/// One unchanged observation: the question, the vantage, the time, and the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Question or source: a field of an object, a URL, a question to a name server.
    pub asked: String,
    /// Vantage of the observation; absent for data of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vantage: Option<Vantage>,
    /// Time of the observation.
    pub at: Timestamp,
    /// Answer.
    pub came: String,
}

/// Cause that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Id of the cause.
    pub cause: CauseId,
    /// Certainty of the finding.
    pub grade: Grade,
    /// Subject of the finding: an object, or a name.
    pub subject: String,
    /// Names and values for the words in braces of the catalogue's sentence, and for the words in capitals of its steps.
    pub facts: BTreeMap<&'static str, String>,
    /// Values for lines to copy only, if the sentence has no value that is fit for a command line.
    pub in_lines: BTreeMap<&'static str, String>,
    /// Observations that show the cause; never empty.
    pub evidence: Vec<Evidence>,
    /// Causes that this finding explains.
    pub explains: Vec<CauseId>,
    /// Severity, if it differs from the severity in the catalogue.
    pub own_severity: Option<CauseSeverity>,
    /// Whether a failure was observed, from this cause or from another one.
    pub is_failing: bool,
}

impl Finding {
    /// Makes a finding that rests on one observation.
    pub fn new(cause: CauseId, grade: Grade, subject: impl Into<String>, shown: Evidence) -> Self {
        Self {
            cause,
            grade,
            subject: subject.into(),
            facts: BTreeMap::new(),
            in_lines: BTreeMap::new(),
            evidence: vec![shown],
            explains: Vec::new(),
            own_severity: None,
            is_failing: false,
        }
    }

    /// Adds a value for a word of the catalogue.
    #[must_use]
    pub fn with(mut self, word: &'static str, value: impl Into<String>) -> Self {
        self.facts.insert(word, value.into());
        self
    }

    /// Adds observations.
    #[must_use]
    pub fn shown_by(mut self, more: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(more);
        self
    }

    /// Sets a severity that differs from the severity in the catalogue.
    #[must_use]
    pub fn meaning(self, severity: CauseSeverity) -> Self {
        Self { own_severity: Some(severity), ..self }
    }

    /// Sets whether a failure was observed; the cause alone may be another one.
    #[must_use]
    pub fn failing(self, is_failing: bool) -> Self {
        Self { is_failing, ..self }
    }

    /// Returns the severity; only a warning if no failure was observed and the cause is one of several.
    pub fn severity(&self) -> CauseSeverity {
        let is_guess = self.grade == Grade::Possible && !self.is_failing;
        match self.own_severity.unwrap_or_else(|| catalogue::entry(self.cause).severity) {
            CauseSeverity::Fatal | CauseSeverity::Error if is_guess => CauseSeverity::Warning,
            severity => severity,
        }
    }

    /// Reports whether a person has to act.
    pub fn is_error(&self) -> bool {
        matches!(self.severity(), CauseSeverity::Fatal | CauseSeverity::Error)
    }

    /// Reports whether the finding counts if warnings count.
    pub fn is_warning(&self) -> bool {
        !self.is_error() && self.severity() != CauseSeverity::Info
    }
}

/// Reports whether a cause only follows from other causes: a state in which they leave a Certificate or an issuer.
pub fn is_consequence(cause: CauseId) -> bool {
    matches!(cause, CauseId::Cfg02 | CauseId::Ord02 | CauseId::Ord04)
}

/// Reports whether a cause can leave an issuer, or an order, in a state.
fn leads_to(cause: CauseId, state: CauseId) -> bool {
    use CauseFamily as Family;
    let family = cause.family();
    match state {
        CauseId::Cfg02 => {
            matches!(family, Family::Acc | Family::Env | Family::Lim)
                // cert-manager looks for the Secrets of solvers when it sets an issuer up.
                || matches!(cause, CauseId::Cfg03 | CauseId::Cfg19 | CauseId::Prv01)
        }
        _ if cause == CauseId::Ord15 => true,
        _ => matches!(
            family,
            Family::Acc
                | Family::Lim
                | Family::Cfg
                | Family::Caa
                | Family::Http
                | Family::Tls
                | Family::D01
                | Family::Dns
                | Family::Prv
                | Family::Env
        ),
    }
}

/// Function from a subject to the Certificates that the subject concerns.
pub type Concerns<'a> = dyn Fn(&str) -> BTreeSet<ObjectName> + 'a;

/// Returns the subject if it is a name, a wildcard as its base; `None` if it is an object, whose kind precedes its name.
fn name(subject: &str) -> Option<&str> {
    (!subject.contains(' ')).then(|| subject.strip_prefix("*.").unwrap_or(subject))
}

/// Merges findings of one cause and subject, and sorts them; findings that a cause explains go below that root cause.
/// `concerns` returns the Certificates of a subject: a cause explains only findings about its own Certificates.
pub fn fold(found: Vec<Finding>, concerns: &Concerns<'_>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    for finding in found {
        let same =
            |known: &&mut Finding| known.cause == finding.cause && known.subject == finding.subject;
        match kept.iter_mut().find(same) {
            Some(known) => {
                if finding.is_error() && !known.is_error() {
                    known.own_severity = finding.own_severity;
                }
                known.grade = known.grade.min(finding.grade);
                known.is_failing |= finding.is_failing;
                let is_new = |one: &Evidence| {
                    !known.evidence.iter().any(|k| k.asked == one.asked && k.vantage == one.vantage)
                };
                let more: Vec<Evidence> = finding.evidence.into_iter().filter(is_new).collect();
                known.evidence.extend(more);
            }
            None => kept.push(finding),
        }
    }
    let scopes: Vec<BTreeSet<ObjectName>> = kept.iter().map(|f| concerns(&f.subject)).collect();
    let explains = |root: usize, other: usize| {
        let (cause, effect) = (&kept[root], &kept[other]);
        // A fault of one name says nothing of another name in the same Certificate.
        let are_two_names = match (name(&cause.subject), name(&effect.subject)) {
            (Some(one), Some(other)) => !one.eq_ignore_ascii_case(other),
            _ => false,
        };
        let is_in_scope = cause.subject == effect.subject
            || (!are_two_names
                && !scopes[other].is_empty()
                && scopes[other].is_subset(&scopes[root]));
        root != other && is_in_scope && cause.may_explain(effect)
    };
    let all = 0..kept.len();
    let below: Vec<Vec<CauseId>> = all
        .clone()
        .map(|root| {
            let mut below: Vec<CauseId> =
                all.clone().filter(|other| explains(root, *other)).map(|o| kept[o].cause).collect();
            below.retain(|cause| *cause != kept[root].cause);
            below.sort_unstable();
            below.dedup();
            below
        })
        .collect();
    // A root fails if a finding that it explains fails.
    let fails: Vec<bool> = all
        .clone()
        .map(|root| {
            kept[root].is_failing
                || all.clone().any(|other| kept[other].is_failing && explains(root, other))
        })
        .collect();
    let is_root: Vec<bool> =
        all.clone().map(|other| !all.clone().any(|root| explains(root, other))).collect();
    // A cause of an error keeps a certificate from being issued, except a cause that cannot be mended here, and a cause
    // beside another root that is an error.
    let has_error = |of: usize| {
        let is_beside = |other: usize| {
            kept[other].subject == kept[of].subject || !scopes[other].is_disjoint(&scopes[of])
        };
        all.clone().any(|other| is_root[other] && kept[other].is_error() && is_beside(other))
    };
    let leads_to_error: Vec<bool> = all
        .clone()
        .map(|root| {
            let is_cause = all.clone().any(|other| kept[other].is_error() && explains(root, other));
            is_cause && !has_error(root)
        })
        .collect();
    let mut roots: Vec<Finding> = kept
        .into_iter()
        .zip(below)
        .zip(fails)
        .zip(leads_to_error)
        .zip(is_root)
        .filter(|(_, is_root)| *is_root)
        .map(|((((finding, explains), is_failing), leads_to_error), _)| {
            let is_raised = leads_to_error && finding.is_warning() && !finding.is_away();
            let own_severity =
                if is_raised { Some(CauseSeverity::Error) } else { finding.own_severity };
            Finding { explains, own_severity, is_failing, ..finding }
        })
        .collect();
    let rank = |finding: &Finding| match (finding.severity(), finding.is_error()) {
        (CauseSeverity::Fatal, true) => 0,
        // A failure that is tried again later comes behind all of its possible causes.
        _ if finding.cause == CauseId::Ord02 => 3,
        (_, true) => 1,
        _ if finding.is_warning() => 2,
        // The finding that all is well comes last.
        _ if finding.cause == CauseId::Ord01 => 5,
        _ => 4,
    };
    // A mere consequence comes behind its possible causes.
    roots.sort_by_key(|finding| (rank(finding), finding.grade, is_consequence(finding.cause)));
    roots
}

/// Reports whether a cause keeps an order from being made, so that the CA never looks for an answer.
fn comes_before_answers(cause: CauseId) -> bool {
    use CauseFamily as Family;
    matches!(cause.family(), Family::Acc | Family::Lim | Family::Cfg | Family::Env)
}

impl Finding {
    /// Reports whether a CA or a provider is away or busy: no error on this side, and possibly the only fault.
    fn is_away(&self) -> bool {
        matches!(self.cause, CauseId::Lim07 | CauseId::Lim08 | CauseId::Prv12)
    }

    /// Reports whether another finding may be a consequence of this finding: by the catalogue, as the same cause on an
    /// object further down, or as a state that any cause leads to.
    fn may_explain(&self, other: &Self) -> bool {
        // An observed failure is no guess, and a state follows from the failure.
        let is_proof = self.is_failing && is_consequence(other.cause);
        if self.grade == Grade::Possible && other.grade != Grade::Possible && !is_proof {
            return false;
        }
        // A machine without IPv6 has not seen what the CA sees over IPv6.
        if self.cause == CauseId::Http06 && self.grade == Grade::Possible {
            return false;
        }
        let is_named = catalogue::entry(self.cause).explains.contains(&other.cause);
        if other.cause == CauseId::Ord02 && is_named && self.is_error() {
            return true;
        }
        let is_away = self.is_away() && self.grade == Grade::Certain;
        if is_consequence(other.cause) {
            return !is_consequence(self.cause)
                && (self.is_error() || is_away)
                && leads_to(self.cause, other.cause);
        }
        // Whether this machine could answer does not matter before there is an order.
        if other.cause == CauseId::Http34 && comes_before_answers(self.cause) {
            return self.is_error() || is_away;
        }
        // The cause that has used up a limit does not say until when the limit lasts.
        if other.cause.family() == CauseFamily::Lim && self.cause != other.cause {
            return false;
        }
        let same_elsewhere = self.cause == other.cause && self.subject != other.subject;
        let is_above =
            self.subject.starts_with("Issuer ") || self.subject.starts_with("ClusterIssuer ");
        (same_elsewhere && is_above) || (self.cause != other.cause && is_named)
    }
}

/// Builds evidence from an observation of a probe.
pub fn evidence_of_probe(observation: &Observation, came: impl Into<String>) -> Evidence {
    Evidence {
        asked: observation.url.clone(),
        vantage: Some(observation.vantage.clone()),
        at: observation.at,
        came: came.into(),
    }
}

/// Builds evidence from data of the store.
pub fn stored(asked: impl Into<String>, at: Timestamp, came: impl Into<String>) -> Evidence {
    Evidence { asked: asked.into(), vantage: None, at, came: came.into() }
}

/// Builds evidence from an answer to this machine.
pub fn evidence_of_answer(
    asked: impl Into<String>,
    at: Timestamp,
    came: impl Into<String>,
) -> Evidence {
    let vantage = Some(Vantage::ThisMachine);
    Evidence { asked: asked.into(), vantage, at, came: came.into() }
}

/// Builds evidence from a name server's reply.
pub fn evidence_of_dns_reply(reply: &VantageReply) -> Evidence {
    let (name, server) = (reply.name.trim_end_matches('.'), reply.from.server());
    let without = if reply.is_unvalidated { " without validation" } else { "" };
    evidence_of_answer(
        format!("{} of {name} at {server}{without}", reply.kind),
        reply.at,
        dns::words(&reply.heard),
    )
}

/// Rule: a function that reads the observations, and adds the findings that they show.
pub(super) type FaultRule = fn(&Case, &mut Vec<Finding>);
