//! `--dns01-manual`: a person makes the records of DNS-01, between two runs of one command.
//!
//! While any record is missing, stdout holds the records alone, because a script may read stdout. A run is the first for
//! a Certificate that had no presented DNS-01 Challenge when the run began. Only a later run waits: the first prints the
//! records at once and ends.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::context::{Context, output_files};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::lead::venue::Venue;
use crate::lead::{Claim, Other};
use crate::model::order_report::{NamedObject, RecordToMake};
use crate::model::quick_order::Proof;
use crate::model::{Challenge, ObjectName};
use crate::print::Printer;
use crate::print::table::{Fit, Headers, Narrow, Table};

/// TTL that a person may give a record, in seconds; the CA accepts any TTL.
const RECORD_TTL_SECONDS: u32 = 60;

/// Flags of DNS-01 by hand.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Challenges")]
pub struct ManualArgs {
    /// Have a person make the DNS-01 records
    ///
    /// Prints the records of DNS-01, in place of every dns01 solver, and ends with exit code 13; the same command, run
    /// again, waits until the records are seen. With --local only.
    #[arg(long)]
    pub dns01_manual: bool,
    /// Also write the DNS-01 records to FILE, as lines of a zone file
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "dns01_manual")]
    pub dns01_zone_file: Option<PathBuf>,
}

impl ManualArgs {
    /// Refuses a cluster: cert-manager has no solver for records by hand, and would use the provider of the manifest.
    ///
    /// # Errors
    /// Fails in a cluster.
    pub fn check(&self, context: &Context) -> Result<(), Failure> {
        if !self.dns01_manual || Venue::of(context, &Claim::Alone) == Venue::Local {
            return Ok(());
        }
        let message = "--dns01-manual cannot be used in a cluster: the next driver there, cert-manager or \
                       kubectl-acme, would use the solver of the manifest";
        Err(Failure::usage(message)
            .hint("use --local: all is kept on this machine, and a person makes the records")
            .hint("in a cluster, name a provider in the dns01 solver"))
    }

    /// Refuses to work beside another driver, which would publish records with the solvers of the manifest.
    ///
    /// # Errors
    /// Fails when another process drives.
    pub fn check_turn(&self, claim: &Claim) -> Result<(), Failure> {
        let Claim::Watches(Other { driver, .. }) = claim else { return Ok(()) };
        if !self.dns01_manual {
            return Ok(());
        }
        let message = format!(
            "--dns01-manual cannot be used while {driver} drives and publishes with the solvers of the manifest"
        );
        Err(Failure::new(FailureKind::OwnedByAnother, message)
            .hint("end that process, or use another state folder (--local=DIR)"))
    }

    /// Returns how names given in place of manifests are proven.
    pub fn proof(&self) -> Proof {
        if self.dns01_manual { Proof::Manual } else { Proof::Http01 }
    }
}

/// A record that a person has to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManualRecord {
    /// Absolute name, with the final dot; if the name is an alias, the name to which the alias leads.
    pub name: String,
    /// The text, without quotes.
    pub value: String,
    /// Certificate that needs the record.
    pub certificate: ObjectName,
    /// Name of the Challenge that needs the record.
    pub challenge: String,
    /// Why the record is taken to be missing.
    pub lack: MissingReason,
}

/// Why a record is taken to be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingReason {
    /// Answers of the name servers instead, or why no name server could be asked.
    pub reason: String,
    /// Whether a name server could be asked.
    pub is_checked: bool,
}

impl ManualRecord {
    /// Builds the record of a Challenge of `certificate`, at `name`.
    pub fn new(
        name: String,
        challenge: &Challenge,
        certificate: &ObjectName,
        lack: MissingReason,
    ) -> Self {
        Self {
            name,
            value: challenge.spec.key.clone(),
            certificate: certificate.clone(),
            challenge: challenge.metadata.name.clone(),
            lack,
        }
    }

    /// Returns a line of a zone file (RFC 1035 §5.1); each string has at most 255 bytes, and the CA joins the strings.
    fn line(&self) -> String {
        let strings = self.value.as_bytes().chunks(255).map(String::from_utf8_lossy);
        let strings: Vec<String> = strings.map(|string| format!("\"{string}\"")).collect();
        format!("{} {RECORD_TTL_SECONDS} IN TXT {}\n", self.name, strings.join(" "))
    }

    /// Returns the record as programs read it in the report.
    pub fn report(&self) -> RecordToMake {
        let Self { name, value, certificate, challenge, lack } = self;
        let named = |name: &str| NamedObject {
            namespace: certificate.namespace.clone(),
            name: name.to_owned(),
        };
        RecordToMake {
            name: name.clone(),
            kind: "TXT",
            ttl: RECORD_TTL_SECONDS,
            value: value.clone(),
            certificate: named(&certificate.name),
            challenge: named(challenge),
            reason: lack.reason.clone(),
        }
    }
}

/// Prints records as a table; programs find the records in the report. A terminal is narrow: Challenges are left out.
///
/// # Errors
/// Fails when stdout cannot be written.
pub fn print(
    printer: &mut Printer,
    headers: Headers,
    wanted: &[ManualRecord],
) -> Result<(), Failure> {
    let width = printer.width();
    Ok(printer.report(&Value::Null, |colour| match width {
        Some(width) => {
            let fit = Fit { title: "VALUE", width, cells: Narrow::Below };
            table(wanted, false).render_within(fit, headers, colour)
        }
        None => table(wanted, true).render(headers, colour),
    })?)
}

fn table(wanted: &[ManualRecord], has_challenges: bool) -> Table {
    let titles = ["NAME", "TYPE", "TTL", "VALUE", "CERTIFICATE"];
    let mut table = Table::new(titles.into_iter().chain(has_challenges.then_some("CHALLENGE")));
    for ManualRecord { name, value, certificate, challenge, .. } in wanted {
        let (ttl, certificate) = (RECORD_TTL_SECONDS.to_string(), certificate.to_string());
        let cells = [name, "TXT", &ttl, value, &certificate];
        table.row(cells.into_iter().chain(has_challenges.then_some(challenge.as_str())));
    }
    table
}

/// Writes records as lines of a zone file.
///
/// # Errors
/// Fails when the file cannot be written.
pub async fn write(
    path: &Path,
    wanted: &[ManualRecord],
    interrupted: &Interrupted,
) -> Result<(), Failure> {
    let lines: String = wanted.iter().map(ManualRecord::line).collect();
    output_files::write_text(path, &lines, interrupted).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::colour::Colour;

    #[test]
    fn a_record_is_a_row_and_a_line_of_a_zone_file() {
        let wanted = [ManualRecord {
            name: "_acme-challenge.example.com.".into(),
            value: "gfj9Xq_Rg85nM-YoYCZiGAHqxmbPNkbCvBc5tSn4xYA".into(),
            certificate: ObjectName::new("web", "example-com"),
            challenge: "example-com-1-2-3".into(),
            lack: MissingReason { reason: String::new(), is_checked: true },
        }];
        insta::assert_snapshot!(table(&wanted, true).render(Headers::Shown, Colour::default()), @r"
        NAME                           TYPE   TTL   VALUE                                         CERTIFICATE       CHALLENGE
        _acme-challenge.example.com.   TXT    60    gfj9Xq_Rg85nM-YoYCZiGAHqxmbPNkbCvBc5tSn4xYA   web/example-com   example-com-1-2-3
        ");
        let fit = Fit { title: "VALUE", width: 80, cells: Narrow::Below };
        let narrow = table(&wanted, false).render_within(fit, Headers::Shown, Colour::default());
        insta::assert_snapshot!(narrow, @r"
        NAME                           TYPE   TTL   CERTIFICATE
        _acme-challenge.example.com.   TXT    60    web/example-com
          gfj9Xq_Rg85nM-YoYCZiGAHqxmbPNkbCvBc5tSn4xYA
        ");
        assert_eq!(
            wanted[0].line(),
            "_acme-challenge.example.com. 60 IN TXT \"gfj9Xq_Rg85nM-YoYCZiGAHqxmbPNkbCvBc5tSn4xYA\"\n"
        );
    }

    #[test]
    fn a_long_record_is_several_strings() {
        let wanted = ManualRecord {
            name: "a.".into(),
            value: "x".repeat(300),
            certificate: ObjectName::new("web", "a"),
            challenge: String::new(),
            lack: MissingReason { reason: String::new(), is_checked: true },
        };
        let (first, second) = ("x".repeat(255), "x".repeat(45));
        assert_eq!(wanted.line(), format!("a. 60 IN TXT \"{first}\" \"{second}\"\n"));
    }
}
