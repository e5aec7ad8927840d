//! Evidence of a diagnosis, and the exit code of the command.

use std::collections::BTreeMap;

use super::targets::NoCertificates;
use crate::context::{Context, OTHER_FOLDER_HINT, no_state_in};
use crate::diagnosis::case::control::UndefinedCase;
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::finding::Finding;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::reproduce::ProbeMeans;
use crate::lead;
use crate::model::Key;
use crate::model::order_report::InputPlace;
use crate::print::Printer;

/// Severity from which findings count as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Causes that keep a certificate from being issued
    Error,
    /// Errors, and findings that may become errors
    Warning,
}

/// Evidence that one diagnosis has read.
#[derive(Debug, Default)]
pub struct ObservedCase {
    /// Observations.
    pub case: Box<Case>,
    /// Reason why objects were left out, if any.
    pub absent: Option<String>,
    /// Place without any Certificate, if the user named no target.
    pub nothing: Option<NoCertificates>,
    /// Kinds that the cluster does not define.
    pub undefined: Vec<UndefinedCase>,
    /// Means of the probes, to write commands that repeat them.
    pub(crate) means: ProbeMeans,
    /// Positions of the given manifests in their files.
    pub places: BTreeMap<Key, InputPlace>,
}

impl ObservedCase {
    /// Stores the observations of a diagnosis.
    pub fn keep(&mut self, mut case: Case) {
        if !self.undefined.is_empty() {
            case.in_cluster = true;
            case.control.undefined = std::mem::take(&mut self.undefined);
        }
        *self.case = case;
    }
}

/// Prints that there is nothing to judge.
pub(crate) fn tell_nothing(printer: &Printer, nothing: &NoCertificates) {
    let (line, hint) = match nothing {
        NoCertificates::NoState(folder) => {
            (format!("nothing was judged: {}", no_state_in(folder)), OTHER_FOLDER_HINT)
        }
        NoCertificates::NoCertificate(Some(namespace)) => (
            format!("nothing was judged: there is no Certificate in namespace {namespace}"),
            "-n NAMESPACE selects another namespace, -A all of them",
        ),
        NoCertificates::NoCertificate(None) => (
            "nothing was judged: there is no Certificate in any namespace".to_owned(),
            "order -f creates the Certificates of a manifest",
        ),
        NoCertificates::NoneFits => (
            "nothing was judged: no Certificate has these labels".to_owned(),
            "kubectl get certificates --show-labels lists the labels",
        ),
    };
    printer.note(&line);
    printer.hint(hint);
}

/// Returns which controller drives; `Unknown` if that may not be read.
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

/// Returns the failure with which the command ends; `None` if all is well. With nothing to judge, that is not known.
pub fn verdict(seen: &ObservedCase, findings: &[Finding], fail_on: FailOn) -> Option<FailureKind> {
    if findings.iter().any(Finding::is_error) {
        return Some(FailureKind::CausesFound);
    }
    match seen.nothing {
        Some(NoCertificates::NoState(_)) => return Some(FailureKind::Usage),
        Some(NoCertificates::NoCertificate(_) | NoCertificates::NoneFits) => {
            return Some(FailureKind::WarningsFound);
        }
        None => {}
    }
    let counts = fail_on == FailOn::Warning && findings.iter().any(Finding::is_warning);
    counts.then_some(FailureKind::WarningsFound)
}
