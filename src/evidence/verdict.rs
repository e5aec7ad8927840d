//! What a diagnosis has observed, and with what exit code the command ends.

use std::collections::BTreeMap;

use super::targets::NothingThere;
use crate::context::{Context, OTHER_FOLDER, no_state_in};
use crate::diagnosis::case::control::UndefinedCase;
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::finding::Finding;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::reproduce::Instruments;
use crate::lead;
use crate::model::Key;
use crate::model::order_report::InputPlace;
use crate::print::Printer;

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
