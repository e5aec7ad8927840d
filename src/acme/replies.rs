//! Requests to the CA and its answers, as our own types.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use crate::model::validation_record::ValidationRecord;
use crate::model::{Identifier, Problem, persist};

/// The directory (RFC 8555 §7.1.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// URL of newNonce.
    pub new_nonce: String,
    /// URL of newAccount.
    pub new_account: String,
    /// URL of newOrder.
    pub new_order: String,
    /// URL of revokeCert.
    pub revoke_cert: Option<String>,
    /// URL of keyChange.
    pub key_change: Option<String>,
    /// URL of renewal information (RFC 9773).
    pub renewal_info: Option<String>,
    /// Current terms of service.
    pub terms_of_service: Option<String>,
    /// The CA's web site.
    pub website: Option<String>,
    /// Names that the CA looks for in CAA records.
    pub caa_identities: Vec<String>,
    /// Whether newAccount needs an external account binding.
    pub external_account_required: bool,
    /// Profiles with their descriptions.
    pub profiles: BTreeMap<String, String>,
    /// Text before the hash of an account in a record of dns-persist-01 (draft -02).
    pub account_hash_prefix: Option<String>,
}

/// A newAccount request (RFC 8555 §7.3).
#[derive(Clone, Debug, Default)]
pub struct Registration {
    /// Contact URLs, such as `mailto:me@example.com`.
    pub contact: Vec<String>,
    /// External account binding (§7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// Whether the account is only looked up, never made (§7.3.1).
    pub only_return_existing: bool,
}

/// An external account binding; the MAC key does not print.
#[derive(Clone)]
pub struct ExternalAccount {
    /// Key identifier from the CA.
    pub key_id: String,
    /// MAC key, decoded.
    pub mac_key: zeroize::Zeroizing<Vec<u8>>,
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExternalAccount({}, ..)", self.key_id)
    }
}

/// An account as the CA answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountReply {
    /// Account URL.
    pub url: String,
    /// `valid`, `deactivated`, `revoked`.
    pub status: String,
    /// Contacts, absent when the CA keeps none (Boulder).
    pub contact: Option<Vec<String>>,
    /// Whether the account was made by this request (201) or was there (200).
    pub created: bool,
    /// URL of the list of the account's orders, if the CA keeps a list (§7.1.2.1).
    pub orders: Option<String>,
}

/// A newOrder request (RFC 8555 §7.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewOrder {
    /// Identifiers to certify.
    pub identifiers: Vec<Identifier>,
    /// Wanted end of the certificate.
    pub not_after: Option<Timestamp>,
    /// Profile (draft-ietf-acme-profiles).
    pub profile: Option<String>,
    /// ARI identifier of the certificate that the new certificate replaces (RFC 9773 §5).
    pub replaces: Option<String>,
}

/// An order as the CA answered (RFC 8555 §7.1.3).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OrderReply {
    /// Order URL: `Location` at newOrder, the requested URL when read; empty if newOrder or finalize answers with none.
    pub url: String,
    /// Status in the CA's word; unknown words count as not final.
    pub status: String,
    /// End of the order.
    pub expires: Option<Timestamp>,
    /// Names in the CA's spelling: type and value.
    pub identifiers: Vec<(String, String)>,
    /// Authorization URLs.
    pub authorizations: Vec<String>,
    /// Finalize URL.
    pub finalize: String,
    /// Certificate URL, once valid.
    pub certificate: Option<String>,
    /// Reason why the order is invalid; Boulder leaves it out.
    pub error: Option<Problem>,
    /// Moment before which the CA wants no other request.
    pub retry_after: Option<Timestamp>,
}

/// An authorization as the CA answered (RFC 8555 §7.1.4).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuthorizationReply {
    /// Status in the CA's word.
    pub status: String,
    /// Identifier without `*.`.
    pub identifier: String,
    /// Whether the name ordered is a wildcard.
    pub wildcard: bool,
    /// End of the authorization.
    pub expires: Option<Timestamp>,
    /// Challenges on offer, unknown types included.
    pub challenges: Vec<ChallengeReply>,
    /// Moment before which the CA wants no other request.
    pub retry_after: Option<Timestamp>,
}

/// A challenge as the CA answered (RFC 8555 §8).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChallengeReply {
    /// URL.
    pub url: String,
    /// Type in the RFC's spelling, such as `http-01`.
    pub kind: String,
    /// Status in the CA's word.
    pub status: String,
    /// Token; empty for types without a token. Always base64url: an answer with any other text is a protocol error.
    pub token: String,
    /// Time of the CA's validation, if the CA has validated.
    pub validated: Option<Timestamp>,
    /// Records of that validation, as far as the CA gives them.
    pub records: Vec<ValidationRecord>,
    /// Content of the record of dns-persist-01; the prefix of draft -02 is in the directory.
    pub persist: Option<persist::Offer>,
    /// Reason why the challenge is invalid.
    pub error: Option<Problem>,
    /// Moment before which the CA wants no other request.
    pub retry_after: Option<Timestamp>,
}

/// A downloaded chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateChain {
    /// PEM, leaf first, one certificate after the other as the CA served them.
    pub pem: String,
    /// Other chains on offer (`Link: rel="alternate"`), resolved, without repeats.
    pub alternates: Vec<String>,
}
