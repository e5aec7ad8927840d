//! Names on the wire: the [`Resolve`] and [`FindZone`] traits, and the reasons for no answer.

mod authority;
pub mod lookup;
mod open_questions;
mod remembered;
mod reply;
pub mod server;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
pub mod tsig;
pub mod update;
pub mod wildcard;
pub mod wire;
pub mod zone;
pub mod zone_look;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;

pub use hickory_resolver::proto::rr::RecordType;
use reqwest::dns::{Addrs, Name, Resolving};

use crate::http::client::Resolver;
use crate::model::caa::CaaRecordSet;
use crate::model::cause::Symptom;

/// Looks up names.
#[async_trait]
pub trait Resolve: fmt::Debug + Send + Sync {
    /// The addresses of a host, IPv6 first, without repeats; never an empty list.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, LookupError>;

    /// Addresses that name servers give for a host whose addresses this machine's hosts file decides; `None` if the
    /// file has no such host, or name servers give no addresses.
    async fn behind_hosts_file(&self, _host: &str) -> Option<Vec<IpAddr>> {
        None
    }

    /// Texts at a name or at the end of its aliases, each joined from its strings; never an empty list. A resolver that
    /// knows only hosts has no texts.
    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        Err(LookupError::NoSuchName { name: name.to_owned() })
    }

    /// CAA records at a name or at the end of its aliases; an empty set if there are none, or no such name. A resolver
    /// that knows only hosts has no records.
    async fn caa(&self, _name: &str) -> Result<CaaRecordSet, LookupError> {
        Ok(CaaRecordSet::default())
    }

    /// Returns whether this resolver replaces the system's lookups everywhere, connections to the CA included.
    fn replaces_system(&self) -> bool {
        false
    }
}

/// Finds the zone that a name belongs to.
#[async_trait]
pub trait FindZone: fmt::Debug + Send + Sync {
    /// Absolute name of the zone, with the final dot: the owner of the nearest SOA record at or above that absolute name.
    async fn zone_of(&self, name: &str) -> Result<String, LookupError>;
}

/// Reason why name servers gave no result; the texts are stable, since a status keeps them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupFailure {
    /// A name server answered with an error.
    #[error("the name server answered {code}{}", of_target(target.as_deref()))]
    Answered {
        /// Code, such as `SERVFAIL`, and the reason, if the server gives one (RFC 8914).
        code: String,
        /// End of the aliases, for which the server answered so, if it is not the name itself.
        target: Option<String>,
    },
    /// No resolver answered.
    #[error("no name server answered")]
    Silent,
    /// The answer of a resolver makes no sense.
    #[error("the name server's answer cannot be read")]
    Unreadable,
    /// Aliases lead in a circle through these names.
    #[error("CNAME loop: {}", .0.join(" -> "))]
    AliasLoop(Vec<String>),
    /// The servers of the zone took too long.
    #[error("its name servers take longer than {seconds} s")]
    Slow {
        /// Waiting time, in seconds.
        seconds: u64,
    },
    /// One server did not answer.
    #[error("{server} {silence}")]
    Server {
        /// Server, as it was named.
        server: String,
        /// Reason.
        silence: Silence,
    },
    /// Any other reason.
    #[error("{0}")]
    Other(String),
}

fn of_target(target: Option<&str>) -> String {
    target.map(|name| format!(" for the target of its CNAME, {name}")).unwrap_or_default()
}

/// Error of a lookup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// The name does not exist (RFC 2308 §2.1).
    #[error("no such host {name}")]
    NoSuchName {
        /// Name.
        name: String,
    },
    /// The name is an alias, and the name at the end of its aliases does not exist.
    #[error("no such host {target}, where the CNAME of {name} leads")]
    NoSuchTarget {
        /// Name.
        name: String,
        /// End of the aliases.
        target: String,
    },
    /// The name exists and has no address.
    #[error("{name} has neither an A nor an AAAA record")]
    NoAddress {
        /// Name.
        name: String,
    },
    /// The name exists and has no text.
    #[error("{name} has no TXT record")]
    NoText {
        /// Name.
        name: String,
    },
    /// The servers did not answer, or answered with an error such as SERVFAIL.
    #[error("cannot look up {name}: {why}")]
    Failed {
        /// Name.
        name: String,
        /// Reason.
        why: LookupFailure,
    },
    /// The walk towards the root found no zone, in cert-manager's words.
    #[error(
        "Could not find the SOA record in the DNS tree for the domain '{name}' using nameservers [{servers}]"
    )]
    NoZone {
        /// Absolute name.
        name: String,
        /// Servers that were asked, separated by blanks.
        servers: String,
    },
    /// The walk met a server that answered with another code, in cert-manager's words.
    #[error(
        "When querying the SOA record for the domain '{name}' using nameservers [{servers}], \
         rcode was expected to be 'NOERROR' or 'NXDOMAIN', but got '{code}'{more}"
    )]
    UnexpectedCode {
        /// Absolute name that was asked for.
        name: String,
        /// Servers that were asked.
        servers: String,
        /// Code, such as `SERVFAIL`.
        code: String,
        /// Server that answered with the code, and its reason, if the server gives one; may be empty.
        more: String,
    },
    /// Aliases lead in a circle, in cert-manager's words.
    #[error("Found recursive CNAME record to \"{target}\" when looking up \"{name}\"")]
    AliasLoop {
        /// Absolute name that was asked for.
        name: String,
        /// Target of the alias.
        target: String,
    },
    /// The zone of a name cannot be found, in cert-manager's words.
    #[error("Could not determine the zone for \"{name}\": {why}")]
    UnknownZone {
        /// Absolute name.
        name: String,
        /// Reason.
        why: Box<Self>,
    },
    /// The servers of a zone cannot be found, in cert-manager's words and ours.
    #[error("Could not determine authoritative nameservers for \"{name}\": {why}")]
    NoServers {
        /// Absolute name of the record.
        name: String,
        /// Reason; stable text.
        why: String,
    },
}

impl LookupError {
    /// Symptom, as data; `None` if the error is of no known kind.
    pub fn symptom(&self) -> Option<Symptom> {
        match self {
            Self::NoSuchName { .. } | Self::NoAddress { .. } => Some(Symptom::NoAddress),
            Self::NoSuchTarget { .. } => Some(Symptom::DanglingAlias),
            Self::NoText { .. } => None,
            Self::AliasLoop { .. } => Some(Symptom::AliasLoop),
            Self::UnexpectedCode { .. } => Some(Symptom::NameServersFail),
            Self::NoZone { .. } | Self::UnknownZone { .. } | Self::NoServers { .. } => {
                Some(Symptom::NotDelegated)
            }
            Self::Failed { why, .. } => match why {
                LookupFailure::Answered { .. } => Some(Symptom::NameServersFail),
                LookupFailure::Silent | LookupFailure::Unreadable => Some(Symptom::ResolverSilent),
                LookupFailure::AliasLoop(_) => Some(Symptom::AliasLoop),
                LookupFailure::Slow { .. } => Some(Symptom::ServersSilent),
                LookupFailure::Server { silence, .. } => silence.symptom(),
                LookupFailure::Other(_) => None,
            },
        }
    }

    /// Returns whether no server could be asked, so that nothing is known of the name.
    pub fn tells_nothing(&self) -> bool {
        match self {
            Self::UnknownZone { why, .. } => why.tells_nothing(),
            Self::Failed { .. } | Self::UnexpectedCode { .. } | Self::NoServers { .. } => true,
            Self::NoSuchName { .. }
            | Self::NoSuchTarget { .. }
            | Self::NoAddress { .. }
            | Self::NoText { .. }
            | Self::NoZone { .. }
            | Self::AliasLoop { .. } => false,
        }
    }

    /// Returns the question to resolvers by which a person sees the same error, as a name and a type. Resolvers must
    /// not get the name of a record, whose absence they would keep: the question is for the name above the record.
    pub fn question(&self) -> (&str, &'static str) {
        let above = |name: &'_ str| name.starts_with('_').then(|| name.find('.')).flatten();
        match self {
            Self::UnknownZone { why, .. } => why.question(),
            Self::AliasLoop { name, .. } => (name, "CNAME"),
            Self::NoSuchName { name }
            | Self::NoSuchTarget { name, .. }
            | Self::NoAddress { name } => (name, "A"),
            Self::NoServers { name, .. } => {
                (above(name).map_or(name, |dot| &name[dot + 1..]), "NS")
            }
            Self::Failed { name, .. }
            | Self::NoText { name }
            | Self::NoZone { name, .. }
            | Self::UnexpectedCode { name, .. } => {
                (above(name).map_or(name, |dot| &name[dot + 1..]), "SOA")
            }
        }
    }
}

/// Returns the resolver for HTTP clients, if it replaces the system's lookups: connections to the CA obey `--dns`, too.
pub fn in_place_of_system(resolver: &Arc<dyn Resolve>) -> Option<Resolver> {
    resolver.replaces_system().then(|| -> Resolver { Arc::new(ReqwestResolver(resolver.clone())) })
}

/// A resolver for `reqwest::ClientBuilder::dns_resolver`.
#[derive(Clone, Debug)]
pub struct ReqwestResolver(pub Arc<dyn Resolve>);

impl reqwest::dns::Resolve for ReqwestResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = Arc::clone(&self.0);
        Box::pin(async move {
            let found = resolver.addresses(name.as_str()).await?;
            // The client puts the port of its URL in place of 0.
            let addresses: Addrs =
                Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

/// Reason why a name server gives no answer; the texts are stable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// No answer came in time.
    TimedOut,
    /// No server listens at the address.
    Refused,
    /// This machine has no route to the server, such as a machine without IPv6.
    NoRoute,
    /// The answer was too large for UDP, and over TCP there was none.
    Truncated(Box<Self>),
    /// The bytes that came are no answer to the question.
    Unreadable,
    /// The HTTPS server sent no DNS answer; the field describes its reply.
    Https(String),
}

impl Silence {
    /// Symptom, as data; `None` if the reason is of no known kind. Only resolvers are asked by HTTPS.
    pub fn symptom(&self) -> Option<Symptom> {
        match self {
            Self::TimedOut | Self::Refused => Some(Symptom::ServersSilent),
            Self::NoRoute => Some(Symptom::NoRoute),
            Self::Unreadable => Some(Symptom::ServerUnreadable),
            Self::Truncated(why) => why.symptom(),
            Self::Https(_) => None,
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("does not answer"),
            Self::Refused => f.write_str("refuses the connection"),
            Self::NoRoute => f.write_str("cannot be reached from here"),
            Self::Truncated(why) => {
                write!(f, "has an answer too large for UDP, and over TCP it {why}")
            }
            Self::Unreadable => f.write_str("gives an answer that cannot be read"),
            Self::Https(why) => f.write_str(why),
        }
    }
}
