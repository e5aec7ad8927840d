//! What `diagnose` would say by what stands in the store alone, for commands that do not look at the network: the same rules,
//! the same sentence. Where that tells nothing, the way to `diagnose`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::timeout;

use crate::diagnosis::case::chain::{Chain, issuer_key};
use crate::diagnosis::case::issuer::IssuerCase;
use crate::diagnosis::case::name::{AnswerLook, NameCase};
use crate::diagnosis::case::{Case, CertificateCase, DueReason};
use crate::diagnosis::finding::{Finding, is_consequence};
use crate::diagnosis::rules;
use crate::diagnosis::verdict::awaited::narrow;
use crate::diagnosis::verdict::near_issuer::near_issuers;
use crate::hints::finding::sentence;
use crate::hints::invocation;
use crate::hints::invocation::quoted;
use crate::input::lookup;
use crate::inspect::answer::InspectedAnswer;
use crate::model::{ChallengeType, Issuer, Key, Kind, Record};
use crate::objects::chain;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::shown;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// How long the store may take beside what the command is for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is known of an object, and whether something is wrong with it.
#[derive(Debug)]
pub struct Known {
    /// The object that `diagnose` is to be asked about.
    key: Key,
    /// What is wrong, most pressing first; nothing where the store alone does not tell.
    finding: Option<Finding>,
}

impl Known {
    /// What is known of an object that is not as it should be; nothing of one that is, or of which nothing can be said. A
    /// store that fails or takes long says nothing.
    pub async fn of(store: &Arc<dyn Store>, key: &Key, now: Timestamp) -> Option<Self> {
        timeout(PATIENCE, read(store, key, now)).await.ok()?.ok()?
    }

    /// Judges a chain as it was read, with the issuers that there are where its own is none of them.
    fn of_chain(chain: Chain, issuers: &[Key], now: Timestamp) -> Option<Self> {
        let key = Key::new(Kind::Certificate, chain.certificate.name());
        let case = case(chain, issuers, now);
        let is_open = case.certificates.iter().any(CertificateCase::is_open);
        is_open.then(|| Self { finding: first(&case), key })
    }

    /// The sentence of the finding behind its id.
    pub fn told(&self) -> Option<String> {
        self.finding.as_ref().map(told)
    }

    /// One line: the finding, and where there is more; else only that.
    pub fn line(&self) -> String {
        let words =
            format!("diagnose {}/{}", self.key.kind.singular(), quoted(&self.key.name.name));
        let more = invocation::current().like_in(&self.key.name.namespace, &words);
        match self.told() {
            Some(told) => format!("{told}; more: {more}"),
            None => format!("why: {more}"),
        }
    }
}

/// What is known of objects that say of themselves that something is wrong, each thing once.
#[derive(Debug, Default)]
pub struct KnownNews {
    told: BTreeMap<Key, String>,
}

impl KnownNews {
    /// The object that `diagnose` is to be asked about, and the line; nothing of an object that complains of nothing, or where that
    /// was told.
    pub async fn line(
        &mut self,
        store: &Arc<dyn Store>,
        record: &Record,
        now: Timestamp,
    ) -> Option<(Key, String)> {
        if !complains(record) {
            return None;
        }
        let known = Known::of(store, &record.key, now).await?;
        let line = known.line();
        let before = self.told.insert(known.key.clone(), line.clone());
        (before.as_ref() != Some(&line)).then_some((known.key, line))
    }
}

/// Tells whether an object says that it has failed, or what keeps it.
fn complains(record: &Record) -> bool {
    let is_issuer = matches!(record.key.kind, Kind::Issuer | Kind::ClusterIssuer);
    match record.text("/status/state") {
        "invalid" | "errored" | "expired" => true,
        "valid" => false,
        "" if is_issuer => {
            let all = record.object.pointer("/status/conditions").and_then(Value::as_array);
            let mut all = all.into_iter().flatten();
            all.any(|it| it["type"] == "Ready" && it["status"] == "False")
        }
        _ => !record.text("/status/reason").is_empty(),
    }
}

/// A finding in one line: its id, and the sentence that `diagnose` has.
pub fn told(finding: &Finding) -> String {
    format!("{}: {}", finding.cause, sentence(finding))
}

/// What is wrong with an answer that was just looked at, as `diagnose` would say it; nothing where no cause is known for it.
pub fn of_answer(looked: &InspectedAnswer, in_cluster: bool, now: Timestamp) -> Option<String> {
    let InspectedAnswer { challenge, answer, observations, verdict, .. } = looked;
    let Readiness::NotYet { reason, cause } = verdict else { return None };
    let spec = &challenge.spec;
    let expected = match spec.kind {
        ChallengeType::TlsAlpn01 => shown::digest_of(answer),
        ChallengeType::Dns01
        | ChallengeType::DnsAccount01
        | ChallengeType::DnsPersist01
        | ChallengeType::Http01 => answer.key_authorization.clone(),
    };
    let mut name = NameCase::of(&spec.shown_domain(), Some(spec.kind));
    name.issuer = spec.issuer_ref.key(&challenge.metadata.namespace);
    name.pending = Some(challenge.clone());
    name.answer = Some(AnswerLook {
        expected,
        observations: observations.clone(),
        reason: Some(reason.clone()),
        sighting: *cause,
    });
    let case = Case { at: now, in_cluster, names: vec![name], ..Case::default() };
    // What may be one of several is worth a look as well: it is what was seen.
    rules::judge_stored(&case).first().map(told)
}

/// The most pressing cause that keeps something from going on; a state in which others leave an object is none.
fn first(case: &Case) -> Option<Finding> {
    let is_cause = |found: &Finding| found.is_error() && !is_consequence(found.cause);
    rules::judge_stored(case).into_iter().find(is_cause)
}

async fn read(
    store: &Arc<dyn Store>,
    key: &Key,
    now: Timestamp,
) -> Result<Option<Known>, StoreError> {
    if matches!(key.kind, Kind::Issuer | Kind::ClusterIssuer) {
        let issuers = Resources::<Issuer>::new(Arc::clone(store), key.kind);
        let Some(issuer) = issuers.get(&key.name).await? else { return Ok(None) };
        let case = Case {
            at: now,
            in_cluster: store.in_cluster(),
            issuers: vec![IssuerCase::of(key.clone(), Some(issuer))],
            ..Case::default()
        };
        // It may be ready, or nobody has looked at it yet.
        let is_wrong = rules::judge(&case).iter().any(Finding::is_error);
        return Ok(is_wrong.then(|| Known { key: key.clone(), finding: first(&case) }));
    }
    let Some(record) = store.get(key).await? else { return Ok(None) };
    let Some(name) = chain::certificate_above(store, record).await? else { return Ok(None) };
    let Some(chain) = chain::read(store, &name).await? else { return Ok(None) };
    // What is of an earlier issuance is settled.
    if !narrow(&mut chain.clone(), key) {
        return Ok(None);
    }
    let issuers = if chain.issuer.is_none() { lookup::issuers(store).await? } else { Vec::new() };
    Ok(Known::of_chain(chain, &issuers, now))
}

/// A case made of what stands in the store alone.
fn case(chain: Chain, known: &[Key], now: Timestamp) -> Case {
    let issuers = issuer_key(&chain.certificate).map(|key| IssuerCase {
        near: near_issuers(&key, known),
        ..IssuerCase::of(key, chain.issuer.clone())
    });
    let in_cluster = chain.in_cluster;
    let due = DueReason::by_condition(&chain.certificate);
    let of = CertificateCase { due, ..CertificateCase::of(chain) };
    Case {
        at: now,
        in_cluster,
        certificates: vec![of],
        issuers: issuers.into_iter().collect(),
        ..Case::default()
    }
}
