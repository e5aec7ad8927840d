//! Objects that an order has to follow, and corrections before any object is followed.
//!
//! Status, the labels of the Secret and the renewal time are corrected here without a new certificate: "up to date" has
//! to be true. This costs no request to a CA but, every few hours, the question when to renew a certificate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::due::Inspection;
use super::leftovers;
use crate::context::failure::Failure;
use crate::controllers::certificate::Due;
use crate::controllers::obstacles::Obstacles;
use crate::controllers::renewal_inquiry::RenewalInquiry;
use crate::diagnosis::case::chain::{issuer_key, key_of};
use crate::diagnosis::verdict::{Verdict, verdict};
use crate::issue::preflight::certificates::certificates;
use crate::issue::tracked::{End, Tracked};
use crate::lead::Claim;
use crate::model::common::is_true;
use crate::model::{Certificate, Issuer, Key, Kind, ObjectName, Record};
use crate::objects::{chain, own_request};
use crate::reconcile::certificate::options::Options;
use crate::reconcile::issuer::{is_ready, is_ready_to_cert_manager};
use crate::store::memory::MemoryStore;
use crate::store::resources::typed;
use crate::store::{Scope, Store};

/// Start of an order.
#[derive(Debug)]
pub struct Opening {
    /// Objects to follow: Certificates that are due or not reconciled yet, and Issuers for which no Certificate waits.
    pub open: BTreeMap<Key, Tracked>,
    /// Objects that have ended already.
    pub ends: BTreeMap<Key, End>,
}

/// Finds the objects to follow. If no other process drives, Certificates that are not due are corrected here, which needs
/// neither a CA nor a port.
///
/// # Errors
/// Fails when the store does, or two Certificates have one Secret.
pub async fn opening(
    records: &[Record],
    store: &Arc<dyn Store>,
    claim: &Claim,
    (options, inquiry): (Options, Option<RenewalInquiry>),
    now: Timestamp,
) -> Result<Opening, Failure> {
    let (mut open, mut ends) = (BTreeMap::new(), BTreeMap::new());
    let of_kind = |kind| records.iter().map(|r| &r.key).filter(move |key| key.kind == kind);
    let mut left = if store.in_cluster() && !claim.is_cert_manager() {
        let issued = records.iter().map(|record| &record.key).filter(|key| key.kind.is_issued());
        leftovers::to_cert_manager(store, issued).await?
    } else {
        BTreeMap::new()
    };
    let inspection = Inspection::new(store, options, now).asking(inquiry);
    let is_driving = matches!(claim, Claim::Alone | Claim::Drives(_));
    for key in of_kind(Kind::Certificate) {
        if matches!(claim, Claim::Watches(_))
            && let Some(failure) = left.remove(key)
        {
            ends.insert(key.clone(), End::Failed(failure));
            continue;
        }
        if let Some(since) = inspection.begin_if_due(&key.name, is_driving).await? {
            open.insert(key.clone(), Tracked::due(inspection.store(), &key.name, since).await?);
            continue;
        }
        if left.contains_key(key) {
            continue;
        }
        if is_driving {
            inspection.put_right(&key.name).await?;
        }
        let Some(chain) = chain::read(inspection.store(), &key.name).await? else { continue };
        match verdict(&chain, &Obstacles::new(), None) {
            Verdict::Issued => {}
            Verdict::Failed(failed) => {
                ends.insert(key.clone(), End::Failed(failed.into()));
            }
            Verdict::Waiting(_) => {
                open.insert(key.clone(), Tracked::default());
            }
        }
    }
    for key in of_kind(Kind::CertificateRequest) {
        if matches!(claim, Claim::Watches(_))
            && let Some(failure) = left.remove(key)
        {
            ends.insert(key.clone(), End::Failed(failure));
            continue;
        }
        let Some(chain) = chain::of(store, key).await? else { continue };
        if chain.certificate.is_being_issued() {
            open.insert(key.clone(), Tracked::from_revision(0));
        } else if let Some(failure) = own_request::spent(&chain, now) {
            ends.insert(key.clone(), End::Failed(failure));
        }
    }
    for key in of_kind(Kind::Issuer).chain(of_kind(Kind::ClusterIssuer)) {
        if is_followed(key, records, store, claim, &open).await? {
            open.insert(key.clone(), Tracked::default());
        }
    }
    Ok(Opening { open, ends })
}

/// Returns the Certificates of the manifests that would be due if the manifests were applied now; nothing is written.
///
/// # Errors
/// Fails when the store does, or two Certificates have one Secret.
pub async fn would_be_due(
    records: &[Record],
    store: &Arc<dyn Store>,
    now: Timestamp,
) -> Result<BTreeSet<Key>, Failure> {
    let of_manifests: Vec<Certificate> = certificates(records).collect();
    let namespaces: BTreeSet<&str> =
        of_manifests.iter().map(|c| c.metadata.namespace.as_str()).collect();
    let mut held = Vec::new();
    for namespace in namespaces {
        for kind in [Kind::Certificate, Kind::CertificateRequest] {
            held.extend(store.list(kind, &Scope::namespace(namespace)).await?);
        }
    }
    for certificate in of_manifests.iter().filter(|it| !it.spec.secret_name.is_empty()) {
        let name = ObjectName::new(&certificate.metadata.namespace, &certificate.spec.secret_name);
        held.extend(store.get(&Key::new(Kind::Secret, name)).await?);
    }
    let copy: Arc<dyn Store> = Arc::new(MemoryStore::of(held));
    for record in records {
        copy.apply(record.clone()).await?;
    }
    let inspection = Inspection::new(&copy, Options::default(), now);
    let mut due = BTreeSet::new();
    for certificate in of_manifests {
        let key = key_of(&certificate);
        let is_due = if key.kind == Kind::CertificateRequest {
            chain::of(&copy, &key).await?.is_some_and(|it| it.certificate.is_being_issued())
        } else {
            !matches!(inspection.due(&key.name).await?, Due::No)
        };
        if is_due {
            due.insert(key);
        }
    }
    Ok(due)
}

/// Returns whether an Issuer is followed itself: if it is given without Certificates, or if it is not ready for its driver
/// and the Certificates that use the Issuer do not wait for that. An Issuer that no given Certificate uses is set up by the
/// driver, and may fail without failing the command.
async fn is_followed(
    key: &Key,
    records: &[Record],
    store: &Arc<dyn Store>,
    claim: &Claim,
    open: &BTreeMap<Key, Tracked>,
) -> Result<bool, Failure> {
    if certificates(records).next().is_none() {
        return Ok(true);
    }
    let Some(record) = store.get(key).await? else { return Ok(false) };
    let issuer = typed::<Issuer>(record)?;
    let is_done =
        if claim.is_cert_manager() { is_ready_to_cert_manager(&issuer) } else { is_ready(&issuer) };
    if issuer.spec.acme.is_none() || is_done {
        return Ok(false);
    }
    // A Certificate goes on with an Issuer that was ready before.
    let was_ready = is_true(&issuer.status.conditions, "Ready");
    let mut users = certificates(records)
        .filter(|certificate| issuer_key(certificate).as_ref() == Some(key))
        .map(|certificate| open.get(&key_of(&certificate)).is_some_and(Tracked::is_due))
        .peekable();
    Ok(users.peek().is_some() && (was_ready || !users.any(|is_due| is_due)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use serde_json::json;

    use super::*;
    use crate::lead::{Other, Program};
    use crate::model::ConditionStatus;
    use crate::model::common::condition;
    use crate::store::error::StoreError;
    use crate::store::resources::Resources;
    use crate::store::testing::Front;

    /// Counts lists of whole namespaces (in a cluster every list is one; there Events are not looked up before a write).
    #[derive(Debug, Default)]
    struct Counting {
        store: MemoryStore,
        is_cluster: bool,
        lists: AtomicU32,
    }

    #[async_trait]
    impl Front for Counting {
        fn behind(&self) -> &dyn Store {
            &self.store
        }
        async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
            if scope.involved_uid.is_none() && (self.is_cluster || scope.owner_uid.is_none()) {
                self.lists.fetch_add(1, Ordering::Relaxed);
            }
            self.store.list(kind, scope).await
        }
        fn in_cluster(&self) -> bool {
            self.is_cluster
        }
    }

    fn now() -> Timestamp {
        "2026-11-21T04:30:25Z".parse().unwrap()
    }

    /// Creates `count` Certificates, each with its Secret as requested and with no status yet.
    async fn fill(store: &dyn Store, count: usize) -> Vec<Record> {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut records = Vec::new();
        for number in 0..count {
            let (name, host) = (format!("c{number}"), format!("n{number}.example.com"));
            let mut params = rcgen::CertificateParams::new([host.clone()]).unwrap();
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.not_before = rcgen::date_time_ymd(2026, 11, 20);
            params.not_after = rcgen::date_time_ymd(2036, 2, 19);
            let certificate = json!({
                "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                "metadata": {"name": name, "namespace": "web"},
                "spec": {
                    "secretName": format!("{name}-tls"), "issuerRef": {"name": "acme"},
                    "dnsNames": [host], "privateKey": {"algorithm": "ECDSA"},
                },
            });
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                "metadata": {
                    "name": format!("{name}-tls"), "namespace": "web",
                    "annotations": {
                        "cert-manager.io/certificate-name": name,
                        "cert-manager.io/issuer-name": "acme", "cert-manager.io/issuer-kind": "Issuer",
                        "cert-manager.io/issuer-group": "cert-manager.io",
                    },
                },
                "stringData": {
                    "tls.crt": params.self_signed(&key).unwrap().pem(),
                    "tls.key": key.serialize_pem(),
                },
            });
            store.create(Record::new(secret).unwrap()).await.unwrap();
            records.push(store.create(Record::new(certificate).unwrap()).await.unwrap());
        }
        records
    }

    /// Counts the lists of whole namespaces at the start of an order of `count` Certificates, all up to date and corrected.
    async fn lists(count: usize, is_cluster: bool) -> u32 {
        let counting = Arc::new(Counting { is_cluster, ..Counting::default() });
        let store: Arc<dyn Store> = counting.clone();
        let records = fill(&*store, count).await;
        let opened = opening(&records, &store, &Claim::Alone, (Options::default(), None), now())
            .await
            .unwrap();
        assert!(opened.open.is_empty() && opened.ends.is_empty(), "{opened:?}");
        let certificates = Resources::<Certificate>::new(Arc::clone(&store), Kind::Certificate);
        let last = ObjectName::new("web", format!("c{}", count - 1));
        let last = certificates.get(&last).await.unwrap().unwrap();
        let ready = condition(&last.status.conditions, "Ready").map(|ready| ready.status);
        assert_eq!(ready, Some(ConditionStatus::True));
        counting.lists.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn the_lists_that_an_order_begins_with_do_not_grow_with_its_certificates() {
        assert_eq!(lists(3, false).await, lists(40, false).await);
        assert_eq!(lists(3, true).await, lists(40, true).await);
    }

    #[tokio::test]
    async fn what_only_cert_manager_issues_is_left_to_it_beside_our_own_run() {
        let store: Arc<dyn Store> = Arc::new(Counting { is_cluster: true, ..Counting::default() });
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "own", "namespace": "web"}, "spec": {"selfSigned": {}},
        });
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "due", "namespace": "web"},
            "spec": {"secretName": "due-tls", "issuerRef": {"name": "own"}, "dnsNames": ["a.example.com"]},
        });
        store.create(Record::new(issuer).unwrap()).await.unwrap();
        let records = [store.create(Record::new(certificate).unwrap()).await.unwrap()];
        let program = Program::KubectlAcme;
        let other = Other { seen: None, program, driver: String::new(), next_step: String::new() };
        for (claim, is_ended) in [(Claim::Watches(other), true), (Claim::Alone, false)] {
            let Opening { open, ends } =
                opening(&records, &store, &claim, (Options::default(), None), now()).await.unwrap();
            let key = &records[0].key;
            assert_eq!((ends.contains_key(key), open.contains_key(key)), (is_ended, !is_ended));
        }
    }
}
