//! `diagnose --watch`: progress between two rounds of checks, findings that are gone since the last round, and the end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, interval, sleep_until};

use crate::context::Context;
use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::catalogue;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Finding;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::{Kind, ObjectName};
use crate::print::progress::Progress;
use crate::print::wait::{Wait, WaitEnd};

/// Pause between two rounds of checks.
const ROUND_PAUSE: Duration = Duration::from_secs(5);
/// Interval at which a terminal's rows are drawn anew.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// Results of earlier rounds.
pub struct WatchedRounds {
    progress: Progress,
    began: Timestamp,
    /// Errors and warnings of the last round.
    wrong: BTreeSet<(CauseId, String)>,
    /// Certificates that were being issued in the last round, each with its name in rows.
    open: BTreeMap<ObjectName, String>,
}

impl WatchedRounds {
    /// Starts without results.
    pub fn new(context: &Context) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self {
            progress: Progress::new(context.talk(), is_terminal, context.talk_colour()),
            began: context.now(),
            wrong: BTreeSet::new(),
            open: BTreeMap::new(),
        }
    }

    /// Takes in a round: prints which findings are gone and which Certificates are ready, and shows the waits of the others.
    pub fn keep(&mut self, case: &Case, findings: &[Finding], now: Timestamp) {
        let told = findings.iter().filter(|it| it.is_error() || it.is_warning());
        let wrong: BTreeSet<_> = told.map(|it| (it.cause, it.subject.clone())).collect();
        for (cause, subject) in self.wrong.difference(&wrong) {
            self.progress.line(&format!("{cause} is gone: {subject}"), now);
        }
        self.wrong = wrong;
        let is_open = |of: &&CertificateCase| of.is_open();
        let open: BTreeMap<ObjectName, String> = case
            .certificates
            .iter()
            .filter(is_open)
            .map(|of| (of.certificate.name(), of.certificate.name().to_string()))
            .collect();
        for (name, label) in self.open.iter().filter(|(name, _)| !open.contains_key(name)) {
            let is_there = case.certificates.iter().any(|of| of.certificate.name() == *name);
            let end = WaitEnd {
                kind: Kind::Certificate,
                object: Some(name),
                label,
                // A Certificate that is no longer among the unready ones is either ready or deleted.
                state: if is_there { "ready" } else { "ready, or deleted" },
                why: "",
                is_good: true,
            };
            self.progress.done(label, &end, now);
        }
        self.open = open;
        let first = findings.iter().find(|it| it.is_error());
        let waits_for = match first {
            Some(first) => format!("{}: {}", first.cause, catalogue::entry(first.cause).title),
            None => "the next step".to_owned(),
        };
        for of in case.certificates.iter().filter(is_open) {
            let name = of.certificate.name();
            let label = name.to_string();
            let since = of.begun_at().unwrap_or(self.began);
            let wait = Wait {
                kind: Kind::Certificate,
                object: Some(name),
                label: label.clone(),
                state: "issuing".to_owned(),
                waits_for: waits_for.clone(),
                in_short: waits_for.clone(),
                is_obstacle: false,
                since,
                until: None,
            };
            self.progress.waiting(&label, wait, now);
        }
    }

    /// Returns whether to go on after a round without errors: a Certificate is being issued, and a controller is running.
    pub fn goes_on(&self, case: &Case) -> bool {
        !self.open.is_empty() && case.driver != DriverCase::Nobody
    }

    /// Waits until the next round is due; returns the signal if one came meanwhile.
    pub async fn pause(&mut self, context: &Context) -> Option<FailureKind> {
        let next = Instant::now() + ROUND_PAUSE;
        let mut beat = interval(REDRAW_INTERVAL);
        loop {
            tokio::select! {
                () = sleep_until(next) => return None,
                kind = context.interrupted().wait() => return Some(kind),
                _ = beat.tick() => self.progress.heartbeat(context.now()),
            }
        }
    }

    /// Removes the progress rows from the screen.
    pub fn finish(&mut self) {
        self.progress.finish();
    }
}
