//! Remedies for the cause of a [`super::SolveError`], as data: `hints` puts them into words.
//!
//! The change that a DNS provider needs is known and described only in that provider's own file: a provider is added by one
//! file. Such words name no flag and no command line of this program; a remedy with a flag or a command line is a variant.

use std::borrow::Cow;
use std::net::SocketAddr;

use crate::model::cause::Symptom;
use crate::store::error::StoreError;

/// Remedy for the cause of an error.
#[derive(Clone, Debug)]
pub enum Remedy {
    /// A change at the provider, of its credentials or of the solver's fields.
    InWords(Cow<'static, str>),
    /// Permission by the person for programs that an Issuer names.
    AllowPrograms,
    /// Run on one machine: programs that an Issuer names never run in a cluster.
    ProgramsOnThisMachine,
    /// Record made by a person, or a provider named in the solver.
    RecordByHand,
    /// Build of this program that has the many providers.
    BuildWithProviders,
    /// Address of the webhook of this API group.
    WebhookAddress {
        /// API group.
        group: String,
    },
    /// Check of the webhook's APIService.
    WebhookService {
        /// API group.
        group: String,
    },
    /// Another document root, or another state of this one.
    DocumentRoot(RootFault),
    /// A port of this machine that can be listened on for HTTP-01.
    HttpPort {
        /// Address that was tried.
        address: SocketAddr,
        /// Reason for the failure.
        fault: PortFault,
    },
    /// A port of this machine that can be listened on for TLS-ALPN-01.
    TlsPort,
    /// The Ingress that is to be edited.
    Ingress {
        /// Name.
        name: String,
        /// Namespace.
        namespace: String,
    },
    /// Remedy for a fault on the way to a record's zone.
    Zone(Symptom),
    /// Remedy for a refusal of the cluster.
    Store(Box<StoreError>),
    /// Change of the record's alias, or of the name at which the record is written.
    Alias {
        /// Absolute name of the record.
        record: String,
        /// Target of the aliases.
        end: String,
        /// Whether the record is written at the target (`cnameStrategy: Follow`).
        follows: bool,
        /// Further remedy.
        beside: Option<Box<Self>>,
    },
}

/// Fault of a document root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootFault {
    /// There is no such folder.
    Missing,
    /// This user may not write there.
    Forbidden,
    /// The file system is read-only.
    ReadOnly,
    /// There is no space left.
    Full,
}

/// Reason why a port cannot be listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortFault {
    /// The user lacks the right.
    Forbidden,
    /// Another program listens there.
    Taken,
    /// This machine does not have that address.
    Elsewhere,
    /// Another reason.
    Other,
}

impl From<String> for Remedy {
    fn from(words: String) -> Self {
        Self::InWords(words.into())
    }
}

impl From<&'static str> for Remedy {
    fn from(words: &'static str) -> Self {
        Self::InWords(words.into())
    }
}
