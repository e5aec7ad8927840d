//! Certificates that are replaced because of a finding: a limited number per hour, however many commands and people ask.
//! The renewals of the last hour are read from the store.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;

use crate::model::certificate::ISSUING;
use crate::model::common::{Time, condition, is_true};
use crate::model::request::REVISION;
use crate::model::{Certificate, Kind, ObjectName, Record};
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::typed;
use crate::store::{Scope, Store};

/// Period to which the limit of renewals applies.
pub const RENEWAL_LIMIT_PERIOD: SignedDuration = SignedDuration::from_hours(1);

/// Certificates that are to be replaced, the most urgent first.
#[derive(Debug)]
pub struct Replacement {
    /// Names of the Certificates, each with the revision to which the finding applies.
    wanted: Vec<(ObjectName, Option<i64>)>,
    most_per_hour: usize,
    put_off: Mutex<BTreeSet<ObjectName>>,
}

impl Replacement {
    /// Builds the replacement of these Certificates, at most `most_per_hour` in an hour.
    pub fn new(wanted: Vec<(ObjectName, Option<i64>)>, most_per_hour: usize) -> Self {
        Self { wanted, most_per_hour, put_off: Mutex::default() }
    }

    /// Names of the Certificates to replace.
    pub fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.wanted.iter().map(|(name, _)| name)
    }

    /// Returns whether the limit left no room for a Certificate in this hour.
    pub fn was_put_off(&self, name: &ObjectName) -> bool {
        self.put_off.lock().contains(name)
    }

    /// Returns the number of Certificates that may be renewed now.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn room(&self, store: &Arc<dyn Store>, now: Timestamp) -> Result<usize, StoreError> {
        let namespaces = self.names().map(|name| name.namespace.as_str()).collect();
        let lately = count_renewed_lately(store, &namespaces, now).await?;
        Ok(self.most_per_hour.saturating_sub(lately))
    }

    /// Returns the records that may be replaced now. A Certificate that was replaced since the finding is left alone.
    pub(crate) async fn allowed<'a>(
        &self,
        store: &Arc<dyn Store>,
        records: Vec<&'a Record>,
        now: Timestamp,
    ) -> Result<Vec<&'a Record>, StoreError> {
        let room = self.room(store, now).await?;
        let mut allowed = Vec::new();
        for (name, found) in &self.wanted {
            let Some(record) = records.iter().find(|record| record.key.name == *name) else {
                continue;
            };
            let revision = record.object.pointer("/status/revision").and_then(Value::as_i64);
            if revision != *found {
                continue;
            }
            if allowed.len() < room {
                allowed.push(*record);
            } else {
                self.put_off.lock().insert(name.clone());
            }
        }
        Ok(allowed)
    }
}

/// Counts Certificates renewed in the last hour or being renewed: CertificateRequests with the revision of a renewal, and
/// marked Certificates without a request yet. If not all namespaces may be read, those of the Certificates count.
async fn count_renewed_lately(
    store: &Arc<dyn Store>,
    namespaces: &BTreeSet<&str>,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let since = now.checked_sub(RENEWAL_LIMIT_PERIOD).unwrap_or(Timestamp::MIN);
    let is_late = |at: Option<Time>| at.is_some_and(|at| at.timestamp() > since);
    let mut requested = BTreeSet::new();
    let mut count = 0;
    for record in list_records(store, Kind::CertificateRequest, namespaces).await? {
        let metadata = record.metadata();
        let revision = metadata.annotations.get(REVISION).and_then(|text| text.parse::<i64>().ok());
        if revision.is_some_and(|revision| revision > 1) && is_late(metadata.creation_timestamp) {
            count += 1;
            requested.extend(metadata.controller_key().map(|(key, _)| key.name));
        }
    }
    for record in list_records(store, Kind::Certificate, namespaces).await? {
        let certificate: Certificate = typed(record)?;
        let conditions = &certificate.status.conditions;
        let marked =
            condition(conditions, ISSUING).and_then(|issuing| issuing.last_transition_time);
        let is_renewed = certificate.status.revision.is_some() && is_true(conditions, ISSUING);
        if is_renewed && is_late(marked) && !requested.contains(&certificate.name()) {
            count += 1;
        }
    }
    Ok(count)
}

async fn list_records(
    store: &Arc<dyn Store>,
    kind: Kind,
    namespaces: &BTreeSet<&str>,
) -> Result<Vec<Record>, StoreError> {
    if let Some(all) = unless_forbidden(store.list(kind, &Scope::all()).await)? {
        return Ok(all);
    }
    let mut all = Vec::new();
    for namespace in namespaces {
        all.extend(store.list(kind, &Scope::namespace(*namespace)).await?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::memory::MemoryStore;

    const NOW: &str = "2026-11-25T12:00:00Z";

    fn certificate(name: &str, revision: i64, marked: Option<&str>) -> Value {
        let conditions = marked.map(|at| {
            json!([{"type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
                    "message": "", "lastTransitionTime": at}])
        });
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": name, "namespace": "web"},
            "spec": {"secretName": name, "issuerRef": {"name": "acme"}},
            "status": {"revision": revision, "conditions": conditions.unwrap_or(json!([]))},
        })
    }

    fn request(of: &str, revision: i64, created: &str) -> Value {
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "CertificateRequest",
            "metadata": {
                "name": format!("{of}-{revision}"), "namespace": "web", "creationTimestamp": created,
                "annotations": {REVISION: revision.to_string()},
                "ownerReferences": [{"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                                     "name": of, "uid": of, "controller": true}],
            },
            "spec": {"issuerRef": {"name": "acme"}, "request": ""},
        })
    }

    /// Checks which of three wanted Certificates may be replaced, three in an hour.
    async fn check(others: Vec<Value>, expected: &[&str]) {
        let wanted = ["a", "b", "c"];
        let records: Vec<Record> =
            wanted.iter().map(|name| Record::new(certificate(name, 1, None)).unwrap()).collect();
        let store = MemoryStore::of(others.into_iter().map(|it| Record::new(it).unwrap()));
        let store: Arc<dyn Store> = Arc::new(store);
        // What has changed since is found under another number.
        let found = |name: &str| Some(if name == "b" { 7 } else { 1 });
        let wanted = wanted.map(|name| (ObjectName::new("web", name), found(name)));
        let replacement = Replacement::new(wanted.to_vec(), 3);
        let allowed =
            replacement.allowed(&store, records.iter().collect(), NOW.parse().unwrap()).await;
        let names: Vec<String> =
            allowed.unwrap().iter().map(|record| record.key.name.name.clone()).collect();
        assert_eq!(names, expected);
        let c = ObjectName::new("web", "c");
        assert_eq!(replacement.was_put_off(&c), !expected.contains(&"c"));
    }

    #[tokio::test]
    async fn what_was_renewed_in_the_last_hour_leaves_less_room() {
        let early = "2026-11-25T10:59:00Z";
        let late = "2026-11-25T11:30:00Z";
        check(vec![], &["a", "c"]).await;
        check(vec![request("d", 2, early), request("e", 1, late)], &["a", "c"]).await;
        check(vec![request("d", 2, late), request("e", 3, late)], &["a"]).await;
        // One that is marked counts before its request is there, and once.
        let marked = certificate("d", 1, Some(late));
        check(vec![marked.clone(), request("e", 2, late)], &["a"]).await;
        check(vec![marked, request("d", 2, late)], &["a", "c"]).await;
        let all: Vec<Value> = ["d", "e", "f"].map(|name| request(name, 2, late)).to_vec();
        check(all, &[]).await;
    }
}
