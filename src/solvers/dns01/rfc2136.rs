//! Any server that takes dynamic updates (RFC 2136), such as BIND, Knot or PowerDNS.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::silent_servers::SilentServers;
use super::site::{Site, unusable, zone_of};
use super::{Edit, Provider, TxtRecord};
use crate::dns::FindZone;
use crate::dns::lookup::server_addresses;
use crate::dns::tsig::{Algorithm, Key};
use crate::dns::update::{Change, NOTIMP, Protocol, Update, UpdateError, UpdateRefusal, Updater};
use crate::dns::wire::Wire;
use crate::model::provider_refusal::{ProviderFault, ProviderRefusal};
use crate::model::{SecretKeySelector, solver};
use crate::solvers::SolveError;

/// TTL in seconds. Few resolvers cache the text, for seconds: a CA that asked for one text of a name may ask for the next soon,
/// and must not get the first again. cert-manager uses 60, and waits that long. Other texts at the name keep their TTL.
const TTL: u32 = 0;
/// Longest wait for the server's answer on the TTL of other texts; the server may take updates only.
const TTL_QUERY_TIMEOUT: Duration = Duration::from_secs(1);
/// Text that no client publishes: removing the text changes nothing, and shows whether updates are allowed.
const PROBE_TEXT: &str = "kubectl-acme looks whether it may change this name";

/// Response code for a record in another zone than the update's (RFC 2136 §2.2).
const NOTZONE: u16 = 10;
/// Most addresses of a server that are tried.
const MAX_ADDRESSES: usize = 8;

/// Hint for a server that does not answer updates.
const SILENCE_HINT: &str = "start that name server and open its port to this machine (UDP, or TCP by protocol: TCP), or correct \
                      nameserver in the dns01 solver";

/// Addresses that have not answered this process.
static SILENCES: SilentServers = SilentServers::new();

/// A server that takes dynamic updates.
#[derive(Debug)]
pub struct Rfc2136 {
    /// Updaters, one for each address of the server.
    updaters: Vec<Updater>,
    /// The key's name and algorithm, for hints.
    key: Option<(String, Algorithm)>,
    /// Client for queries to the server.
    wire: Wire,
    zones: Arc<dyn FindZone>,
}

impl Rfc2136 {
    /// Reads the key, and finds the server.
    pub(super) async fn of(fields: &solver::Rfc2136, site: &Site<'_>) -> Result<Self, SolveError> {
        let algorithm = Algorithm::parse(&fields.tsig_algorithm).map_err(unusable)?;
        let (name, secret) = (&fields.tsig_key_name, &fields.tsig_secret_secret_ref);
        // Without both the update is not signed, as with cert-manager.
        let key = if name.is_empty() || secret.name.is_empty() {
            None
        } else {
            let text = site.secret(secret).await?;
            let key = Key::new(name, algorithm, &text);
            Some(key.map_err(|why| unusable_key(secret, why))?)
        };
        let found = server_addresses(&fields.nameserver, &**site.resolver).await;
        let addresses = found.map_err(|error| {
            SolveError::passing(
                format!("cannot find the name server {}", fields.nameserver),
                error.to_string(),
            )
        })?;
        let protocol = match fields.protocol.to_ascii_uppercase().as_str() {
            "TCP" => Protocol::Tcp,
            _ => Protocol::Udp,
        };
        let named = key.as_ref().map(|_| (name.clone(), algorithm));
        let addresses = addresses.into_iter().take(MAX_ADDRESSES);
        let updaters = addresses.map(|server| Updater::new(server, protocol, key.clone()));
        let wire = Wire::new(Arc::clone(site.resolver)).with_patience(TTL_QUERY_TIMEOUT);
        let updaters = updaters.collect();
        Ok(Self { updaters, key: named, wire, zones: Arc::clone(site.zones) })
    }

    async fn update(&self, name: &str, text: &str, edit: Edit) -> Result<(), SolveError> {
        let zone = zone_of(&*self.zones, name).await?;
        let mut silent = BTreeMap::new();
        for (number, updater, was_silent) in SILENCES.in_turn(&self.updaters) {
            let change = match edit {
                Edit::Remove => Change::Remove,
                Edit::Add if was_silent => Change::Add { ttl: TTL },
                // All texts at a name have one TTL (RFC 2181 §5.2): another TTL would change the TTL of the others.
                Edit::Add => {
                    let theirs = self.wire.ttl_of_texts(updater.server(), name).await;
                    Change::Add { ttl: theirs.unwrap_or(TTL) }
                }
            };
            let update = Update { zone: &zone, name, text, change };
            let sent = updater.send(&update).await;
            SILENCES.heard(updater.server(), !matches!(sent, Err(UpdateError::Silent { .. })));
            match sent {
                Ok(()) => return Ok(()),
                // A machine without IPv6 has no way to the first address of many servers.
                Err(error @ UpdateError::Silent { .. }) => {
                    silent.insert(number, error.to_string());
                }
                Err(error) => {
                    return Err(self.explain_error(&error, updater.server(), (name, &zone)).await);
                }
            }
        }
        Err(all_silent("DNS update failed", &format!("update of {zone}"), silent))
    }

    /// Checks by one signed query whether the server accepts the key and has the zone.
    async fn ask(&self, name: &str) -> Result<(), SolveError> {
        let zone = zone_of(&*self.zones, name).await?;
        let mut silent = BTreeMap::new();
        for (number, updater, _) in SILENCES.in_turn(&self.updaters) {
            let server = updater.server();
            match updater.is_authority(&zone).await {
                // Some servers take signed updates and sign no answer to a question.
                Ok(true) | Err(UpdateError::Untrusted { .. }) => return Ok(()),
                Ok(false) => {
                    let why = format!("{server} is no authority for {zone}");
                    let call = format!("SOA of {zone} at {server}");
                    let hint = self.elsewhere(server, name, &zone).await;
                    return Err(SolveError::lasting("DNS update would fail", &*why)
                        .with_remedy(hint)
                        .refused(ProviderRefusal::new(ProviderFault::NoZone, call, why)));
                }
                Err(error @ UpdateError::Silent { .. }) => {
                    silent.insert(number, error.to_string());
                }
                Err(error) => {
                    let mut error = self.explain_error(&error, server, (name, &zone)).await;
                    if let Some(refusal) = &mut error.refusal {
                        refusal.call = format!("SOA of {zone} at {server}{}", self.signature());
                    }
                    return Err(error);
                }
            }
        }
        Err(all_silent("cannot ask the name server", &format!("SOA of {zone}"), silent))
    }

    /// Builds the error in cert-manager's words, with a hint.
    async fn explain_error(
        &self,
        error: &UpdateError,
        server: SocketAddr,
        (name, zone): (&str, &str),
    ) -> SolveError {
        let refusal = self.refusal(error, server, zone);
        let failed = |what: &str, needs_person, hint| {
            SolveError::new(what.to_owned(), error.to_string(), needs_person)
                .with_remedy(hint)
                .refused(refusal.clone())
        };
        match error {
            UpdateError::Refused(refusal) => {
                let hint = match self.hint(*refusal, server, zone) {
                    Some(hint) if refusal.code() != Some(NOTIMP) => {
                        Some(self.elsewhere(server, name, zone).await.unwrap_or(hint))
                    }
                    hint => hint,
                };
                failed("DNS update failed. Server replied", hint.is_some(), hint)
            }
            UpdateError::Unwritable(_) => failed("DNS update failed", true, None),
            UpdateError::Silent { .. } => {
                failed("DNS update failed", false, Some(SILENCE_HINT.to_owned()))
            }
            UpdateError::Forwarded { server } => {
                let hint = format!(
                    "name the primary server of {zone} as nameserver in the dns01 solver, in place of {server}"
                );
                failed("DNS update failed", true, Some(hint))
            }
            UpdateError::Untrusted { server, .. } => {
                let hint = format!("whoever answers at {server} has to sign by the same key");
                failed("DNS update failed", true, Some(hint))
            }
        }
    }

    /// Describes the key that signs messages.
    fn signature(&self) -> String {
        let key = self.key.as_ref();
        key.map(|(key, algorithm)| format!(", key {key}, {algorithm}")).unwrap_or_default()
    }

    /// Returns the refusal as data.
    fn refusal(&self, error: &UpdateError, server: SocketAddr, zone: &str) -> ProviderRefusal {
        let (fault, code) = match error {
            UpdateError::Refused(refusal) if refusal.code() == Some(NOTIMP) => {
                (ProviderFault::NoUpdates, refusal.to_string())
            }
            UpdateError::Refused(refusal) => (ProviderFault::Update, refusal.to_string()),
            UpdateError::Forwarded { .. } => (ProviderFault::NoUpdates, String::new()),
            UpdateError::Untrusted { .. } => (ProviderFault::Update, String::new()),
            UpdateError::Silent { .. } => (ProviderFault::Unreachable, String::new()),
            UpdateError::Unwritable(_) => (ProviderFault::Other, String::new()),
        };
        let call = format!("update of {zone} at {server}{}", self.signature());
        let said = error.to_string();
        let is_unsigned = matches!(error, UpdateError::Refused(UpdateRefusal::UnsignedCode(_)));
        let refusal = ProviderRefusal::new(fault, call, said);
        ProviderRefusal { code, zone: zone.to_owned(), is_unsigned, ..refusal }
    }

    /// Builds the hint if the server would change another zone than the zone found for a name.
    async fn elsewhere(&self, server: SocketAddr, name: &str, zone: &str) -> Option<String> {
        match self.wire.zone_at(server, name).await {
            Some(own) if own.eq_ignore_ascii_case(zone) => None,
            Some(own) => Some(format!(
                "the zone found for {name} is {zone}, but {server} has it in its zone {own}: have {own} delegated to \
                 {server}, or name a resolver that knows {own} in the solver's nameservers"
            )),
            // A zone with one label belongs to a registry, and takes no updates: the zone of the domain is missing.
            None if zone.trim_end_matches('.').contains('.') => None,
            None => Some(format!(
                "the zone found for {name} is {zone}, not one of the domain's own, and {server} has none for it either: \
                 create the domain's zone there and have it delegated; or lead {name} by a CNAME into a zone that you \
                 have, and set cnameStrategy: Follow"
            )),
        }
    }

    /// Builds the hint for a person; `None` if the refusal may pass by itself.
    fn hint(&self, refusal: UpdateRefusal, server: SocketAddr, zone: &str) -> Option<String> {
        match refusal.code() {
            Some(NOTIMP) => {
                return Some(format!(
                    "{server} takes no dynamic updates (NSD and resolvers never do): name the primary server of {zone} that \
                     does as nameserver in the dns01 solver"
                ));
            }
            Some(NOTZONE) => {
                return Some(format!(
                    "{server} does not have the record in its zone {zone}: see which zone it has for that name, and that the \
                     delegation leads there"
                ));
            }
            _ => {}
        }
        let Some((key, algorithm)) = &self.key else {
            return match refusal {
                UpdateRefusal::Code(5 | 9) => Some(format!(
                    "name a TSIG key that {server} knows (tsigKeyName, tsigSecretSecretRef), or allow unsigned \
                     updates of {zone} there"
                )),
                _ => None,
            };
        };
        match refusal {
            UpdateRefusal::BadKey => Some(format!(
                "{server} knows no key {key} for {algorithm} that may change {zone}: compare tsigKeyName and \
                 tsigAlgorithm with its configuration"
            )),
            UpdateRefusal::BadSignature => Some(format!(
                "{server} has another secret, or algorithm, for the key {key}: compare the Secret and \
                 tsigAlgorithm ({algorithm}) with its configuration"
            )),
            UpdateRefusal::BadTime => Some(format!(
                "set the clocks: those here and at {server} differ by more than 5 minutes"
            )),
            UpdateRefusal::UnsignedCode(5) => Some(format!(
                "compare the key with the configuration of {server}: its name {key}, its secret, its algorithm {algorithm}; \
                 PowerDNS says REFUSED for an unknown key and for another secret, too (and see TSIG-ALLOW-DNSUPDATE and \
                 ALLOW-DNSUPDATE-FROM of {zone} there); if they agree, allow the key to change TXT records of {zone}, or this \
                 machine to send updates"
            )),
            UpdateRefusal::Code(5) => Some(format!(
                "allow the key {key} to change TXT records of {zone} at {server} (BIND: update-policy, Knot: \
                 acl with action update)"
            )),
            UpdateRefusal::Code(9) | UpdateRefusal::UnsignedCode(9) => Some(format!(
                "{server} is not the primary server of {zone}, or does not let the key {key} change it: see \
                 nameserver, and the server's access rules"
            )),
            UpdateRefusal::Code(_) | UpdateRefusal::UnsignedCode(_) => None,
        }
    }
}

#[async_trait]
impl Provider for Rfc2136 {
    async fn add(&self, record: &TxtRecord) -> Result<(), SolveError> {
        self.update(&record.name, &record.value, Edit::Add).await
    }

    async fn remove(&self, record: &TxtRecord) -> Result<(), SolveError> {
        self.update(&record.name, &record.value, Edit::Remove).await
    }

    async fn check(&self, name: &str) -> Result<(), SolveError> {
        self.update(name, PROBE_TEXT, Edit::Remove).await
    }

    async fn check_read_only(&self, name: &str) -> Result<(), SolveError> {
        self.ask(name).await
    }
}

/// Builds the error if no address of the server answers.
fn all_silent(what: &str, call: &str, silent: BTreeMap<usize, String>) -> SolveError {
    let why = silent.into_values().collect::<Vec<_>>().join("; ");
    let refusal = ProviderRefusal::new(ProviderFault::Unreachable, call, &*why);
    SolveError::passing(what, why).advised(SILENCE_HINT.to_owned()).refused(refusal)
}

fn unusable_key(secret: &SecretKeySelector, why: String) -> SolveError {
    let call = format!("key {} of Secret {}", secret.key, secret.name);
    let refusal = ProviderRefusal::new(ProviderFault::Credentials, call, &*why);
    SolveError::lasting(
        format!("cannot use the key \"{}\" of Secret \"{}\"", secret.key, secret.name),
        why,
    )
    .advised("it is the text that stands after `secret` in the server's configuration")
    .refused(refusal)
}
