//! How a CA of our own behaves.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use zeroize::Zeroizing;

use crate::model::{DnsName, Identifier};

const DAY: Duration = Duration::from_hours(24);

/// How the CA behaves; the default is Let's Encrypt's behaviour on a free port of 127.0.0.1.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Names in the server's own certificate. The listening address stands in every URL if it is among them, else the first name.
    pub names: Vec<Identifier>,
    /// Profiles on offer; the first one is for orders that ask for none.
    pub profiles: Vec<Profile>,
    /// MAC keys for external account binding, by key identifier (RFC 8555 §7.3.4).
    pub external_accounts: BTreeMap<String, MacKey>,
    /// Whether newAccount needs such a binding.
    pub external_account_required: bool,
    /// How long an order and its pending authorizations live.
    pub order_lifetime: Duration,
    /// How long a valid authorization lives.
    pub authorization_lifetime: Duration,
    /// Whether newOrder gives back an order for the same names that is pending or ready.
    pub reuse_orders: bool,
    /// Whether a new order takes over the account's valid authorizations.
    pub reuse_authorizations: bool,
    /// Names that are refused, with all names below them.
    pub blocked: Vec<DnsName>,
    /// How many of a hundred good nonces are refused.
    pub refuse_nonces_percent: u8,
    /// Seconds to send as Retry-After while a validation or an issuance is under way; Let's Encrypt sends none for validations.
    pub retry_after: Option<u32>,
    /// For whom CAA records are looked at before a name is taken as proven; none are looked at without.
    pub caa: Option<Caa>,
    /// How certificates say that their revocation is told.
    pub revocation: Vec<RevocationSource>,
    /// What the directory does not name.
    pub without: Vec<OptionalEndpoint>,
    /// With a duration, finalize answers `processing` and issues that much later; else it issues at once.
    pub finalize_delay: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            names: loopback_names(),
            profiles: vec![
                Profile::new("classic", "ninety days", 90 * DAY),
                Profile::new("tlsserver", "forty-five days", 45 * DAY),
                Profile::new("shortlived", "160 hours", Duration::from_hours(160)),
            ],
            external_accounts: BTreeMap::new(),
            external_account_required: false,
            order_lifetime: 7 * DAY,
            authorization_lifetime: 30 * DAY,
            reuse_orders: true,
            reuse_authorizations: true,
            blocked: Vec::new(),
            refuse_nonces_percent: 0,
            retry_after: None,
            caa: None,
            revocation: vec![RevocationSource::List],
            without: Vec::new(),
            finalize_delay: None,
        }
    }
}

/// A way to tell that a certificate was revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationSource {
    /// A list (RFC 5280 §5).
    List,
    /// An OCSP responder (RFC 6960).
    Responder,
}

/// What a directory need not name (RFC 8555 §7.1.1, RFC 9773 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalEndpoint {
    /// Another key for an account.
    KeyChange,
    /// When to renew.
    RenewalInfo,
    /// Revocation.
    RevokeCert,
}

impl OptionalEndpoint {
    /// Its name in the directory.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::KeyChange => "keyChange",
            Self::RenewalInfo => "renewalInfo",
            Self::RevokeCert => "revokeCert",
        }
    }
}

/// One sort of certificate on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name, as orders ask for it.
    pub name: String,
    /// Sentence for people.
    pub description: String,
    /// How long its certificates are good.
    pub validity: Duration,
}

impl Profile {
    /// Describes a profile.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        validity: Duration,
    ) -> Self {
        Self { name: name.into(), description: description.into(), validity }
    }
}

/// The MAC key of an external account; does not print.
#[derive(Clone)]
pub struct MacKey(pub(super) Zeroizing<Vec<u8>>);

impl MacKey {
    /// Wraps a key, decoded.
    pub fn new(octets: Vec<u8>) -> Self {
        Self(Zeroizing::new(octets))
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(..)")
    }
}

fn loopback_names() -> Vec<Identifier> {
    let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    let localhost = Identifier::parse("localhost").ok();
    addresses.into_iter().map(Identifier::Ip).chain(localhost).collect()
}

/// For whom CAA records are looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caa {
    /// Names by which the records may mean this CA (`caaIdentities`); without any, a record with `issue` excludes it.
    pub identities: Vec<String>,
    /// Which account `accounturi` has to mean (RFC 8657 §3).
    pub account: RecordAccount,
}

/// The account that an order is for, as records see it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordAccount {
    /// The one here.
    Own,
    /// The one with this URL, at the CA that this one stands for.
    Elsewhere(String),
    /// None: the CA that this one stands for will make one, whose URL no record can have yet.
    Unmade,
}
