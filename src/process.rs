//! The process: runs the verb, reacts to signals, and turns the result into an exit code.

use std::io;
use std::process::{self, ExitCode};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::cli::{Command, completion};
use crate::commands::{
    account, ca, certificate, challenge, crds, delete, describe, diagnose, explain, get, order,
    probe, run, schedule, solve, status, timeline, tree, version, wait, watch,
};
use crate::context::Context;
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::context::flags::global::GlobalArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::print::colour::{Colour, Colours};
use crate::print::format::Format;
use crate::print::table::Headers;
use crate::print::talk::MessageStream;
use crate::print::{Printer, log};

/// Maximum time for a command to end after the second signal.
const EXIT_DELAY_MAX: Duration = Duration::from_secs(2);

/// Runs a command and returns the exit code of the result.
pub async fn execute(global: GlobalArgs, command: Command) -> ExitCode {
    let tone = global.log.tone();
    let colours = Colours::settle(global.color);
    // JSON logs have no colours.
    let colours = if tone.json { Colours { talk: Colour::Off, ..colours } } else { colours };
    let talk = MessageStream::new(Box::new(io::stderr()));
    talk.set_tone(tone);
    match global.log.filter() {
        Ok(filter) => log::install(filter, global.log.log_format, &talk, colours.talk),
        Err(failure) => return report(&talk, colours, &failure),
    }
    let interrupted = Interrupted::default();
    let second = second_signal(&interrupted);
    let goes_on = goes_on(&command);
    let mut context = Context::new(global, talk.clone(), colours, interrupted.clone());
    let ended = tokio::select! {
        ended = dispatch(command, &mut context) => {
            context.give_lease_back().await;
            ended
        }
        Ok(kind) = second => {
            let is_to_be_told = goes_on && !interrupted.is_told();
            Err(if is_to_be_told { Failure::interrupted(kind) } else { Failure::silent(kind) })
        }
    };
    let code = match &ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            context.print_error(failure);
            report(&talk, colours, failure)
        }
    };
    match context.write_reports(&ended).await {
        Ok(()) => code,
        Err(failure) => {
            let own = report(&talk, colours, &failure);
            // The failure of the command says more than a failed report.
            if ended.is_ok() { own } else { code }
        }
    }
}

/// Runs the body of the verb.
async fn dispatch(command: Command, context: &mut Context) -> Result<(), Failure> {
    context.choose_reports().await?;
    if needs_store(&command) {
        context.connect().await?;
        invocation::current().is_at_home_in(context.namespace());
    }
    match command {
        Command::Order(args) => order::run(*args, context).await,
        Command::Challenge(args) => challenge::run(args, context).await,
        Command::Certificate(args) => certificate::run(args, context).await,
        Command::Account(args) => account::run(args, context).await,
        Command::Describe(args) => describe::run(args, context).await,
        Command::Diagnose(args) => Box::pin(diagnose::run(*args, context)).await,
        Command::Timeline(args) => timeline::run(args, context).await,
        Command::Tree(args) => tree::run(args, context).await,
        Command::Wait(args) => wait::run(args, context).await,
        Command::Schedule(args) => schedule::run(args, context).await,
        Command::Status(args) => Box::pin(status::run(*args, context)).await,
        Command::Watch(args) => watch::run(args, context).await,
        Command::Explain(args) => explain::run(&args, context),
        Command::Get(args) => get::run(args, context).await,
        Command::Delete(args) => delete::run(args, context).await,
        Command::Run(args) => run::run(*args, context).await,
        Command::Ca(args) => ca::run(*args, context).await,
        Command::Crds(args) => crds::run(args, context),
        Command::Completion(args) => completion::run(&args, context),
        Command::Solve(args) => solve::run(args, context).await,
        Command::Probe(args) => probe::run(args, context).await,
        Command::Version(args) => version::run(&args, context),
    }
}

/// Returns whether a command can go on when the same command is started again after an interruption.
fn goes_on(command: &Command) -> bool {
    match command {
        Command::Order(args) => args.goes_on(),
        Command::Run(_) => true,
        _ => false,
    }
}

/// Returns whether a command needs a store, and so needs a cluster if `--local` is not given.
fn needs_store(command: &Command) -> bool {
    match command {
        Command::Order(args) => args.needs_store(),
        Command::Certificate(args) => args.needs_store(),
        Command::Diagnose(args) => args.needs_store(),
        Command::Account(_)
        | Command::Challenge(_)
        | Command::Describe(_)
        | Command::Timeline(_)
        | Command::Tree(_)
        | Command::Wait(_)
        | Command::Schedule(_)
        | Command::Status(_)
        | Command::Watch(_)
        | Command::Get(_)
        | Command::Delete(_)
        | Command::Run(_) => true,
        Command::Ca(_)
        | Command::Crds(_)
        | Command::Completion(_)
        | Command::Explain(_)
        | Command::Version(_)
        | Command::Probe(_)
        | Command::Solve(_) => false,
    }
}

fn report(talk: &MessageStream, colours: Colours, failure: &Failure) -> ExitCode {
    if !failure.message.is_empty() {
        let printer = Printer::new(
            Box::new(io::sink()),
            talk.clone(),
            Format::default(),
            Headers::Shown,
            colours,
        );
        printer.error(&failure.message, &failure.hints);
    }
    ExitCode::from(failure.kind.exit_code())
}

/// Watches for signals: the first asks the command to end in good order; the second ends the command. A task of its own
/// receives the signals, so that a blocked thread of the command cannot delay them.
fn second_signal(interrupted: &Interrupted) -> JoinHandle<FailureKind> {
    let (Ok(mut person), Ok(mut system)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return tokio::spawn(std::future::pending());
    };
    let interrupted = interrupted.clone();
    tokio::spawn(async move {
        let mut first = true;
        loop {
            let kind = tokio::select! {
                _ = person.recv() => FailureKind::Interrupted,
                _ = system.recv() => FailureKind::Terminated,
            };
            if !first {
                leave_soon(kind);
                return kind;
            }
            first = false;
            if kind == FailureKind::Interrupted {
                interrupted.by_person.cancel();
            } else {
                interrupted.by_system.cancel();
            }
        }
    })
}

/// Ends the process after a short time if it still runs: a disk that does not answer may block the clean-up.
#[expect(clippy::exit, reason = "nothing else ends a process whose threads are blocked")]
fn leave_soon(kind: FailureKind) {
    thread::spawn(move || {
        thread::sleep(EXIT_DELAY_MAX);
        process::exit(kind.exit_code().into())
    });
}
