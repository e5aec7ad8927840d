//! How a CA of our own behaves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use super::records::Records;
use crate::model::{DnsName, Identifier};

/// Name of the CA in records that stay, for want of another.
const ISSUER_DOMAIN_NAME: &str = "test-ca.invalid";
/// Certificates start this long ago, as at Let's Encrypt, for clients whose clock is slow.
pub(super) const BACKDATED: Duration = Duration::from_hours(1);

const DAY: Duration = Duration::from_hours(24);

/// How the CA behaves; the default is Let's Encrypt's behaviour on a free port of 127.0.0.1.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Names in the server's own certificate beside those of loopback and the listening address; the first is named to people.
    pub names: Vec<Identifier>,
    /// Where tests look at certificates and change what the CA finds in DNS, if anywhere.
    pub management: Option<SocketAddr>,
    /// What the CA finds in DNS before it looks there, which the management changes.
    pub records: Option<Arc<Records>>,
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
    /// How many of a hundred orders and authorizations that could be taken over are.
    pub reuse_percent: u8,
    /// Whether challenges, authorizations and identifiers are listed in any order.
    pub shuffled: bool,
    /// What decides on that order, and on what is taken over.
    pub seed: u64,
    /// Whether dns-persist-01 is offered, a challenge without a token (draft-ietf-acme-dns-persist).
    pub persistent_records: bool,
    /// How many of a hundred good nonces are refused.
    pub refuse_nonces_percent: u8,
    /// Seconds to send as Retry-After while a validation or an issuance is under way; Let's Encrypt sends none for validations.
    pub retry_after: Option<u32>,
    /// Whether every other Retry-After is a date.
    pub retry_after_dates: bool,
    /// How long validation waits before it looks.
    pub validation_delay: Duration,
    /// Whether every name is taken as proven, without a look.
    pub always_valid: bool,
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
            names: Vec::new(),
            management: None,
            records: None,
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
            reuse_percent: 100,
            shuffled: false,
            seed: 0,
            persistent_records: false,
            refuse_nonces_percent: 0,
            retry_after: None,
            retry_after_dates: false,
            validation_delay: Duration::ZERO,
            always_valid: false,
            caa: None,
            revocation: vec![RevocationSource::List],
            without: Vec::new(),
            finalize_delay: None,
        }
    }
}

impl Config {
    /// The temper of Let's Encrypt and Pebble: what a client must not rely on comes otherwise than it came before. Names are
    /// proven anew half of the time.
    pub fn strict() -> Self {
        Self {
            finalize_delay: Some(Duration::from_secs(1)),
            retry_after: Some(3),
            retry_after_dates: true,
            refuse_nonces_percent: 5,
            reuse_percent: 50,
            shuffled: true,
            persistent_records: true,
            ..Self::default()
        }
    }

    /// Names of the CA in records that stay.
    pub(super) fn issuer_domain_names(&self) -> Vec<String> {
        match &self.caa {
            Some(caa) if !caa.identities.is_empty() => caa.identities.clone(),
            Some(_) | None => vec![ISSUER_DOMAIN_NAME.to_owned()],
        }
    }

    /// Every name in the server's own certificate.
    pub(super) fn server_names(&self, listening: IpAddr) -> Vec<Identifier> {
        let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let listening = Some(listening).filter(|address| !address.is_unspecified());
        let localhost = Identifier::parse("localhost").ok();
        let own = addresses.into_iter().chain(listening).map(Identifier::Ip).chain(localhost);
        let all: BTreeSet<_> = own.chain(self.names.iter().cloned()).collect();
        all.into_iter().collect()
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
    /// How long its certificates are good, from their start.
    pub validity: Duration,
    /// How long before they are issued they start.
    pub backdated: Duration,
}

impl Profile {
    /// Describes a profile.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        validity: Duration,
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, description, validity, backdated: BACKDATED }
    }

    /// Describes a profile whose certificates are good so long from the moment at which they are issued; they start a little before.
    pub fn lasting(name: &str, lifetime: Duration) -> Self {
        let backdated = BACKDATED.min(lifetime / 10);
        let description = format!("good for {} s", lifetime.as_secs());
        Self { backdated, ..Self::new(name, description, lifetime + backdated) }
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
