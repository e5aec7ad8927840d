//! `status`: shows the state of a store and its faults on one screen.

pub mod page;
pub mod store_status;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::look::{LookArgs, NameserverArgs};
use crate::context::flags::output::{DOCUMENT_FORMATS, OutputArgs, of_report, offered};
use crate::context::flags::slots::SlotArgs;
use crate::diagnosis::finding::Finding;
use crate::diagnosis::rules;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::evidence::answer_flags::AnswerArgs;
use crate::evidence::looking::DiagnosisMeans;
use crate::evidence::targets::{FoundTargets, UnreadyScope, targets};
use crate::evidence::verdict::{FailOn, ObservedCase, tell_nothing, verdict};
use crate::hints::invocation;
use crate::input::selector::LabelSelector;
use crate::print::format::Format;

/// Flags of `status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Show the status of all namespaces
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Only Certificates with these labels, such as app=web
    #[arg(long, short = 'l', value_name = "LABELS")]
    pub selector: Option<LabelSelector>,
    /// Format: json, yaml, jsonl or jsonpath=TEMPLATE
    ///
    /// jsonpath-as-json=TEMPLATE writes what a template finds as JSON.
    #[arg(long, short, value_name = "FORMAT", value_parser = of_report, add = offered(&DOCUMENT_FORMATS), help_heading = "Output")]
    pub output: Option<Format>,
    /// Places of answers on this machine
    #[command(flatten)]
    pub answers: AnswerArgs,
    /// Flags of lookups and connections
    #[command(flatten)]
    pub look: LookArgs,
    /// Name servers for DNS-01
    #[command(flatten)]
    pub nameservers: NameserverArgs,
    /// Limit of challenges that run at once
    #[command(flatten)]
    pub slots: SlotArgs,
}

/// Runs `status`. Writes nothing, and spends nothing at a CA.
///
/// # Errors
/// Fails with 10 when something is stuck, with 2 or 11 when there is no Certificate, and when the store cannot be read.
pub async fn run(args: StatusArgs, context: &mut Context) -> Result<(), Failure> {
    let store = context.existing_store().await?;
    let output = OutputArgs { output: args.output.clone(), no_headers: false };
    let mut printer = context.printer(&output);
    let namespace = (!args.all_namespaces).then(|| context.namespace().to_owned());
    let labels = args.selector.as_ref();
    let unready = UnreadyScope { all_namespaces: args.all_namespaces, selector: labels };
    let FoundTargets { targets, nothing } = targets(&[], unready, Some(&store), context).await?;
    let scope = (namespace.as_deref(), labels);
    let status = store_status::read(&store, scope, args.slots.limits(), context).await?;
    let mut seen = ObservedCase { nothing, ..ObservedCase::default() };
    let means = DiagnosisMeans {
        answers: &args.answers,
        look: &args.look,
        nameservers: &args.nameservers,
        resolvers: &[],
        slots: &args.slots,
        probe: None,
    };
    means.look(Some(store), &targets, &mut seen, context).await?;
    let findings = rules::judge(&seen.case);
    let kind = verdict(&seen, &findings, FailOn::Error);
    let (now, width) = (context.now(), printer.width());
    let exit_code = kind.map_or(0, FailureKind::exit_code);
    let report = page::document(&status, &findings, now, exit_code);
    printer.report(&report, |colour| {
        page::page(&status, &findings, (now, args.all_namespaces), width, colour)
    })?;
    if let Some(nothing) = &seen.nothing {
        tell_nothing(&printer, nothing);
    } else if findings.iter().any(|it| Finding::is_error(it) || Finding::is_warning(it)) {
        let all = if args.all_namespaces { " -A" } else { "" };
        printer.note(&format!("more: {}", invocation::current().like(&format!("diagnose{all}"))));
    }
    kind.map_or(Ok(()), |kind| Err(Failure::silent(kind)))
}
