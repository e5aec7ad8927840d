//! What a command is given: manifests, or a few names from which they are made.

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
use crate::context::blocking::{Interrupted, Left, aside};
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::hints::invocation::quoted;
use crate::model::manifest::set::Namespaces;
use crate::model::manifest::{self, Complaint, Document, Location};
use crate::model::order_report::{InputFault, InputPlace};
use crate::model::quick_order::Proof;
use crate::model::{Key, Kind, Record};
use crate::print::Printer;
use crate::store::Manager;

/// Flags that say what to work on.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "What to issue")]
pub struct InputArgs {
    /// Manifests: files, folders, - for standard input
    ///
    /// Repeatable, or with commas.
    #[arg(long = "filename", short = 'f', value_name = "PATH", num_args = 1.., value_delimiter = ',', conflicts_with_all = ["domain", "csr"])]
    pub files: Vec<String>,
    /// Read folders below folders, too
    #[arg(long, short = 'R')]
    pub recursive: bool,
    /// Name or IP address, in place of manifests
    ///
    /// Repeatable, or with commas: one certificate for all of them.
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub domain: Vec<String>,
    /// Signing request, PEM or DER, in place of manifests; - for standard input
    ///
    /// The key stays with whoever made it: DIR/NAME/tls.crt is written, and no key. It becomes a CertificateRequest; the same
    /// command renews when it is time.
    #[arg(long, hide_short_help = true, value_name = "FILE", conflicts_with = "domain")]
    pub csr: Option<PathBuf>,
    /// Have the issuers that are given ask for this type of challenge, in place of what their solvers would answer; with --local
    /// only
    #[arg(long, hide_short_help = true, value_name = "TYPE", value_parser = ["dns-account-01", "dns-persist-01", "tls-alpn-01"])]
    pub challenge_type: Option<String>,
    /// What is made of names
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

/// Flags that say how manifests are read, and why names need none.
pub const FOR_MANIFESTS: [(&str, &str); 1] = [("recursive", "there is no folder to be read")];

/// What was read.
#[derive(Clone, Debug)]
pub struct Input {
    pub(crate) records: Vec<Record>,
    /// Of each object, where it was read.
    locations: Vec<Location>,
    /// Certificates among them that no manifest holds: others ask for them.
    asked: BTreeSet<Key>,
    manager: Manager,
    /// Whether they are manifests that somebody has written.
    is_written: bool,
    /// Name of the first Issuer of the CA, where they were made of names.
    issuer: Option<String>,
}

impl InputArgs {
    /// Reads everything; names are proven in the given way. Warnings and what was left alone are said on stderr.
    ///
    /// # Errors
    /// Fails when a manifest is wrong (every mistake is told), when there is nothing we read, and when a signal came.
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
        let mut set = parsed(&sources, namespaces, &printer, context)?;
        if let Some(kind) = &self.challenge_type {
            challenge_type::ask(kind, set.documents.iter_mut().map(|d| &mut d.record))?;
        }
        if set.documents.is_empty() {
            return Err(Failure::usage(format!("nothing to issue: {NOTHING_GIVEN}"))
                .hint("examples/ holds manifests to begin with; --domain NAME needs none"));
        }
        let manager = if self.force_conflicts { Manager::PersonByForce } else { Manager::Person };
        Ok(Input::new(set.documents, manager, self.domain.is_empty() && self.csr.is_none()))
    }
}

/// Reads manifests as `order -f` does, for commands that only look at them; the command says when there is nothing in them.
///
/// # Errors
/// Fails when a manifest is wrong (every mistake is told), when there is nothing we read, and when a signal came.
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
    let set = parsed(&sources, namespaces, &printer, context)?;
    if set.documents.is_empty() {
        return Err(Failure::usage(NOTHING_GIVEN).hint("examples/ holds manifests to begin with"));
    }
    Ok(Input::new(set.documents, Manager::Person, true))
}

/// What is told where manifests have nothing of ours.
pub const NOTHING_GIVEN: &str = "what was given holds no Certificate, CertificateRequest, Issuer, ClusterIssuer or Secret, nor an Ingress, Gateway or ListenerSet that asks for one";

/// Reads the documents of sources; warnings and what was left alone are said on stderr.
fn parsed(
    sources: &[manifest::Source],
    namespaces: Namespaces<'_>,
    printer: &Printer,
    context: &Context,
) -> Result<manifest::Set, Failure> {
    let set = match manifest::read(sources, namespaces) {
        Ok(set) => set,
        Err(complaints) => return Err(refused(printer, &complaints)),
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
    for line in set.skipped.iter().filter_map(|skipped| kustomized(&skipped.location.file)) {
        printer.hint(&line);
    }
    for skipped in &set.skipped {
        if let Some(annotation) = skipped.asks_for_certificate {
            let (kind, name) = (&skipped.kind, &skipped.name);
            printer.note(&format!(
                "{}: {kind} {name}: not acted on: metadata.annotations.{annotation}; a Certificate of its own does it",
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
        Err(Left::Signal(kind)) => return Err(Failure::interrupted(kind)),
        Err(Left::Panic) => {
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

/// What helps against a complaint.
fn hints(complaint: &Complaint) -> Vec<String> {
    let file = &complaint.location.file;
    if let Some(seal) = complaint.remark.seal {
        return vec![files::opening(seal, file)];
    }
    match kustomized(file) {
        Some(line) => vec![line],
        None => complaint.hint().map(str::to_owned).into_iter().collect(),
    }
}

/// How the folder of a `kustomization.yaml` is given, if a file is one.
fn kustomized(file: &str) -> Option<String> {
    let path = Path::new(file);
    let name = path.file_name().and_then(|name| name.to_str())?;
    if !["kustomization.yaml", "kustomization.yml", "Kustomization"].contains(&name) {
        return None;
    }
    let folder = path.parent().map(|folder| folder.to_string_lossy()).unwrap_or_default();
    let folder = if folder.is_empty() { "." } else { &folder };
    let order = invocation::current().like("order -f -");
    Some(format!("give what kustomize makes of it: kubectl kustomize {} | {order}", quoted(folder)))
}

fn refused(printer: &Printer, complaints: &[Complaint]) -> Failure {
    for complaint in complaints {
        let hints = hints(complaint);
        printer.error(&complaint.to_string(), &hints);
        if !complaint.excerpt.is_empty() {
            printer.note(complaint.excerpt.trim_end());
        }
    }
    Failure::of_faults(FailureKind::Usage, complaints.iter().map(fault).collect())
}

/// A complaint as programs are told of it.
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

    /// The objects as they will be applied.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The same without Certificates that are not among these.
    #[must_use]
    pub fn only(&self, certificates: &BTreeSet<Key>) -> Self {
        let all = self.records.iter().cloned().zip(self.locations.iter().cloned());
        let stays = |key: &Key| !key.kind.is_issued() || certificates.contains(key);
        let (records, locations) = all.filter(|(record, _)| stays(&record.key)).unzip();
        let (asked, issuer) = (self.asked.clone(), self.issuer.clone());
        Self { records, locations, asked, issuer, ..*self }
    }

    /// The same with Certificates for which others among them ask, each with the place of its asker, and without those.
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

    /// Tells whether it is a Certificate that no manifest holds.
    pub fn is_asked(&self, key: &Key) -> bool {
        self.asked.contains(key)
    }

    /// Where a manifest begins.
    pub fn location(&self, index: usize) -> Option<&Location> {
        self.locations.get(index)
    }

    /// Where the manifest of each object begins; those that were made of names have no place.
    pub fn places(&self) -> BTreeMap<Key, InputPlace> {
        let all = self.records.iter().zip(&self.locations).filter(|_| self.is_written);
        all.map(|(record, location)| (record.key.clone(), place(location))).collect()
    }

    /// Name of the first Issuer of the CA; `None` for manifests that somebody has written.
    pub fn made_issuer(&self) -> Option<&str> {
        self.issuer.as_deref()
    }

    /// Under whose name the objects are written.
    pub fn manager(&self) -> Manager {
        self.manager
    }
}

/// Whether anything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Everything is done
    None,
    /// Manifests are read and printed
    Client,
    /// The store is asked, too: a cluster with all that guards it, this machine for issuers and solvers
    Server,
}

#[cfg(test)]
pub(crate) mod tests;
