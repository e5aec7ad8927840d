//! What removes the cause of a [`super::SolveError`], as data: `app::hints` puts it into words.
//!
//! What has to change at a DNS provider is known by that provider's own file alone, and is said there: a provider is added
//! by one file. Such words name no flag and no command line of ours; whatever does is a variant.

use std::borrow::Cow;
use std::net::SocketAddr;

use crate::model::cause::Symptom;
use crate::store::error::StoreError;

/// What removes the cause.
#[derive(Clone, Debug)]
pub enum Remedy {
    /// A change at the provider, of its credentials or of the solver's fields.
    InWords(Cow<'static, str>),
    /// The person has to allow programs that an Issuer names.
    AllowPrograms,
    /// Programs that an Issuer names are run on one machine, never in a cluster.
    ProgramsOnThisMachine,
    /// A person makes the record, or a provider is named.
    RecordByHand,
    /// A build of this program that has the many providers.
    BuildWithProviders,
    /// The address of the webhook of this API group.
    WebhookAddress {
        /// API group.
        group: String,
    },
    /// A look at the webhook's APIService.
    WebhookService {
        /// API group.
        group: String,
    },
    /// Another document root, or another state of this one.
    DocumentRoot(RootFault),
    /// A port of this machine that can be listened on for HTTP-01.
    HttpPort {
        /// Where it was tried.
        address: SocketAddr,
        /// Why that failed.
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
    /// What helps where the way to a record's zone is at fault.
    Zone(Symptom),
    /// What helps against a refusal of the cluster.
    Store(Box<StoreError>),
    /// The record is written somewhere else than its alias leads, or there.
    Alias {
        /// Absolute name of the record.
        record: String,
        /// Where its aliases lead.
        end: String,
        /// Whether the record is written there (`cnameStrategy: Follow`).
        follows: bool,
        /// What helps beside that.
        beside: Option<Box<Self>>,
    },
}

/// What is wrong with a document root.
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

/// Why a port cannot be listened on.
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
