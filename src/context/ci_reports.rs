//! `--report`: the outcome of a command for the CI system that runs it; on GitHub Actions also without the flag.
//!
//! A report is made at every exit code, also if no work could begin: from the OrderReport if there is one, else from the
//! failure. Workflow commands go to stderr, since stdout is the product and a runner reads both.
//! Values are never masked; `print/report/github.rs` says why.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::blocking::{Interrupted, aside};
use super::failure::Failure;
use super::flags::report::{ReportChoice, ReportForm, ReportPlace};
use super::output_files;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::order_report::{InputFault, OrderReport};
use crate::print::Printer;
use crate::print::report::{FoundCause, PipelinePage, github, junit, markdown, sarif};
use crate::print::talk::MessageForm;
use crate::store::folder::explain;

/// Reports of a command, and the facts for the reports.
#[derive(Debug, Default)]
pub struct PipelineReports {
    wanted: Vec<(ReportForm, ReportPlace)>,
    /// Whether the reports are the default of the CI system, without a flag.
    is_by_itself: bool,
    around: CiEnvironment,
    made: Mutex<Option<OrderReport>>,
    warnings: Mutex<Vec<InputFault>>,
    causes: Mutex<Option<Vec<FoundCause>>>,
}

/// Facts about the CI system that runs this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CiEnvironment {
    is_github: bool,
    /// File that collects the summary of a step.
    summary: Option<PathBuf>,
    /// The folder of the repository.
    repository: Option<PathBuf>,
    /// Working folder of this process.
    folder: PathBuf,
}

impl CiEnvironment {
    fn of_process() -> Self {
        let path = |name| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        Self {
            is_github: env::var("GITHUB_ACTIONS").is_ok_and(|it| it == "true"),
            summary: path("GITHUB_STEP_SUMMARY"),
            // The system names the folder of a process without links.
            repository: path("GITHUB_WORKSPACE").map(|it| it.canonicalize().unwrap_or(it)),
            folder: env::current_dir().unwrap_or_default(),
        }
    }

    /// Returns a file's path in the repository, or in the working folder without one; of files elsewhere, the whole path.
    fn path(&self, file: &Path) -> String {
        let whole = normalize(&self.folder.join(file));
        let base = self.repository.as_ref().filter(|it| whole.starts_with(it));
        let below = whole.strip_prefix(base.unwrap_or(&self.folder));
        below.unwrap_or(&whole).display().to_string()
    }
}

/// Removes `.` and `..` from a path without following links.
fn normalize(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

impl PipelineReports {
    /// Returns the reports that are asked for; no reports for a command without `--report`.
    ///
    /// # Errors
    /// Fails if two reports would go to one file, or two texts (reports or the document of `-o`) to standard output.
    pub fn chosen(choices: Option<&[ReportChoice]>, has_document: bool) -> Result<Self, Failure> {
        let Some(choices) = choices else { return Ok(Self::default()) };
        Self::of(choices, has_document, CiEnvironment::of_process())
    }

    fn of(
        choices: &[ReportChoice],
        has_document: bool,
        around: CiEnvironment,
    ) -> Result<Self, Failure> {
        let is_by_itself = choices.is_empty() && around.is_github;
        let mut wanted = Vec::new();
        if is_by_itself {
            wanted.push((ReportForm::Github, ReportPlace::Unsaid));
        }
        for choice in choices {
            match choice {
                ReportChoice::Wanted(form, place) => wanted.push((*form, place.clone())),
                ReportChoice::Nothing if choices.len() == 1 => {}
                ReportChoice::Nothing => {
                    return Err(Failure::usage("--report none cannot be used with other reports"));
                }
            }
        }
        let reports = Self { wanted, is_by_itself, around, ..Self::default() };
        let on_stdout = reports.wanted.iter().filter(|it| is_on_stdout(it)).count();
        if on_stdout > 1 || (on_stdout == 1 && has_document) {
            let other = if on_stdout > 1 { "two reports" } else { "-o and --report" };
            let message = format!("{other} would both be written to standard output");
            return Err(Failure::usage(message).hint("name a file: --report FORMAT=FILE"));
        }
        let mut files = BTreeSet::new();
        for file in reports.files() {
            if !files.insert(normalize(file)) {
                let message = format!("two reports would be written to {}", file.display());
                return Err(Failure::usage(message));
            }
        }
        Ok(reports)
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.wanted.iter().filter_map(|(_, place)| match place {
            ReportPlace::File(path) => Some(path),
            ReportPlace::Unsaid | ReportPlace::Stdout => None,
        })
    }

    /// Checks that every report's file can be written.
    ///
    /// # Errors
    /// Fails if a file cannot be written, or a signal came.
    pub async fn expect_writable(&self, interrupted: &Interrupted) -> Result<(), Failure> {
        for file in self.files() {
            output_files::expect_file(file, interrupted).await?;
        }
        Ok(())
    }

    /// Returns whether any report is to be made.
    pub fn are_wanted(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Returns whether standard output is for a report, so that nothing else may be written there.
    pub fn take_stdout(&self) -> bool {
        self.wanted.iter().any(is_on_stdout)
    }

    /// Keeps the outcome of the command.
    pub fn keep(&self, report: &OrderReport) {
        *self.made.lock() = Some(report.clone());
    }

    /// Keeps the causes that `diagnose` has found.
    pub fn keep_causes(&self, causes: Vec<FoundCause>) {
        *self.causes.lock() = Some(causes);
    }

    /// Keeps warnings about manifests.
    pub fn warn(&self, warnings: impl Iterator<Item = InputFault>) {
        self.warnings.lock().extend(warnings);
    }

    /// Writes every report of a command that has ended; a report that fails does not stop the others.
    ///
    /// # Errors
    /// Fails if a report cannot be written.
    pub async fn write(
        &self,
        ended: &Result<(), Failure>,
        (printer, tone): (&mut Printer, MessageForm),
        interrupted: &Interrupted,
    ) -> Result<(), Failure> {
        if !self.are_wanted() {
            return Ok(());
        }
        let page = self.page(ended, Timestamp::now());
        let has_told = ended.is_err() || !is_empty(&page.report) || page.causes.is_some();
        let mut failed = None;
        for (form, place) in &self.wanted {
            let text = render(&page, *form, tone);
            let written = match place {
                ReportPlace::File(path) => output_files::write_text(path, &text, interrupted).await,
                _ if is_on_stdout(&(*form, place.clone())) => {
                    // A dry run has printed its product already.
                    if has_told { printer.data(&text).map_err(Failure::from) } else { Ok(()) }
                }
                // With --log-format json every line on stderr is a document.
                _ if self.is_by_itself && tone.json => Ok(()),
                ReportPlace::Unsaid | ReportPlace::Stdout => {
                    // A failed write is ignored: the reader is gone.
                    printer.talk().write_all(text.as_bytes()).ok();
                    Ok(())
                }
            };
            failed = failed.or_else(|| written.err());
        }
        let is_on_github = self.wanted.iter().any(|(form, _)| *form == ReportForm::Github);
        if let Some(summary) = self.around.summary.clone().filter(|_| is_on_github && has_told) {
            self.add_to_summary(summary, markdown::document(&page), printer, interrupted).await;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Adds a page to the summary of the step; other commands of the step write to the summary, too.
    async fn add_to_summary(
        &self,
        summary: PathBuf,
        page: String,
        printer: &Printer,
        interrupted: &Interrupted,
    ) {
        let place = summary.display().to_string();
        let add = move || {
            let mut file = OpenOptions::new().create(true).append(true).open(&summary)?;
            file.write_all((page + "\n").as_bytes())
        };
        let why = match aside(interrupted, output_files::FILE_WORK_GRACE, add).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => explain(&error),
            Err(_) => "its file system does not answer".to_owned(),
        };
        printer.warning(&format!("cannot write to {place} (GITHUB_STEP_SUMMARY): {why}"));
    }

    fn page(&self, ended: &Result<(), Failure>, now: Timestamp) -> PipelinePage {
        let made = self.made.lock().take();
        let faults = ended.as_ref().err().map(|failure| failure.facts.faults.clone());
        let report = made.unwrap_or_else(|| match ended {
            Ok(()) => OrderReport::new(0, false),
            Err(failure) => of_failure(failure),
        });
        let about = ended.as_ref().err().and_then(|failure| failure.facts.object.clone());
        let (faults, warnings) = (faults.unwrap_or_default(), self.warnings.lock().clone());
        let places = [&faults, &warnings].into_iter().flatten().filter_map(|it| it.place.as_ref());
        let of_certificates = report.certificates.iter().filter_map(|it| it.source.as_ref());
        let of_issuers = report.issuers.iter().filter_map(|it| it.source.as_ref());
        let causes = self.causes.lock().take();
        let of_causes = causes.iter().flatten().filter_map(|it| it.place.as_ref());
        let places = places.chain(of_causes);
        let files: BTreeSet<_> =
            places.chain(of_certificates).chain(of_issuers).map(|it| it.file.clone()).collect();
        // A manifest from a pipe has no file.
        let files = files.into_iter().filter(|file| Path::new(file).is_file());
        let paths: BTreeMap<_, _> =
            files.map(|file| (file.clone(), self.around.path(Path::new(&file)))).collect();
        let meanings = match &causes {
            None => {
                FailureKind::ALL.map(|k| (k.word().to_owned(), k.meaning().to_owned())).to_vec()
            }
            Some(causes) => {
                let all = causes.iter().map(|cause| (cause.id.clone(), cause.title.clone()));
                all.collect::<BTreeMap<_, _>>().into_iter().collect()
            }
        };
        PipelinePage { report, about, faults, warnings, causes, paths, meanings, now }
    }
}

fn is_on_stdout((form, place): &(ReportForm, ReportPlace)) -> bool {
    match place {
        ReportPlace::Unsaid => *form != ReportForm::Github,
        ReportPlace::Stdout => true,
        ReportPlace::File(_) => false,
    }
}

fn is_empty(report: &OrderReport) -> bool {
    report.certificates.is_empty() && report.issuers.is_empty()
}

fn render(page: &PipelinePage, form: ReportForm, tone: MessageForm) -> String {
    match form {
        ReportForm::Github => github::commands(page, !tone.quiet),
        ReportForm::Junit => junit::document(page),
        ReportForm::Sarif => sarif::document(page),
        ReportForm::Markdown => markdown::document(page),
    }
}

/// Builds the report of a command that failed before it had any other result.
fn of_failure(failure: &Failure) -> OrderReport {
    let mut report = OrderReport::new(failure.kind.exit_code(), false);
    let mut error = failure.document().map_or_else(|| failure.report(), |document| document.error);
    if error.message.is_empty() {
        failure.kind.meaning().clone_into(&mut error.message);
    }
    report.error = Some(error);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(is_github: bool) -> CiEnvironment {
        CiEnvironment {
            is_github,
            summary: None,
            repository: Some("/work/repository".into()),
            folder: "/work/repository/deploy".into(),
        }
    }

    /// Describes the reports for these words and their places, or returns the reason for a refusal.
    #[track_caller]
    fn check(words: &[&str], is_github: bool, expected: &str) {
        let choices: Vec<_> = words.iter().map(|word| word.parse().unwrap()).collect();
        let told = match PipelineReports::of(&choices, false, around(is_github)) {
            Ok(reports) => format!("{:?}", reports.wanted),
            Err(failure) => failure.message,
        };
        assert_eq!(told, expected, "{words:?}");
    }

    #[test]
    fn on_github_its_own_report_is_chosen_unless_somebody_says_otherwise() {
        check(&[], true, "[(Github, Unsaid)]");
        check(&[], false, "[]");
        check(&["none"], true, "[]");
        check(&["junit=a.xml"], true, "[(Junit, File(\"a.xml\"))]");
        assert!(!PipelineReports::chosen(None, false).unwrap().are_wanted());
    }

    #[test]
    fn two_reports_in_one_place_are_refused() {
        let both = "two reports would both be written to standard output";
        check(&["junit", "sarif=-"], false, both);
        check(&["junit=a", "sarif=./a"], false, "two reports would be written to ./a");
        check(&["none", "junit"], false, "--report none cannot be used with other reports");
        check(&["junit", "github"], false, "[(Junit, Unsaid), (Github, Unsaid)]");
        let junit = ["junit".parse().unwrap()];
        let beside = PipelineReports::of(&junit, true, around(false)).unwrap_err();
        assert_eq!(beside.message, "-o and --report would both be written to standard output");
    }

    #[test]
    fn paths_are_those_of_the_repository() {
        for (file, expected) in [
            ("web.yaml", "deploy/web.yaml"),
            ("./a/../web.yaml", "deploy/web.yaml"),
            ("../web.yaml", "web.yaml"),
            ("/work/repository/a.yaml", "a.yaml"),
            ("/etc/a.yaml", "/etc/a.yaml"),
        ] {
            assert_eq!(around(true).path(Path::new(file)), expected);
            let elsewhere = CiEnvironment { repository: None, ..around(true) };
            let in_folder = expected.strip_prefix("deploy/").unwrap_or(match expected {
                "web.yaml" => "/work/repository/web.yaml",
                "a.yaml" => "/work/repository/a.yaml",
                other => other,
            });
            assert_eq!(elsewhere.path(Path::new(file)), in_folder);
        }
    }

    #[test]
    fn a_failure_of_which_all_was_said_is_told_by_what_its_code_means() {
        let report = of_failure(&Failure::silent(FailureKind::Timeout));
        assert_eq!(report.error.unwrap().message, FailureKind::Timeout.meaning());
        assert_eq!(report.exit_code, 124);
    }
}
