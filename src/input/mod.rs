//! Input of a command: manifests, or a few names from which manifests are made.

pub mod applying;
pub(crate) mod challenge_type;
pub mod completers;
pub mod files;
pub mod lookup;
pub mod overwritten;
pub mod own_csr;
pub mod quick;
pub mod selector;
pub mod target;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;

use self::files::Depth;
use self::quick::{QuickArgs, Wish};
use crate::context::Context;
use crate::context::blocking::{Interrupted, Unfinished, aside};
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation::{self, quoted};
use crate::model::manifest::set::Namespaces;
use crate::model::manifest::{self, Complaint, Document, Location};
use crate::model::order_report::{InputFault, InputPlace};
use crate::model::quick_order::Proof;
use crate::model::{Key, Kind, Record};
use crate::print::Printer;
use crate::store::Manager;

/// Flags that name the input.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "What to issue")]
pub struct InputArgs {
    /// Manifests: files, folders, - for standard input
    ///
    /// Repeatable, or with commas.
    #[arg(long = "filename", short = 'f', value_name = "PATH", num_args = 1.., value_delimiter = ',', conflicts_with_all = ["domain", "csr"])]
    pub files: Vec<String>,
    /// Read nested folders, too
    #[arg(long, short = 'R')]
    pub recursive: bool,
    /// Name or IP address, in place of manifests
    ///
    /// Repeatable, or with commas: one certificate for all names.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub domain: Vec<String>,
    /// Signing request, PEM or DER, in place of manifests; - for standard input
    ///
    /// The key stays where it was made: DIR/NAME/tls.crt is written, and no key. The signing request becomes a
    /// CertificateRequest; the same command renews the certificate when renewal is due.
    #[arg(long, hide_short_help = true, value_name = "FILE", conflicts_with = "domain")]
    pub csr: Option<PathBuf>,
    /// Have the given issuers ask for this type of challenge, in place of the types of their solvers; with --local
    /// only
    #[arg(long, hide_short_help = true, value_name = "TYPE", value_parser = ["dns-account-01", "dns-persist-01", "tls-alpn-01"])]
    pub challenge_type: Option<String>,
    /// Flags for manifests that are made of names
    #[command(flatten)]
    pub quick: QuickArgs,
    /// Only print what would be applied
    ///
    /// -o yaml and -o json show the manifests' Secrets in clear, as kubectl does.
    #[arg(long, value_name = "HOW", default_value = "none", value_enum)]
    pub dry_run: DryRun,
    /// Take over fields of the manifests that others manage in the cluster
    #[arg(long, hide_short_help = true)]
    pub force_conflicts: bool,
}

/// Flags for reading manifests, each with the reason why names do not need it.
pub const MANIFEST_FLAGS: [(&str, &str); 1] = [("recursive", "there is no folder to be read")];

/// Input that was read.
#[derive(Clone, Debug)]
pub struct Input {
    pub(crate) records: Vec<Record>,
    /// Place at which each object was read.
    locations: Vec<Location>,
    /// Certificates without a manifest of their own: other objects ask for them.
    asked: BTreeSet<Key>,
    manager: Manager,
    /// Whether the objects are from manifests that a person has written.
    is_written: bool,
    /// Name of the first Issuer of the CA, if the objects were made of names.
    issuer: Option<String>,
}

impl InputArgs {
    /// Reads everything; names are proven in the given way. Warnings and skipped objects are printed on stderr.
    ///
    /// # Errors
    /// Fails if a manifest is wrong (every mistake is printed), if there is no object of ours, and if a signal came.
    pub async fn read(
        &self,
        proof: Proof,
        context: &Context,
        output: &OutputArgs,
    ) -> Result<Input, Failure> {
        let printer = context.printer(output);
        let namespaces =
            Namespaces { given: context.global.namespace.as_deref(), default: context.namespace() };
        let challenge_type = self.challenge_type.as_deref();
        let sources = match (&self.files[..], &self.domain[..]) {
            ([], []) if let Some(path) = &self.csr => {
                let own_csr::GivenRequest { names, request } =
                    own_csr::read(path, context.interrupted()).await?;
                let request = Some(request);
                let wish = Wish { domains: &names, request, proof, challenge_type };
                vec![self.quick.made(wish, context).await?]
            }
            ([], []) => {
                return Err(Failure::usage(
                    "nothing to issue: neither -f, --domain nor --csr is given",
                )
                .hint(invocation::current().like("order -f MANIFEST.yaml"))
                .hint(invocation::current().like("order --domain www.example.com")));
            }
            ([], domains) => {
                let wish = Wish { domains, request: None, proof, challenge_type };
                vec![self.quick.made(wish, context).await?]
            }
            (paths, _) => sources(&printer, paths, self.recursive, context.interrupted()).await?,
        };
        let mut set = parse(&sources, namespaces, &printer, context)?;
        if let Some(kind) = &self.challenge_type {
            challenge_type::ask(kind, set.documents.iter_mut().map(|d| &mut d.record))?;
        }
        if set.documents.is_empty() {
            return Err(Failure::usage(format!("nothing to issue: {NO_OBJECTS_MESSAGE}"))
                .hint("examples/ holds manifests to begin with; --domain NAME needs none"));
        }
        let manager = if self.force_conflicts { Manager::PersonByForce } else { Manager::Person };
        Ok(Input::new(set.documents, manager, self.domain.is_empty() && self.csr.is_none()))
    }
}

/// Reads manifests as `order -f` does, for commands that only inspect manifests.
///
/// # Errors
/// Fails if a manifest is wrong (every mistake is printed), if there is no object of ours, and if a signal came.
pub async fn manifests(
    paths: &[String],
    recursive: bool,
    context: &Context,
    output: &OutputArgs,
) -> Result<Input, Failure> {
    let printer = context.printer(output);
    let namespaces =
        Namespaces { given: context.global.namespace.as_deref(), default: context.namespace() };
    let sources = sources(&printer, paths, recursive, context.interrupted()).await?;
    let set = parse(&sources, namespaces, &printer, context)?;
    if set.documents.is_empty() {
        return Err(
            Failure::usage(NO_OBJECTS_MESSAGE).hint("examples/ holds manifests to begin with")
        );
    }
    Ok(Input::new(set.documents, Manager::Person, true))
}

/// Message for manifests without any object of ours.
pub const NO_OBJECTS_MESSAGE: &str = "the input holds no Certificate, CertificateRequest, Issuer, ClusterIssuer or Secret, nor an Ingress, Gateway or ListenerSet that asks for one";

/// Reads the documents of sources; warnings and skipped objects are printed on stderr.
fn parse(
    sources: &[manifest::Source],
    namespaces: Namespaces<'_>,
    printer: &Printer,
    context: &Context,
) -> Result<manifest::Set, Failure> {
    let set = match manifest::read(sources, namespaces) {
        Ok(set) => set,
        Err(complaints) => return Err(print_complaints(printer, &complaints)),
    };
    for warning in &set.warnings {
        printer.warning(&warning.to_string());
    }
    context.reports().warn(set.warnings.iter().map(fault));
    if !set.skipped.is_empty() {
        let skipped: Vec<String> =
            set.skipped.iter().map(|s| format!("{} {} ({})", s.kind, s.name, s.location)).collect();
        printer.note(&format!("left alone: {}", skipped.join(", ")));
    }
    for line in set.skipped.iter().filter_map(|skipped| kustomize_hint(&skipped.location.file)) {
        printer.hint(&line);
    }
    for skipped in &set.skipped {
        if let Some(annotation) = skipped.asks_for_certificate {
            let (kind, name) = (&skipped.kind, &skipped.name);
            printer.note(&format!(
                "{}: {kind} {name}: ignored: metadata.annotations.{annotation}; write a Certificate instead",
                skipped.location
            ));
        }
    }
    Ok(set)
}

async fn sources(
    printer: &Printer,
    paths: &[String],
    recursive: bool,
    interrupted: &Interrupted,
) -> Result<Vec<manifest::Source>, Failure> {
    let depth = if recursive { Depth::Recursive } else { Depth::Flat };
    let paths = paths.to_vec();
    // Standard input and pipes may never end.
    let read = move || files::read(&paths, depth, &mut std::io::stdin());
    let errors = match aside(interrupted, Duration::ZERO, read).await {
        Ok(Ok(sources)) => return Ok(sources),
        Ok(Err(errors)) => errors,
        Err(Unfinished::Signal(kind)) => return Err(Failure::interrupted(kind)),
        Err(Unfinished::Panic) => {
            return Err(Failure::new(FailureKind::Unexpected, "reading manifests panicked"));
        }
    };
    let mut faults = Vec::new();
    for error in errors {
        let hints: Vec<String> = error.hint().into_iter().collect();
        let message = error.to_string();
        printer.error(&message, &hints);
        faults.push(InputFault { message, hints, object: String::new(), place: None });
    }
    Err(Failure::of_faults(FailureKind::Usage, faults))
}

/// Returns the hints against a complaint.
fn hints(complaint: &Complaint) -> Vec<String> {
    let file = &complaint.location.file;
    if let Some(seal) = complaint.remark.seal {
        return vec![files::opening(seal, file)];
    }
    match kustomize_hint(file) {
        Some(line) => vec![line],
        None => complaint.hint().map(str::to_owned).into_iter().collect(),
    }
}

/// Returns the hint for giving the folder of a `kustomization.yaml`; `None` for any other file.
fn kustomize_hint(file: &str) -> Option<String> {
    let path = Path::new(file);
    let name = path.file_name().and_then(|name| name.to_str())?;
    if !["kustomization.yaml", "kustomization.yml", "Kustomization"].contains(&name) {
        return None;
    }
    let folder = path.parent().map(|folder| folder.to_string_lossy()).unwrap_or_default();
    let folder = if folder.is_empty() { "." } else { &folder };
    let order = invocation::current().like("order -f -");
    Some(format!("give the output of kustomize: kubectl kustomize {} | {order}", quoted(folder)))
}

fn print_complaints(printer: &Printer, complaints: &[Complaint]) -> Failure {
    for complaint in complaints {
        let hints = hints(complaint);
        printer.error(&complaint.to_string(), &hints);
        if !complaint.excerpt.is_empty() {
            printer.note(complaint.excerpt.trim_end());
        }
    }
    Failure::of_faults(FailureKind::Usage, complaints.iter().map(fault).collect())
}

/// Returns a complaint as a fault of the input, for programs.
fn fault(complaint: &Complaint) -> InputFault {
    InputFault {
        message: complaint.remark.to_string(),
        hints: hints(complaint),
        object: complaint.object.clone(),
        place: Some(place(&complaint.location)),
    }
}

fn place(location: &Location) -> InputPlace {
    let Location { file, at } = location;
    InputPlace { file: file.clone(), line: at.line, column: at.column }
}

impl Input {
    fn new(documents: Vec<Document>, manager: Manager, is_written: bool) -> Self {
        let parts = documents.into_iter().map(|Document { record, location }| (record, location));
        let (records, locations): (Vec<Record>, Vec<Location>) = parts.unzip();
        let is_issuer = |record: &&Record| record.key.kind == Kind::Issuer && !is_written;
        let issuer = records.iter().find(is_issuer).map(|record| record.key.name.name.clone());
        Self { records, locations, asked: BTreeSet::new(), manager, is_written, issuer }
    }

    /// Returns the objects as they will be applied.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the input without Certificates that are not among these.
    #[must_use]
    pub fn only(&self, certificates: &BTreeSet<Key>) -> Self {
        let all = self.records.iter().cloned().zip(self.locations.iter().cloned());
        let stays = |key: &Key| !key.kind.is_issued() || certificates.contains(key);
        let (records, locations) = all.filter(|(record, _)| stays(&record.key)).unzip();
        let (asked, issuer) = (self.asked.clone(), self.issuer.clone());
        Self { records, locations, asked, issuer, ..*self }
    }

    /// Adds Certificates that objects of the input ask for, each with its asker's place; removes the objects of `without`.
    #[must_use]
    pub fn asking(self, for_them: Vec<(Record, Location)>, without: &BTreeSet<Key>) -> Self {
        let asked = for_them.iter().map(|(record, _)| record.key.clone()).collect();
        let all = self.records.into_iter().zip(self.locations);
        let stay = all.filter(|(record, _)| !without.contains(&record.key));
        let (records, locations) = stay.chain(for_them).unzip();
        Self { records, locations, asked, ..self }
    }

    /// Changes the manifest of one object.
    pub fn change(&mut self, key: &Key, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.records.iter_mut().find(|record| record.key == *key) {
            change(record);
        }
    }

    /// Returns whether an object is a Certificate without a manifest of its own.
    pub fn is_asked(&self, key: &Key) -> bool {
        self.asked.contains(key)
    }

    /// Returns the place where a manifest begins.
    pub fn location(&self, index: usize) -> Option<&Location> {
        self.locations.get(index)
    }

    /// Returns the place where the manifest of each object begins; objects that were made of names have no place.
    pub fn places(&self) -> BTreeMap<Key, InputPlace> {
        let all = self.records.iter().zip(&self.locations).filter(|_| self.is_written);
        all.map(|(record, location)| (record.key.clone(), place(location))).collect()
    }

    /// Returns the name of the first Issuer of the CA; `None` for manifests that a person has written.
    pub fn made_issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// Returns the manager under which the objects are written.
    pub fn manager(&self) -> Manager {
        self.manager
    }
}

/// Extent of a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// No dry run
    None,
    /// Manifests are read and printed
    Client,
    /// The store checks, too: a cluster with its admission rules, this machine for issuers and solvers
    Server,
}

#[cfg(test)]
pub(crate) mod tests;
