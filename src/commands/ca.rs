//! `ca`: a small ACME server in this program; every line it prints says that nobody trusts it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::app::context::Context;
use crate::app::failure::Failure;
use crate::app::flags::look::LookArgs;
use crate::app::flags::output::{self, OutputArgs};
use crate::app::follow::results;
use crate::app::input::completers;
use crate::app::invocation;
use crate::ca::behaviour::{self, RequestedBehaviour};
use crate::ca::{self, Caa, Config, RecordAccount, RevocationSource};
use crate::diagnosis::failure_kind::FailureKind;
use crate::model::Identifier;
use crate::print::colour::Colour;
use crate::print::format::Format;
use crate::print::table::{Headers, NONE, Table};

/// Flags of `ca`.
#[derive(Clone, Debug, clap::Args)]
pub struct CaArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:14000",
        env = "KUBECTL_ACME_CA_LISTEN"
    )]
    pub listen: SocketAddr,
    /// Name in the server's own certificate beside localhost and 127.0.0.1, repeatable
    #[arg(long, value_name = "NAME", env = "KUBECTL_ACME_CA_NAME")]
    pub name: Vec<String>,
    /// Write the root to this file, for clients that have to trust the server
    #[arg(
        long,
        value_name = "FILE",
        default_value = "kubectl-acme-ca.pem",
        env = "KUBECTL_ACME_CA_ROOT"
    )]
    pub root: PathBuf,
    /// Seconds that clients are asked to wait between polls (Retry-After)
    #[arg(long, value_name = "SECONDS")]
    pub retry_after: Option<u32>,
    /// How many of a hundred good nonces are refused, to try a client's patience
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=99))]
    pub refuse_nonces: u8,
    /// Look at CAA records before names are taken as proven, as the CA that they call so; repeatable [default: none are looked at]
    #[arg(long, value_name = "NAME")]
    pub caa_identity: Vec<String>,
    /// Where certificates say that their revocation is told: a list, an OCSP responder
    #[arg(long, value_name = "SOURCES", value_enum, default_value = "crl")]
    pub revocation: RevocationChoice,
    /// Behave in this way, which a client has to survive; repeatable [default: as a good CA does]
    #[arg(long, value_name = "NAME[=VALUE]", add = completers::behaviours())]
    pub behave: Vec<String>,
    /// List the behaviours with what a client should do, and end
    #[arg(long)]
    pub behaviours: bool,
    /// Format of that list: json, yaml, jsonl or jsonpath=TEMPLATE
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        requires = "behaviours",
        value_parser = output::of_report,
        add = output::offered(&output::DOCUMENTS),
        env = "KUBECTL_ACME_CA_OUTPUT"
    )]
    pub output: Option<Format>,
    /// How validation looks at names
    #[command(flatten)]
    pub look: LookArgs,
}

/// Where certificates say that their revocation is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RevocationChoice {
    /// In a list, as Let's Encrypt has it
    Crl,
    /// By an OCSP responder
    Ocsp,
    /// By both
    Both,
}

impl RevocationChoice {
    fn sources(self) -> Vec<RevocationSource> {
        match self {
            Self::Crl => vec![RevocationSource::List],
            Self::Ocsp => vec![RevocationSource::Responder],
            Self::Both => vec![RevocationSource::List, RevocationSource::Responder],
        }
    }
}

/// Serves until interrupted.
///
/// # Errors
/// Fails when the port is not permitted or taken, or the root cannot be written.
pub async fn run(args: CaArgs, context: &mut Context) -> Result<(), Failure> {
    if args.behaviours {
        let output = OutputArgs { output: args.output, no_headers: false };
        return Ok(context.printer(&output).report(&report(), |_| table())?);
    }
    let mut config = Config {
        listen: args.listen,
        retry_after: args.retry_after,
        refuse_nonces_percent: args.refuse_nonces,
        caa: (!args.caa_identity.is_empty())
            .then(|| Caa { identities: args.caa_identity.clone(), account: RecordAccount::Own }),
        revocation: args.revocation.sources(),
        ..Config::default()
    };
    for name in &args.name {
        let name = Identifier::parse(name)
            .map_err(|why| Failure::usage(format!("cannot use --name {name}: {why}")))?;
        config.names.push(name);
    }
    let mut behaviours = Vec::new();
    for text in &args.behave {
        let wanted = RequestedBehaviour::parse(text).map_err(|why| {
            Failure::usage(format!("cannot use --behave {text}: {why}"))
                .hint(format!("{} ca --behaviours lists them", invocation::program()))
        })?;
        behaviours.push(wanted);
    }
    let fetcher = args.look.fetcher().await?;
    let server = ca::serve_as(config, &behaviours, Arc::new(fetcher)).await.map_err(|why| {
        Failure::new(FailureKind::Unexpected, format!("cannot serve on {}: {why}", args.listen))
            .hint("choose another port with --listen 127.0.0.1:0")
    })?;
    results::write_text(&args.root, server.tls_root_pem(), context.interrupted()).await?;
    let printer = context.printer(&OutputArgs::default());
    let line = |text: String| printer.note(&format!("[test CA, trusted by nobody] {text}"));
    if !args.listen.ip().is_loopback() {
        printer.warning(&format!(
            "the test CA listens on {}: whoever reaches it from elsewhere has this machine look at hosts of their choice; --listen 127.0.0.1:{} is for this machine alone",
            args.listen,
            args.listen.port(),
        ));
    }
    line(format!("directory: {}", server.directory_url()));
    line(format!("root, for clients' trust: {}", args.root.display()));
    line("everything is kept in memory; Ctrl-C ends it".to_owned());
    let kind = context.interrupted().wait().await;
    let asked = server.statistics();
    line(format!("ended; it was asked {asked:?}"));
    server.stop().await;
    Err(Failure::silent(kind))
}

/// The behaviours that can be asked for, for programs.
fn report() -> Value {
    let behaviours = behaviour::kit().map(|behaviour| {
        let value = behaviour.value;
        let value = value.default_value().map(|it| json!({"is": value.word(), "default": it}));
        let mut entry = json!({
            "row": behaviour.row,
            "name": behaviour.name,
            "server": behaviour.does,
            "client": behaviour.reaction,
        });
        if let Some(value) = value {
            entry["value"] = value;
        }
        entry
    });
    json!({
        "apiVersion": "kubectl-acme/v1alpha1",
        "kind": "BehaviourList",
        "behaviours": behaviours.collect::<Vec<_>>(),
    })
}

/// The behaviours that can be asked for, for people.
fn table() -> String {
    let mut table = Table::new(["ROW", "NAME", "VALUE", "THE SERVER", "THE CLIENT SHOULD"]);
    for behaviour in behaviour::kit() {
        let value = behaviour.value;
        let value = value.default_value().map(|default| format!("{} [{default}]", value.word()));
        table.row([
            behaviour.row.to_string(),
            behaviour.name.to_owned(),
            value.unwrap_or_else(|| NONE.to_owned()),
            behaviour.does.to_owned(),
            behaviour.reaction.to_owned(),
        ]);
    }
    table.render(Headers::Shown, Colour::Off)
}
