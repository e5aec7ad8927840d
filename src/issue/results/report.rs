//! Report of a command that issues, for programs: every fact is typed where it is known, and no fact is read from
//! sentences.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::files::Written;
use crate::context::failure::Failure;
use crate::diagnosis::case::chain::{Chain, key_of};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::words::facts;
use crate::issue::manual::ManualRecord;
use crate::issue::plan::subset;
use crate::model::cause::Cause;
use crate::model::order_report::{
    CertificateResult, ErrorReport, InputPlace, IssuerResult, LastOrder, NameResult, NamedIssuer,
    OrderReport, ReportedProblem, ResultOutcome, WrittenFiles, seconds,
};
use crate::model::{Certificate, Challenge, Key, Kind, Record, State};
use crate::objects::chain;
use crate::objects::own_request::certificate_of;
use crate::store::Store;
use crate::store::error::StoreError;

/// Facts about the end of one object.
#[derive(Clone, Debug, Default)]
pub struct ObjectResult {
    /// Moment at which the object was done in this run, if it was.
    pub done: Option<Timestamp>,
    /// Outcome and error of an object that was not done.
    pub error: Option<(ResultOutcome, ErrorReport)>,
    /// Files to which the object was written.
    pub files: Option<WrittenFiles>,
}

impl ObjectResult {
    /// Builds the story of an object that a failure ended.
    pub fn failed(failure: &Failure) -> Self {
        Self { error: Some((outcome(failure), failure.report())), ..Self::default() }
    }
}

/// The stories of a whole command.
#[derive(Clone, Debug, Default)]
pub struct ObjectResults {
    /// Story of each object that was worked on, or has failed.
    pub of: BTreeMap<Key, ObjectResult>,
    /// Objects that were due when the command began.
    pub due: BTreeSet<Key>,
    /// Records that a person has to make.
    pub records: Vec<ManualRecord>,
    /// Error that stopped the command as a whole.
    pub stopped: Option<ErrorReport>,
}

/// Places where the manifest of each object begins; an object that was in the store already has no place.
pub type Places = BTreeMap<Key, InputPlace>;

/// Returns the outcome of an object that a failure ended.
fn outcome(failure: &Failure) -> ResultOutcome {
    match failure.kind {
        FailureKind::Interrupted | FailureKind::Terminated => ResultOutcome::Interrupted,
        FailureKind::Person if !failure.facts.is_late => ResultOutcome::WaitsForPerson,
        _ if failure.facts.is_late => ResultOutcome::Waiting,
        _ => ResultOutcome::Failed,
    }
}

/// Returns the paths of a certificate and its key, as programs read them.
pub fn files(written: &Written) -> WrittenFiles {
    let path = |path: &std::path::Path| path.display().to_string();
    WrittenFiles {
        certificate: path(&written.certificate),
        key: written.key.as_deref().map(path),
        manifest: written.manifest.as_deref().map(path),
    }
}

/// Makes the report of a command that ends now with this exit code.
///
/// # Errors
/// Fails when the store does.
pub async fn report(
    (exit_code, is_rehearsal): (u8, bool),
    (records, places, store): (&[Record], &Places, &Arc<dyn Store>),
    (started, now): (Timestamp, Timestamp),
    stories: &ObjectResults,
) -> Result<OrderReport, StoreError> {
    let mut report = OrderReport::new(exit_code, is_rehearsal);
    report.error.clone_from(&stories.stopped);
    report.records = stories.records.iter().map(ManualRecord::report).collect();
    for record in records.iter().filter(|record| record.key.kind.is_issued()) {
        let chain = chain::of(store, &record.key).await?;
        let certificate = match &chain {
            Some(chain) => chain.certificate.clone(),
            // Nothing was written yet.
            None => certificate_of(record)?,
        };
        let told = stories.of.get(&record.key).cloned().unwrap_or_default();
        let is_due = stories.due.contains(&record.key);
        let ended = told.done.or_else(|| stories.of.contains_key(&record.key).then_some(now));
        let took = ended.map(|ended| ended.duration_since(started));
        let result = certificate_result(&certificate, chain.as_ref(), told, (is_due, took));
        let source = places.get(&record.key).cloned();
        let result = if is_rehearsal { as_rehearsed(result) } else { result };
        report.certificates.push(CertificateResult { source, ..result });
    }
    if report.certificates.is_empty() {
        let issuers = records.iter().map(|record| &record.key);
        let issuers = issuers.filter(|key| matches!(key.kind, Kind::Issuer | Kind::ClusterIssuer));
        let result = |key| {
            let source = places.get(key).cloned();
            IssuerResult { source, ..issuer_result(key, stories.of.get(key)) }
        };
        report.issuers = issuers.map(result).collect();
    }
    Ok(report)
}

/// Returns the result as that of a rehearsal: nothing of it is kept, save the files that were asked for.
fn as_rehearsed(result: CertificateResult) -> CertificateResult {
    let outcome = match result.outcome {
        ResultOutcome::Issued => ResultOutcome::Rehearsed,
        outcome => outcome,
    };
    CertificateResult { outcome, changed: false, not_after: None, renewal_time: None, ..result }
}

fn certificate_result(
    certificate: &Certificate,
    chain: Option<&Chain>,
    story: ObjectResult,
    (is_due, took): (bool, Option<SignedDuration>),
) -> CertificateResult {
    let changed = is_due && story.done.is_some();
    let (outcome, error) = match story.error {
        Some((outcome, error)) => (outcome, Some(error)),
        None if changed => (ResultOutcome::Issued, None),
        None => (ResultOutcome::UpToDate, None),
    };
    let is_there = story.done.is_some() || error.is_none();
    let (spec, status) = (&certificate.spec, &certificate.status);
    let order = chain.and_then(Chain::order).map(|order| LastOrder {
        name: order.metadata.name.clone(),
        url: order.status.url.clone(),
    });
    CertificateResult {
        kind: key_of(certificate).kind.as_str(),
        namespace: certificate.metadata.namespace.clone(),
        name: certificate.metadata.name.clone(),
        secret_name: spec.secret_name.clone(),
        issuer: NamedIssuer {
            kind: spec.issuer_ref.effective_kind().to_owned(),
            name: spec.issuer_ref.name.clone(),
        },
        source: None,
        changed,
        outcome,
        exit_code: error.as_ref().map_or(0, |error| error.exit_code),
        names: name_results(certificate, chain, is_there),
        left_out: subset::kept(certificate).into_iter().collect(),
        not_after: status.not_after,
        renewal_time: status.renewal_time,
        revision: status.revision,
        duration_seconds: took.map(seconds),
        files: story.files,
        order,
        error,
    }
}

/// Returns the state of each name: that of its Challenge if there is one, else that of its authorization.
fn name_results(
    certificate: &Certificate,
    chain: Option<&Chain>,
    is_there: bool,
) -> Vec<NameResult> {
    let spec = &certificate.spec;
    let mut names: Vec<&String> = spec.dns_names.iter().chain(&spec.ip_addresses).collect();
    if !spec.common_name.is_empty() && !names.contains(&&spec.common_name) {
        names.insert(0, &spec.common_name);
    }
    let order = chain.and_then(Chain::order);
    let challenges = || {
        let order = order.map(|order| &order.metadata.uid);
        let all = chain.into_iter().flat_map(|chain| &chain.challenges);
        all.filter(move |c| order.is_some_and(|uid| c.metadata.is_controlled_by(uid)))
    };
    let results = names.into_iter().map(|name| {
        let (bare, is_wildcard) = match name.strip_prefix("*.") {
            Some(bare) => (bare, true),
            None => (name.as_str(), false),
        };
        let is_of = |found: &str, wildcard: bool| {
            found.eq_ignore_ascii_case(bare) && wildcard == is_wildcard
        };
        let challenge = challenges().find(|c| is_of(&c.spec.dns_name, c.spec.wildcard));
        let kind = challenge.map(|challenge| challenge.spec.kind.acme_name());
        let authorizations = order.into_iter().flat_map(|order| &order.status.authorizations);
        let authorized = authorizations
            .filter(|a| is_of(&a.identifier, a.wildcard == Some(true)))
            .find_map(|a| a.initial_state);
        let state = challenge.and_then(|c| c.status.state).or(authorized);
        let state = if is_there { State::Valid } else { state.unwrap_or(State::Pending) };
        let challenge = challenge.filter(|_| !is_there);
        NameResult {
            name: name.clone(),
            kind,
            state: state.as_str(),
            reason: challenge.map(|c| c.status.reason.clone()).filter(|reason| !reason.is_empty()),
            problem: challenge.and_then(find_problem),
        }
    });
    results.collect()
}

/// Returns the problem with which the CA refused a Challenge, if the CA did.
fn find_problem(challenge: &Challenge) -> Option<ReportedProblem> {
    match facts::cause(challenge)? {
        Cause::Refused(problem) | Cause::Validation(problem) => {
            Some(ReportedProblem::from(&*problem))
        }
        Cause::Seen(_) | Cause::NoIngress | Cause::Denied(_) | Cause::Provider(_) => None,
    }
}

fn issuer_result(key: &Key, story: Option<&ObjectResult>) -> IssuerResult {
    let error = story.and_then(|story| story.error.clone());
    let (outcome, error) = error.map_or((ResultOutcome::Ready, None), |(o, e)| (o, Some(e)));
    IssuerResult {
        kind: key.kind.as_str(),
        namespace: key.name.namespace.clone(),
        name: key.name.name.clone(),
        source: None,
        outcome,
        exit_code: error.as_ref().map_or(0, |error| error.exit_code),
        error,
    }
}
