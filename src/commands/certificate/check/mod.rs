//! `certificate check`: finds certificates that have to be replaced now, with the reasons, and replaces them on request.

pub mod places;
pub mod replacing;
pub mod surveyor;

use std::path::PathBuf;

use serde_json::{Value, json};

use self::places::CheckScope;
use self::surveyor::{CertificateChecker, CheckResult};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::input::completers;
use crate::input::selector::LabelSelector;
use crate::issue::follow::work::WorkArgs;
use crate::model::certificate_check::{
    CertificateCheck, CheckVerdict, CheckedCertificate, CheckedRenewalOutcome,
};
use crate::print::certificate_check::{CheckStyle, table, values};
use crate::print::columns::Namespaces;
use crate::print::format::Format;
use crate::print::table::Headers;
use crate::print::{Printer, document};

/// Flags of `certificate check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Names of Certificates, secret/NAME, files and folders (- for standard input), HOST:PORT of TLS servers; without any, all
    /// Certificates
    #[arg(value_name = "NAME|FILE|HOST:PORT", add = completers::certificates_and_files())]
    what: Vec<String>,
    /// Check the Certificates of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Only Certificates with these labels, such as app=web
    #[arg(long, short = 'l', value_name = "LABELS")]
    selector: Option<LabelSelector>,
    /// Check the TLS servers in this file: one on each line, with the port if it is not 443
    #[arg(long, value_name = "FILE")]
    hosts: Option<String>,
    /// Find Certificates with a serial number in this file, as announced by a CA: they must be replaced
    ///
    /// One serial number on each line, in hexadecimal.
    #[arg(long, value_name = "FILE")]
    serials: Option<String>,
    /// Verify servers against these roots in place of this machine's
    #[arg(long, value_name = "FILE")]
    ca_bundle: Option<PathBuf>,
    /// Replace the Certificates that have to be replaced, and wait
    #[arg(long)]
    renew: bool,
    /// Maximum number of Certificates to renew in an hour, including earlier runs
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    max_per_hour: usize,
    /// Flags of the work
    #[command(flatten)]
    work: WorkArgs,
}

impl CheckArgs {
    fn scope(&self) -> CheckScope {
        CheckScope {
            words: self.what.clone(),
            all_namespaces: self.all_namespaces,
            selector: self.selector.clone(),
            hosts: self.hosts.clone(),
            serials: self.serials.clone(),
        }
    }

    /// Returns whether the command needs a store: files and servers can be checked without a store.
    pub fn needs_store(&self) -> bool {
        self.scope().needs_store()
    }
}

/// Runs `certificate check`.
///
/// # Errors
/// Fails with 10 if a certificate must be replaced, 11 if not all is known, and if a name is not found or a renewal fails.
pub async fn run(args: CheckArgs, context: &mut Context) -> Result<(), Failure> {
    let scope = args.scope();
    let store = if scope.needs_store() { Some(context.existing_store().await?) } else { None };
    let fetcher = args.work.drive.fetcher().await?;
    let places = scope.find(store.as_ref(), context).await?;
    let surveyor =
        CertificateChecker::new(store, fetcher, args.ca_bundle.as_deref(), context).await?;
    let mut surveyed = surveyor.survey(&places).await?;
    let mut printer = context.printer(&args.work.output);
    let is_for_people = printer.format().is_for_people();
    let headers = if args.work.output.no_headers { Headers::Hidden } else { Headers::Shown };
    if is_for_people {
        let namespaces = if args.all_namespaces { Namespaces::Shown } else { Namespaces::Hidden };
        let is_wide = *printer.format() == Format::Wide;
        let style = CheckStyle { is_wide, namespaces, headers, width: printer.width() };
        printer.text(&table(&reports(&surveyed), style, context.now()))?;
        let list = places.listed.as_ref().map(|(_, name)| &**name);
        sum_up(&surveyed, list, args.renew, &printer);
    }
    let renewed = if args.renew {
        context.global.cluster.terms = args.work.drive.lease.terms()?;
        let most = args.max_per_hour;
        Box::pin(replacing::replace(&mut surveyed, args.work, most, context)).await
    } else {
        Ok(())
    };
    for (name, why) in replacing::held(&surveyed) {
        printer.note(&format!("Certificate {name} was not replaced: {why}"));
    }
    let kind = match &renewed {
        Err(failure) => Some(failure.kind),
        // Without any certificate to check, nothing is known to be well.
        Ok(()) if surveyed.is_empty() && places.listed.is_none() => {
            Some(FailureKind::WarningsFound)
        }
        Ok(()) => remaining_failure(&surveyed),
    };
    if !is_for_people {
        let exit_code = kind.map_or(0, FailureKind::exit_code);
        print(&mut printer, &CertificateCheck::new(exit_code, reports(&surveyed)), headers)?;
    }
    renewed?;
    kind.map_or(Ok(()), |kind| Err(Failure::silent(kind)))
}

fn reports(surveyed: &[CheckResult]) -> Vec<CheckedCertificate> {
    surveyed.iter().map(|one| one.checked.clone()).collect()
}

/// Kind of failure for the certificates that were not replaced, if any.
fn remaining_failure(surveyed: &[CheckResult]) -> Option<FailureKind> {
    let is_left = |one: &&CheckResult| {
        let renewal = one.checked.renewal.as_ref().map(|renewal| renewal.outcome);
        renewal != Some(CheckedRenewalOutcome::Replaced)
    };
    let verdicts = surveyed.iter().filter(is_left).map(|one| one.checked.verdict);
    match verdicts.min()? {
        CheckVerdict::Replace => Some(FailureKind::CausesFound),
        CheckVerdict::Unknown => Some(FailureKind::WarningsFound),
        CheckVerdict::Keep => None,
    }
}

/// Prints the report for programs.
fn print(
    printer: &mut Printer,
    report: &CertificateCheck,
    headers: Headers,
) -> Result<(), Failure> {
    let text = match printer.format() {
        Format::Csv => values(&report.certificates, headers),
        Format::Jsonl => {
            let lines = report.certificates.iter().map(|certificate| {
                let mut line = json!(certificate);
                line["apiVersion"] = json!(report.api_version);
                line["kind"] = Value::from("CheckedCertificate");
                document::json_line(&line)
            });
            lines.collect()
        }
        format => format.document(&json!(report)).unwrap_or_default(),
    };
    Ok(printer.data(&text)?)
}

/// Prints a line with the number of certificates, and a hint with the next step.
fn sum_up(surveyed: &[CheckResult], list: Option<&str>, renews: bool, printer: &Printer) {
    let of = |verdict| surveyed.iter().filter(|one| one.checked.verdict == verdict).count();
    let (replace, unknown) = (of(CheckVerdict::Replace), of(CheckVerdict::Unknown));
    let all = match surveyed.len() {
        0 => {
            let of_list = list.map(|name| format!("no certificate has a serial number in {name}"));
            return printer.note(of_list.as_deref().unwrap_or("no certificates were found"));
        }
        1 => "1 certificate".to_owned(),
        all => format!("{all} certificates"),
    };
    let unknown = match unknown {
        0 => String::new(),
        unknown => format!("; not everything is known of {unknown}"),
    };
    let replace_line = match replace {
        0 => "none has to be replaced as far as is known".to_owned(),
        1 => "1 has to be replaced now".to_owned(),
        several => format!("{several} have to be replaced now"),
    };
    printer.note(&format!("{all} checked: {replace_line}{unknown}"));
    let can_be = surveyed
        .iter()
        .any(|one| one.checked.verdict == CheckVerdict::Replace && one.certificate.is_some());
    if can_be && !renews {
        printer.hint(&format!(
            "replace the Certificates of the store: {} --renew",
            invocation::current().again()
        ));
    }
}
