//! Solver objects that this process knows without a request: an API server finds the objects of a
//! Challenge only by reading a namespace, and each of a hundred Challenges would read all Pods.
//!
//! The finalizer is set before the first object is made, so a Challenge whose finalizer is new has no objects. One
//! certificate costs about 52 requests to the API server (cert-manager's own controllers: 55 to 63).

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::store::cluster::raw_objects::Resource;

/// Time for which the knowledge counts: another controller that drives the Challenge may make and remove objects.
const KNOWLEDGE_LIFETIME: Duration = Duration::from_secs(30);

/// Objects of Challenges, by UID, for Challenges that had no objects when this process began to make them.
#[derive(Debug, Default)]
pub(super) struct KnownObjects(Mutex<HashMap<String, MadeObjects>>);

#[derive(Debug)]
struct MadeObjects {
    since: Instant,
    /// Resources of which an object is being made: until the object is added, its existence is unknown.
    under_way: BTreeSet<&'static str>,
    objects: Vec<(&'static str, Value)>,
}

impl Default for MadeObjects {
    fn default() -> Self {
        Self { since: Instant::now(), under_way: BTreeSet::new(), objects: Vec::new() }
    }
}

impl KnownObjects {
    /// Records that a Challenge has no objects.
    pub(super) fn nothing(&self, uid: &str) {
        let mut all = self.all();
        all.retain(|_, known| known.since.elapsed() < KNOWLEDGE_LIFETIME);
        all.insert(uid.to_owned(), MadeObjects::default());
    }

    /// Records that an object is about to be made.
    pub(super) fn begin(&self, uid: &str, resource: Resource) {
        if let Some(known) = self.all().get_mut(uid) {
            known.under_way.insert(resource.plural);
        }
    }

    /// Records a new object; adds nothing for a Challenge whose objects are not known.
    pub(super) fn add(&self, uid: &str, resource: Resource, object: &Value) {
        let mut all = self.all();
        let Some(known) = all.get_mut(uid) else { return };
        let metadata = &object["metadata"];
        let identity = json!({"metadata": {"name": metadata["name"], "uid": metadata["uid"]}});
        known.under_way.remove(resource.plural);
        known.objects.push((resource.plural, identity));
    }

    /// Returns the name and UID of every object of a resource that a Challenge has; `None` if they are not known.
    pub(super) fn of(&self, uid: &str, resource: Resource) -> Option<Vec<Value>> {
        let all = self.all();
        let known = all.get(uid).filter(|known| {
            known.since.elapsed() < KNOWLEDGE_LIFETIME && !known.under_way.contains(resource.plural)
        })?;
        let of_it = known.objects.iter().filter(|(plural, _)| *plural == resource.plural);
        Some(of_it.map(|(_, object)| object.clone()).collect())
    }

    /// Forgets the objects of a Challenge: they are gone, or a write may have failed half-way.
    pub(super) fn forget(&self, uid: &str) {
        self.all().remove(uid);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, MadeObjects>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::super::objects::{PODS, SERVICES};
    use super::*;

    fn pod(name: &str) -> Value {
        json!({"metadata": {"name": name, "uid": "1"}})
    }

    #[tokio::test(start_paused = true)]
    async fn objects_are_known_from_the_first_on_for_half_a_minute() {
        let made = KnownObjects::default();
        made.add("c", PODS, &pod("stranger"));
        assert_eq!(made.of("c", PODS), None, "it had others perhaps");
        made.nothing("c");
        assert_eq!(made.of("c", PODS), Some(Vec::new()));
        made.begin("c", PODS);
        assert_eq!(made.of("c", PODS), None, "it may be there, or not");
        assert_eq!(made.of("c", SERVICES), Some(Vec::new()));
        made.add("c", PODS, &json!({"metadata": {"name": "p", "uid": "1"}, "spec": {}}));
        assert_eq!(made.of("c", PODS), Some(vec![pod("p")]));
        assert_eq!(made.of("c", SERVICES), Some(Vec::new()));
        assert_eq!(made.of("d", PODS), None, "another Challenge");
        tokio::time::advance(KNOWLEDGE_LIFETIME).await;
        assert_eq!(made.of("c", PODS), None);
    }

    #[tokio::test]
    async fn what_is_forgotten_is_not_known() {
        let made = KnownObjects::default();
        made.nothing("c");
        made.forget("c");
        assert_eq!(made.of("c", PODS), None);
    }
}
