//! Challenge: one proof of control, and the answer the CA must see.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::common::{IssuerRef, Other, Time};
use super::metadata::Resource;
use super::names::{Identifier, InvalidName, shown_domain};
use super::persist::Persist;
use super::solver::ChallengeSolver;
use super::state::{ChallengeType, State};

/// `acme.cert-manager.io/v1` Challenge.
pub type Challenge = Resource<ChallengeSpec, ChallengeStatus>;

impl Challenge {
    /// Reports whether the challenge has a final state.
    pub fn has_ended(&self) -> bool {
        self.status.state.is_some_and(State::is_final)
    }
}

/// Finalizer on every Challenge that may have been presented.
pub const FINALIZER: &str = "acme.cert-manager.io/finalizer";
/// Finalizer of cert-manager before 1.17; honoured and replaced.
pub const LEGACY_FINALIZER: &str = "finalizer.acme.cert-manager.io";

/// Spec of a Challenge: the name to be proven, and how. The fields stand in the order in which cert-manager declares them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChallengeSpec {
    /// URL of the challenge at the CA.
    pub url: String,
    /// URL of the challenge's authorization.
    #[serde(rename = "authorizationURL")]
    pub authorization_url: String,
    /// Identifier without `*.`; may be an IP address.
    pub dns_name: String,
    /// Whether the name ordered is a wildcard.
    #[serde(default)]
    pub wildcard: bool,
    /// Type.
    #[serde(rename = "type")]
    pub kind: ChallengeType,
    /// Token.
    pub token: String,
    /// HTTP-01 and TLS-ALPN-01: the key authorization (RFC 8555 §8.1); types by record: the TXT value (§8.4).
    pub key: String,
    /// Copy of the chosen solver after annotation overrides.
    pub solver: ChallengeSolver,
    /// Issuer, copied from the Order.
    pub issuer_ref: IssuerRef,
    /// DNS-ACCOUNT-01: the label of the account, without `_`. The CRD has a field neither for this label nor for `persist`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub account_label: String,
    /// DNS-PERSIST-01: the records that the CA accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist: Option<Persist>,
}

impl ChallengeSpec {
    /// Returns the domain as people write it: a wildcard with `*.`.
    pub fn shown_domain(&self) -> String {
        shown_domain(&self.dns_name, self.wildcard)
    }

    /// Returns the absolute name of the TXT record that a CA asks for (RFC 8555 §8.4), before aliases are followed.
    pub fn record_name(&self) -> String {
        record_name(self.kind, &self.dns_name, &self.account_label)
    }
}

/// Returns the absolute name of the TXT record of a challenge type for a name without `*.`, before aliases are followed.
/// Before an account exists its label is empty, and the record's name is that of DNS-01: both names are in one zone.
pub fn record_name(kind: ChallengeType, name: &str, account_label: &str) -> String {
    let name = name.trim_end_matches('.');
    match kind {
        ChallengeType::DnsPersist01 => format!("_validation-persist.{name}."),
        ChallengeType::DnsAccount01 if !account_label.is_empty() => {
            format!("_{account_label}._acme-challenge.{name}.")
        }
        ChallengeType::Dns01
        | ChallengeType::DnsAccount01
        | ChallengeType::Http01
        | ChallengeType::TlsAlpn01 => format!("_acme-challenge.{name}."),
    }
}

/// Status of a Challenge, exactly as in cert-manager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChallengeStatus {
    /// Whether the scheduler has admitted the challenge.
    #[serde(default)]
    pub processing: bool,
    /// Whether the answer is presented.
    #[serde(default)]
    pub presented: bool,
    /// Time at which the answer was presented.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presented_at: Option<Time>,
    /// Reason why the challenge waits, or why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// State at the CA, as last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Answer that the CA must see for one challenge.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Answer {
    /// Name or address that the CA asks for the answer.
    pub identifier: Identifier,
    /// Token: the last part of the HTTP-01 path.
    pub token: String,
    /// Text that the CA must find: HTTP-01 body, or DNS-01 TXT value.
    pub key_authorization: String,
}

/// Most bytes of an HTTP-01 answer that a public CA reads (Boulder).
pub const ANSWER_LIMIT: usize = 128;

/// Returns how many bytes of the HTTP-01 answer to a token are read: as many as a public CA reads, and for a longer token (RFC 8555
/// §8.3 names no bound) the whole key authorization with a line end.
pub fn answer_limit(token: &str) -> usize {
    const DOT_THUMBPRINT_AND_LINE_END: usize = 1 + 43 + 2;
    ANSWER_LIMIT.max(token.len() + DOT_THUMBPRINT_AND_LINE_END)
}

impl Answer {
    /// Reads from a Challenge the answer that the CA must see.
    ///
    /// # Errors
    /// Fails if the Challenge's name is neither a DNS name nor an address.
    pub fn of(challenge: &Challenge) -> Result<Self, InvalidName> {
        let ChallengeSpec { dns_name, token, key, .. } = &challenge.spec;
        let identifier = Identifier::parse(dns_name)?;
        Ok(Self { identifier, token: token.clone(), key_authorization: key.clone() })
    }
}

impl fmt::Debug for Answer {
    /// Omits token and key authorization: logs must not contain them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({})", self.identifier)
    }
}
