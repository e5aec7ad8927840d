//! Targets of `diagnose`: the objects and names that the arguments of the command line stand for.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::belonging;
use super::investigator::DiagnosisTarget;
use super::related_kind::{self, RelatedKind};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::controllers::accounts::is_being_changed;
use crate::diagnosis::rules::hangs_in_deletion;
use crate::input::selector::LabelSelector;
use crate::input::target::Targets;
use crate::input::{lookup, target};
use crate::issue::asking::names_asked_by;
use crate::model::certificate::CertificateStatus;
use crate::model::common::{ConditionStatus, condition, is_true};
use crate::model::names::host_in;
use crate::model::{Certificate, Identifier, Issuer, Kind, ObjectName, Record, Secret, Time};
use crate::store::Store;
use crate::store::error::unless_forbidden;
use crate::store::resources::{Resources, typed};

/// Divisor of a certificate's lifetime: with less than this fraction left, the renewal is overdue.
const OVERDUE_DIVISOR: i32 = 10;

/// Selection of the Certificates that are diagnosed if no argument names one.
#[derive(Clone, Copy, Debug)]
pub struct UnreadyScope<'a> {
    /// Whether Certificates of every namespace are selected.
    pub all_namespaces: bool,
    /// Labels that Certificates must have.
    pub selector: Option<&'a LabelSelector>,
}

/// Targets that were found.
#[derive(Debug, Default)]
pub struct FoundTargets {
    /// Objects and names to diagnose.
    pub targets: Vec<DiagnosisTarget>,
    /// Place without any Certificate, if there is nothing to judge; `None` if any target or Certificate was found.
    pub nothing: Option<NoCertificates>,
}

/// Place that holds no Certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCertificates {
    /// State folder that was never written.
    NoState(PathBuf),
    /// This namespace, or all namespaces if `None`.
    NoCertificate(Option<String>),
    /// Certificates exist, but none has the requested labels.
    NoneFits,
}

/// Finds the targets that the arguments name; without arguments every Certificate and issuer that is not ready.
///
/// # Errors
/// Fails when an object does not exist, or the store cannot be read.
pub async fn targets(
    words: &[String],
    unready_in: UnreadyScope<'_>,
    store: Option<&Arc<dyn Store>>,
    context: &Context,
) -> Result<FoundTargets, Failure> {
    let words: Vec<String> = words.iter().map(|word| plain(word)).collect();
    let words = &words[..];
    let Some(store) = store else {
        return Ok(FoundTargets { targets: domains(words), nothing: None });
    };
    if words.is_empty() {
        return find_unready(unready_in, store, context).await;
    }
    let mut targets = Vec::new();
    for word in words {
        for target in of_word(word, store, context).await? {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    Ok(FoundTargets { targets, nothing: None })
}

/// Keeps the arguments that can be diagnosed without objects.
fn domains(words: &[String]) -> Vec<DiagnosisTarget> {
    let domains = words.iter().filter(|word| is_domain(word));
    domains.cloned().map(DiagnosisTarget::Domain).collect()
}

/// Lists the Certificates and issuers of manifests.
pub fn of_manifests(records: &[Record]) -> Vec<DiagnosisTarget> {
    let of = |record: &Record| match record.key.kind {
        Kind::Certificate => vec![DiagnosisTarget::Certificate(record.key.name.clone())],
        Kind::Issuer | Kind::ClusterIssuer => vec![DiagnosisTarget::Issuer(record.key.clone())],
        Kind::Gateway | Kind::Ingress | Kind::ListenerSet => {
            let asked = names_asked_by(record).into_iter();
            asked.map(|key| DiagnosisTarget::Certificate(key.name)).collect()
        }
        Kind::CertificateRequest | Kind::Order | Kind::Challenge | Kind::Event | Kind::Secret => {
            Vec::new()
        }
    };
    records.iter().flat_map(of).collect()
}

async fn of_word(
    word: &str,
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<Vec<DiagnosisTarget>, Failure> {
    let namespace = context.namespace();
    if let Some((kind, name)) = RelatedKind::parse(word) {
        return belonging::targets_of((kind, &name), store, context).await;
    }
    let (kind, name) = if word.contains('/') {
        Targets::parse_one(&[word.to_owned()])
            .map_err(|failure| failure.hint(related_kind::KINDS))?
    } else {
        (Kind::Certificate, word.to_owned())
    };
    let named = target::key(kind, &name, namespace);
    match kind {
        Kind::Issuer | Kind::ClusterIssuer => {
            lookup::read(store, &named).await?;
            Ok(vec![DiagnosisTarget::Issuer(named)])
        }
        Kind::Certificate | Kind::CertificateRequest | Kind::Order | Kind::Challenge => {
            let keys = match lookup::keys(store, &named).await {
                // A domain can be diagnosed even if objects cannot be read.
                Err(_) if is_domain(word) => Vec::new(),
                keys => keys?,
            };
            let mut found = Vec::new();
            for key in &keys {
                let record = lookup::read(store, key).await?;
                match lookup::above(store, record, Kind::Certificate).await? {
                    Some(of) => found.push(DiagnosisTarget::Certificate(of.name)),
                    // The Certificate of the Challenge is gone.
                    None if key.kind == Kind::Challenge => {
                        found.push(DiagnosisTarget::Challenge(key.name.clone()));
                    }
                    None if key.kind == Kind::CertificateRequest => {
                        found.push(DiagnosisTarget::Request(key.name.clone()));
                    }
                    None => {}
                }
            }
            match (found.is_empty(), is_domain(word)) {
                (false, _) => Ok(found),
                (true, true) => Ok(vec![DiagnosisTarget::Domain(name)]),
                (true, false) => Err(lookup::not_found(store, &named).await?),
            }
        }
        Kind::Event | Kind::Gateway | Kind::Ingress | Kind::ListenerSet | Kind::Secret => {
            Err(Failure::usage(format!("cannot diagnose {word}: a {kind} is never issued")))
        }
    }
}

/// Finds every Certificate and issuer that is not ready, and Challenges whose deletion hangs.
async fn find_unready(
    UnreadyScope { all_namespaces, selector }: UnreadyScope<'_>,
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<FoundTargets, Failure> {
    let namespace = (!all_namespaces).then(|| context.namespace());
    let all = store.list(Kind::Certificate, &target::scope(Kind::Certificate, namespace)).await?;
    let now = context.now();
    let is_empty = all.is_empty();
    let fitting: Vec<Record> =
        all.into_iter().filter(|it| selector.is_none_or(|labels| labels.fits(it))).collect();
    let nothing = match (is_empty, fitting.is_empty()) {
        (true, _) => Some(match context.absent_state()? {
            Some(folder) => NoCertificates::NoState(folder),
            None => NoCertificates::NoCertificate(namespace.map(str::to_owned)),
        }),
        (false, true) => Some(NoCertificates::NoneFits),
        (false, false) => None,
    };
    let mut unready = Vec::new();
    for record in fitting {
        let certificate: Certificate = typed(record)?;
        let status = &certificate.status;
        if !is_true(&status.conditions, "Ready")
            || is_true(&status.conditions, "Issuing")
            || is_overdue(status, now)
        {
            unready.push(DiagnosisTarget::Certificate(certificate.name()));
        }
    }
    if selector.is_none() {
        unready.extend(find_hanging(store, namespace, now).await?);
        for kind in [Kind::Issuer, Kind::ClusterIssuer] {
            unready.extend(find_unready_issuers(kind, namespace, store, context).await?);
        }
    }
    let nothing = nothing.filter(|_| unready.is_empty());
    Ok(FoundTargets { targets: unready, nothing })
}

/// Finds ACME issuers that are not ready, and issuers whose account key change was interrupted: their Certificates may
/// be ready until the next renewal. Objects that may not be read are left out.
async fn find_unready_issuers(
    kind: Kind,
    namespace: Option<&str>,
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<Vec<DiagnosisTarget>, Failure> {
    let all = unless_forbidden(store.list(kind, &target::scope(kind, namespace)).await)?;
    let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
    let mut unready = Vec::new();
    for record in all.unwrap_or_default() {
        let key = record.key.clone();
        let issuer: Issuer = typed(record)?;
        let Some(acme) = &issuer.spec.acme else { continue };
        let is_ready = condition(&issuer.status.conditions, "Ready")
            .is_none_or(|ready| ready.status != ConditionStatus::False);
        let is_between_keys = async || {
            let place = issuer.secret_namespace(&context.global.cluster_resource_namespace);
            let name = ObjectName::new(place, &acme.private_key_secret_ref.name);
            let secret = unless_forbidden(secrets.get(&name).await)?.flatten();
            Ok::<_, Failure>(secret.is_some_and(|secret| is_being_changed(acme, &secret)))
        };
        if !is_ready || is_between_keys().await? {
            unready.push(DiagnosisTarget::Issuer(key));
        }
    }
    Ok(unready)
}

/// Finds Challenges whose deletion hangs: their Certificates may already be gone.
async fn find_hanging(
    store: &Arc<dyn Store>,
    namespace: Option<&str>,
    now: Timestamp,
) -> Result<Vec<DiagnosisTarget>, Failure> {
    let scope = target::scope(Kind::Challenge, namespace).brief();
    let all = unless_forbidden(store.list(Kind::Challenge, &scope).await)?.unwrap_or_default();
    let hangs = |record: &Record| hangs_in_deletion(&record.metadata(), now);
    let hanging = all.into_iter().filter(hangs);
    Ok(hanging.map(|record| DiagnosisTarget::Challenge(record.key.name)).collect())
}

/// Returns whether a certificate should have been renewed by now, or ends soon, whatever its conditions say: no
/// controller may have updated those.
fn is_overdue(status: &CertificateStatus, now: Timestamp) -> bool {
    let is_past = |at: Option<Time>| at.is_some_and(|at| at.timestamp() < now);
    let ends_soon = match (status.not_before, status.not_after) {
        (Some(start), Some(end)) => {
            let (start, end) = (start.timestamp(), end.timestamp());
            end.duration_since(now) < end.duration_since(start) / OVERDUE_DIVISOR
        }
        _ => false,
    };
    is_past(status.renewal_time) || is_past(status.not_after) || ends_soon
}

/// Returns whether an argument may be a domain rather than the name of an object.
pub fn is_domain(word: &str) -> bool {
    let host = host_in(word);
    let word = host.as_deref().unwrap_or(word);
    (word.contains('.') || word.contains(':')) && !word.contains('/')
}

/// Extracts the domain or address from an argument, as written in certificates: users give URLs, ports and names in
/// other scripts. An argument that may be the name of an object stays unchanged.
pub(crate) fn plain(word: &str) -> String {
    let host = host_in(word);
    let name = host.as_deref().unwrap_or(word);
    if !is_domain(name) && host.is_none() {
        return word.to_owned();
    }
    Identifier::parse(name).map_or_else(|_| name.to_owned(), |identifier| identifier.to_string())
}

#[cfg(test)]
mod tests {
    use super::{is_domain, plain};
    use crate::input::tests::{check, rows};

    #[test]
    fn domains_are_found_in_what_people_paste() {
        check(&rows(include_str!("../../tests/fixtures/inputs/words.txt")), |input| {
            let word = plain(input);
            Ok(if word == input && !is_domain(&word) { "-".to_owned() } else { word })
        });
    }
}
