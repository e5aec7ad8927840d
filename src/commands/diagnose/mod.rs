//! `diagnose`: finds the cause if a certificate is not issued.

pub mod bundle;
pub mod ending;
pub mod findings_flags;
pub mod report;
pub mod reproduced;
pub mod undefined;
pub mod watched_looks;

use std::path::PathBuf;
use std::sync::Arc;

use self::ending::{OutputParts, tell};
use self::findings_flags::FindingsArgs;
use self::undefined::defined;
use self::watched_looks::WatchedRounds;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::look::{LookArgs, NameserverArgs};
use crate::context::flags::slots::SlotArgs;
use crate::diagnosis::rules;
use crate::dns::server::Server;
use crate::evidence::answer_flags::AnswerArgs;
use crate::evidence::looking::DiagnosisMeans;
use crate::evidence::targets::{FoundTargets, UnreadyScope, is_domain, of_manifests, targets};
use crate::evidence::verdict::{FailOn, ObservedCase, verdict};
use crate::input::selector::LabelSelector;
use crate::input::{self, Input, completers};
use crate::issue::flags::probe_pod::ProbePodArgs;
use crate::store::Store;
use crate::store::local::Access;
use crate::store::memory::MemoryStore;
use crate::store::overlay::Overlay;

/// Flags of `diagnose`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct DiagnoseArgs {
    /// KIND/NAME, the name of a Certificate, or a domain; without any, every Certificate and Issuer that is not ready
    ///
    /// ingress/NAME, gateway/NAME, httproute/NAME, service/NAME, pod/NAME and secret/NAME lead to the objects of each.
    #[arg(value_name = "KIND/NAME|DOMAIN", add = completers::objects())]
    pub what: Vec<String>,
    /// Check the Certificates of all namespaces
    #[arg(long, short = 'A', conflicts_with = "what")]
    pub all_namespaces: bool,
    /// Only Certificates with these labels, such as app=web
    #[arg(long, short = 'l', value_name = "LABELS", conflicts_with = "what")]
    pub selector: Option<LabelSelector>,
    /// Check manifests before they are applied: files, folders, - for standard input
    ///
    /// The manifests replace stored objects for this command only, and nothing is written. Repeatable, or with commas.
    #[arg(
        long = "filename",
        short = 'f',
        value_name = "PATH",
        num_args = 1..,
        value_delimiter = ',',
        conflicts_with_all = ["what", "all_namespaces", "selector"]
    )]
    pub files: Vec<String>,
    /// Read folders below folders, too
    #[arg(long, short = 'R', hide_short_help = true, requires = "files")]
    pub recursive: bool,
    /// Check again every few seconds until nothing is wrong and no Certificate is being issued
    #[arg(long, short = 'w', conflicts_with = "probe_image")]
    pub watch: bool,
    /// Show command lines that reproduce each observation
    #[arg(long)]
    pub show_commands: bool,
    /// Also write the observations to a file, without keys and tokens, to send to others
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Output")]
    pub bundle: Option<PathBuf>,
    /// Diagnose from a file of --bundle, without new observations
    #[arg(long, hide_short_help = true, value_name = "FILE", conflicts_with_all = ["what", "all_namespaces", "selector", "bundle", "files", "watch", "probe_image"])]
    pub from: Option<PathBuf>,
    /// Lowest severity that gives an exit code other than 0
    ///
    /// Errors give exit code 10; warnings give 11 if they count.
    #[arg(long, value_name = "SEVERITY", default_value = "error", value_enum)]
    pub fail_on: FailOn,
    /// Places of answers on this machine
    #[command(flatten)]
    pub answers: AnswerArgs,
    /// Other resolvers to compare with: ADDR:PORT, or https://... for DNS over HTTPS; repeatable
    ///
    /// These resolvers get the names that are looked up. Without this flag none of them is asked.
    #[arg(
        long,
        value_name = "SERVER",
        value_delimiter = ',',
        value_parser = |text: &str| Server::parse(text),
        help_heading = "Looking at names"
    )]
    pub resolver: Vec<Server>,
    /// Flags of lookups and connections
    #[command(flatten)]
    pub look: LookArgs,
    /// Name servers for DNS-01
    #[command(flatten)]
    pub nameservers: NameserverArgs,
    /// Flags of probe Pods inside the cluster
    #[command(flatten)]
    pub probe_pod: ProbePodArgs,
    /// Limit of challenges that run at once
    #[command(flatten)]
    pub slots: SlotArgs,
    /// Flags of the output
    #[command(flatten)]
    pub output: FindingsArgs,
}

impl DiagnoseArgs {
    /// Returns whether the command needs a store: a domain can be diagnosed without a store.
    pub fn needs_store(&self) -> bool {
        let are_domains = !self.what.is_empty() && self.what.iter().all(|word| is_domain(word));
        self.from.is_none() && self.files.is_empty() && !are_domains
    }
}

/// Runs `diagnose`. Writes nothing except a probe Pod on request, and spends nothing at a CA.
///
/// # Errors
/// Fails with 10 on errors, with 11 if warnings count or there is no Certificate; also when an object is not found.
pub async fn run(args: DiagnoseArgs, context: &mut Context) -> Result<(), Failure> {
    let output = (&args.output).into();
    let input = match &args.files[..] {
        [] => None,
        files => {
            let (store, absent) = store(&args, context).await?;
            let read = input::manifests(files, args.recursive, context, &output).await?;
            Some((read, store, absent))
        }
    };
    let mut printer = context.printer(&output);
    let mut told = None;
    let mut watched = args.watch.then(|| WatchedRounds::new(context));
    loop {
        let seen = observe(&args, input.as_ref(), context).await?;
        let findings = rules::judge(&seen.case);
        let kind = verdict(&seen, &findings, args.fail_on);
        let mark: Vec<_> = findings.iter().map(|f| (f.cause, f.subject.clone(), f.grade)).collect();
        // Unchanged findings are not printed again.
        if told.as_ref() != Some(&mark) {
            let what = OutputParts {
                bundle: args.bundle.as_deref(),
                has_commands: args.show_commands,
                is_foreseen: !args.files.is_empty(),
            };
            tell(&seen, (&findings, kind), what, (&mut printer, context)).await?;
            told = Some(mark);
        }
        let Some(watched) = watched.as_mut().filter(|_| !printer.is_closed()) else {
            return kind.map_or(Ok(()), |kind| Err(Failure::silent(kind)));
        };
        watched.keep(&seen.case, &findings, context.now());
        // Certificates of manifests are due until the manifests are applied.
        let goes_on = args.files.is_empty() && watched.goes_on(&seen.case);
        if kind.is_none() && !goes_on {
            watched.finish();
            return Ok(());
        }
        if let Some(kind) = watched.pause(context).await {
            watched.finish();
            return Err(Failure::silent(kind));
        }
    }
}

/// Given manifests, the store below them, and the reason if there is no store.
type GivenManifests = (Input, Option<Arc<dyn Store>>, Option<String>);

/// Observes the targets of the words or of the manifests; reads a bundle in place of new observations.
async fn observe(
    args: &DiagnoseArgs,
    given: Option<&GivenManifests>,
    context: &mut Context,
) -> Result<ObservedCase, Failure> {
    let mut seen = ObservedCase::default();
    if let Some(path) = &args.from {
        seen.case = Box::new(bundle::open(path)?);
        return Ok(seen);
    }
    let (store, targets) = if let Some((input, below, absent)) = given {
        seen.absent.clone_from(absent);
        seen.places = input.places();
        let below = defined(below.clone(), &mut seen, context).await;
        let below = below.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let records = input.records();
        let above: Arc<dyn Store> = Arc::new(Overlay::of(below, records).await?);
        let targets = of_manifests(records);
        (Some(above), FoundTargets { targets, nothing: None })
    } else {
        let (store, absent) = store(args, context).await?;
        seen.absent = absent;
        let store = defined(store, &mut seen, context).await;
        let store = store.map(|below| -> Arc<dyn Store> { Arc::new(Overlay::over(below)) });
        let (all_namespaces, selector) = (args.all_namespaces, args.selector.as_ref());
        let unready = UnreadyScope { all_namespaces, selector };
        let targets = targets(&args.what, unready, store.as_ref(), context).await?;
        (store, targets)
    };
    let FoundTargets { targets, nothing } = targets;
    seen.nothing = nothing;
    let means = DiagnosisMeans {
        answers: &args.answers,
        look: &args.look,
        nameservers: &args.nameservers,
        resolvers: &args.resolver,
        slots: &args.slots,
        probe: Some(&args.probe_pod),
    };
    means.look(store, &targets, &mut seen, context).await?;
    Ok(seen)
}

/// Opens the store; for domains and manifests, returns the reason in place of a store that cannot be opened.
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
