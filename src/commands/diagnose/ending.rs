//! The end of `diagnose`: the output and the files.

use std::path::Path;

use super::reproduced::ReproducingCommands;
use super::{bundle, report};
use crate::context::failure::Failure;
use crate::context::{Context, output_files};
use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::finding::Finding;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::evidence::verdict::{ObservedCase, tell_nothing};
use crate::lead;
use crate::model::common::is_true;
use crate::print::Printer;
use crate::print::age::age;

/// Parts of the output beside the findings.
#[derive(Clone, Copy, Debug)]
pub struct OutputParts<'a> {
    /// File to write the observations to.
    pub bundle: Option<&'a Path>,
    /// Whether command lines that reproduce the observations are shown.
    pub has_commands: bool,
    /// Whether manifests are diagnosed before they are applied.
    pub is_foreseen: bool,
}

/// Writes the findings in every requested form.
///
/// # Errors
/// Fails when something cannot be written, and on a signal.
pub async fn tell(
    seen: &ObservedCase,
    (findings, kind): (&[Finding], Option<FailureKind>),
    parts: OutputParts<'_>,
    (printer, context): (&mut Printer, &Context),
) -> Result<(), Failure> {
    let case = &seen.case;
    if let Some(path) = parts.bundle {
        output_files::write_text(path, &bundle::text(case)?, context.interrupted()).await?;
    }
    let exit_code = kind.map_or(0, FailureKind::exit_code);
    let reproduced = ReproducingCommands::new(case, &seen.means);
    let reproduced = parts.has_commands.then_some(&reproduced);
    let reports = context.reports();
    reports.keep_causes(report::found_causes(case, findings, &seen.places));
    // People get one line if there are no findings; a CI report on standard output replaces the page.
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
        printer.note(&format!("objects were not checked: {why}"));
    }
    match &seen.nothing {
        Some(nothing) => tell_nothing(printer, nothing),
        None => conclude(printer, case, findings, parts.is_foreseen),
    }
    Ok(())
}

/// Prints the number of findings, and that no controller works on due Certificates, unless they are not applied yet.
fn conclude(printer: &Printer, case: &Case, findings: &[Finding], is_foreseen: bool) {
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    let warnings = findings.iter().filter(|finding| finding.is_warning()).count();
    let is_nothing =
        case.certificates.is_empty() && case.issuers.is_empty() && case.names.is_empty();
    let line = match (is_nothing, errors, warnings) {
        (true, 0, 0) if is_foreseen => {
            "there is neither a Certificate nor an issuer in these manifests: nothing was checked"
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
    if let Some(line) = issuing_line(case).filter(|_| errors == 0 && !is_foreseen) {
        printer.note(&line);
    }
    let is_due = case.certificates.iter().any(|of| of.due.is_some());
    if case.driver == DriverCase::Nobody && is_due && !is_foreseen {
        printer.note(lead::NO_CONTROLLER);
    }
}

/// Line with the age of the issuances under way; `None` if no Certificate is being issued, or no controller is running.
fn issuing_line(case: &Case) -> Option<String> {
    let is_issuing = |of: &&CertificateCase| is_true(&of.certificate.status.conditions, "Issuing");
    let issuing = case.certificates.iter().filter(is_issuing);
    let mut all: Vec<_> = issuing.filter_map(|of| Some((of.begun_at()?, of))).collect();
    all.sort_by_key(|(since, _)| *since);
    let (since, first) = all.first().filter(|_| case.driver != DriverCase::Nobody)?;
    let since = age(Some(*since), case.at);
    Some(match all.len() {
        1 => format!("Certificate {} has been under way for {since}", first.certificate.name()),
        count => format!("{count} Certificates are under way, the first for {since}"),
    })
}
