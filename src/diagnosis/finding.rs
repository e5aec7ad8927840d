//! What is wrong, as data: a cause of the catalogue, whom it concerns, how sure that is, and what shows it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::catalogue::id::{CauseFamily, CauseId};
use super::catalogue::{self, CauseSeverity};
use super::dns_case::{self, VantageReply};
use crate::model::ObjectName;
use crate::model::observation::{Observation, Vantage};

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// What was observed can mean nothing else.
    Certain,
    /// Something else is possible, and rare.
    Likely,
    /// One of several.
    Possible,
}

impl Grade {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
        }
    }
}

/// One observation as it came: what was asked, from where, when, and the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was asked or read: a field of an object, a URL, a question to a name server.
    pub asked: String,
    /// From where it was looked; absent of what stands in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vantage: Option<Vantage>,
    /// When.
    pub at: Timestamp,
    /// What came.
    pub came: String,
}

/// One cause, found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which.
    pub cause: CauseId,
    /// How sure that is.
    pub grade: Grade,
    /// Whom it concerns: an object, or a name.
    pub subject: String,
    /// Names and values for the words in braces of the catalogue's sentence, and in capitals of its steps.
    pub facts: BTreeMap<&'static str, String>,
    /// The same for lines to copy, where the sentence has no value that can stand in one.
    pub in_lines: BTreeMap<&'static str, String>,
    /// What shows it; never empty.
    pub evidence: Vec<Evidence>,
    /// Findings that are explained by this one.
    pub explains: Vec<CauseId>,
    /// What it means for the certificate, where that is not what the catalogue says.
    pub own_severity: Option<CauseSeverity>,
    /// Whether what was observed fails, for this cause or for another one.
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

    /// Adds an observation.
    #[must_use]
    pub fn shown_by(mut self, more: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(more);
        self
    }

    /// The same where it means something else for the certificate than it mostly does.
    #[must_use]
    pub fn meaning(self, severity: CauseSeverity) -> Self {
        Self { own_severity: Some(severity), ..self }
    }

    /// The same where what was observed fails, and the cause alone may be another one.
    #[must_use]
    pub fn failing(self, is_failing: bool) -> Self {
        Self { is_failing, ..self }
    }

    /// What it means for the certificate; a warning where nothing was seen failing and the cause is one of several.
    pub fn severity(&self) -> CauseSeverity {
        let is_guess = self.grade == Grade::Possible && !self.is_failing;
        match self.own_severity.unwrap_or_else(|| catalogue::entry(self.cause).severity) {
            CauseSeverity::Fatal | CauseSeverity::Error if is_guess => CauseSeverity::Warning,
            severity => severity,
        }
    }

    /// Tells whether somebody has to act.
    pub fn is_error(&self) -> bool {
        matches!(self.severity(), CauseSeverity::Fatal | CauseSeverity::Error)
    }

    /// Tells whether it counts where warnings do.
    pub fn is_warning(&self) -> bool {
        !self.is_error() && self.severity() != CauseSeverity::Info
    }
}

/// What follows from other causes, whatever these are: the state in which they leave a Certificate or an issuer.
pub fn is_consequence(cause: CauseId) -> bool {
    matches!(cause, CauseId::Cfg02 | CauseId::Ord02 | CauseId::Ord04)
}

/// Tells whether a cause can leave an issuer, or an order, in that state.
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

/// Which Certificates a subject concerns.
pub type Concerns<'a> = dyn Fn(&str) -> BTreeSet<ObjectName> + 'a;

/// The name that a subject is, a wildcard as its base; `None` if the subject is an object, which has its kind before its name.
fn name(subject: &str) -> Option<&str> {
    (!subject.contains(' ')).then(|| subject.strip_prefix("*.").unwrap_or(subject))
}

/// Puts findings in order, each cause once for each subject, and what a cause explains below it: one finding for each root.
/// `concerns` tells which Certificates a subject is about: a cause explains what happens to these.
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
        // What is wrong with one name says nothing of another one in the same Certificate.
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
    // That it fails is as true of what explains it.
    let fails: Vec<bool> = all
        .clone()
        .map(|root| {
            kept[root].is_failing
                || all.clone().any(|other| kept[other].is_failing && explains(root, other))
        })
        .collect();
    let is_root: Vec<bool> =
        all.clone().map(|other| !all.clone().any(|root| explains(root, other))).collect();
    // Whatever has an error as its consequence keeps a certificate from being issued, save what nobody here can mend and what stands
    // beside an error of its own.
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
        // That something has failed, and is tried again later, is said behind all that may be why.
        _ if finding.cause == CauseId::Ord02 => 3,
        (_, true) => 1,
        _ if finding.is_warning() => 2,
        // That all is well is said last.
        _ if finding.cause == CauseId::Ord01 => 5,
        _ => 4,
    };
    // What only follows from something comes behind what it may follow from.
    roots.sort_by_key(|finding| (rank(finding), finding.grade, is_consequence(finding.cause)));
    roots
}

/// Tells whether a cause keeps an order from being made, so that nobody looks for an answer.
fn comes_before_answers(cause: CauseId) -> bool {
    use CauseFamily as Family;
    matches!(cause.family(), Family::Acc | Family::Lim | Family::Cfg | Family::Env)
}

impl Finding {
    /// Tells whether a CA or a provider is away or busy, which is nobody's error here and may be all that is wrong.
    fn is_away(&self) -> bool {
        matches!(self.cause, CauseId::Lim07 | CauseId::Lim08 | CauseId::Prv12)
    }

    /// Tells whether another finding may be a consequence of this one: the catalogue says so, it is the same cause told of an object
    /// further down, or it is a state that anything leads to.
    fn may_explain(&self, other: &Self) -> bool {
        // That it has failed is no guess, and a state follows from that.
        let is_proof = self.is_failing && is_consequence(other.cause);
        if self.grade == Grade::Possible && other.grade != Grade::Possible && !is_proof {
            return false;
        }
        // A machine without IPv6 has not seen what the CA sees there.
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
        // Until when a limit lasts is not said by what has used it up.
        if other.cause.family() == CauseFamily::Lim && self.cause != other.cause {
            return false;
        }
        let same_elsewhere = self.cause == other.cause && self.subject != other.subject;
        let is_above =
            self.subject.starts_with("Issuer ") || self.subject.starts_with("ClusterIssuer ");
        (same_elsewhere && is_above) || (self.cause != other.cause && is_named)
    }
}

/// What an observation of a probe shows.
pub fn seen(observation: &Observation, came: impl Into<String>) -> Evidence {
    Evidence {
        asked: observation.url.clone(),
        vantage: Some(observation.vantage.clone()),
        at: observation.at,
        came: came.into(),
    }
}

/// What stands in the store.
pub fn stored(asked: impl Into<String>, at: Timestamp, came: impl Into<String>) -> Evidence {
    Evidence { asked: asked.into(), vantage: None, at, came: came.into() }
}

/// What this machine was told.
pub fn told(asked: impl Into<String>, at: Timestamp, came: impl Into<String>) -> Evidence {
    let vantage = Some(Vantage::ThisMachine);
    Evidence { asked: asked.into(), vantage, at, came: came.into() }
}

/// What a name server said.
pub fn heard(reply: &VantageReply) -> Evidence {
    let (name, server) = (reply.name.trim_end_matches('.'), reply.from.server());
    let without = if reply.is_unvalidated { " without validation" } else { "" };
    told(
        format!("{} of {name} at {server}{without}", reply.kind),
        reply.at,
        dns_case::words(&reply.heard),
    )
}
