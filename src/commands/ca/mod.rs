//! `ca`: a small ACME server in this program; every line that the server prints says that nobody trusts the server.

mod behaviours;
mod flags;
mod settings;

use std::process;
use std::sync::Arc;

use serde_json::{Value, json};

pub use self::flags::{CaArgs, IssuanceArgs, RevocationChoice, ServerBehaviourArgs};
use crate::ca::{self, Server};
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::context::{Context, output_files};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::print::format::Format;

/// Serves until interrupted.
///
/// # Errors
/// Fails when a flag cannot be used, a port is not permitted or taken, or the root cannot be written.
pub async fn run(args: CaArgs, context: &mut Context) -> Result<(), Failure> {
    let output = OutputArgs { output: args.output.clone(), no_headers: false };
    if args.temper.behaviours {
        let report = behaviours::report();
        return Ok(context.printer(&output).report(&report, |_| behaviours::table())?);
    }
    let mut fetcher = args.look.fetcher().await?;
    let config = settings::config(&args, &mut fetcher)?;
    let behaviours = settings::behaviours(&args.temper.behave)?;
    let seed =
        (config.shuffled || ![0, 100].contains(&config.reuse_percent)).then_some(config.seed);
    let server = ca::serve_as(config, &behaviours, Arc::new(fetcher)).await.map_err(|why| {
        Failure::new(FailureKind::Unexpected, format!("cannot serve on {}: {why}", places(&args)))
            .hint("choose another port with --listen 127.0.0.1:0")
    })?;
    output_files::write_text(&args.root, server.tls_root_pem(), context.interrupted()).await?;
    let mut printer = context.printer(&output);
    let talk = printer.talk();
    let line = |text: String| talk.line(&format!("[test CA, trusted by nobody] {text}"));
    if !args.listen.ip().is_loopback() {
        printer.warning(&format!(
            "the test CA listens on {}: anyone who reaches the server can make this machine connect to hosts of their choice; limit it to this machine with --listen 127.0.0.1:{}",
            args.listen,
            args.listen.port(),
        ));
        if args.name.is_empty() {
            printer.hint("clients on other machines need a name of the server in its certificate: --name NAME");
        }
    }
    line(format!("directory: {}", server.directory_url()));
    line(format!("root certificate, for clients to trust: {}", args.root.display()));
    if let Some(address) = server.management() {
        line(format!("management: http://{address}"));
    }
    if let Some(seed) = seed {
        line(format!("random choices: --seed {seed}"));
    }
    line("everything is kept in memory; Ctrl-C ends the server".to_owned());
    let report = report(&args, &server, seed);
    match printer.format() {
        // A program that starts the server reads one line, and goes on.
        Format::Json => printer.data(&format!("{report}\n"))?,
        _ => printer.report(&report, |_| String::new())?,
    }
    let kind = context.interrupted().wait().await;
    let asked = server.statistics();
    line(format!("ended; requests: {asked:?}"));
    server.stop().await;
    Err(Failure::silent(kind))
}

fn places(args: &CaArgs) -> String {
    let listen = args.listen.to_string();
    args.management
        .map_or_else(|| listen.clone(), |management| format!("{listen} and {management}"))
}

/// URLs of the server, for programs.
fn report(args: &CaArgs, server: &Server, seed: Option<u64>) -> Value {
    let mut report = json!({
        "apiVersion": "kubectl-acme/v1alpha1",
        "kind": "TestCA",
        "directory": server.directory_url(),
        "root": args.root,
        "pid": process::id(),
    });
    if let Some(address) = server.management() {
        report["management"] = format!("http://{address}").into();
    }
    if let Some(seed) = seed {
        report["seed"] = seed.into();
    }
    report
}
