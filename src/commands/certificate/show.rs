//! `certificate show`: shows the contents of a certificate, and whether they fit the key, the chain and the Certificate.

use std::path::PathBuf;

use serde_json::json;

use super::inspect::inquiry::Inquiry;
use super::inspect::servers::ServerInspector;
use super::inspect::{CertificatePlace, FoundCertificate, files, servers, stored};
use crate::acme::PrivateKey;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::duration;
use crate::context::flags::look::LookArgs;
use crate::context::flags::output::ReportArgs;
use crate::input::completers;
use crate::model::certificate_report::{
    CertificateReport, CertificateSource, ReportedCertificate, SourceKind,
};
use crate::model::{Duration, Kind, ObjectName};
use crate::print::certificate;
use crate::print::table::Headers;
use crate::store::local::Access;

/// Flags of `certificate show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Names of Certificates, certificaterequest/NAME, secret/NAME, files and folders (PEM or DER, - for standard input), HOST:PORT of TLS servers
    #[arg(
        required = true,
        value_name = "NAME|FILE|HOST:PORT",
        add = completers::certificates_and_files()
    )]
    what: Vec<String>,
    /// Private key to compare with, in place of the one found beside the certificate
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Do not ask CAs for revocation status and renewal window
    #[arg(long)]
    offline: bool,
    /// Flags of connections to TLS servers
    #[command(flatten)]
    server: ServerArgs,
    /// Flags of the output
    #[command(flatten)]
    output: ReportArgs,
}

/// Flags of connections to TLS servers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Servers")]
struct ServerArgs {
    /// Name to ask for (SNI) in place of the host
    #[arg(long, value_name = "NAME")]
    servername: Option<String>,
    /// Verify against these roots in place of this machine's
    #[arg(long, value_name = "FILE")]
    ca_bundle: Option<PathBuf>,
    /// Resolver for lookups [default: the system's]
    #[arg(long, value_name = "HOST:PORT")]
    dns: Option<String>,
    /// Maximum time for one server
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = duration,
        env = "KUBECTL_ACME_SHOW_TIMEOUT"
    )]
    timeout: Duration,
}

impl ShowArgs {
    /// Returns whether any word names an object of a store; words that cannot be parsed are reported by `run`.
    pub fn needs_store(&self) -> bool {
        self.what.iter().any(|word| place(word).is_ok_and(|place| place.is_stored()))
    }
}

fn place(word: &str) -> Result<CertificatePlace, Failure> {
    CertificatePlace::parse(word, files::is_there)
}

/// Runs `certificate show`. The sheet reports an expired or unfit certificate; this is no failure.
///
/// # Errors
/// Fails when a word leads to no certificate; the other certificates are shown.
pub async fn run(args: ShowArgs, context: &mut Context) -> Result<(), Failure> {
    let places: Vec<_> = args.what.iter().map(|word| place(word)).collect::<Result<_, _>>()?;
    let key = match &args.key {
        Some(path) => Some(files::read_key(path, context.interrupted()).await?),
        None => None,
    };
    let asks_servers = places.iter().any(|place| matches!(place, CertificatePlace::Server { .. }));
    let visitor = if asks_servers { Some(visitor(&args.server, context).await?) } else { None };
    let inquiry =
        if args.offline { None } else { Some(inquiry(&args.server, &places, context).await?) };
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for place in &places {
        let looking = inspect(place, key.as_ref(), (visitor.as_ref(), inquiry.as_ref()), context);
        let looked = tokio::select! {
            looked = looking => looked,
            kind = context.interrupted().wait() => return Err(Failure::silent(kind)),
        };
        match looked {
            Ok(certificate) => found.push(certificate),
            Err(failure) => failures.push(failure),
        }
    }
    let mut printer = context.printer(&(&args.output).into());
    if !found.is_empty() {
        let headers = if args.output.no_headers { Headers::Hidden } else { Headers::Shown };
        let report = CertificateReport::new(found);
        let document = json!(report);
        printer.report(&document, |_| {
            certificate::sheets(&report.certificates, headers, context.now())
        })?;
    }
    for failure in &failures {
        printer.error(&failure.message, &failure.hints);
    }
    failures.first().map_or(Ok(()), |failure| Err(Failure::silent(failure.kind)))
}

async fn visitor(args: &ServerArgs, context: &Context) -> Result<ServerInspector, Failure> {
    let look = LookArgs { dns: args.dns.clone(), ..LookArgs::default() };
    let (client, roots) = servers::client(args.ca_bundle.as_deref(), context.interrupted()).await?;
    Ok(ServerInspector {
        fetcher: look.fetcher().await?,
        client,
        roots,
        server_name: args.servername.clone(),
        longest: args.timeout.unsigned(),
    })
}

/// Builds the inquiry at CAs; with a store of Issuers if an object of the store is shown.
async fn inquiry(
    args: &ServerArgs,
    places: &[CertificatePlace],
    context: &Context,
) -> Result<Inquiry, Failure> {
    let look = LookArgs { dns: args.dns.clone(), ..LookArgs::default() };
    let is_stored = places.iter().any(CertificatePlace::is_stored);
    let store = if is_stored { Some(context.store(Access::ReadOnly).await?) } else { None };
    Ok(Inquiry::new(store, &look.fetcher().await?.resolver, context.now()))
}

async fn inspect(
    place: &CertificatePlace,
    key: Option<&PrivateKey>,
    (visitor, inquiry): (Option<&ServerInspector>, Option<&Inquiry>),
    context: &Context,
) -> Result<ReportedCertificate, Failure> {
    let found = find(place, key, visitor, context).await?;
    let mut reported = found.reported.clone();
    if let Some(inquiry) = inquiry {
        let (revocation, window) = inquiry.ask(&found).await;
        (reported.revocation, reported.renewal_window) = (Some(revocation), window);
    }
    Ok(reported)
}

async fn find(
    place: &CertificatePlace,
    key: Option<&PrivateKey>,
    visitor: Option<&ServerInspector>,
    context: &Context,
) -> Result<FoundCertificate, Failure> {
    let now = context.now();
    let named = |name: &str| ObjectName::new(context.namespace(), name);
    match place {
        CertificatePlace::Certificate(name) => {
            let store = context.store(Access::ReadOnly).await?;
            match stored::certificate_or_request(&store, &named(name)).await {
                Ok(found) if found.kind == Kind::CertificateRequest => {
                    stored::of_request(&store, &found.name, key, now).await
                }
                _ => stored::of_certificate(&store, &named(name), key, now).await,
            }
        }
        CertificatePlace::Request(name) => {
            let store = context.store(Access::ReadOnly).await?;
            stored::of_request(&store, &named(name), key, now).await
        }
        CertificatePlace::Secret(name) => {
            let store = context.store(Access::ReadOnly).await?;
            stored::of_secret(&store, &named(name), key, now).await
        }
        CertificatePlace::File(name) => {
            let found = files::read(name, context.interrupted()).await?;
            let kind = SourceKind::File;
            let source = CertificateSource { kind, namespace: None, name: name.clone() };
            FoundCertificate::read(source, found, key, now)
                .map_err(|fault| Failure::usage(format!("cannot show {name}: {fault}")))
        }
        CertificatePlace::Server { host, port } => match visitor {
            Some(visitor) => visitor.visit(host, *port, key, now).await,
            None => Err(Failure::usage("no server is asked")),
        },
    }
}
