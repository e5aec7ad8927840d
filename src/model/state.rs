//! States of orders, authorizations and challenges (RFC 8555 §7.1.6), and cert-manager's `errored`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::names::Identifier;

/// State of an Order or a Challenge; absent means unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Given up by the controller; not an ACME state.
    Errored,
    /// Too old to go on.
    Expired,
    /// Refused by the CA.
    Invalid,
    /// This program still has something to do.
    Pending,
    /// The CA is processing the request.
    Processing,
    /// All authorizations hold; the order can be finalized.
    Ready,
    /// Done.
    Valid,
}

impl State {
    /// Reports whether the state is final.
    pub fn is_final(self) -> bool {
        match self {
            Self::Valid | Self::Invalid | Self::Expired | Self::Errored => true,
            Self::Pending | Self::Processing | Self::Ready => false,
        }
    }

    /// Reports whether the state is final and a failure.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Invalid | Self::Expired | Self::Errored => true,
            Self::Valid | Self::Pending | Self::Processing | Self::Ready => false,
        }
    }

    /// Returns the state's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Errored => "errored",
            Self::Expired => "expired",
            Self::Invalid => "invalid",
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Ready => "ready",
            Self::Valid => "valid",
        }
    }

    /// Returns a CA's word for an authorization that holds no more and cannot be proven any more (RFC 8555 §7.1.6).
    pub fn lost_word(text: &str) -> Option<&'static str> {
        ["deactivated", "expired", "revoked"].into_iter().find(|word| *word == text)
    }

    /// Reads a state as a CA writes it; `deactivated` and `revoked` authorizations count as expired,
    /// since the CRD's enum has no word for them and neither can be used any more.
    pub fn of_acme(text: &str) -> Option<Self> {
        match text {
            "invalid" => Some(Self::Invalid),
            "pending" => Some(Self::Pending),
            "processing" => Some(Self::Processing),
            "ready" => Some(Self::Ready),
            "valid" => Some(Self::Valid),
            _ => Self::lost_word(text).map(|_| Self::Expired),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Methods by which control of a name is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ChallengeType {
    /// A TXT record (RFC 8555 §8.4).
    #[serde(rename = "DNS-01")]
    Dns01,
    /// A file on port 80 (RFC 8555 §8.3).
    #[serde(rename = "HTTP-01")]
    Http01,
    /// A TXT record at a name of the account's own (draft-ietf-acme-dns-account-label); cert-manager's CRD has no word for it.
    #[serde(rename = "DNS-ACCOUNT-01")]
    DnsAccount01,
    /// A TXT record that stays (draft-ietf-acme-dns-persist); cert-manager's CRD has no word for it.
    #[serde(rename = "DNS-PERSIST-01")]
    DnsPersist01,
    /// A certificate in a TLS handshake on port 443 (RFC 8737); cert-manager's CRD has no word for it.
    #[serde(rename = "TLS-ALPN-01")]
    TlsAlpn01,
}

impl ChallengeType {
    /// Returns the spelling in resources, such as `HTTP-01`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dns01 => "DNS-01",
            Self::Http01 => "HTTP-01",
            Self::DnsAccount01 => "DNS-ACCOUNT-01",
            Self::DnsPersist01 => "DNS-PERSIST-01",
            Self::TlsAlpn01 => "TLS-ALPN-01",
        }
    }

    /// Returns the spelling of RFC 8555, such as `http-01`.
    pub fn acme_name(self) -> &'static str {
        match self {
            Self::Dns01 => "dns-01",
            Self::Http01 => "http-01",
            Self::DnsAccount01 => "dns-account-01",
            Self::DnsPersist01 => "dns-persist-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }

    /// Reports whether a TXT record proves control, so that a dns01 solver may publish the record.
    pub fn is_by_record(self) -> bool {
        match self {
            Self::Dns01 | Self::DnsAccount01 | Self::DnsPersist01 => true,
            Self::Http01 | Self::TlsAlpn01 => false,
        }
    }

    /// Reports whether the type can prove control of an identifier: wildcards need a record (RFC 8555 §8.3, RFC 8737
    /// §3), addresses have none (RFC 8738 §7).
    pub fn can_prove(self, identifier: &Identifier) -> bool {
        match identifier {
            Identifier::Dns(name) => self.is_by_record() || !name.is_wildcard(),
            Identifier::Ip(_) => !self.is_by_record(),
        }
    }
}

impl fmt::Display for ChallengeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
