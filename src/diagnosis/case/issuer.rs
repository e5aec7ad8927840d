//! Observations of an issuer: the Secrets that it names, its CA's directory, and answers of its DNS providers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::authority::{AccountCase, AuthorityCase};
use crate::model::provider_refusal::ProviderRefusal;
use crate::model::solver::Dns01Solver;
use crate::model::{Issuer, Key, ObjectName, Problem};

/// Issuer that a Certificate names.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerCase {
    /// Kind and name of the issuer.
    pub key: Key,
    /// The issuer; `None` if there is no issuer of that name, or it may not be read.
    pub issuer: Option<Issuer>,
    /// Whether the store has answered.
    pub is_known: bool,
    /// Issuers that may have been meant: of the other kind, of other namespaces, or of a similar name.
    pub near: Vec<Key>,
    /// Secrets that the issuer names, and the state of each.
    pub secrets: Vec<SecretCase>,
    /// Answer of the CA's directory.
    pub directory: Option<DirectoryCase>,
    /// Further observations of the CA's server.
    #[serde(default)]
    pub authority: Option<AuthorityCase>,
    /// Account at the CA that has the key in the Secret.
    #[serde(default)]
    pub account: Option<AccountCase>,
}

impl IssuerCase {
    /// Builds the case of an issuer, or of a missing one; its Secrets and its CA were not observed.
    pub fn of(key: Key, issuer: Option<Issuer>) -> Self {
        let (near, secrets) = (Vec::new(), Vec::new());
        Self {
            key,
            issuer,
            is_known: true,
            near,
            secrets,
            directory: None,
            authority: None,
            account: None,
        }
    }
}

/// Purpose of a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretUse {
    /// Key of the ACME account.
    AccountKey,
    /// HMAC key of an external account binding.
    Binding,
    /// Credentials of a DNS provider.
    Provider,
}

/// Secret that an issuer names; without the data in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretCase {
    /// Purpose of the Secret.
    pub purpose: SecretUse,
    /// Name of the Secret.
    pub name: ObjectName,
    /// Entry in the Secret.
    pub entry: String,
    /// State of the entry.
    pub state: SecretState,
    /// Namespaces that have a Secret of this name.
    pub elsewhere: Vec<String>,
}

/// State of an entry in a Secret, as far as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretState {
    /// There is no such Secret.
    Missing,
    /// The Secret lacks the entry; it has these entries.
    NoEntry(Vec<String>),
    /// The entry is empty.
    Empty,
    /// The entry is not usable, for this reason.
    Unusable(String),
    /// The entry is an account key of an algorithm and a JWK thumbprint (RFC 7638).
    AccountKey {
        /// Algorithm, such as `RSA`.
        algorithm: String,
        /// Thumbprint, which every key authorization ends with.
        thumbprint: String,
        /// Whether the Secret also holds another key that is to take this key's place.
        #[serde(default)]
        is_being_changed: bool,
    },
    /// The Secret has the entry.
    Present,
}

/// Answer of a CA's directory (RFC 8555 §7.1.1).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DirectoryCase {
    /// URL of the directory.
    pub url: String,
    /// Time of the request.
    pub at: Timestamp,
    /// The answer.
    pub answer: DirectoryAnswer,
}

/// Result of a request for a directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DirectoryAnswer {
    /// The directory.
    Directory {
        /// Profiles that the CA offers.
        profiles: Vec<String>,
        /// Names by which CAA records have to call the CA.
        caa_identities: Vec<String>,
        /// Whether an account has to be bound to another one.
        external_account_required: bool,
        /// URL where accounts are made.
        new_account: String,
    },
    /// The CA's certificate is not trusted.
    Untrusted(String),
    /// The host does not exist.
    NoSuchHost(String),
    /// The host cannot be looked up now.
    Lookup(String),
    /// No connection, or no answer in time.
    Unreachable(String),
    /// An answer that is no directory.
    NotAcme(String),
    /// An answer with an HTTP status that says no.
    Refused(Problem),
}

/// One question to the provider of one solver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderCase {
    /// Issuer that has the solver.
    pub issuer: Key,
    /// The solver; it names Secrets, and holds none.
    pub solver: Dns01Solver,
    /// Name that the question was about, a wildcard with its `*.`.
    pub domain: String,
    /// Time of the question.
    pub at: Timestamp,
    /// Refusal of the provider; `None` if all is well.
    pub refusal: Option<ProviderRefusal>,
}
