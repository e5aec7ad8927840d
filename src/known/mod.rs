//! Finding of `diagnose` from the store alone, for commands that do not probe the network: with the same rules and the
//! same sentence. If the store shows no cause, the command line of `diagnose` takes its place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::timeout;

use crate::diagnosis::case::chain::{Chain, issuer_key};
use crate::diagnosis::case::issuer::IssuerCase;
use crate::diagnosis::case::name::{AnswerProbe, NameCase};
use crate::diagnosis::case::{Case, CertificateCase, DueReason};
use crate::diagnosis::finding::{Finding, is_consequence};
use crate::diagnosis::rules;
use crate::diagnosis::verdict::awaited::narrow;
use crate::diagnosis::verdict::near_issuer::near_issuers;
use crate::hints::finding::sentence;
use crate::hints::invocation::{self, quoted};
use crate::input::lookup;
use crate::inspect::answer::InspectedAnswer;
use crate::model::{ChallengeType, Issuer, Key, Kind, Record};
use crate::objects::chain;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::shown;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Longest wait for the store: the finding is additional to the command's own output.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Finding about an object that is not as it should be.
#[derive(Debug)]
pub struct StoredFinding {
    /// Object to pass to `diagnose`.
    key: Key,
    /// Most urgent finding; `None` if the store does not show a cause.
    finding: Option<Finding>,
}

impl StoredFinding {
    /// Reads what is known of an object that is not as it should be; `None` if the object is fine or cannot be judged, or
    /// the store fails or takes too long.
    pub async fn of(store: &Arc<dyn Store>, key: &Key, now: Timestamp) -> Option<Self> {
        timeout(STORE_TIMEOUT, read(store, key, now)).await.ok()?.ok()?
    }

    /// Judges a chain as it was read; `issuers` lists the existing issuers if the chain's own does not exist.
    fn of_chain(chain: Chain, issuers: &[Key], now: Timestamp) -> Option<Self> {
        let key = Key::new(Kind::Certificate, chain.certificate.name());
        let case = case(chain, issuers, now);
        let is_open = case.certificates.iter().any(CertificateCase::is_open);
        is_open.then(|| Self { finding: most_urgent(&case), key })
    }

    /// Formats id and sentence of the finding; `None` without a finding.
    pub fn format_finding(&self) -> Option<String> {
        self.finding.as_ref().map(format_finding)
    }

    /// Formats one line: the finding, if any, and the `diagnose` command that shows more.
    pub fn line(&self) -> String {
        let words =
            format!("diagnose {}/{}", self.key.kind.singular(), quoted(&self.key.name.name));
        let more = invocation::current().like_in(&self.key.name.namespace, &words);
        match self.format_finding() {
            Some(text) => format!("{text}; more: {more}"),
            None => format!("why: {more}"),
        }
    }
}

/// Findings about objects whose status reports a problem, each finding once.
#[derive(Debug, Default)]
pub struct FindingLog {
    told: BTreeMap<Key, String>,
}

impl FindingLog {
    /// Returns the object to pass to `diagnose`, and the line; `None` if the status of the object reports no problem, or
    /// the line was already returned.
    pub async fn line(
        &mut self,
        store: &Arc<dyn Store>,
        record: &Record,
        now: Timestamp,
    ) -> Option<(Key, String)> {
        if !reports_problem(record) {
            return None;
        }
        let known = StoredFinding::of(store, &record.key, now).await?;
        let line = known.line();
        let before = self.told.insert(known.key.clone(), line.clone());
        (before.as_ref() != Some(&line)).then_some((known.key, line))
    }
}

/// Returns whether the status of an object reports a failure, or a reason why it waits.
fn reports_problem(record: &Record) -> bool {
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

/// Formats a finding in one line: its id, and the sentence of `diagnose`.
pub fn format_finding(finding: &Finding) -> String {
    format!("{}: {}", finding.cause, sentence(finding))
}

/// Formats the finding about an answer that was just probed, as `diagnose` would; `None` if no cause is known.
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
    name.answer = Some(AnswerProbe {
        expected,
        observations: observations.clone(),
        reason: Some(reason.clone()),
        sighting: *cause,
    });
    let case = Case { at: now, in_cluster, names: vec![name], ..Case::default() };
    // A finding that only may be the cause counts as well: it was observed.
    rules::judge_stored(&case).first().map(format_finding)
}

/// Returns the most urgent cause of an error; findings that are only consequences of others are left out.
fn most_urgent(case: &Case) -> Option<Finding> {
    let is_cause = |found: &Finding| found.is_error() && !is_consequence(found.cause);
    rules::judge_stored(case).into_iter().find(is_cause)
}

async fn read(
    store: &Arc<dyn Store>,
    key: &Key,
    now: Timestamp,
) -> Result<Option<StoredFinding>, StoreError> {
    if matches!(key.kind, Kind::Issuer | Kind::ClusterIssuer) {
        let issuers = Resources::<Issuer>::new(Arc::clone(store), key.kind);
        let Some(issuer) = issuers.get(&key.name).await? else { return Ok(None) };
        let case = Case {
            at: now,
            in_cluster: store.in_cluster(),
            issuers: vec![IssuerCase::of(key.clone(), Some(issuer))],
            ..Case::default()
        };
        // The issuer may be ready, or no controller has judged it yet.
        let is_wrong = rules::judge(&case).iter().any(Finding::is_error);
        return Ok(
            is_wrong.then(|| StoredFinding { key: key.clone(), finding: most_urgent(&case) })
        );
    }
    let Some(record) = store.get(key).await? else { return Ok(None) };
    let Some(name) = chain::certificate_above(store, record).await? else { return Ok(None) };
    let Some(chain) = chain::read(store, &name).await? else { return Ok(None) };
    // An object of an earlier issuance is settled.
    if !narrow(&mut chain.clone(), key) {
        return Ok(None);
    }
    let issuers = if chain.issuer.is_none() { lookup::issuers(store).await? } else { Vec::new() };
    Ok(StoredFinding::of_chain(chain, &issuers, now))
}

/// Builds a case from the objects of the store alone.
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
