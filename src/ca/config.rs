//! Configuration of the rehearsal CA.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use zeroize::Zeroizing;

use super::records::Records;
use crate::model::{DnsName, Identifier};

/// Name of the CA in records of dns-persist-01, if the configuration has no other name.
const ISSUER_DOMAIN_NAME: &str = "test-ca.invalid";
/// Certificates start this long ago, as at Let's Encrypt, for clients whose clock is slow.
pub(super) const BACKDATE: Duration = Duration::from_hours(1);

const DAY: Duration = Duration::from_hours(24);

/// Configuration of the CA; the default is Let's Encrypt's behaviour on a free port of 127.0.0.1.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Config {
    /// Listening address; port 0 takes a free port.
    pub listen: SocketAddr,
    /// Names in the server's own certificate beside loopback and the listening address; the first name is shown to people.
    pub names: Vec<Identifier>,
    /// Listening address of the management, where tests read certificates and change DNS records; `None` for no management.
    pub management: Option<SocketAddr>,
    /// Records that the CA finds before it asks DNS; the management changes these records.
    pub records: Option<Arc<Records>>,
    /// Profiles on offer; the first profile is for orders that name none.
    pub profiles: Vec<Profile>,
    /// MAC keys for external account binding, by key identifier (RFC 8555 §7.3.4).
    pub external_accounts: BTreeMap<String, MacKey>,
    /// Whether newAccount needs an external account binding.
    pub external_account_required: bool,
    /// Lifetime of an order and its pending authorizations.
    pub order_lifetime: Duration,
    /// Lifetime of a valid authorization.
    pub authorization_lifetime: Duration,
    /// Whether newOrder gives back an order for the same names that is pending or ready.
    pub reuse_orders: bool,
    /// Whether a new order takes over the account's valid authorizations.
    pub reuse_authorizations: bool,
    /// Names that are refused, with all names below them.
    pub blocked: Vec<DnsName>,
    /// Percentage of the reusable orders and authorizations that are reused.
    pub reuse_percent: u8,
    /// Whether challenges, authorizations and identifiers are listed in random order.
    pub shuffled: bool,
    /// Seed of that random order, and of the choice of reused objects.
    pub seed: u64,
    /// Whether dns-persist-01 is offered, a challenge without a token (draft-ietf-acme-dns-persist).
    pub persistent_records: bool,
    /// Percentage of the good nonces that are refused.
    pub refuse_nonces_percent: u8,
    /// Seconds to send as Retry-After while a validation or an issuance is under way; Let's Encrypt sends none for validations.
    pub retry_after: Option<u32>,
    /// Whether every other Retry-After is a date.
    pub retry_after_dates: bool,
    /// Pause of a validation before it begins.
    pub validation_delay: Duration,
    /// Whether every name is taken as proven, without a validation.
    pub always_valid: bool,
    /// Settings of the CAA check before a name is taken as proven; `None` for no check.
    pub caa: Option<Caa>,
    /// Sources of revocation that certificates name.
    pub revocation: Vec<RevocationSource>,
    /// Resources that the directory does not name.
    pub without: Vec<OptionalEndpoint>,
    /// Delay after which finalize issues, answering `processing`; `None` to issue at once.
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
    /// Returns a configuration in the manner of Let's Encrypt and Pebble: details that a client
    /// must not rely on change from one answer to the next. Names are proven anew half of the time.
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

    /// Returns the names of the CA in records of dns-persist-01.
    pub(super) fn issuer_domain_names(&self) -> Vec<String> {
        match &self.caa {
            Some(caa) if !caa.identities.is_empty() => caa.identities.clone(),
            Some(_) | None => vec![ISSUER_DOMAIN_NAME.to_owned()],
        }
    }

    /// Returns all names in the server's own certificate.
    pub(super) fn server_names(&self, listening: IpAddr) -> Vec<Identifier> {
        let addresses = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let listening = Some(listening).filter(|address| !address.is_unspecified());
        let localhost = Identifier::parse("localhost").ok();
        let own = addresses.into_iter().chain(listening).map(Identifier::Ip).chain(localhost);
        let all: BTreeSet<_> = own.chain(self.names.iter().cloned()).collect();
        all.into_iter().collect()
    }
}

/// Source of information on revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationSource {
    /// A list (RFC 5280 §5).
    List,
    /// An OCSP responder (RFC 6960).
    Responder,
}

/// Resource that a directory need not name (RFC 8555 §7.1.1, RFC 9773 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionalEndpoint {
    /// Change of an account's key.
    KeyChange,
    /// Renewal information.
    RenewalInfo,
    /// Revocation.
    RevokeCert,
}

impl OptionalEndpoint {
    /// Returns the resource's name in the directory.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::KeyChange => "keyChange",
            Self::RenewalInfo => "renewalInfo",
            Self::RevokeCert => "revokeCert",
        }
    }
}

/// Kind of certificate on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name, as orders ask for it.
    pub name: String,
    /// Sentence for people.
    pub description: String,
    /// Lifetime of the certificates, from their start.
    pub validity: Duration,
    /// Time by which the start lies before the issue.
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
        Self { name, description, validity, backdated: BACKDATE }
    }

    /// Describes a profile whose certificates are good for `lifetime` from their issue; they start a little before.
    pub fn lasting(name: &str, lifetime: Duration) -> Self {
        let backdated = BACKDATE.min(lifetime / 10);
        let description = format!("good for {} s", lifetime.as_secs());
        Self { backdated, ..Self::new(name, description, lifetime + backdated) }
    }
}

/// MAC key of an external account; its `Debug` form hides the key.
#[derive(Clone)]
pub struct MacKey(pub(super) Zeroizing<Vec<u8>>);

impl MacKey {
    /// Wraps a decoded key.
    pub fn new(octets: Vec<u8>) -> Self {
        Self(Zeroizing::new(octets))
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(..)")
    }
}

/// Settings of the CAA check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caa {
    /// Names by which the records may mean this CA (`caaIdentities`); without names, a record with `issue` excludes the CA.
    pub identities: Vec<String>,
    /// Account that `accounturi` has to name (RFC 8657 §3).
    pub account: RecordAccount,
}

/// Account of an order, as CAA records see the account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordAccount {
    /// The account at this CA.
    Own,
    /// The account with this URL, at the CA that this CA stands for.
    Elsewhere(String),
    /// No account: the CA that this CA stands for will make an account, whose URL no record can have yet.
    Unmade,
}
