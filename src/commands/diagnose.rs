//! `diagnose`: why a certificate does not arrive.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::app::context::Context;
use crate::app::diagnose::investigator::Investigator;
use crate::app::diagnose::targets::{UnreadyScope, is_domain, targets};
use crate::app::diagnose::{bundle, report};
use crate::app::failure::Failure;
use crate::app::flags::look::{LookArgs, NameserverArgs};
use crate::app::flags::output::ReportArgs;
use crate::app::flags::slots::SlotArgs;
use crate::app::follow::results;
use crate::app::input::completers;
use crate::app::input::selector::LabelSelector;
use crate::app::lead;
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::failure_kind::FailureKind;
use crate::diagnosis::finding::Finding;
use crate::diagnosis::rules;
use crate::dns::server::Server;
use crate::print::Printer;
use crate::store::Store;
use crate::store::local::Access;

/// Flags of `diagnose`.
#[derive(Debug, clap::Args)]
pub struct DiagnoseArgs {
    /// KIND/NAME, the name of a Certificate, or a domain; every Certificate that is not ready when there is none
    ///
    /// ingress/NAME, gateway/NAME, httproute/NAME, service/NAME, pod/NAME and secret/NAME lead to what belongs to them.
    #[arg(value_name = "KIND/NAME|DOMAIN", add = completers::objects())]
    pub what: Vec<String>,
    /// Look at the Certificates of all namespaces
    #[arg(long, short = 'A', conflicts_with = "what")]
    pub all_namespaces: bool,
    /// Only Certificates with these labels, such as app=web
    #[arg(long, short = 'l', value_name = "LABELS", conflicts_with = "what")]
    pub selector: Option<LabelSelector>,
    /// Write what was observed to a file, too: without keys and tokens, to be sent to others
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Output")]
    pub bundle: Option<PathBuf>,
    /// Judge what such a file has, in place of looking
    #[arg(long, hide_short_help = true, value_name = "FILE", conflicts_with_all = ["what", "all_namespaces", "selector", "bundle"])]
    pub from: Option<PathBuf>,
    /// What ends it with an exit code that is not 0
    ///
    /// Errors end it with 10; warnings end it with 11 where they count.
    #[arg(long, value_name = "SEVERITY", default_value = "error", value_enum)]
    pub fail_on: FailOn,
    /// Where answers to HTTP-01 are given on this machine [default: port 80]
    ///
    /// With --local, while nobody issues, they are given there for as long as it is looked: whether the way leads here is seen.
    #[arg(
        long,
        value_name = "ADDR:PORT",
        value_delimiter = ',',
        help_heading = "Looking at names"
    )]
    pub http01_listen: Vec<SocketAddr>,
    /// Where answers are given as files on this machine; then nobody listens
    #[arg(long, hide_short_help = true, value_name = "DIR", help_heading = "Looking at names")]
    pub http01_webroot: Option<PathBuf>,
    /// Resolvers elsewhere to compare with: ADDR:PORT, or https://... for DNS over HTTPS; repeatable
    ///
    /// They are told the names that are looked at. None is asked without this flag.
    #[arg(
        long,
        value_name = "SERVER",
        value_delimiter = ',',
        value_parser = |text: &str| Server::parse(text),
        help_heading = "Looking at names"
    )]
    pub resolver: Vec<Server>,
    /// How to look
    #[command(flatten)]
    pub look: LookArgs,
    /// Whom to ask about DNS-01
    #[command(flatten)]
    pub nameservers: NameserverArgs,
    /// How many challenges run at once
    #[command(flatten)]
    pub slots: SlotArgs,
    /// How results are written
    #[command(flatten)]
    pub output: ReportArgs,
}

/// What counts as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Causes that keep a certificate from being issued
    Error,
    /// Those, and what may become one
    Warning,
}

impl DiagnoseArgs {
    /// Tells whether there must be a store: a domain can be looked at without one.
    pub fn needs_store(&self) -> bool {
        let are_domains = !self.what.is_empty() && self.what.iter().all(|word| is_domain(word));
        self.from.is_none() && !are_domains
    }
}

/// Runs `diagnose`. Nothing is written, and nothing is spent at a CA.
///
/// # Errors
/// Fails with 10 when something is wrong, with 11 where warnings count; and when an object is not there.
pub async fn run(args: DiagnoseArgs, context: &mut Context) -> Result<(), Failure> {
    let (case, absent) = match &args.from {
        Some(path) => (Box::new(bundle::open(path)?), None),
        None => look(&args, context).await?,
    };
    let mut printer = context.printer(&(&args.output).into());
    if let Some(path) = &args.bundle {
        results::write_text(path, &bundle::text(&case)?, context.interrupted()).await?;
    }
    let findings = rules::judge(&case);
    let kind = verdict(&findings, args.fail_on);
    let exit_code = kind.map_or(0, FailureKind::exit_code);
    let width = printer.width();
    let document = report::document(&case, &findings, exit_code);
    if !findings.is_empty() || !printer.format().is_for_people() {
        printer.report(&document, |colour| {
            report::page(&findings, case.in_cluster, width, colour)
                + &report::views(&case, &findings, width, colour)
        })?;
    }
    if let Some(why) = absent {
        printer.note(&format!("objects were not looked at: {why}"));
    }
    conclude(&printer, &case, &findings);
    kind.map_or(Ok(()), |kind| Err(Failure::silent(kind)))
}

/// Looks at what the words are about; and says why objects were left out, where they were.
async fn look(
    args: &DiagnoseArgs,
    context: &mut Context,
) -> Result<(Box<Case>, Option<String>), Failure> {
    let (store, absent) = store(args, context).await?;
    let (all_namespaces, selector) = (args.all_namespaces, args.selector.as_ref());
    let unready = UnreadyScope { all_namespaces, selector };
    let targets = targets(&args.what, unready, store.as_ref(), context).await?;
    let fetcher = args.look.fetcher().await?;
    let zones = args.nameservers.zones(&args.look, &fetcher).await?;
    let driver = match &store {
        Some(_) => driver(context).await,
        None => DriverCase::Unknown,
    };
    let limits = args.slots.limits();
    let listen = args.http01_webroot.is_none().then(|| args.http01_listen.clone());
    let investigator =
        Investigator::new(store, (fetcher, zones), (driver, limits), listen, context)
            .comparing_with(args.resolver.clone());
    tokio::select! {
        looked = investigator.look(&targets) => Ok((Box::new(looked?), absent)),
        kind = context.interrupted().wait() => Err(Failure::silent(kind)),
    }
}

/// The store, where there is one; why not, where domains are looked at without.
async fn store(
    args: &DiagnoseArgs,
    context: &mut Context,
) -> Result<(Option<Arc<dyn Store>>, Option<String>), Failure> {
    if args.needs_store() {
        return Ok((Some(context.store(Access::ReadOnly).await?), None));
    }
    if let Err(failure) = context.connect().await {
        return Ok((None, Some(failure.message)));
    }
    match context.store(Access::ReadOnly).await {
        Ok(store) => Ok((Some(store), None)),
        Err(failure) => Ok((None, Some(failure.message))),
    }
}

/// Who drives; whoever may not see that is told nothing of it.
async fn driver(context: &Context) -> DriverCase {
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

/// With what the command ends.
fn verdict(findings: &[Finding], fail_on: FailOn) -> Option<FailureKind> {
    if findings.iter().any(Finding::is_error) {
        return Some(FailureKind::CausesFound);
    }
    let counts = fail_on == FailOn::Warning && findings.iter().any(Finding::is_warning);
    counts.then_some(FailureKind::WarningsFound)
}

fn conclude(printer: &Printer, case: &Case, findings: &[Finding]) {
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    let warnings = findings.iter().filter(|finding| finding.is_warning()).count();
    let is_nothing =
        case.certificates.is_empty() && case.issuers.is_empty() && case.names.is_empty();
    let line = match (is_nothing, errors, warnings) {
        (true, _, _) => "every Certificate is ready".to_owned(),
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
    if case.driver == DriverCase::Nobody && case.certificates.iter().any(|of| of.due.is_some()) {
        printer.note(lead::NOBODY_DRIVES);
    }
}
