//! Checks before anything is written or asked: issuers exist and are ACME, and a solver fits every name.

pub mod announce;
pub mod certificates;
pub mod challenge_types;
mod keystores;
pub mod own_solvers;
pub mod provider_check;
pub mod provider_secrets;
pub(crate) mod public_dns;
pub(crate) mod public_names;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use self::certificates::{certificates, choices};
use self::provider_secrets::SecretPlaces;
use crate::context::failure::Failure;
use crate::diagnosis::case::chain::{issuer_key, key_of};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::foreign_issuer;
use crate::diagnosis::verdict::near_issuer::meant_issuer;
use crate::hints::invocation;
use crate::input::lookup;
use crate::lead::venue::Venue;
use crate::model::issuer::asked_type;
use crate::model::solver::ChallengeSolver;
use crate::model::{Certificate, Issuer, Key, Kind, Record};
use crate::objects::own_request;
use crate::reconcile::solver_choice::Chosen;
use crate::store::Store;
use crate::store::resources::typed;

/// Checks a set of manifests against itself and the store, before anything is written. `out` is the folder for certificates
/// and keys that was asked for; on this machine there is always such a folder.
///
/// # Errors
/// Fails with the first obstacle, and says what to change.
pub async fn check(
    records: &[Record],
    store: &Arc<dyn Store>,
    venue: Venue,
    out: Option<&Path>,
    cluster_resources: &str,
) -> Result<(), Failure> {
    let is_one_folder = out.is_some() || !venue.is_in_cluster();
    let places = SecretPlaces { records, store, cluster_resources };
    for record in records {
        if venue.is_ours_alone() && matches!(record.key.kind, Kind::Issuer | Kind::ClusterIssuer) {
            check_type(&record.key, &typed::<Issuer>(record.clone())?)?;
        }
    }
    let mut folders = BTreeSet::new();
    for record in records.iter().filter(|record| record.key.kind == Kind::CertificateRequest) {
        own_request::check(record, store).await.map_err(|failure| failure.about(&record.key))?;
    }
    for certificate in certificates(records) {
        let folder = own_request::folder(&certificate);
        let is_first = !is_one_folder || folders.insert(folder.to_owned());
        let checked = check_certificate(&certificate, is_first, records, venue, places).await;
        checked.map_err(|failure| failure.about(&key_of(&certificate)))?;
    }
    Ok(())
}

/// Checks one Certificate; `is_first` says that no Certificate before it has the same folder.
async fn check_certificate(
    certificate: &Certificate,
    is_first: bool,
    records: &[Record],
    venue: Venue,
    places: SecretPlaces<'_>,
) -> Result<(), Failure> {
    let name = key_of(certificate);
    // Certificates of other namespaces, too: on disk they share one folder.
    if !is_first {
        let folder = own_request::folder(certificate);
        return Err(Failure::usage(format!(
            "{name}: another Certificate of this set has secretName {folder}, too: both would be \
             written to the same folder"
        ))
        .hint(
            "give each its own secretName, or issue them by two commands with two --out folders",
        ));
    }
    let group = certificate.spec.issuer_ref.effective_group();
    if group != "cert-manager.io" {
        if !venue.is_ours_alone() {
            return Ok(());
        }
        let message = format!("{name}: issuerRef.group is {group}, which is not supported");
        return Err(
            Failure::usage(message).hint("issuerRef.group must be cert-manager.io or absent")
        );
    }
    let Some(key) = issuer_key(certificate) else {
        return Err(foreign_issuer(certificate).into());
    };
    let issuer = match records.iter().find(|record| record.key == key) {
        Some(record) => typed::<Issuer>(record.clone())?,
        None => match places.store.get(&key).await? {
            Some(record) => typed::<Issuer>(record)?,
            None => return Err(unknown_issuer(certificate, &key, records, places.store).await?),
        },
    };
    if venue.is_ours_alone() {
        // Another program put such an issuer into the store; no controller on this machine would ever issue from it.
        check_type(&key, &issuer)?;
    }
    public_names::check_certificate(certificate, &key, &issuer)?;
    keystores::check(certificate, places).await?;
    challenge_types::check(certificate, &key, &issuer, venue)?;
    check_own_solvers(certificate, &key, &issuer, venue)?;
    check_solvers(certificate, &key, &issuer, venue, places).await
}

async fn unknown_issuer(
    certificate: &Certificate,
    key: &Key,
    records: &[Record],
    store: &Arc<dyn Store>,
) -> Result<Failure, Failure> {
    let name = key_of(certificate);
    let mut known = lookup::issuers(store).await?;
    let is_issuer = |key: &&Key| matches!(key.kind, Kind::Issuer | Kind::ClusterIssuer);
    known.extend(records.iter().map(|record| &record.key).filter(is_issuer).cloned());
    known.sort();
    known.dedup();
    let meant = meant_issuer(key, &known);
    let meant = meant.map(|meant| format!("did you mean {meant}, which exists?"));
    if !certificate.metadata.uid.is_empty() {
        // The Certificate is in the store already, and the command takes no manifests.
        let message = format!("{name} refers to {key}, which is not in the store");
        let again = invocation::current().like("order -f MANIFEST.yaml");
        let hint = format!("apply the manifest of {key}: {again}");
        return Ok(Failure::usage(message).hint(meant.unwrap_or(hint)));
    }
    let failure = Failure::usage(format!(
        "{name} refers to {key}, which is neither in these manifests nor in the store"
    ));
    let failure = match find_renamed(key, records) {
        Some(other) => failure.hint(format!(
            "{other} is in these manifests: if kustomize has renamed {key}, put the new name into issuerRef, or list the field in \
             nameReference of kustomize's configurations"
        )),
        None => failure.hint(
            meant.unwrap_or_else(|| format!("add the manifest of {key} with another -f")),
        ),
    };
    Ok(failure.hint("issuerRef.kind is Issuer unless it says ClusterIssuer"))
}

/// Returns the issuer of a set whose name is that of `key` with a prefix or a suffix, as kustomize and Helm name objects.
fn find_renamed<'a>(key: &Key, records: &'a [Record]) -> Option<&'a Key> {
    let (kind, name) = (key.kind, &key.name.name);
    let is_renamed = |other: &str| {
        other.match_indices(name.as_str()).any(|(at, part)| {
            let (before, after) = (&other[..at], &other[at + part.len()..]);
            (before.is_empty() || before.ends_with('-'))
                && (after.is_empty() || after.starts_with('-'))
        })
    };
    let keys = records.iter().map(|record| &record.key);
    keys.filter(|other| other.kind == kind && other.name.namespace == key.name.namespace)
        .find(|other| is_renamed(&other.name.name))
}

fn check_type(key: &Key, issuer: &Issuer) -> Result<(), Failure> {
    if issuer.spec.acme.is_some() {
        return Ok(());
    }
    let types = issuer.spec.types().join(", ");
    Err(Failure::usage(format!("{key} is of type {types}: on this machine only acme is served"))
        .hint("a cluster with cert-manager serves the other types"))
}

/// Checks the solvers that only this program has.
fn check_own_solvers(
    certificate: &Certificate,
    key: &Key,
    issuer: &Issuer,
    venue: Venue,
) -> Result<(), Failure> {
    if venue == Venue::ByHand {
        return Ok(());
    }
    for (text, chosen) in choices(certificate, issuer) {
        let Ok(Chosen { kind, solver, .. }) = chosen else { continue };
        if !kind.is_by_record() {
            continue;
        }
        let whose = format!("{}: {text}", key_of(certificate));
        own_solvers::check(&solver.dns01.unwrap_or_default(), key, &whose, venue)?;
    }
    Ok(())
}

/// Returns hints for a name without a DNS-01 solver: for manifests, or for names that were given in place of manifests.
fn ways_to_dns01(issuer: &Key, venue: Venue, is_given_names: bool) -> Vec<String> {
    if !is_given_names {
        return vec![format!("add a dns01 solver to {issuer}, or widen the selector of another")];
    }
    let person = (!venue.is_in_cluster()).then_some("make the records by hand: --dns01-manual");
    let provider = "use a DNS provider: --dns01 PROVIDER, with its credentials in the environment";
    person.into_iter().chain([provider]).map(str::to_owned).collect()
}

async fn check_solvers(
    certificate: &Certificate,
    key: &Key,
    issuer: &Issuer,
    venue: Venue,
    places: SecretPlaces<'_>,
) -> Result<(), Failure> {
    // Without any solver the CA may have authorized the names already; a name that it has not authorized ends the order.
    if issuer.spec.acme.as_ref().is_none_or(|acme| acme.solvers.is_empty())
        && asked_type(issuer) == Ok(None)
    {
        return Ok(());
    }
    let name = key_of(certificate);
    for (text, chosen) in choices(certificate, issuer) {
        let refused =
            |why: &str| Failure::new(FailureKind::Solver, format!("{name}: {text}: {why}"));
        match chosen {
            Ok(Chosen { kind, solver: ChallengeSolver { dns01: Some(solver), .. }, .. })
                if kind.is_by_record() && venue.knows_the_secrets_of(issuer) =>
            {
                let whose = format!("{name}: {text}");
                provider_secrets::check(&solver, issuer, key, &whose, places).await?;
            }
            Ok(_) => {}
            Err(_) if text.starts_with("*.") => {
                let ways = ways_to_dns01(key, venue, invocation::current().is_given_names());
                return Err(ways.into_iter().fold(
                    refused(&format!("wildcards need DNS-01, and no dns01 solver of {key} fits")),
                    Failure::hint,
                ));
            }
            Err(why) => {
                return Err(refused(&format!("{why} (solvers of {key})"))
                    .hint(format!("add a solver to {key}, or widen its selector")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ObjectName;
    use crate::store::memory::MemoryStore;

    /// Checks the first hint when Issuer `acme` of a Certificate with that UID is missing, and Issuer `there` exists.
    async fn check_unknown_issuer(uid: &str, there: &str, expected: &str) {
        let certificate = json!({
            "metadata": {"name": "web", "namespace": "default", "uid": uid},
            "spec": {"secretName": "web-tls", "issuerRef": {"name": "acme"}},
        });
        let of = |name: &str| Key::new(Kind::Issuer, ObjectName::new("default", name));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let records = [Record { key: of(there), object: json!({}) }];
        let certificate = serde_json::from_value(certificate).unwrap();
        let failure = unknown_issuer(&certificate, &of("acme"), &records, &store).await.unwrap();
        assert!(failure.hints[0].ends_with(expected), "{failure:?}");
    }

    #[tokio::test]
    async fn a_manifest_is_asked_for_as_the_command_takes_it_unless_another_issuer_is_meant() {
        check_unknown_issuer("", "zero", "with another -f").await;
        check_unknown_issuer("uid-of-web", "zero", "order -f MANIFEST.yaml").await;
        for uid in ["", "uid-of-web"] {
            check_unknown_issuer(uid, "acne", "did you mean Issuer default/acne, which exists?")
                .await;
        }
    }

    #[test]
    fn an_issuer_that_kustomize_has_renamed_is_named() {
        let key = |name: &str| Key::new(Kind::Issuer, ObjectName::new("default", name));
        for (name, is_it) in [
            ("prod-le-v2", true),
            ("le-v2", true),
            ("prod-le", true),
            ("simple", false),
            ("lemon-v2", false),
        ] {
            let records = [Record { key: key(name), object: json!({}) }];
            assert_eq!(find_renamed(&key("le"), &records).is_some(), is_it, "{name}");
        }
    }

    #[test]
    fn a_wildcard_that_is_given_as_a_name_needs_no_manifest() {
        let key = Key::new(Kind::Issuer, ObjectName::new("default", "letsencrypt"));
        let hints = |venue, is_given| ways_to_dns01(&key, venue, is_given).join("\n");
        assert!(hints(Venue::Local, true).contains("--dns01-manual"));
        assert!(!hints(Venue::Cluster, true).contains("--dns01-manual"));
        for venue in [Venue::Local, Venue::Cluster] {
            assert!(hints(venue, true).contains("--dns01 PROVIDER"));
            assert!(!hints(venue, true).contains("Issuer default/letsencrypt"));
            assert!(hints(venue, false).contains("add a dns01 solver to Issuer"));
        }
    }
}
