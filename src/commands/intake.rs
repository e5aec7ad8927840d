//! What a command is given: manifests, or a few names from which they are made.

use clap::ValueEnum;

use super::context::{Context, OutputArgs};
use super::failure::{Failure, Kind as FailureKind};
use super::files::{self, Depth};
use crate::cli;
use crate::model::manifest::{self, Complaint, Namespaces, Set};
use crate::model::quick::{self, Server, Wish};
use crate::model::{Identifier, Record};
use crate::print::{Printer, Shape, columns, document};

/// Flags that say what to work on.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "What to issue")]
pub struct IntakeArgs {
    /// Manifests: files, folders, or - for standard input; repeatable
    #[arg(long = "filename", short = 'f', value_name = "PATH", num_args = 1.., conflicts_with = "domain")]
    pub files: Vec<String>,
    /// Read folders below folders, too
    #[arg(long, short = 'R')]
    pub recursive: bool,
    /// Name or IP address to certify in place of manifests; repeatable
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub domain: Vec<String>,
    /// Contact of the account, with --domain
    #[arg(long, value_name = "ADDRESS")]
    pub email: Option<String>,
    /// CA, with --domain: letsencrypt, letsencrypt-staging or the URL of a directory
    #[arg(long, value_name = "CA", default_value = "letsencrypt")]
    pub server: String,
    /// Only print what would be applied
    #[arg(long, value_name = "HOW", default_value = "none", value_enum)]
    pub dry_run: DryRun,
}

/// Whether anything is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Everything is done
    None,
    /// Manifests are read and printed
    Client,
    /// The same on this machine: there is no server to ask
    Server,
}

/// What was read.
#[derive(Clone, Debug)]
pub struct Intake {
    set: Set,
}

impl IntakeArgs {
    /// Tells whether nothing is to be done.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run != DryRun::None
    }

    /// Reads everything; warnings and what was left alone are said on stderr.
    ///
    /// # Errors
    /// Fails when a manifest is wrong (every mistake is told), or when there is nothing we read.
    pub fn read(&self, context: &Context, output: &OutputArgs) -> Result<Intake, Failure> {
        let printer = context.printer(output);
        let namespaces =
            Namespaces { given: context.global.namespace.as_deref(), default: context.namespace() };
        let sources = match (&self.files[..], &self.domain[..]) {
            ([], []) => {
                return Err(Failure::usage("nothing to issue: neither -f nor --domain is given")
                    .hint(cli::like("order -f MANIFEST.yaml"))
                    .hint(cli::like("order --domain www.example.com")));
            }
            ([], domains) => vec![self.made(domains, context.namespace())?],
            (paths, _) => {
                if self.email.is_some() {
                    printer.note("--email is for --domain: an Issuer's manifest names its own");
                }
                self.sources(&printer, paths)?
            }
        };
        let set = match manifest::read(&sources, namespaces) {
            Ok(set) => set,
            Err(complaints) => return Err(refused(&printer, &complaints)),
        };
        for warning in &set.warnings {
            printer.warning(&warning.to_string());
        }
        if !set.skipped.is_empty() {
            let skipped: Vec<String> = set
                .skipped
                .iter()
                .map(|s| format!("{} {} ({})", s.kind, s.name, s.location))
                .collect();
            printer.note(&format!("left alone: {}", skipped.join(", ")));
        }
        if set.documents.is_empty() {
            return Err(Failure::usage(
                "nothing to issue: there is no Certificate, Issuer, ClusterIssuer or Secret in what was given",
            )
            .hint("examples/ holds manifests to begin with; --domain NAME needs none"));
        }
        Ok(Intake { set })
    }

    fn sources(
        &self,
        printer: &Printer,
        paths: &[String],
    ) -> Result<Vec<manifest::Source>, Failure> {
        let depth = if self.recursive { Depth::Recursive } else { Depth::Flat };
        files::read(paths, depth, &mut std::io::stdin()).map_err(|errors| {
            for error in errors {
                let hints: Vec<String> = error.hint().into_iter().collect();
                printer.error(&error.to_string(), &hints);
            }
            Failure::silent(FailureKind::Usage)
        })
    }

    /// Manifests for a few names, read like any others.
    fn made(&self, domains: &[String], namespace: &str) -> Result<manifest::Source, Failure> {
        let mut names = Vec::new();
        for domain in domains {
            let name = Identifier::parse(domain)
                .map_err(|why| Failure::usage(format!("cannot use --domain {domain}: {why}")))?;
            names.push(name);
        }
        let server = Server::parse(&self.server)
            .map_err(|why| Failure::usage(format!("cannot use --server: {why}")))?;
        let mut names = names.into_iter();
        let Some(first) = names.next() else {
            return Err(Failure::usage("--domain names nothing"));
        };
        let wish = Wish {
            first,
            more: names.collect(),
            email: self.email.clone(),
            server,
            namespace: namespace.to_owned(),
        };
        let records = quick::manifests(&wish);
        let documents: Vec<String> =
            records.iter().map(|record| document::yaml(&record.object)).collect();
        Ok(manifest::Source { name: "--domain".to_owned(), text: documents.join("---\n") })
    }
}

fn refused(printer: &Printer, complaints: &[Complaint]) -> Failure {
    for complaint in complaints {
        let hints: Vec<&str> = complaint.hint().into_iter().collect();
        printer.error(&complaint.to_string(), &hints);
        if !complaint.excerpt.is_empty() {
            printer.note(complaint.excerpt.trim_end());
        }
    }
    Failure::silent(FailureKind::Usage)
}

impl Intake {
    /// The objects as they will be applied.
    pub fn records(&self) -> Vec<Record> {
        self.set.documents.iter().map(|document| document.record.clone()).collect()
    }

    /// Prints the objects: as documents where one is asked for, else by name as kubectl does.
    ///
    /// # Errors
    /// Fails when stdout cannot be written.
    pub fn print(&self, context: &Context, output: &OutputArgs) -> Result<(), Failure> {
        let mut printer = context.printer(output);
        let records = self.records();
        if printer.format().is_for_people() {
            let name = |r: &Record| columns::qualified_name(&r.object) + " created (dry run)\n";
            return Ok(printer.data(&records.iter().map(name).collect::<String>())?);
        }
        if let crate::print::format::Format::Yaml = printer.format() {
            let documents: Vec<String> =
                records.iter().map(|record| document::yaml(&record.object)).collect();
            return Ok(printer.data(&documents.join("---\n"))?);
        }
        let groups: Vec<crate::print::Group<'_>> = records
            .iter()
            .map(|r| crate::print::Group { kind: r.key.kind, objects: vec![&r.object] })
            .collect();
        let shape = if records.len() == 1 { Shape::One } else { Shape::Many };
        Ok(printer.resources(&groups, shape, columns::Namespaces::Hidden, context.now())?)
    }
}
