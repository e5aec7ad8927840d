//! Flags of `ca`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::ca::{RevocationSource, behaviour};
use crate::context::flags;
use crate::context::flags::look::LookArgs;
use crate::context::flags::output;
use crate::input::completers::{completer, starting};
use crate::model::Duration;
use crate::print::format::Format;

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
    /// Name in the server's own certificate beside localhost, 127.0.0.1 and the listening address; the first is in the printed URL
    ///
    /// A client gets all URLs by the host that it asks, whatever its name and port are. Repeatable.
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
    /// Where tests ask for roots and certificates, revoke, and set DNS records, by plain HTTP on loopback [default: nowhere]
    #[arg(long, value_name = "ADDR:PORT")]
    pub management: Option<SocketAddr>,
    /// Format in which it is said where the server listens, or of the list of behaviours: json, yaml, jsonl or jsonpath=TEMPLATE
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        value_parser = output::of_report,
        add = output::offered(&output::DOCUMENTS),
        env = "KUBECTL_ACME_CA_OUTPUT"
    )]
    pub output: Option<Format>,
    /// Which accounts and certificates there are
    #[command(flatten)]
    pub issuance: IssuanceArgs,
    /// How the server treats clients
    #[command(flatten)]
    pub temper: TemperArgs,
    /// Record that the CA finds in DNS, such as "www.example.com A 127.0.0.1"; repeatable
    ///
    /// Types are A, AAAA, TXT, CNAME and CAA. Such a name, and all below it, is not looked up elsewhere.
    #[arg(long, value_name = "RECORD", help_heading = "Looking at names")]
    pub record: Vec<String>,
    /// Take every name as proven, without a look
    #[arg(long, help_heading = "Looking at names")]
    pub always_valid: bool,
    /// How validation looks at names
    #[command(flatten)]
    pub look: LookArgs,
}

/// Which accounts and certificates there are.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Certificates and accounts")]
pub struct IssuanceArgs {
    /// Ask for external accounts, and know this one: its key ID, and a file with its HMAC key in base64url; repeatable
    #[arg(hide_short_help = true, long, value_name = "KEYID=FILE")]
    pub eab: Vec<String>,
    /// Refuse this name and all names below it; repeatable
    #[arg(hide_short_help = true, long, value_name = "NAME")]
    pub block: Vec<String>,
    /// Offer this profile, in place of classic, tlsserver and shortlived; the first is for orders that name none. Repeatable
    #[arg(
        hide_short_help = true,
        long,
        value_name = "NAME=LIFETIME",
        env = "KUBECTL_ACME_CA_PROFILE"
    )]
    pub profile: Vec<String>,
    /// How long certificates of orders that name no profile are good, from now on
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration)]
    pub lifetime: Option<Duration>,
    /// How long orders and pending authorizations live
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration, default_value = "168h")]
    pub order_lifetime: Duration,
    /// How long valid authorizations live
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration, default_value = "720h")]
    pub authorization_lifetime: Duration,
    /// Look at CAA records before names are taken as proven, as the CA that they call so; repeatable [default: none are looked at]
    #[arg(hide_short_help = true, long, value_name = "NAME")]
    pub caa_identity: Vec<String>,
    /// Where certificates say that their revocation is told: a list, an OCSP responder
    #[arg(hide_short_help = true, long, value_name = "SOURCES", value_enum, default_value = "crl")]
    pub revocation: RevocationChoice,
}

/// How the server treats clients.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Temper")]
pub struct TemperArgs {
    /// Treat clients as Let's Encrypt and Pebble do
    ///
    /// Finalize takes a second, with Retry-After in seconds or as a date; challenges, authorizations and identifiers come in any
    /// order, with a dns-persist-01 challenge that has no token; 5 of 100 good nonces are refused, and names are proven anew half
    /// of the time. Other flags change each of these.
    #[arg(long)]
    pub strict: bool,
    /// Seed of what is left to chance: the order of lists, and what is taken over [default: drawn, and printed]
    #[arg(hide_short_help = true, long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// How long an order is processing after finalize; 0s issues at once
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration)]
    pub finalize_delay: Option<Duration>,
    /// How long validation waits before it looks
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = flags::duration, default_value = "0s")]
    pub validation_delay: Duration,
    /// Take over pending orders and valid authorizations: always, never, or so many of 100
    #[arg(hide_short_help = true, long, value_name = "always|never|PERCENT", value_parser = percent)]
    pub reuse: Option<u8>,
    /// How many of 100 good nonces are refused
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=99))]
    pub refuse_nonces: Option<u8>,
    /// Seconds that clients are asked to wait between polls (Retry-After)
    #[arg(hide_short_help = true, long, value_name = "SECONDS")]
    pub retry_after: Option<u32>,
    /// Behave in this way, which a client has to survive; repeatable [default: as a good CA does]
    #[arg(long, value_name = "NAME[=VALUE]", add = behaviours())]
    pub behave: Vec<String>,
    /// List the behaviours with what a client should do, and end
    #[arg(long)]
    pub behaviours: bool,
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
    pub(super) fn sources(self) -> Vec<RevocationSource> {
        match self {
            Self::Crl => vec![RevocationSource::List],
            Self::Ocsp => vec![RevocationSource::Responder],
            Self::Both => vec![RevocationSource::List, RevocationSource::Responder],
        }
    }
}

/// Reads how many of a hundred are taken over.
fn percent(text: &str) -> Result<u8, String> {
    match text {
        "always" => Ok(100),
        "never" => Ok(0),
        text => text
            .parse()
            .ok()
            .filter(|percent| *percent <= 100)
            .ok_or_else(|| "it is neither always nor never nor a number up to 100".to_owned()),
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
