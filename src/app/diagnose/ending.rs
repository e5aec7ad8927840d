//! How `diagnose` ends: who drives, what counts as a failure, and how it is told.

use std::collections::BTreeMap;
use std::path::Path;

use super::commands::Reproduced;
use super::targets::NothingThere;
use super::{bundle, report};
use crate::app::context::{Context, OTHER_FOLDER, no_state_in};
use crate::app::failure::Failure;
use crate::app::follow::results;
use crate::app::hints::reproduce::Instruments;
use crate::app::lead;
use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::control_case::UndefinedCase;
use crate::diagnosis::failure_kind::FailureKind;
use crate::diagnosis::finding::Finding;
use crate::model::Key;
use crate::model::common::is_true;
use crate::model::order_report::InputPlace;
use crate::print::Printer;
use crate::print::age::age;

/// What counts as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Causes that keep a certificate from being issued
    Error,
    /// Those, and what may become one
    Warning,
}

/// What one look has shown.
#[derive(Debug, Default)]
pub struct SeenCase {
    /// What was observed.
    pub case: Box<Case>,
    /// Why objects were left out, where they were.
    pub absent: Option<String>,
    /// Where no Certificate is, where nothing was named.
    pub nothing: Option<NothingThere>,
    /// Kinds that the cluster does not know.
    pub undefined: Vec<UndefinedCase>,
    /// With what it was looked.
    pub(crate) means: Instruments,
    /// Where manifests begin, of those that were given.
    pub places: BTreeMap<Key, InputPlace>,
}

impl SeenCase {
    /// Takes in what a look has shown.
    pub fn keep(&mut self, mut case: Case) {
        if !self.undefined.is_empty() {
            case.in_cluster = true;
            case.control.undefined = std::mem::take(&mut self.undefined);
        }
        *self.case = case;
    }
}

/// What is told beside the findings.
#[derive(Clone, Copy, Debug)]
pub struct ToldParts<'a> {
    /// Where what was observed is written.
    pub bundle: Option<&'a Path>,
    /// Whether the lines are shown that show the same.
    pub has_commands: bool,
    /// Whether it is about manifests that nobody has applied.
    pub is_foreseen: bool,
}

/// Writes what was found, in every form that is asked for.
///
/// # Errors
/// Fails when something cannot be written, or a signal came.
pub async fn tell(
    seen: &SeenCase,
    (findings, kind): (&[Finding], Option<FailureKind>),
    parts: ToldParts<'_>,
    (printer, context): (&mut Printer, &Context),
) -> Result<(), Failure> {
    let case = &seen.case;
    if let Some(path) = parts.bundle {
        results::write_text(path, &bundle::text(case)?, context.interrupted()).await?;
    }
    let exit_code = kind.map_or(0, FailureKind::exit_code);
    let reproduced = Reproduced::new(case, &seen.means);
    let reproduced = parts.has_commands.then_some(&reproduced);
    let reports = context.reports();
    reports.keep_causes(report::found_causes(case, findings, &seen.places));
    // Nothing is a line of its own for people, and a report takes the place of the page.
    let is_bare = findings.is_empty() && printer.format().is_for_people();
    if !is_bare && !reports.take_stdout() {
        let width = printer.width();
        let document = report::document(case, findings, reproduced, exit_code);
        printer.report(&document, |colour| {
            report::page(findings, (case.in_cluster, reproduced), width, colour)
                + &report::views(case, findings, width, colour)
        })?;
    }
    if let Some(why) = &seen.absent {
        printer.note(&format!("objects were not looked at: {why}"));
    }
    match &seen.nothing {
        Some(nothing) => tell_nothing(printer, nothing),
        None => conclude(printer, case, findings, parts.is_foreseen),
    }
    Ok(())
}

/// Says that there is nothing to judge.
pub(crate) fn tell_nothing(printer: &Printer, nothing: &NothingThere) {
    let (line, hint) = match nothing {
        NothingThere::NoState(folder) => {
            (format!("nothing was judged: {}", no_state_in(folder)), OTHER_FOLDER)
        }
        NothingThere::NoCertificate(Some(namespace)) => (
            format!("nothing was judged: there is no Certificate in namespace {namespace}"),
            "-n NAMESPACE looks at another one, -A at all of them",
        ),
        NothingThere::NoCertificate(None) => (
            "nothing was judged: there is no Certificate in any namespace".to_owned(),
            "order -f makes those of a manifest",
        ),
        NothingThere::NoneFits => (
            "nothing was judged: no Certificate has these labels".to_owned(),
            "kubectl get certificates --show-labels shows those that there are",
        ),
    };
    printer.note(&line);
    printer.hint(hint);
}

/// Who drives; whoever may not see that is told nothing of it.
pub(super) async fn driver(context: &Context) -> DriverCase {
    match lead::is_driven(context).await {
        Ok(false) => DriverCase::Nobody,
        Ok(true) => match lead::foreseen(context).await {
            Ok(claim) if claim.is_cert_manager() => DriverCase::CertManager,
            Ok(_) => DriverCase::KubectlAcme,
            Err(_) => DriverCase::Unknown,
        },
        Err(_) => DriverCase::Unknown,
    }
}

/// With what the command ends; `None` if all is well. Where there was nothing to judge, nobody knows that.
pub fn verdict(seen: &SeenCase, findings: &[Finding], fail_on: FailOn) -> Option<FailureKind> {
    if findings.iter().any(Finding::is_error) {
        return Some(FailureKind::CausesFound);
    }
    match seen.nothing {
        Some(NothingThere::NoState(_)) => return Some(FailureKind::Usage),
        Some(NothingThere::NoCertificate(_) | NothingThere::NoneFits) => {
            return Some(FailureKind::WarningsFound);
        }
        None => {}
    }
    let counts = fail_on == FailOn::Warning && findings.iter().any(Finding::is_warning);
    counts.then_some(FailureKind::WarningsFound)
}

/// Says how much was found; and that nobody works on what is due, unless it is not there yet.
fn conclude(printer: &Printer, case: &Case, findings: &[Finding], is_foreseen: bool) {
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    let warnings = findings.iter().filter(|finding| finding.is_warning()).count();
    let is_nothing =
        case.certificates.is_empty() && case.issuers.is_empty() && case.names.is_empty();
    let line = match (is_nothing, errors, warnings) {
        (true, 0, 0) if is_foreseen => {
            "there is neither a Certificate nor an issuer in these manifests: nothing was looked at"
                .to_owned()
        }
        (true, 0, 0) => "every Certificate is ready".to_owned(),
        (_, 0, 0) => "nothing is wrong, as far as can be seen from here".to_owned(),
        (_, errors, warnings) => {
            let count = |count: usize, word: &str| match count {
                1 => format!("1 {word}"),
                _ => format!("{count} {word}s"),
            };
            format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
        }
    };
    printer.note(&line);
    if let Some(line) = under_way(case).filter(|_| errors == 0 && !is_foreseen) {
        printer.note(&line);
    }
    let is_due = case.certificates.iter().any(|of| of.due.is_some());
    if case.driver == DriverCase::Nobody && is_due && !is_foreseen {
        printer.note(lead::NOBODY_DRIVES);
    }
}

/// Since when Certificates are being issued, where somebody does; `None` if there is none.
fn under_way(case: &Case) -> Option<String> {
    let is_issuing = |of: &&CertificateCase| is_true(&of.certificate.status.conditions, "Issuing");
    let issuing = case.certificates.iter().filter(is_issuing);
    let mut all: Vec<_> = issuing.filter_map(|of| Some((of.begun_at()?, of))).collect();
    all.sort_by_key(|(since, _)| *since);
    let (since, first) = all.first().filter(|_| case.driver != DriverCase::Nobody)?;
    let since = age(Some(*since), case.at);
    Some(match all.len() {
        1 => format!("Certificate {} is under way since {since}", first.certificate.name()),
        count => format!("{count} Certificates are under way, the first since {since}"),
    })
}
