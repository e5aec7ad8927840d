//! Solver of DNS-01: finds the name and the provider of a Challenge, and publishes the text there.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::info;

use super::site::{self, Credentials, Hooks, Site, Webhooks};
use super::{Provider, TxtRecord, factory, manual};
use crate::dns::wildcard::ByWildcard;
use crate::dns::zone::Zones;
use crate::dns::{FindZone, Resolve};
use crate::model::memory::{Holder, Memory};
use crate::model::observation::NameServerAnswer;
use crate::model::own_solver::GROUP;
use crate::model::persist::RecordRequirements;
use crate::model::provider_refusal::provider_name;
use crate::model::solver::Dns01Solver;
use crate::model::zone_look::ProviderZone;
use crate::model::{Answer, Challenge, ChallengeType, IssuerRef};
use crate::solvers::remedy::Remedy;
use crate::solvers::{SolveError, Solver};

/// Longest wait for lookups about a record's zone.
const ZONE_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers DNS-01 by the provider that each Challenge names.
#[derive(Clone, Debug)]
pub struct Dns01 {
    /// Source of Secrets.
    pub credentials: Arc<dyn Credentials>,
    /// Client of webhooks.
    pub webhooks: Arc<dyn Webhooks>,
    /// Finder of zones, and of the targets of aliases.
    pub zones: Zones,
    /// Resolver for hosts of APIs and name servers.
    pub resolver: Arc<dyn Resolve>,
    /// Namespace of the Secrets of ClusterIssuers.
    pub cluster_namespace: String,
    /// Kinds of issuers that may use credentials from around the process.
    pub ambience: Ambience,
    /// Whether programs that a solver names may be run.
    pub hooks: Hooks,
    /// Whether a provider's first answer counts, although the provider asks for patience.
    pub impatient: bool,
}

/// Issuers that may use credentials from around the process: environment, files, metadata services, workload identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ambience {
    /// ClusterIssuers (`--cluster-issuer-ambient-credentials`).
    pub cluster_issuers: bool,
    /// Issuers (`--issuer-ambient-credentials`).
    pub issuers: bool,
}

impl Default for Ambience {
    /// Returns cert-manager's default: writers of Issuers in a namespace need not be trusted with the process's credentials.
    fn default() -> Self {
        Self { cluster_issuers: true, issuers: false }
    }
}

impl Dns01 {
    /// Builds the provider of a solver, for an issuer that is used in that namespace.
    ///
    /// # Errors
    /// Fails when a Secret or a field is missing or cannot be used.
    pub async fn provider(
        &self,
        solver: &Dns01Solver,
        issuer: &IssuerRef,
        namespace: &str,
    ) -> Result<Arc<dyn Provider>, SolveError> {
        let is_cluster = issuer.is_cluster();
        let zones: Arc<dyn FindZone> = Arc::new(self.zones_of(solver)?);
        let site = Site {
            namespace: issuer.secret_namespace(namespace, &self.cluster_namespace),
            credentials: &*self.credentials,
            ambient: if is_cluster { self.ambience.cluster_issuers } else { self.ambience.issuers },
            zones: &zones,
            resolver: &self.resolver,
            webhooks: &self.webhooks,
            hooks: self.hooks,
            impatient: self.impatient,
        };
        factory::provider(solver, &site).await.map_err(|error| with_provider_name(solver, error))
    }

    /// Asks the provider of a solver, by reading alone, whether the provider would take the record of that name (absolute).
    ///
    /// # Errors
    /// Fails if the provider refuses, or cannot be asked.
    pub async fn check_read_only(
        &self,
        solver: &Dns01Solver,
        issuer: &IssuerRef,
        namespace: &str,
        own: &str,
    ) -> Result<(), SolveError> {
        let provider = self.provider(solver, issuer, namespace).await?;
        provider.knows(domain_of(own)).map_err(|error| with_provider_name(solver, error))?;
        let name = self.record_name(solver, own.to_owned()).await?;
        match provider.check_read_only(&name).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.placed(solver, &name, error).await),
        }
    }

    /// Asks the provider of a solver whether it takes records of these names (absolute), one in each zone; writes nothing.
    ///
    /// # Errors
    /// Fails if the provider refuses, or cannot be asked.
    pub async fn check(
        &self,
        solver: &Dns01Solver,
        issuer: &IssuerRef,
        namespace: &str,
        names: &BTreeSet<String>,
    ) -> Result<(), SolveError> {
        let provider = self.provider(solver, issuer, namespace).await?;
        let zones = self.zones_of(solver)?;
        let mut asked = BTreeSet::new();
        for own in names {
            provider.knows(domain_of(own)).map_err(|error| with_provider_name(solver, error))?;
            let name = self.record_name(solver, own.clone()).await?;
            // If the zone cannot be found, the provider may work without the zone.
            let zone = zones.zone_of(&name).await.unwrap_or_else(|_| name.clone());
            if asked.insert(zone)
                && let Err(error) = provider.check(&name).await
            {
                let error = self.placed(solver, &name, error).await;
                return Err(self.with_alias(solver, own, error).await);
            }
        }
        Ok(())
    }

    /// Returns the provider's zones with the name of the zone of a record (absolute); writes nothing.
    ///
    /// # Errors
    /// Fails when the provider cannot be asked.
    pub async fn zones_of_record(
        &self,
        solver: &Dns01Solver,
        issuer: &IssuerRef,
        namespace: &str,
        name: String,
    ) -> Result<Vec<ProviderZone>, SolveError> {
        let provider = self.provider(solver, issuer, namespace).await?;
        let name = self.record_name(solver, name).await?;
        provider.zones_of_name(&name).await
    }

    /// Returns the records that a wildcard alone gives to the host of a record (absolute), and that would be
    /// gone while the record exists; `None` if aliases lead the record elsewhere, or if lookups fail.
    pub async fn hidden_by(&self, solver: &Dns01Solver, own: &str) -> Option<ByWildcard> {
        let host = domain_of(own);
        let given = self.zones_of(solver).ok()?.by_wildcard(host).await?;
        let name = self.record_name(solver, own.to_owned()).await.ok()?;
        name.eq_ignore_ascii_case(own).then_some(given)
    }

    /// Returns the name at which a record is written: the name itself, or the target of its aliases if they are to be followed.
    ///
    /// # Errors
    /// Fails if the target of the aliases cannot be found.
    pub async fn record_name(
        &self,
        solver: &Dns01Solver,
        name: String,
    ) -> Result<String, SolveError> {
        if !solver.cname_strategy.eq_ignore_ascii_case("Follow") {
            return Ok(name);
        }
        let followed = self.zones_of(solver)?.canonical(&name).await;
        followed.map_err(|error| {
            SolveError::passing(format!("cannot follow {name}"), error.to_string())
                .with_remedy(error.symptom().map(Remedy::Zone))
        })
    }

    /// Adds to an error of a provider that the record's name is an alias, which may be the cause:
    /// the alias leads to a zone of others, or to the zone that was meant.
    async fn with_alias(&self, solver: &Dns01Solver, own: &str, error: SolveError) -> SolveError {
        if !error.needs_person {
            return error;
        }
        let Ok(zones) = self.zones_of(solver) else { return error };
        let Ok(Ok(end)) = timeout(ZONE_TIMEOUT, zones.canonical(own)).await else { return error };
        if end.eq_ignore_ascii_case(own) {
            return error;
        }
        let follows = solver.cname_strategy.eq_ignore_ascii_case("Follow");
        let record = own.to_owned();
        let beside = error.remedy.clone();
        error.advised(Remedy::Alias { record, end, follows, beside })
    }

    /// Adds the provider and the zone of the record to a provider's refusal.
    async fn placed(&self, solver: &Dns01Solver, name: &str, error: SolveError) -> SolveError {
        let mut error = with_provider_name(solver, error);
        if let Some(refusal) = error.refusal.as_mut().filter(|refusal| refusal.zone.is_empty())
            && let Ok(zones) = self.zones_of(solver)
            && let Ok(Ok(zone)) = timeout(ZONE_TIMEOUT, zones.zone_of(name)).await
        {
            refusal.zone = zone;
        }
        error
    }

    fn zones_of(&self, solver: &Dns01Solver) -> Result<Zones, SolveError> {
        self.zones.for_solver(&solver.nameservers).map_err(site::unusable)
    }

    /// Returns whether every server that can be asked has a good persistent record, whichever client made the record:
    /// another record would stay beside it for ever. Records of parent names do not count, although `policy=wildcard`
    /// lets a CA take such a record, too (draft-ietf-acme-dns-persist-02 §6): the CA may, no challenge says whether the
    /// CA does, and Boulder and Pebble look up the name alone. Both would refuse the name without a record of its own.
    async fn is_good_already(&self, challenge: &Challenge, name: &str) -> bool {
        let (spec, now) = (&challenge.spec, Timestamp::now());
        let (Some(persist), Some(solver)) = (&spec.persist, &spec.solver.dns01) else {
            return false;
        };
        let demand = RecordRequirements { persist, wildcard: spec.wildcard, now };
        let Ok(zones) = self.zones_of(solver) else { return false };
        let Ok(Ok(found)) = timeout(ZONE_TIMEOUT, zones.texts(name)).await else { return false };
        let good = |said: &NameServerAnswer| matches!(said, NameServerAnswer::Texts(texts) if texts.iter().any(|text| demand.is_met_by(text)));
        let mut said = found.servers.iter().map(|server| &server.said).peekable();
        said.peek().is_some() && said.all(good)
    }

    async fn target(
        &self,
        challenge: &Challenge,
        answer: &Answer,
    ) -> Result<(Arc<dyn Provider>, TxtRecord), SolveError> {
        let spec = &challenge.spec;
        let solver = spec.solver.dns01.as_deref().ok_or_else(|| {
            site::unusable("no dns01 challenge solver configuration found".to_owned())
        })?;
        let namespace = &challenge.metadata.namespace;
        let provider = self.provider(solver, &spec.issuer_ref, namespace).await?;
        let record = TxtRecord {
            domain: spec.dns_name.clone(),
            name: self.record_name(solver, spec.record_name()).await?,
            value: answer.key_authorization.clone(),
        };
        Ok((provider, record))
    }
}

#[async_trait]
impl Solver for Dns01 {
    async fn present(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        let (provider, record) = self.target(challenge, answer).await?;
        if self.is_good_already(challenge, &record.name).await {
            return Ok(());
        }
        let added = change_record("add", &record, provider.add(&record)).await;
        match (added, &challenge.spec.solver.dns01) {
            (Err(error), Some(solver)) => {
                let error = self.placed(solver, &record.name, error).await;
                Err(self.with_alias(solver, &challenge.spec.record_name(), error).await)
            }
            (added, _) => added,
        }
    }

    async fn clean_up(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        // A record of DNS-PERSIST-01 is made to stay: the next order needs it.
        let stays = challenge.spec.kind == ChallengeType::DnsPersist01;
        if stays || manual::is_a_persons(challenge) {
            return Ok(());
        }
        let (provider, record) = self.target(challenge, answer).await?;
        match (
            change_record("remove", &record, provider.remove(&record)).await,
            &challenge.spec.solver.dns01,
        ) {
            (Err(error), Some(solver)) => Err(self.placed(solver, &record.name, error).await),
            (removed, _) => removed,
        }
    }

    /// Returns whether the record is up: records outlive processes; a record left to a person counts only after it was seen.
    fn stands(&self, challenge: &Challenge, _: &Answer) -> bool {
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        !memory.by_hand || memory.accepted_at.is_some()
    }

    async fn is_everywhere(
        &self,
        challenge: &Challenge,
        answer: &Answer,
    ) -> Result<bool, SolveError> {
        let (provider, record) = self.target(challenge, answer).await?;
        provider.is_everywhere(&record).await
    }

    async fn place(&self, challenge: &Challenge, answer: &Answer) -> String {
        let (own, text) = (challenge.spec.record_name(), &answer.key_authorization);
        let found = timeout(ZONE_TIMEOUT, async {
            let solver = challenge.spec.solver.dns01.as_deref()?;
            let name = self.record_name(solver, own.clone()).await.ok()?;
            let zone = self.zones_of(solver).ok()?.zone_of(&name).await.ok();
            Some((name, zone))
        });
        match found.await.ok().flatten() {
            Some((name, Some(zone))) => {
                format!("the TXT record {name} with the text \"{text}\" from the zone {zone}")
            }
            Some((name, None)) => format!("the TXT record {name} with the text \"{text}\""),
            None => format!("the TXT record {own} with the text \"{text}\""),
        }
    }
}

/// Returns the domain of a record, without leading labels that begin with `_`, which belong to the challenge type.
pub fn domain_of(record: &str) -> &str {
    let mut domain = record.trim_end_matches('.');
    while let Some((_, below)) = domain.split_once('.').filter(|(label, _)| label.starts_with('_'))
    {
        domain = below;
    }
    domain
}

/// Adds the provider's name to a provider's refusal.
fn with_provider_name(solver: &Dns01Solver, mut error: SolveError) -> SolveError {
    if let Some(refusal) = error.refusal.as_mut().filter(|refusal| refusal.provider.is_empty()) {
        // One of the many providers has a name of its own.
        let webhook = solver.webhook.as_ref().filter(|fields| fields.group_name == GROUP);
        let name = webhook.map(|fields| fields.solver_name.clone());
        refusal.provider = name.unwrap_or_else(|| provider_name(solver).to_owned());
    }
    error
}

/// Locks for changes of records, by a digest of the record's name: some APIs replace all values of
/// a name at once, so that one of two simultaneous changes would be lost.
static RECORD_LOCKS: [Mutex<()>; 256] = [const { Mutex::const_new(()) }; 256];

/// Runs a provider's change of a record under the record's lock, and logs the result.
async fn change_record(
    deed: &'static str,
    record: &TxtRecord,
    change: impl Future<Output = Result<(), SolveError>>,
) -> Result<(), SolveError> {
    let mut hasher = DefaultHasher::new();
    record.name.to_ascii_lowercase().hash(&mut hasher);
    let [turn, ..] = hasher.finish().to_ne_bytes();
    let _turn = RECORD_LOCKS[usize::from(turn)].lock().await;
    let began = Instant::now();
    let done = change.await;
    let (name, took) = (&record.name, format!("{}ms", began.elapsed().as_millis()));
    match &done {
        Ok(()) => info!(deed, name, took, "the DNS provider has changed the record"),
        Err(error) => {
            info!(deed, name, took, %error, "the DNS provider has not changed the record");
        }
    }
    done
}
