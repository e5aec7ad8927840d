//! `diagnose`: why a certificate does not arrive.

pub mod bundle;
pub mod ending;
pub mod findings_flags;
pub mod report;
pub mod reproduced;
pub mod undefined;
pub mod watched_looks;

use std::path::PathBuf;
use std::sync::Arc;

use self::ending::{ToldParts, tell};
use self::findings_flags::FindingsArgs;
use self::undefined::defined;
use self::watched_looks::WatchedLooks;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::look::{LookArgs, NameserverArgs};
use crate::context::flags::slots::SlotArgs;
use crate::diagnosis::rules;
use crate::dns::server::Server;
use crate::evidence::answer_flags::AnswerArgs;
use crate::evidence::looking::LookMeans;
use crate::evidence::targets::{FoundTargets, UnreadyScope, is_domain, of_manifests, targets};
use crate::evidence::verdict::{FailOn, SeenCase, verdict};
use crate::input;
use crate::input::selector::LabelSelector;
use crate::input::{Input, completers};
use crate::issue::flags::probe_pod::ProbePodArgs;
use crate::store::Store;
use crate::store::local::Access;
use crate::store::memory::MemoryStore;
use crate::store::overlay::Overlay;

/// Flags of `diagnose`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct DiagnoseArgs {
    /// KIND/NAME, the name of a Certificate, or a domain; every Certificate and Issuer that is not ready when there is none
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
    /// Look at manifests before they are applied: files, folders, - for standard input
    ///
    /// They are laid over what is there, and nothing is written. Repeatable, or with commas.
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
    /// Look again every few seconds until nothing is wrong, and what is being issued is there
    #[arg(long, short = 'w', conflicts_with = "probe_image")]
    pub watch: bool,
    /// Show the command lines by which you see the same as each observation
    #[arg(long)]
    pub show_commands: bool,
    /// Write what was observed to a file, too: without keys and tokens, to be sent to others
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Output")]
    pub bundle: Option<PathBuf>,
    /// Judge what such a file has, in place of looking
    #[arg(long, hide_short_help = true, value_name = "FILE", conflicts_with_all = ["what", "all_namespaces", "selector", "bundle", "files", "watch", "probe_image"])]
    pub from: Option<PathBuf>,
    /// What ends it with an exit code that is not 0
    ///
    /// Errors end it with 10; warnings end it with 11 where they count.
    #[arg(long, value_name = "SEVERITY", default_value = "error", value_enum)]
    pub fail_on: FailOn,
    /// Where answers are given
    #[command(flatten)]
    pub answers: AnswerArgs,
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
    /// How to look from inside the cluster
    #[command(flatten)]
    pub probe_pod: ProbePodArgs,
    /// How many challenges run at once
    #[command(flatten)]
    pub slots: SlotArgs,
    /// How results are written
    #[command(flatten)]
    pub output: FindingsArgs,
}

impl DiagnoseArgs {
    /// Tells whether there must be a store: a domain can be looked at without one.
    pub fn needs_store(&self) -> bool {
        let are_domains = !self.what.is_empty() && self.what.iter().all(|word| is_domain(word));
        self.from.is_none() && self.files.is_empty() && !are_domains
    }
}

/// Runs `diagnose`. Nothing is written but a Pod that looks, where one is asked for, and nothing is spent at a CA.
///
/// # Errors
/// Fails with 10 when something is wrong, with 11 where warnings count or there is no Certificate; and when an object is not there.
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
    let mut watched = args.watch.then(|| WatchedLooks::new(context));
    loop {
        let seen = look(&args, input.as_ref(), context).await?;
        let findings = rules::judge(&seen.case);
        let kind = verdict(&seen, &findings, args.fail_on);
        let mark: Vec<_> = findings.iter().map(|f| (f.cause, f.subject.clone(), f.grade)).collect();
        // What is as it was at the last look is not told again.
        if told.as_ref() != Some(&mark) {
            let what = ToldParts {
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
        // What manifests ask for is due until they are applied.
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

/// Manifests that were given, and the store that they are laid over, or why there is none.
type GivenManifests = (Input, Option<Arc<dyn Store>>, Option<String>);

/// Looks at what the words or the manifests are about; a bundle is only judged.
async fn look(
    args: &DiagnoseArgs,
    given: Option<&GivenManifests>,
    context: &mut Context,
) -> Result<SeenCase, Failure> {
    let mut seen = SeenCase::default();
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
    let means = LookMeans {
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

/// The store, where there is one; why not, where domains or manifests are looked at without.
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
