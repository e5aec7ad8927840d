//! Flags of `ca`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::ca::{RevocationSource, behaviour};
use crate::context::flags::look::LookArgs;
use crate::context::flags::{self, output};
use crate::input::completers::{completer, starting};
use crate::model::Duration;
use crate::print::format::Format;

/// Flags of `ca`.
#[derive(Clone, Debug, clap::Args)]
pub struct CaArgs {
    /// Address to listen on; port 0 takes a free port
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:14000",
        env = "KUBECTL_ACME_CA_LISTEN"
    )]
    pub listen: SocketAddr,
    /// Name in the server's own certificate beside localhost, 127.0.0.1 and the listening address; the first is in the printed URL
    ///
    /// All URLs in an answer have the host and port of the client's request. Repeatable.
    #[arg(long, value_name = "NAME", env = "KUBECTL_ACME_CA_NAME")]
    pub name: Vec<String>,
    /// Write the root certificate to this file, for clients that have to trust the server
    #[arg(
        long,
        value_name = "FILE",
        default_value = "kubectl-acme-ca.pem",
        env = "KUBECTL_ACME_CA_ROOT"
    )]
    pub root: PathBuf,
    /// Address for tests to get roots and certificates, revoke, and set DNS records, by plain HTTP on loopback [default: none]
    #[arg(long, value_name = "ADDR:PORT")]
    pub management: Option<SocketAddr>,
    /// Format of the server's address, or of the list of behaviours: json, yaml, jsonl or jsonpath=TEMPLATE
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        value_parser = output::of_report,
        add = output::offered(&output::DOCUMENT_FORMATS),
        env = "KUBECTL_ACME_CA_OUTPUT"
    )]
    pub output: Option<Format>,
    /// Flags of accounts and certificates
    #[command(flatten)]
    pub issuance: IssuanceArgs,
    /// Flags of the server's behaviour
    #[command(flatten)]
    pub temper: ServerBehaviourArgs,
    /// Record that the CA finds in DNS, such as "www.example.com A 127.0.0.1"; repeatable
    ///
    /// Types are A, AAAA, TXT, CNAME and CAA. Such a name, and all below it, is not looked up elsewhere.
    #[arg(long, value_name = "RECORD", help_heading = "Looking at names")]
    pub record: Vec<String>,
    /// Accept every name as validated, without a check
    #[arg(long, help_heading = "Looking at names")]
    pub always_valid: bool,
    /// Flags of lookups and connections for validation
    #[command(flatten)]
    pub look: LookArgs,
}

/// Flags of accounts and certificates.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Certificates and accounts")]
pub struct IssuanceArgs {
    /// Require external accounts, and accept this account: key ID, and a file with the HMAC key in base64url; repeatable
    #[arg(hide_short_help = true, long, value_name = "KEYID=FILE")]
    pub eab: Vec<String>,
    /// Refuse this name and all names below it; repeatable
    #[arg(hide_short_help = true, long, value_name = "NAME")]
    pub block: Vec<String>,
    /// Offer this profile, in place of classic, tlsserver and shortlived; orders without a profile get the first. Repeatable
    #[arg(
        hide_short_help = true,
        long,
        value_name = "NAME=LIFETIME",
        env = "KUBECTL_ACME_CA_PROFILE"
    )]
    pub profile: Vec<String>,
    /// Lifetime of certificates of orders that name no profile
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration)]
    pub lifetime: Option<Duration>,
    /// Lifetime of orders and pending authorizations
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration, default_value = "168h")]
    pub order_lifetime: Duration,
    /// Lifetime of valid authorizations
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration, default_value = "720h")]
    pub authorization_lifetime: Duration,
    /// Check CAA records during validation, as the CA of this name; repeatable [default: CAA records are not checked]
    #[arg(hide_short_help = true, long, value_name = "NAME")]
    pub caa_identity: Vec<String>,
    /// Revocation source in certificates: a revocation list, an OCSP responder
    #[arg(hide_short_help = true, long, value_name = "SOURCES", value_enum, default_value = "crl")]
    pub revocation: RevocationChoice,
}

/// Flags of the server's behaviour.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Behaviour")]
pub struct ServerBehaviourArgs {
    /// Treat clients as Let's Encrypt and Pebble do
    ///
    /// Finalize takes a second, with Retry-After in seconds or as a date; challenges, authorizations and identifiers come in any
    /// order, with a dns-persist-01 challenge that has no token; 5 of 100 good nonces are refused, and names are validated
    /// anew half of the time. Other flags change each of these.
    #[arg(long)]
    pub strict: bool,
    /// Seed of random choices: the order of lists, and the reuse of orders and authorizations [default: random, and printed]
    #[arg(hide_short_help = true, long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Time that an order is processing after finalize; 0s issues at once
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration)]
    pub finalize_delay: Option<Duration>,
    /// Delay before each validation
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration, default_value = "0s")]
    pub validation_delay: Duration,
    /// Reuse pending orders and valid authorizations: always, never, or in this percentage of cases
    #[arg(hide_short_help = true, long, value_name = "always|never|PERCENT", value_parser = percent)]
    pub reuse: Option<u8>,
    /// Percentage of good nonces to refuse
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=99))]
    pub refuse_nonces: Option<u8>,
    /// Seconds that clients are asked to wait between polls (Retry-After)
    #[arg(hide_short_help = true, long, value_name = "SECONDS")]
    pub retry_after: Option<u32>,
    /// Behave in this way, which a client has to survive; repeatable [default: behave as a good CA]
    #[arg(long, value_name = "NAME[=VALUE]", add = behaviours())]
    pub behave: Vec<String>,
    /// List the behaviours with the right reaction of a client, and exit
    #[arg(long)]
    pub behaviours: bool,
}

/// Revocation source that certificates name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RevocationChoice {
    /// A revocation list, as Let's Encrypt has
    Crl,
    /// An OCSP responder
    Ocsp,
    /// Both
    Both,
}

impl RevocationChoice {
    pub(super) fn sources(self) -> Vec<RevocationSource> {
        match self {
            Self::Crl => vec![RevocationSource::List],
            Self::Ocsp => vec![RevocationSource::Responder],
            Self::Both => vec![RevocationSource::List, RevocationSource::Responder],
        }
    }
}

/// Parses a percentage; `always` is 100, `never` is 0.
fn percent(text: &str) -> Result<u8, String> {
    match text {
        "always" => Ok(100),
        "never" => Ok(0),
        text => text
            .parse()
            .ok()
            .filter(|percent| *percent <= 100)
            .ok_or_else(|| "write always, never, or a number up to 100".to_owned()),
    }
}

/// Completes behaviours of our own CA.
fn behaviours() -> ArgValueCompleter {
    completer(|current, _| {
        let kit = behaviour::kit().map(|behaviour| {
            CompletionCandidate::new(behaviour.name).help(Some(behaviour.does.into()))
        });
        starting(kit, current)
    })
}
